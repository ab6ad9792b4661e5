# SPDX-License-Identifier: GPL-2.0
"""The smoke set: do the modules work on the kernel this runs on?

    python3 -m tollwaylib.guest.smoke

As root, with the modules loaded, tc with the plugins (TC_LIB_DIR), iperf3 and
ss. Each check works in network namespaces of its own with commands that a user
would type; one removes the modules. One line of KTAP for each, and all of them
with what was measured in smoke.json of the working directory. Rates are those of
emulated processors on a host that may be busy: they are noted and not judged,
but for what no shaper may let through.
"""

import collections
import contextlib
import errno
import json
import os
import random
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from .daemons import TOOLS
from .smoke_bench import (LIMIT_S, SECONDS, Inside, execute, is_known, qdiscs,
                          received_bps, refused, run, sign, sign_ao, traffic,
                          two_hosts, users, wait_for)

ADMIT = TOOLS / "tollway-admit"

# What main() is given, see of_smoke() in components/modules.py: {module: its
# congestion controls}, all modules, and the controls that may be the default of the
# first network namespace only. Elsewhere they are refused, and 6.1 leaks a reference
# to the module each time it refuses.
CONTROLS, MODULES, RESTRICTED = {}, [], []
# {kind of a queue: the fields of its Trial}
TRIALS = {}
# [(congestion control, word of ss before its state, tc words of a queue)], and the
# controls that count marks.
PATHS, COUNTING = [], []
# {congestion control: its file of counters, those of fields that cannot be true,
# and of connections whose segments were signed from the start}
CARRIERS = {}
# How long a flow lasts that ss must see, s, in the first, second and third attempt.
# Emulated processors on a busy host may need all of that to start ss.
FLOW_LASTS_S = (SECONDS, 4 * SECONDS, 16 * SECONDS)
# Between changes of queues.
PAUSE_S = 0.05
QUEUES = 2
FLOWS = 8
# A link slower than the emulated processors of a busy host.
RATE_MBIT = 2
TROUBLE = re.compile(r"WARNING|\bBUG\b|Oops|INFO: |general protection|"
                     r"refcount_t|suspicious RCU|unregister_netdevice: waiting")
# What virtual machines say at boot.
HARMLESS = re.compile(r"MP-BIOS bug|WARNING: Spectre|MDS CPU bug")


def check_modules_are_loaded(note):
    """insmod has loaded all modules, and all they register is there."""
    loaded = Path("/proc/modules").read_text()
    for module in MODULES:
        assert re.search(rf"^{module} ", loaded, re.MULTILINE), module
    note(run("uname -rv").strip())
    note(run("nproc").strip() + " processors")


def check_sysctl_selects(note):
    """sysctl selects every congestion control that is not restricted."""
    key = "net.ipv4.tcp_congestion_control"
    with two_hosts(), Inside("a"):
        available = run("sysctl -n net.ipv4.tcp_available_congestion_control")
        for name in sum(CONTROLS.values(), []):
            if name in RESTRICTED:
                continue
            said = run(f"sysctl -w {key}={name}")
            assert said.strip() == f"{key} = {name}", said
            assert run(f"sysctl -n {key}").strip() == name
        assert "No such file" in refused(f"sysctl -w {key}=nonsense")
    note(available.strip())


# In the lab no time passes: writes are counted.
WRITES = 20000


def check_sysctl_writers(note):
    """A process writes the first number of wtp while this one writes all of them:
    the others are always those written last."""
    path = "/proc/sys/net/ipv4/tcp_sbrm/wtp"
    with two_hosts(), Inside("a"):
        child = os.fork()
        file = os.open(path, os.O_RDWR)
        if not child:
            for _ in range(3 * WRITES):
                os.pwrite(file, b"5", 0)
            os._exit(0)
        tables, lost, met = (b"1 " * 16, b"1111111 " * 16), 0, 0
        for number in range(WRITES):
            table = tables[number % len(tables)]
            os.pwrite(file, table, 0)
            seen = os.pread(file, 1000, 0).split()
            met += seen[0] == b"5"
            lost += seen[1:] != table.split()[1:]
        os.close(file)
        assert os.waitpid(child, 0)[1] == 0
    note(f"{lost} of {WRITES} tables lost, {met} met the other process, on "
         f"{os.cpu_count()} processors")
    assert not lost


def check_tc_with_the_plugins(note):
    """tc adds, shows, changes, replaces and deletes each qdisc."""
    with two_hosts():
        for kind, trial in TRIALS.items():
            run(f"tc qdisc add dev left root handle 1: {kind} {trial['add']}",
                space="a")
            shown = qdiscs("a")["1:"]
            assert shown["kind"] == kind and shown["options"], shown
            run(f"tc qdisc change dev left handle 1: root {kind} "
                f"{trial['change']}", space="a")
            option = trial["option"]
            assert qdiscs("a")["1:"]["options"][option] == trial["value"]
            said = refused("tc qdisc change dev left handle 1: root "
                           f"{kind} {option} nonsense", space="a")
            assert option in said, said
            run(f"tc qdisc replace dev left root handle 1: {kind}", space="a")
            note(run("tc -s -d qdisc show dev left", space="a"))
            run("tc qdisc del dev left root", space="a")
            assert "1:" not in qdiscs("a")


def through(words, cc, info, note):
    """A flow through a shaped qdisc of ours must have its rate, and be seen."""
    kind = words.split()[0]
    with two_hosts():
        run("tc qdisc add dev left root handle 1: htb default 1", space="a")
        run(f"tc class add dev left parent 1: classid 1:1 htb rate "
            f"{RATE_MBIT}mbit", space="a")
        run(f"tc qdisc add dev left parent 1:1 handle 10: {words}", space="a")
        run("ping -q -c 1 -w 5 10.0.0.2", space="a")
        for seconds in FLOW_LASTS_S:
            with traffic(cc, seconds) as report:
                # Once it has sent for a while.
                time.sleep(seconds / 2)
                detail = wait_for(lambda: re.search(
                    rf"\b{cc}\b.*? ({info}:\(\S+\))",
                    run("ss -Hti dst 10.0.0.2", space="a")))
                rate = received_bps(report())
            if detail:
                break
            note(f"ss did not show {cc} during a transfer of {seconds} s")
        shown = qdiscs("a")["10:"]
        assert detail, f"ss -ti does not show {cc} and its state"
        assert 0 < rate < RATE_MBIT * 1e6, f"{cc}: {rate / 1e6} Mb/s"
        assert shown["kind"] == kind and shown["bytes"] > \
            rate * seconds / 8 / 2, shown
        note(f"{cc} through {kind}: {rate / 1e6:.2f} of {RATE_MBIT} Mb/s, "
             f"ss -ti: {detail[1]}")
        return shown, rate


def check_iperf3_through_queues(note):
    """A congestion control of each module through a queue that suits it: controls
    that count marks are marked, and a queue with classes has seen the flow."""
    for cc, info, words in PATHS:
        shown, rate = through(words, cc, info, note)
        if cc in COUNTING:
            note(f"{shown['marks']} marks, {shown['drops']} drops")
            # A link that its sender cannot fill has no price.
            assert shown["marks"] > 0 or rate < RATE_MBIT * 1e6 / 2, shown
        assert "marks" in shown or shown["flows_max"] >= 1, shown


TCP_CONGESTION, MPTCP = 13, 262
SIGNED_BYTES = 1 << 20


def carried(near, far):
    """Send some data from one end to the other, of this process."""
    for end in near, far:
        end.settimeout(LIMIT_S / 10)
    sender = threading.Thread(target=near.sendall, args=(bytes(SIGNED_BYTES),))
    sender.start()
    left = SIGNED_BYTES
    while left:
        left -= len(far.recv(left))
    sender.join()


# Name, function, and whether connections are signed from the start: the first key
# of AO has to come before the connection.
SIGNATURES = (("TCP_MD5SIG", sign, (True, False)), ("TCP-AO", sign_ao, (True,)))


def counters_of(file, space):
    """{counter: value} of a congestion control's file in a namespace."""
    with Inside(space):
        text = Path(f"/proc/net/{file}").read_text()
    return {name: int(value) for name, value in map(str.split,
                                                    text.splitlines())}


def unconnected(stack, cc):
    """A socket on a and a listener on b, with a congestion control."""
    with Inside("a"):
        near = stack.enter_context(socket.socket())
    with Inside("b"):
        server = stack.enter_context(socket.create_server(("", 5300)))
    for end in near, server:
        end.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
    return near, server


def connected(stack, near, server):
    """The other end of `near`. Carriers have their hooks after it, and both ends
    prices to return."""
    near.connect(("10.0.0.2", 5300))
    far = stack.enter_context(server.accept()[0])
    for ends in (near, far), (far, near):
        carried(*ends)
    return far


def signed_connection(note, cc, how, begin):
    """A connection that is signed by a function, from the start or later."""
    file, invalid, signed = CARRIERS[cc]
    name = "TcpExtTCPMD5NotFound"
    with two_hosts(), contextlib.ExitStack() as stack:
        near, server = unconnected(stack, cc)
        if begin:
            how(near, "10.0.0.2")
            how(server, "10.0.0.1")
        far = connected(stack, near, server)
        if not begin:
            how(near, "10.0.0.2")
        # Segments out of order may have been invalid up to now.
        before = counters_of(file, "a")
        if not begin:
            # Without a signature: TCP discards it.
            far.sendall(b"x")
            how(far, "10.0.0.1")
            assert near.recv(1) == b"x"
        for ends in (near, far), (far, near):
            carried(*ends)
        after = counters_of(file, "a")
        unsigned = json.loads(run(f"nstat -ajsz {name}", space="a"))
        unsigned = unsigned["kernel"][name]
        note(f"{cc}, {how.__name__} from {'the start' if begin else 'some time'} "
             f"on: {after}, {unsigned} unsigned segments discarded")
        if signed:
            assert after[signed] == int(begin)
        assert after[invalid] == (0 if begin else before[invalid])
        assert not unsigned if begin else unsigned


def check_signed_connections(note):
    """Connections of controls that carry fields, whose segments TCP signs (MD5, AO),
    from the start and from some time on: they go on, without prices."""
    for option, how, begins in SIGNATURES:
        if not is_known(how):
            note(f"this kernel has no {option}")
            continue
        for cc in CARRIERS:
            for begin in begins:
                signed_connection(note, cc, how, begin)


def check_ipsec_policy(note):
    """A host that accepts only what IPsec protects: segments that TCP discards for
    that carry fields which are not believed."""
    policy = "src 10.0.0.1 dst 10.0.0.2 dir in"
    status, said = execute("ip xfrm policy list")
    if status:
        assert "not supported" in said, said
        return note("this kernel has no IPsec")
    for cc, (file, invalid, _) in CARRIERS.items():
        with two_hosts(), contextlib.ExitStack() as stack:
            near, server = unconnected(stack, cc)
            far = connected(stack, near, server)
            run(f"ip xfrm policy add {policy} tmpl proto esp mode transport",
                space="b")
            before = counters_of(file, "b")
            near.sendall(b"x")
            # The segment, and its repetitions.
            assert wait_for(lambda: counters_of(file, "b")[invalid] >=
                            before[invalid] + 3), counters_of(file, "b")
            after = counters_of(file, "b")
            far.setblocking(False)
            try:
                raise AssertionError(f"TCP took {far.recv(1)!r}")
            except BlockingIOError:
                pass
            run(f"ip xfrm policy delete {policy}", space="b")
            far.settimeout(LIMIT_S)
            assert far.recv(1) == b"x"
            for ends in (near, far), (far, near):
                carried(*ends)
            note(f"{cc}: {before} before, {after} after")


def check_late_neighbour(note):
    """A SYN that waits for ARP past its timeout: TCP takes the timeout back
    before the congestion control of the connection has been initialised."""
    names, size = sum(CONTROLS.values(), []), 50000
    with two_hosts():
        run("sysctl -qw net.ipv4.neigh.left.mcast_solicit=60", space="a")
        run("ip link set right arp off", space="b")
        with Inside("b"):
            server = socket.create_server(("10.0.0.2", 5301), backlog=99)
        flows = []
        with Inside("a"):
            for name in names:
                flow = socket.socket()
                flow.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION,
                                name.encode())
                flow.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    flow.connect(("10.0.0.2", 5301))
                flows.append(flow)
        # The first timeout of a SYN is one second.
        time.sleep(1.6)
        run("ip link set right arp on", space="b")
        server.settimeout(LIMIT_S)
        others = [server.accept()[0] for _ in names]
        for flow in flows:
            flow.setblocking(True)
            flow.settimeout(LIMIT_S)
            flow.sendall(bytes(size))
        for other in others:
            other.settimeout(LIMIT_S)
            left = size
            while left:
                left -= len(other.recv(left))
        for one in [server, *flows, *others]:
            one.close()
        note(f"{len(names)} connections, {size} bytes each")


def check_mptcp_subflows(note):
    """MPTCP with two subflows: each control, and a switch under way."""
    if not Path("/proc/sys/net/mptcp").exists():
        return note("this kernel has no MPTCP")
    with two_hosts():
        for space in "a", "b":
            run("ip mptcp limits set subflow 2 add_addr_accepted 2", space=space)
        run("ip addr add 10.0.0.3/24 dev left", space="a")
        run("ip mptcp endpoint add 10.0.0.3 dev left subflow", space="a")
        for port, name in enumerate(sum(CONTROLS.values(), []), 5310):
            with contextlib.ExitStack() as stack:
                with Inside("a"):
                    near = stack.enter_context(socket.socket(proto=MPTCP))
                with Inside("b"):
                    server = stack.enter_context(socket.socket(proto=MPTCP))
                server.bind(("", port))
                server.listen()
                near.connect(("10.0.0.2", port))
                far = stack.enter_context(server.accept()[0])
                # Subflows that are there switch, and all data arrives.
                for cc in "reno", name:
                    try:
                        near.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION,
                                        cc.encode())
                    except OSError as error:
                        assert error.errno in (errno.EOPNOTSUPP,
                                               errno.ENOPROTOOPT), error
                        return note("MPTCP of this kernel has no TCP_CONGESTION")
                    carried(near, far)
                shown = run(f"ss -Htin dport = :{port}", space="a")
                assert len(re.findall(rf"\s{name}\s", shown)) == 2, shown


def check_multi_queue(note):
    """Qdiscs of ours under mq at once, on all processors, while they change."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(two_hosts(QUEUES))
        run("tc qdisc add dev left root handle 1: mq", space="a")
        kinds = list(TRIALS)
        for queue in range(QUEUES):
            kind = kinds[queue % len(kinds)]
            run(f"tc qdisc replace dev left parent 1:{queue + 1} handle "
                f"{queue + 1}0: {kind} {TRIALS[kind]['add']}", space="a")
        # Packets are received on both processors, whoever sends. /sys is that
        # of the namespace in which it was mounted.
        run("unshare -m sh -c 'mkdir -p /tmp/net; mount -t sysfs sysfs /tmp/net; "
            "for file in /tmp/net/class/net/right/queues/rx-*/rps_cpus; do "
            "echo 3 > $file; done'", check=os.cpu_count() > 1, space="b")
        reports = [stack.enter_context(traffic(
            names[0], SECONDS, FLOWS, 5201 + number,
            number % os.cpu_count())) for number, names in
            enumerate(CONTROLS.values())]
        changes, end = 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            for queue in range(QUEUES):
                run(f"tc qdisc change dev left parent 1:{queue + 1} handle "
                    f"{queue + 1}0: {kinds[queue % len(kinds)]} limit "
                    f"{300 + changes % 2 * 100}", space="a")
            changes += 1
            # Where computation takes no time, this must.
            time.sleep(PAUSE_S)
        rate = sum(received_bps(report()) for report in reports)
        packets = {kinds[queue % len(kinds)]:
                   qdiscs("a")[f"{queue + 1}0:"]["packets"]
                   for queue in range(QUEUES)}
        # 16 flows and more are spread over the queues by hash.
        assert all(packets.values()), packets
        note(f"{rate / 1e6:.0f} Mb/s, packets of each queue: {packets}, "
             f"{changes} changes meanwhile")


STORM_LEAST = 200


def check_storm(note):
    """Queues of each kind under mq take each other's place, and change, while
    packets go through them on all processors."""
    rng = random.Random(1)
    done = collections.Counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(two_hosts(QUEUES))
        run("tc qdisc add dev left root handle 1: mq", space="a")
        reports = [stack.enter_context(traffic(
            names[0], 2 * SECONDS, FLOWS, 5201 + number,
            number % os.cpu_count())) for number, names in
            enumerate(CONTROLS.values())]
        kinds = {}
        end = time.monotonic() + 2 * SECONDS
        while time.monotonic() < end or done["tried"] < STORM_LEAST:
            lines = []
            for _ in range(10):
                queue = rng.randrange(1, QUEUES + 1)
                where = f"dev left parent 1:{queue}"
                what = rng.choice(("replace", "change", "change", "change",
                                   "del"))
                if what == "replace" or queue not in kinds:
                    what, kinds[queue] = "replace", rng.choice(list(TRIALS))
                    where += f" handle {queue}0: {kinds[queue]}"
                elif what == "change":
                    where += f" handle {queue}0: {kinds[queue]} " + rng.choice(
                        TRIALS[kinds[queue]]["storm"]).format(rng.randrange(1, 50),
                                                    rng.randrange(100, 400))
                else:
                    del kinds[queue]
                lines.append(f"qdisc {what} {where}")
            with Inside("a"):
                # Some are refused, such as a law without its rate.
                said = subprocess.run(
                    ["tc", "-force", "-batch", "-"], text=True, check=False,
                    input="\n".join(lines), stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, timeout=LIMIT_S).stdout
            done["refused"] += said.count("Command failed")
            done["tried"] += len(lines)
            time.sleep(PAUSE_S)
        # mq has nothing in place of what was deleted, and drops all packets there:
        # no connection could end where that is so of each queue.
        for queue in {*range(1, QUEUES + 1)} - kinds.keys():
            run(f"tc qdisc replace dev left parent 1:{queue} pfifo", space="a")
        rate = sum(received_bps(report()) for report in reports)
    note(f"{rate / 1e6:.0f} Mb/s, {dict(done)}")
    assert rate > 0 and done["refused"] < done["tried"] / 2, said


def check_admission(note):
    """tollway-admit controls a class of htb, and puts it back as it was."""
    folder, children = Path(tempfile.mkdtemp()), []
    status = f"{ADMIT} status --socket {folder}/left"
    run(f"{ADMIT} key {folder}/key")
    with two_hosts():
        for space, device, peer in (("a", "left", 2), ("b", "right", 1)):
            run(f"tc qdisc add dev {device} root handle 1: htb", space=space)
            run(f"tc class add dev {device} parent 1: classid 1:10 htb rate 9mbit",
                space=space)
            with Inside(space):
                children.append(subprocess.Popen(shlex.split(
                    f"{ADMIT} run --peer 10.0.0.{peer} --key {folder}/key "
                    f"--device {device} --class 1:10 --rate 8mbit --interval "
                    f"100ms --lost 10s --socket {folder}/{device}")))
        try:
            assert wait_for(lambda: '"controlled"' in execute(status)[1])
            assert " rate 9Mbit " not in run("tc class show dev left", space="a")
        finally:
            for child in children:
                child.terminate()
            assert [child.wait(LIMIT_S) for child in children] == [130, 130]
        assert " rate 9Mbit " in run("tc class show dev left", space="a")


def check_removal(note):
    """What is in use is not removed; with the last user it is, cleanly."""
    # A socket of a check before this one whose last packets find no other host any
    # more tries again for 100 s, or twice as long where its first timeout was twice
    # as long.
    for module in CONTROLS:
        assert wait_for(lambda name=module: users(name) == 0, LIMIT_S), module
    with two_hosts():
        for number, kind in enumerate(TRIALS, start=1):
            run(f"tc qdisc replace dev left root handle {number}: {kind}",
                space="a")
            note(refused(f"rmmod sch_{kind}"))
        for module, names in CONTROLS.items():
            # Its end must not come before rmmod has been refused.
            with traffic(names[0], FLOW_LASTS_S[1]) as report:
                wait_for(lambda name=module: users(name))
                note(refused(f"rmmod {module}"))
                report()
            # The other host still answers, so the last packets arrive at once.
            assert wait_for(lambda name=module: users(name) == 0), module
    for module in MODULES:
        # Namespaces go in the background, and sockets after their last packet.
        for _ in range(100):
            said = run(f"rmmod {module}", check=False)
            if not said:
                break
            time.sleep(1)
        assert not said, said
        assert users(module) is None


def check_kernel_log(note):
    """The kernel has logged no error."""
    lines = run("dmesg").splitlines()
    trouble = [line for line in lines
               if TROUBLE.search(line) and not HARMLESS.search(line)]
    assert not trouble, "\n".join(trouble)
    note(f"{len(lines)} lines")
    # After its first complaint it is off, and would have seen nothing since.
    lockdep = Path("/proc/lockdep_stats")
    if lockdep.exists():
        found = re.search(r"debug_locks: +(\d)", lockdep.read_text())
        assert found and found[1] == "1", "lockdep is off"
        note("lockdep is on")


CHECKS = {name[len("check_"):]: function
          for name, function in list(globals().items())
          if name.startswith("check_")}


def know(given):
    """Store the declarations of the modules."""
    for name, known in (("controls", CONTROLS), ("queues", TRIALS),
                        ("carriers", CARRIERS)):
        known.update(given.get(name, {}))
    for name, known in (("modules", MODULES), ("restricted", RESTRICTED),
                        ("paths", PATHS), ("counting", COUNTING)):
        known.extend(given.get(name, ()))


def main(given="{}"):
    """Run all checks; returns 0 if they hold, else 1.

    given: a JSON object, see the top of this file.
    """
    know(json.loads(given))
    results = {}
    print("KTAP version 1", flush=True)
    print(f"1..{len(CHECKS)}", flush=True)
    for number, (name, function) in enumerate(CHECKS.items(), start=1):
        notes, error = [], ""
        started = time.monotonic()
        try:
            function(notes.append)
        except Exception:  # whatever it was belongs into the report
            error = traceback.format_exc()
        for text in notes + [error]:
            for line in text.splitlines():
                print(f"# {line}")
        print(f"{'not ok' if error else 'ok'} {number} {name}", flush=True)
        results[name] = {"ok": not error, "error": error, "notes": notes,
                         "seconds": round(time.monotonic() - started, 1)}
        Path("smoke.json").write_text(json.dumps(results, indent=1))
    return 0 if all(result["ok"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
