# SPDX-License-Identifier: GPL-2.0
"""A user's own experiment: a Python file of assignments.

The file is run, and what it assigns is checked: links, paths, flows and more,
see FIELDS. Names that begin with an underscore are its own. Each error is one
sentence with the file, the line and what is allowed.
"""

import ast
import difflib
import re
import types
from dataclasses import replace
from pathlib import Path

from ..components import aqm_words
from ..errors import TollwayError
from .description import Case, Experiment, Variant, case_bound, metric
from .jobs import WHOLE_RUN
from .parameters import COMMON, SHIPPED, parse, parse_words

TOPOLOGY = "Declared"
# Rates of links, bit/s, and the longest times.
LEAST_BPS, GREATEST_BPS = 10**5, 10**10
LONGEST_S = 1e6
MOST_FLOWS = 10000
LARGEST_TRANSFER = 10**12
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_RATE = re.compile(r"(\d+(?:\.\d+)?)(k|M|G|)bit")
_TIME = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(k|M|G|)B")
_TIMES = {"k": 10**3, "M": 10**6, "G": 10**9, "": 1}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

# Metrics by name: (kind in results/metrics, title, digits, what it is about).
# Those of flows are of all flows of one name.
METRICS = {
    "utilization": ("utilization", "utilisation of {}", 1, "link"),
    "delay_mean_ms": ("delay_mean_ms", "mean delay at {}", 2, "link"),
    "delay_p99_ms": ("delay_p99_ms", "99th percentile of the delay at {}",
                     2, "link"),
    "delay_max_ms": ("delay_max_ms", "longest delay at {}", 2, "link"),
    "queue_mean": ("queue_mean", "mean queue at {}", 1, "link"),
    "queue_max": ("queue_max", "longest queue at {}", 0, "link"),
    "drops": ("drops", "drops at {}", 0, "link"),
    "goodput_mbit": ("goodput_mbit", "goodput of {}", 3, "flows"),
    "jain": ("jain", "Jain's index of {}", 4, "flows"),
    "share_error": ("share_error", "largest error of a share of {}", 1, "flows"),
    "retransmits": ("retransmits", "retransmissions of {}", 0, "flows"),
    "completion_ms": ("completion_ms", "completion time of {}", 0,
                      "flows"),
}
FIELDS = ("title", "links", "paths", "flows", "duration", "warmup", "cc",
          "queue", "metrics", "bounds", "variants", "settings")


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


_rate = _quantity(_RATE, _TIMES, "'10Mbit'", LEAST_BPS, GREATEST_BPS,
                  lambda bps: f"{bps / 1e3:g}kbit" if bps < 10**6 else
                  f"{bps / 1e9:g}Gbit")
_time = _quantity(_TIME, _SECONDS, "'20ms' or '1.5s'", 0, LONGEST_S,
                  lambda s: f"{s:g}s")
_length = _quantity(_TIME, _SECONDS, "'30s'", 0.01, LONGEST_S,
                    lambda s: f"{s:g}s")
_size = _quantity(_SIZE, _TIMES, "'3MB'", 1, LARGEST_TRANSFER,
                  lambda size: f"{size:g}B")


def _whole(least, greatest):
    def read(value):
        if isinstance(value, bool) or not isinstance(value, int) \
                or not least <= value <= greatest:
            raise ValueError(f"give a whole number from {least} to {greatest}")
        return value
    return read


def _name(value):
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError("give a text of at most 40 letters, digits and ._-")
    return value


def _text(value):
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("give a text of one line")
    return value


def _one_of(words, what=""):
    def read(value):
        if value not in words:
            raise ValueError(f"give {what}{_list(words)}")
        return value
    return read


def _list(words):
    quoted = [repr(word) for word in words]
    return quoted[0] if len(quoted) == 1 else \
        f"{', '.join(quoted[:-1])} or {quoted[-1]}"


class _File:
    """The file of an experiment: what it assigns, and where."""

    def __init__(self, path):
        self.path = Path(path)
        try:
            source = self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise TollwayError(f"{path} cannot be read: "
                               f"{error.strerror}") from error
        except UnicodeDecodeError as error:
            raise TollwayError(f"{path} is not a text in UTF-8") from error
        try:
            self.tree = ast.parse(source, str(path))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            raise TollwayError(f"{path}:{line}: {error.args[0]}") from error
        given = {"__name__": "experiment", "__file__": str(path)}
        try:
            exec(compile(self.tree, str(path), "exec"), given)
        except Exception as error:  # whatever it is that the file does
            line, frame = 1, error.__traceback__
            while frame:
                if frame.tb_frame.f_code.co_filename == str(path):
                    line = frame.tb_lineno
                frame = frame.tb_next
            raise TollwayError(f"{path}:{line}: {type(error).__name__}: "
                               f"{error}") from error
        self.given = {
            name: value for name, value in given.items()
            if not name.startswith("_") and not isinstance(
                value, (types.ModuleType, types.FunctionType, type))}
        for name in self.given:
            if name not in FIELDS:
                near = difflib.get_close_matches(name, FIELDS, 1)
                raise self.error(
                    (name,), f"there is no field {name}: "
                    + (f"did you mean {near[0]}? " if near else "")
                    + f"There are {', '.join(FIELDS)}; a name of your own "
                    f"begins with _")

    def line(self, place):
        """The line of a part of what is assigned, as well as it is known."""
        nodes = [node for node in self.tree.body
                 if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
                 for target in getattr(node, "targets", None) or [node.target]
                 if isinstance(target, ast.Name) and target.id == place[0]]
        if not nodes:
            return len(self.tree.body) and self.tree.body[-1].end_lineno or 1
        line, node = nodes[-1].lineno, nodes[-1].value
        for key in place[1:]:
            if isinstance(node, ast.Dict):
                found = [(name.lineno, value) for name, value in
                         zip(node.keys, node.values)
                         if isinstance(name, ast.Constant)
                         and name.value == key]
            elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(
                    key, int) and key < len(node.elts):
                found = [(node.elts[key].lineno, node.elts[key])]
            else:
                found = []
            if not found:
                break
            line, node = found[-1]
        return line

    def error(self, place, sentence):
        """A TollwayError about a part of the file."""
        return TollwayError(f"{self.path}:{self.line(place)}: {sentence}")

    def read(self, place, value, reader):
        """What a reader makes of a value."""
        try:
            return reader(value)
        except ValueError as error:
            shown = repr(value)
            shown = shown if len(shown) <= 40 else shown[:37] + "..."
            raise self.error(place, f"{_spoken(place)} is {shown}: "
                             f"{error}") from None

    def table(self, place, value, needed, known):
        """A dict with fields, each read by its reader."""
        known = {**needed, **known}
        if not isinstance(value, dict):
            raise self.error(place, f"{_spoken(place)} is {value!r:.40}: give "
                             f"a dict with {', '.join(known)}")
        for key in value:
            if key not in known:
                raise self.error((*place, key), f"{_spoken(place)} has no "
                                 f"{key!r}: it has {', '.join(known)}")
        for key in needed:
            if key not in value:
                raise self.error(place, f"{_spoken(place)} has no {key}: it "
                                 f"needs {', '.join(needed)}")
        return {key: self.read((*place, key), entry, known[key])
                for key, entry in value.items()}

    def named(self, field):
        """The entries of a field that is a dict {name: ...}."""
        found = self.given.get(field)
        if not isinstance(found, dict) or not found:
            raise self.error((field,), f"{field} is needed: give a dict "
                             "{name: dict}, one entry at least"
                             if found is None else
                             f"{field} is {found!r:.40}: give a dict "
                             "{name: dict} with one entry at least")
        for name in found:
            self.read((field, name), name, _name)
        return found

    def rows(self, field, least=0):
        """The entries of a field that is a list."""
        found = self.given.get(field, ())
        if not isinstance(found, (list, tuple)) or len(found) < least:
            raise self.error((field,), f"{field} is {found!r:.40}: give a list "
                             f"with {least} entries at least")
        return found


def _spoken(place):
    return place[0] + "".join(f"[{key!r}]" for key in place[1:])


def load(path):
    """The Experiment in a file. Raises TollwayError for what is wrong in it."""
    file = _File(path)
    name = file.path.stem
    if not NAME.fullmatch(name):
        raise TollwayError(f"{path}: the name of an experiment has at most 40 "
                           "letters, digits and ._-: rename the file")
    title = file.read(("title",), file.given.get("title", name), _text)
    duration_s, warmup_s = (
        file.read((field,), file.given.get(field, usual), reader)
        for field, usual, reader in (("duration", "30s", _length),
                                     ("warmup", "0s", _time)))
    if warmup_s >= duration_s:
        raise file.error(("warmup",), f"warmup is {warmup_s:g}s: give less "
                         f"than the duration of {duration_s:g}s")
    links = _links(file)
    paths = _paths(file, links)
    cc, queue = (file.read((field,), file.given.get(field, usual), _text)
                 for field, usual in (("cc", "cubic"), ("queue", "fq_codel")))
    defaults = {"rtt_tolerance_ms": _echo_ms(links, paths),
                **_settings(file, warmup_s, cc, queue)}
    flows = _flows(file, paths, duration_s)
    metrics, bounds = _measured(file, links, flows)

    def shape(values):
        return {"links": [{**link, "queue": link["queue"] and
                           aqm_words(link["queue"], values)}
                          for link in links.values()],
                "paths": list(paths.values())}

    return Experiment(
        name=name, title=title, reproduces=f"nothing: it is {path}",
        topology=TOPOLOGY, duration_s=duration_s, defaults=defaults,
        variants=_variants(file, defaults), cc=cc, aqm=queue,
        cases=lambda values: [Case(
            WHOLE_RUN, tuple(dict(flow) for flow in flows), duration_s)],
        shape=shape, metrics=metrics, bounds=((frozenset(), bounds),),
        sysctls={"net.ipv4.tcp_timestamps": 1},
        others=tuple(sorted({flow["cc"] for flow in flows
                             if flow.get("cc")})),
        queues=lambda values: [aqm_words(link["queue"], values)
                               for link in links.values() if link["queue"]],
        pictures=(("rates", WHOLE_RUN), ("queue", WHOLE_RUN)))


# --- the network -----------------------------------------------------------

def _links(file):
    found = {}
    for name, entry in file.named("links").items():
        place = ("links", name)
        link = file.table(place, entry, {"from": _name, "to": _name,
                                         "rate": _rate},
                          {"delay": _time, "queue": _text})
        if link["from"] == link["to"]:
            raise file.error(place, f"{_spoken(place)} leads from "
                             f"{link['from']} to itself: give two routers")
        for other in found.values():
            if (other["from"], other["to"]) == (link["from"], link["to"]):
                raise file.error(place, f"{_spoken(place)} has the routers of "
                                 f"{other['name']}: one link is allowed from "
                                 "a router to another")
        found[name] = {"name": name, "from": link["from"], "to": link["to"],
                       "rate_bps": round(link["rate"]),
                       "delay_ms": round(1e3 * link.get("delay", 0.0), 6),
                       "queue": link.get("queue")}
    _no_loop(file, found)
    return found


def _no_loop(file, links):
    """Packets take the shortest way, which is the only one in a tree."""
    part = {}

    def root(router):
        while part.setdefault(router, router) != router:
            router = part[router]
        return router

    joined = set()
    for name, link in links.items():
        ends = frozenset((link["from"], link["to"]))
        first, second = map(root, (link["from"], link["to"]))
        if ends not in joined and first == second:
            raise file.error(("links", name), f"links['{name}'] closes a loop: "
                             "only one route is allowed between two routers")
        part[first] = second
        joined.add(ends)


def _paths(file, links):
    found = {}
    back = {(link["from"], link["to"]): link for link in links.values()}
    for name, entry in file.named("paths").items():
        place = ("paths", name)
        path = file.table(place, entry, {"links": lambda value: value},
                          {"rtt": _time})
        way = path["links"]
        if not isinstance(way, (list, tuple)) or not way:
            raise file.error((*place, "links"), f"{_spoken(place)}['links'] is "
                             f"{way!r:.40}: give a list of links, in the "
                             "order in which packets cross them")
        for index, link in enumerate(way):
            file.read((*place, "links", index), link,
                      _one_of(tuple(links), "the name of a link, "))
        for before, after in zip(way, way[1:]):
            if links[before]["to"] != links[after]["from"]:
                raise file.error((*place, "links"), f"{_spoken(place)} goes "
                                 f"from {before}, which leads to "
                                 f"{links[before]['to']}, to {after}, which "
                                 f"leads from {links[after]['from']}: give "
                                 "links that follow one another")
        visited = [links[way[0]]["from"], *(links[link]["to"] for link in way)]
        if len(set(visited)) < len(visited):
            raise file.error((*place, "links"), f"{_spoken(place)} visits a "
                             "router twice, but packets take the shortest "
                             "route")
        least_ms = sum(
            links[link]["delay_ms"] + back.get(
                (links[link]["to"], links[link]["from"]),
                links[link])["delay_ms"] for link in way)
        rtt_ms = 1e3 * path["rtt"] if "rtt" in path else least_ms
        if rtt_ms < least_ms - 1e-6:
            raise file.error((*place, "rtt"), f"{_spoken(place)}['rtt'] is "
                             f"{path['rtt'] * 1e3:g}ms: give {least_ms:g}ms at "
                             "least, which the delays of its links add up to, "
                             "there and back")
        found[name] = {"name": name, "links": list(way),
                       "rtt_ms": round(rtt_ms, 6),
                       "edge_ms": round((rtt_ms - least_ms) / 4, 6)}
    for name in links:
        if not any(name in path["links"] for path in found.values()):
            raise file.error(("links", name), f"links['{name}'] is in no path: "
                             "a link without a path is not allowed")
    return found


def _echo_ms(links, paths):
    """The most that the calibration's echo of 98 bytes takes over the links of
    a path, there and back, with what every experiment allows."""
    return COMMON["rtt_tolerance_ms"][0] + max(sum(
        2 * 98 * 8e3 / links[link]["rate_bps"] for link in path["links"])
        for path in paths.values())


# --- what is sent ----------------------------------------------------------

def _flows(file, paths, duration_s):
    found = []
    for index, entry in enumerate(file.rows("flows", least=1)):
        place = ("flows", index)
        flow = file.table(
            place, entry, {"path": _one_of(tuple(paths), "the name of a path, ")},
            {"name": _name, "count": _whole(1, MOST_FLOWS), "start": _time,
             "stop": _time, "cc": _text, "bytes": _size, "udp": _rate,
             "packet": _whole(64, 1514),
             "arrival": _one_of(("cbr", "poisson"))})
        wrong = {"bytes", "cc"} & set(flow) if "udp" in flow else \
            {"packet", "arrival"} & set(flow)
        if wrong:
            kind = "a UDP flow (udp)" if "udp" in flow else "a TCP flow"
            raise file.error((*place, min(wrong)), f"{_spoken(place)} has "
                             f"{min(wrong)!r}: {kind} has no such field")
        start_s, stop_s = flow.get("start", 0.0), flow.get("stop", duration_s)
        if not start_s < stop_s <= duration_s:
            raise file.error(
                (*place, "stop" if "stop" in flow else "start"),
                f"{_spoken(place)} runs from {start_s:g}s to {stop_s:g}s: give "
                f"a start before the stop, and a stop within the duration of "
                f"{duration_s:g}s")
        for number in range(flow.get("count", 1)):
            name = flow.get("name", flow["path"])
            made = {"name": f"{name} {number + 1}" if "count" in flow else name,
                    "path": flow["path"], "role": name, "start_s": start_s,
                    "stop_s": stop_s, "early": False}
            if "udp" in flow:
                made.update(udp=flow["udp"], arrival=flow.get("arrival", "cbr"),
                            udp_bytes=flow.get("packet", 1200),
                            seed=len(found) + 1)
            elif "bytes" in flow:
                made["words"] = f"bytes={round(flow['bytes'])}"
            if "cc" in flow:
                made["cc"] = flow["cc"]
            found.append(made)
    if len(found) > MOST_FLOWS:
        raise file.error(("flows",), f"flows are {len(found)}: give "
                         f"{MOST_FLOWS} at most")
    return tuple(found)


def _settings(file, warmup_s, cc, queue, base=()):
    """Parameters of --set that are not the usual ones.

    base: what the file gives to all variants, for the settings of one of them."""
    # Hosts as they are: packets of Ethernet, and links that hold nothing up.
    usual = {"packet_bytes": 1514, "edge_mbit": 0.0, "initcwnd": 10,
             "warmup_s": warmup_s, "limit": 1000, "buffer": 1000, **SHIPPED, **dict(base)}
    experiment = Experiment("", "", "", "", 1.0)
    given = file.given.get("settings", {})
    if not isinstance(given, dict):
        raise file.error(("settings",), f"settings is {given!r:.40}: give a "
                         "dict {parameter of --set: value}")
    for name, value in given.items():
        place = ("settings", name)
        if name not in COMMON or name in ("warmup_s", "rate_mbit"):
            near = difflib.get_close_matches(str(name), COMMON, 1)
            raise file.error(place, f"settings has no {name!r}: "
                             + (f"did you mean {near[0]}? " if near else "")
                             + "give parameters of --set, see tollway(1); the "
                             "warm-up is the field warmup, rates are in links")
        try:
            usual |= parse_words(experiment, [f"{name}={value}"])
        except TollwayError as error:
            sentence = str(error).removeprefix(f"--set {name}={value}: ")
            raise file.error(place, f"settings['{name}'] is {value!r}: "
                             f"{sentence}") from None
    try:
        # What one of them allows another to be.
        parse(replace(experiment, defaults=usual), [], cc, queue)
    except TollwayError as error:
        raise file.error(("settings",), f"settings: {error}") from None
    return usual


# --- what is measured ------------------------------------------------------

def _measured(file, links, flows):
    """(metrics, bounds) of the experiment."""
    roles = tuple(dict.fromkeys(flow["role"] for flow in flows
                                if "udp" not in flow))
    found = {}

    def add(place, name, subject):
        file.read(place, name, _one_of(METRICS, "the name of a metric, "))
        kind, title, digits, about = METRICS[name]
        allowed = tuple(links) if about == "link" else roles
        if not allowed:
            raise file.error(place, f"{name} needs TCP flows, and there are "
                             "none")
        file.read(place, subject, _one_of(
            allowed, f"{name} is about " + ("links, " if about == "link" else
                                            "the names of TCP flows, ")))
        key = f"{name} {subject}"
        found[key] = metric(key, kind, title.format(subject), digits, **{
            "link" if about == "link" else "role": subject})
        return key

    for index, entry in enumerate(file.rows("metrics", least=1)):
        place = ("metrics", index)
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise file.error(place, f"{_spoken(place)} is {entry!r:.40}: give "
                             "(name, link or flows)")
        add(place, *entry)
    bounds = []
    for index, entry in enumerate(file.rows("bounds")):
        place = ("bounds", index)
        if not isinstance(entry, (list, tuple)) or len(entry) != 4:
            raise file.error(place, f"{_spoken(place)} is {entry!r:.40}: give "
                             "(name, link or flows, '<=' or '>=', number)")
        name, subject, operator, value = entry
        key = add(place, name, subject)
        file.read(place, operator, _one_of(("<=", ">=")))
        if isinstance(value, bool) or not isinstance(value, (int, float)) \
                or value != value:
            raise file.error(place, f"{_spoken(place)} is against {value!r}: "
                             "give a number")
        bounds.append(case_bound(f"{name} of {subject}", WHOLE_RUN, key,
                                 operator, value))
    return tuple(found.values()), tuple(bounds)


def _variants(file, base):
    """base: the settings that all variants have."""
    found = []
    given = file.given.get("variants", {})
    if not given:
        return ()
    for name, entry in file.named("variants").items():
        variant = file.table(("variants", name), entry, {},
                             {"cc": _text, "queue": _text,
                              "settings": lambda value: value})
        settings = variant.get("settings", {})
        inner = _Part(file, ("variants", name), settings)
        cc, queue = (variant.get(field, file.given.get(field, usual))
                     for field, usual in (("cc", "cubic"),
                                          ("queue", "fq_codel")))
        _settings(inner, 0.0, cc, queue, base)
        found.append(Variant(name, cc, queue, dict(settings), name,
                             model="ours"))
    return tuple(found)


class _Part:
    """The settings of a variant, as if they were those of a file."""

    def __init__(self, file, place, settings):
        self.file, self.place = file, place
        self.given = {"settings": settings}

    def error(self, place, sentence):
        return self.file.error((*self.place, *place),
                               f"{_spoken(self.place)}: {sentence}")
