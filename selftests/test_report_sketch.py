# SPDX-License-Identifier: GPL-2.0
"""The sketch of a network in a report."""

from tollwaylib.report import about
from tollwaylib.report.plotting import Look
from tollwaylib.report.sketch import sketch

pytest_plugins = ["report_bench"]


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
    made["links"]["R2"]["queue"] = "pfifo limit 9"
    # The same hosts: one link leads back to where the other begins.
    made["paths"]["2"].update(source="d1", sink="s1")
    drawing = sketch(made, Look(), "queue q")
    assert [link["queue"] for link in drawing["links"]] == ["queue q", "queue pfifo limit 9"]
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
