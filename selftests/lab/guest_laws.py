# SPDX-License-Identifier: GPL-2.0
"""The price laws of sbrm beside their models."""

import math
import random
import time

import guest_base
from bench import (DEFAULTS, ECT0, FAST_BPS, HOLD_BPS, INDEPENDENT, SIGMA,
                   Bench, Model, deviation)
from guest_base import near, note, run
from law_bench import carried_prices, carrier
from law_models import Scene
from rtnl import (BYTES, DELAY, DITHER, GAMMA_ONE, NODROP, PHI_ONE, PRICE,
                  PRICE_DROP, PRICE_MAX, PRICE_ONE, REM_PC1, REM_PC2, REM_PC3,
                  SBRM, VQM, Refused, options)

LN_1006 = math.log(1.06)


def scene(rate_bps=HOLD_BPS, **words):
    """A queue with a law, and its model."""
    bench = Bench()
    bench.htb(rate_bps, 1000, options(**words))
    return Scene(bench, time.monotonic, carrier, rate_bps, 1000)


def random_scene(rng, law, in_bytes):
    """Some link with a law and options that make its price move."""
    unit = 1000 if in_bytes else 1
    rate = rng.randrange(800, 1500)
    words = {"law": law, "rate": rate, "limit": rng.randrange(8, 60) * unit,
             "flags": DEFAULTS | (BYTES if in_bytes else 0),
             "feedback": PRICE}
    if not in_bytes or rng.random() < 0.5:
        words["avpkt"] = rng.randrange(300, 1500)
    if law == VQM:
        words["scale"] = rng.choice((1, rng.uniform(0.1, 1)))
    else:
        words["gamma"] = rng.uniform(0.001, 1) / unit
        words["phi"] = rng.choice((1.00015, 1.007, 1.06, 1.5, 3.7, 16))
        words["interval"] = rng.choice((50000, 10000, 25000, 50000))
        words["delta"] = rng.choice((0.9, 1, 0.001, rng.uniform(0.1, 1)))
        if law == REM_PC3:
            words["alpha"] = rng.choice((0.1, 0.002, rng.uniform(0, 2), 16))
            words["target"] = rng.randrange(0, 8) * unit
    note(f"{words}")
    return scene(8 * rng.randrange(1, 5) * 1000, **words)


def compare(law, in_bytes, turns):
    """Random arrivals: dumps and carried prices are those of the model."""
    seed = f"{guest_base.SETTINGS['seed']} {law} {in_bytes}"
    rng = random.Random(seed)
    highest = 0
    for _ in range(turns):
        place = random_scene(rng, law, in_bytes)
        for _ in range(rng.randrange(60, 120)):
            how = rng.random()
            if how < 0.1:
                # An idle time: the kernel hears of it at once.
                place.until(place.clock() + rng.choice((0.4, 3, 20)))
            place.tick([rng.choice((100, 500, 1000)) for _ in
                        range(rng.choice((0, 0, 1, 1, 2, 4)))])
            highest = max(highest, place.law.price)
        stats = place.bench.stats()
        carried_prices(place.draws)
        assert stats.x.carried == len(place.draws) and not stats.x.uncarried
        assert stats.x.saturated == sum(price * PRICE_ONE > PRICE_MAX
                                        for _, price, _, _ in place.draws)
        assert stats.x.marks == stats.x.price_drops == 0
        assert len(place.draws) > 20
        guest_base.cleanup()
    note(f"highest price {highest:g}")
    assert highest > 0


def check_rem_pc1():
    """rem-pc1 is its model, for random options and arrivals."""
    compare(REM_PC1, False, 5)
    compare(REM_PC1, True, 2)


def check_rem_pc3():
    """rem-pc3 is its model, for random options and arrivals."""
    compare(REM_PC3, False, 8)
    compare(REM_PC3, True, 3)


def check_vqm():
    """vqm is its model, for random options and arrivals."""
    compare(VQM, False, 6)
    compare(VQM, True, 3)


def check_rem_pc2():
    """rem-pc2 is lambda = gamma [b - target]+ in base phi."""
    for phi, gamma in ((1.06, 0.5), (1.007, 1), (16, 0.01), (1.00015, 1)):
        bench = Bench()
        bench.htb(FAST_BPS, 1000, options(law=REM_PC2, limit=1000, target=5,
                                          gamma=gamma, phi=phi,
                                          flags=INDEPENDENT))
        base_e = gamma * math.log(phi)
        for backlog in (4, 6, 20, 80):
            model = Model(bench)
            model.fifo.extend([(bench.number + 1 - place, 1000, ECT0) for place
                               in range(bench.stats().qlen, 0, -1)])
            model.backlog = len(model.fifo)
            model.run(5, backlog)
            model.draws.clear()
            model.run(300, backlog)
            _, hits, expected, sigma = deviation(model.draws, base_e, 5)
            note(f"phi {phi}, backlog {backlog}: {hits} marks where "
                 f"{expected:.1f} were due, {sigma:+.2f} sigma")
            # Where next to none are due, one or two are within chance all the same.
            assert abs(sigma) <= SIGMA or expected < 0.1 and hits <= 2
            stats = bench.stats()
            price = base_e * max(stats.qlen - 5, 0)
            assert near(stats.x.price / PHI_ONE, price, 1e-6), \
                (stats.x.price / PHI_ONE, price)
        # auto: 99 % at the limit.
        bench.change(gamma=0)
        stats = bench.stats()
        expected = min(math.log(100) / math.log(phi) / 995, 1)
        assert near(stats.gamma / GAMMA_ONE, expected, 1e-5)
        guest_base.cleanup()


def check_gamma_auto():
    """Auto is 99 % at the limit for every phi, limit and target, or 1."""
    bench = Bench()
    bench.htb(FAST_BPS, 1000, options(law=REM_PC2, limit=1000, target=5))
    for more in (2**-32, 2**-26, 2**-20, 2**-14, 0.06, 15):
        for limit, target in ((1, 0), (1000, 10), (42949672, 15140),
                              (2**31 - 1, 0), (2**31 - 1, 2**31 - 2)):
            bench.change(phi=1 + more, limit=limit, target=target, gamma=0)
            gamma = bench.stats().gamma
            expected = min(math.log(100) / math.log1p(more) /
                           (limit - target), 1)
            assert near(gamma / GAMMA_ONE, expected, 1e-6) or \
                abs(gamma - expected * GAMMA_ONE) <= 1, \
                (more, limit, target, gamma, expected * GAMMA_ONE)


def check_marks_of_laws():
    """The laws with a clock mark with 1 - exp(-price), or with certainty."""
    rng = random.Random(guest_base.SETTINGS["seed"])
    for law, flags in ((REM_PC1, INDEPENDENT), (REM_PC3, DEFAULTS),
                       (REM_PC3, INDEPENDENT), (VQM, DEFAULTS)):
        words = {"gamma": 0.02, "phi": 1.5} if law != VQM else {}
        place = scene(40000, law=law, rate=5011, limit=30, flags=flags,
                      **words)
        for _ in range(600):
            place.tick([rng.choice((100, 500)) for _ in
                        range(rng.choice((0, 1, 1, 2)))])
        hits = sum(frame.ce for _, _, _, frame in place.draws)
        due = sum(draw[0] for draw in place.draws)
        variance = sum(draw[0] * (1 - draw[0]) for draw in place.draws)
        note(f"law {law}: {hits} of {len(place.draws)} marked, {due:.2f} due")
        assert 5 < due < len(place.draws) - 5
        if law == VQM:
            assert all(frame.ce == chance for chance, _, _, frame in
                       place.draws)
        elif flags & DITHER:
            assert abs(hits - due) <= 2
        else:
            assert abs(hits - due) <= SIGMA * math.sqrt(variance)
        assert place.bench.stats().x.marks == hits
        guest_base.cleanup()


def check_vqm_drops_what_cannot_be_marked():
    """price-drop: while vqm marks, what is not ECN-capable is dropped."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(law=VQM, rate=1000, limit=20,
                                      flags=DEFAULTS | PRICE_DROP))
    for _ in range(19):
        bench.send(tos=0)
    early = len(bench.drain())
    assert bench.stats().x.prob == 2**32 - 1
    bench.htb_rate(10**9, 1000)
    left = len(bench.drain(5))
    stats = bench.stats()
    # The last one leaves whatever its price, and so does the one in debt.
    assert early + left + stats.x.price_drops == 19
    assert left <= 2, left
    bench.change(flags=DEFAULTS | NODROP)
    bench.change(rate=1000)


def check_idle_times():
    """Hundreds of millions of intervals at once, both ways, to the limits."""
    bench = Bench()
    # The next packet leaves after 1000 s, and one has been peeked at.
    bench.tbf(8, 1000, options(law=REM_PC3, rate=1, interval=1, limit=100,
                               target=10, gamma=1e-8, phi=1.06, alpha=0.1))
    for _ in range(31):
        bench.send()
    bench.drain()
    before = bench.stats()
    held = before.qlen
    started = time.monotonic()
    gamma = before.gamma / GAMMA_ONE * LN_1006
    each = gamma * (before.of_law["alpha"] / 2**24 * (held - 1 - 10) - 1e-9)
    for wait in (0.001, 1, 100, 600):
        time.sleep(wait)
        price = before.x.price / PHI_ONE + \
            each * (time.monotonic() - started) * 1e6
        stats = bench.stats()
        note(f"after {time.monotonic() - started:.3f} s: "
             f"{stats.x.price / PHI_ONE}, model {price}")
        # What the commands themselves take: some us.
        assert abs(stats.x.price / PHI_ONE - price) <= \
            (1e-6 + 2**-48 / gamma) * price + 20 * each + 2**-32
        assert stats.qlen == held and stats.x.input == 0
    # A dump changes nothing; the next packet finds the same price.
    bench.send(100)
    assert near(bench.stats().x.price / PHI_ONE, price, 1e-5)
    bench.change(gamma=1)
    time.sleep(10)
    assert bench.stats().x.price == 8192 << 32
    bench.send(100)
    assert bench.stats().x.price == 8192 << 32
    # Below the target it goes back to 0, and stays there.
    bench.change(target=99, gamma=1e-4)
    time.sleep(1)
    before = bench.stats().x.price / PHI_ONE
    assert 0 < before < 8192
    time.sleep(1000)
    assert bench.stats().x.price == 0
    bench.send(100)
    assert bench.stats().x.price == 0


def check_change_live():
    """Options change under load: what follows is the model with those."""
    rng = random.Random(guest_base.SETTINGS["seed"])
    for law in (REM_PC1, REM_PC3, VQM):
        words = {"limit": 20} if law == VQM else \
            {"limit": 40, "gamma": 0.05, "interval": 50000}
        place = scene(16000, law=law, rate=1300, flags=DEFAULTS,
                      feedback=PRICE, **words)
        changes = [{"rate": 1111}, {"rate": 5000}, {"avpkt": 700},
                   {"rate": 900}]
        if law == VQM:
            changes += [{"scale": 0.37}, {"limit": 60}, {"scale": 1}]
        else:
            changes += [{"gamma": 0.3}, {"phi": 2}, {"delta": 0.2},
                        {"interval": 25000}, {"interval": 50000}]
        if law == REM_PC3:
            changes += [{"alpha": 1}, {"target": 3}]
        for change in changes:
            for _ in range(25):
                place.tick([1000] * rng.choice((0, 0, 0, 1, 1)) +
                           [100] * rng.randrange(4))
            place.change(**change)
            place.verify()
        carried_prices(place.draws)
        note(f"law {law}: price {place.law.price:g} at last")
        guest_base.cleanup()


def check_change_of_law():
    """Another law starts without a memory, but for the price; packets stay."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(law=REM_PC3, rate=1000, limit=100,
                                      gamma=0.5, target=2))
    for _ in range(50):
        bench.send()
    time.sleep(0.003)
    before = bench.stats()
    assert before.x.price and before.x.input
    last = before.x.price
    for law in (SBRM, REM_PC1, VQM, DELAY, SBRM, DELAY, REM_PC3, REM_PC2,
                REM_PC3, REM_PC1, DELAY):
        bench.change(law=law)
        stats = bench.stats()
        assert stats.law == law and stats.qlen == before.qlen
        assert stats.limit == 100
        assert stats.target == 2
        assert stats.x.input == stats.x.virtual_backlog == 0
        # Those of the backlog know it at once. The others go on from the last
        # price, but for vqm, whose price is none.
        if law in (SBRM, REM_PC2):
            assert stats.x.price, law
        elif law == VQM:
            assert not stats.x.price
        else:
            assert near(stats.x.price, last, 0.01), (law, last, stats.x)
        last = stats.x.price
        if "rate" in stats.of_law:
            assert stats.of_law["rate"] == 1000
        if "phi" in stats.of_law:
            assert stats.of_law["phi"] == round(1.06 * PHI_ONE)
    # Packets to bytes: what was an input of packets is none. The law hears of
    # the first of two packets as the second one comes.
    bench.change(law=REM_PC3)
    bench.send(500)
    bench.send(500)
    time.sleep(0.002)
    before = bench.stats()
    assert before.x.input
    bench.change(flags=BYTES, selector=BYTES)
    stats = bench.stats()
    assert not stats.x.input and near(stats.x.price, before.x.price, 0.01)
    # And a reset forgets it all.
    bench.change(flags=0, selector=BYTES)
    bench.send(500)
    bench.send(500)
    time.sleep(0.002)
    assert bench.stats().x.input
    bench.a.run("ip link set va down")
    stats = bench.stats()
    assert stats.x.input == stats.x.price == stats.qlen == 0
    bench.a.run("ip link set va up")


def check_refusals_of_laws():
    """Options that do not go together are refused, and named."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, None)
    clock = {"rate": 1000, "avpkt": 1000, "interval": 1000, "delta": 0.5}
    takes = {SBRM: {"target", "gamma"},
             REM_PC1: {"gamma", "phi", *clock},
             REM_PC2: {"target", "gamma", "phi"},
             REM_PC3: {"target", "gamma", "phi", "alpha", *clock},
             VQM: {"scale", "rate", "avpkt"}, DELAY: {"delay"}}
    values = {"target": 4, "gamma": 0.5, "phi": 1.5, "alpha": 1, "scale": 0.5,
              "delay": 5000, **clock}
    # What tc calls both is a target.
    named = {"delay": "a target that is a time"}

    def says(**words):
        good = bench.stats()
        try:
            bench.change(**words)
        except Refused as answer:
            after = bench.stats()
            assert (after.settings, after.of_law, after.feedback) == \
                (good.settings, good.of_law, good.feedback)
            return answer.message
        return None

    for law in (REM_PC1, REM_PC3, VQM):
        message = says(law=law)
        assert message and "need the option rate" in message, message
    for law, good in takes.items():
        rate = {"rate": 1000} if "rate" in good else {}
        bench.change(law=law, **rate)
        for name, value in values.items():
            message = says(**{name: value})
            if name in good:
                assert message is None, (law, name, message)
            else:
                assert message and message.startswith(
                    f"{named.get(name, name)} "), (law, name, message)
        # The same on one line with the law, from another one.
        for name, value in values.items():
            bench.change(law=REM_PC3 if law == SBRM else SBRM,
                         **({"rate": 1000} if law == SBRM else {}))
            message = says(law=law, **{name: value})
            assert (message is None) == (name in good), (law, name, message)
        bench.change(law=law)
        message = says(gamma=0)
        assert (message is None) == (law in (SBRM, REM_PC2)), message
        assert message is None or "gamma" in message
    bench.change(law=REM_PC3)
    for name, values in {
            "phi": (1, 0, 16.000001), "alpha": (0, 16.1), "rate":
            (0, 2**37 + 1), "avpkt": (0, 65536), "interval": (0, 10**6 + 1),
            "delta": (0, 0.00099), "feedback": (3, 2**32 - 1)}.items():
        for value in values:
            assert says(**{name: value}), f"{name} {value} was accepted"
    bench.change(law=VQM)
    assert says(scale=0.0099) and says(scale=0)
    bench.change(law=DELAY)
    for value in (0, 9, 10**6 + 1, 2**32 - 1):
        assert says(delay=value), f"delay {value} was accepted"
    for value in (10, 10**6):
        assert says(delay=value) is None, value


def check_edges_of_rem():
    """gamma, phi, alpha and rate at the ends of their ranges."""
    bench = Bench()
    bench.htb(HOLD_BPS, 1000, options(law=REM_PC2, limit=2**31 - 1, target=0,
                                      gamma=1, phi=16))
    for _ in range(100):
        bench.send()
    stats = bench.stats()
    assert near(stats.x.price / PHI_ONE, stats.qlen * math.log(16), 1e-6)
    bench.change(phi=1 + 2**-32)
    stats = bench.stats()
    assert abs(stats.x.price - stats.qlen) <= 4, stats.x.price
    bench.change(gamma=1 / GAMMA_ONE)
    assert bench.stats().x.price == 0
    bench.change(law=REM_PC3, rate=2**37, interval=10**6, avpkt=1, alpha=16,
                 gamma=1, phi=16, delta=1)
    for _ in range(5):
        time.sleep(1)
        bench.send()
    assert bench.stats().x.price == 0, "the link is much too fast"
    bench.change(rate=1, target=0)
    time.sleep(3)
    assert bench.stats().x.price == 8192 << 32
    assert bench.stats().x.prob == 2**32 - 1
    bench.change(target=2**31 - 2)
    time.sleep(2)
    assert bench.stats().x.price == 0
    # The smallest steps.
    bench.change(gamma=1 / GAMMA_ONE, phi=1 + 2**-32, target=0)
    time.sleep(100)
    assert bench.stats().x.price == 0
    for words in ({"rate": 1, "scale": 0.01}, {"rate": 2**37, "scale": 1}):
        bench.change(law=VQM, avpkt=65535, **words)
        for _ in range(6):
            bench.send()
        stats = bench.stats()
        assert not stats.x.price
        expected = 6000 if words["rate"] == 1 else 0
        assert abs(stats.x.virtual_backlog - expected) <= 1, stats.x
        # One that the law has not heard of arrives as one looks.
        bench.send()
        for _ in range(2):
            stats = bench.stats()
            assert abs(stats.x.virtual_backlog - expected - 1000) <= 1, stats.x
        bench.send()
    # In bytes, what goes above the limit is an overflow.
    bench.change(flags=BYTES, selector=BYTES)
    bench.change(limit=900, rate=100)
    bench.send(500)
    assert bench.stats().x.prob == 0
    bench.send(500)
    assert bench.stats().x.prob == 2**32 - 1


def check_text_of_laws():
    """What tc shows of each law can be given to it again."""
    bench = Bench()
    lines = (
        "mark rem-pc1 rate 96mbit",
        "mark rem-pc2 phi 1.007 gamma auto feedback four-bit",
        "mark rem-pc3 phi 1.06 gamma 0.001 alpha 0.1 target 2 limit 300 "
        "rate 96mbit feedback price no-dither",
        "mark rem-pc3 bytes rate 1gbit interval 250us delta 1 limit 3mb "
        "target 15kb gamma 1e-6",
        "mark vqm scale 0.9 limit 300 rate 96mbit avpkt 1500",
        "mark delay", "mark delay bytes limit 3mb target 10us",
        "mark delay limit 1 target 1s feedback price")
    with bench.a:
        for line in lines:
            run(f"tc qdisc add dev va root handle 10: sbrm {line}")
            first = bench.stats()
            shown = run("tc qdisc show dev va").split("refcnt")[1].split(
                None, 1)[1]
            run("tc qdisc del dev va root")
            run(f"tc qdisc add dev va root handle 10: sbrm {shown.strip()}")
            again = bench.stats()
            assert (again.settings, again.of_law, again.feedback) == \
                (first.settings, first.of_law, first.feedback), (line, shown)
            run("tc qdisc del dev va root")
        said = guest_base.refused("tc qdisc add dev va root sbrm mark rem-pc1")
        assert "need the option rate" in said, said
        said = guest_base.refused("tc qdisc add dev va root sbrm phi 1.1")
        assert "phi needs mark" in said, said
        for law in ("gamma 0.01", "mark sbrm"):
            said = guest_base.refused(
                f"tc qdisc add dev va root sbrm {law} target 3ms")
            assert "a target that is a time needs mark delay" in said, said
        # What is given says which law is meant; limit and coupling go with the
        # law, unless they were chosen.
        for words, law in (("", DELAY), ("target 3ms", DELAY), ("target 3", SBRM),
                           ("small 99", DELAY), ("gamma auto", SBRM)):
            run(f"tc qdisc add dev va root handle 10: sbrm {words}")
            for now in (law, SBRM if law == DELAY else DELAY):
                run("tc qdisc change dev va root handle 10: sbrm mark "
                    f"{'delay' if now == DELAY else 'sbrm'}")
                stats = bench.stats()
                assert (stats.law, stats.limit, stats.classic["coupling"]) == (
                    (DELAY, 10240, 2**19) if now == DELAY else
                    (SBRM, 1000, 2**21)), words
            run("tc qdisc change dev va root handle 10: sbrm coupling 2 limit 999")
            for name in ("delay", "rem-pc2", "delay"):
                run(f"tc qdisc change dev va root handle 10: sbrm mark {name}")
                stats = bench.stats()
                assert (stats.limit, stats.classic["coupling"]) == (999, 2**21)
            run("tc qdisc del dev va root")
        run("tc qdisc add dev va root handle 10: sbrm mark delay")
        said = guest_base.refused("tc qdisc change dev va root handle 10: sbrm target 10")
        assert "target in packets or bytes needs mark" in said, said
        before = bench.stats()
        run("tc qdisc change dev va root handle 10: sbrm target 5ms")
        after = bench.stats()
        assert (before.of_law, after.of_law) == ({"delay": 3000}, {"delay": 5000})
        assert after.settings == before.settings


if __name__ == "__main__":
    guest_base.main(globals())
