# SPDX-License-Identifier: GPL-2.0
"""Tables of a report, from synthetic results."""

import re

import pytest
from report_bench import save

import synthetic
from tollwaylib.errors import TollwayError
from tollwaylib.report import rendering, summary, tables
from tollwaylib.report.page import write_report
from tollwaylib.results import aggregate
from tollwaylib.results.fields import case_of
from tollwaylib.results import verdicts

pytest_plugins = ["report_bench"]


def test_text_table_is_aligned():
    table = rendering.Table("Title", ["name", "x [pkts]"],
                            [["a", "1.0"], ["longer", "1000.0"]], notes=["why"])
    assert rendering.render_text(table) == (
        "Title\n\nname    x [pkts]\n------  --------\n"
        "a            1.0\nlonger    1000.0\n(why)\n")


def test_html_table_is_escaped():
    table = rendering.Table("<a & b>", ["<h>"], [["<script>"]], notes=["\"<n>"])
    text = rendering.render_html(table)
    for raw in ("<a &", "<h>", "<script>", "<n>"):
        assert raw not in text
    assert "&lt;script&gt;" in text and "&lt;a &amp; b&gt;" in text


def test_verdicts_are_coloured():
    table = rendering.Table("t", ["a", "b"], [["x", "fails"], ["y", "agrees"]],
                            left=2)
    text = rendering.render_html(table)
    assert '<td class="left bad">fails</td>' in text
    assert '<td class="left good">agrees</td>' in text


def cells(table, row):
    return dict(zip(table.heads, table.rows[row]))


def test_classes_table(analysed):
    table = tables.classes_table(analysed["reno-1"], case_of(analysed["reno-1"]))
    assert len(table.rows) == 3
    row = cells(table, 2)
    assert row["path"] == "III" and row["wtp [pkts/s]"] == "-"
    assert row["flows"] == "12" and row["fair [pkts/s]"] == "333.4"
    assert row["rate [pkts/s]"] == "111.1" and row["error [%]"] == "-66.67"


def test_aggregated_tables_show_the_interval(analysed):
    whole = aggregate.aggregate([analysed["sbrm-1"], analysed["sbrm-2"]])
    row = cells(tables.classes_table(whole, case_of(whole)), 0)
    assert re.fullmatch(r"\d+\.\d ± \d+\.\d", row["rate [pkts/s]"])
    assert re.fullmatch(r"[+-]\d\.\d\d ± \d+\.\d\d", row["error [%]"])
    links = tables.links_table(whole, case_of(whole))
    assert cells(links, 0)["utilisation [%]"] == "99.00 ± 0.00"
    assert any("2 seeds" in note for note in links.notes)


def test_links_published_and_bounds_tables(analysed):
    result = analysed["sbrm-1"]
    row = cells(tables.links_table(result, case_of(result)), 1)
    assert row["link"] == "core2" and row["rate [Mbit/s]"] == "96"
    assert row["utilisation [%]"] == "97.00" and row["drops"] == "2"
    assert row["marks"] == "17460"
    row = cells(tables.published_table(result), 1)
    assert row["published [%]"] == "92.0" and row["measured [%]"] == "97.0"
    assert row["verdict"] == "other setup"
    assert row["published in"] == "CP05 Table 5.4.1"
    assert tables.bounds_table(result).rows[0][1] == "holds"
    assert tables.published_table(analysed["dynamics-1"]) is None
    assert tables.bounds_table(analysed["reno-1"]) is None


def compared(with_pages=False):
    """Two variants, of which the first has bounds against the second."""
    raws = []
    for name, used in (("mine", 0.95), ("theirs", 0.9)):
        raw = synthetic.steady(utilization=(used, 0.9), cc=name)
        raw["parameters"]["variant"] = name
        if with_pages:
            for flow in raw["flows"]:
                flow["pages"] = {"start_s": [6.0, 8.0],
                                 "duration_s": [2 - used, None],
                                 "bytes": [30000, 1], "objects": [1, 1]}
                flow["samples"] = {}
        raws.append(raw)
    raws[0]["bounds"] = [
        {"name": "utilisation", "metric": "utilization",
         "of": {"link": "core1"}, "op": ">=", "baseline": "theirs"},
        {"name": "backlog", "metric": "queue_mean_pkts",
         "of": {"link": "core1"}, "op": ">=", "baseline": "nobody"}]
    if with_pages:
        raws[0]["bounds"].append({"name": "tail", "metric": "p99_s",
                                  "of": {"path": "all"}, "op": "<=", "baseline": "theirs"})
    return raws


def test_variants_are_shown_with_what_is_judged():
    wholes = verdicts.compare([synthetic.analyse(raw) for raw in compared()])
    baselines, bounds = tables.variants_tables(wholes)
    assert [row[:2] for row in baselines.rows] == [
        ["mine", "mine + sbrm"], ["theirs", "theirs + sbrm"]]
    assert baselines.rows[0][2:4] == ["95.0", "90.0"]
    assert not any("pages" in head for head in baselines.heads)
    assert [row[1:] for row in bounds.rows] == [
        ["utilisation", "holds", "95 %", ">= 90 % of theirs"],
        ["backlog", "needs runs", "24.49", ">= that of nobody"]]


def test_variants_of_users_are_shown(tmp_path):
    for raw in compared(with_pages=True):
        save(tmp_path / raw["parameters"]["variant"] / "seed-1", raw)
    page = write_report(tmp_path).read_text()
    assert "Variants compared" in page and "Congestion windows" not in page
    # Half of the pages were never there: no percentile beyond the median.
    assert "never" in page and "needs runs" in page
    assert page.count(">1.050<") >= 2
    wholes = verdicts.compare([synthetic.analyse(raw)
                               for raw in compared(with_pages=True)])
    baselines, bounds = tables.variants_tables(wholes)
    assert dict(zip(baselines.heads, baselines.rows[0]))["unfinished"] == "36"
    assert bounds.rows[-1][2:] == ["fails", "never", "<= never of theirs"]


def test_comparison_shows_the_unfairness_to_the_longest_path(analysed):
    table = tables.comparison_table([analysed["reno-1"], analysed["sbrm-1"]])
    reno, sbrm = cells(table, 0), cells(table, 1)
    assert reno["congestion control + queue"] == "reno + pfifo"
    assert reno["path III of fair [%]"] == "33.3"
    assert reno["published [%]"] == "92.0"
    assert reno["mean utilisation [%]"] == "90.5"
    assert reno["worst class error [%]"] == "-66.67"
    assert 98 < float(sbrm["path III of fair [%]"]) < 102
    with pytest.raises(TollwayError, match="one experiment"):
        tables.comparison_table([analysed["reno-1"], analysed["dynamics-1"]])
    with pytest.raises(TollwayError, match="no results"):
        tables.comparison_table([])


def test_intervals_table(analysed):
    result, other = analysed["dynamics-1"], analysed["sbrm-1"]
    table = tables.intervals_table(result, case_of(result))
    assert [row[:2] for row in table.rows] == [
        ["0-10", "1"], ["10-20", "2"], ["20-30", "1"]]
    row = cells(table, 1)
    assert row["core1 [%]"] == "99.0" and row["drops after 2 s"] == "4"
    assert 1.3 < float(row["converged [s]"]) < 1.5
    assert tables.intervals_table(other, case_of(other)) is None


@pytest.mark.parametrize("unit, value, measured, line", [
    (None, 1.0, 0.961, "differs (measured 0.961, published 1)"),
    ("ms", 12.25, 1234.56, "differs (measured 1235, published 12.25 ms)"),
    ("%", 0.875, 0.85, "differs (measured 85.0, published 87.5 %)"),
    (None, 1.0, None, "differs (measured -, published 1)")])
def test_published_values_in_words(analysed, unit, value, measured, line):
    entry = {"name": "q", "value": value, "unit": unit, "paper": "E",
             "measured": measured, "verdict": "differs", "differences": []}
    outcome = {**analysed["sbrm-1"], "published": [entry], "bounds": []}
    assert summary.missed([outcome]) == [f"q: {line}"]
    # The table has the same digits.
    shown = tables.published_table(outcome).rows[0][3:5]
    assert f"measured {shown[1]}, published {shown[0]}" in line
