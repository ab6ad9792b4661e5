# SPDX-License-Identifier: GPL-2.0
"""Tables, curves and pages of experiments of cases."""

import pytest
from cases_bench import job, repeated

import synthetic
from tollwaylib import files, papers
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import plan
from tollwaylib.report import charts, tables
from tollwaylib.report.page import write_report
from tollwaylib.report.plotting import Look
from tollwaylib.results import analysis, schema

BENCHES = [f"pp-bench-{number}" for number in range(1, 10)]


def test_tables_of_variants_stand_side_by_side():
    one, two = synthetic.analyse(repeated()), synthetic.analyse(repeated())
    two["parameters"] = dict(two["parameters"], cc="cubic")
    shown = tables.case_variants_tables([one, two])
    assert [table.title for table in shown] == ["ms", "v"]
    assert shown[0].heads == ["case", "pp + fq_rr", "cubic + fq_rr"]
    assert shown[0].rows[0] == ["a", "2050.0", "2050.0"]


def test_a_variant_may_leave_cases_out():
    whole, part = synthetic.analyse(repeated()), synthetic.analyse(repeated())
    part["parameters"] = dict(part["parameters"], cc="cubic")
    names = [point["name"] for point in whole["cases"]]
    del part["cases"][0]
    for order in ([whole, part], [part, whole]):
        shown = tables.case_variants_tables(order)[0]
        assert [row[0] for row in shown.rows] == names
        column = shown.heads.index("cubic + fq_rr")
        assert shown.rows[0][column] == tables.NONE
        assert shown.rows[1][column] == shown.rows[1][3 - column]


def test_a_report_of_cases(tmp_path):
    for number, cc in enumerate(("pp", "cubic")):
        made = repeated()
        made["parameters"]["cc"] = cc
        made["pictures"] = [
            ["curve", "completion_ms"], ["queue", "a"], ["sequence", "a"],
            ["class_queues", "a"], ["rates", "a"], ["utilization", "b"],
            ["spacing", "a"], ["setpoints", "a"],
            ["curves", [{"key": "completion_ms", "log": True},
                        {"key": "v", "log": False}]]]
        folder = tmp_path / cc / "seed-1"
        folder.mkdir(parents=True)
        made["trace_sha256"] = str(number) * 64
        files.write_json_atomic(folder / "raw.json", made)
        files.write_json_atomic(folder / "result.json",
                                synthetic.analyse(made))
    page = write_report(tmp_path).read_text()
    # The network; of each, nine and two over time; of both, two and one.
    assert page.count("<figure>") == 1 + 2 * 11 + 3
    # In words, not by their keys.
    assert "completion_ms" not in page.partition("<body>")[2].partition(
        "<summary>Kernel")[0]
    assert "pp + fq_rr" in page and "cubic + fq_rr" in page


def bars_of(monkeypatch, tmp_path, cases):
    """The intervals that curve() draws: [(x, from, to)]."""
    figures = []
    monkeypatch.setattr(charts, "save", lambda figure, out: figures.append(figure) or [out])
    whole = {"parameters": {"cc": "pp", "aqm": "fq_rr"}, "x_title": "x", "cases": cases,
             "columns": [{"key": "k", "title": "k", "unit": "%", "digits": 1}]}
    assert charts.curve([whole], "k", tmp_path / "x", Look())
    return [tuple(map(float, (part[0][0], part[0][1], part[1][1])))
            for lines in figures[0].axes[0].collections for part in lines.get_segments()]


def test_curves_have_bars_where_there_are_intervals(monkeypatch, tmp_path):
    def case(x, value, **more):
        return {"name": str(x), "x": x, "series": "s", "metrics": {"k": value}, **more}

    # Of the parts of a long run, of several seeds, and none.
    assert bars_of(monkeypatch, tmp_path, [
        case(1.0, 0.5, batches={"k": {"n": 20, "half": 0.1}}),
        case(2.0, {"mean": 0.6, "sd": 0.1, "ci95": 0.2, "n": 3}),
        case(3.0, 0.7)]) == pytest.approx([(1, 40, 60), (2, 40, 80)])


def drawn(monkeypatch, tmp_path, values, log=True):
    """What curves() draws for {combination: {series: [(x, value)]}}."""
    wholes = []
    for cc, series in values.items():
        wholes.append({
            "parameters": {"cc": cc, "aqm": "q"}, "x_title": "x",
            "columns": [{"key": "k", "title": "k", "unit": "%", "digits": 1}],
            "cases": [{"name": f"{name} {x}", "x": x, "series": name,
                       "metrics": {"k": value}}
                      for name, points in series.items()
                      for x, value in points]})
    figures = []
    monkeypatch.setattr(charts, "save",
                        lambda figure, out: figures.append(figure) or [out])
    if not charts.curves(wholes, [{"key": "k", "log": log}],
                         tmp_path / "x", Look()):
        return None
    return {axes.get_title("left"): axes for axes in figures[0].axes
            if axes.lines}


def test_curves_have_a_column_for_each_series(monkeypatch, tmp_path):
    found = drawn(monkeypatch, tmp_path, {
        "a": {"one": [(1, 0.02), (1000, 0.5)], "four": [(1, 0.03)]},
        "b": {"one": [(1, 4.0), (1000, None)], "four": [(1, 0.04)]}})
    assert list(found) == ["one", "four"]
    # In per cent; what never was is a gap; limits are the same for all.
    assert [list(line.get_ydata()) for line in found["four"].lines] \
        == [[3], [4]]
    assert list(found["one"].lines[0].get_ydata()) == [2, 50]
    ((first, missing),) = [line.get_ydata() for line in
                           found["one"].lines[1:]]
    assert first == 400 and missing != missing
    for axes in found.values():
        assert axes.get_yscale() == "log" and axes.get_ylim() == (1, 1000)
    assert found["one"].get_xscale() == "log"
    linear = drawn(monkeypatch, tmp_path, {
        "a": {"one": [(1, 0.02)], "four": [(1, 0.5)]},
        "b": {"one": [(1, 0.9)], "four": [(1, 0.1)]}}, log=False)
    for axes in linear.values():
        assert axes.get_yscale() == "linear"
        assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 90


def test_curves_of_one_result_are_its_series(monkeypatch, tmp_path):
    found = drawn(monkeypatch, tmp_path, {
        "a": {"one": [(1, 0.02)], "four": [(1, 0.03)]}})
    assert list(found) == ["a + q"]
    assert [line.get_label() for line in found["a + q"].lines] \
        == ["one", "four"]
    assert drawn(monkeypatch, tmp_path, {"a": {"one": [(1, None)]}}) is None
    assert drawn(monkeypatch, tmp_path, {"a": {"one": [(None, 0.3)]}}) is None


@pytest.mark.parametrize("name", BENCHES)
def test_baselines_run_the_same_scenario(name):
    experiment = papers.get(name)
    names = [(variant.cc, variant.aqm) for variant in
             plan.variants(experiment, plan.parse_settings(
                 experiment, [])) if not variant.settings]
    assert names == [("pp", "fq_rr"), ("cubic", "fq_rr"), ("bbr", "fq_rr"),
                     ("reno", "fq_rr"), ("cubic", "fq_codel"),
                     ("bbr", "fq_codel"), ("reno", "fq_codel")]
    ours, theirs = job(name), job(name, "bbr", "fq_codel")
    for one, other in zip(ours["cases"], theirs["cases"]):
        assert [flow["words"] for flow in one["flows"]] \
            == [flow["words"] for flow in other["flows"]]


def two_runs():
    """A raw result with two cases and no metrics."""
    raw = schema.upgraded(synthetic.steady(utilization=(0.99, 0.97)))
    (first,), (second,) = raw["cases"], schema.upgraded(
        synthetic.steady(utilization=(0.9, 0.9)))["cases"]
    return {**raw, "cases": [{**first, "name": "full", "point": "full"},
                             {**second, "name": "less", "point": "less"}]}


def test_each_case_without_metrics_has_its_tables_and_figures(tmp_path):
    raw = two_runs()
    result = analysis.analyse(raw)
    assert [case["links"]["core1"]["utilization"] for case in result["cases"]] \
        == pytest.approx([0.99, 0.9])
    titles = [table.title for table in tables.result_tables(result)]
    for name in ("full", "less"):
        assert f"Links: sbrm + sbrm, {name}" in titles
        assert f"Rates by class: sbrm + sbrm, {name}" in titles
    files.write_json_atomic(tmp_path / "raw.json", raw)
    files.write_json_atomic(tmp_path / "result.json", result)
    page = write_report(tmp_path).read_text()
    assert "2 cases, each of 36 flows" in page
    for kind in ("rates", "time", "windows", "queues"):
        for name in ("full", "less"):
            assert (tmp_path / "figures" /
                    f"double-bottleneck-sbrm-sbrm-{kind}-{name}.svg").exists()
    # A published value that names no case is about the first.
    assert result["published"][-1]["measured"] == pytest.approx(0.98)


def test_repeated_cases_need_metrics():
    raw = two_runs()
    raw["cases"][1]["point"] = "full"
    with pytest.raises(TollwayError, match="names no metric"):
        analysis.analyse(raw)


def test_only_the_reader_of_files_knows_older_schemas():
    with pytest.raises(TollwayError, match="no raw.cases"):
        analysis.analyse(synthetic.steady())
