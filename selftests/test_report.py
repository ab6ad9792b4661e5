# SPDX-License-Identifier: GPL-2.0
"""Tables, figures and the page, from synthetic results."""

import html
import html.parser
import pathlib
import random
import re
import shutil
import sys
import unicodedata
import xml.etree.ElementTree

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib import files  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.report import charts, figures, rendering, tables  # noqa: E402
from tollwaylib.report.page import write_report  # noqa: E402
from tollwaylib.results import aggregate, analysis, schema  # noqa: E402
from tollwaylib.results import verdicts  # noqa: E402

BOUNDS = [{"name": "class error", "metric": "classes.max_abs_error",
           "op": "<=", "value": 0.015}]


def priced(seed, made=synthetic.steady, **more):
    source = random.Random(seed)
    return made(
        lambda number, path, wtp: 1 + source.uniform(-0.02, 0.02), seed=seed,
        **more)


def unfair(seed):
    """Like NewReno in CP05 Figure 4.3.5: path III gets a third of its share."""
    return synthetic.as_published(
        lambda number, path, wtp: (1 if path == "III" else 4) / 3, seed=seed,
        wtps=None, cc="reno", aqm="pfifo", utilization=(0.96, 0.85))


def save(place, raw):
    place.mkdir(parents=True)
    files.write_json_atomic(place / "raw.json", raw, indent=None)
    files.write_json_atomic(place / "result.json", analysis.analyse(raw))


@pytest.fixture(scope="module")
def raws():
    return {"sbrm-1": priced(1, bounds=BOUNDS),
            "sbrm-2": priced(2, bounds=BOUNDS),
            "reno-1": unfair(1), "dynamics-1": synthetic.dynamics()}


@pytest.fixture(scope="module")
def analysed(raws):
    return {name: analysis.analyse(raw) for name, raw in raws.items()}


@pytest.fixture(scope="module")
def site(raws, tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    for name, raw in raws.items():
        save(place / "runs" / name, raw)
    assert write_report(place) == place / "index.html"
    return place


@pytest.fixture(scope="module")
def page(site):
    return (site / "index.html").read_text(encoding="utf-8")


# --- tables ------------------------------------------------------------------

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
    table = tables.classes_table(analysed["reno-1"])
    assert len(table.rows) == 3
    row = cells(table, 2)
    assert row["path"] == "III" and row["wtp [pkts/s]"] == "-"
    assert row["flows"] == "12" and row["fair [pkts/s]"] == "333.4"
    assert row["rate [pkts/s]"] == "111.1" and row["error [%]"] == "-66.67"


def test_aggregated_tables_show_the_interval(analysed):
    whole = aggregate.aggregate([analysed["sbrm-1"], analysed["sbrm-2"]])
    row = cells(tables.classes_table(whole), 0)
    assert re.fullmatch(r"\d+\.\d ± \d+\.\d", row["rate [pkts/s]"])
    assert re.fullmatch(r"[+-]\d\.\d\d ± \d+\.\d\d", row["error [%]"])
    links = tables.links_table(whole)
    assert cells(links, 0)["utilisation [%]"] == "99.00 ± 0.00"
    assert any("2 seeds" in note for note in links.notes)


def test_links_published_and_bounds_tables(analysed):
    result = analysed["sbrm-1"]
    row = cells(tables.links_table(result), 1)
    assert row["link"] == "core2" and row["rate [Mbit/s]"] == "96"
    assert row["utilisation [%]"] == "97.00" and row["drops"] == "2"
    assert row["marks"] == "17460"
    row = cells(tables.published_table(result), 1)
    assert row["published [%]"] == "92.0" and row["measured [%]"] == "97.0"
    assert row["verdict"] == "other setup"
    assert row["source"] == "CP05 Table 5.4.1"
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
        {"name": "utilisation", "metric": "links.core1.utilization",
         "op": ">=", "than": "theirs"},
        {"name": "backlog", "metric": "links.core1.queue_mean_pkts",
         "op": ">=", "than": "nobody"}]
    if with_pages:
        raws[0]["bounds"].append({"name": "tail", "metric": "pages.0.p99_s",
                                  "op": "<=", "than": "theirs"})
    return raws


def test_variants_are_shown_with_what_is_judged():
    wholes = verdicts.compare([analysis.analyse(raw) for raw in compared()])
    rivals, bounds = tables.variants_tables(wholes)
    assert [row[:2] for row in rivals.rows] == [
        ["mine", "mine + sbrm"], ["theirs", "theirs + sbrm"]]
    assert rivals.rows[0][2:4] == ["95.0", "90.0"]
    assert not any("pages" in head for head in rivals.heads)
    assert [row[1:] for row in bounds.rows] == [
        ["utilisation", "holds", "0.95", ">= 0.9 of theirs"],
        ["backlog", "needs runs", "24.49", ">= that of nobody"]]


def test_variants_of_users_are_shown(tmp_path):
    for raw in compared(with_pages=True):
        save(tmp_path / raw["parameters"]["variant"] / "seed-1", raw)
    page = write_report(tmp_path).read_text()
    assert "Variants compared" in page and "Congestion windows" not in page
    # Half of the pages were never there: no percentile beyond the median.
    assert "never" in page and "needs runs" in page
    assert page.count(">1.050<") >= 2
    wholes = verdicts.compare([analysis.analyse(raw)
                               for raw in compared(with_pages=True)])
    rivals, bounds = tables.variants_tables(wholes)
    assert dict(zip(rivals.heads, rivals.rows[0]))["unfinished"] == "36"
    assert bounds.rows[-1][2:] == ["fails", "never", "<= never of theirs"]


def test_comparison_shows_the_unfairness_to_the_longest_path(analysed):
    table = tables.comparison_table([analysed["reno-1"], analysed["sbrm-1"]])
    reno, sbrm = cells(table, 0), cells(table, 1)
    assert reno["source + link"] == "reno + pfifo"
    assert reno["path III of fair [%]"] == "33.3"
    assert reno["published [%]"] == "92.0" and reno["mean [%]"] == "90.5"
    assert reno["worst class error [%]"] == "-66.67"
    assert 98 < float(sbrm["path III of fair [%]"]) < 102
    with pytest.raises(TollwayError, match="one experiment"):
        tables.comparison_table([analysed["reno-1"], analysed["dynamics-1"]])
    with pytest.raises(TollwayError, match="no results"):
        tables.comparison_table([])


def test_intervals_table(analysed):
    table = tables.intervals_table(analysed["dynamics-1"])
    assert [row[:2] for row in table.rows] == [
        ["0-10", "1"], ["10-20", "2"], ["20-30", "1"]]
    row = cells(table, 1)
    assert row["core1 [%]"] == "99.0" and row["drops after 2 s"] == "4"
    assert 1.3 < float(row["converged [s]"]) < 1.5
    assert tables.intervals_table(analysed["sbrm-1"]) is None


# --- figures -----------------------------------------------------------------

def draw(raws, analysed, place):
    place.mkdir()
    return [*charts.rate_allocation([analysed["sbrm-1"], analysed["sbrm-2"]],
                                    place / "rates"),
            *figures.windows(raws["dynamics-1"], place / "windows"),
            *figures.queues(raws["dynamics-1"], place / "queues")]


def test_figures_are_the_same_every_time(raws, analysed, tmp_path):
    first = draw(raws, analysed, tmp_path / "a")
    second = draw(raws, analysed, tmp_path / "b")
    assert [path.name for path in first] == [
        "rates.svg", "rates.png", "windows.svg", "windows.png", "queues.svg",
        "queues.png"]
    for one, two in zip(first, second):
        assert one.read_bytes() == two.read_bytes()
        if one.suffix == ".svg":
            xml.etree.ElementTree.parse(one)
            assert "<dc:date>" not in one.read_text()
        else:
            assert one.read_bytes().startswith(b"\x89PNG")


def test_windows_needs_a_flow(raws, tmp_path):
    with pytest.raises(TollwayError, match="99"):
        figures.windows(raws["sbrm-1"], tmp_path / "w", (99,))


def test_figures_report_an_unwritable_place(raws, tmp_path):
    with pytest.raises(TollwayError, match="cannot write"):
        figures.queues(raws["sbrm-1"], tmp_path / "none" / "q")


# --- the page ----------------------------------------------------------------

class Balance(html.parser.HTMLParser):
    """Fails on tags that are not closed in order; collects links."""

    EMPTY = {"meta", "img", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for key, value in attrs if key in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_well_formed_and_self_contained(site, page):
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.links) == 8 + 2 * 8
    for link in parser.links:
        assert (link.startswith("data:image/svg+xml;base64,")
                or (site / link).is_file())
    assert len(list((site / "figures").iterdir())) == 16
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)
    assert "<script" not in page


def test_page_says_what_was_done(page):
    for text in ("double-bottleneck-dynamics", "path III of fair",
                 "CP05 Table 4.3.3", "How to repeat this",
                 "tollway run double-bottleneck --seed 1", "Calibration",
                 "95990000", "6.1.0-test", "0001-um-run-at-HZ-1000.patch",
                 "256 ns", "SMP", "CPU", "HZ is patched from 100 to 1000",
                 "Seeds: 1, 2"):
        assert text in page, text
    assert "qdisc sbrm 8001: dev core1 &lt;limit 1000&gt;" in page


def test_page_counts_the_verdicts(page):
    # sbrm: 1 bound, and 3 published for another setup, which are no verdicts;
    # reno: 3 published, core link 2 is 2.5 below.
    assert "3 of 4 verdicts hold. 3 published values are of " in page
    assert "other setup" in page and "no verdict, since CP05" in page
    assert ("reno + pfifo: NewReno+drop-tail: utilisation of core link 2 "
            "differs (85.0; published 87.5 %)") in page


def test_page_is_the_same_every_time(site, page):
    assert write_report(site).read_text(encoding="utf-8") == page


def test_names_from_a_run_are_escaped(tmp_path):
    raw = priced(1, experiment="<b>bold</b>")
    raw["provenance"]["command"] = "tollway run '<img src=x>'"
    save(tmp_path / "run", raw)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "<b>" not in text and "<img src=x>" not in text
    assert "&lt;b&gt;bold" in text
    assert "There are no verdicts" in text


def test_page_has_nothing_that_html_forbids(tmp_path):
    raw = priced(1)
    # Colours of tc, a bell, a byte that is not UTF-8, and what JSON may hold.
    raw["provenance"]["qdiscs"] = {
        "r1": ["qdisc \x1b[1;36mhtb\x1b[0m 1:", "bell \x07 nul \x00 c1 \x9b"]}
    raw["provenance"]["command"] = "tollway run --out l\udcfct \ud800"
    save(tmp_path / "run", raw)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "qdisc htb 1:" in text and "--out l\\xfct" in text
    assert not [character for character in text
                if unicodedata.category(character) in ("Cc", "Cs")
                and character not in "\n\t"]


@pytest.mark.parametrize("place, words", [
    ({"place": "lab", "flavour": "plain"}, "in the lab on Linux 6.1.0-test, in "
     "virtual time."),
    ({"place": "lab", "flavour": "debug"}, "in the lab on Linux 6.1.0-test, in "
     "virtual time (debug kernel)."),
    ({"place": "host"}, "on this host's own Linux 6.1.0-test."),
    ({"place": "qemu"}, "in qemu on Linux 6.1.0-test."),
    ({}, "on Linux 6.1.0-test.")])
def test_page_says_where_it_ran(place, words, tmp_path):
    raw = priced(1)
    raw["provenance"] = {key: value for key, value in raw["provenance"].items()
                         if key not in ("place", "flavour")} | place
    save(tmp_path / "run", raw)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert f"1 run of 1 setting, {words}" in html.unescape(text)
    assert "unknown" not in text


def test_provenance_is_shown_by_indentation(tmp_path):
    raw = priced(1)
    raw["provenance"]["qdiscs"] = {"r1": ["qdisc htb 1:", "qdisc sbrm 10:"]}
    save(tmp_path / "run", raw)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "\nqdiscs:\n  r1:\n    qdisc htb 1:\n    qdisc sbrm 10:\n" in text
    assert "\npatches:\n  0001-um-run-at-HZ-1000.patch\nhz: 1000\n" in text


def test_all_verdicts_hold(tmp_path):
    save(tmp_path / "run", priced(1, synthetic.as_published, bounds=BOUNDS))
    assert "4 of 4 verdicts hold." in write_report(
        tmp_path).read_text(encoding="utf-8")


def test_settings_with_different_parameters_stay_apart(tmp_path):
    save(tmp_path / "a", priced(1))
    other = priced(2)
    other["parameters"]["kappa"] = 0.2
    save(tmp_path / "b", other)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "2 runs of 2 settings" in text
    assert (tmp_path / "figures" /
            "double-bottleneck-sbrm-sbrm-2-rates.svg").is_file()


# --- incomplete input --------------------------------------------------------

@pytest.fixture
def one(tmp_path, raws):
    save(tmp_path / "run", raws["sbrm-1"])
    return tmp_path


def no_raw(run):
    (run / "raw.json").unlink()


def no_result(run):
    (run / "result.json").unlink()


def cut_raw(run):
    text = (run / "raw.json").read_text()
    (run / "raw.json").write_text(text[:len(text) // 2])


def other_result(run):
    files.write_json_atomic(run / "result.json",
                            analysis.analyse(priced(5)))


def bad_result(run):
    files.write_json_atomic(run / "result.json", {"schema": 1})


def bad_calibration(run):
    raw = schema.load_raw(run)
    raw["calibration"]["core1"]["ok"] = False
    files.write_json_atomic(run / "raw.json", raw)


def same_twice(run):
    shutil.copytree(run, run.with_name("again"))


@pytest.mark.parametrize("harm, words", [
    (no_raw, "has no raw.json"), (no_result, "has no result.json"),
    (cut_raw, "not valid JSON"), (other_result, "mixes two runs"),
    (bad_result, "no experiment"), (bad_calibration, "calibration of link"),
    (same_twice, "same seed")])
def test_incomplete_results_make_no_page(one, harm, words):
    harm(one / "run")
    with pytest.raises(TollwayError, match=words) as error:
        write_report(one)
    assert "\n" not in str(error.value)
    assert not (one / "index.html").exists()


def test_no_results_make_no_page(tmp_path):
    with pytest.raises(TollwayError, match="holds no results"):
        write_report(tmp_path)
    with pytest.raises(TollwayError, match="not a directory"):
        write_report(tmp_path / "none")


# --- figures of one experiment alone ------------------------------------------

def test_price_tracking_shows_price_and_estimate(raws, tmp_path):
    raw = raws["dynamics-1"]
    with pytest.raises(TollwayError, match="all of its queues are sbrm"):
        figures.price_tracking(raw, tmp_path / "price", "III")
    told = dict(raw, parameters=dict(raw["parameters"], phi=1.0), queues={
        name: dict(queue, price_q32=[number << 22 for number in
                                     range(len(queue["t_s"]))])
        for name, queue in raw["queues"].items()})
    paths = figures.price_tracking(told, tmp_path / "price", "III")
    assert all(path.is_file() for path in paths)


def test_acknowledgements_wrap(raws, tmp_path):
    paths = figures.acknowledgements(raws["dynamics-1"], tmp_path / "acks",
                                     ("I", "III"))
    assert all(path.is_file() for path in paths)
    with pytest.raises(TollwayError, match="none of the paths"):
        figures.acknowledgements(raws["dynamics-1"], tmp_path / "acks", ("X",))


def test_histograms(raws, tmp_path):
    for draw in (charts.window_histograms, charts.queue_histograms):
        for path in draw(raws["sbrm-1"], tmp_path / draw.__name__):
            assert path.is_file()
    late = dict(raws["sbrm-1"],
                parameters=dict(raws["sbrm-1"]["parameters"], warmup_s=1e6))
    with pytest.raises(TollwayError, match="nothing was sampled"):
        charts.queue_histograms(late, tmp_path / "late")
