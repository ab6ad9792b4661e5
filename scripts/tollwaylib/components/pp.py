# SPDX-License-Identifier: GPL-2.0
"""tcp_pp and sch_fq_rr: names, parameters, sysctls."""

from .component import Component

# The unit in which pp reports its estimates and its setpoint, see tcp_pp(7).
ESTIMATE_SCALE = 256
_PARAMETERS = {
    # sch_fq_rr, and fq_codel beside it
    "buffer": (100, 2, 1000000, "limit of fq_rr, packets"),
    "service": ("rr", None, None, "service of fq_rr: rr, drr or wfq"),
    "overflow": ("drop-tail-of-longest", None, None,
                 "of fq_rr: drop-last, drop-tail-of-longest or drop-longest"),
    # tcp_pp
    "setpoint": (0, 0, 1000000, "packets that pp lets wait; 0: it probes"),
    "pp_estimator": ("fuzzy", None, None, "estimator of pp: fuzzy, fixed or kalman"),
    "law": ("continuous", None, None, "law of pp: continuous or discrete"),
    "initial": (0, 0, 1000, "packets that pp sends before it knows a rate; 0: as TCP"),
}
# Of experiments that reserve room (PP94 10.3).
_RESERVED = {
    "window": (0, 0, 1048576, "packets of pp outstanding at most; 0: no limit"),
    "reserve": (0, 0, 1048576, "packets of fq_rr that each flow owns"),
}
# Of experiments with the pole of the discrete law (PP94 4.2.1), and with the steps of a
# setpoint that is probed (PP94 7).
_POLE = {
    "pole": (0.9, 0.01, 1.0, "of pp's discrete law"),
}
_PROBING = {
    "setpoint_step": (2.0, 0.003907, 64.0, "packets that pp tries more"),
    "setpoint_every": (2, 1, 4, "round trips after which it does"),
    "setpoint_cut": (0.75, 0.01, 0.99, "of a setpoint, what a loss leaves"),
}
# Parameters that are settings of the same name, where an experiment has them.
_SETTINGS = ("window", *_POLE, *_PROBING)


def _sysctls(values, _wtps):
    base = "net.ipv4.tcp_pp"
    found = {f"{base}.setpoint": values["setpoint"],
             f"{base}.estimator": values["pp_estimator"],
             f"{base}.law": values["law"],
             f"{base}.initial": values["initial"]}
    return {**found, **{f"{base}.{name}": values[name]
                        for name in _SETTINGS if name in values}}


def _fields(values):
    """Words of fq_rr for what each flow owns of its room."""
    reserve = values.get("reserve")
    return {"reserved": f" reserve {reserve}" if reserve else ""}


def _deciding(_cc, values):
    special = {*_RESERVED, *_POLE, *_PROBING} & set(values)
    first = () if values["initial"] else ("initcwnd",)
    return {"setpoint", "pp_estimator", "law", "initial", *special, *first}


COMPONENT = Component(
    controls=("pp", "ppx"), parameters=_PARAMETERS,
    special={**_RESERVED, **_POLE, **_PROBING},
    choices={"service": ("rr", "drr", "wfq"),
             "overflow": ("drop-last", "drop-tail-of-longest", "drop-longest"),
             "pp_estimator": ("fuzzy", "fixed", "kalman"),
             "law": ("continuous", "discrete")},
    queues={"fq_rr": "fq_rr limit {buffer} service {service} "
                     "overflow {overflow}{reserved}"},
    fields=_fields,
    # Only some experiments have what reserves room, see _deciding().
    made_of={"reserved": []},
    sysctls=_sysctls, deciding=_deciding, cc_info=True)
