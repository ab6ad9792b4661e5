# SPDX-License-Identifier: GPL-2.0
"""Tables of results, as plain text for a terminal and as HTML.

Every *_table function takes a result (results.analyse) or an aggregate over
seeds (results.aggregate) and returns a Table; render_text and render_html
show one.
"""

import dataclasses
import html

from .errors import TollwayError
from .results import mean_of

_NONE = "-"
# How data/published_cp05.json names the column that comparisons quote.
_MEAN_UTILISATION = "mean core link utilisation"


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


# --- cells ---------------------------------------------------------------

def _number(value, digits=1):
    """A number, or mean +- half the 95 % interval of an aggregated one."""
    if isinstance(value, dict):
        if value["mean"] is None:
            return _NONE
        text = f"{value['mean']:.{digits}f}"
        if value["ci95"] is not None:
            text += f" ± {value['ci95']:.{digits}f}"
        return text
    return _NONE if value is None else f"{value:.{digits}f}"


def _percent(value, digits=1):
    if isinstance(value, dict):
        value = {key: None if value[key] is None else 100 * value[key]
                 for key in ("mean", "ci95")}
        return _number(value, digits)
    return _NONE if value is None else f"{100 * value:.{digits}f}"


def _count(value):
    value = mean_of(value)
    return _NONE if value is None else f"{value:.1f}".removesuffix(".0")


def _drops(links, key="drops"):
    return _count(sum(mean_of(link[key]) for link in links.values()))


def _signed_percent(value):
    return f"{100 * value:+.2f}"


def _error(group):
    half = group.get("error_ci95")
    text = _signed_percent(group["error"])
    return text if half is None else f"{text} ± {100 * half:.2f}"


def _wtp(group):
    return _NONE if group["wtp"] is None else f"{group['wtp']:g}"


def _seeds_note(result):
    seeds = result.get("seeds", ())
    if len(seeds) < 2:
        return []
    return [f"mean ± half the 95 % confidence interval over "
            f"{len(seeds)} seeds"]


def combination(result):
    """The congestion control and the AQM of a result, for a heading."""
    parameters = result["parameters"]
    return (f"{parameters.get('cc', _NONE)} + {parameters.get('aqm', _NONE)}")


# --- tables --------------------------------------------------------------

def classes_table(result):
    """Each class's rate beside its weighted proportionally fair share."""
    rows = []
    for group in result["classes"]:
        members = sum(flow["path"] == group["path"]
                      and flow["wtp"] == group["wtp"]
                      for flow in result["flows"])
        rows.append([group["path"], _wtp(group), str(members),
                     _number(group["rate_pps"]),
                     _number(group["expected_pps"]), _error(group),
                     _percent(group["spread"])])
    return Table(
        f"Rates by class: {combination(result)}",
        ["path", "wtp [pkts/s]", "flows", "rate [pkts/s]", "fair [pkts/s]",
         "error [%]", "spread [%]"], rows,
        notes=["fair: weighted proportionally fair share; spread: "
               "(max - min)/mean of the flows' rate/fair",
               *_seeds_note(result)])


def links_table(result):
    """Utilisation, backlog, marks and drops of each link with a queue."""
    rows = [[name, f"{link['capacity_bps'] / 1e6:g}",
             _percent(link["utilization"], 2),
             _number(link["queue_mean_pkts"]),
             _number(link["queue_p99_pkts"]),
             _count(link["marks"]), _count(link["drops"])]
            for name, link in result["links"].items()]
    return Table(
        f"Links: {combination(result)}",
        ["link", "rate [Mbit/s]", "utilisation [%]", "mean backlog [pkts]",
         "99th percentile [pkts]", "marks", "drops"], rows,
        notes=_seeds_note(result))


def published_table(result):
    """Published numbers beside ours; None if the paper has none for this."""
    if not result["published"]:
        return None
    rows = [[entry["name"], entry["verdict"], entry["paper"],
             _percent(entry["value"]), _percent(entry["measured"])]
            for entry in result["published"]]
    return Table("Beside the published values",
                 ["quantity", "verdict", "source", "published [%]",
                  "measured [%]"], rows, left=3)


def bounds_table(result):
    """The experiment's own bounds; None if it has none."""
    if not result["bounds"]:
        return None
    rows = [[bound["name"], bound["verdict"],
             "-" if bound["verdict"] == "needs seeds"
             else "never" if bound["measured"] is None
             else f"{bound['measured']:.4g}",
             f"{bound['op']} {bound['bound']:g}"]
            for bound in result["bounds"]]
    return Table("Bounds", ["quantity", "verdict", "measured", "bound"], rows,
                 left=2)


def costliest_path(result):
    """The path whose fair share per wtp is smallest: the most bottlenecks."""
    return min(result["classes"], key=lambda group:
               group["expected_pps"] / (group["wtp"] or 1.0))["path"]


def path_share(result, path):
    """A path's total rate over its weighted proportionally fair total."""
    measured = fair = 0.0
    for group in result["classes"]:
        if group["path"] == path:
            members = sum(flow["path"] == path and flow["wtp"] == group["wtp"]
                          for flow in result["flows"])
            measured += members * mean_of(group["rate_pps"])
            fair += members * group["expected_pps"]
    if not fair:
        raise TollwayError(f"the result has no class on path {path}")
    return measured / fair


def comparison_table(results):
    """Several pairs of congestion control and AQM of one experiment.

    results: results or aggregates with the same links. The share column shows
    how much of its fair rate the path with the most bottlenecks gets: far
    below 100 % for loss-based TCP (CP05 4.3.2, Figure 4.3.5).
    """
    if not results:
        raise TollwayError("there are no results to compare")
    links = list(results[0]["links"])
    path = costliest_path(results[0])
    if any(list(result["links"]) != links
           or result["experiment"] != results[0]["experiment"]
           or path not in {group["path"] for group in result["classes"]}
           for result in results):
        raise TollwayError("only results of one experiment on the same links "
                           "can stand in one table")
    rows = []
    for result in results:
        mean = sum(mean_of(link["utilization"])
                   for link in result["links"].values()) / len(links)
        published = [entry for entry in result["published"]
                     if entry["name"].endswith(_MEAN_UTILISATION)]
        rows.append(
            [combination(result)]
            + [_percent(result["links"][name]["utilization"])
               for name in links]
            + [_percent(mean),
               _percent(published[0]["value"]) if published else _NONE]
            + [_number(result["links"][name]["queue_mean_pkts"])
               for name in links]
            + [_drops(result["links"]),
               _signed_percent(max((group["error"] for group in
                                    result["classes"]), key=abs)),
               _percent(path_share(result, path))])
    return Table(
        "Congestion controls and AQMs compared",
        ["source + link",
         *(f"{name} [%]" for name in links), "mean [%]", "published [%]",
         *(f"backlog {name} [pkts]" for name in links), "drops",
         "worst class error [%]", f"path {path} of fair [%]"], rows,
        notes=[f"{', '.join(links)}: utilisation; published: mean "
               f"utilisation of the paper; path {path} of fair: its total "
               f"rate over its weighted proportionally fair share"])


def intervals_table(result):
    """One row per interval of a schedule; None if there is no schedule."""
    if "intervals" not in result:
        return None
    links = list(result["links"])
    rows = []
    for step in result["intervals"]:
        worst = max(step["classes"], key=lambda group: abs(group["error"]))
        rows.append(
            [f"{step['start_s']:g}-{step['stop_s']:g}",
             f"{step['factor']:g}"]
            + [_percent(step["links"][name]["utilization_after_2s"])
               for name in links]
            + [_number(step["links"][name]["queue_mean_pkts"])
               for name in links]
            + [_drops(step["links"]), _drops(step["links"], "drops_after_2s"),
               _signed_percent(worst["error"]),
               "never" if step["max_convergence_s"] is None
               else f"{step['max_convergence_s']:.2f}"])
    return Table(
        f"Intervals: {combination(result)}",
        ["interval [s]", "load", *(f"{name} [%]" for name in links),
         *(f"backlog {name} [pkts]" for name in links), "drops",
         "drops after 2 s", "worst class error [%]", "converged [s]"], rows,
        notes=[f"{', '.join(links)}: utilisation from 2 s after the change "
               f"or from the warm-up; converged: slowest class, until its "
               f"rate over 1 s is within 10 % of its share",
               *_seeds_note(result)])


def result_tables(result):
    """All tables of one result or aggregate, those that apply."""
    tables = [classes_table(result), links_table(result),
              published_table(result), bounds_table(result),
              intervals_table(result)]
    return [table for table in tables if table is not None]
