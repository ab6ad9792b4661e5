# SPDX-License-Identifier: GPL-2.0
"""Congestion controls and queues: the words of tc by which experiments name
queues. The modules that have them are in modules.py."""

import math
import shlex

from ..errors import TollwayError
from .pp import reserved_words
from .sbrm import LAWS, law_words, unmarked_words

# tc words of the queues that are known by a name; {key} is a parameter.
# price and rem4 alone are PC3, the law that CP05 uses throughout chapter 4
# and 5.2; price-vqm is the "VQM n bit" of its Table 5.4.2.
AQMS = {
    "sbrm": "sbrm limit {limit} mark sbrm target {target} "
            "gamma {gamma_or_auto}{unmarked}{draws}",
    **{law: law_words(law) for law in LAWS},
    "rem4-pc1": law_words("rem-pc1", "four-bit"),
    "rem4-pc2": law_words("rem-pc2", "four-bit"),
    "rem4": law_words("rem-pc3", "four-bit"),
    "price-pc1": law_words("rem-pc1", "price"),
    "price-pc2": law_words("rem-pc2", "price"),
    "price": law_words("rem-pc3", "price"),
    "price-vqm": law_words("vqm", "price"),
    "price-sbrm": "sbrm limit {limit} mark sbrm target {target} "
                  "gamma {gamma_or_auto}{unmarked} feedback price",
    "alpha": "sbrm limit {limit} mark alpha high {high} goal {goal} "
             "feedback two-bit",
    "pfifo": "pfifo limit {fifo_limit}",
    "red": "red limit {red_limit_bytes} min {red_min_bytes} "
           "max {red_max_bytes} avpkt {packet_bytes} burst {red_burst} "
           "probability {red_probability:g} bandwidth {rate_mbit}mbit ecn{spare}",
    "fq_rr": "fq_rr limit {buffer} service {service} overflow {overflow}"
             "{reserved}",
}
ALIASES = {"rem": "rem-pc3"}


def known_aqm(aqm):
    """The name in AQMS that `aqm` stands for; other words as they are."""
    return ALIASES.get(aqm, aqm)


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
            unmarked=unmarked_words(values), reserved=reserved_words(values),
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
