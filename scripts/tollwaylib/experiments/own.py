# SPDX-License-Identifier: GPL-2.0
"""A user's own experiment: a Python file of assignments.

The file is run, and what it assigns is checked: links, paths, flows and more,
see FIELDS. Names that begin with an underscore are its own. Each error is one
sentence with the file, the line and what is allowed, see own_file.py.
"""

import difflib
import re
import shlex
from collections import Counter
from dataclasses import replace

from ..components import aqm_words
from ..errors import TollwayError
from .description import (OF_FILE, WHOLE_RUN, Case, Experiment, Variant, case_bound, metric,
                          panel, program)
from .network_parts import of_links
from .own_file import (NAME, SourceFile, as_dict, as_label, as_length, as_name,
                       as_number, as_rate, as_shown, as_size, as_spelled, as_text,
                       as_time, as_whole, one_of, shown, spoken)
from .own_words import as_control, as_program, as_queue, refusals
from .own_network import echo_ms, links_of, paths_of, rates_of, schedule_of
from .own_published import published_of
from .parameters import COMMON, SHIPPED, parse, parse_words

MOST_FLOWS = 10000
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
FIELDS = ("title", "links", "paths", "flows", "cases", "x_title", "programs",
          "duration", "warmup", "cc", "queue", "metrics", "bounds", "published",
          "figures", "variants", "settings")
# Figures of a case over time, see report/figures.py, and that of a metric against
# the x of the cases.
FIGURES = {"rates": "throughput", "queue": "queue", "sequence": "sequence",
           "utilization": "utilization"}
CURVE = "curve"
# Parameters of --set that are fields here, or that need a paper.
_NO_SETTINGS = ("warmup_s", "rate_mbit", "setup")
# In the command of a program.
ADDRESS = re.compile(r"\{address:([^}]*)\}")
# The same with a name that may be misspelled.
_NAMED = re.compile(r"\{(\w+):[^}]*\}")
# Of the curves that are drawn if the file names no figure.
MOST_CURVES = 4


def load(path):
    """The Experiment in a file. Raises TollwayError for what is wrong in it."""
    file = SourceFile(path, FIELDS)
    name = file.path.stem
    if not NAME.fullmatch(name):
        raise TollwayError(f"{path}: the name of an experiment has at most 40 "
                           "letters, digits and ._-: rename the file")
    title = file.read(("title",), file.given.get("title", name), as_shown)
    duration_s, warmup_s = (
        file.read((field,), file.given.get(field, usual), reader)
        for field, usual, reader in (("duration", "30s", as_length),
                                     ("warmup", "0s", as_time)))
    if warmup_s >= duration_s:
        raise file.error(("warmup",), f"warmup is {warmup_s:g}s: give less "
                         f"than the duration of {duration_s:g}s")
    links = links_of(file, duration_s)
    paths = paths_of(file, links)
    cc, queue = (file.read((field,), file.given.get(field, usual), reader)
                 for field, usual, reader in (("cc", "cubic", as_control),
                                              ("queue", "fq_codel", as_queue)))
    cases = _cases(file, links, duration_s) if file.has("cases") else [
        _case(WHOLE_RUN, links, paths, _flows(file, paths, duration_s))]
    defaults = {"rtt_tolerance_ms": max(echo_ms(case["links"], case["paths"])
                                        for case in cases),
                **_settings(file, warmup_s, cc, queue)}
    names = tuple(case["name"] for case in cases)
    metrics, bounds = _measured(file, links, cases, names)
    published = published_of(file, names, links, metrics, cc, queue)
    programs = _programs(file, links, paths)
    variants = _variants(file, defaults)

    # The links whose delays are not the same in all cases.
    delays = {what: {name for case in cases for name, one in case[what].items()
                     if any(one[key] != other[name][key] for other in (
                         {"links": links, "paths": paths}[what],
                         *(case[what] for case in cases)))}
              for what, key in (("links", "delay_ms"), ("paths", "edge_ms"))}

    def shape(links, paths, values):
        return {"links": [{**link, "delays": name in delays["links"],
                           "queue": link["queue"] and
                           aqm_words(link["queue"], values)}
                          for name, link in links.items()],
                "paths": [{**path, "delays": name in delays["paths"]}
                          for name, path in paths.items()]}

    return Experiment(
        name=name, title=title, reproduces=f"{OF_FILE}{path}",
        topology=of_links, duration_s=duration_s, defaults=defaults,
        variants=variants, cc=cc, aqm=queue, about=file.about,
        refusals=refusals(file, _words_of(file)),
        cases=lambda values: [Case(
            case["name"], tuple(dict(flow) for flow in case["flows"]),
            duration_s, x=case["x"], series=case["series"], programs=programs,
            rates=rates_of(case["links"]),
            shape=shape(case["links"], case["paths"], values))
            for case in cases],
        shape=lambda values: shape(links, paths, values), metrics=metrics,
        x_title=file.read(("x_title",), file.given["x_title"], as_shown)
        if "x_title" in file.given else None,
        bounds=((frozenset(), bounds),),
        sysctls={"net.ipv4.tcp_timestamps": 1},
        others=tuple(sorted({flow["cc"] for case in cases
                             for flow in case["flows"] if flow.get("cc")})),
        queues=lambda values: [aqm_words(link["queue"], values)
                               for link in links.values() if link["queue"]],
        published=published, pictures=_pictures(file, cases, names, metrics))


def _words_of(file):
    """[(place, word)] of all congestion controls and queues in a file that was read."""
    found = [((field,), file.given[field]) for field in ("cc", "queue")
             if field in file.given]
    for field in ("links", "flows", "variants"):
        entries = file.given.get(field, {})
        found += [((field, key, name), entry[name]) for key, entry in (
            entries.items() if isinstance(entries, dict) else enumerate(entries))
            for name in ("cc", "queue") if name in entry]
    return found


# --- what is sent ----------------------------------------------------------

def _flows(file, paths, duration_s, counts=(), case=()):
    """counts: {name: number} of those that a case has in another number; case: its
    place."""
    found, counts = [], dict(counts)
    for index, entry in enumerate(file.rows("flows", least=1)):
        place = ("flows", index)
        flow = file.table(
            place, entry, {"path": one_of(tuple(paths), "the name of a path, ")},
            {"name": as_name, "count": as_whole(1, MOST_FLOWS), "start": as_time,
             "stop": as_time, "cc": as_control, "bytes": as_size, "udp": as_rate,
             "packet": as_whole(64, 1514),
             "arrival": one_of(("cbr", "poisson"))})
        wrong = {"bytes", "cc"} & set(flow) if "udp" in flow else \
            {"packet", "arrival"} & set(flow)
        if wrong:
            kind = "a UDP flow (udp)" if "udp" in flow else "a TCP flow"
            raise file.error((*place, min(wrong)), f"{spoken(place)} has "
                             f"{min(wrong)!r}: {kind} has no such field")
        start_s, stop_s = flow.get("start", 0.0), flow.get("stop", duration_s)
        if not start_s < stop_s <= duration_s:
            raise file.error(
                (*place, "stop" if "stop" in flow else "start"),
                f"{spoken(place)} runs from {start_s:g}s to {stop_s:g}s: give "
                f"a start before the stop, and a stop within the duration of "
                f"{duration_s:g}s")
        name = flow.get("name", flow["path"])
        several = "count" in flow or name in counts
        for number in range(counts.get(name, flow.get("count", 1))):
            made = {"name": f"{name} {number + 1}" if several else name,
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
        raise file.error((*case, "flows"), f"{spoken((*case, 'flows'))} are "
                         f"{len(found)}: give {MOST_FLOWS} at most")
    return tuple(found)


# --- the cases -------------------------------------------------------------

def _case(name, links, paths, flows, x=None, series=None):
    return {"name": name, "links": links, "paths": paths, "flows": flows, "x": x,
            "series": series}


def _cases(file, links, duration_s):
    """What the file says of its cases: each is the whole experiment, but for what
    the case changes."""
    found = []
    for name, entry in file.named("cases").items():
        place = ("cases", name)
        if name == WHOLE_RUN:
            raise file.error(place, f"cases has {name!r}, which is the name of a run "
                             "without cases: give it another name")
        case = file.table(place, entry, {}, {
            "links": as_dict("{name of a link: {...}}"),
            "flows": as_dict("{name of flows: their number}"),
            "x": as_number, "series": as_label})
        changed = dict(links)
        for link, part in case.get("links", {}).items():
            inner = (*place, "links", link)
            file.read(inner, link, one_of(tuple(links), "the name of a link, "))
            part = file.table(inner, part, {}, {
                "rate": as_rate, "delay": as_time, "schedule": lambda value: value})
            if "rate" in part and links[link]["schedule"] and "schedule" not in part:
                raise file.error(inner, f"{spoken(inner)} has another rate, and the "
                                 "link has a schedule: give the case a schedule, "
                                 "too, [] for none")
            changed[link] = {**links[link], **(
                {"rate_bps": round(part["rate"])} if "rate" in part else {}), **(
                {"delay_ms": round(1e3 * part["delay"], 6)}
                if "delay" in part else {}), **(
                {"schedule": schedule_of(file, inner, part["schedule"], duration_s)}
                if "schedule" in part else {})}
        paths = paths_of(file, changed, place)
        flows = _flows(file, paths, duration_s,
                       _counts(file, place, case.get("flows", {})), place)
        if not flows:
            raise file.error((*place, "flows"), f"{spoken(place)} has no flow: "
                             "give a number above 0 to one of them")
        found.append(_case(name, changed, paths, flows, case.get("x"),
                           case.get("series")))
    return found


def _counts(file, place, given):
    """{name of flows: number} of a case."""
    # What is wrong in the flows themselves is reported where they are read.
    names = (flow.get("name", flow.get("path")) for flow in
             file.rows("flows", least=1) if isinstance(flow, dict))
    known = Counter(name for name in names if isinstance(name, str))
    for name, count in given.items() if known else ():
        inner = (*place, "flows", name)
        file.read(inner, name, one_of(tuple(known), "the name of flows, "))
        if known[name] > 1:
            raise file.error(inner, f"{spoken(inner)}: {known[name]} entries of "
                             "flows have this name: give each a name of its own")
        file.read(inner, count, as_whole(0, MOST_FLOWS))
    return given


def _as_file(name):
    """A name of a file of a program, beside its log."""
    if as_name(name) == "log":
        raise ValueError("the file log has the output of the program: give "
                         "another name")
    return name


def _programs(file, links, paths):
    """What runs in nodes during each case, see description.program()."""
    hosts = tuple(f"{end} of {path}" for path in paths
                  for end in ("source", "sink"))
    nodes = (*dict.fromkeys(link[end] for link in links.values()
                            for end in ("from", "to")), *hosts)
    found = []
    for index, entry in enumerate(file.rows("programs")):
        place = ("programs", index)
        one = file.table(
            place, entry, {"node": one_of(nodes, "the name of a node, "),
                           "command": as_text},
            {"name": as_name, "files": as_dict("{name of a file: text}"),
             "keep": lambda value: value})
        try:
            # What has spaces within braces is one word.
            words = [word.replace("\0", " ") for word in shlex.split(ADDRESS.sub(
                lambda found: found[0].replace(" ", "\0"), one["command"]))]
        except ValueError as error:
            raise file.error((*place, "command"), f"{spoken(place)}['command'] "
                             f"is {shown(one['command'])}: {error}") from None
        if not words or not words[0]:
            raise file.error((*place, "command"), f"{spoken(place)}['command'] "
                             "is blank: give a program and its arguments")
        file.read((*place, "command"), words[0], as_program)
        for name in _NAMED.findall(one["command"]):
            # Others are of the program, as those of awk.
            if name != "address" and difflib.get_close_matches(name, ["address"]):
                raise file.error((*place, "command"), f"{spoken(place)}['command'] has "
                                 f"{{{name}:...}}: did you mean {{address:...}}?")
        for host in ADDRESS.findall(one["command"]):
            file.read((*place, "command"), host, one_of(
                hosts, "{address:X} with a host as X, "))
        for name, content in one.get("files", {}).items():
            inner = (*place, "files", name)
            file.read(inner, name, _as_file)
            if not isinstance(content, str):
                raise file.error(inner, f"{spoken(inner)} is {shown(content)}: "
                                 "give the text of the file")
        keep = one.get("keep", [])
        if not isinstance(keep, (list, tuple)):
            raise file.error((*place, "keep"), f"{spoken(place)}['keep'] is "
                             f"{shown(keep)}: give a list of names of files")
        for number, name in enumerate(keep):
            file.read((*place, "keep", number), name, _as_file)
        called = one.get("name", f"{index + 1}-{words[0].rpartition('/')[2]}")
        if any(called == other["name"] for other in found):
            raise file.error((*place, "name"), f"{spoken(place)}['name'] is "
                             f"{called!r}: another program has this name")
        found.append(program(called, one["node"], *words,
                             files=one.get("files"), keep=keep))
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
        raise file.error(("settings",), f"settings is {shown(given)}: give a "
                         "dict {parameter of --set: value}")
    for name, value in given.items():
        place = ("settings", name)
        known = [one for one in COMMON if one not in _NO_SETTINGS]
        if name not in known:
            near = [] if name in _NO_SETTINGS else \
                difflib.get_close_matches(str(name), known, 1)
            raise file.error(place, f"settings has no {name!r}: "
                             + (f"did you mean {near[0]}? " if near else "")
                             + "give parameters of --set, see tollway(1); the "
                             "warm-up is the field warmup, rates are in links, "
                             "and a setup is of a paper")
        try:
            usual |= parse_words(experiment, [f"{name}={value}"])
        except ValueError:
            raise file.error(place, f"settings['{name}'] is {shown(value)}: give "
                             "a value of --set") from None
        except TollwayError as error:
            sentence = str(error).removeprefix(f"--set {name}={value}: ")
            raise file.error(place, f"settings['{name}'] is {shown(value)}: "
                             f"{sentence}") from None
    try:
        # What one of them allows another to be.
        parse(replace(experiment, defaults=usual), [], cc, queue)
    except TollwayError as error:
        raise file.error(("settings",), f"settings: {error}") from None
    return usual


# --- what is measured ------------------------------------------------------

def _measured(file, links, cases, names):
    """(metrics, bounds) of the experiment."""
    roles = tuple(dict.fromkeys(flow["role"] for case in cases
                                for flow in case["flows"] if "udp" not in flow))
    found = {}

    def add(place, name, subject):
        name = as_spelled(name)
        file.read(place, name, one_of(tuple(METRICS), "the name of a metric, "))
        kind, title, digits, about = METRICS[name]
        allowed = tuple(links) if about == "link" else roles
        if not allowed:
            raise file.error(place, f"{name} needs TCP flows, and there are "
                             "none")
        file.read(place, subject, one_of(allowed, "the name of " + (
            "a link" if about == "link" else "TCP flows") + f" for {name}, "))
        key = f"{name} {subject}"
        found[key] = metric(key, kind, title.format(subject), digits, **{
            "link" if about == "link" else "role": subject})
        return key

    for index, entry in enumerate(file.rows("metrics", least=1)):
        place = ("metrics", index)
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise file.error(place, f"{spoken(place)} is {shown(entry)}: give "
                             "(name, link or flows)")
        add(place, *entry)
    bounds = []
    for index, entry in enumerate(file.rows("bounds")):
        place = ("bounds", index)
        if not isinstance(entry, (list, tuple)) or len(entry) not in (4, 5):
            raise file.error(place, f"{spoken(place)} is {shown(entry)}: give "
                             "(name, link or flows, '<=' or '>=', number), and "
                             "the name of a case if it is for that case only")
        name, subject, operator, value, *case = entry
        key = add(place, name, subject)
        file.read(place, operator, one_of(("<=", ">=")))
        file.read(place, value, as_number)
        for one in case:
            file.read(place, one, one_of(names, "the name of a case, "))
        # Of a case without such flows there is nothing to be judged.
        name = as_spelled(name)
        bounds += [case_bound(f"{name} of {subject}", one["name"], key, operator,
                              value) for one in cases
                   if one["name"] in case or not case and (
                       METRICS[name][-1] == "link" or any(
                           flow["role"] == subject for flow in one["flows"]))]
    return tuple(found.values()), tuple(bounds)


def _pictures(file, cases, names, metrics):
    """What the report shows, see report/figures.py."""
    keys = tuple(one["key"] for one in metrics)
    if "figures" not in file.given:
        return ((FIGURES["rates"], names[0]), ("queue", names[0]), *(
            [("curves", [panel(key) for key in keys[:MOST_CURVES]])]
            if any(case["x"] is not None for case in cases) else []))
    found = []
    for index, entry in enumerate(file.rows("figures")):
        place = ("figures", index)
        if not isinstance(entry, (list, tuple)) or len(entry) not in (1, 2, 3) \
                or not all(isinstance(word, str) for word in entry) \
                or (len(entry) == 3) != (entry[0] == CURVE):
            raise file.error(place, f"{spoken(place)} is {shown(entry)}: give "
                             "(name of a figure, case), or "
                             f"({CURVE!r}, name of a metric, link or flows)")
        kind, *words = entry
        kind = as_spelled(kind)
        file.read(place, kind, one_of((*FIGURES, CURVE), "the name of a figure, "))
        if kind == CURVE:
            words[0] = as_spelled(words[0])
            file.read(place, " ".join(words), one_of(
                keys, "a metric of the experiment with its link or flows, "))
            if all(case["x"] is None for case in cases):
                raise file.error(place, f"{spoken(place)}: no case has an x, "
                                 "which a curve needs")
            found.append((CURVE, " ".join(words)))
            continue
        case = words[0] if words else names[0]
        file.read(place, case, one_of(names, "the name of a case, "))
        found.append((FIGURES[kind], case))
    return tuple(found)


def _variants(file, base):
    """base: the settings that all variants have."""
    found = []
    if not file.has("variants"):
        return ()
    for name, entry in file.named("variants").items():
        variant = file.table(("variants", name), entry, {},
                             {"cc": as_control, "queue": as_queue,
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
                               f"{spoken(self.place)}: {sentence}")
