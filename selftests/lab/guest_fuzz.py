# SPDX-License-Identifier: GPL-2.0
"""Random messages and random settings: all from one seed, see checks.json."""

import collections
import copy
import os
import random
import socket

import guest_base
from bench import (CHILD, NOT_ECT, PARENT, QDISC, Bench, Model, ipv4, ipv6,
                   other, super_packet)
from fault_injection import Injected
from fuzz_models import (FQ_RR_DEFAULTS, FQ_RR_RANGES, Settings, fq_rr_options_of,
                         fq_rr_shown, junk, number, sbrm_options_of)
from guest_base import Namespace, note
from rtnl import (ALPHA_LAW, DELAY, GAMMA_AUTO, GAMMA_ONE, REM_PC1, SETTABLE,
                  VQM, WFQ, Refused, Rtnl, attr, fq_rr_options, options)
from tcp_bench import Path, info, pump, settle

MESSAGES = 3000
WRITES = 3000


def traffic(bench, rng):
    """Some packets of all kinds."""
    for _ in range(rng.randrange(4)):
        bench.send(rng.randrange(70, 1500), rng.randrange(4),
                   rng.choice((ipv4, ipv6, other)))


def accounts(bench, handle=QDISC):
    """(qdisc, its parent) of a dump in which no packet left.

    The kernel writes HTB before what is below it, and of each qdisc qlen, then
    its own statistics, then the backlog. Ours read the clock there, which lets a
    timer of HTB send a packet: two dumps that are alike had none.
    """
    last = None
    for _ in range(20):
        with bench.a:
            found = bench.rtnl.dump("va")
        both = found[handle], found[bench.parent_handle]
        now = [(one.packets, one.qlen, one.backlog) for one in both]
        if now == last:
            return both
        last = now
    raise AssertionError(f"20 dumps, each another one: {last}")


def fuzz_change(bench, rng):
    """Options of the right form: accepted or refused as the model says."""
    accepted = 0
    laws = collections.Counter()
    settings = Settings()
    for turn in range(MESSAGES):
        traffic(bench, rng)
        before = vars(settings)
        data = sbrm_options_of(rng)
        after = copy.deepcopy(settings)
        wrong = not after.take(data)
        try:
            with bench.a:
                bench.rtnl.sbrm("va", data, QDISC, CHILD, flags=0)
        except Refused as answer:
            assert wrong, f"turn {turn}: {before} {data.hex()}: {answer}"
            assert answer.message, f"turn {turn}: no message: {data.hex()}"
        else:
            assert not wrong, f"turn {turn}: {before} took {data.hex()}"
            accepted += 1
            settings = after
            laws[settings.law] += 1
        stats = bench.stats()
        settings.agrees(stats)
        assert stats.qlen <= max(stats.limit, 1) or stats.flags & 1
        if turn % 50 == 0:
            bench.drain(rng.random())
            stats, parent = accounts(bench)
            assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
    note(f"{accepted} of {MESSAGES} changes accepted, laws {dict(laws)}")
    # Two in a hundred messages choose a law and give it all it asks for.
    assert all(laws[law] > MESSAGES / 1000 for law in range(ALPHA_LAW + 1))
    assert MESSAGES / 20 < accepted < MESSAGES


def usable(bench):
    """After all that, the queue still does what it should."""
    bench.drain(1000)
    with bench.a:
        bench.rtnl.sbrm("va", options(law=0, limit=1000, target=0, gamma=1,
                                      flags=10, reset=True, feedback=0),
                        QDISC, CHILD, flags=0)
    stats = bench.stats()
    assert stats.qlen == stats.backlog == bench.parent().qlen == 0
    assert bench.parent().backlog == 0
    model = Model(bench)
    model.run(100, 50)
    assert model.draws[-1] == (50, 1)
    model.agrees(after_reset=True)


def check_change():
    """Random options to a queue below HTB, under traffic."""
    rng = random.Random(guest_base.SETTINGS["seed"])
    bench = Bench()
    bench.htb(40000, 1514, None)
    fuzz_change(bench, rng)
    usable(bench)


def check_junk():
    """Malformed options: an error or success, never harm."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 1)
    bench = Bench()
    bench.htb(40000, 1514, None)
    outcomes = {}
    for turn in range(MESSAGES):
        traffic(bench, rng)
        data = junk(rng)
        before = bench.stats().settings
        try:
            with bench.a:
                bench.rtnl.sbrm("va", data, QDISC, CHILD, flags=0)
            outcome = "accepted"
        except Refused as answer:
            outcome = answer.errno
            assert answer.message, f"turn {turn}: no message: {data.hex()}"
            assert bench.stats().settings == before, data.hex()
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        law, limit, target, gamma, flags = bench.stats().settings
        assert limit < 2**31 and (target < limit or
                                   law in (REM_PC1, VQM, DELAY, ALPHA_LAW))
        assert law <= ALPHA_LAW and 0 <= gamma <= GAMMA_ONE
        assert gamma or law in (VQM, DELAY, ALPHA_LAW)
        assert not flags & ~(SETTABLE | GAMMA_AUTO)
        assert flags & 2 or not flags & 68
        assert flags & 36 != 36 and not (flags & 64 and flags & 36)
        if turn % 100 == 0:
            bench.drain(0.2)
    note(f"outcomes {outcomes}")
    usable(bench)


def check_create():
    """Random options at creation and replacement, as root of a device."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 2)
    bench = Bench()
    made = 0
    for _ in range(MESSAGES // 4):
        data = rng.choice((sbrm_options_of, junk, lambda _: None))(rng)
        try:
            with bench.a:
                # NLM_F_CREATE | NLM_F_REPLACE, with one of two handles.
                bench.rtnl.sbrm("va", data, rng.choice((0x10, 0x20)) << 16,
                                flags=0x500)
            made += 1
        except Refused as answer:
            assert answer.errno in (22, 34, 95), answer
        traffic(bench, rng)
        if rng.random() < 0.1:
            try:
                with bench.a:
                    bench.rtnl.delete("va", 0)
            except Refused:
                pass
    note(f"{made} accepted")
    bench.drain()
    with bench.a:
        bench.rtnl.sbrm("va", options(limit=10, target=5), 0x300000, flags=0x500)
    bench.send()
    assert len(bench.drain()) == 1


WORDS = {"source": ("direct", "aimd", "vegas", "relative"),
         "estimator": ("log", "raw", "history", "four-bit", "explicit"),
         "rtt": ("last", "min")}
FRACTIONS = {"kappa": (1e-6, 10), "kappa_young": (0, 10),
             "history_gain": (1e-6, 1), "phi": (1.0001, 16)}
INTEGERS = {"young_ms": (1, 3600000), "kappa_window": (0, 1 << 24),
            "history": (1, 64), "slow_start": (0, 1), "loss_cut": (0, 2)}
RANGES = {"wtp": (1, 10**7), **FRACTIONS, **INTEGERS}
NAMES = (*WORDS, *RANGES)


def word(rng, name):
    """Something to write into a setting."""
    plain = (
        lambda: str(number(rng)), lambda: str(-number(rng)),
        lambda: f"{rng.random() * rng.choice((1e-7, 1e-5, 1, 10, 1e4)):.7f}",
        lambda: f"{rng.randrange(10)}.{rng.randrange(10**6):06}",
        lambda: f"{rng.random():.3f}",
        lambda: rng.choice(("direct", "rm", "raw", "min", "auto", "", ".",
                            "1e5", "0x10", "nan", "+1", "1.2.3", "\0", "\x80")),
        lambda: " ".join(str(number(rng)) for _ in range(rng.randrange(1, 17))),
        lambda: " ".join(str(rng.randrange(1, 10**6))
                         for _ in range(rng.randrange(1, 17))),
        lambda: "".join(chr(rng.randrange(1, 128))
                        for _ in range(rng.randrange(1, 14))))
    if name in WORDS and rng.random() < 0.5:
        return rng.choice(WORDS[name])
    if name in INTEGERS and rng.random() < 0.3:
        return str(rng.randrange(80))
    return rng.choice(plain)()


def c_integer(text):
    """As the kernel's own handlers read it: 0x10 and 010 are 16 and 8."""
    digits = text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return int(text, 16)
    return int(text, 8 if digits[0] == "0" else 10)


def means(name, text):
    """The list of numbers that an accepted text stands for, or its words."""
    text = text.split("\n")[0].split("\0")[0]
    if name in WORDS:
        return text.strip()
    if name == "wtp":
        return [c_integer(part) for part in text.split()]
    if name in INTEGERS:
        # The kernel's own handler takes the first and says so by a short count.
        return [c_integer(text.split()[0])]
    return [float(text)]


def check_sysctls():
    """Random writes under traffic: stored exactly, or refused and kept."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 3)
    path = Path(aqm=options(limit=500, target=5, gamma=0.01))
    flows = [path.connect(priority=turn) for turn in range(3)]
    stored = 0
    for turn in range(WRITES):
        name = rng.choice(NAMES)
        text = word(rng, name)
        setting = "net.ipv4.tcp_sbrm." + name
        before = path.s.sysctl(setting)
        try:
            path.s.sysctl(setting, text.encode("latin-1"))
        except OSError as error:
            assert error.errno in (22, 34), error
            assert path.s.sysctl(setting) == before, f"{name}: {text!r}"
        else:
            after = path.s.sysctl(setting)
            if not text:
                assert after == before
                continue
            stored += 1
            want = means(name, text)
            if isinstance(want, str):
                assert after == want, f"{name}: {text!r} gave {after}"
            else:
                got = [float(part) for part in after.split()]
                low, high = RANGES[name]
                assert all(low <= one <= high for one in got), after
                assert got[:len(want)] == want, f"{name}: {text!r}: {after}"
        if turn % 100 == 0:
            # Source and estimator are those of new connections.
            flows[turn // 100 % 3] = path.connect(
                rng.choice(("sbrm", "cp", "rem", "rm")), priority=turn % 3)
        if turn % 25 == 0:
            pump(flows, 0.2)
            for flow in flows:
                last = info(flow)
                assert 1 <= last.cwnd <= 1 << 24 and last.pacing_rate
    note(f"{stored} of {WRITES} writes accepted")
    assert stored > WRITES / 10
    # It still works.
    path.s.sysctl("net.ipv4.tcp_sbrm.kappa", "0.1")
    path.s.sysctl("net.ipv4.tcp_sbrm.phi", "2.718282")
    path.s.sysctl("net.ipv4.tcp_sbrm.wtp", " ".join(["100"] * 16))
    before = info(flows[0]).bytes_acked
    pump(flows, 5)
    assert info(flows[0]).bytes_acked > before
    for flow in flows:
        settle(flow)


def check_fq_rr():
    """The same for fq_rr: random and malformed options, under traffic."""
    rng = random.Random(guest_base.SETTINGS["seed"] + 5)
    bench = Bench()
    bench.htb(400000, 1514, None, b"fq_rr\0")
    state = fq_rr_shown(bench.stats().words)
    assert state == FQ_RR_DEFAULTS
    outcomes = collections.Counter()
    for turn in range(MESSAGES // 2):
        for _ in range(3):
            bench.out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY,
                                 rng.choice((0, 1, 5, 0x100003, 2**31 - 1)))
            traffic(bench, rng)
        if rng.random() < 0.7:
            data, after = fq_rr_options_of(rng, state)
        else:
            data, after = junk(rng), {}
        try:
            with bench.a:
                bench.rtnl.sbrm("va", data, QDISC, CHILD, flags=0,
                                name=b"fq_rr\0")
        except Refused as answer:
            assert not after, f"turn {turn}: {state}: {data.hex()}: {answer}"
            assert answer.message, f"turn {turn}: no message: {data.hex()}"
            outcomes["refused"] += 1
        else:
            assert after is not None, f"turn {turn}: took {data.hex()}"
            # What a malformed one changed is whatever was right in it.
            state = after or fq_rr_shown(bench.stats().words)
            outcomes["accepted"] += 1
        stats, parent = accounts(bench)
        assert fq_rr_shown(stats.words) == state, f"turn {turn}: {data.hex()}"
        for kind, (_, least, most) in FQ_RR_RANGES.items():
            assert least <= state[kind] <= most
        assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
        assert stats.qlen <= state[1]
        assert stats.drops == (stats.x.last_drops + stats.x.longest_drops +
                               stats.x.trim_drops)
        if turn % 20 == 0:
            bench.drain(rng.random() / 10)
    note(f"{dict(outcomes)}, {stats.packets} packets, {stats.drops} dropped")
    assert min(outcomes.values()) > MESSAGES / 20
    bench.drain(1000)
    stats = bench.stats()
    assert stats.qlen == stats.backlog == stats.x.memory == stats.x.flows == 0
    with bench.a:
        assert all(one.qlen == 0
                   for one in bench.rtnl.classes("va").values())


def new_namespace():
    """Be in another network namespace."""
    if guest_base.LIBC.unshare(guest_base.CLONE_NEWNET):
        raise OSError


def check_failing_allocations():
    """Queues and namespaces while allocations fail: errors, no leaks."""
    injected = Injected()
    rng = random.Random(guest_base.SETTINGS["seed"] + 4)
    bench = Bench()
    failures = 0
    injected.probability(5)
    with bench.a:
        device = socket.if_nametoindex("va")
    creates = (attr(1, b"sbrm\0") + attr(2 | 0x8000, options(limit=100)),
               attr(1, b"fq_rr\0") + attr(2 | 0x8000, fq_rr_options(
                   limit=100, service=WFQ, longest=1)))
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        for _ in range(400):
            failures += injected.at_random(lambda: bench.rtnl.qdisc(
                36, 0x500, device, 0x100000, 0xFFFFFFFF, rng.choice(creates)))
            if rng.random() < 0.3:
                failures += injected.at_random(lambda: bench.rtnl.qdisc(
                    37, 0, device, 0, 0xFFFFFFFF, b""))
            # An answer may be left over from a failure.
            bench.rtnl.socket.close()
            with bench.a:
                bench.rtnl = Rtnl()
            bench.send(100, NOT_ECT)
        # Namespaces whose settings cannot be allocated.
        for _ in range(100):
            failures += injected.at_random(new_namespace)
    finally:
        Namespace.move(outside)
        os.close(outside)
        injected.close()
    note(f"{failures} operations failed")
    assert failures


# What asks for different memory: {name: (kind, options, other options)}.
TABLES = {
    "sbrm": (b"sbrm\0", options(limit=100, target=0, gamma=1),
             options(limit=50, target=0, gamma=1)),
    "rem": (b"sbrm\0", options(law=3, limit=100, rate=10**6, gamma=0.1),
            options(law=3, limit=50, rate=10**6, gamma=0.1)),
    "rr": (b"fq_rr\0", fq_rr_options(limit=100, flows=16),
           fq_rr_options(limit=50, flows=17)),
    "wfq": (b"fq_rr\0",
            fq_rr_options(limit=100, flows=16, service=WFQ, longest=1),
            fq_rr_options(limit=50, flows=17)),
    "large": (b"fq_rr\0",
              fq_rr_options(limit=1 << 20, flows=65536, service=WFQ,
                            longest=1),
              fq_rr_options(limit=1 << 20, flows=65535)),
}


def settings(stats):
    """What a dump says that a queue has been told."""
    return stats.settings if stats.kind == "sbrm" else stats.words


def check_each_allocation():
    """Every single allocation of init, change, dump and enqueue fails once: an
    error, the queue as it was, and nothing lost or leaked."""
    injected = Injected()
    bench = Bench()
    bench.htb(40000, 1514, options(limit=100))
    virtio = bench.virtio()
    found = {}
    spare = 0x700000

    def leaf():
        """The queue that is there, and that its parent agrees."""
        # An answer may be left over from a failure, or lost.
        bench.rtnl.socket.close()
        bench.rtnl = Rtnl()
        there = bench.rtnl.dump("va")
        parent = there.pop(PARENT)
        (stats,) = there.values()
        assert (stats.qlen, stats.backlog) == (parent.qlen, parent.backlog)
        return stats

    def create_again(kind, data, handle=QDISC):
        bench.rtnl.sbrm("va", data, handle, CHILD, 0x500, kind)

    def init(name, kind, data):
        def after(failed):
            stats = leaf()
            # If only the answer fails, it is there all the same.
            assert stats.handle == QDISC or failed
            if stats.handle == QDISC:
                create_again(b"sbrm\0", None, spare)

        create_again(b"sbrm\0", None, spare)
        found[f"{name}: init"] = injected.each(
            lambda: create_again(kind, data), after)
        create_again(kind, data)

    def change(name, kind, data, later):
        def tell(words):
            bench.rtnl.sbrm("va", words, QDISC, CHILD, 0, kind)

        def after(failed):
            now = settings(leaf())
            assert now == new or failed and now == was, (was, now)
            tell(data)

        tell(later)
        new = settings(leaf())
        tell(data)
        was = settings(leaf())
        found[f"{name}: change"] = injected.each(lambda: tell(later), after)

    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        Namespace.move(bench.a.file)
        for name, (kind, data, later) in TABLES.items():
            init(name, kind, data)
            for _ in range(20):
                bench.send(300)
            change(name, kind, data, later)
            packets = leaf().qlen
            found[f"{name}: enqueue"] = injected.each(bench.send)
            # Split, or counted.
            found[f"{name}: GSO"] = injected.each(
                lambda: virtio.send(super_packet(3)))
            assert leaf().qlen >= packets + 4
            found[f"{name}: dump"] = injected.each(
                lambda: bench.rtnl.dump("va"), lambda failed: leaf())
            if kind == b"fq_rr\0":
                found[f"{name}: classes"] = injected.each(
                    lambda: bench.rtnl.classes("va"), lambda failed: leaf())
            bench.drain(1000)
            assert leaf().qlen == 0
            # Now each packet leaves in the call that sends it, and is marked.
            found[f"{name}: pass"] = injected.each(
                bench.send, lambda failed: bench.drain(1))
        found["namespace"] = injected.each(new_namespace)
    finally:
        Namespace.move(outside)
        os.close(outside)
        injected.close()
    note(", ".join(f"{name} {number}" for name, number in found.items()))
    assert all(number > 0 for number in found.values())


if __name__ == "__main__":
    guest_base.main(globals())
