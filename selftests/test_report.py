# SPDX-License-Identifier: GPL-2.0
"""Tables, figures and the page, from synthetic results."""

import html
import html.parser
import pathlib
import random
import re
import shutil
import sys
import types
import unicodedata
import urllib.parse
import xml.etree.ElementTree

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib import files, papers  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.report import (about, charts, figures, overview,  # noqa: E402
                               plotting, rendering, side_by_side, tables)
from tollwaylib.report.page import write_report  # noqa: E402
from tollwaylib.report.plotting import Look  # noqa: E402
from tollwaylib.report.sketch import sketch  # noqa: E402
from tollwaylib.results import aggregate, analysis, schema  # noqa: E402
from tollwaylib.results import verdicts  # noqa: E402

BOUNDS = [{"name": "class error", "metric": "max_abs_error",
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


@pytest.fixture(scope="module")
def steady_page(site):
    return (site / "double-bottleneck.html").read_text(encoding="utf-8")


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
         "of": {"link": "core1"}, "op": ">=", "than": "theirs"},
        {"name": "backlog", "metric": "queue_mean_pkts",
         "of": {"link": "core1"}, "op": ">=", "than": "nobody"}]
    if with_pages:
        raws[0]["bounds"].append({"name": "tail", "metric": "p99_s",
                                  "of": {"path": "all"}, "op": "<=", "than": "theirs"})
    return raws


def test_variants_are_shown_with_what_is_judged():
    wholes = verdicts.compare([analysis.analyse(raw) for raw in compared()])
    baselines, bounds = tables.variants_tables(wholes)
    assert [row[:2] for row in baselines.rows] == [
        ["mine", "mine + sbrm"], ["theirs", "theirs + sbrm"]]
    assert baselines.rows[0][2:4] == ["95.0", "90.0"]
    assert not any("pages" in head for head in baselines.heads)
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
    look = Look()
    return [*charts.rate_allocation([analysed["sbrm-1"], analysed["sbrm-2"]],
                                    place / "rates", look),
            *figures.windows(raws["dynamics-1"], place / "windows", look),
            *figures.queues(raws["dynamics-1"], place / "queues", look)]


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
        figures.windows(raws["sbrm-1"], tmp_path / "w", Look(), (99,))


def test_figures_report_an_unwritable_place(raws, tmp_path):
    with pytest.raises(TollwayError, match="cannot write"):
        figures.queues(raws["sbrm-1"], tmp_path / "none" / "q", Look())


# --- the page ----------------------------------------------------------------

class Balance(html.parser.HTMLParser):
    """Fails on tags that are not closed in order; collects links and names."""

    EMPTY = {"meta", "img", "br", "link"}

    def __init__(self):
        super().__init__()
        self.open, self.links, self.names = [], [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for key, value in attrs
                       if key in ("src", "href", "xlink:href")]
        self.names += [value for key, value in attrs if key == "id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def pages_of(site):
    return sorted(site.glob("*.html"))


def test_pages_are_well_formed_and_self_contained(site):
    assert [path.name for path in pages_of(site)] == [
        "double-bottleneck-dynamics.html", "double-bottleneck.html",
        "index.html"]
    for path in pages_of(site):
        text = path.read_text(encoding="utf-8")
        parser = Balance()
        parser.feed(text)
        assert parser.open == []
        assert len(set(parser.names)) == len(parser.names)
        for link in parser.links:
            if link.startswith("#"):
                assert link[1:] in parser.names, link
            else:
                assert link == "data:," or (
                    site / urllib.parse.unquote(link)).is_file(), link
        # Names of namespaces are no addresses that a browser asks.
        assert not re.search(r"(src|href)=\"(http|//)|url\((?!#)", text)
        assert "<script" not in text and "@import" not in text


def test_index_leads_to_the_experiments(site, page):
    parser = Balance()
    parser.feed(page)
    assert {"double-bottleneck.html", "double-bottleneck-dynamics.html"} <= \
        set(parser.links)
    assert "Results of 2 experiments" in page and "3 of 4" in page
    assert "Rate allocation over two bottlenecks" in page
    # What is read on a page of its own is not here.
    assert "<svg" not in page and "Calibration" not in page


def test_every_raw_file_is_linked(site, steady_page):
    parser = Balance()
    parser.feed(steady_page)
    for name in ("sbrm-1", "sbrm-2", "reno-1"):
        for file in ("raw.json", "result.json"):
            assert f"runs/{name}/{file}" in parser.links


def test_every_paper_is_known():
    """Else a page says that no paper has published the experiment."""
    for experiment in papers.EXPERIMENTS.values():
        word = experiment.reproduces.replace(":", " ").split()[0]
        assert word == "no" or word in about.PAPERS, experiment.name


def test_page_says_what_was_done(steady_page):
    for text in ("path III of fair", "Rate allocation over two bottlenecks",
                 "36 flows over 2 links of 96 Mbit/s for 20 to 60 seconds",
                 "repeats a published one: CP05 4.3.1", "S. Zimmermann",
                 "CP05 Table 4.3.3", "How to repeat this",
                 "tollway run double-bottleneck --seed 1", "Calibration",
                 "95990000", "6.1.0-test", "0001-um-run-at-HZ-1000.patch",
                 "256 ns", "SMP", "processor", "HZ=1000",
                 "Seeds: 1, 2"):
        assert text in steady_page, text
    assert "qdisc sbrm 8001: dev core1 &lt;limit 1000&gt;" in steady_page


def test_verdicts_come_before_figures_and_figures_before_settings(steady_page):
    order = ["<h1>", "36 flows over", "3 of 4 verdicts hold",
             'class="sketch"', 'id="comparison"', "Runs side by side",
             "The runs compared",
             'id="double-bottleneck-reno-pfifo"', "<caption>Published and measured",
             "Rate of each flow", "Throughput of each path",
             "Congestion windows of", "<caption>Rates by class",
             "<caption>Parameters that matter", "<summary>All other",
             "<summary>Calibration", "<summary>Files of the run",
             "Limitations"]
    places = [steady_page.index(words) for words in order]
    assert places == sorted(places)


def test_page_counts_the_verdicts(page, steady_page):
    # sbrm: 1 bound, and 3 published for another setup, which are no verdicts;
    # reno: 3 published, core link 2 is 2.5 below.
    for text in (page, steady_page):
        assert "3 of 4 verdicts hold. 3 published values are for " in text
        assert ("reno + pfifo: NewReno+drop-tail: utilisation of core link 2: "
                "differs (measured 85.0, published 87.5 %)") in text
    assert "other setup" in steady_page and "no verdict, because CP05" \
        in steady_page


def test_pages_are_the_same_every_time(site):
    before = [path.read_bytes() for path in pages_of(site)]
    write_report(site)
    assert [path.read_bytes() for path in pages_of(site)] == before


def test_names_from_a_run_are_escaped(tmp_path):
    raw = priced(1, experiment="<b>bold</b>")
    raw["provenance"]["command"] = "tollway run '<img src=x>'"
    save(tmp_path / "run", raw)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "<b>" not in text and "<img src=x>" not in text
    assert "&lt;b&gt;bold" in text
    assert "There is nothing to judge" in text


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
    ({"place": "model"}, "with a fluid model, which has no kernel and no "
     "packets."),
    ({}, "on Linux 6.1.0-test.")])
def test_page_says_where_it_ran(place, words, tmp_path):
    raw = priced(1)
    raw["provenance"] = {key: value for key, value in raw["provenance"].items()
                         if key not in ("place", "flavour")} | place
    save(tmp_path / "run", raw)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert f"1 run was made {words}" in html.unescape(text)
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
    assert "2 runs were made" in text
    assert "sbrm + sbrm, kappa 0.1" in text and "sbrm + sbrm, kappa 0.2" in text
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
    files.write_json_atomic(run / "result.json", {"schema": schema.SCHEMA})


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
        figures.price_tracking(raw, tmp_path / "price", Look(), "III")
    told = dict(raw, parameters=dict(raw["parameters"], phi=1.0), queues={
        name: dict(queue, price_q32=[number << 22 for number in
                                     range(len(queue["t_s"]))])
        for name, queue in raw["queues"].items()})
    paths = figures.price_tracking(told, tmp_path / "price", Look(), "III")
    assert all(path.is_file() for path in paths)


def test_acknowledgements_wrap(raws, tmp_path):
    paths = figures.acknowledgements(raws["dynamics-1"], tmp_path / "acks",
                                     Look(), ("I", "III"))
    assert all(path.is_file() for path in paths)
    with pytest.raises(TollwayError, match="none of the paths"):
        figures.acknowledgements(raws["dynamics-1"], tmp_path / "acks",
                                 Look(), ("X",))


def test_histograms(raws, tmp_path):
    for draw in (charts.window_histograms, charts.queue_histograms):
        for path in draw(raws["sbrm-1"], tmp_path / draw.__name__, Look()):
            assert path.is_file()
    late = dict(raws["sbrm-1"],
                parameters=dict(raws["sbrm-1"]["parameters"], warmup_s=1e6))
    with pytest.raises(TollwayError, match="nothing was sampled"):
        charts.queue_histograms(late, tmp_path / "late", Look())


# --- colours, readings, the sketch and the sentences --------------------------

def test_one_colour_means_one_thing():
    look = Look()
    count = len(plotting.PALETTE)
    things = [("path", str(number)) for number in range(2 * count)]
    lines = [tuple(look.line(*thing).items()) for thing in things]
    assert len(set(lines)) == len(things)
    assert [tuple(look.line(*thing).items()) for thing in things] == lines
    # The name alone does not say which thing it is.
    assert look.line("link", "0") != look.line("path", "0")
    assert len({look.bar(*thing)["color"] for thing in things[:count]}) == count


def luminance(colour):
    """Of WCAG 2, of "#rrggbb"."""
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
             for part in parts]
    return sum(weight * part for weight, part in
               zip((0.2126, 0.7152, 0.0722), parts))


def test_css_has_the_colours_of_figures():
    """Light ones as in the files of figures; dark ones are as many, all
    different, and can be seen on the dark page."""
    css = (pathlib.Path(rendering.__file__).parent / "page.css").read_text()
    light, dark, paper = (dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})",
                                          part)) for part in
                          css.split(":root {")[1:])
    for colour, name in plotting.VARIABLES.items():
        assert light[name] == colour, name
    series = [name for name in light if name.startswith("series-")]
    assert len(series) == len(plotting.PALETTE)
    for found in (dark, paper):
        assert len({found[name] for name in series}) == len(series)
    for found in (light, dark):
        for name in series:
            low, high = sorted(map(luminance, (found[name], found["paper"])))
            assert (high + 0.05) / (low + 0.05) > (2 if found is light else 3)


def test_a_figure_says_the_values_under_the_pointer(raws, tmp_path):
    paths = figures.windows(raws["dynamics-1"], tmp_path / "w", Look(), (1,))
    titles = [html.unescape(found) for found in re.findall(
        "<title>(.*?)</title>", paths[0].read_text(), re.DOTALL)]
    assert len(titles) == plotting._STRIPS
    first = titles[0].splitlines()
    assert first[0] == "time 0.25 s" and first[1] == "window [packets]"
    assert re.fullmatch(r"flow 1 \(path I, wtp 100\): [0-9.]+", first[2])


def test_a_figure_in_the_page_has_its_colours_and_names(raws, tmp_path):
    look = Look()
    paths = figures.windows(raws["dynamics-1"], tmp_path / "w", look, (1,))
    text = plotting.inline(paths[0])
    xml.etree.ElementTree.fromstring(
        text.replace("<svg ", '<svg xmlns:xlink="x" ', 1))
    assert not re.search('#[0-9a-f]{6}', text)
    assert "var(--series-0)" in text and "var(--ink)" in text
    names = set(re.findall(' id="([^"]*)"', text))
    assert names and all(name.startswith("w-") for name in names)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= names
    assert set(re.findall('href="#([^"]*)"', text)) <= names


def test_throughput_and_delay_over_time(raws, analysed, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save",
                        lambda figure, out: drawn.append(figure) or [out])
    raw = raws["sbrm-1"]
    overview.over_time(raw, analysed["sbrm-1"], tmp_path / "t", Look())
    above, below = drawn[0].axes
    (path,) = [line for line in above.get_lines()
               if line.get_label() == "path I"]
    # Two thirds of 96 Mbit/s, less headers: 934 of 1000 bytes.
    assert path.get_ydata()[10:-10].mean() == pytest.approx(
        64 * 0.934, rel=0.02)
    shares = [part for part in above.collections
              if type(part).__name__ == "LineCollection"]
    assert shares[0].get_segments()[0][0][1] == pytest.approx(64 * 0.934)
    (queue,) = [line for line in below.get_lines()
                if line.get_label() == "queue core1"]
    # 20 to 29 packets of 1000 bytes at 96 Mbit/s.
    assert queue.get_ydata().mean() == pytest.approx(24.5 / 12, rel=0.02)


def test_throughput_of_udp_is_what_is_received(raws, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save",
                        lambda figure, out: drawn.append(figure) or [out])
    flow = {"name": "call", "path": "I", "cc": None, "start_s": 0}
    times = [second / 10 for second in range(1, 101)]
    rest = raws["sbrm-1"]
    case = {"name": "x", "duration_s": 10,
            "queues": rest["queues"], "flows": [
                {**flow, "arrivals": {"t_s": times, "bytes": [
                    12500 * number for number in range(1, 101)]}},
                {**flow, "name": "lost", "arrivals": None}]}
    overview.over_time({**rest, "cases": [case]}, None, tmp_path / "u", Look(),
                       "x")
    (call,) = [line for line in drawn[0].axes[0].get_lines()
               if line.get_label().startswith("source")]
    assert call.get_label() == "source call (UDP)"
    assert call.get_ydata() == pytest.approx(1)


def test_compared_runs_share_one_figure(analysed, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save",
                        lambda figure, out: drawn.append(figure) or [out])
    overview.compared([analysed["sbrm-1"], analysed["reno-1"]],
                      tmp_path / "c", Look())
    rates = drawn[0].axes[0]
    assert [text.get_text() for text in rates.get_xticklabels()] == [
        "path I", "path II", "path III"]
    heights = [[bar.get_height() for bar in bars] for bars in rates.containers]
    assert heights[0] == pytest.approx([100] * 3, abs=2)
    assert heights[1] == pytest.approx([400 / 3] * 2 + [100 / 3], abs=0.5)
    assert rates.get_legend_handles_labels()[1] == [
        "weighted proportionally fair share", "sbrm + sbrm", "reno + pfifo"]


def groups_of(place, raws, analysed, *names):
    """Groups as of a page, whose raw results are read from a directory."""
    found = []
    for number, name in enumerate(names):
        save(place / str(number), raws[name])
        found.append(types.SimpleNamespace(
            raw=schema.load_raw(place / str(number)), whole=analysed[name],
            results=[analysed[name]]))
    return found


def test_runs_stand_side_by_side(raws, analysed, tmp_path, monkeypatch):
    """Runs whose flows have weights come first; the axes are common; and the
    numbers are those of the result."""
    drawn = []
    monkeypatch.setattr(
        side_by_side, "save",
        lambda figure, out, **words: drawn.append((figure, words)) or [out])
    assert side_by_side.side_by_side(
        groups_of(tmp_path, raws, analysed, "reno-1", "sbrm-1"),
        tmp_path / "s", Look())
    (figure, words), = drawn
    priced_rates, reno_rates, priced_delays, _ = figure.axes
    assert priced_rates.get_title("left") == "sbrm + sbrm"
    assert priced_rates.get_ylim() == reno_rates.get_ylim()
    levels = {round(line.get_ydata()[0], 3) for line in priced_rates.get_lines()
              if line.get_label() == "fair shares for weights 1:2:4"}
    assert levels == {round(8e-6 * synthetic.MSS_BYTES
                            * synthetic.fair_pps(path, wtp), 3)
                      for path in "I III".split() for wtp in synthetic.WTPS}
    assert not any("weights" in line.get_label()
                   for line in reno_rates.get_lines())
    # 20 to 29 packets of 1000 bytes at 96 Mbit/s.
    assert "mean 2.0 ms" in priced_delays.texts[0].get_text()
    for one in (raws["sbrm-1"], raws["reno-1"]):
        assert one["provenance"]["command"] in words["description"]


def test_runs_without_one_rate_do_not_stand_side_by_side(raws, analysed,
                                                         tmp_path):
    for number, names in enumerate((
            ["sbrm-1"], ["sbrm-1", "dynamics-1"], ["sbrm-1"] * 6)):
        assert side_by_side.side_by_side(
            groups_of(tmp_path / str(number), raws, analysed, *names),
            tmp_path / "s", Look()) is None
    assert not list(tmp_path.glob("s.*"))


def network(paths, **links):
    return {"paths": {name: {"links": way, "rtt_ms": 10, "source": f"s{name}",
                             "sink": f"d{name}"} for name, way in paths.items()},
            "links": {name: {"capacity_bps": rate, "delay_ms": 1}
                      for name, rate in links.items()},
            "parameters": {},
            "cases": [{"flows": [{"path": name} for name in paths]}]}


def test_sketch_of_a_chain():
    drawing = sketch(network({"I": ["a"], "II": ["b"], "III": ["a", "b"]},
                             a=96e6, b=1e9), Look(), "queue q")
    assert len(drawing["nodes"]) == 3
    first, second = drawing["links"]
    assert first["x2"] == second["x1"] and first["y"] == second["y"]
    assert (first["facts"], second["facts"]) == ("96 Mbit/s, 1 ms",
                                                 "1 Gbit/s, 1 ms")
    one, two, both = drawing["lanes"]
    assert (one["x1"], two["x2"]) == (both["x1"], both["x2"])
    assert one["x2"] == two["x1"] == first["x2"]
    assert len({lane["colour"] for lane in drawing["lanes"]}) == 3
    assert both["label"] == "path III: 1 flow, round trip 10 ms"


def test_sketch_of_both_ways_and_of_parts():
    made = network({"1": ["R1"], "2": ["R2"]}, R1=1e6, R2=1e6)
    # The same hosts: one link leads back to where the other begins.
    made["paths"]["2"].update(source="d1", sink="s1")
    drawing = sketch(made, Look(), "")
    assert len(drawing["nodes"]) == 2
    forth, back = drawing["links"]
    assert (forth["x1"], forth["x2"]) == (back["x2"], back["x1"])
    assert back["y"] > forth["y"]
    assert len(sketch(network({"1": ["A"], "2": ["B"]}, A=1e6, B=1e6),
                      Look(), "")["nodes"]) == 4


def test_sketch_names_the_routers_of_the_result():
    """Two links in a row, which no path tells."""
    made = network({"1": ["A"], "2": ["B"]}, A=1e6, B=1e6)
    made["links"]["A"]["routers"] = ["west", "middle"]
    made["links"]["B"]["routers"] = ["middle", "east"]
    drawing = sketch(made, Look(), "")
    assert [node["name"] for node in drawing["nodes"]] == [
        "west", "middle", "east"]
    first, second = drawing["links"]
    assert first["x2"] == second["x1"] and first["y"] == second["y"]
    # A result that names some of them is drawn like one that names none.
    del made["links"]["B"]["routers"]
    assert len(sketch(made, Look(), "")["nodes"]) == 4


def test_the_title_is_that_of_the_file():
    assert about.title({"experiment": "mine", "title": "One link."}) == "One link"
    # Raw results of older programs have none.
    assert about.title({"experiment": "mine"}) == "mine"
    assert about.title({"experiment": "parking-lot"}) == \
        "Eight paths over four bottlenecks, few flows or many"


def test_sketch_groups_many_paths():
    drawing = sketch(network({str(number): ["A"] for number in range(24)},
                             A=1e6), Look(), "")
    (lane,) = drawing["lanes"]
    assert lane["label"].startswith("24 paths, 0 to 23: 24 flows")


def test_only_parameters_that_matter_are_shown():
    result = analysis.analyse(priced(1))
    result["parameters"].update(only="", red_min=5, kappa_young=0.0, rtt="last",
                                warmup_s=7.0)
    shown, others = about.parameters(result)
    names = [name for name, _, _ in shown]
    assert {"gamma", "target", "kappa", "warmup_s"} <= set(names)
    assert "only" not in names + [name for name, _, _ in others]
    assert "red_min" in [name for name, _, _ in others]
    assert ["warmup_s", "7", "s at the beginning that all rates leave out"] in shown
    # What another queue has is shown where somebody has set it.
    result["parameters"]["red_min"] = 6
    assert "red_min" in [name for name, _, _ in about.parameters(result)[0]]
    # An old result, or tc words for a queue, are no error.
    result["parameters"] = {"cc": "x", "aqm": "codel ecn", "old": 1}
    assert about.parameters(result)[0] == []


def test_the_measure_is_explained_where_it_favours_a_run(tmp_path):
    save(tmp_path / "a", priced(1))
    reason = "This is neither an advantage nor a fault of the queue."
    other = synthetic.steady(wtps=None, cc="cubic", aqm="fq_codel")
    save(tmp_path / "b", other)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert reason in text and "fq_codel has another aim" in text
    assert "cubic has no willingness to pay" in text
    shutil.rmtree(tmp_path / "b")
    save(tmp_path / "b", synthetic.steady(aqm="pfifo"))
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert reason not in text
