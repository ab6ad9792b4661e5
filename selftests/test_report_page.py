# SPDX-License-Identifier: GPL-2.0
"""The page of a report: its parts, what it refuses, and what it says of a run."""

import html
import html.parser
import re
import shutil
import types
import unicodedata
import urllib.parse

import pytest
from report_bench import BOUNDS, priced, save

import synthetic
from tollwaylib import files, papers
from tollwaylib.errors import TollwayError
from tollwaylib.report import about
from tollwaylib.report import page as page_module
from tollwaylib.report.page import write_report
from tollwaylib.results import schema

pytest_plugins = ["report_bench"]


@pytest.fixture(scope="module")
def steady_page(site):
    return (site / "double-bottleneck.html").read_text(encoding="utf-8")


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
        assert word == "no" or word in papers.PAPERS, experiment.name
        assert word == "no" or word == experiment.paper.name, experiment.name


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


@pytest.mark.parametrize("change, names", [
    ({"place": "host", "kernel": "6.12"}, ("place: lab", "place: host")),
    ({"command": "tollway run x --traffic=iperf3"},
     ("traffic: tollway", "traffic: iperf3"))])
def test_runs_of_different_origins_stay_apart(change, names, tmp_path):
    """Even with the same seed: by default they share a directory."""
    for place, seed, more in (("a", 1, {}), ("b", 1, change), ("c", 2, {})):
        raw = priced(seed, bounds=BOUNDS)
        raw["provenance"].update({"place": "lab", **more})
        save(tmp_path / place, raw)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "3 runs were made" in text
    for name in names:
        assert f"sbrm + sbrm, {name}<" in text


def no_raw(run):
    (run / "raw.json").unlink()


def no_result(run):
    (run / "result.json").unlink()


def cut_raw(run):
    text = (run / "raw.json").read_text()
    (run / "raw.json").write_text(text[:len(text) // 2])


def other_result(run):
    files.write_json_atomic(run / "result.json",
                            synthetic.analyse(priced(5)))


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


def test_what_a_killed_run_left_is_left_out(one, capsys):
    shutil.copytree(one / "run", one / "killed")
    no_result(one / "killed")
    text = write_report(one).read_text(encoding="utf-8")
    assert "1 run was made" in text
    assert f"note: {one / 'killed'} is left out" in capsys.readouterr().err


def test_no_results_make_no_page(tmp_path):
    with pytest.raises(TollwayError, match="holds no results"):
        write_report(tmp_path)
    with pytest.raises(TollwayError, match="not a directory"):
        write_report(tmp_path / "none")


def test_only_parameters_that_matter_are_shown():
    result = synthetic.analyse(priced(1))
    result["parameters"].update(only="", red_min=5, kappa_young=0.0, rtt="last",
                                warmup_s=7.0)
    shown, others = about.parameters(result)
    names = [name for name, _, _ in shown]
    assert {"gamma", "target", "kappa", "warmup_s"} <= set(names)
    assert "only" not in names + [name for name, _, _ in others]
    assert "red_min" in [name for name, _, _ in others]
    assert ["warmup_s", "7", "length of the warm-up, s: no rate or mean includes it"] in shown
    # What another queue has is shown where somebody has set it.
    result["parameters"]["red_min"] = 6
    assert "red_min" in [name for name, _, _ in about.parameters(result)[0]]
    # So is what only some experiments have, and what differs from their defaults.
    result = synthetic.analyse(priced(1))
    result["experiment"] = "parking-lot"
    result["parameters"].update(scale="few", rate_mbit=48.0)
    names = [name for name, _, _ in about.parameters(result)[0]]
    assert "scale" not in names and "rate_mbit" in names
    result["parameters"].update(scale="many", rate_mbit=96.0)
    names = [name for name, _, _ in about.parameters(result)[0]]
    assert "scale" in names and "rate_mbit" in names
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


def _group(cases, aqm="pfifo", **links):
    """A page's group: cases are (queue, changed links) of one flow each."""
    raw = {"experiment": "mine", "links": links, "cases": [
        {"name": str(number), "flows": [{}], "aqm": words, "links": changed}
        for number, (words, changed) in enumerate(cases)]}
    return types.SimpleNamespace(raw=raw, results=[], outcome={
        "parameters": {"cc": "cubic", "aqm": aqm, "duration_s": 9.0}, "columns": [1]})


@pytest.mark.parametrize("cases, queues, said", [
    ([("pfifo limit 9", {})], (None, None), "1 flow over 2 links of 1 to 2 Mbit/s, with the "
     "congestion control cubic and the queue pfifo."),
    ([("pfifo limit 9", {}), ("pfifo limit 9", {"a": 8e6})], (None, "red"),
     "2 cases, each of 1 flow, over 2 links of 1 to 8 Mbit/s, with the congestion control "
     "cubic, and links without a queue of their own have the queue pfifo."),
    ([("pfifo", {})], ("red", "pie"), "1 flow over 2 links of 1 to 2 Mbit/s, with the "
     "congestion control cubic; each link has a queue of its own."),
    ([("pfifo", {})], ("red", "red"), "1 flow over 2 links of 1 to 2 Mbit/s, with the "
     "congestion control cubic and the queue red."),
    ([("pfifo", {}), ("codel", {})], (None, None), "2 cases, each of 1 flow, over 2 links of "
     "1 to 2 Mbit/s, with the congestion control cubic; cases have queues of their own.")])
def test_the_first_sentence(cases, queues, said):
    """It has the rates of all cases, and says which links have the queue of the run."""
    def link(bps, queue):
        return {"capacity_bps": bps, "bottleneck": True, **({"queue": queue} if queue else {})}

    group = _group([(words, {name: link(bps, None) for name, bps in changed.items()})
                    for words, changed in cases],
                   a=link(1e6, queues[0]), b=link(2e6, queues[1]))
    assert about._what([group]) == said
    # A file without a docstring says nothing more, not even an empty paragraph.
    group.results.append({"provenance": {"place": "model"}})
    assert about.sentences([group])[:-1] == [said] and all(about.sentences([group]))


def test_the_queue_of_a_link_that_is_not_the_same_in_all_runs():
    groups = [_group([("pfifo", {})], a={"queue": words}, b={"queue": "red"}, c={})
              for words in ("sbrm delay 5ms", "sbrm delay 9ms")]
    assert [link.get("queue") for link in page_module._same_queues(groups)["links"].values()] \
        == ["of the run", "red", None]
