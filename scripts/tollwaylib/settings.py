# SPDX-License-Identifier: GPL-2.0
"""What --set, --cc and --aqm take, and the tc words and sysctls they become."""

import math
import shlex
import string

from . import published
from .errors import TollwayError

# Congestion controls of tcp_sbrm, which have a willingness to pay.
PRICED = ("sbrm", "rm", "rem", "cp")
# Those whose receivers must run them too: they echo each mark or price.
ECHOED = ("sbrm", "rem", "cp", "dctcp")
# Restricted: the kernel takes them as the default of its first namespace only.
# A socket may have them by CAP_NET_ADMIN.
RESTRICTED = ("cp", "ppx", "dctcp")
# Willingness to pay goes by socket priority. These three are also what the
# kernel makes of the types of service below (rt_tos2priority), which is all
# that iperf3 can set.
PRIORITIES = {2: 0x08, 4: 0x18, 6: 0x10}

_LAWS = {
    "rem-pc1": "mark rem-pc1 phi {link_phi} gamma {gamma:g} delta {delta:g} "
               "interval {interval_us}us avpkt {packet_bytes} "
               "rate {rate_bps}bit",
    "rem-pc2": "mark rem-pc2 target {target} phi {link_phi} gamma {gamma:g}",
    "rem-pc3": "mark rem-pc3 target {target} phi {link_phi} gamma {gamma:g} "
               "alpha {alpha:g} delta {delta:g} interval {interval_us}us "
               "avpkt {packet_bytes} rate {rate_bps}bit",
    "vqm": "mark vqm scale {vqm_scale:g} rate {rate_bps}bit",
    "delay": "mark delay target {delay_ms:g}ms",
}


def _sbrm(law, feedback=None):
    words = f"sbrm limit {{limit}} {_LAWS[law]}{{unmarked}}"
    if feedback is not None:
        return f"{words} feedback {feedback}"
    # The marks of vqm are certain: nothing is drawn.
    return words if law == "vqm" else f"{words}{{draws}}"


# Congestion controls of tcp_pp, which are asked for no price.
PACKET_PAIR = ("pp", "ppx")

# tc words of the queues that are known by a name; {key} is a parameter.
# price and rem4 alone are PC3, the law that CP05 uses throughout chapter 4
# and 5.2; price-vqm is the "VQM n bit" of its Table 5.4.2.
AQMS = {
    "sbrm": "sbrm limit {limit} mark sbrm target {target} "
            "gamma {gamma_or_auto}{unmarked}{draws}",
    **{law: _sbrm(law) for law in _LAWS},
    "rem4-pc1": _sbrm("rem-pc1", "four-bit"),
    "rem4-pc2": _sbrm("rem-pc2", "four-bit"),
    "rem4": _sbrm("rem-pc3", "four-bit"),
    "price-pc1": _sbrm("rem-pc1", "price"),
    "price-pc2": _sbrm("rem-pc2", "price"),
    "price": _sbrm("rem-pc3", "price"),
    "price-vqm": _sbrm("vqm", "price"),
    "price-sbrm": "sbrm limit {limit} mark sbrm target {target} "
                  "gamma {gamma_or_auto}{unmarked} feedback price",
    "pfifo": "pfifo limit {fifo_limit}",
    "red": "red limit {red_limit_bytes} min {red_min_bytes} "
           "max {red_max_bytes} avpkt {packet_bytes} burst {red_burst} "
           "probability {red_probability:g} bandwidth {rate_mbit}mbit ecn{spare}",
    "fq_rr": "fq_rr limit {buffer} service {service} overflow {overflow}",
}
ALIASES = {"rem": "rem-pc3"}

# {name: (default, least, greatest, meaning)} of what --set takes, of the qdisc
# sbrm, of other queues, of tcp_sbrm and of packet pair.
SBRM_QUEUE = {
    # sch_sbrm
    "limit": (1000, 1, 1000000, "packets of room in the sbrm queue"),
    "target": (10, 0, 999999, "packets, b0 of CP05 (5.4.1)"),
    "gamma": (0.015, 0.0, 1.0, "price per packet above the target; 0: auto"),
    "alpha": (0.1, 1e-6, 1000.0, "weight of the backlog in rem-pc3"),
    "delta": (0.9, 1e-6, 1.0, "weight of an interval in its input rate"),
    "interval_us": (1000, 1, 1000000, "us between price computations"),
    "vqm_scale": (0.9, 0.01, 1.0, "rate and room of vqm's virtual queue"),
    "delay_ms": (3.0, 0.01, 1000.0, "ms of queue, target of the law delay"),
    # The papers have no packets without ECN. Those of Linux are dropped with the
    # probability of a mark, in all experiments, as their published runs did.
    "nodrop": (0, 0, 1, "1: prices drop nothing, ECN-capable or not"),
    "coupling": (0.0, 0.0, 1000.0, "0: what is not ECN-capable is dropped for "
                 "the price; else coupling of tc-sbrm(8)"),
    "dither": (1, 0, 1, "0: each mark is drawn by itself, as in the papers"),
}
OTHER_QUEUES = {
    # other queues; RED: thresholds of 5 and 15 packets and at most 10 %, the
    # defaults of ns-2 with which CP05 4.3.1 ran (its Table 4.3.1 is damaged
    # in our text).
    "fifo_limit": (300, 1, 1000000, "packets of room in pfifo"),
    "red_limit": (300, 1, 1000000, "packets of room in red"),
    "red_min": (5, 1, 1000000, "packets, lower threshold of red"),
    "red_max": (15, 1, 1000000, "packets, upper threshold of red"),
    "red_probability": (0.1, 1e-6, 1.0, "of red's marks at the threshold"),
    "red_burst": (9, 1, 1000000, "packets, from which tc makes red's weight"),
}
SBRM_SOURCES = {
    # tcp_sbrm
    "phi": (1.0, 1.0, 100.0, "base of REM's prices and of wtp; 1: e"),
    "wtp": (100, 1, 1000000, "willingness to pay of the cheapest class"),
    "kappa": (0.1, 1e-6, 10.0, "gain per acknowledged segment"),
    "kappa_young": (0.0, 0.0, 10.0, "gain of a new connection, 0 for none"),
    "young_ms": (4000, 1, 3600000, "ms a connection is young"),
    "history_gain": (0.015625, 1e-6, 1.0, "weight of one packet in the marks"),
    "source": ("direct", None, None, "direct, aimd, vegas or relative"),
    "estimator": ("log", None, None, "log, raw, history, four-bit, explicit"),
    "history": (50, 1, 64, "packets of the estimator history"),
    "rtt": ("last", None, None, "round trip in the rate: last or min"),
    "slow_start": (1, 0, 1, "1: slow start"),
    "kappa_window": (0, 0, 1 << 24, "segments above which kappa falls, or 0"),
    "loss_cut": (1, 0, 2, "1: a loss halves the window; 0, 2: tcp_sbrm(7)"),
}
PACKET_PAIR_PARAMETERS = {
    # sch_fq_rr, and fq_codel beside it
    "buffer": (100, 2, 1000000, "packets of room in fq_rr"),
    "service": ("rr", None, None, "of fq_rr: rr, drr or wfq"),
    "overflow": ("drop-tail-of-longest", None, None,
                 "of fq_rr: drop-last, drop-tail-of-longest or drop-longest"),
    # tcp_pp
    "setpoint": (0, 0, 1000000, "packets that pp queues; 0: it probes"),
    "pp_estimator": ("fuzzy", None, None, "of pp: fuzzy, fixed or kalman"),
    "law": ("continuous", None, None, "of pp: continuous or discrete"),
    "initial": (0, 0, 1000, "packets of pp before it knows a rate; 0: as TCP"),
}

COMMON = {
    # name: (default, least, greatest, meaning)
    "setup": ("ours", None, None, "ours, or paper: what the paper ran"),
    "warmup_s": (5.0, 0.0, 1e6, "s left out of all rates"),
    "start_jitter_s": (0.1, 0.0, 10.0, "s over which the seed spreads starts"),
    # What a link may differ from what it should be and the run be made.
    "rate_tolerance": (0.002, 0.0, 1.0, "part by which a link's rate may "
                       "differ in calibration, or a packet"),
    "rtt_tolerance_ms": (0.2, 0.0, 10000.0, "ms by which a path's round trip "
                         "may be longer in calibration"),
    "packet_bytes": (1000, 114, 9014, "bytes of a full packet on the wire"),
    "rate_mbit": (96.0, 0.1, 10000.0, "Mb/s of each bottleneck"),
    "edge_mbit": (1000.0, 0.0, 1000000.0,
                  "Mb/s of the links to the hosts; 0: no limit"),
    "flow_sample_ms": (100, 10, 10000, "ms between samples of the flows"),
    "queue_sample_us": (10000, 100, 1000000, "us between samples of a queue"),
    "initcwnd": (1, 1, 1000, "segments a flow may send at first"),
    **SBRM_QUEUE, **OTHER_QUEUES, **SBRM_SOURCES, **PACKET_PAIR_PARAMETERS,
}
# Of one experiment or another.
SPECIAL = {
    "scale": ("few", None, None, "few or many flows"),
    "model": ("greedy", None, None, "greedy flows, or http users"),
    "recovery": ("pp94", None, None, "of losses: pp94 or linux"),
    "simulations": ("all", None, None, "numbers of Table 5.4.2, as 1,6,27"),
    "row": ("wan", None, None, "of PP94 Table 3: lan, man or wan"),
    "repeats": (1, 1, 1000, "runs of each case that has something random"),
    "only": ("", None, None, "run only cases whose names have this in them"),
    "round_trips": (200.0, 1.0, 1e6, "how long a case is"),
    "rtt_ms": (20.0, 0.1, 10000.0, "ms of the round trip of the network that "
               "cases change"),
}
CHOICES = {"source": ("direct", "aimd", "vegas", "relative"),
           "estimator": ("log", "raw", "history", "four-bit", "explicit"),
           "rtt": ("last", "min"), "scale": ("few", "many"),
           "model": ("greedy", "http"), "setup": ("ours", "paper"),
           "recovery": ("pp94", "linux"),
           "row": ("lan", "man", "wan"),
           "service": ("rr", "drr", "wfq"),
           "overflow": ("drop-last", "drop-tail-of-longest", "drop-longest"),
           "pp_estimator": ("fuzzy", "fixed", "kalman"),
           "law": ("continuous", "discrete")}
# Written to the hosts only where they are not the module's defaults.
_RARE = ("phi", "history", "rtt", "slow_start", "kappa_window")


def known_aqm(aqm):
    """The name in AQMS that `aqm` stands for; other words as they are."""
    return ALIASES.get(aqm, aqm)


def parse(experiment, words, cc="sbrm", aqm="sbrm", with_setup=True):
    """{name: value} from a list of "name=value"; unknown or bad ones raise.

    What is not set is what the experiment's presets have for this congestion
    control over this queue, or with setup=paper what the paper has (but not
    without with_setup: which variants there are does not depend on it).
    """
    known = experiment.parameters()
    given = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise TollwayError(f"--set {word}: give it as name=value")
        if name not in known:
            raise TollwayError(f"--set {name}: {experiment.name} has no such "
                               f"parameter, only {', '.join(known)}")
        given[name] = _parse_value(name, text, *known[name][:3])
    values = {name: entry[0] for name, entry in known.items()}
    setting = {cc, known_aqm(aqm)} | {
        given.get(name, values[name])
        for name in ("scale", "model", "row", "setup") if name in known}
    for names, preset in experiment.presets:
        if setting.issuperset(names):
            values.update(preset)
    if with_setup and "paper" in setting:
        # How long a run is is not set here.
        values.update((name, value) for name, value in published.setup(
            experiment.name, cc, known_aqm(aqm),
            {**values, **given}).items() if name in known)
    values.update(given)
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
    if least is None:
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


def _unmarked(values):
    """tc words of sbrm for packets that are not ECN-capable."""
    if values["nodrop"]:
        return " nodrop"
    return f" coupling {values['coupling']:g}" if values["coupling"] else \
        " price-drop"


def aqm_words(aqm, values):
    """tc words of the queue under test, from a name of AQMS or any words."""
    packet = values["packet_bytes"]
    if known_aqm(aqm) in AQMS:
        return AQMS[known_aqm(aqm)].format(
            rate_bps=int(values["rate_mbit"] * 1e6),
            link_phi=f"{values['phi'] if values['phi'] > 1 else math.e:.6f}",
            gamma_or_auto=values["gamma"] or "auto",
            spare=" nodrop" if values["nodrop"] else "",
            draws="" if values["dither"] else " no-dither",
            unmarked=_unmarked(values),
            red_limit_bytes=values["red_limit"] * packet,
            red_min_bytes=values["red_min"] * packet,
            red_max_bytes=values["red_max"] * packet, **values)
    try:
        words = shlex.split(aqm)
    except ValueError as error:
        raise TollwayError(f"--aqm {aqm!r}: {error}") from None
    if not words:
        raise TollwayError("--aqm needs the name of a qdisc")
    return " ".join(shlex.quote(word) for word in words)


# What the fields of AQMS are made of, where that is not a parameter's name.
# The rate is the link's, and no setting.
_FIELDS = {"link_phi": ["phi"], "gamma_or_auto": ["gamma"],
           "spare": ["nodrop"], "unmarked": ["nodrop", "coupling"],
           "draws": ["dither"], "rate_bps": [], "rate_mbit": [],
           "red_limit_bytes": ["red_limit"],
           "red_min_bytes": ["red_min"], "red_max_bytes": ["red_max"]}


def deciding(cc, aqm, values):
    """Names of the parameters on which a congestion control and a named queue
    depend: what a published value has to state. values: those of a run, of
    which some decide whether others matter.
    """
    fields = {field for _, field, _, _ in
              string.Formatter().parse(AQMS[known_aqm(aqm)]) if field}
    names = {name for field in fields for name in _FIELDS.get(field, [field])}
    names |= {"packet_bytes", "warmup_s", "initcwnd"}
    if cc in PACKET_PAIR:
        names |= {"setpoint", "pp_estimator", "law", "initial"}
        if values["initial"]:
            names.remove("initcwnd")
    if cc not in PRICED:
        return names
    names |= {"wtp", "phi", "kappa_young", "slow_start", "loss_cut"}
    if values["kappa_young"]:
        names.add("young_ms")
    if cc in ("sbrm", "cp"):
        names.add("source")
    if cc in ("sbrm", "rem"):
        names.add("estimator")
    if cc == "rem" or cc == "sbrm" and values["estimator"] == "history":
        names.add("history")
    if cc == "sbrm" and values["estimator"] == "log":
        names.add("history_gain")
    vegas = cc == "rem" or cc == "cp" and values["source"] == "vegas"
    return names | ({"rtt"} if vegas else {"kappa", "kappa_window"})


def sysctls(cc, values, wtps):
    """{name: value} to set on every host."""
    # ECN is asked for by everyone: CP05 4.3.1 compares with an ECN NewReno.
    # The rest keeps one connection from learning of another.
    settings = {"net.ipv4.tcp_ecn": 1, "net.ipv4.tcp_no_metrics_save": 1}
    if cc in ECHOED and cc not in RESTRICTED:
        # For receivers that cannot be told (iperf3): they echo the marks.
        settings["net.ipv4.tcp_congestion_control"] = cc
    if cc in PRICED:
        base = "net.ipv4.tcp_sbrm"
        table = [wtps[0]] * 16
        for priority, wtp in zip(sorted(PRIORITIES), wtps):
            table[priority] = wtp
        settings[f"{base}.wtp"] = " ".join(map(str, table))
        for name in ("kappa", "kappa_young", "history_gain"):
            settings[f"{base}.{name}"] = f"{values[name]:.6f}"
        # The papers' loss_cut is not the default of the module.
        for name in ("young_ms", "source", "estimator", "loss_cut"):
            settings[f"{base}.{name}"] = values[name]
        for name in _RARE:
            if values[name] != SBRM_SOURCES[name][0]:
                settings[f"{base}.{name}"] = f"{values[name]:.6f}" \
                    if isinstance(values[name], float) else values[name]
    return settings


def packet_pair_sysctls(values):
    """{name: value} to set on every host of packet-pair sources."""
    base = "net.ipv4.tcp_pp"
    return {f"{base}.setpoint": values["setpoint"],
            f"{base}.estimator": values["pp_estimator"],
            f"{base}.law": values["law"],
            f"{base}.initial": values["initial"]}
