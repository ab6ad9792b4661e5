# SPDX-License-Identifier: GPL-2.0
"""tcp_alpha, and the law alpha of sch_sbrm: names, parameters, sysctls."""

from .component import Component, Module, setting

MODULES = (Module(
    "tcp_alpha", controls=("alpha",), echoed=("alpha",), restricted=("alpha",),
    judged="second-order", info="bbr",
    counters={
        "cycles": None,
        "beyond_goal": "cycles of alpha with BCN",
        "loss_as_mark": "ACKs of alpha whose losses counted as congestion",
        "restarts": "restarts of alpha at its initial rate, after timeouts or idle times",
        "field_absent": "connections of alpha whose peer returned no CN and BCN",
        "field_rewritten": "connections on whose path a box rewrites CN and BCN",
        "field_outside": "segments outside of the windows, whose CN and BCN were ignored",
        "field_no_df": "packets without DF, which carry no CN and BCN",
        "field_invalid": "segments that TCP discards, whose CN and BCN were ignored",
    },
    carrying={"alpha": ("field_invalid", None)},
    over="sbrm limit 100 mark alpha high 20 goal 60 feedback two-bit",
    costs={"alpha": {"aqm": "sbrm mark alpha limit 1000 high 50 goal 300 "
                            "feedback two-bit", "sink": "alpha"}}),)

_QUEUE = {
    # sch_sbrm
    "high": (50, 1, 999998, "backlog above which the law alpha sets CN, packets"),
    "goal": (300, 2, 999999, "goal of the law alpha for the largest queue, packets"),
}
_SOURCE = {
    # tcp_alpha
    "gain": (0, 0, 10**9, "initial gain of alpha, packets/s^2; 0: computed from the round trip"),
    "gip": (0, 0, 10**9, "p of alpha, which is added to the gain, packets/s^2; 0: computed from "
            "the round trip"),
    "gdp": (0.8, 0.01, 1.0, "q of alpha, by which the gain is multiplied"),
    "first_pps": (0, 0, 10**9, "initial rate of alpha, packets/s; 0: as TCP"),
    "bw_pps": (0, 0, 10**9, "BW_EST of alpha, packets/s; 0: measured"),
    "bw_share": (0, 0, 1, "1: BW_EST is between bw_pps and the mean share of all flows"),
    "step": (0.2, 0.02, 1.0, "time between steps of alpha, round trips"),
    "loss_share": (0.03125, 0.001, 1.0,
                   "fraction of lost packets above which alpha takes losses for congestion; "
                   "1: never"),
}

# {setting of tcp_alpha: parameter}
_SYSCTLS = {"gain": "gain", "gip": "gip", "gdp": "gdp", "initial": "first_pps",
            "bandwidth": "bw_pps", "share": "bw_share", "interval": "step", "losses": "loss_share"}


def gain_sysctl(gain):
    """{name: value} for a source with a gain of its own, packets/s^2."""
    return {"net.ipv4.tcp_alpha.gain": gain}


def _sysctls(values, _wtps):
    return {f"net.ipv4.tcp_alpha.{name}": setting(values[key])
            for name, key in _SYSCTLS.items()}


def _deciding(_cc, values):
    first = () if values["first_pps"] else ("initcwnd",)
    return {*_SOURCE, *first}


COMPONENT = Component(
    controls=("alpha",), parameters={**_QUEUE, **_SOURCE},
    queues={"alpha": "sbrm limit {limit} mark alpha high {high} goal {goal} "
                     "feedback two-bit"},
    sysctls=_sysctls, deciding=_deciding, cc_info=True)
