# SPDX-License-Identifier: GPL-2.0
"""Tables as plain text and as HTML, and the templates of the pages."""

import dataclasses
import os
import pathlib
import re
import urllib.parse

import jinja2

_HERE = pathlib.Path(__file__).parent
# Everything is escaped, but for the SVG of figures.
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_HERE), autoescape=True,
    undefined=jinja2.StrictUndefined, keep_trailing_newline=True)


@dataclasses.dataclass
class Table:
    """A title, column heads with units, and rows of text; notes go below.

    left: how many of the first columns hold words (left-aligned); the others
    hold numbers. A cell that is a verdict is coloured in HTML.
    """

    title: str
    heads: list
    rows: list
    left: int = 1
    notes: list = dataclasses.field(default_factory=list)


def render_text(table):
    """The table for a terminal, monospaced, ending with a newline."""
    widths = [max(len(row[column]) for row in [table.heads] + table.rows)
              for column in range(len(table.heads))]

    def line(cells):
        return "  ".join(
            cell.ljust(width) if column < table.left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths))
        ).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([table.title, "", line(table.heads), rule,
                      *map(line, table.rows),
                      *(f"({note})" for note in table.notes)]) + "\n"


def render_html(table):
    """The table as an HTML fragment, everything escaped."""
    return _TEMPLATES.get_template("macros.html.j2").module.table(table)


def render_page(**content):
    """A page, see page.html.j2 for its content."""
    css = (_HERE / "page.css").read_text(encoding="utf-8")
    return _printable(_TEMPLATES.get_template("page.html.j2").render(
        css=jinja2.utils.markupsafe.Markup(css), **content))


def trusted(text):
    """Text that is HTML already, such as the SVG of a figure."""
    return jinja2.utils.markupsafe.Markup(text)


def link(path, directory):
    """The address of a file for a page in a directory."""
    return urllib.parse.quote(os.fsencode(os.path.relpath(path, directory)))


def slug(text):
    """A part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


# Colours of a terminal; then what HTML does not allow, and halves of characters,
# which are bytes of a file name that are not UTF-8.
_COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def _printable(text):
    """Text without colours, and with numbers for what cannot be shown."""
    return _FORBIDDEN.sub(
        lambda found: ascii(found[0])[1:-1].replace("udc", "x"),
        _COLOURS.sub("", text))
