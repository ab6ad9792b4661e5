# SPDX-License-Identifier: GPL-2.0
"""A user's own experiment: its file, and what is wrong in it."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib import papers  # noqa: E402
from tollwaylib.commands.new import SKELETON, command_new  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.experiments import jobs, own, plan  # noqa: E402
from tollwaylib.guest import topologies  # noqa: E402
from tollwaylib.paths import TOP  # noqa: E402
from tollwaylib.results import analysis  # noqa: E402
from tollwaylib.results.metrics import KINDS  # noqa: E402

# Line 1 is the title.
GOOD = '''title = "One link"
links = {
    "core": {"from": "a", "to": "b", "rate": "20Mbit", "delay": "10ms"},
    "home": {"from": "b", "to": "a", "rate": "5Mbit", "delay": "5ms",
             "queue": "pfifo limit 50", "schedule": [("3s", "1Mbit")]},
}
paths = {
    "p": {"links": ["core"], "rtt": "40ms"},
    "q": {"links": ["home"]},
}
flows = [
    {"path": "p", "count": 2, "start": "0s", "stop": "9s"},
    {"path": "q", "name": "transfer", "bytes": "2MB", "cc": "sbrm"},
    {"path": "q", "name": "call", "udp": "1Mbit", "packet": 500,
     "arrival": "poisson"},
]
duration = "10s"
warmup = "2s"
cc = "cubic"
queue = "fq_codel"
metrics = [("utilization", "core"), ("goodput_mbit", "p")]
bounds = [("delay_p99_ms", "home", "<=", 100)]
variants = {
    "one": {"cc": "reno", "settings": {"fifo_limit": 9}},
    "two": {"queue": "pfifo"},
}
settings = {"initcwnd": 3}
cases = {
    "whole": {"links": {"core": {"schedule": [("2s", "6Mbit"), ("4s", "9Mbit")]}}},
    "slow": {"links": {"core": {"rate": "10Mbit", "delay": "1ms"}},
             "flows": {"p": 5, "call": 0}, "x": 1.5, "series": "s"},
}
x_title = "a number"
programs = [{"node": "a", "name": "one", "command": "sleep '9 9'",
             "files": {"f": "text"}, "keep": ["g"]}]
published = [{"metric": ("utilization", "core"), "value": 0.9, "source": "X",
              "tolerance": 0.1, "case": "slow", "cc": "sbrm", "queue": "delay",
              "better": "higher"}]
figures = [("queue", "slow"), ("rates",), ("curve", "utilization", "core")]
'''


def written(folder, text, name="mine.py"):
    path = folder / name
    path.write_text(text)
    return str(path)


def job(experiment, cc=None, aqm=None):
    cc, aqm = cc or experiment.cc, aqm or experiment.aqm
    values = plan.parse_settings(experiment, [], cc, aqm)
    return jobs.job(experiment, cc, aqm, values, experiment.duration_s, 1)


def test_a_file_becomes_a_job(tmp_path):
    experiment = papers.get(written(tmp_path, GOOD))
    assert (experiment.name, experiment.title) == ("mine", "One link")
    made = job(experiment)
    network = topologies.Built(aqm=made["aqm"], **made["topology"])
    assert network.links_described == {
        "core": {"capacity_bps": 20 * 10**6, "delay_ms": 10.0,
                 "bottleneck": True, "routers": ["a", "b"]},
        "home": {"capacity_bps": 5 * 10**6, "delay_ms": 5.0,
                 "bottleneck": True, "routers": ["b", "a"],
                 "queue": "pfifo limit 50"}}
    # There and back: 10 and 5 ms, and what is left of 40 ms at the hosts.
    assert {name: (path["source"], path["sink"], path["links"], path["rtt_ms"])
            for name, path in network.paths.items()} == {
        "p": ("s1", "d1", ["core"], 40.0), "q": ("s2", "d2", ["home"], 15.0)}
    ends = network.ends()
    assert (ends["r1-r2"][1]["aqm"], ends["r2-r1"][1]["aqm"]) \
        == (made["aqm"], "pfifo limit 50")
    assert made["queues"] == ["pfifo limit 50"]
    assert [ends[device][1]["delay_ms"] for device in ("r1-r2", "r2-r1")] \
        == [10.0, 5.0]
    case, slow = made["cases"]
    assert (case["network"], case["x"]) == (None, None)
    assert [(flow["name"], flow["cc"], flow["start_s"], flow["stop_s"])
            for flow in case["flows"]] == [
        ("p 1", "cubic", 0.0, 9.0), ("p 2", "cubic", 0.0, 9.0),
        ("transfer", "sbrm", 0.0, 10.0), ("call", None, 0.0, 10.0)]
    words = [flow["words"] for flow in case["flows"]]
    assert words[:3] == ["", "", "bytes=2000000"]
    assert words[3].startswith("proto=udp rate=1000000 size=472 overhead=28 "
                               "arrival=poisson")
    # Where marks have to be echoed, the receiver runs the control, too.
    assert (made["sink_cc"], made["echo"]) == (None, {"q": "sbrm"})
    assert made["parameters"]["initcwnd"] == 3
    assert [(bound["name"], bound["case"], bound["metric"])
            for bound in made["bounds"]] == [
        ("delay_p99_ms of home", name, "delay_p99_ms home")
        for name in ("whole", "slow")]
    # What the case changes, and round trips that stay where they are set.
    assert (slow["x"], slow["series"]) == (1.5, "s")
    assert [case["rates"] for case in (case, slow)] == [
        [[2.0, 6 * 10**6, "core"], [3.0, 10**6, "home"], [4.0, 9 * 10**6, "core"]],
        [[3.0, 10**6, "home"]]]
    assert [flow["name"] for flow in slow["flows"]] == [
        *(f"p {number}" for number in range(1, 6)), "transfer"]
    network = topologies.Built(aqm=made["aqm"], **slow["network"])
    assert network.links_described["core"]["capacity_bps"] == 10**7
    assert [network.paths[name]["rtt_ms"] for name in "pq"] == [40.0, 6.0]
    assert set(network.ends()) == set(ends)
    assert network.called == {"a": "r1", "b": "r2", "source of p": "s1",
                              "sink of p": "d1", "source of q": "s2",
                              "sink of q": "d2"}
    assert made["x_title"] == "a number"
    assert [case["programs"] for case in made["cases"]] == 2 * [[
        {"name": "one", "node": "a", "words": ["sleep", "9 9"],
         "files": {"f": "text"}, "keep": ["g"]}]]
    assert made["published"] == [{"setup": {"capacity_bps": {}}, "rows": [{
        "name": "X", "paper": "X", "setup": {}, "pairs": [["sbrm", "delay"]],
        "baseline": False, "numbers": [{
            "name": "utilization core, slow", "case": "slow",
            "metric": "utilization core", "value": 0.9, "unit": "%",
            "tolerance": 0.1, "better": "higher"}]}]}]
    assert made["pictures"] == [["queue", "slow"], ["throughput", "whole"],
                                ["curve", "utilization core"]]
    assert [spec["key"] for spec in made["metrics"]] == [
        "utilization core", "goodput_mbit p", "delay_p99_ms home"]
    assert [(variant.name, variant.cc, variant.aqm)
            for variant in plan.variants(experiment, plan.parse_settings(
                experiment, [], with_setup=False))] \
        == [("one", "reno", "fq_codel"), ("two", "cubic", "pfifo")]


def test_every_metric_by_name_is_one():
    assert {kind for kind, *_ in own.METRICS.values()} <= set(KINDS)


# A change of GOOD, the line that is wrong then, and what is said of it.
WRONG = (
    ('"One link"', '""', 1, "title is '': give a text of one line"),
    ('"One link"', '1', 1, "title is 1"),
    ('"from": "a"', '"from": 3', 3,
     "links['core']['from'] is 3: give a text of at most 40 letters"),
    ('"to": "b"', '"to": "a"', 3, "leads from a to itself: give two routers"),
    ('"to": "b"', '"to": 4', 3, "links['core']['to'] is 4: give a text of"),
    ('"20Mbit"', '"20"', 3, "links['core']['rate'] is '20': give a text such "
     "as '10Mbit', from 100kbit to 10Gbit"),
    ('"20Mbit"', '"20Gbit"', 3, "from 100kbit to 10Gbit"),
    ('"10ms"', '10', 3, "links['core']['delay'] is 10: give a text such as "
     "'20ms' or '1.5s', from 0s to 1e+06s"),
    ('"delay": "10ms"', '"dely": "10ms"', 3, "links['core'] has no 'dely': it "
     "has from, to, rate, delay, queue"),
    ('"rate": "5Mbit", ', '', 4, "links['home'] has no rate: it needs from, "
     "to, rate"),
    ('"pfifo limit 50"', '50', 5, "links['home']['queue'] is 50: give a text"),
    ('[("3s", "1Mbit")]', '"1Mbit"', 5, "links['home']['schedule'] is '1Mbit': "
     "give a list of (time, rate)"),
    ('("3s", "1Mbit")', '("3s",)', 5, "links['home']['schedule'][0] is ('3s',): "
     "give (time, rate)"),
    ('("3s", "1Mbit")', '("3", "1Mbit")', 5, "links['home']['schedule'][0] is '3'"
     ": give a text such as '20ms'"),
    ('("3s", "1Mbit")', '("3s", "1")', 5, "links['home']['schedule'][0] is '1': "
     "give a text such as '10Mbit'"),
    ('"3s"', '"0s"', 5, "is at 0s: give a time after 0s and before the end, 10s"),
    ('"3s"', '"10s"', 5, "is at 10s: give a time after 0s and before"),
    ('"delay": "1ms"}}', '"delay": "1ms"}, "home": {"rate": "4Mbit"}}', 30,
     "cases['slow']['links']['home'] has another rate, and the link has a schedule"
     ": give the case a schedule, too, [] for none"),
    ('"4s"', '"2s"', 29, "cases['whole']['links']['core']['schedule'][1] is at "
     "2s: give a time after 2s and before the end, 10s"),
    ('"core": {', '"co re": {', 3, "links['co re'] is 'co re': give a text of "
     "at most 40 letters, digits and ._-"),
    ('"from": "b", "to": "a"', '"from": "a", "to": "b"', 4,
     "links['home'] has the routers of core: one link is allowed"),
    ('["core"]', '["cre"]', 8, "paths['p']['links'][0] is 'cre': give the name "
     "of a link, 'core' or 'home'"),
    ('["core"]', '"core"', 8, "give a list of links, in the order in "
     "which packets cross them"),
    ('["core"]', '["core", "core"]', 8, "give links that follow one another"),
    ('["core"]', '["core", "home"]', 8, "visits a router twice, but"),
    ('"40ms"', '"4ms"', 8, "paths['p']['rtt'] is 4ms: give 15ms at least"),
    ('["home"]', '["core"]', 4, "links['home'] is in no path"),
    ('{"path": "p"', '{"path": "r"', 12, "flows[0]['path'] is 'r': give the "
     "name of a path, 'p' or 'q'"),
    ('"count": 2', '"count": 0', 12, "flows[0]['count'] is 0: give a whole "
     "number from 1 to 10000"),
    ('"0s"', '"9s"', 12, "flows[0] runs from 9s to 9s: give a start before"),
    ('"9s"', '"11s"', 12, "a stop within the duration of 10s"),
    ('"start": "0s"', '"start": 0', 12, "flows[0]['start'] is 0"),
    ('"stop": "9s"', '"stop": 9', 12, "flows[0]['stop'] is 9: give a text such "
     "as '20ms' or '1.5s'"),
    ('"name": "transfer"', '"name": None', 13, "flows[1]['name'] is None"),
    ('"2MB"', '"2Mbit"', 13, "flows[1]['bytes'] is '2Mbit': give a text such "
     "as '3MB', from 1B to 1e+12B"),
    ('"cc": "sbrm"', '"cc": 7', 13, "flows[1]['cc'] is 7: give a text"),
    ('"bytes": "2MB"', '"packet": 100', 13,
     "flows[1] has 'packet': a TCP flow has no such field"),
    ('"udp": "1Mbit"', '"udp": "1Mbit", "cc": "reno"', 14,
     "flows[2] has 'cc': a UDP flow (udp) has no such field"),
    ('"udp": "1Mbit"', '"udp": 5', 14, "flows[2]['udp'] is 5: give a text such "
     "as '10Mbit', from 100kbit to 10Gbit"),
    ('"packet": 500', '"packet": 63', 14, "flows[2]['packet'] is 63: give a "
     "whole number from 64 to 1514"),
    ('"poisson"', '"pareto"', 15, "flows[2]['arrival'] is 'pareto': give 'cbr' "
     "or 'poisson'"),
    ('"10s"', '10', 17, "duration is 10: give a text such as '30s'"),
    ('"2s"', '"10s"', 18, "warmup is 10s: give less than the duration of 10s"),
    ('"2s"', 'None', 18, "warmup is None: give a text such as '20ms'"),
    ('cc = "cubic"', 'cc = []', 19, "cc is []: give a text of one line"),
    ('queue = "fq_codel"', 'queue = " "', 20, "queue is ' ': give a text of"),
    ('("utilization", "core")', '("usage", "core")', 21,
     "metrics[0] is 'usage': give the name of a metric, 'utilization', "),
    ('"pfifo limit 50"', '"pfifoo limit 50"', 5, "links['home']['queue'] is 'pfifoo "
     "limit 50': did you mean 'pfifo'? Otherwise give 'alpha', 'fq_rr', 'sbrm', "),
    ('"pfifo limit 50"', '"pfifo \'50"', 5, "links['home']['queue'] is \"pfifo '50\": "
     "No closing quotation"),
    ('"cc": "sbrm"', '"cc": "sbrn"', 13, "flows[1]['cc'] is 'sbrn': did you mean 'sbrm'? "
     "Otherwise give the name of a congestion control, 'alpha', 'bbr', "),
    # The variants have others, so that these two are never run.
    ('cc = "cubic"', 'cc = "qubic"', 19, "cc is 'qubic': did you mean 'cubic'? Otherwise "
     "give the name of a congestion control, "),
    ('queue = "fq_codel"', 'queue = "fq_kodel"', 20, "queue is 'fq_kodel': did you mean "
     "'fq_codel'? Otherwise give "),
    ('"cc": "reno"', '"cc": "zz"', 24, "variants['one']['cc'] is 'zz': give the name of a "
     "congestion control, 'alpha', "),
    ('{"queue": "pfifo"}', '{"queue": "delai"}', 25, "variants['two']['queue'] is 'delai': "
     "did you mean 'delay'? Otherwise give "),
    ('"sleep \'9 9\'"', '"sleeep 9"', 34, "programs[0]['command'] is 'sleeep': give a "
     "program that is installed: there is no 'sleeep'"),
    ('"sleep \'9 9\'"', '"./sleep 9"', 34, "programs[0]['command'] is './sleep': give "
     "the name of a program, or a path that begins with /"),
    ('("utilization", "core")', '("utilization", "p")', 21,
     "metrics[0] is 'p': give the name of a link for utilization, 'core' or 'home'"),
    ('("goodput_mbit", "p")', '("goodput_mbit", "call")', 21,
     "give the name of TCP flows for goodput_mbit, 'p' or 'transfer'"),
    ('("utilization", "core")', '"utilization"', 21,
     "metrics[0] is 'utilization': give (name, link or flows)"),
    ('"<="', '"<"', 22, "bounds[0] is '<': give '<=' or '>='"),
    ('100)', '"100")', 22, "bounds[0] is '100': give a number"),
    ('100)', 'float("inf"))', 22, "bounds[0] is inf: give a number"),
    ('"<=", 100', '100', 22, "give (name, link or flows, '<=' or '>=', number"),
    ('"cc": "reno"', '"kc": "reno"', 24, "variants['one'] has no 'kc': it has "
     "cc, queue, settings"),
    ('"cc": "reno"', '"cc": 5', 24,
     "variants['one']['cc'] is 5: give a text of one line"),
    ('"fifo_limit": 9', '"fifo_limit": 0', 24,
     "settings['fifo_limit'] is 0: give a number from 1 to 1e+06"),
    ('"queue": "pfifo"', '"queue": 1', 25, "variants['two']['queue'] is 1"),
    ('"initcwnd": 3', '"initcwmd": 3', 27,
     "settings has no 'initcwmd': did you mean initcwnd?"),
    ('"initcwnd": 3', '"initcwnd": "x"', 27,
     "settings['initcwnd'] is 'x': 'x' is not a whole number"),
    ('"initcwnd": 3', '"limit": 5', 27,
     "settings: target (10) must be below limit (5)"),
    ('"fifo_limit": 9', '"target": 2000', 24,
     "variants['one']: settings: target (2000) must be below limit (1000)"),
    ('("utilization", "core")', '([], "core")', 21, "metrics[0] is []: give the"),
    ('"path": "q", "name": "transfer"', '"path": "q", "name": []', 13,
     "flows[1]['name'] is []: give a text of at most"),
    ('"path": "q", "name": "transfer"', '"name": "transfer"', 13,
     "flows[1] has no path: it needs path"),
    ('flows = [', 'flows = [{"path": []}]\n_x = [', 11, "flows[0]['path'] is []: give"),
    ('"slow": {', '"WHOLE": {', 30, "cases has 'whole' and 'WHOLE': give names "
     "that differ in letters or digits"),
    ('cases = {', 'cases = []\n_x = {', 28, "cases is []: give a dict"),
    ('"p": 5', '"p": 10000', 31, "cases['slow']['flows'] are 10001: give 10000"),
    ('"x": 1.5', '"x": 10**400', 31, "cases['slow']['x'] is 1000000000000000000"),
    ('"initcwnd": 3', '"initcwnd": 10**5000', 27, "settings['initcwnd'] is a int:"),
    ('"sleep \'9 9\'"', '"ping {address:a}"', 34, "programs[0]['command'] is 'a': "
     "give {address:X} with a host as X, 'source of p', 'sink of p', "),
    ('"sleep \'9 9\'"', '"ping {adress:sink of p}"', 34, "programs[0]['command'] has "
     "{adress:...}: did you mean {address:...}?"),
    ('["g"]', '["log"]', 35, "programs[0]['keep'][0] is 'log': the file log has "
     "the output of the program: give another name"),
    ('("queue", "slow")', '("queue", "slow", "x")', 39, "figures[0] is ('queue', "
     "'slow', 'x'): give (name of a figure, case), or"),
    ('"metric": ("utilization", "core")', '"metric": "utilization core"', 36,
     "published[0]['metric'] is 'utilization core': give (name, link or flows)"),
    ('title = "One link"', 'import sys; sys.exit(0)', 1, "SystemExit: 0"),
    ('title = "One link"', '_x = ' + 100000 * '-' + '1', 1, ""),
    ('"slow": {', '"slow": {"y": 1, ', 30,
     "cases['slow'] has no 'y': it has links, flows, x, series"),
    ('{"core": {"rate": "10M', '{"cor": {"rate": "10M', 30,
     "cases['slow']['links']['cor'] is 'cor': give the name of a link, "),
    ('"10Mbit"', '"10"', 30,
     "cases['slow']['links']['core']['rate'] is '10': give a text such as"),
    ('"1ms"', '1', 30, "cases['slow']['links']['core']['delay'] is 1: give"),
    ('"1ms"', '"1s"', 30, "cases['slow']: paths['p']['rtt'] is 40ms: give "
     "1005ms at least"),
    ('{"p": 5, "call": 0}', '5', 31, "cases['slow']['flows'] is 5: give a dict"),
    ('"p": 5', '"r": 5', 31, "cases['slow']['flows']['r'] is 'r': give the name "
     "of flows, 'p', 'transfer' or 'call'"),
    ('"p": 5', '"p": -5', 31, "cases['slow']['flows']['p'] is -5: give a whole "
     "number from 0"),
    ('"p": 5', '"p": 0, "transfer": 0', 31,
     "cases['slow'] has no flow: give a number above 0 to one of them"),
    ('"name": "call", "udp"', '"name": "p", "udp"', 31,
     "cases['slow']['flows']['p']: 2 entries of flows have this name"),
    ('"x": 1.5', '"x": "1"', 31, "cases['slow']['x'] is '1': give a number"),
    ('"series": "s"', '"series": 1', 31, "cases['slow']['series'] is 1: give a"),
    ('"series": "s"', '"series": "_s"', 31,
     "cases['slow']['series'] is '_s': give a text that does not begin with _"),
    ('"series": "s"', '"series": "$x$"', 31,
     "cases['slow']['series'] is '$x$': give a text with at most one $"),
    ('"One link"', '"$x$"', 1, "title is '$x$': give a text with at most one $"),
    ('"a number"', '"$x$"', 33, "x_title is '$x$': give a text with at most one $"),
    ('"source": "X"', '"source": "$x$"', 36,
     "published[0]['source'] is '$x$': give a text with at most one $"),
    ('"a number"', '7', 33, "x_title is 7: give a text of one line"),
    ('"node": "a"', '"node": "c"', 34, "programs[0]['node'] is 'c': give the "
     "name of a node, 'a', 'b', 'source of p', 'sink of p', 'source of q' or"),
    ('"name": "one"', '"name": "a b"', 34, "programs[0]['name'] is 'a b'"),
    ('"sleep \'9 9\'"', '"sleep \'9 9"', 34, "programs[0]['command'] is "
     '"sleep \'9 9": No closing quotation'),
    ('"sleep \'9 9\'"', '"\'\' 9"', 34, "programs[0]['command'] is blank: give a "
     "program and its arguments"),
    ('{"f": "text"}', '{"f": 1}', 35, "programs[0]['files']['f'] is 1: give the "
     "text of the file"),
    ('{"f": "text"}', '{"../f": ""}', 35, "programs[0]['files']['../f'] is"),
    ('["g"]', '"g"', 35, "programs[0]['keep'] is 'g': give a list of names of"),
    ('"metric": ("utilization", "core")', '"metric": ("jain", "core")', 36,
     "published[0]['metric'] is 'jain core': give a metric of the experiment"),
    ('"value": 0.9', '"value": "0.9"', 36, "published[0]['value'] is '0.9': give "
     "a number"),
    ('"source": "X"', '"source": ""', 36, "published[0]['source'] is '': give a"),
    ('"tolerance": 0.1', '"tolerance": -1', 37, "published[0]['tolerance'] is -1: "
     "give a number of 0 or more"),
    ('"case": "slow"', '"case": "slo"', 37, "published[0]['case'] is 'slo': give "
     "the name of a case, 'whole' or 'slow'"),
    ('"cc": "sbrm", "queue": "delay"', '"cc": 1, "queue": "delay"', 37,
     "published[0]['cc'] is 1: give a text"),
    ('"queue": "delay"', '"queue": 1', 37, "published[0]['queue'] is 1: give a"),
    ('"higher"', '"more"', 38, "published[0]['better'] is 'more': give 'higher' "
     "or 'lower'"),
    ('("queue", "slow")', '("quue", "slow")', 39, "figures[0] is 'quue': give "
     "the name of a figure, 'rates', 'queue', "),
    ('("queue", "slow")', '("queue", "slo")', 39,
     "figures[0] is 'slo': give the name of a case, 'whole' or 'slow'"),
    ('("queue", "slow")', '"queue"', 39, "figures[0] is 'queue': give (name of "
     "a figure, case), or ('curve', name of a metric, link or flows)"),
    ('"curve", "utilization"', '"curve", "jain"', 39, "figures[2] is 'jain core': "
     "give a metric of the experiment with its link or flows, 'utilization "),
    ('"x": 1.5, ', '', 39, "figures[2]: no case has an x, which a curve needs"),
    ('100)', '100, "slo")', 22, "bounds[0] is 'slo': give the name of a case"),
    ('settings = {"initcwnd": 3}', 'setings = {}', 27,
     "there is no field setings: did you mean settings?"),
    ('links = {', 'links = {}\n_x = {', 2, "links is {}: give a dict"),
    ('flows = [', 'flows = ()\n_x = [', 11, "flows is (): give a list with 1"),
    ('"One link"', '"One link', 1, "unterminated string literal"),
    ('"One link"', '1 / 0', 1, "ZeroDivisionError: division by zero"),
)


@pytest.mark.parametrize("old, new, line, said", WRONG,
                         ids=[str(number) for number in range(len(WRONG))])
def test_an_error_is_one_sentence_with_its_line(tmp_path, old, new, line,
                                                said):
    assert GOOD.count(old) >= 1, old
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(TollwayError) as error:
        papers.get(path)
    sentence = str(error.value)
    assert sentence.startswith(f"{path}:{line}: "), sentence
    assert said in sentence and "\n" not in sentence, sentence


def test_settings_are_judged_together(tmp_path):
    """What is wrong by itself may be right with the others, and with those that
    the file has for all variants."""
    papers.get(written(tmp_path, GOOD.replace(
        '"initcwnd": 3', '"limit": 5, "target": 2').replace(
        '"fifo_limit": 9', '"limit": 4')))
    with pytest.raises(TollwayError, match=r"mine.py:24: variants\['one'\]: "
                                           r"settings: target \(2\) must"):
        papers.get(written(tmp_path, GOOD.replace(
            '"initcwnd": 3', '"limit": 5, "target": 2').replace(
            '"fifo_limit": 9', '"limit": 2')))


def inner_fields(tmp_path, begin):
    """The fields of an entry, which begins so in GOOD: what is said of one that
    it does not have names them."""
    path = written(tmp_path, GOOD.replace(begin, begin + '"zz": 1, ', 1))
    with pytest.raises(TollwayError, match="has no 'zz': it has ") as error:
        papers.get(path)
    return str(error.value).split(" it has ")[1].split(", ")


def test_each_field_has_an_error(tmp_path):
    """Of the fields, and of those of links, paths, flows and more."""
    told = " ".join(said for *_, said in WRONG)
    for field in own.FIELDS:
        assert f"{field} " in told or f"{field}[" in told, field
    for field, begin in (("links", '"core": {'), ("paths", '"p": {'),
                         ("flows", "flows = [\n    {"),
                         ("variants", '"one": {'), ("cases", '"slow": {'),
                         ("programs", "programs = [{"),
                         ("published", "published = [{")):
        for inner in inner_fields(tmp_path, begin):
            # Of the settings of a variant it is said as of those of the file.
            assert re.search(rf"\b{field}\[[^]]+\](\['{inner}'\]|: {inner}\b)",
                             told), f"{field}: {inner}"


def test_a_loop_is_refused(tmp_path):
    """There would be two ways, and nobody says which packets take."""
    links = "".join(
        f'"l{first}": {{"from": "{first}", "to": "{second}", '
        f'"rate": "1Mbit"}},\n' for first, second in ("ab", "bc", "ca"))
    path = written(tmp_path, f"links = {{\n{links}}}\n" + "\n".join(
        GOOD.splitlines()[6:]))
    with pytest.raises(TollwayError, match=r"mine.py:4: links\['lc'\] closes "
                                           "a loop"):
        papers.get(path)


def test_other_files_are_refused(tmp_path):
    for name, said in (("there-is-none.py", "cannot be read: No such file"),
                       ("parking-lot.py", "there is an experiment parking-lot "
                        "already: rename the file"),
                       ("a b.py", "rename the file")):
        path = str(tmp_path / name)
        if "none" not in name:
            written(tmp_path, GOOD, name)
        with pytest.raises(TollwayError, match=said):
            papers.get(path)


def test_a_new_file_is_an_experiment(tmp_path, capsys):
    path = tmp_path / "my-experiment.py"
    assert command_new(str(path)) == 0
    assert f"tollway run {path}" in capsys.readouterr().out
    experiment = papers.get(str(path))
    assert experiment.name == "my-experiment"
    # It names each field.
    for field in own.FIELDS:
        assert f"\n{field} = " in SKELETON, field
    for name in own.METRICS:
        assert name in SKELETON
    with pytest.raises(TollwayError, match="exists already"):
        command_new(str(path))
    with pytest.raises(TollwayError, match="give the name of a file as"):
        command_new(str(tmp_path / "x.txt"))
    with pytest.raises(TollwayError, match="cannot be written"):
        command_new(str(tmp_path / "none/x.py"))


def test_a_host_in_a_command_is_one_word(tmp_path):
    for given, words in (("ping {address:sink of p}", ["ping", "{address:sink of p}"]),
                         ("sh 'b {address:source of q}:1'",
                          ["sh", "b {address:source of q}:1"])):
        made = job(papers.get(written(tmp_path, GOOD.replace("sleep '9 9'", given))))
        assert made["cases"][0]["programs"][0]["words"] == words


def test_a_short_run_has_the_changes_until_its_end(tmp_path):
    experiment = papers.get(written(tmp_path, GOOD))
    values = plan.parse_settings(experiment, [], "cubic", "fq_codel")
    made = jobs.job(experiment, "cubic", "fq_codel", values, 4.0, 1)
    assert made["cases"][0]["rates"] == [[2.0, 6 * 10**6, "core"],
                                         [3.0, 10**6, "home"]]


def test_cases_and_programs_run(tmp_path):
    """Links that differ from case to case, and a program beside the flows."""
    path = written(tmp_path, """
links = {"core": {"from": "a", "to": "b", "rate": "5Mbit"}}
paths = {"p": {"links": ["core"], "rtt": "20ms"}}
flows = [{"path": "p"}, {"path": "p", "name": "file", "bytes": "100kB"}]
# A delay where the link has none, and one less where its hosts have all of it.
cases = {f"{_mbit}Mbit": {"links": {"core": {"rate": f"{_mbit}Mbit",
                                             "delay": f"{_ms}ms"}},
                          "flows": {"file": _file}, "x": _mbit}
         for _mbit, _ms, _file in ((5, 10, 1), (10, 0, 0))}
x_title = "rate of the core, Mbit/s"
programs = [{"node": "a", "name": "echo", "keep": ["said"], "command":
             "sh -c 'ping -c 1 {address:sink of p} > pinged; "
             "cp given said; exec sleep 1000'",
             "files": {"given": '{"answer": 42}'}}]
duration = "4s"
warmup = "2s"
metrics = [("utilization", "core"), ("goodput_mbit", "p"),
           ("completion_ms", "file"), ("jain", "p")]
bounds = [("utilization", "core", ">=", 0.9),
          ("goodput_mbit", "p", ">=", 9, "10Mbit"),
          ("completion_ms", "file", ">=", 20)]
published = [{"metric": ("goodput_mbit", "p"), "case": "10Mbit", "value": _value,
              "tolerance": 1, "source": _source, **_more}
             for _value, _source, _more in (
                 (9.5, "A", {}), (12, "B", {}), (3, "C", {"better": "higher"}),
                 (9.5, "D", {"cc": "reno"}))]
published += [{"metric": ("jain", "p"), "value": 1, "source": "E"}]
""")
    out = tmp_path / "out"
    done = subprocess.run(
        [str(TOP / "scripts/tollway"), "run", path, "--json", "-", "--out",
         str(out)], text=True, stdin=subprocess.DEVNULL, capture_output=True,
        check=False, timeout=600)
    # One published value differs.
    assert done.returncode == 1, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert [(entry["paper"], entry["verdict"]) for entry in result["published"]] \
        == [("A", "agrees"), ("B", "differs"), ("C", "better"), ("E", "agrees")]
    assert [entry["unit"] for entry in result["published"]] \
        == 3 * ["Mbit/s"] + [None]
    assert "1 published value is not compared, as there was no run of reno over " \
        "fq_codel." in done.stderr
    cases = result["cases"]
    assert [(case["name"], case["x"]) for case in cases] == [("5Mbit", 5),
                                                             ("10Mbit", 10)]
    first, second = (case["metrics"]["goodput_mbit p"] for case in cases)
    assert 4 < first < 5 and second == pytest.approx(2 * first, rel=0.02)
    # A case without such flows has no such time, and no bound on it.
    assert [case["metrics"]["completion_ms file"] is None for case in cases] \
        == [False, True]
    assert all(bound["verdict"] == "holds" for bound in result["bounds"])
    assert len(result["bounds"]) == 4
    raw = json.loads((out / "seed-1/raw.json").read_text())
    for case in raw["cases"]:
        assert case["programs"]["echo"]["node"] == "a"
        assert case["programs"]["echo"]["output"]["said"] == {"answer": [42]}
    pinged = list(out.glob("seed-1/programs/*/echo/pinged"))
    assert len(pinged) == 2 and all(
        " 0% packet loss" in path.read_text() for path in pinged)
    # A run of before the file was changed is not averaged with this one.
    other = json.loads((out / "seed-1/raw.json").read_text())
    other["seed"], other["trace_sha256"] = 2, "1" * 64
    other["metrics"] = [spec for spec in other["metrics"]
                        if spec["kind"] != "jain"]
    other["pictures"] = [["curves", [
        panel for panel in what if not panel["key"].startswith("jain")]]
        for kind, what in other["pictures"] if kind == "curves"]
    del other["published"]
    (out / "seed-2").mkdir()
    (out / "seed-2/raw.json").write_text(json.dumps(other))
    (out / "seed-2/result.json").write_text(json.dumps(analysis.analyse(other)))
    again = subprocess.run(
        [str(TOP / "scripts/tollway"), "report", str(out)], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600)
    assert again.returncode == 2 and "cannot be averaged" in again.stderr
    # But it may stand beside it, as a run with other parameters.
    other["parameters"]["initcwnd"] = 20
    for name, content in (("raw", other), ("result", analysis.analyse(other))):
        (out / f"seed-2/{name}.json").write_text(json.dumps(content))
    again = subprocess.run(
        [str(TOP / "scripts/tollway"), "report", str(out)], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600)
    assert again.returncode in (0, 1), again.stderr
    figures = {path.name for path in out.glob("figures/*.svg")}
    assert any("curves" in name or "utilization-core" in name
               for name in figures), figures
