# SPDX-License-Identifier: GPL-2.0
"""`tollway doctor --peer`: does congestion notification work from end to end?

The state of the host is read twice, with some seconds of traffic in between: connections
to the peer (ss), ECN counters of the kernel, counters of our modules, and queues (tc).
Then probes are sent: UDP packets with CE and with ECT(0), whose time to live ends at each
hop in turn. Routers and the peer quote them in ICMP as they arrived there.

observe() collects the data, and judge() is a pure function of it.
"""

from ..components.modules import COUNTING, ECHOING, MODULES
from . import stability
from .finding import Finding
from .observe import CE, CODEPOINTS, CONTROLS, ECT0, PAIRED, PRICED, SECOND_ORDER, UNJUDGED

# Bits of what alpha says in ss, see tcp_alpha(7).
FIELD, HEARD = 4, 8
# Counters of a queue sbrm: packets that the price dropped, in one way or another.
UNMARKED = ("price_drops", "coupled_drops", "overload_drops")

# Above this share too few packets without a mark are left to tell the price;
# with the source relative, that of a price of 5.
MARKED_MOST = {False: 0.8, True: 0.993}

# A queue that never held more was never one.
FULL_PACKETS = 1.5

# {line of /proc/net of a module: what it says where it grows}
COUNTERS = {name: meaning for module in MODULES
            for name, meaning in module.counters.items() if meaning}


def judge_host(seen):
    """Modules and settings of this host."""
    if seen["modules"]:
        yield Finding("modules", "ok",
                      f"{' and '.join(seen['modules'])} loaded here, Linux "
                      f"{seen['kernel']}")
    else:
        yield Finding("modules", "wrong",
                      f"none of {', '.join(CONTROLS)} is loaded here",
                      "make install (or the package tollway-dkms), then "
                      "modprobe tcp_sbrm")
    if seen["tcp_ecn"] == 0:
        yield Finding("tcp_ecn", "wrong",
                      "net.ipv4.tcp_ecn is 0: this host refuses ECN to others",
                      "sysctl net.ipv4.tcp_ecn=2")


def judge_path(seen):
    """Codepoints that the probes had at each hop."""
    hops = seen["hops"]
    if hops is None:
        yield Finding("path", "unknown", "the path was not probed",
                      "run tollway doctor --peer as root")
        return
    before = "this host"
    for one in hops:
        for name, sent in (("ce", CE), ("ect0", ECT0)):
            # A queue on the way may mark what is ECT(0).
            if one[name] in (None, sent) or (sent, one[name]) == (ECT0, CE):
                continue
            yield Finding(
                "path", "wrong",
                f"{CODEPOINTS[sent]} is removed: it becomes "
                f"{CODEPOINTS[one[name]]} between {before} and "
                f"{one['address']} (hop {one['hop']})",
                "correct the rule that rewrites the ECN bits there (often an "
                "old one for the TOS byte); until then use pp, which needs "
                "no marks")
            return
        before = one["address"] or before
    heard = [one for one in hops if one["ce"] is not None]
    if heard and heard[-1]["end"]:
        yield Finding("path", "ok",
                      "probes with CE and ECT(0) arrive at "
                      f"{seen['address']} unchanged (hops: "
                      f"{heard[-1]['hop']})")
    elif heard:
        yield Finding("path", "unknown",
                      f"CE is kept up to {heard[-1]['address']} (hop "
                      f"{heard[-1]['hop']}); no router after it answered"
                      " a probe",
                      "run tollway doctor --peer on the receiver while data "
                      "arrives")
    else:
        yield Finding("path", "unknown", "no probe was answered",
                      "run tollway doctor --peer on the receiver while data "
                      "arrives")


def judge_queues(seen):
    """The queues of this host: on a router, those that matter."""
    for name, one in seen["queues"].items():
        if one["kind"] != "sbrm" or not one["grown"].get("packets"):
            continue
        where = f"the queue sbrm on {name.split()[0]}"
        unmarked = sum(one["grown"].get(name, 0) for name in UNMARKED)
        if unmarked > one["marks"]:
            yield Finding(
                "queue", "wrong",
                f"{where} dropped {unmarked} packets for "
                f"the price and marked {one['marks']}: the packets "
                "that arrive are not ECN-capable", "run tollway doctor "
                "--peer on the senders, and on the routers before this one")
        elif one["marks"] or one["grown"].get("carried"):
            yield Finding("queue", "ok",
                          f"{where} marked {one['marks']} of "
                          f"{one['grown']['packets']} packets; its price is "
                          f"{one['now'].get('price', 0):.3g}")
        elif one["root"] and waits(one) < FULL_PACKETS:
            yield Finding(
                "queue", "unknown", f"{where} never holds more than the packet "
                "that it sends: the link is not busy, or packets wait behind "
                "it", "shape to just below the link's rate with htb, and put "
                "sbrm under it: see tc-sbrm(8)")
        else:
            yield Finding("queue", "note",
                          f"{where} marked nothing of "
                          f"{one['grown']['packets']} packets: the link is not "
                          "busy, or its queue is short")


def senders(seen):
    """The connections that send from this host and get prices."""
    return [one for one in seen["connections"] if one["cc"] == "sbrm"
            and not one["fallback"] and one["grown"].get("bytes_acked")]


def judge_match(seen):
    """Laws of the queues of this host, with the source of what sends from here."""
    source = seen.get("source")
    if not source or not senders(seen):
        return
    for name, one in seen["queues"].items():
        law = one.get("options", {}).get("law")
        if one["kind"] != "sbrm" or not one["grown"].get("packets") or \
                not law or (source == "relative") == (law == "delay"):
            continue
        yield Finding(
            "match", "note", f"the queue sbrm on {name.split()[0]} has the law "
            f"{law}, and connections from here may have the source {source}: "
            "they were not designed for each other, and the queue may be long "
            "or the link not full",
            "tc qdisc change ... sbrm mark delay; or, for the papers' laws, "
            "sysctl net.ipv4.tcp_sbrm.source=direct, and connect again"
            if source == "relative" else
            "sysctl net.ipv4.tcp_sbrm.source=relative, and connect again; or "
            "tc qdisc change ... sbrm mark sbrm")


def judge_stability(seen):
    """Queues of this host with the round trips of the connections from here; on
    a router neither the round trips nor the sources are known. The gain of the
    source relative is not kappa, and another loop."""
    rtts_s = [one["rtt_ms"] / 1000 for one in senders(seen) if one["rtt_ms"]]
    if rtts_s and seen.get("source") == "relative":
        return
    for loop in stability.loops(seen["queues"], seen["rates"], seen["kappa"]):
        yield Finding("stability", *stability.verdict(
            loop, max(rtts_s, default=None)))


def waits(queue):
    """Mean backlog of a queue sbrm in the time looked at, packets."""
    grown_by = queue["grown"]
    mean = grown_by.get("backlog_sum", 0) / max(grown_by.get("dequeued", 0), 1)
    # Counted in bytes it is above what a packet has.
    size = grown_by.get("bytes", 0) / max(grown_by["packets"], 1)
    return mean / size if mean > size > 0 else mean


def judge_negotiation(seen, one, name):
    """Was ECN negotiated, and by a peer that echoes marks?"""
    if "ecn" not in one["flags"]:
        here = "sysctl net.ipv4.tcp_ecn=1 here"
        there = ("there: modprobe tcp_sbrm, sysctl net.ipv4."
                 "tcp_congestion_control=sbrm, net.ipv4.tcp_ecn not 0; then "
                 "connect again")
        if one["cc"] in COUNTING:
            yield Finding("ecn", "wrong", f"{name}: ECN was refused; the peer "
                          "has not loaded the module, or has "
                          "net.ipv4.tcp_ecn=0, or a box on the path clears "
                          "the flags of the SYN", there)
        elif one["cc"] == "rm":
            yield Finding("ecn", "wrong", f"{name}: no ECN, so losses are "
                          "the only signal", here if seen["tcp_ecn"] not in (1, 3) else
                          "there: sysctl net.ipv4.tcp_ecn=2")
        return
    yield Finding("ecn", "ok", f"{name}: ECN was negotiated")
    if one["cc"] in COUNTING and one["fallback"]:
        yield Finding("echo", "wrong", f"{name}: the peer repeats ECE, so that "
                      "marks cannot be counted; it does not use sbrm for this "
                      "connection (dctcp:fallback_mode)",
                      "there: modprobe tcp_sbrm, sysctl net.ipv4."
                      "tcp_congestion_control=sbrm; then connect again")


def judge_sender(seen, one, name):
    """A connection that sends from here."""
    yield from judge_negotiation(seen, one, name)
    if one["cc"] == "cp":
        if one["fallback"]:
            yield Finding("echo", "wrong", f"{name}: the price does not come "
                          "back (dctcp:fallback_mode)", "there: modprobe "
                          "tcp_sbrm, and cp for this connection; and see "
                          "price_rewritten in its /proc/net/tcp_sbrm")
        else:
            yield Finding("echo", "ok", f"{name}: the peer returns the price")
        return
    if one["cc"] not in COUNTING or "ecn" not in one["flags"] or \
            one["fallback"] or not one["dctcp"]:
        return
    marked, acked = one["dctcp"]["marked"], one["dctcp"]["acked"]
    made = sum(queue["marks"] for queue in seen["queues"].values())
    if marked > MARKED_MOST[seen.get("source") == "relative"] * acked:
        yield Finding("marks", "wrong", f"{name}: {marked} of {acked} segments "
                      "were marked, too many to determine the price",
                      "lower net.ipv4.tcp_sbrm.wtp, see tcp_sbrm(7)")
    elif marked:
        yield Finding("marks", "ok", f"{name}: marks come back one by one, "
                      f"{marked} of {acked} segments in {seen['seconds']:g} "
                      "s; the peer echoes them")
    elif made:
        yield Finding("marks", "wrong", f"{name}: queues of this host marked "
                      f"{made} packets, and no mark came back: CE is "
                      "removed, or other connections had these packets",
                      "see the path; run tollway doctor --peer on the "
                      "receiver")
    else:
        yield Finding("marks", "unknown", f"{name}: no mark came back of "
                      f"{acked} segments: no queue on the path made one, or "
                      "CE is removed", "run tc -s qdisc show on the router: "
                      "does it mark? Run tollway doctor --peer on the "
                      "receiver")


def judge_receiver(seen, one, name):
    """A connection whose data comes to here."""
    if one["cc"] in ECHOING and "ecn" not in one["flags"]:
        yield Finding("ecn", "wrong", f"{name}: ECN was not negotiated. "
                      "Either the connection is older than the setting of "
                      "this end, or the peer does not request ECN, or the "
                      "path clears the flags of the SYN", "connect again; "
                      "run tollway doctor --peer on the peer")
        return
    if "ecn" not in one["flags"]:
        return
    if "ecnseen" not in one["flags"]:
        yield Finding("ect", "wrong", f"{name}: ECN was negotiated, but no "
                      "packet came as ECN-capable: the path clears the ECN "
                      "bits", "run tollway doctor --peer as root on the "
                      "peer: it says where")
        return
    counters = seen["counters"]
    marked = counters.get("IpExtInCEPkts", 0) + counters.get("Ip6InCEPkts", 0)
    capable = marked + sum(counters.get(f"{kind}{which}Pkts", 0)
                           for kind in ("IpExtIn", "Ip6In")
                           for which in ("ECT0", "ECT1"))
    if marked:
        yield Finding("marks", "ok", f"{name}: marks arrive; {marked} of "
                      f"{capable} ECN-capable packets of this host in "
                      f"{seen['seconds']:g} s, and this end echoes them")
    else:
        yield Finding("marks", "unknown", f"{name}: {capable} ECN-capable "
                      "packets and no mark came: no queue on the path made "
                      "one, or CE is removed", "run tc -s qdisc show on the "
                      "router: does it mark? Run tollway doctor --peer as "
                      "root on the peer: it probes the path")


def judge_second_order(one, name, sends):
    """A connection of alpha: do CN and BCN come back, or marks at least?"""
    if not sends:
        yield Finding("cc", "ok", f"{name}: receives with alpha, which returns "
                      "CN and BCN")
        return
    yield Finding("cc", "ok", f"{name}: sends with alpha")
    field = (one["state"] or 0) & FIELD
    if field:
        yield Finding("echo", "ok", f"{name}: the peer returns CN and BCN")
    elif "ecn" in one["flags"]:
        yield Finding("echo", "note", f"{name}: the peer does not return CN and "
                      "BCN; ECN marks are used as CN, and BCN is inferred "
                      "from round trips", "there: modprobe tcp_alpha, and alpha for this "
                      "connection; and see field_rewritten in its "
                      "/proc/net/tcp_alpha")
    else:
        yield Finding("echo", "wrong", f"{name}: the peer does not return CN "
                      "and BCN, and ECN was not negotiated: losses are the "
                      "only signal", "there: modprobe tcp_alpha, and alpha for this "
                      "connection; or net.ipv4.tcp_ecn=1 here")
    if (one["state"] or 0) & HEARD:
        yield Finding("marks", "ok", f"{name}: a queue on the path has set CN")
    elif field or "ecn" in one["flags"]:
        yield Finding("marks", "unknown", f"{name}: no CN arrived: no queue on "
                      "the path sets it, or the link was never busy",
                      "on the router: tc qdisc ... sbrm mark alpha feedback "
                      "two-bit, see tc-sbrm(8)")


def judge_connection(seen, one):
    """One connection, from whichever end this is."""
    name = f"{one['local']} > {one['remote']}"
    sent = one["grown"].get("bytes_acked", 0)
    received = one["grown"].get("bytes_received", 0)
    if not sent and not received:
        yield Finding("idle", "unknown", f"{name}: idle for "
                      f"{seen['seconds']:g} s", "send data during this time")
        return
    if one["cc"] in PAIRED:
        yield Finding("cc", "ok", f"{name}: uses {one['cc']}, which needs "
                      "neither marks nor a module at the peer")
        return
    if one["cc"] in SECOND_ORDER:
        yield from judge_second_order(one, name, sent >= received)
        return
    if one["cc"] in UNJUDGED:
        yield Finding("cc", "note", f"{name}: uses {one['cc']}, whose signals "
                      "this command does not know")
        return
    if sent >= received:
        if one["cc"] not in PRICED:
            yield Finding("cc", "wrong", f"{name}: sends with {one['cc']}",
                          "sysctl net.ipv4.tcp_congestion_control=sbrm (now "
                          f"{seen['default']}), or ip route ... congctl sbrm; "
                          "then connect again")
            return
        yield Finding("cc", "ok", f"{name}: sends with {one['cc']}")
        yield from judge_sender(seen, one, name)
        return
    if one["cc"] in ECHOING:
        yield Finding("cc", "ok", f"{name}: receives with {one['cc']}, which "
                      "echoes each mark")
    elif one["cc"] == "cp":
        yield Finding("cc", "ok", f"{name}: receives with cp, which returns "
                      "the price")
    elif seen["tcp_ecn"] == 3:
        yield Finding("cc", "note", f"{name}: receives with {one['cc']}; "
                      "AccECN (net.ipv4.tcp_ecn=3) counts the marks")
    else:
        yield Finding("cc", "wrong", f"{name}: receives with {one['cc']}, "
                      "which does not echo single marks: a sender with sbrm "
                      "uses TCP/RM", "modprobe tcp_sbrm; sysctl net.ipv4."
                      "tcp_congestion_control=sbrm here; then connect again")
    yield from judge_receiver(seen, one, name)


def judge_absence(seen):
    """There is no connection to judge."""
    trial = seen["handshake"]
    if trial and trial["ecn"]:
        yield Finding("ecn", "ok", f"a new connection of sbrm to "
                      f"{seen['peer']}: ECN is accepted; unless the peer "
                      "has AccECN, this means that it has the module")
    elif trial and trial["ecn"] is False:
        yield from judge_negotiation(
            seen, {"cc": "sbrm", "flags": []},
            f"a new connection of sbrm to {seen['peer']}")
    elif trial:
        yield Finding("ecn", "unknown", f"no connection to {seen['peer']}: "
                      f"{trial['error']}", "start a program that listens there")
    router = any(one["kind"] == "sbrm" and one["grown"].get("packets")
                 for one in seen["queues"].values())
    known = router or trial and trial["ecn"] is not None
    yield Finding("connections", "note" if known else "unknown", f"there is no connection to {seen['peer']} "
                  "from here: marks and echoes were not seen", "" if router
                  else "send data during this time (iperf3, tollway-traffic)")


def judge(seen):
    """[Finding] of what observe() has seen."""
    found = list(judge_host(seen))
    for one in seen["connections"]:
        found += judge_connection(seen, one)
    if not seen["connections"]:
        found += judge_absence(seen)
    found += judge_queues(seen)
    found += judge_match(seen)
    found += judge_stability(seen)
    # With pairs of packets alone nobody asks for marks.
    if not seen["connections"] or any(one["cc"] not in PAIRED for one in
                                      seen["connections"]):
        found += judge_path(seen)
    found += [Finding(name, "note", f"in these {seen['seconds']:g} s: {number} "
                      f"{COUNTERS[name]} ({name})")
              for name, number in seen["module_counters"].items()
              if number > 0 and name in COUNTERS]
    return without_doubts(found)


def without_doubts(found):
    """Leave out doubts about marks if it is known that the path removes them."""
    removed = [one for one in found if one.about == "path"
               and one.verdict == "wrong"]
    for one in found:
        if removed and one.about == "marks" and one.verdict == "unknown":
            one.verdict = "wrong"
            one.text = one.text.partition(": no queue")[0] + \
                ": CE is removed, see the path"
            one.remedy = ""
    return found
