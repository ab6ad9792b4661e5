# SPDX-License-Identifier: GPL-2.0
"""tcp_sbrm and sch_sbrm: names, parameters, words of tc, sysctls."""

import math

from .component import Component, Module, Trial, setting

_MARKED = {"aqm": "sbrm limit 1000 target 10 gamma 0.01"}
# For make bench: with this rate and gamma the queue sends a packet about every
# 0.6 us, and the price rises from 0 to about 0.2 during the measurement.
_CLOCKED = "rate 10gbit avpkt 1514 gamma 1e-6"
MODULES = (
    Module(
        "tcp_sbrm", controls=("sbrm", "rem", "cp", "rm"),
        echoed=("sbrm", "rem", "cp"), restricted=("cp",),
        counting=("sbrm", "rem"), judged="marks", info="dctcp",
        counters={
            "no_ecn": "connections whose peer refused ECN",
            "latched": "connections whose peer repeats ECE instead of echoing marks",
            "no_ipv4": "connections over IPv6, which carries no explicit price",
            "price_absent": "times that a peer stopped returning the price",
            "price_rewritten": "connections on whose path a box rewrites the price",
            "price_outside": "segments outside of the window, whose price was ignored",
            "price_no_df": "packets without DF, which carry no price",
            "price_invalid": "segments that TCP discards, whose price was ignored",
            "price_signed": "connections with signed segments, which carry no price",
        },
        carrying={"cp": ("price_invalid", "price_signed")},
        over="sbrm limit 100",
        costs={"sbrm relative": {"aqm": "sbrm limit 1000", "shipped": True},
               "sbrm": _MARKED, "rm": {**_MARKED, "sink": "reno"},
               "rem": _MARKED,
               "cp": {"aqm": "sbrm limit 1000 target 10 gamma 0.01 "
                             "feedback price"}},
        free=("rm", "rem", "cp")),
    Module(
        "sch_sbrm", queue="sbrm",
        trial=Trial(
            "limit 300 target 20 gamma 0.02", "limit 400", "limit", 400,
            ("limit {1}", "target {0} limit {1}", "gamma 0.{0}", "mark sbrm",
             "mark rem-pc2", "mark rem-pc3 rate {0}mbit",
             "mark vqm rate {0}mbit", "mark delay", "mark delay target {0}ms",
             "target {0}ms", "feedback price", "feedback mark", "dither",
             "no-dither", "sparse", "no-sparse", "split-gso", "no-split-gso", "ecn", "drop",
             "reset-stats")),
        costs={
            # The default of tc. The price is nearly 0, but the queue still draws a
            # random number for each packet.
            "sbrm delay": "sbrm mark delay limit 65535",
            "sbrm": "sbrm limit 65535 target 0 gamma {gamma}",
            "sbrm no-dither": "sbrm limit 65535 target 0 gamma {gamma} no-dither",
            "sbrm rem-pc1": f"sbrm mark rem-pc1 limit 65535 {_CLOCKED}",
            "sbrm rem-pc2": "sbrm mark rem-pc2 limit 65535 target 0 "
                            "phi 2.718281828 gamma {gamma}",
            "sbrm rem-pc3": "sbrm mark rem-pc3 limit 65535 target {backlog} "
                            f"{_CLOCKED}",
            "sbrm vqm": "sbrm mark vqm limit 65535 rate 10gbit avpkt 1514",
            "sbrm price": "sbrm limit 65535 target 0 gamma {gamma} feedback price",
            "sbrm alpha": "sbrm mark alpha limit 65535 high 1 low 0 goal 60000",
            "sbrm four-bit": "sbrm limit 65535 target 0 gamma {gamma} "
                             "feedback four-bit"}),
)

# {socket priority: type of service}. The willingness to pay depends on the socket
# priority. The kernel derives these three priorities from these types of service
# (rt_tos2priority); iperf3 can set the type of service only.
PRIORITIES = {2: 0x08, 4: 0x18, 6: 0x10}

_LAWS = {
    "rem-pc1": "mark rem-pc1 phi {link_phi} gamma {gamma_or_auto} delta {delta:g} "
               "interval {interval_us}us avpkt {packet_bytes} "
               "rate {rate_bps}bit",
    "rem-pc2": "mark rem-pc2 target {target} phi {link_phi} gamma {gamma_or_auto}",
    "rem-pc3": "mark rem-pc3 target {target} phi {link_phi} gamma {gamma_or_auto} "
               "alpha {alpha:g} delta {delta:g} interval {interval_us}us "
               "avpkt {packet_bytes} rate {rate_bps}bit",
    "vqm": "mark vqm scale {vqm_scale:g} rate {rate_bps}bit",
    "delay": "mark delay target {delay_ms:g}ms",
}


def _law_words(law, feedback=None):
    words = f"sbrm limit {{limit}} {_LAWS[law]}{{unmarked}}"
    if feedback is not None:
        return f"{words} feedback {feedback}"
    # The marks of vqm are certain: nothing is drawn.
    return words if law == "vqm" else f"{words}{{draws}}"


# {name of a queue: words of tc}. price and rem4 have the law PC3, which CP05 uses in
# all of chapter 4 and in 5.2. price-vqm is "VQM n bit" of Table 5.4.2 of CP05.
_QUEUES = {
    "sbrm": "sbrm limit {limit} mark sbrm target {target} "
            "gamma {gamma_or_auto}{unmarked}{draws}",
    **{law: _law_words(law) for law in _LAWS},
    "rem4-pc1": _law_words("rem-pc1", "four-bit"),
    "rem4-pc2": _law_words("rem-pc2", "four-bit"),
    "rem4": _law_words("rem-pc3", "four-bit"),
    "price-pc1": _law_words("rem-pc1", "price"),
    "price-pc2": _law_words("rem-pc2", "price"),
    "price": _law_words("rem-pc3", "price"),
    "price-vqm": _law_words("vqm", "price"),
    "price-sbrm": "sbrm limit {limit} mark sbrm target {target} "
                  "gamma {gamma_or_auto}{unmarked} feedback price",
}
# {field of these words: the parameters from which it is computed}. The rate is that of
# the link, which is no parameter of the queue.
_MADE_OF = {"link_phi": ["phi"], "gamma_or_auto": ["gamma"],
            "unmarked": ["nodrop", "coupling"], "draws": ["dither"],
            "rate_bps": []}

_QUEUE = {
    # sch_sbrm
    "limit": (1000, 1, 1000000, "limit of the queue sbrm, packets"),
    "target": (10, 0, 999999, "target of the queue sbrm, packets, b0 of CP05 (5.4.1)"),
    "gamma": (0.015, 0.0, 1.0, "price per packet above the target; 0: auto"),
    "alpha": (0.1, 1e-6, 16.0, "weight of the backlog in rem-pc3"),
    "delta": (0.9, 0.001, 1.0, "weight of the last interval in the input rate of rem-pc1 "
              "and rem-pc3"),
    "interval_us": (1000, 1, 1000000, "time between two updates of the price of rem-pc1 and "
                    "rem-pc3, us"),
    "vqm_scale": (0.9, 0.01, 1.0, "rate and limit of the virtual queue, divided by the real ones"),
    "delay_ms": (3.0, 0.01, 1000.0, "target of the law delay, ms"),
    # The papers have no packets without ECN. In all experiments, packets of Linux
    # without ECN are dropped with the probability of a mark (price-drop).
    "nodrop": (0, 0, 1, "1: no packet is dropped for its price"),
    "coupling": (0.0, 0.0, 1000.0, "option coupling of tc-sbrm(8); 0: its option "
                 "price-drop"),
    "dither": (1, 0, 1, "0: each mark is drawn independently, as in the papers"),
}

_SOURCES = {
    # tcp_sbrm
    "phi": (1.0, 1.0, 16.0, "base of the prices of rem-pc1 to rem-pc3, and of those for which wtp "
            "was chosen; 1: e"),
    "wtp": (100, 1, 1000000, "willingness to pay of the lowest class, packets/s"),
    "kappa": (0.1, 1e-6, 10.0, "gain per acknowledged segment"),
    "kappa_young": (0.0, 0.0, 10.0, "gain of a new connection; 0: the same as kappa"),
    "young_ms": (4000, 1, 3600000, "age of a connection at which a fifth of kappa_young - kappa "
                 "is left, ms"),
    "history_gain": (0.015625, 1e-6, 1.0, "weight of a packet in the average of marks"),
    "source": ("direct", None, None, "direct, aimd, vegas or relative"),
    "estimator": ("log", None, None, "log, raw, history, four-bit, explicit"),
    "history": (50, 1, 64, "packets of the estimator history"),
    "rtt": ("last", None, None, "round trip in the rate: last or min"),
    "slow_start": (1, 0, 1, "1: connections begin with slow start"),
    "kappa_window": (0, 0, 1 << 24, "window above which kappa is reduced, segments; 0: never"),
    "loss_cut": (1, 0, 2, "1: a loss halves the window; 0 and 2: see tcp_sbrm(7)"),
}

# These sysctls are written only if they differ from the defaults of the module.
_RARE = ("phi", "history", "rtt", "slow_start", "kappa_window")


def _fields(values):
    return {"rate_bps": int(values["rate_mbit"] * 1e6),
            "link_phi": f"{values['phi'] if values['phi'] > 1 else math.e:.6f}",
            "gamma_or_auto": values["gamma"] or "auto",
            "draws": "" if values["dither"] else " no-dither",
            "unmarked": _unmarked(values)}


def _unmarked(values):
    """Words of tc for packets that are not ECN-capable."""
    if values["nodrop"]:
        return " nodrop"
    return f" coupling {values['coupling']:g}" if values["coupling"] else \
        " price-drop"


def _sysctls(values, wtps):
    base = "net.ipv4.tcp_sbrm"
    table = [wtps[0]] * 16
    for priority, wtp in zip(sorted(PRIORITIES), wtps):
        table[priority] = wtp
    settings = {f"{base}.wtp": " ".join(map(str, table))}
    # The loss_cut of the papers is not the default of the module.
    for name in ("kappa", "kappa_young", "history_gain", "young_ms", "source",
                 "estimator", "loss_cut"):
        settings[f"{base}.{name}"] = setting(values[name])
    for name in _RARE:
        if values[name] != _SOURCES[name][0]:
            settings[f"{base}.{name}"] = setting(values[name])
    return settings


def _deciding(cc, values):
    names = {"initcwnd", "wtp", "phi", "kappa_young", "slow_start", "loss_cut"}
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


COMPONENT = Component(
    controls=("sbrm", "rm", "rem", "cp"), parameters={**_QUEUE, **_SOURCES},
    choices={"source": ("direct", "aimd", "vegas", "relative"),
             "estimator": ("log", "raw", "history", "four-bit", "explicit"),
             "rtt": ("last", "min")},
    shipped={"source": "relative", "wtp": 25, "loss_cut": 2, "coupling": 0.5},
    queues=_QUEUES, fields=_fields, made_of=_MADE_OF, sysctls=_sysctls,
    deciding=_deciding, priced=True)
