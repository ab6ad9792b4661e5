# SPDX-License-Identifier: GPL-2.0
"""sbrm flows beside flows without ECN, in one queue: who gets what.

Two flows of sbrm and two of another congestion control cross one queue; short
transfers and small questions without ECN cross it beside flows of sbrm; and a
flood takes no notice of losses. Each is measured with what the queue may do to
packets that are not ECN-capable: drop them with the coupled probability (the
default), with that of a mark (price-drop), or not at all (nodrop).
"""

import json
from pathlib import Path

import guest_base
from guest_base import note, run, start
from tcp_bench import PACKET, TRAFFIC
from tcp_bench import Path as TcpPath

OURS, OTHERS, DATAGRAMS = 5000, 5001, 5002
PAYLOAD = 1448


KAPPA = 0.1


def gamma_of(rate_bps, rtt_ms):
    """That of README, or the largest one that is stable: kappa c gamma RTT of
    0.8, see tcp_sbrm(7)."""
    return min(0.015, 0.8 / (KAPPA * rate_bps / 8 / PACKET * rtt_ms / 1e3))


class Mix:
    """A path on which flows of sbrm and others share the queue."""

    def __init__(self, rate_bps, rtt_ms, how="", wtps=(100,), gamma=None,
                 shipped=False):
        """wtps: willingness to pay of SO_PRIORITY 0, 1, ..; how: what the queue
        does, in words of tc; shipped: law, source and wtp as they come, not those
        of CP05."""
        self.link_bps = rate_bps
        gamma = gamma or gamma_of(rate_bps, rtt_ms)
        law = "" if shipped else f"target 10 gamma {gamma:.9f}"
        # The limit is one round trip and more, as a router has.
        limit = max(1000, round(rate_bps * rtt_ms / 1e3 / 8 / PACKET))
        self.path = TcpPath(rate_bps=rate_bps, rtt_ms=rtt_ms, sink="sbrm",
                            shipped=shipped, aqm=f"sbrm limit {limit} {law} {how}")
        table = list(wtps) + [wtps[0]] * (16 - len(wtps))
        if not shipped:
            self.path.s.sysctl("net.ipv4.tcp_sbrm.wtp",
                               " ".join(map(str, table)))
        # sbrm asks for ECN by itself; nobody else does.
        self.path.s.sysctl("net.ipv4.tcp_ecn", 0)
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


def beside(rate_mbit, rtt_ms, cc, how="", wtps=EQUAL, seconds=40, from_s=15,
           shipped=False):
    """Two flows of sbrm and two of cc: what each got, of an equal share."""
    mix = Mix(rate_mbit * 10**6, rtt_ms, how, wtps, shipped=shipped)
    # No two start at once.
    ours = [mix.pays(prio, start=f"{0.05 * prio:.2f}")
            for prio in range(len(wtps))]
    others = [mix.add(cc=cc, start=f"{0.03 + 0.05 * index:.2f}")
              for index in range(2)]
    mix.go(seconds)
    shares = mix.shares(ours + others, from_s)
    x = mix.path.stats().x
    found = {"rate_mbit": rate_mbit, "rtt_ms": rtt_ms, "cc": cc, "how": how,
             "wtps": list(wtps), "ours": shares[:len(ours)],
             "others": shares[len(ours):], "price_drops": x.price_drops,
             "coupled_drops": x.coupled_drops,
             "overload_drops": x.overload_drops, "full_drops": x.full_drops}
    note(f"{rate_mbit} Mb/s {rtt_ms} ms {cc} "
         f"{'as shipped' if shipped else f'w {wtps}'} {how or 'coupled'}: "
         f"{' '.join(f'{one:.2f}' for one in found['ours'])} / "
         f"{' '.join(f'{one:.2f}' for one in found['others'])}, drops coupled "
         f"{x.coupled_drops} price {x.price_drops} full {x.full_drops} "
         f"overload {x.overload_drops}")
    guest_base.cleanup()
    return found


def grid(name, cells, **words):
    """All of them, and a file with what each got."""
    found = []
    for cell in cells:
        found.append(beside(*cell, **words))
        Path(f"{name}.json").write_text(json.dumps(found, indent=1))


def check_beside_cubic_and_reno():
    """With w = 100 and some 20 ms all have an equal share, more or less."""
    for rate_mbit, cc in ((20, "cubic"), (100, "cubic"), (20, "reno")):
        found = beside(rate_mbit, 20, cc)
        for one in found["ours"] + found["others"]:
            assert 0.6 <= one <= 1.4, found


def check_as_shipped():
    """The same with nothing set: the law delay, the source relative."""
    for rate_mbit, cc in ((10, "cubic"), (100, "cubic"), (100, "reno")):
        found = beside(rate_mbit, 20, cc, shipped=True)
        for one in found["ours"] + found["others"]:
            assert 0.7 <= one <= 1.3, found


def check_weights():
    """A flow without ECN weighs 1.22 coupling / RTT: less beside senders that
    pay more, and more with a larger coupling."""
    def ratio(found):
        return sum(found["others"]) / sum(found["ours"])

    equal = ratio(beside(20, 20, "cubic"))
    twice = ratio(beside(20, 20, "cubic", wtps=(200, 200)))
    double = ratio(beside(20, 20, "cubic", "coupling 4", wtps=(200, 200)))
    note(f"ratios {equal:.2f}, {twice:.2f} beside twice the w, {double:.2f} "
         f"with twice the coupling as well")
    assert 0.35 <= twice / equal <= 0.75
    assert 1.4 <= double / twice <= 2.6


def check_old_ways():
    """price-drop: flows without ECN starve; nodrop: those of sbrm do."""
    found = beside(20, 20, "cubic", "price-drop")
    assert max(found["others"]) < 0.3 < min(found["ours"])
    found = beside(20, 20, "cubic", "nodrop")
    assert max(found["ours"]) < 0.3 < min(found["others"])


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


# --- long forms ------------------------------------------------------------

def check_many_as_shipped():
    """The modules' defaults."""
    grid("shipped", [(rate, rtt, cc) for cc in ("cubic", "reno", "bbr")
                     for rate in (10, 100) for rtt in (10, 20, 40, 100)],
         shipped=True)


def check_many_shares():
    """The law of CP05, w = 100."""
    grid("shares", [(rate, rtt, cc) for cc in ("cubic", "reno", "bbr")
                    for rate in (10, 20, 100) for rtt in (10, 20, 40, 100)])


def check_many_weights():
    """Weights of 20, 400, and mixed ones."""
    grid("weights", [(rate, rtt, "cubic", "", wtps)
                     for wtps in ((20, 20), (400, 400), (20, 400))
                     for rate in (20, 100) for rtt in (20, 40)])


def check_many_old_ways():
    """price-drop and nodrop."""
    grid("old", [(rate, 20, cc, how) for how in HOWS[1:]
                 for cc in ("cubic", "reno", "bbr") for rate in (10, 20, 100)])


def check_many_fast():
    """1 Gb/s."""
    grid("fast", [(1000, 20, "cubic"), (1000, 20, "reno"), (1000, 20, "bbr"),
                  (1000, 100, "cubic"), (1000, 20, "cubic", "price-drop"),
                  (1000, 20, "cubic", "nodrop")], seconds=30, from_s=10)


if __name__ == "__main__":
    guest_base.main(globals())
