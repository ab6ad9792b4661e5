# SPDX-License-Identifier: GPL-2.0
"""A table, as plain text for a terminal and as HTML."""

import dataclasses
import html


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


_GOOD = ("holds", "agrees", "better")
_BAD = ("fails", "differs")


def render_html(table):
    """The table as an HTML fragment, everything escaped."""
    def cells(tag, row):
        return "".join(
            f"<{tag}{_cell_class(cell, column < table.left)}>"
            f"{html.escape(cell)}</{tag}>"
            for column, cell in enumerate(row))

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    notes = "".join(f"<p class=\"note\">{html.escape(note)}</p>\n"
                    for note in table.notes)
    return (f"<div class=\"table\"><table>\n"
            f"<caption>{html.escape(table.title)}</caption>\n"
            f"<thead><tr>{cells('th', table.heads)}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody></table></div>\n{notes}")


def _cell_class(cell, is_left):
    names = ["left"] if is_left else []
    if cell in _GOOD:
        names.append("good")
    elif cell in _BAD:
        names.append("bad")
    return f' class="{" ".join(names)}"' if names else ""
