# SPDX-License-Identifier: GPL-2.0
"""sbrm flows beside flows without ECN, in one queue: who gets what.

Two flows of sbrm and two of another congestion control cross one queue; short
transfers and small questions without ECN cross it beside flows of sbrm; and a
flood takes no notice of losses. Each is measured with what the queue may do to
packets that are not ECN-capable: drop them with the coupled probability (the
default), with that of a mark (price-drop), or not at all (nodrop). Flows with the
ECN of RFC 3168 cross it beside flows of sbrm with ECT(1), and the queue tells
them apart (l4s-ect) or not (any-ect).

What each flow gets is compared with the derivation of tc-sbrm(8), see derived().
"""

import json
import math
from collections import namedtuple
from pathlib import Path

import guest_base
from guest_base import note, run, start
from tcp_bench import PACKET, TRAFFIC
from tcp_bench import Path as TcpPath

OURS, OTHERS, DATAGRAMS = 5000, 5001, 5002
PAYLOAD = 1448
KAPPA = 0.1

# At the router's ingress: of what sbrm sends, ECT(0), which is 2, becomes ECT(1),
# so that the header's checksum grows by one. pedit carries nothing from its low
# byte to the high one: that is the first filter. (It is never 0xffff.)
ECT_1 = [f"filter add dev left ingress prio {prio} protocol ip u32 match ip "
         f"protocol 6 0xff match ip dport {OURS} 0xffff match ip tos 2 3 "
         f"match u8 {low} {low} at 11 action pedit ex munge ip tos set 1 retain "
         f"3 munge offset 11 u8 add 1 {more}"
         for prio, low, more in ((1, "0xff", "munge offset 10 u8 add 1"),
                                 (2, "0", ""))]


def gamma_of(rate_bps, rtt_ms):
    """That of README, or the largest one that is stable: kappa c gamma RTT of
    0.8, see tcp_sbrm(7)."""
    return min(0.015, 0.8 / (KAPPA * rate_bps / 8 / PACKET * rtt_ms / 1e3))


class Mix:
    """A path on which flows of sbrm and others share the queue."""

    def __init__(self, rate_bps, rtt_ms, how="", wtps=(100,), gamma=None,
                 shipped=False, ecn=False):
        """wtps: willingness to pay of SO_PRIORITY 0, 1, ..; how: what the queue
        does, in words of tc; shipped: law and source as they come, not those of
        CP05, and wtp, too, unless given; ecn: the others have ECN and send
        ECT(0), and ECT(0) of sbrm is rewritten to ECT(1) before the queue."""
        self.link_bps = rate_bps
        gamma = gamma or gamma_of(rate_bps, rtt_ms)
        law = "" if shipped else f"target 10 gamma {gamma:.9f}"
        # The limit is one round trip and more, as a router has.
        limit = max(1000, round(rate_bps * rtt_ms / 1e3 / 8 / PACKET))
        self.path = TcpPath(rate_bps=rate_bps, rtt_ms=rtt_ms, sink="sbrm",
                            shipped=shipped, aqm=f"sbrm limit {limit} {law} {how}")
        if wtps:
            table = list(wtps) + [wtps[0]] * (16 - len(wtps))
            self.path.s.sysctl("net.ipv4.tcp_sbrm.wtp",
                               " ".join(map(str, table)))
        # sbrm asks for ECN by itself; nobody else does.
        self.path.s.sysctl("net.ipv4.tcp_ecn", int(ecn))
        if ecn:
            self.path.r1.batch("tc", ["qdisc add dev left clsact",
                                      *ECT_1])
        for space in (self.path.s, self.path.d):
            space.sysctl("net.ipv4.tcp_wmem", "4096 4000000 64000000")
            space.sysctl("net.ipv4.tcp_rmem", "4096 4000000 64000000")
        self.path.sink("reno", OTHERS)
        self.flows = []
        self.report, self.network = {}, {}

    def add(self, port=OTHERS, **words):
        """A flow, in words of tollway-traffic; its number."""
        number = len(self.flows) + 1
        words = {"id": number, "dst": "10.0.2.2", "port": port, **words}
        self.flows.append(" ".join(f"{key}={value}"
                                   for key, value in words.items()))
        return number

    def pays(self, prio=0, **words):
        """A flow of sbrm."""
        return self.add(OURS, cc="sbrm", prio=prio, **words)

    def datagrams(self):
        """A receiver of UDP, which says what it got when ended."""
        with self.path.d:
            return start([TRAFFIC, "sink", "--port", str(DATAGRAMS), "--json",
                          "datagrams.json"])

    def go(self, seconds, sample_ms=1000, check=True):
        """Let all of them run for some time; a flow may fail unless `check`."""
        Path("flows").write_text("\n".join(self.flows) + "\n")
        Path("send.json").unlink(missing_ok=True)
        with self.path.s:
            run([TRAFFIC, "send", "--flows", "flows", "--duration",
                 str(seconds), "--sample-ms", str(sample_ms), "--json",
                 "send.json"], check=check)
        report = json.loads(Path("send.json").read_text())
        self.report = {flow["id"]: flow for flow in report["flows"]}
        self.network = report["network"]

    def rate_bps(self, number, from_s):
        """Payload that was acknowledged after some time, bit/s."""
        samples = self.report[number]["samples"]
        times, counts = samples["t_s"], samples["bytes_acked"]
        first = next(index for index, value in enumerate(times)
                     if value >= from_s)
        return 8 * (counts[-1] - counts[first]) / (times[-1] - times[first])

    def shares(self, numbers, from_s):
        """Rates over an equal share of the link for each of all flows."""
        equal = self.rate_bps_payload() / len(numbers)
        return [self.rate_bps(number, from_s) / equal for number in numbers]

    def rate_bps_payload(self):
        """What the link carries of payload in full packets."""
        return self.link_bps * PAYLOAD / PACKET


HOWS = ("", "price-drop", "nodrop")
EQUAL = (100, 100)
# What the modules' defaults stand for: w, coupling, and the delay of the queue, s.
SHIPPED_W, SHIPPED_K, SHIPPED_DELAY_S = 25, 0.5, 0.003


def shares_beside(rate_mbit, rtt_ms, cc, how="", wtps=None, seconds=40, from_s=15,
                  shipped=False, ecn=False):
    """Two flows of sbrm and two of cc: what each got, of an equal share; wtps:
    none are those of CP05, 100, or the defaults."""
    given = wtps if wtps or shipped else EQUAL
    wtps = given or (SHIPPED_W, SHIPPED_W)
    mix = Mix(rate_mbit * 10**6, rtt_ms, how, given, shipped=shipped, ecn=ecn)
    # No two start at once.
    ours = [mix.pays(prio, start=f"{0.05 * prio:.2f}")
            for prio in range(len(wtps))]
    others = [mix.add(cc=cc, start=f"{0.03 + 0.05 * index:.2f}")
              for index in range(2)]
    mix.go(seconds)
    shares = mix.shares(ours + others, from_s)
    x = mix.path.stats().x
    found = {"rate_mbit": rate_mbit, "rtt_ms": rtt_ms, "cc": cc, "how": how,
             "shipped": shipped, "ecn": ecn,
             "wtps": list(wtps), "ours": shares[:len(ours)],
             "others": shares[len(ours):], "price_drops": x.price_drops,
             "coupled_drops": x.coupled_drops,
             "coupled_marks": x.coupled_marks,
             "overload_drops": x.overload_drops, "full_drops": x.full_drops}
    said = ""
    if cc != "bbr" and how != "nodrop":
        found["derived"] = derived(found)
        said = (f", derived {' '.join(map('{:.2f}'.format, found['derived'].ours))}"
                f" / {found['derived'].other:.2f}, p_c {found['derived'].part:.4f}")
    note(f"{rate_mbit} Mb/s {rtt_ms} ms {cc} "
         f"{'as shipped' if not given else f'w {wtps}'} {how or 'coupled'}: "
         f"{' '.join(f'{one:.2f}' for one in found['ours'])} / "
         f"{' '.join(f'{one:.2f}' for one in found['others'])}{said}, drops coupled "
         f"{x.coupled_drops} price {x.price_drops} full {x.full_drops} "
         f"overload {x.overload_drops}, coupled marks {x.coupled_marks}")
    guest_base.cleanup()
    return found


class Derived(namedtuple("Derived", "ours other price part rtt_s")):
    """Shares, of an equal one, of each flow of sbrm and of another flow; price;
    the part of the others' packets that is dropped or marked; round trip, s."""


def derived(found):
    """What tc-sbrm(8) derives for a cell of shares_beside(), with flows of Reno.

    A flow of sbrm has w / p packets/s, and one of Reno 1.22 / (RTT sqrt(p_c)),
    where p_c is (p / k)^2, or the probability of a mark: with price-drop, and of
    ECT(0) with any-ect. A flow that is marked and not dropped has two packets in
    a round trip at least, its smallest window. The round trip includes the
    queue: 3 ms of the law delay, or target + p / gamma packets. p is where all
    that is the link's rate.
    """
    link = found["rate_mbit"] * 1e6 / 8 / PACKET
    words = found["how"].split()
    k = SHIPPED_K if found["shipped"] else 2
    if "coupling" in words:
        k = float(words[words.index("coupling") + 1])
    of_mark = "price-drop" in words or found["ecn"] and "l4s-ect" not in words
    gamma = gamma_of(found["rate_mbit"] * 1e6, found["rtt_ms"])

    def reno(price):
        part = 1 - math.exp(-price) if of_mark else min(price / k, 1)**2
        queue_s = SHIPPED_DELAY_S if found["shipped"] else \
            (10 + price / gamma) / link
        rtt_s = found["rtt_ms"] / 1e3 + queue_s
        least = 2 / rtt_s if found["ecn"] else 0
        return max(1.22 / rtt_s / math.sqrt(part), least), part, rtt_s

    low, high = 1e-9, 100
    while high / low > 1.0001:
        price = math.sqrt(low * high)
        total = sum(found["wtps"]) / price + 2 * reno(price)[0]
        low, high = (price, high) if total > link else (low, price)
    rate, part, rtt_s = reno(high)
    equal = link / (len(found["wtps"]) + 2)
    return Derived([w / high / equal for w in found["wtps"]], rate / equal, high,
                   part, rtt_s)


# The others' share over that of sbrm, relative to what is derived. The price
# varies, and the mean of its square is larger than the square of its mean: up to
# half is lost by that. What varies from sawtooth to sawtooth in 25 s is less.
LEAST, MOST = 0.5, 1.5


def as_derived(found):
    """Nobody starves, sbrm shares by w, and the others have what is derived.

    Where the derivation gives somebody a fifth of an equal share or more, it has
    half of that fifth. Flows of sbrm pay one price: w tells them apart, within a
    third. The others' share is bounded on one side only where tc-sbrm(8) says
    that they get less (from p_c = 0.1 on, where they are dropped and not marked)
    or more (CUBIC, where it is faster than Reno).
    """
    law = found["derived"]
    marked = found["ecn"]
    shares = list(zip(found["ours"], law.ours))
    if law.part < 0.1 or marked:
        shares += [(one, law.other) for one in found["others"]]
    for one, due in shares:
        assert due < 0.2 or one >= 0.1, f"somebody starves: {found}"
    paid = [share / w for share, w in zip(found["ours"], found["wtps"])]
    assert max(paid) <= 4 / 3 * min(paid), f"not shared by w: {found}"
    ratio = (sum(found["others"]) / sum(found["ours"])) / \
        (2 * law.other / sum(law.ours))
    if law.part < 0.1 or marked:
        assert ratio >= LEAST, f"{ratio:.2f} of what is derived: {found}"
    if found["cc"] != "cubic" or law.part > 0.4 * law.rtt_s**3:
        assert ratio <= MOST, f"{ratio:.2f} of what is derived: {found}"


def from_k_on(found):
    """Beside BBR sbrm has w / k packets/s at least: BBR sends a quarter more to
    probe, and so yields to a loss of a fifth, at a price of 0.45 k. The price
    varies: half."""
    k = SHIPPED_K if found["shipped"] else 2
    equal = found["rate_mbit"] * 1e6 / 8 / PACKET / \
        (len(found["wtps"]) + 2)
    for share, w in zip(found["ours"], found["wtps"]):
        assert share * equal >= w / k / 2, f"starved by BBR: {found}"


def as_said(found):
    """What tc-sbrm(8) says of a cell."""
    if found["how"] == "nodrop":
        # A loss-based flow takes the link, and nothing makes BBR yield.
        assert max(found["ours"]) < min(found["others"]), found
    elif found["cc"] == "bbr":
        from_k_on(found)
    else:
        as_derived(found)


def grid(name, cells, judged=False, **words):
    """All of them, and a file with what each got; judged: each is what is
    derived."""
    measured, wrong = [], []
    for cell in cells:
        found = shares_beside(*cell, **words)
        measured.append(found)
        # What is there stays, however the others end.
        Path(f"{name}.json").write_text(json.dumps(measured, indent=1))
        try:
            if judged:
                as_said(found)
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


def check_beside_cubic_and_reno():
    """With w = 100 and some 20 ms all have an equal share, more or less."""
    for rate_mbit, cc in ((20, "cubic"), (100, "cubic"), (20, "reno")):
        found = shares_beside(rate_mbit, 20, cc)
        for one in found["ours"] + found["others"]:
            assert 0.6 <= one <= 1.4, found


def check_as_shipped():
    """The same with nothing set: the law delay, the source relative."""
    for rate_mbit, cc in ((10, "cubic"), (100, "cubic"), (100, "reno")):
        found = shares_beside(rate_mbit, 20, cc, shipped=True)
        for one in found["ours"] + found["others"]:
            assert 0.7 <= one <= 1.3, found


def check_weights():
    """A flow without ECN weighs 1.22 coupling / RTT: less beside senders that
    pay more, and more with a larger coupling."""
    def ratio(found):
        return sum(found["others"]) / sum(found["ours"])

    equal = ratio(shares_beside(20, 20, "cubic"))
    twice = ratio(shares_beside(20, 20, "cubic", wtps=(200, 200)))
    double = ratio(shares_beside(20, 20, "cubic", "coupling 4", wtps=(200, 200)))
    note(f"ratios {equal:.2f}, {twice:.2f} beside twice the w, {double:.2f} "
         f"with twice the coupling as well")
    assert 0.35 <= twice / equal <= 0.75
    assert 1.4 <= double / twice <= 2.6


def check_old_ways():
    """price-drop: flows without ECN starve; nodrop: those of sbrm do."""
    found = shares_beside(20, 20, "cubic", "price-drop")
    assert max(found["others"]) < 0.3 < min(found["ours"])
    found = shares_beside(20, 20, "cubic", "nodrop")
    assert max(found["ours"]) < 0.3 < min(found["others"])


def check_ecn_of_rfc_3168():
    """Beside sbrm with ECT(1), cubic with ECT(0) has an equal share, more or less,
    with l4s-ect: it is marked with the coupled probability, and nothing is dropped.
    With any-ect it is marked for the price, and starves."""
    found = shares_beside(100, 20, "cubic", "l4s-ect", shipped=True, ecn=True)
    for one in found["ours"] + found["others"]:
        assert 0.7 <= one <= 1.3, found
    assert found["coupled_marks"] > 100
    # SYNs of cubic are not ECN-capable, and exempt.
    assert not found["coupled_drops"] and not found["full_drops"], found
    as_derived(found)
    found = shares_beside(100, 20, "cubic", "any-ect", shipped=True, ecn=True)
    assert max(found["others"]) < 0.3 < min(found["ours"]), found
    assert not found["coupled_marks"] and not found["coupled_drops"], found


# --- small things ----------------------------------------------------------

def transfers(how, flows, seconds=60):
    """Times of transfers of 15 kB without ECN beside bulk flows of sbrm, s,
    sorted; how many SYNs, and questions in UDP of 100 bytes, were lost."""
    mix = Mix(20 * 10**6, 20, how)
    receiver = mix.datagrams()
    for _ in range(flows):
        mix.pays()
    pages = [mix.add(cc="cubic", bytes=15000, repeat=0, off="exp:0.3", start=10)
             for _ in range(5)]
    mix.add(DATAGRAMS, proto="udp", rate="40k", size=72, start=10)
    # So many SYNs may be lost that a connection is not made by the end.
    mix.go(seconds, check=False)
    times = sorted(one["end_s"] - one["start_s"] for number in pages
                   for one in mix.report[number]["transfers"]
                   if one["end_s"] is not None)
    x = mix.path.stats().x
    receiver.terminate()
    receiver.wait()
    datagrams = json.loads(Path("datagrams.json").read_text())["udp"]
    lost = sum(one["lost"] for one in datagrams)
    count = sum(one["packets"] for one in datagrams)
    found = {"how": how or "coupled", "flows": flows, "transfers": len(times),
             "price": x.price / 2**32, "timeouts": mix.network["timeouts"],
             "questions_lost": lost, "questions": count + lost}
    for percent in (50, 95, 99):
        found[f"p{percent}_s"] = times[min(len(times) * percent // 100,
                                           len(times) - 1)]
    note(json.dumps(found))
    guest_base.cleanup()
    return found


def check_short_transfers():
    """Transfers of 15 kB without ECN: at a price of 0.25 half of them take as
    long as if nothing was dropped, and at any price the slowest take at most a
    quarter of what they do with price-drop. No small packet is lost.

    At a price of 0.5 and more the coupled probability is 0.06 and up: most
    transfers of eleven packets lose one, which is what a loss-based flow with a
    long transfer has to see.
    """
    for flows in (4, 8):
        new, old, none = (transfers(how, flows) for how in HOWS)
        assert new["questions_lost"] == none["questions_lost"] == 0
        assert old["questions_lost"] > 0.05 * old["questions"]
        if flows == 4:
            assert new["p50_s"] <= 1.1 * none["p50_s"]
            assert new["p95_s"] <= 2 * none["p95_s"]
        for percent in (95, 99):
            assert new[f"p{percent}_s"] <= old[f"p{percent}_s"] / 4


def check_flood():
    """Two flows of sbrm beside UDP without ECN at 1.5 times the link: they get
    at least what they do where all of it pays the price, and what they are
    willing to pay for."""
    rates = {}
    for how in ("", "price-drop"):
        mix = Mix(20 * 10**6, 20, how)
        ours = [mix.pays() for _ in range(2)]
        mix.datagrams()
        mix.add(DATAGRAMS, proto="udp", rate=f"{30 * 1400 / PACKET:.3f}m",
                size=1400, start=5)
        mix.go(45)
        rates[how] = sum(mix.rate_bps(one, 15) for one in ours)
        x = mix.path.stats().x
        note(f"{how or 'coupled'}: {rates[how] / 1e6:.2f} Mb/s, price "
             f"{x.price / 2**32:.2f}, {x}")
        guest_base.cleanup()
    assert rates[""] >= 0.9 * rates["price-drop"]


def check_beside_many():
    """Flows without ECN beside many of sbrm, at prices above k: all of them go on,
    with a tenth of an equal share in the mean, and flows of sbrm have four fifths.
    Six starts had 0.49 to 1.37 for one of them (BBR 1.37 to 2.56), and 0.88 to
    1.06 for flows of sbrm."""
    for rate_mbit, ours, cc in ((10, 36, "cubic"), (10, 36, "bbr"),
                                (2, 8, "reno")):
        mix = Mix(rate_mbit * 10**6, 20, wtps=None, shipped=True)
        paying = [mix.pays(start=f"{0.02 * one:.2f}") for one in range(ours)]
        others = [mix.add(cc=cc, start=f"{0.03 + 0.05 * one:.2f}")
                  for one in range(2)]
        mix.go(40)
        shares = mix.shares(paying + others, 15)
        x = mix.path.stats().x
        note(f"{rate_mbit} Mb/s: {min(shares[:ours]):.2f} to "
             f"{max(shares[:ours]):.2f} of an equal share, {cc} "
             f"{shares[ours]:.2f} {shares[ours + 1]:.2f}, price "
             f"{x.price / 2**32:.2f}, {x.coupled_drops} dropped")
        assert x.price > SHIPPED_K * 2**32
        assert min(shares[ours:]) > 0 and sum(shares[ours:]) >= 0.2
        assert min(shares[:ours]) >= 0.8
        guest_base.cleanup()


# --- long forms ------------------------------------------------------------
#
# Each cell notes what is derived for it. With the modules' defaults it is compared
# with that, see as_derived(); the other grids only measure.

def check_many_as_shipped():
    """The modules' defaults."""
    grid("shipped", [(rate, rtt, cc) for cc in ("cubic", "reno", "bbr")
                     for rate in (10, 100) for rtt in (10, 20, 40, 100)],
         judged=True, shipped=True)


def check_many_shares():
    """The law of CP05, w = 100."""
    grid("shares", [(rate, rtt, cc) for cc in ("cubic", "reno", "bbr")
                    for rate in (10, 20, 100) for rtt in (10, 20, 40, 100)])


def check_many_weights():
    """Weights of 20, 400, and mixed ones, with the law of CP05."""
    grid("weights", [(rate, rtt, "cubic", "", wtps)
                     for wtps in ((20, 20), (400, 400), (20, 400))
                     for rate in (20, 100) for rtt in (20, 40)])


def check_many_weights_as_shipped():
    """Weights of 5, 25, 100, and mixed ones, with the modules' defaults."""
    grid("weights-shipped", [(rate, rtt, "cubic", "", wtps)
                             for wtps in ((5, 5), (25, 25), (100, 100), (5, 100))
                             for rate in (10, 20, 100) for rtt in (10, 20, 40)],
         judged=True, shipped=True)


def check_many_ect():
    """The modules' defaults, sbrm with ECT(1), the others with ECT(0)."""
    grid("ect", [(rate, rtt, cc, how) for how in ("any-ect", "l4s-ect")
                 for cc in ("cubic", "reno") for rate in (10, 20, 100)
                 for rtt in (10, 20, 40)], shipped=True, ecn=True)


def check_many_old_ways():
    """price-drop and nodrop."""
    grid("old", [(rate, 20, cc, how) for how in HOWS[1:]
                 for cc in ("cubic", "reno", "bbr") for rate in (10, 20, 100)])


def check_many_fast():
    """1 Gb/s."""
    grid("fast", [(1000, 20, "cubic"), (1000, 20, "reno"), (1000, 20, "bbr"),
                  (1000, 100, "cubic"), (1000, 20, "cubic", "price-drop"),
                  (1000, 20, "cubic", "nodrop")], seconds=30, from_s=10)


def check_many_fast_as_shipped():
    """1 Gb/s with the modules' defaults. A window of Reno comes back from a loss
    in 25 s with 40 ms, so that a cell takes longer than the others."""
    grid("fast-shipped", [(1000, rtt, cc) for cc in ("cubic", "reno")
                          for rtt in (10, 20, 40)],
         judged=True, shipped=True, seconds=80, from_s=20)


if __name__ == "__main__":
    guest_base.main(globals())
