# SPDX-License-Identifier: GPL-2.0
"""tcp_sbrm and sch_sbrm: names, parameters, words of tc, sysctls."""

from .modules import ECHOED, RESTRICTED

# Congestion controls of tcp_sbrm, which have a willingness to pay.
PRICED = ("sbrm", "rm", "rem", "cp")
# Willingness to pay goes by socket priority. These three are also what the
# kernel makes of the types of service below (rt_tos2priority), which is all
# that iperf3 can set.
PRIORITIES = {2: 0x08, 4: 0x18, 6: 0x10}

LAWS = {
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


def law_words(law, feedback=None):
    words = f"sbrm limit {{limit}} {LAWS[law]}{{unmarked}}"
    if feedback is not None:
        return f"{words} feedback {feedback}"
    # The marks of vqm are certain: nothing is drawn.
    return words if law == "vqm" else f"{words}{{draws}}"


# {name: (default, least, greatest, meaning)} of what --set takes, of the qdisc
# sbrm, of other queues, of tcp_sbrm and of packet pair.
SBRM_QUEUE = {
    # sch_sbrm
    "limit": (1000, 1, 1000000, "limit of the queue sbrm, packets"),
    "target": (10, 0, 999999, "target of the queue sbrm, packets, b0 of CP05 (5.4.1)"),
    "gamma": (0.015, 0.0, 1.0, "price per packet above the target; 0: auto"),
    "alpha": (0.1, 1e-6, 1000.0, "weight of the backlog in rem-pc3"),
    "delta": (0.9, 1e-6, 1.0, "weight of an interval in its input rate"),
    "interval_us": (1000, 1, 1000000, "us between two updates of the price"),
    "vqm_scale": (0.9, 0.01, 1.0, "rate and limit of the virtual queue of vqm, relative"),
    "delay_ms": (3.0, 0.01, 1000.0, "target of the law delay, ms"),
    # The papers have no packets without ECN. Those of Linux are dropped with the
    # probability of a mark, in all experiments, as their published runs did.
    "nodrop": (0, 0, 1, "1: no packet is dropped for its price"),
    "coupling": (0.0, 0.0, 1000.0, "0: price-drop of tc-sbrm(8), otherwise its "
                 "coupling"),
    "dither": (1, 0, 1, "0: each mark is drawn independently, as in the papers"),
}

SBRM_SOURCES = {
    # tcp_sbrm
    "phi": (1.0, 1.0, 100.0, "base of REM's prices and of wtp; 1: e"),
    "wtp": (100, 1, 1000000, "willingness to pay of the lowest class, packets/s"),
    "kappa": (0.1, 1e-6, 10.0, "gain per acknowledged segment"),
    "kappa_young": (0.0, 0.0, 10.0, "gain of a new connection, 0 for none"),
    "young_ms": (4000, 1, 3600000, "ms for which a connection counts as new"),
    "history_gain": (0.015625, 1e-6, 1.0, "weight of one packet in the marks"),
    "source": ("direct", None, None, "direct, aimd, vegas or relative"),
    "estimator": ("log", None, None, "log, raw, history, four-bit, explicit"),
    "history": (50, 1, 64, "packets of the estimator history"),
    "rtt": ("last", None, None, "round trip in the rate: last or min"),
    "slow_start": (1, 0, 1, "1: slow start"),
    "kappa_window": (0, 0, 1 << 24, "segments above which kappa falls, or 0"),
    "loss_cut": (1, 0, 2, "1: a loss halves the window; 0, 2: tcp_sbrm(7)"),
}

# Written to the hosts only where they are not the module's defaults.
_RARE = ("phi", "history", "rtt", "slow_start", "kappa_window")


def unmarked_words(values):
    """tc words of sbrm for packets that are not ECN-capable."""
    if values["nodrop"]:
        return " nodrop"
    return f" coupling {values['coupling']:g}" if values["coupling"] else \
        " price-drop"


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
