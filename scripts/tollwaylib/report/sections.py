# SPDX-License-Identifier: GPL-2.0
"""Sections of a page: what is compared, and one section for the runs of each
setting, as the templates take them."""

from ..experiments.description import WHOLE_RUN
from ..results.fields import case_of, cases_with
from . import about, charts, figures, overview, tables
from .figures import CAPTIONS, PICTURES, has_classes
from .plotting import inline
from .rendering import Table, link, slug, trusted
from .side_by_side import side_by_side

# Pictures of a case with classes: function, caption, and whether it has what is
# shown, by the raw result and the case.
OF_SHARES = {
    "acknowledgements": (
        figures.acknowledgements,
        "Acknowledged segments of two flows of four paths, modulo 2000: equal "
        "slopes are equal rates", lambda raw, case: True),
    "price_tracking": (
        figures.price_tracking,
        "The price of the longest path, and the estimate of a source",
        lambda raw, case: all("price_q32" in queue
                              for queue in case["queues"].values())),
    # Between pages a user has no window.
    "window_histograms": (
        charts.window_histograms,
        "Distribution of the congestion windows of the flows of each path",
        lambda raw, case: raw["parameters"].get("model") != "http"),
    "queue_histograms": (
        charts.queue_histograms,
        "Distribution of the number of packets in each queue",
        lambda raw, case: True)}


def with_file_names(groups):
    """[(group, a name for its files and its section that no other has)]."""
    taken, found = set(), []
    for group in groups:
        parameters = group.outcome["parameters"]
        name = base = slug("-".join(
            str(part) for part in (group.outcome["experiment"],
                                   parameters.get("cc", ""),
                                   parameters.get("aqm", ""))))
        while name in taken:
            name = f"{base}-{len(taken) + 1}"
        taken.add(name)
        found.append((group, name))
    return found


def _figure(paths, caption, directory):
    """What the template shows of [SVG path, PNG path]."""
    return {"svg": trusted(inline(paths[0])), "caption": f"{caption}.",
            "files": [(path.suffix[1:].upper(), link(path, directory))
                      for path in paths]}


# --- runs beside one another ---------------------------------------------

def comparison(groups, directory, look):
    """{figures, reasons, tables} of what is compared; None if nothing is."""
    outcomes = [group.outcome for group in groups]
    name = outcomes[0]["experiment"]
    drawn, base = [], directory / "figures" / slug(name)
    kinds = [kind for kind, _ in groups[0].raw["pictures"]
             if kind in charts.OF_VARIANTS]
    if kinds:
        outcomes.sort(key=lambda outcome: int(outcome["parameters"]["simulations"]))
        for kind in kinds:
            draw, caption = charts.OF_VARIANTS[kind]
            drawn.append(_figure(draw(outcomes, base, look), caption, directory))
        shown = [tables.variants_table(outcomes)]
    else:
        shown = _tables(outcomes)
        if len(outcomes) < 2 or not shown:
            return None if not shown else {
                "figures": [], "reasons": [], "tables": shown}
        drawn += _drawn(groups, outcomes, base, directory, look)
    return {"figures": drawn, "reasons": about.measure_notes(groups),
            "tables": shown}


def _tables(outcomes):
    baselines = [outcome for outcome in outcomes if "variant" in outcome["parameters"]]
    if baselines:
        return tables.variants_tables(baselines)
    if len(outcomes) < 2:
        return []
    if outcomes[0]["columns"]:
        return tables.case_variants_tables(outcomes)
    return [tables.comparison_table(outcomes, name)
            for name in cases_with(outcomes, "links")
            if _same_links([case_of(outcome, name) for outcome in outcomes])]


def _same_links(cases):
    def shape(case):
        return (list(case["links"]),
                sorted({group["path"] for group in case["classes"]}))

    return all(shape(case) == shape(cases[0]) for case in cases)


def _drawn(groups, outcomes, base, directory, look):
    names = cases_with(outcomes, "links")
    for name in names:
        case = f"-{slug(name)}" if len(names) > 1 else ""
        paths = side_by_side(
            groups, name, base.with_name(f"{base.name}-side-by-side{case}"), look)
        if paths:
            yield _figure(paths, "Runs side by side: the rate of each flow "
                                 "(acknowledged bytes, without headers and "
                                 "retransmissions), and the queueing delay of each "
                                 "link. The numbers are without the warm-up",
                          directory)
    paths = overview.compared(
        outcomes, base.with_name(f"{base.name}-compared"), look)
    if paths:
        yield _figure(paths, _of_bars(names), directory)
    for kind, what in groups[0].raw["pictures"]:
        if kind in charts.OF_METRICS:
            paths = charts.OF_METRICS[kind](
                outcomes, what,
                base.with_name(f"{base.name}-{slug(_keys(what))}"), look)
            if paths:
                yield _figure(paths, f"{_in_words(what, outcomes[0])} of each "
                                     "congestion control and queue", directory)


def _of_bars(names):
    """The caption of overview.compared(). names: of the cases with links."""
    if not names:
        return "The runs compared"
    return ("The runs compared, without the warm-up. Milliseconds of full packets are "
            "the time in which the link sends the mean backlog, if all packets have "
            "the full size. Drops are those of all packets, ACKs included")


def _keys(what):
    """The metrics of a picture: it names one or has panels."""
    return what if isinstance(what, str) else ", ".join(
        panel["key"] for panel in what)


def _in_words(what, outcome):
    """The heads of these metrics without their units, as in tables."""
    titles = {column["key"]: column["title"] for column in outcome["columns"]}
    words = about.listed(titles[key] for key in _keys(what).split(", "))
    return words[0].upper() + words[1:]


# --- one setting ---------------------------------------------------------

def section(group, heading, name, directory, look):
    """What the template shows of the runs of one setting."""
    outcome = group.outcome
    judged = [table for table in (tables.bounds_table(outcome),
                                  tables.published_table(outcome)) if table]
    shown, others = about.parameters(outcome)
    heads = ["parameter", "value", "meaning"]
    return {
        "heading": heading, "anchor": name,
        "seeds": [result["seed"] for result in group.results],
        "judged": judged,
        "figures": list(_figures(group, directory, name, look)),
        "tables": [table for table in tables.result_tables(outcome)
                   if table not in judged],
        "parameters": Table("Parameters that matter to this run", heads, shown,
                            left=3),
        "others": Table("Parameters that have no effect on this run, or that "
                        "have their usual value", heads, others, left=3),
        "calibration": _calibration(group.raw),
        "provenance": _provenance(group),
        "files": [(str(folder.relative_to(directory)) or ".",
                   [(path.name, link(path, directory))
                    for path in sorted(folder.iterdir())
                    if path.is_file() and not path.name.startswith(".")
                    and path.suffix != ".html"])
                  for place in group.places
                  for folder in (place, *sorted(place.glob("cases/*")))]}


def _figures(group, directory, name, look):
    base = directory / "figures" / name
    for paths, caption in _drawn_of(group, base, look):
        yield _figure(paths, caption, directory)
    paths = overview.published(group.outcome,
                               base.with_name(f"{name}-published"), look)
    if paths:
        yield _figure(paths, "Published values (diamonds) and what was "
                             "measured. Values for another setup are drawn, "
                             "too, but not judged", directory)


def _drawn_of(group, base, look):
    """[(paths, caption)] of the figures of a setting."""
    yield from _case_pictures(group, base, look)
    for name in cases_with([group.outcome], "classes"):
        yield from _shares_pictures(group, name, base, look)


def _shares_pictures(group, name, base, look):
    """The same of a case with classes, whose flows have shares."""
    raw, alone = group.raw, len(group.raw["cases"]) == 1
    measured, case = case_of(group.outcome, name), case_of(raw, name)
    seed = f"Seed {raw['seed']}" if alone else f"Case {name}, seed {raw['seed']}"

    def out(kind):
        return base.with_name(f"{base.name}-{kind}"
                              + ("" if alone else f"-{slug(name)}"))

    # Flows that came and went have no one rate to stand beside a share, nor
    # have users of pages.
    if "intervals" not in measured and "pages" not in measured:
        yield (charts.rate_allocation(group.results, name, out("rates"), look),
               "Rate of each flow, grouped by path. The lines are the weighted "
               "proportionally fair shares")
    yield (overview.over_time(raw, name, out("time"), look, measured),
           "Throughput of each path (acknowledged bytes, without headers and "
           "retransmissions), and queueing delay of each link (mean, and range "
           f"in a lighter colour). {seed}")
    if "pages" not in measured:
        ids = tuple(flow["id"] for flow in case["flows"])
        chosen = tuple(number for number in (1, 5, 9) if number in ids) \
            or ids[:3]
        yield (figures.windows(raw, name, out("windows"), look, chosen),
               f"Congestion windows of {about.counted(len(chosen), 'flow')}. "
               f"{seed}")
    yield (figures.queues(raw, name, out("queues"), look),
           f"Packets in the queue of each link. {seed}")
    for kind, what in raw["pictures"]:
        draw, caption, has_it = OF_SHARES.get(kind, (None, None, None))
        if draw and what == name and has_it(raw, case):
            yield draw(raw, name, out(slug(kind)), look), f"{caption}. {seed}"


def _case_pictures(group, base, look):
    raw, timed = group.raw, set()
    for kind, what in raw["pictures"]:
        of_metrics = kind in charts.OF_METRICS
        part = slug(f"{kind}-{_keys(what) if of_metrics else what}")
        out = base.with_name(f"{base.name}-{part}")
        if of_metrics:
            paths = charts.OF_METRICS[kind]([group.outcome], what, out, look)
            if paths:
                yield paths, f"{_in_words(what, group.outcome)} of each case"
            continue
        if kind not in PICTURES or all(case["name"] != what
                                       for case in raw["cases"]):
            continue
        where = f"Seed {raw['seed']}" if what == WHOLE_RUN else \
            f"Case {what}, seed {raw['seed']}"
        if what not in timed:
            timed.add(what)
            yield (overview.over_time(
                raw, what, base.with_name(f"{base.name}-time-{slug(what)}"),
                look),
                   "Throughput of sources (acknowledged bytes, without headers "
                   "and retransmissions; of UDP, received bytes), and queueing "
                   "delay of each link (mean, and range in a lighter colour). "
                   f"{where}")
        if kind != "class_queues" or has_classes(raw, what):
            yield (PICTURES[kind](raw, what, out, look),
                   f"{CAPTIONS[kind]}. {where}")


# --- facts about the runs ------------------------------------------------

def _calibration(raw):
    """What each link did with a known load before the run."""
    outcomes = raw["calibration"]
    keys = list(dict.fromkeys(key for outcome in outcomes.values()
                              for key in outcome if key != "ok"))
    rows = [[name, "holds" if outcome["ok"] else "fails",
             *(_short(outcome.get(key, "-")) for key in keys)]
            for name, outcome in outcomes.items()]
    return Table(f"Calibration, seed {raw['seed']}",
                 ["link", "verdict", *keys], rows, left=2)


def _short(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def _provenance(group):
    lines = list(_outline(group.outcome["provenance"]))
    lines.append("trace digests (sha256):")
    lines += [f"  seed {result['seed']}: {result['digest']}"
              for result in group.results]
    return "\n".join(lines)


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
