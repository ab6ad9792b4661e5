# SPDX-License-Identifier: GPL-2.0
"""A Python file of assignments: what it assigns, where, and what its values mean.
Also a JSON file beside it.

Each error is one sentence with the file, the line and what is allowed.
"""

import __future__
import ast
import difflib
import json
import math
import re
import types
import unicodedata
import warnings
from pathlib import Path

from ..errors import TollwayError

# Rates of links, bit/s, and the longest times.
LEAST_BPS, GREATEST_BPS = 10**5, 10**10
LONGEST_S = 1e6
LARGEST_TRANSFER = 10**12
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_RATE = re.compile(r"(\d+(?:\.\d+)?)(k|M|G|)bit")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(k|M|G|)B")
_TIMES = {"k": 10**3, "M": 10**6, "G": 10**9, "": 1}
# What `from __future__ import ...` assigns.
_FEATURE = type(__future__.annotations)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def _quantity(pattern, factors, example, least, greatest, show):
    """A reader of a number with a unit: of text, it gives the number, or raises
    ValueError with what is allowed."""
    def read(value):
        found = pattern.fullmatch(value) if isinstance(value, str) else None
        number = float(found[1]) * factors[found[2]] if found else None
        if number is None or not least <= number <= greatest:
            raise ValueError(f"give a text such as {example}, from "
                             f"{show(least)} to {show(greatest)}")
        return number
    return read


as_rate = _quantity(_RATE, _TIMES, "'10Mbit'", LEAST_BPS, GREATEST_BPS,
                    lambda bps: f"{bps / 1e3:g}kbit" if bps < 10**6 else
                    f"{bps / 1e9:g}Gbit")
as_time = _quantity(_TIME, _SECONDS, "'20ms' or '1.5s'", 0, LONGEST_S,
                    lambda s: f"{s:g}s")
as_length = _quantity(_TIME, _SECONDS, "'30s'", 0.01, LONGEST_S,
                      lambda s: f"{s:g}s")
as_size = _quantity(_SIZE, _TIMES, "'3MB'", 1, LARGEST_TRANSFER,
                    lambda size: f"{size:g}B")


def as_whole(least, greatest):
    """A reader of a whole number."""
    def read(value):
        if isinstance(value, bool) or not isinstance(value, int) \
                or not least <= value <= greatest:
            raise ValueError(f"give a whole number from {least} to {greatest}")
        return value
    return read


def as_name(value):
    """A name: of a link, a path, flows."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError("give a text of at most 40 letters, digits and ._-")
    return value


def as_text(value):
    """A text of one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError("give a text of one line")
    return value


def as_shown(value):
    """A text that figures show: matplotlib reads what is between two $ as a
    formula, and fails at what is none when all runs are done."""
    text = as_text(value)
    if text.count("$") > 1:
        raise ValueError("give a text with at most one $, as figures show it")
    return text


def as_label(value):
    """The same of a line: matplotlib leaves names with _ out of the legend."""
    text = as_shown(value)
    if text.startswith("_"):
        raise ValueError("give a text that does not begin with _, as legends "
                         "leave such names out")
    return text


def as_spelled(name):
    """The name of a metric, which may have the spelling of our texts."""
    return "utilization" if name == "utilisation" else name


def as_number(value):
    """A number, none that is not finite."""
    try:
        if not isinstance(value, bool) and isinstance(value, (int, float)) \
                and math.isfinite(value):
            return value
    except OverflowError:
        pass
    raise ValueError("give a number")


def as_dict(what):
    """A reader of a dict, which is not read itself."""
    def read(value):
        if not isinstance(value, dict):
            raise ValueError(f"give a dict {what}")
        return value
    return read


def one_of(words, what=""):
    """A reader of one of these words."""
    def read(value):
        if value not in words:
            raise ValueError(f"give {what}{listed(words)}")
        return value
    return read


def shown(value):
    """A value in an error, in some 40 characters."""
    try:
        text = repr(value)
    except Exception:  # of a number of 5000 digits, or of a class of the file
        text = f"a {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


def listed(words):
    """'a', 'b' or 'c'."""
    quoted = [repr(word) for word in words]
    return quoted[0] if len(quoted) == 1 else \
        f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _text_of(path):
    try:
        # Editors of other systems may put a mark of their encoding first.
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TollwayError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TollwayError(f"{path} is not a text in UTF-8") from error


def _line_in(node, keys, line):
    """The line of a part of a value whose syntax is node, as well as it is known;
    line: where the value begins."""
    for key in keys:
        if isinstance(node, ast.Dict):
            found = [(name.lineno, value) for name, value in
                     zip(node.keys, node.values)
                     if isinstance(name, ast.Constant) and name.value == key]
        elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(
                key, int) and key < len(node.elts):
            found = [(node.elts[key].lineno, node.elts[key])]
        else:
            found = []
        if not found:
            break
        line, node = found[-1]
    return line


def _of_exception(error):
    """An exception of a file that was run, in one line."""
    try:
        said = " ".join(str(error).split())
    except Exception:  # of a class of the file
        said = ""
    return ": ".join(filter(None, [type(error).__name__, said]))


class _File:
    """A file of values, each at a place: the keys that lead to it."""

    path = None

    def line(self, place):
        """The line of a part of the file, as well as it is known."""
        raise NotImplementedError

    def error(self, place, sentence):
        """A TollwayError about a part of the file."""
        return TollwayError(f"{self.path}:{self.line(place)}: {sentence}")

    def no_pairs(self, tree):
        """Raise TollwayError if a dict of a tree has a key twice: Python and JSON take the
        last one, and what the first one was for is lost."""
        for node in ast.walk(tree):
            seen = set()
            for key in getattr(node, "keys", ()):
                if not isinstance(key, ast.Constant):
                    continue
                if key.value in seen:
                    raise TollwayError(f"{self.path}:{key.lineno}: this dict has "
                                       f"{shown(key.value)} twice: give each entry a "
                                       "name of its own")
                seen.add(key.value)

    def read(self, place, value, reader):
        """What a reader makes of a value."""
        try:
            return reader(value)
        except ValueError as error:
            raise self.error(place, f"{spoken(place)} is {shown(value)}: "
                             f"{error}") from None

    def table(self, place, value, needed, known):
        """A dict with fields, each read by its reader."""
        known = {**needed, **known}
        if not isinstance(value, dict):
            raise self.error(place, f"{spoken(place)} is {shown(value)}: give "
                             f"a dict with {', '.join(known)}")
        for key in value:
            if key not in known:
                raise self.error((*place, key), f"{spoken(place)} has no "
                                 f"{shown(key)}: it has {', '.join(known)}")
        for key in needed:
            if key not in value:
                raise self.error(place, f"{spoken(place)} has no {key}: it "
                                 f"needs {', '.join(needed)}")
        return {key: self.read((*place, key), entry, known[key])
                for key, entry in value.items()}

    def entries(self, place, value, least=0):
        """A list with so many entries at least."""
        if not isinstance(value, (list, tuple)) or len(value) < least:
            raise self.error(place, f"{spoken(place)} is {shown(value)}: give a "
                             "list" + (f" with {least} entries at least"
                                       if least else ""))
        return value


class JsonFile(_File):
    """A JSON file: its value, and where the parts of it are."""

    def __init__(self, path):
        self.path = Path(path)
        text = _text_of(self.path)
        try:
            self.value = json.loads(text)
        except json.JSONDecodeError as error:
            raise TollwayError(f"{path}:{error.lineno}: it is not valid JSON: "
                               f"{error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise TollwayError(f"{path}:1: it cannot be read: {error}") from error
        try:
            # JSON does not say where its values are, but Python reads it, too.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tree = ast.parse(f"({text}\n)", mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            self.tree = None
        else:
            self.no_pairs(self.tree)

    def line(self, place):
        return _line_in(self.tree, place, 1)


class SourceFile(_File):
    """The file of an experiment: what it assigns, and where."""

    def __init__(self, path, fields):
        self.path = Path(path)
        source = _text_of(self.path)
        try:
            self.tree = ast.parse(source, str(path))
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            line = getattr(error, "lineno", None) or 1
            said = error.args[0] if error.args else "it is too complex"
            raise TollwayError(f"{path}:{line}: {said}") from error
        # First, as Python 3.13 cannot compile half a character in a docstring.
        self.about = self._docstring()
        given = {"__name__": "experiment", "__file__": str(path)}
        try:
            exec(compile(self.tree, str(path), "exec"), given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the file does
            line, frame = getattr(error, "lineno", None) or 1, error.__traceback__
            while frame:
                if frame.tb_frame.f_code.co_filename == str(path):
                    line = frame.tb_lineno
                frame = frame.tb_next
            raise TollwayError(f"{path}:{line}: {_of_exception(error)}") from error
        self.no_pairs(self.tree)
        # What a file uses is no field of it, unless it has the name of one.
        self.given = {
            name: value for name, value in given.items()
            if not name.startswith("_") and (name in fields or not isinstance(
                value, (types.ModuleType, types.FunctionType, type, _FEATURE)))}
        for name in self.given:
            if name not in fields:
                near = difflib.get_close_matches(name, fields, 1)
                raise self.error(
                    (name,), f"there is no field {name}: "
                    + (f"did you mean {near[0]}? " if near else "")
                    + f"There are {', '.join(fields)}; a name of your own "
                    f"begins with _")

    def _docstring(self):
        """The docstring of the file: paragraphs of text."""
        text = "\n\n".join(" ".join(part.split()) for part in (
            ast.get_docstring(self.tree) or "").split("\n\n")).strip()
        wrong = [sign for sign in text.replace("\n", "")
                 if unicodedata.category(sign) in ("Cc", "Cs")]
        if wrong:
            raise TollwayError(f"{self.path}:{self.tree.body[0].lineno}: the docstring "
                               f"has {wrong[0]!r}: give a text that can be shown")
        return text

    def line(self, place):
        """The line of a part of what is assigned, as well as it is known."""
        nodes = [node for node in self.tree.body
                 if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
                 for target in getattr(node, "targets", None) or [node.target]
                 if isinstance(target, ast.Name) and target.id == place[0]]
        if not nodes:
            # Where else the name is given a value, or else the end.
            lines = [node.lineno for node in ast.walk(self.tree)
                     if place[:1] == (getattr(node, "name", None),)
                     or isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                     and place[:1] == (node.id,)]
            return max(lines, default=0) or \
                len(self.tree.body) and self.tree.body[-1].end_lineno or 1
        return _line_in(nodes[-1].value, place[1:], nodes[-1].lineno)

    def has(self, field):
        """Is a field assigned, and not an empty dict?"""
        value = self.given.get(field, {})
        return not isinstance(value, dict) or bool(value)

    def named(self, field):
        """The entries of a field that is a dict {name: ...}."""
        found = self.given.get(field)
        if not isinstance(found, dict) or not found:
            raise self.error((field,), f"{field} is needed: give a dict "
                             "{name: dict}, one entry at least"
                             if found is None else
                             f"{field} is {shown(found)}: give a dict "
                             "{name: dict} with one entry at least")
        taken = {}
        for name in found:
            self.read((field, name), name, as_name)
            # Files of figures and programs have the same name then.
            other = taken.setdefault(re.sub(r"[^a-z0-9]+", "-", name.lower()), name)
            if other != name:
                raise self.error((field, name), f"{field} has {other!r} and "
                                 f"{name!r}: give names that differ in letters "
                                 "or digits")
        return found

    def rows(self, field, least=0):
        """The entries of a field that is a list."""
        return self.entries((field,), self.given.get(field, ()), least)


def spoken(place):
    """A part of the file, as one writes it in Python."""
    return place[0] + "".join(f"[{key!r}]" for key in place[1:]) if place \
        else "the file"
