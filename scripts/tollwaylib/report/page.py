# SPDX-License-Identifier: GPL-2.0
"""One static page for a directory of results: verdicts, tables, figures.

The page needs nothing but itself (figures are inside it), and the same
results give the same page.
"""

import base64
import html
import pathlib
import re

from ..errors import TollwayError
from ..files import load_json, result_directories, write_text_atomic
from ..results import aggregate, analysis, schema
from ..results.verdicts import compare
from . import charts, figures, rendering, summary, tables
from .figures import CAPTIONS, PICTURES, has_classes

LIMITATIONS = (
    "Time is virtual in the lab: its clock jumps to the next event and "
    "computation takes no time, so no claim about CPU cost, CPU-bound speed "
    "or interrupt load follows from these numbers.",
    "Virtual time excludes SMP: one processor, no contention between "
    "processors, no multi-queue devices.",
    "The lab's clock has a granule of 256 ns, and reading it costs one.",
    "The lab's HZ is patched from 100 to 1000; every patch that a run carried "
    "is listed under its provenance, and TCP, qdiscs and timers carry none.",
    "Repeats with one seed are identical, bit for bit; only different seeds, "
    "which also shift start times, say anything about spread.",
    "Published values come from simulations with ns-2 (CP05) or REAL (PP94, "
    "MK94): agreement means agreement of the algorithms, with another TCP and "
    "another definition of start-up.",
    "Where pairs are sent, connections are made before their data is there, so "
    "that completion times have no handshake in them, and a link counts what "
    "IP counts.",
)

_CSS = """
:root { --ink: #1d2329; --soft: #5b6570; --line: #d7dce1; --head: #f4f6f8; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 68rem;
  color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; }
h2 { margin: 3rem 0 .75rem; padding-top: 1rem; font-size: 1.4rem;
  border-top: 2px solid var(--line); }
h3 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
.lead, .note, figcaption { color: var(--soft); }
.note, figcaption { font-size: .87rem; margin: .35rem 0 1rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; margin: 1.25rem 0 .25rem;
  font-variant-numeric: tabular-nums; font-size: .93rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { padding: .35rem .8rem; text-align: right; vertical-align: bottom;
  border-bottom: 1px solid var(--line); }
th { background: var(--head); font-weight: 600; }
.left { text-align: left; }
td.left { white-space: nowrap; }
td.good { color: #00634a; font-weight: 600; }
td.bad { color: #a33b00; font-weight: 600; }
.summary { padding: .8rem 1rem; border-left: 5px solid #00815f;
  background: #eef7f3; }
.summary.bad { border-color: #d55e00; background: #fdf3ec; }
figure { margin: 1.5rem 0; }
figure img { max-width: 100%; height: auto; display: block; }
pre { padding: .8rem 1rem; overflow-x: auto; background: var(--head);
  font: .85rem/1.45 "DejaVu Sans Mono", ui-monospace, monospace; }
summary { cursor: pointer; font-weight: 600; margin: 1rem 0; }
@media print { details > * { display: block; } body { max-width: none; } }
"""


class _Group:
    """The runs of one experiment and one set of parameters."""

    def __init__(self, raw):
        self.raw = raw
        self.results = []
        self.commands = []
        self.whole = None

    def finish(self):
        ordered = sorted(self.results, key=lambda result: result["seed"])
        self.results = ordered
        self.whole = (aggregate.aggregate(ordered) if len(ordered) > 1
                      else ordered[0])


def write_report(directory):
    """Write index.html and figures/ for the results below a directory.

    directory: holds result directories at any depth, each with raw.json and
    result.json. Results are made again from raw.json; result.json must be of
    the same run. Returns the path of index.html. Raises TollwayError when
    there are no results or one of them is incomplete.
    """
    return write(directory)[0]


def write(directory):
    """write_report(); also returns the results or aggregates that it shows."""
    directory = pathlib.Path(directory)
    groups = _collect(directory)
    try:
        (directory / "figures").mkdir(exist_ok=True)
    except OSError as error:
        raise TollwayError(f"cannot write {directory / 'figures'}: "
                           f"{error.strerror}") from error
    page = directory / "index.html"
    write_text_atomic(page, _page(groups, directory))
    return page, [group.whole for group in groups]


def _collect(directory):
    """The groups of results below directory, in the order of their paths."""
    if not directory.is_dir():
        raise TollwayError(f"{directory} is not a directory with results")
    groups = {}
    for place in result_directories(directory):
        raw, result = _load(place)
        parameters = sorted((key, repr(value)) for key, value in
                            result["parameters"].items() if key != "seed")
        group = groups.setdefault(
            (result["experiment"], tuple(parameters)), _Group(raw))
        group.results.append(result)
        group.commands.append(result["provenance"]["command"])
    if not groups:
        raise TollwayError(f"{directory} holds no results: "
                           f"no raw.json was found below it")
    for group in groups.values():
        group.finish()
    wholes = compare([group.whole for group in groups.values()])
    for group, whole in zip(groups.values(), wholes):
        group.whole = whole
    return list(groups.values())


def _load(place):
    """One run's raw content and its result, made again from it."""
    for name in ("raw.json", "result.json"):
        if not (place / name).is_file():
            raise TollwayError(f"the result in {place} is incomplete: "
                               f"it has no {name}")
    raw = schema.load_raw(place)
    stored = load_json(place / "result.json")
    try:
        schema.validate(stored)
        result = analysis.analyse(raw)
    except TollwayError as error:
        raise TollwayError(f"{place}: {error}") from error
    if stored["digest"] != result["digest"]:
        raise TollwayError(f"{place} mixes two runs: raw.json and result.json "
                           f"have different digests")
    return raw if raw["metrics"] else schema.whole_run(raw), result


# --- the page ------------------------------------------------------------

def _page(groups, directory):
    experiments = list(dict.fromkeys(group.whole["experiment"]
                                     for group in groups))
    title = f"Tollway: {', '.join(experiments)}"
    parts = [f"<h1>{html.escape(title)}</h1>", _lead(groups),
             _summary(groups), _comparisons(groups, experiments),
             _combinations(groups, directory),
             _case_curves(groups, experiments, directory)]
    names = set()
    for group in groups:
        parts.append(_section(group, directory, _name(group, names)))
    parts.append(_repeat(groups))
    parts.append(_limitations())
    body = _printable("\n".join(part for part in parts if part))
    return (f"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
            f"<meta charset=\"utf-8\">\n"
            f"<meta name=\"viewport\" content=\"width=device-width, "
            f"initial-scale=1\">\n<title>{html.escape(title)}</title>\n"
            f"<style>{_CSS}</style>\n</head>\n<body>\n{body}\n</body>\n"
            f"</html>\n")


# Colours of a terminal; then what HTML does not allow, and halves of characters,
# which are bytes of a file name that are not UTF-8.
_COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def _printable(text):
    """Text without colours, and with numbers for what cannot be shown."""
    return _FORBIDDEN.sub(
        lambda found: ascii(found[0])[1:-1].replace("udc", "x"),
        _COLOURS.sub("", text))


def _plural(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def _lead(groups):
    runs = sum(len(group.results) for group in groups)
    places = sorted({_place(result["provenance"]) for group in groups
                     for result in group.results})
    text = (f"{_plural(runs, 'run')} of {_plural(len(groups), 'setting')}, "
            f"{' and '.join(places)}.")
    return f"<p class=\"lead\">{html.escape(text)}</p>"


def _place(provenance):
    """Where a run was made, in words."""
    kernel = f"Linux {provenance['kernel']}"
    flavour = provenance.get("flavour", "plain")
    return {"lab": f"in the lab on {kernel}, in virtual time",
            "host": f"on this host's own {kernel}",
            "qemu": f"in qemu on {kernel}"}.get(
                provenance.get("place"), f"on {kernel}") + \
        ("" if flavour == "plain" else f" ({flavour} kernel)")


def _summary(groups):
    """How many verdicts hold, and each one that does not."""
    wholes = [group.whole for group in groups]
    lines = summary.missed(wholes)
    text = html.escape(summary.headline(wholes))
    if not lines:
        return f"<p class=\"summary\">{text}</p>"
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return (f"<div class=\"summary bad\">{text} These do not:"
            f"<ul>{items}</ul></div>")


def _comparisons(groups, experiments):
    """A table over groups, for each experiment that ran in several settings."""
    parts = []
    for experiment in experiments:
        if experiment == "price-laws":
            continue
        wholes = [group.whole for group in groups
                  if group.whole["experiment"] == experiment]
        rivals = [whole for whole in wholes
                  if "variant" in whole["parameters"]]
        if rivals:
            parts += map(rendering.render_html, tables.variants_tables(rivals))
            continue
        if len(wholes) > 1 and "cases" in wholes[0]:
            parts += map(rendering.render_html,
                         tables.case_variants_tables(wholes))
            continue
        if len(wholes) > 1 and _same_links(wholes):
            table = tables.comparison_table(wholes)
            parts.append(rendering.render_html(table))
    return "\n".join(parts)


def _combinations(groups, directory):
    """What price-laws compares, by the numbers of its simulations."""
    wholes = sorted((group.whole for group in groups
                     if group.whole["experiment"] == "price-laws"),
                    key=lambda whole: int(whole["parameters"]["simulations"]))
    if not wholes:
        return ""
    paths = charts.price_laws(wholes, directory / "figures" / "price-laws")
    return "\n".join((
        rendering.render_html(tables.variants_table(wholes)),
        _figure(paths, "Each combination; dotted lines are a whole fair share "
                       "and a full link")))


def _case_curves(groups, experiments, directory):
    """What variants of an experiment of cases are compared by."""
    parts = []
    for experiment in experiments:
        chosen = [group for group in groups
                  if group.whole["experiment"] == experiment
                  and "cases" in group.whole]
        if len(chosen) < 2:
            continue
        for kind, what in chosen[0].raw["pictures"]:
            if kind not in charts.OF_METRICS:
                continue
            paths = charts.OF_METRICS[kind](
                [group.whole for group in chosen], what,
                directory / "figures" / f"{experiment}-{_slug(_keys(what))}")
            if paths:
                parts.append(_figure(
                    paths, f"{_keys(what)} of each source and queue"))
    return "\n".join(parts)


def _keys(what):
    """The metrics of a picture, in words: it names one or has panels."""
    return what if isinstance(what, str) else ", ".join(
        panel["key"] for panel in what)


def _slug(text):
    """A part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def _same_links(wholes):
    def shape(whole):
        return (list(whole["links"]),
                sorted({group["path"] for group in whole["classes"]}))

    return all(shape(whole) == shape(wholes[0]) for whole in wholes)


def _name(group, taken):
    """A file name for a group's figures that no other group has."""
    parameters = group.whole["parameters"]
    base = _slug("-".join(
        str(part) for part in (group.whole["experiment"],
                               parameters.get("cc", ""),
                               parameters.get("aqm", ""))))
    name, count = base, 1
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    taken.add(name)
    return name


def _section(group, directory, name):
    whole = group.whole
    # What is None or empty does not apply.
    parameters = ", ".join(f"{key} {_short(value)}" for key, value in
                           whole["parameters"].items()
                           if value not in (None, ""))
    seeds = ", ".join(str(result["seed"]) for result in group.results)
    heading = f"{whole['experiment']}: {tables.combination(whole)}"
    parts = [
        f"<h2>{html.escape(heading)}</h2>",
        f"<p class=\"note\">Parameters: {html.escape(parameters)}. "
        f"Seed{'s' * (len(group.results) > 1)}: {html.escape(seeds)}.</p>",
        *map(rendering.render_html, tables.result_tables(whole)),
        *_figures(group, directory, name),
        rendering.render_html(_calibration(group.raw)),
        _provenance(group),
    ]
    return "\n".join(parts)


def _figures(group, directory, name):
    folder = directory / "figures"
    first = f"seed {group.raw['seed']}"
    if "cases" in group.whole:
        yield from _case_pictures(group, folder / name)
        return
    # Flows that came and went have no one rate to stand beside a share, nor
    # have users of pages.
    if "intervals" not in group.whole and "pages" not in group.whole:
        paths = charts.rate_allocation(group.results,
                                       folder / f"{name}-rates")
        yield _figure(paths, "Rate of every flow, grouped by path; lines are "
                             "the weighted proportionally fair shares")
    if "pages" not in group.whole:
        ids = tuple(flow["id"] for flow in group.raw["flows"])
        chosen = tuple(number for number in (1, 5, 9) if number in ids) \
            or ids[:3]
        paths = figures.windows(group.raw, folder / f"{name}-windows", chosen)
        yield _figure(paths, f"Congestion windows, {first}")
    paths = figures.queues(group.raw, folder / f"{name}-queues")
    yield _figure(paths, f"Backlog of the links' queues, {first}")
    for kind, draw, caption in _more_figures(group.raw):
        paths = draw(group.raw, folder / f"{name}-{kind}")
        yield _figure(paths, f"{caption}, {first}")


def _case_pictures(group, base):
    for kind, what in group.raw["pictures"]:
        of_metrics = kind in charts.OF_METRICS
        slug = _slug(f"{kind}-{_keys(what) if of_metrics else what}")
        out = base.with_name(f"{base.name}-{slug}")
        if of_metrics:
            paths = charts.OF_METRICS[kind]([group.whole], what, out)
            if paths:
                yield _figure(paths, f"{_keys(what)} of each case")
        elif any(case["name"] == what for case in group.raw["cases"]):
            if kind == "class_queues" and not has_classes(
                    group.raw, what):
                continue
            paths = PICTURES[kind](group.raw, what, out)
            yield _figure(paths, f"{CAPTIONS[kind]}: {what}, "
                                 f"seed {group.raw['seed']}")


def _more_figures(raw):
    """The figures that the paper has of this experiment alone."""
    if raw["experiment"] == "parking-lot":
        yield ("acks", figures.acknowledgements,
               "Acknowledged segments of two flows of four paths, modulo 2000")
        if all("price_q32" in queue for queue in raw["queues"].values()):
            yield ("price", figures.price_tracking,
                   "The price of the longest path and what a source sees of it")
    if raw["experiment"] == "single-bottleneck":
        # Between pages a user has no window.
        if raw["parameters"]["model"] == "greedy":
            yield ("window-histograms", charts.window_histograms,
                   "Congestion windows of all flows of a path")
        yield ("queue-histograms", charts.queue_histograms,
               "Backlogs of the queues")


def _figure(paths, caption):
    image = base64.b64encode(paths[0].read_bytes()).decode("ascii")
    links = " ".join(
        f"<a href=\"figures/{html.escape(path.name)}\">"
        f"{html.escape(path.suffix[1:].upper())}</a>" for path in paths)
    caption = html.escape(caption)
    return (f"<figure><img alt=\"{caption}\" "
            f"src=\"data:image/svg+xml;base64,{image}\">"
            f"<figcaption>{caption}. {links}</figcaption></figure>")


def _calibration(raw):
    """What each link did with a known load before the run."""
    calibration = raw["calibration"]
    keys = list(dict.fromkeys(key for outcome in calibration.values()
                              for key in outcome if key != "ok"))
    rows = [[name, "holds" if outcome["ok"] else "fails",
             *(_short(outcome.get(key, "-")) for key in keys)]
            for name, outcome in calibration.items()]
    return rendering.Table(f"Calibration, seed {raw['seed']}",
                           ["link", "verdict", *keys], rows, left=2)


def _short(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def _provenance(group):
    lines = list(_outline(group.whole["provenance"]))
    lines.append("trace digests (sha256):")
    lines += [f"  seed {result['seed']}: {result['digest']}"
              for result in group.results]
    return (f"<details><summary>Provenance</summary>"
            f"<pre>{html.escape(chr(10).join(lines))}</pre></details>")


def _outline(value, depth=0):
    """Lines that show nested objects and lists by indentation."""
    pad = "  " * depth
    entries = value.items() if isinstance(value, dict) else (
        (None, entry) for entry in value)
    for key, entry in entries:
        head = f"{pad}{key}:" if key is not None else pad.removesuffix(" ")
        if isinstance(entry, (dict, list)):
            yield head.rstrip()
            yield from _outline(entry, depth + 1)
        else:
            yield f"{head} {entry}" if head else str(entry)


def _repeat(groups):
    commands = list(dict.fromkeys(command for group in groups
                                  for command in group.commands))
    commands.append("tollway report DIR   # this page, from the same results")
    return (f"<h2>How to repeat this</h2>\n"
            f"<pre>{html.escape(chr(10).join(commands))}</pre>")


def _limitations():
    items = "\n".join(f"<li>{html.escape(line)}</li>" for line in LIMITATIONS)
    return f"<h2>Limitations</h2>\n<ul>\n{items}\n</ul>"
