# SPDX-License-Identifier: GPL-2.0
"""The descriptions of the experiments against the papers' tables."""

import dataclasses
import math
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib import components, files, papers  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.experiments import jobs, plan, published  # noqa: E402
from tollwaylib.experiments import workload  # noqa: E402
from tollwaylib.experiments.parameters import deciding  # noqa: E402
from tollwaylib.guest import links, topologies  # noqa: E402
from tollwaylib.theory import pricing  # noqa: E402


def job(name, cc="sbrm", aqm="sbrm", words=(), duration_s=None):
    experiment = papers.get(name)
    values = plan.parse_settings(experiment, words, cc, aqm)
    return jobs.job(experiment, cc, aqm, values,
                    duration_s or experiment.duration_s, 1)


def built(name, **keywords):
    """The topology of an experiment, as its job asks for it."""
    return topologies.Built(aqm="sbrm", **job(name, **keywords)["topology"])


def active(flows, time):
    """{path: flows that run at a time}."""
    count = {}
    for flow in flows:
        if flow["start_s"] <= time < flow["stop_s"]:
            count[flow["path"]] = count.get(flow["path"], 0) + 1
    return count


# --- the parking lot -------------------------------------------------------

def test_parking_lot_is_that_of_table_441():
    paths = built("parking-lot").paths
    assert {name: (len(path["links"]) + 1, path["rtt_ms"])
            for name, path in paths.items()} == {
        "S3": (2, 20), "S5": (2, 52), "S7": (2, 20), "S9": (2, 20),
        "S2": (3, 68), "S4": (3, 68), "S6": (3, 36), "S1": (5, 100)}
    assert {name: path["sink"] for name, path in paths.items()} == {
        "S3": "d5", "S5": "d7", "S7": "d9", "S9": "d11",
        "S2": "d6", "S4": "d8", "S6": "d10", "S1": "d12"}
    assert [name for name, path in paths.items() if "R3" in path["links"]] \
        == ["S1", "S4", "S6", "S7"]


@pytest.mark.parametrize("name", list(papers.EXPERIMENTS))
def test_every_link_can_be_calibrated(name):
    network = built(name)
    for link in network.priced:
        assert [link] in [path["links"] for path in network.paths.values()]


@pytest.mark.parametrize("scale, each", [("few", 1), ("many", 100)])
def test_flows_come_and_go_as_in_table_442(scale, each):
    flows = job("parking-lot", words=[f"scale={scale}"])["cases"][0]["flows"]
    for time, factor in ((10, 2), (30, 8), (50, 4), (70, 8), (90, 2)):
        assert set(active(flows, time).values()) == {factor * each}
        assert len(active(flows, time)) == 8
    assert [flow["id"] for flow in flows] == list(range(1, len(flows) + 1))


def test_many_flows_have_a_hundred_times_the_links():
    few, many = built("parking-lot"), built("parking-lot",
                                            words=["scale=many"])
    for link in few.links_described:
        assert many.links_described[link]["capacity_bps"] \
            == 100 * few.links_described[link]["capacity_bps"] == 4.8e9
    # No link to a host is one that could queue.
    assert few.edge_bps > 20 * 48e6 and many.edge_bps == 0


def test_all_pay_the_same_in_the_parking_lot():
    """20 packets/ms in base 1.007 are the 140 packets/s of base e."""
    for cc, aqm in (("rem", "rem"), ("sbrm", "sbrm"), ("cp", "price")):
        value = plan.parse_settings(papers.get("parking-lot"), [],
                                    cc, aqm)
        paid = value["wtp"] * (math.log(value["phi"]) if value["phi"] > 1
                               else 1)
        assert paid == pytest.approx(140, rel=0.005)


def test_bounds_of_intervals_that_are_not_run_are_left_out():
    whole = job("parking-lot")["bounds"]
    part = job("parking-lot", duration_s=30)["bounds"]
    assert {bound["of"]["interval"] for bound in whole} == {1, 2, 3, 4, 5}
    assert {bound["of"]["interval"] for bound in part} == {1, 2}


def test_young_bounds_need_the_young_gain():
    def near(words):
        return [bound["of"] for bound in
                job("parking-lot", words=words)["bounds"]
                if bound["metric"] == "near_s"]
    assert not near(["kappa_young=0"])
    assert near([]) == [{"path": "S1", "interval": 1},
                        {"path": "S2", "interval": 1}]
    flows = job("parking-lot")["cases"][0]["flows"]
    assert [flow["path"] for flow in flows[:2]] == ["S1", "S2"]


def test_bursts_are_a_packet_but_at_several_gbits():
    assert links.burst_bytes(96_000_000, 1000) == 1000
    assert links.burst_bytes(400_000_000, 1000) == 1000
    assert links.burst_bytes(4_800_000_000, 1000) == 12000


def test_periods_of_a_schedule_that_returns():
    assert workload.periods(((0, 1), (10, 3), (20, 2), (30, 3)), 40) == [
        (0, 40), (10, 40), (10, 20), (30, 40)]
    assert workload.periods(((0, 1), (10, 3)), 10) == [(0, 10)]


# --- presets ---------------------------------------------------------------

def test_rem_of_the_double_bottleneck_is_that_of_522():
    made = job("double-bottleneck", "rem", "rem")
    assert made["aqm"].startswith(
        "sbrm limit 1000 mark rem-pc3 target 2 phi 1.060000 gamma 0.001 "
        "alpha 0.1 ")
    assert "rate 96000000bit" in made["aqm"]
    assert made["sysctls"]["net.ipv4.tcp_sbrm.phi"] == "1.060000"
    assert made["parameters"]["wtp"] == [1000, 2000, 4000]
    assert made["parameters"]["aqm"] == "rem-pc3"


def test_a_setting_wins_over_a_preset():
    values = plan.parse_settings(
        papers.get("double-bottleneck"), ["target=7"], "rem", "rem")
    assert (values["target"], values["phi"]) == (7, 1.06)


@pytest.mark.parametrize("name", ["double-bottleneck", "double-bottleneck-dynamics",
                                  "parking-lot", "single-bottleneck", "steady-state"])
def test_over_the_law_delay_sbrm_is_as_the_modules_come(name):
    """As in any-rate, and unless told; over other laws it has the paper's source."""
    def chosen(*words, cc="sbrm", aqm="delay"):
        values = plan.parse_settings(papers.get(name), words, cc, aqm)
        return {key: values[key] for key in components.SHIPPED}
    assert chosen() == components.SHIPPED
    assert chosen("wtp=7", "source=direct") == {
        **components.SHIPPED, "wtp": 7, "source": "direct"}
    plain = {key: entry[0] for key, entry in papers.get(name).parameters().items()
             if key in components.SHIPPED}
    assert plain["source"] == "direct"
    assert chosen(aqm="sbrm") == chosen(cc="cubic") == plain
    made = job(name, aqm="delay")
    assert made["sysctls"]["net.ipv4.tcp_sbrm.source"] == "relative"
    assert "mark delay target 3ms coupling 0.5" in made["aqm"] or \
        "mark delay target 3ms nodrop" in made["aqm"]


def test_price_laws_keeps_the_source_of_the_paper():
    """All of its variants are the paper's."""
    values = plan.parse_settings(papers.get("price-laws"), [], "sbrm", "delay")
    assert (values["source"], values["coupling"]) == ("direct", 0)


# These have what the queue does without being told.
@pytest.mark.parametrize("name", [name for name in papers.EXPERIMENTS
                                  if name not in ("any-rate", "aacc-tcp", "alpha-paths")])
def test_the_price_of_packets_without_ecn_is_that_of_the_published_runs(name):
    for aqm in ("sbrm", "rem", "rem4", "vqm", "price", "price-sbrm"):
        values = plan.parse_settings(papers.get(name), [], "sbrm",
                                     aqm)
        words = components.aqm_words(aqm, values).split()
        assert ("price-drop" in words) != ("nodrop" in words)
        assert "coupling" not in words


def test_packets_without_ecn_can_be_coupled():
    values = plan.parse_settings(
        papers.get("double-bottleneck"), ["coupling=2.5"])
    assert components.aqm_words("sbrm", values).endswith(" coupling 2.5")
    values["nodrop"] = 1
    assert components.aqm_words("sbrm", values).endswith(" nodrop")
    assert "price-drop" not in components.aqm_words("red", values)


def test_sbrm_is_untouched_by_other_laws():
    made = job("double-bottleneck")
    assert made["aqm"] == "sbrm limit 1000 mark sbrm target 10 gamma 0.015 price-drop"
    assert not any(name.endswith(("phi", "rtt", "slow_start"))
                   for name in made["sysctls"])


@pytest.mark.parametrize("aqm", list(components.AQMS))
@pytest.mark.parametrize("name", list(papers.EXPERIMENTS))
def test_every_named_queue_has_all_its_parameters(name, aqm):
    experiment = papers.get(name)
    values = plan.parse_settings(experiment, [], "sbrm", aqm)
    words = components.aqm_words(aqm, values)
    assert "{" not in words
    if "mark rem-pc" in words:
        assert float(words.split("phi ")[1].split()[0]) > 1


@pytest.mark.parametrize("cc, sink", [
    ("sbrm", "sbrm"), ("cp", "cp"), ("reno", "reno"), ("dctcp", "dctcp"),
    ("rm", None)])
def test_receivers(cc, sink):
    """TCP/RM has to do with any receiver (CP05 5.6.2)."""
    assert job("single-bottleneck", cc)["sink_cc"] == sink


@pytest.mark.parametrize("cc, default", [("sbrm", "sbrm"), ("rem", "rem"),
                                         ("cp", None), ("dctcp", None),
                                         ("reno", None)])
def test_default_of_hosts(cc, default):
    """No namespace but the first may have cp or dctcp as its default: they are
    restricted."""
    assert job("single-bottleneck", cc)["sysctls"].get(
        "net.ipv4.tcp_congestion_control") == default


# --- the others ------------------------------------------------------------

def test_single_bottleneck_has_two_ways():
    network = built("single-bottleneck")
    assert list(network.priced) == ["R1", "R2"]
    assert [path["rtt_ms"] for path in network.paths.values()] \
        == [20, 36, 56] * 2
    red = job("single-bottleneck", "rm", "red")["aqm"]
    assert "min 30000 max 90000" in red and "probability 0.2" in red


def test_users_are_as_many_as_table_563_has():
    made = job("single-bottleneck", words=["model=http"])
    users = made["cases"][0]["flows"]
    # 200 a path, both ways together.
    assert len(users) == 3 * 200
    assert users[0]["words"] == "pages=http off=exp:0.5 seed=1000001"
    assert len({user["words"] for user in users}) == len(users)
    assert made["parameters"]["flow_sample_ms"] == 0
    # The table's own numbers: users = pages/s (time of a page + off).
    pages_per_s = 0.89 * 34.368e6 / 8 * (934 / 1000) / 65500
    assert pages_per_s * (65.5 / 15 + 0.5) == pytest.approx(300, rel=0.15)


def test_a_seed_changes_the_users():
    experiment = papers.get("single-bottleneck")
    values = plan.parse_settings(experiment, ["model=http", "off_s=7"])
    first, second = ([user["words"] for user in jobs.job(
        experiment, "sbrm", "sbrm", values, 60, seed)["cases"][0]["flows"]]
        for seed in (1, 2))
    assert not set(first) & set(second)
    assert all("off=exp:7 " in words for words in first)


def test_steady_state_varies_one_thing_at_a_time():
    made = job("steady-state")
    network = built("steady-state")
    points = {}
    for link, described in network.links_described.items():
        weights = [flow["wtp"] for flow in made["cases"][0]["flows"]
                   if network.paths[flow["path"]]["links"] == [link]]
        points[link] = (len(weights), weights[0], described["capacity_bps"])
    count, wtp, rate = points.pop("A")
    for other in points.values():
        assert sum((other[0] != count, other[1] != wtp, other[2] != rate)) \
            in (1, 2)
        load = pricing.steady_state(other[2] / 8000, [other[1]] * other[0], 10,
                                    0.015)
        # ALGORITHMS.md 2: where the signal is neither weak nor saturated.
        assert 0.1 <= load["price"] <= 0.8


def test_variants_of_two_models():
    experiment = papers.get("single-bottleneck")

    def variants(*words):
        values = plan.parse_settings(experiment, words)
        return {variant.name: variant for variant in
                plan.variants(experiment, values)}
    assert list(variants()) == ["reno-sbrm", "rm-sbrm", "reno-red", "rm-red"]
    users = variants("model=http")
    assert {variant.model for variant in users.values()} == {"http"}
    for chosen in (variants(), users):
        for name, variant in chosen.items():
            for bound in variant.bounds:
                baseline = chosen[bound["baseline"]]
                # The same workload on the same links.
                assert baseline.settings.get("off_s") \
                    == variant.settings.get("off_s"), name
    made = jobs.job(
        experiment, "rm", "red", plan.parse_settings(
            experiment, [], "rm", "red"), 60, 1, variants()["rm-red"])
    assert made["parameters"]["variant"] == "rm-red"
    assert {bound["baseline"] for bound in made["bounds"]} == {"reno-red"}


def test_red_is_asked_for_what_table_562_says():
    """Over RED TCP/RM uses more of the link with more backlog, 35.8 packets
    for 28.8; over the queue sbrm with less, 27.7 for 30.0."""
    variants = {variant.name: variant for variant in
                papers.get("single-bottleneck").variants}
    for aqm, more in (("sbrm", False), ("red", True)):
        rows = {name: {number["metric"]: number["value"]
                       for number in published.rows(
                           "single-bottleneck", name, aqm,
                           {"model": "greedy"})[0]["numbers"]}
                for name in ("reno", "rm")}
        metric = "queue_mean_pkts"
        assert (rows["rm"][metric] > rows["reno"][metric]) == more
        (bound,) = [bound for bound in variants[f"rm-{aqm}"].bounds
                    if (bound["metric"], bound["of"]) ==
                    (metric, {"link": "R1"})]
        assert bound["op"] == (">=" if more else "<=")


@pytest.mark.parametrize("name, cc, aqm, words", [
    ("parking-lot", "cp", "price", ["scale=many"]),
    *((name, cc, aqm, []) for cc, aqm in (
        ("sbrm", "sbrm"), ("sbrm", "vqm"), ("rem", "rem"), ("cp", "price"))
      for name in ("double-bottleneck", "double-bottleneck-dynamics"))])
def test_sources_have_bounds(name, cc, aqm, words):
    assert job(name, cc, aqm, words)["bounds"]


# --- published values ------------------------------------------------------

def test_published_setups_are_those_of_the_experiments():
    """Each setup is what some run of its experiment has."""
    data = files.load_json(HERE.parent / "scripts/tollwaylib/papers"
                           / "cp05.json")["experiments"]
    for name, parts in data.items():
        for part in parts:
            setup = part["setup"]
            fits = []
            for word in ("scale=few", "scale=many", "model=greedy",
                         "model=http", None):
                try:
                    made = job(name, words=[word] if word else [])
                except TollwayError:
                    continue
                network = built(name, words=[word] if word else [])
                fits.append(
                    len(made["cases"][0]["flows"]) == setup["flows"] and
                    {link: described["capacity_bps"] for link, described in
                     network.links_described.items()}
                    == setup["capacity_bps"])
            assert any(fits), setup
            for row in part["rows"]:
                for cc, aqm in row["pairs"]:
                    assert components.known_aqm(aqm) == aqm in components.AQMS
                    assert cc in (*components.PRICED, "reno")


ROWS = [(name, part, row) for name in papers.EXPERIMENTS
        for part in published.parts(name) for row in part["rows"]]


@pytest.mark.parametrize("name, part, row", ROWS, ids=[
    f"{name}-{row['name']}-{row['paper']}".replace(" ", "_")
    for name, _, row in ROWS])
def test_every_published_row_states_its_setup(name, part, row):
    """All that its source and its queue depend on, and there is a run of it:
    that of setup=paper."""
    experiment = papers.get(name)
    words = [f"{key}={value}" for key, value in
             part["setup"].get("parameters", {}).items()]
    for cc, aqm in row["pairs"]:
        values = plan.parse_settings(
            experiment, [*words, "setup=paper"], cc, aqm)
        needed = deciding(cc, aqm, values) | experiment.deciding(values)
        needed -= set(experiment.paper.free)
        if not experiment.cases:
            needed.add("duration_s")
        assert set(row["setup"]) == needed
        made = jobs.job(experiment, cc, aqm, values,
                        experiment.duration_s, 1)
        for key, value in row["setup"].items():
            assert made["parameters"][key] == value, key


@pytest.mark.parametrize("cc, aqm", [
    ("sbrm", "sbrm"), ("cp", "price"), ("rem", "rem-pc3"), ("rem", "rem4"),
    ("sbrm", "vqm"), ("rm", "red"), ("reno", "pfifo"), ("pp", "fq_rr")])
def test_what_decides_is_all_that_reaches_source_and_queue(cc, aqm):
    """Whatever else is changed, neither tc nor a sysctl that this source reads
    gets other words: deciding() leaves nothing out."""
    experiment = papers.get("pp-base" if cc == "pp" else
                            "double-bottleneck")
    experiment = dataclasses.replace(experiment, presets=(), variants=())
    base = plan.parse_settings(experiment, [], cc, aqm)
    stated = deciding(cc, aqm, base)

    def words(values):
        made = jobs.job(experiment, cc, aqm, values, 60, 1)
        return made["aqm"], made["sysctls"]
    before = words(base)
    # Sysctls are written for all sources of the module.
    unread = {"rem": {"kappa", "kappa_window", "source", "history_gain"},
              "cp": {"estimator", "history", "history_gain", "rtt"},
              "rm": {"estimator", "source", "history", "history_gain", "rtt"},
              "sbrm": {"rtt", "history"}}.get(cc, set()) | {"young_ms"}
    for name, (default, least, most, _) in experiment.parameters().items():
        if name in stated | unread | {"rate_mbit"} or least is None:
            continue
        other = most if default != most else least
        assert words({**base, name: other}) == before, name


def test_the_papers_setups_are_other_than_ours():
    """CP05 5.4.2 and 4.4.1, and what ours are."""
    def sysctl(name, cc, aqm, *words):
        made = job("double-bottleneck" if name is None else name, cc, aqm,
                   words)
        return made["aqm"], {key.rpartition(".")[2]: value for key, value
                             in made["sysctls"].items()}
    queue, source = sysctl(None, "sbrm", "sbrm", "setup=paper")
    assert queue == "sbrm limit 300 mark sbrm target 10 gamma auto price-drop no-dither"
    assert (source["source"], source["estimator"]) == ("aimd", "raw")
    queue, source = sysctl(None, "sbrm", "sbrm")
    assert "no-dither" not in queue
    assert (source["source"], source["estimator"]) == ("direct", "log")
    queue, source = sysctl(None, "cp", "price", "setup=paper")
    assert " target 2 " in queue and source["kappa"] == "0.010000"
    queue, source = sysctl("parking-lot", "cp", "price", "setup=paper")
    assert " target 18 " in queue
    assert (source["source"], source["slow_start"]) == ("vegas", 0)
    queue, _ = sysctl("parking-lot", "cp", "price", "setup=paper",
                      "scale=many")
    assert " target 1800 " in queue
    # What is set by hand wins.
    assert sysctl(None, "sbrm", "sbrm", "setup=paper",
                  "source=direct")[1]["source"] == "direct"
    with pytest.raises(TollwayError, match="no paper has values of cubic"):
        job("double-bottleneck", "cubic", "red", ["setup=paper"])


def runs_of(name, words):
    """As tollway run NAME --set WORD...: (variant or None, the job of its run)."""
    experiment = papers.get(name)
    values = plan.parse_settings(experiment, words, with_setup=False)
    found = []
    for variant in plan.variants(experiment, values) or (None,):
        cc, aqm = (variant.cc, variant.aqm) if variant else \
            (experiment.cc, experiment.aqm)
        mine = [f"{key}={value}" for key, value in variant.settings.items()] \
            + experiment.naming(variant) if variant else []
        found.append((variant, jobs.job(
            experiment, cc, aqm, plan.parse_settings(
                experiment, [*mine, *words], cc, aqm),
            experiment.duration_s, 1, variant)))
    return found


@pytest.mark.parametrize("name, words, count", [
    ("double-bottleneck", [], 6), ("parking-lot", [], 3),
    ("parking-lot", ["scale=many"], 3), ("steady-state", [], 1),
    ("single-bottleneck", [], 4), ("single-bottleneck", ["model=http"], 2),
    ("pp-window", [], 1)])
def test_a_papers_table_is_run_as_a_whole(name, words, count):
    """Each row, and nothing else: no run of users who rest longer than theirs."""
    experiment = papers.get(name)
    if name != "single-bottleneck" and not experiment.cases:
        assert plan.variants(
            experiment, plan.parse_settings(experiment, words)) == ()
    found = runs_of(name, [*words, "setup=paper"])
    assert len(found) == count
    rows = {}
    for variant, made in found:
        parameters = made["parameters"]
        pair = parameters["cc"], parameters["aqm"]
        (rows[pair],) = published.rows(name, *pair, parameters)
        assert {key: parameters[key] for key in rows[pair]["setup"]} \
            == rows[pair]["setup"]
        # Another variant that a bound is against is run, too.
        assert {bound["baseline"] for bound in made["bounds"]
                if "baseline" in bound} <= {
                    other.name for other, _ in found if other}
    assert {row["name"] for row in rows.values()} == {
        row["name"] for part in published.parts(name) for row in part["rows"]
        if all(found[0][1]["parameters"][key] == value for key, value in
               part["setup"].get("parameters", {}).items())}


@pytest.mark.parametrize("name", [
    name for name in papers.EXPERIMENTS
    if published.parts(name) or papers.get(name).only_compares])
def test_every_experiment_with_published_values_takes_setup_paper(name):
    for part in published.parts(name) or [{"setup": {}}]:
        network = [f"{key}={value}" for key, value in
                   part["setup"].get("parameters", {}).items()
                   if key in ("scale", "model", *papers.get(name).choices)]
        for _, made in runs_of(name, [*network, "setup=paper"]):
            assert made["parameters"]["setup"] == "paper"


def test_what_is_set_by_hand_leaves_a_papers_table():
    """Users who rest as long as none in Table 5.6.3 are none of its row."""
    with pytest.raises(TollwayError, match="no paper has values of sbrm over"):
        runs_of("single-bottleneck", ["model=http", "setup=paper", "off_s=6.6"])


def test_only_the_papers_source_is_held_against_table_551():
    """The direct update by the bit itself, drawn each time (CP05 4.2.3, 5.4.1);
    what others come to has another formula, and another title."""
    def titles(*words):
        return [bound["name"] for bound in
                job("steady-state", words=words)["bounds"]]
    paper = titles("setup=paper")
    assert len(paper) == 3 and all("Table 5.5.1" in title for title in paper)
    for words, formula in (
            ([], "p = sum(w)/c"), (["dither=0"], "p = sum(w)/c"),
            (["estimator=raw"], "m = sum(w)/c"),
            (["setup=paper", "dither=1"], "m = sum(w)/c"),
            (["setup=paper", "source=aimd"], "m/(1 - m) = sum(w)/c"),
            (["source=relative", "estimator=raw"], "p = sum(w)/c")):
        found = titles(*words)
        assert found and not any("Table" in title for title in found)
        assert any(title.endswith(formula) for title in found)


def test_table_551_can_be_told_from_what_other_sources_come_to():
    """Its bound on the backlog is smaller than the difference of the formulas."""
    made = job("steady-state", words=["setup=paper"])
    target, gamma = (made["parameters"][name] for name in ("target", "gamma"))
    (limit,) = [bound["value"] for bound in made["bounds"]
                if bound["metric"] == "steady_max_queue_error"]
    for load in (0.2, 0.4, 0.8):
        raw, log, aimd = (pricing.steady_state(6000, [6000 * load], target,
                                               gamma, form)["queue_pkts"]
                          for form in ("raw", "log", "aimd"))
        assert raw == pytest.approx(target - math.log(1 - load) / gamma)
        assert min(raw / log, raw / aimd) - 1 > limit


def test_table_522_and_443_are_in_the_data():
    """The mean backlogs by which the issue's bounds are set."""
    data = files.load_json(HERE.parent / "scripts/tollwaylib/papers"
                           / "cp05.json")["experiments"]
    few, many = data["parking-lot"]

    def backlog(part, row):
        return [number["value"] for number in part["rows"][row]["numbers"]
                if number["metric"].endswith("queue_mean_pkts")]
    assert backlog(few, 0) == [20, 30, 20, 26, 20]
    assert backlog(few, 1) == [21, 51, 33, 43, 27]
    assert backlog(many, 1) == [405, 1738, 638, 1568, 359]
    bounds = [bound["value"] for bound in job("parking-lot")["bounds"]
              if bound["metric"].endswith("queue_mean_pkts")]
    assert bounds == backlog(few, 1)
