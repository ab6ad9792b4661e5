# SPDX-License-Identifier: GPL-2.0
"""The experiments: topology, flows, schedule, bounds. One description each,
whatever place they run at. What the papers published is in data/."""

import shlex
from dataclasses import dataclass, field

from .errors import TollwayError
from .traffic import PRIORITIES

# tc words of the queues that are known by a name; {key} is a parameter.
# RED: thresholds of 5 and 15 packets and at most 10 %, the defaults of ns-2
# with which CP05 4.3.1 ran (its Table 4.3.1 is damaged in our text).
AQMS = {
    "sbrm": "sbrm limit {limit} target {target} gamma {gamma}",
    "pfifo": "pfifo limit {fifo_limit}",
    "red": "red limit {red_limit_bytes} min {red_min_bytes} "
           "max {red_max_bytes} avpkt {packet_bytes} burst {red_burst} "
           "probability 0.1 bandwidth {rate_mbit}mbit ecn",
}

COMMON = {
    # name: (default, least, greatest, meaning)
    "warmup_s": (5.0, 0.0, 1e6, "s left out of all rates"),
    "start_jitter_s": (0.1, 0.0, 10.0, "s over which the seed spreads starts"),
    "packet_bytes": (1000, 114, 9014, "bytes of a full packet on the wire"),
    "rate_mbit": (96.0, 0.1, 1000.0, "Mb/s of each bottleneck"),
    "flow_sample_ms": (100, 10, 10000, "ms between samples of the flows"),
    "queue_sample_us": (10000, 100, 1000000, "us between samples of a queue"),
    "initcwnd": (1, 1, 1000, "segments a flow may send at first"),
    # sch_sbrm
    "limit": (1000, 1, 1000000, "packets of room in the sbrm queue"),
    "target": (10, 0, 999999, "packets, b0 of CP05 (5.4.1)"),
    "gamma": (0.015, 1e-9, 1.0, "price per packet above the target"),
    # other queues
    "fifo_limit": (300, 1, 1000000, "packets of room in pfifo"),
    # tcp_sbrm
    "kappa": (0.1, 1e-6, 10.0, "gain per acknowledged segment"),
    "kappa_young": (0.0, 0.0, 10.0, "gain of a new connection, 0 for none"),
    "young_ms": (4000, 1, 3600000, "ms a connection is young"),
    "history_gain": (0.015625, 1e-6, 1.0, "weight of one packet in the marks"),
    "source": ("direct", None, None, "direct or aimd"),
    "estimator": ("log", None, None, "log or raw"),
}
CHOICES = {"source": ("direct", "aimd"), "estimator": ("log", "raw")}


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    topology: class in topo.py. classes: [(path, wtp)] in the order of the
    flow numbers, each with `flows_per_class` flows. schedule: [(start s,
    factor)], by which the number of flows is multiplied. bounds: what must
    hold where sbrm runs over sbrm, see results.py for the metrics.
    """
    name: str
    title: str
    reproduces: str
    topology: str
    classes: tuple
    duration_s: float
    schedule: tuple = ((0.0, 1),)
    flows_per_class: int = 4
    defaults: dict = field(default_factory=dict)
    bounds: tuple = ()
    aimd_bounds: tuple = ()

    def parameters(self):
        """{name: (default, least, greatest, meaning)} of all that --set takes."""
        known = dict(COMMON)
        known["flows_per_class"] = (self.flows_per_class, 1, 1000,
                                    "flows of each class and path")
        for name, value in self.defaults.items():
            known[name] = (value,) + known[name][1:]
        return known


_CLASSES = tuple((path, wtp) for path in ("I", "II", "III")
                 for wtp in (100, 200, 400))


def _bound(name, metric, operator, value):
    return {"name": name, "metric": metric, "op": operator, "value": value}


EXPERIMENTS = {experiment.name: experiment for experiment in (
    Experiment(
        name="double-bottleneck",
        title="Rate allocation over two bottlenecks",
        reproduces="CP05 4.3.1 and 5.4.3: Figures 4.3.4, 4.3.5, 5.4.1, "
                   "Tables 4.3.3, 5.4.1",
        topology="DoubleBottleneck", classes=_CLASSES, duration_s=60.0,
        bounds=(
            _bound("class means against WPF", "classes.max_abs_error", "<=",
                   0.015),
            _bound("class means against WPF, mean over seeds",
                   "classes.max_abs_error_over_seeds", "<=", 0.007),
            _bound("utilisation of both links", "links.min_utilization", ">=",
                   0.995),
            _bound("mean queue, packets", "links.max_queue_mean_pkts", "<=",
                   40),
            _bound("packets dropped", "links.total_drops", "<=", 0),
            _bound("spread within a class", "classes.max_spread", "<=", 0.08),
        ),
        aimd_bounds=(
            _bound("class means against x = w (1 - m)/m",
                   "aimd.max_abs_error", "<=", 0.03),
        )),
    Experiment(
        name="double-bottleneck-dynamics",
        title="Two bottlenecks with a changing number of flows",
        reproduces="CP05 4.3.1, second simulation: Figures 4.3.6, 4.3.7, "
                   "5.4.2, 5.4.3",
        topology="DoubleBottleneck", classes=_CLASSES, duration_s=100.0,
        # Figure 4.3.2 is lost; Figure 4.3.3's load factor reads like this.
        schedule=((0.0, 1), (20.0, 2), (40.0, 4), (60.0, 2), (80.0, 1)),
        defaults={"warmup_s": 2.0},
        bounds=(
            _bound("utilisation after the first 2 s of each interval",
                   "intervals.min_utilization_after_2s", ">=", 0.99),
            _bound("losses outside of the 2 s after a change",
                   "intervals.drops_after_2s", "<=", 0),
            _bound("s until class means are within 10 % of their shares",
                   "intervals.max_convergence_s", "<=", 3.0),
        )),
)}


def get(name):
    """The Experiment of that name; TollwayError with the names there are."""
    if name not in EXPERIMENTS:
        raise TollwayError(f"there is no experiment {name}: tollway list names "
                           f"{', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def parse_settings(experiment, words):
    """{name: value} from a list of "name=value"; unknown or bad ones raise."""
    known = experiment.parameters()
    values = {name: entry[0] for name, entry in known.items()}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise TollwayError(f"--set {word}: give it as name=value")
        if name not in known:
            raise TollwayError(f"--set {name}: {experiment.name} has no such "
                               f"parameter, only {', '.join(known)}")
        values[name] = _parse_value(name, text, *known[name][:3])
    if values["target"] >= values["limit"]:
        raise TollwayError(f"target ({values['target']}) must be below limit "
                           f"({values['limit']})")
    return values


def _parse_value(name, text, default, least, greatest):
    if name in CHOICES:
        if text not in CHOICES[name]:
            raise TollwayError(f"--set {name}={text}: it is one of "
                               f"{', '.join(CHOICES[name])}")
        return text
    try:
        value = type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise TollwayError(f"--set {name}={text}: {text!r} is not {kind}") \
            from None
    # The comparison also turns nan away.
    if not least <= value <= greatest:
        raise TollwayError(f"--set {name}={text}: it goes from {least:g} to "
                           f"{greatest:g}")
    return value


def aqm_words(aqm, values):
    """tc words of the queue under test, from a name of AQMS or any words."""
    packet = values["packet_bytes"]
    if aqm in AQMS:
        return AQMS[aqm].format(
            red_limit_bytes=300 * packet, red_min_bytes=5 * packet,
            red_max_bytes=15 * packet, red_burst=9, **values)
    try:
        words = shlex.split(aqm)
    except ValueError as error:
        raise TollwayError(f"--aqm {aqm!r}: {error}") from None
    if not words:
        raise TollwayError("--aqm needs the name of a qdisc")
    return " ".join(shlex.quote(word) for word in words)


def job(experiment, cc, aqm, values, duration_s, seed):
    """Everything network.Run needs, but the directories (dict)."""
    priced = cc == "sbrm"
    wtps = sorted({wtp for _, wtp in experiment.classes})
    priorities = sorted(PRIORITIES)
    flows, per_class = [], values["flows_per_class"]
    edges = list(experiment.schedule) + [(duration_s, 0)]
    top = max(factor for _, factor in experiment.schedule)
    for copy in range(top):
        start_s = next((t for t, factor in edges if factor > copy), None)
        if start_s is None or start_s >= duration_s:
            continue
        stop_s = next(t for t, factor in edges
                      if t > start_s and factor <= copy)
        for path, wtp in experiment.classes:
            for _ in range(per_class):
                flows.append({
                    "id": len(flows) + 1, "path": path, "cc": cc,
                    "wtp": wtp if priced else None,
                    "priority": priorities[wtps.index(wtp)] if priced else 0,
                    "start_s": start_s, "stop_s": stop_s})
    return {
        "experiment": experiment.name,
        "topology": [experiment.topology, {
            "packet_bytes": values["packet_bytes"],
            "rate_bps": int(values["rate_mbit"] * 1e6)}],
        "aqm": aqm_words(aqm, values),
        "parameters": dict(values, cc=cc, aqm=aqm, duration_s=duration_s,
                           wtp=wtps if priced else None),
        "schedule": [{"t_s": t, "factor": factor}
                     for t, factor in experiment.schedule
                     if t < duration_s] if len(experiment.schedule) > 1
        else None,
        "bounds": list(bounds(experiment, cc, aqm, values)),
        "flows": flows, "seed": seed, "sink_cc": cc,
        "sysctls": sysctls(cc, values, wtps),
    }


def bounds(experiment, cc, aqm, values):
    """The bounds that hold for a combination: only the pair sbrm has any."""
    if (cc, aqm) != ("sbrm", "sbrm"):
        return ()
    if values["source"] == "aimd":
        return experiment.aimd_bounds
    return experiment.bounds if values["estimator"] == "log" else ()


def sysctls(cc, values, wtps):
    """{name: value} to set on every host."""
    # ECN is asked for by everyone: CP05 4.3.1 compares with an ECN NewReno.
    # The rest keeps one connection from learning of another.
    settings = {"net.ipv4.tcp_ecn": 1, "net.ipv4.tcp_no_metrics_save": 1}
    if cc == "sbrm":
        # For receivers that cannot be told (iperf3): they echo the marks.
        settings["net.ipv4.tcp_congestion_control"] = cc
        base = "net.ipv4.tcp_sbrm"
        table = [wtps[0]] * 16
        for priority, wtp in zip(sorted(PRIORITIES), wtps):
            table[priority] = wtp
        settings[f"{base}.wtp"] = " ".join(map(str, table))
        for name in ("kappa", "kappa_young", "history_gain"):
            settings[f"{base}.{name}"] = f"{values[name]:.6f}"
        for name in ("young_ms", "source", "estimator"):
            settings[f"{base}.{name}"] = values[name]
    return settings
