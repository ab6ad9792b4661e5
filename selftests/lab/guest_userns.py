# SPDX-License-Identifier: GPL-2.0
"""Users without privilege: root of a user namespace of their own changes every
setting and option there, sends, and floods; nothing outside changes. And what
such a user, or one with no namespace at all, tries outside is refused."""

import contextlib
import errno
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import guest_base
from declared import CONTROLS, CONTROLS_OF, MODULES, RESTRICTED
from guest_base import SETTINGS, Namespace, note, run

USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
        "--inh-caps=-all", "--bounding-set=-all"]
# The bounding set must be full for a user namespace to give capabilities.
MAPPED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
          "unshare", "--user", "--map-root-user"]
SYSCTLS = Path("/proc/sys/net/ipv4")
DEFAULT = SYSCTLS / "tcp_congestion_control"
ALLOWED = SYSCTLS / "tcp_allowed_congestion_control"
TCP_CONGESTION = 13
OPERATIONS = 300
# So many go to one tc.
BATCH = 40

VALUES = ("0", "1", "2", "3", "7", "50", "64", "1000", "70000", "10000000",
          "4294967295", "-1", "0.000001", "0.5", "1.0001", "2.5", "10", "16",
          "100 200 400", "1 " * 16, "direct", "aimd", "vegas", "relative", "log", "raw",
          "history", "four-bit", "explicit", "last", "min", "fuzzy", "fixed",
          "kalman", "continuous", "discrete", "", "junk", "9" * 400)
WORDS = {
    "sbrm": {
        "mark": ("sbrm", "rem-pc1", "rem-pc2", "rem-pc3", "vqm", "delay",
                 "alpha"),
        "feedback": ("mark", "price", "four-bit", "two-bit"),
        "limit": ("1", "1000", "2147483647"), "target": ("0", "10", "500", "10us", "3ms", "1s"),
        "gamma": ("auto", "0.015", "1"), "phi": ("1.06", "16"),
        "alpha": ("0.1", "16"), "rate": ("8bit", "10mbit", "1tbit"),
        "avpkt": ("1", "1500", "65535"), "interval": ("1us", "1s"),
        "delta": ("0.001", "1"), "scale": ("0.01", "1"), "packets": (),
        "bytes": (), "ecn": (), "drop": (), "noecn": (), "nodrop": (),
        "price-drop": (), "coupled": (), "any-ect": (), "l4s-ect": (),
        "coupling": ("0.01", "2", "1000"), "small": ("0b", "256b", "65535b"),
        "split-gso": (), "no-split-gso": (), "dither": (), "no-dither": (),
        "sparse": (), "no-sparse": (),
        "high": ("1", "50"), "low": ("0", "25"), "goal": ("51", "300"),
        "reset-stats": ()},
    "fq_rr": {
        "limit": ("1", "100", "10240"), "memory_limit": ("1kb", "32mb"),
        "flows": ("1", "1024", "65536"), "service": ("rr", "drr", "wfq"),
        "quantum": ("1", "1514", "65535"),
        "overflow": ("drop-last", "drop-tail-of-longest", "drop-longest"),
        "longest": ("packets", "bytes"),
        "classify": ("flow", "priority", "mark"),
        "weigh": ("priority", "mark"), "weights": ("1", "1,2,4,1024"),
        "perturb": ("0", "1", "3600"), "reserve": ("0", "1", "50"),
        "split-gso": (),
        "no-split-gso": ()}}


def take(word, values, rng):
    """An option with one of its values."""
    return f"{word} {rng.choice(values)}" if values else word


def accepted(lines):
    """How many of these commands of tc are accepted."""
    said = subprocess.run(
        ["tc", "-force", "-batch", "-"], input="\n".join(lines) + "\n",
        text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT).stdout
    # The kernel unmaps freed tables in a worker, which has its turn here: in virtual
    # time no time slice ends. The host has a limit for the lab's mappings.
    time.sleep(0.01)
    return len(lines) - said.count("Command failed")


def inside():
    """In the user's namespace: change all there is; prints what was taken."""
    rng = random.Random(int(sys.argv[2]))
    taken = {"settings": {}, "operations": {}, "bytes": {}}
    run("ip link set lo up")
    for path in sorted(path for name in CONTROLS_OF for path in
                       (SYSCTLS / name).iterdir()):
        before = path.read_text()
        seen = set()
        for value in VALUES:
            with contextlib.suppress(OSError):
                path.write_text(value)
            seen.add(path.read_text())
        taken["settings"][f"{path.parent.name}.{path.name}"] = len(seen)
        with contextlib.suppress(OSError):
            path.write_text(before)
    flood = threading.Thread(target=traffic, args=(taken,))
    flood.start()
    for kind, words in WORDS.items():
        # Each word alone, then many together.
        tries = [take(word, [value] if values else (), rng)
                 for word, values in words.items() for value in values or [""]]
        tries += [" ".join(take(word, words[word], rng) for word in
                           rng.sample(sorted(words), rng.randrange(5)))
                  for _ in range(OPERATIONS)]
        lines = [f"qdisc {rng.choice(('replace', 'replace', 'change', 'add'))} "
                 f"dev lo root handle 1: {kind} {options}" for options in tries]
        done = sum(accepted(lines[at:at + BATCH])
                   for at in range(0, len(lines), BATCH))
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=False,
                       stderr=subprocess.DEVNULL)
        taken["operations"][kind] = done
    flood.join()
    print(json.dumps(taken))


def traffic(taken):
    """Each congestion control over the changing queue, with any priority."""
    for name in CONTROLS:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
        with socket.socket() as flow:
            flow.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
            flow.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 15)
            flow.settimeout(5)
            flow.connect(listener.getsockname())
            other, _ = listener.accept()
            other.settimeout(5)
            total = 0
            for _ in range(40):
                with contextlib.suppress(OSError):
                    flow.send(bytes(20000))
                    total += len(other.recv(1 << 20))
            # Away at once: the queue may hold what is left for long.
            for one in (flow, other):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("=ii", 1, 0))
            other.close()
        listener.close()
        taken["bytes"][name] = total


def outside():
    """Everything of the network that a neighbour could see change."""
    found = {}
    for path in sorted(Path("/proc/sys/net").rglob("*")):
        if path.is_file():
            try:
                found[str(path)] = path.read_text()
            except OSError:
                continue
    for module in CONTROLS_OF:
        found[module] = Path(f"/proc/net/{module}").read_text()
    for module in MODULES:
        for path in Path(f"/sys/module/{module}").glob("parameters/*"):
            found[str(path)] = path.read_text()
    found["qdiscs"] = run("tc -s qdisc show")
    found["links"] = run("ip -o link show")
    found["routes"] = run("ip route show table all")
    found["hooks"] = run("ss -Htan")
    return found


def both(neighbour):
    """outside() of the first namespace and of another one."""
    with neighbour:
        there = outside()
    return outside(), there


def check_everything_changed_inside():
    """Every setting, every option, each congestion control: only there."""
    neighbour = Namespace("neighbour")
    for space in (neighbour,):
        space.run("tc qdisc add dev lo root sbrm limit 77")
        space.sysctl("net.ipv4.tcp_sbrm.wtp", "123")
    before = both(neighbour)
    loaded = run("lsmod")
    done = subprocess.run(
        [*MAPPED, "--net", sys.executable, __file__, "inside",
         str(SETTINGS["seed"])], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    taken = json.loads(done.stdout)
    note(json.dumps(taken))
    # It did change them: a test of nothing would pass, too.
    for name, values in taken["settings"].items():
        assert values > 1, f"{name} never changed there"
    for kind, count in taken["operations"].items():
        assert count > OPERATIONS / 4, (kind, count)
    assert all(taken["bytes"][name] for name in CONTROLS), taken["bytes"]
    after = both(neighbour)
    for old, new in zip(before, after):
        assert set(old) == set(new)
        for name, value in old.items():
            assert new[name] == value, f"{name}: {value!r} -> {new[name]!r}"
    # Nor does it hold anything when it is gone.
    for _ in range(100):
        if run("lsmod") == loaded:
            break
        run("sleep 1")
    assert run("lsmod") == loaded


def check_all_options_are_tried():
    """What tc's help names is in WORDS."""
    for kind, words in WORDS.items():
        said = run(f"tc qdisc add dev lo root {kind} help", check=False)
        usage = said.split("\n\n")[0].replace("Usage: ...", "")
        usage = re.sub(r"tc class change.*", "", usage)
        values = {value for many in words.values() for value in many}
        named = set(re.findall(r"[a-z][a-z0-9_-]+", usage)) - {kind, "auto"}
        unknown = named - set(words) - values
        assert not unknown, (kind, unknown)


def denied(words, who):
    """A command that this user must not succeed with."""
    done = subprocess.run([*who, *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode, f"{' '.join(words)} was allowed: {done.stdout}"


def check_refused_outside():
    """A user, and root of a user namespace without a network of its own."""
    neighbour = Namespace("neighbour")
    run("ip link add outer0 type dummy")
    run("tc qdisc add dev outer0 root handle 1: sbrm limit 77")
    run("tc qdisc add dev lo root handle 1: fq_rr limit 77")
    before = both(neighbour)
    tries = 0
    for who in (USER, MAPPED):
        for name in CONTROLS_OF:
            for path in (SYSCTLS / name).iterdir():
                denied(["sh", "-c", f"echo 1 > {path}"], who)
                tries += 1
        denied(["sh", "-c", "echo rem > /proc/sys/net/ipv4/"
                "tcp_congestion_control"], who)
        for line in ("qdisc add dev outer0 parent 1:1 sbrm",
                     "qdisc replace dev outer0 root sbrm limit 5",
                     "qdisc change dev outer0 root handle 1: sbrm reset-stats",
                     "qdisc del dev outer0 root",
                     "qdisc change dev lo root handle 1: fq_rr limit 5",
                     "class change dev lo classid 1:1 fq_rr weight 5",
                     "qdisc replace dev lo root fq_rr"):
            denied(["tc", *line.split()], who)
            tries += 1
        for line in ("route add 192.0.2.0/24 dev lo congctl sbrm",
                     "netns exec neighbour true"):
            denied(["ip", *line.split()], who)
        denied(["nsenter", "--net=/proc/1/ns/net", "true"], who)
        for module in MODULES:
            denied(["rmmod", module], who)
        for priority in (7, 15):
            denied([sys.executable, "-c",
                    "import socket; socket.socket().setsockopt("
                    f"socket.SOL_SOCKET, 12, {priority})"], who)
    note(f"{tries} writes and requests refused")
    assert both(neighbour) == before
    run("ip link del outer0")
    run("tc qdisc del dev lo root")


# As the default of a namespace. Of those that the kernel refuses, one that is
# built in: 6.1 leaks a reference to the module each time it refuses.
DEFAULTS = {**{name: 0 for name in CONTROLS if name not in RESTRICTED},
            "dctcp": errno.EPERM}
# Prints {name: 0 or the errno} of asking for each congestion control by a
# socket, and of making it the default of the namespace.
ASK = f"""
import json, socket
def tried(function):
    try:
        function()
    except OSError as error:
        return error.errno
    return 0
def ask(name):
    socket.socket().setsockopt(socket.IPPROTO_TCP, {TCP_CONGESTION}, name.encode())
def choose(name):
    with open("{DEFAULT}", "w") as file:
        file.write(name)
print(json.dumps([{{name: tried(lambda: ask(name)) for name in {CONTROLS}}},
                  {{name: tried(lambda: choose(name)) for name in {[*DEFAULTS]}}}]))
"""


def asked(who):
    """What a user is told who asks for each: by a socket, as the default."""
    return json.loads(run([*who, sys.executable, "-c", ASK]))


def check_restricted():
    """cp and ppx are for who may administer the network (CAP_NET_ADMIN where it
    belongs to), until the administrator allows them to everyone."""
    before = ALLOWED.read_text().split()
    assert not set(before) & set(RESTRICTED), before
    refused = {name: errno.EPERM if name in RESTRICTED else 0
               for name in CONTROLS}
    for who in (USER, MAPPED):
        by_socket, as_default = asked(who)
        note(f"{who[-1]}: {by_socket}, {as_default}")
        assert by_socket == refused
        assert set(as_default.values()) == {errno.EACCES}
    # Root of a user namespace is the administrator of a network of its own, but
    # no default may be restricted there: it would be allowed everywhere then.
    by_socket, as_default = asked([*MAPPED, "--net"])
    note(f"with a network of its own: {by_socket}, {as_default}")
    assert not any(by_socket.values())
    assert as_default == DEFAULTS
    assert ALLOWED.read_text().split() == before
    try:
        ALLOWED.write_text(" ".join([*before, "cp"]))
        assert asked(USER)[0] == {**refused, "cp": 0}
    finally:
        ALLOWED.write_text(" ".join(before))
    assert asked(USER)[0] == refused
    # A route needs no such permission, but that to administer the network.
    with Namespace("routed"):
        run("ip route add 192.0.2.0/24 dev lo congctl cp")


def check_new_namespaces_begin_with_defaults():
    """What one namespace was set to is not another's beginning."""
    def settings(space):
        with space:
            return {str(path): path.read_text() for name in CONTROLS_OF
                    for path in (SYSCTLS / name).iterdir()}

    first = Namespace("first")
    fresh = settings(first)
    for name, value in (("tcp_sbrm.wtp", "7 8 9"), ("tcp_sbrm.kappa", "1"),
                        ("tcp_pp.setpoint", "9")):
        first.sysctl(f"net.ipv4.{name}", value)
    assert settings(first) != fresh
    assert settings(Namespace("second")) == fresh


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        inside()
    else:
        os.umask(0o022)
        guest_base.main(globals())
