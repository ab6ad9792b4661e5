# SPDX-License-Identifier: GPL-2.0
"""The installed tc with one of our plugins, and a stub for the kernel.

q_sbrm_stub.c keeps the request that tc would send, and answers tc's request for
a dump: no kernel module, no privileges.
"""
import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parent / "tools"
UAPI = HERE.parent / "include/uapi"
TC = shutil.which("tc")
CFLAGS = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]

# linux/netlink.h, linux/rtnetlink.h
NLMSG_DONE, RTM_NEWQDISC = 3, 36
NLA_F_NESTED = 0x8000
TCA_KIND, TCA_OPTIONS, TCA_STATS2, TCA_STATS_BASIC, TCA_STATS_APP = 1, 2, 7, 1, 4
TC_H_ROOT = 0xFFFFFFFF


def u32(value):
    return struct.pack("=I", value)


def u64(value):
    return struct.pack("=Q", value)


def flags(value, selector):
    """struct nla_bitfield32"""
    return struct.pack("=II", value, selector)


def attr(kind, payload):
    padding = -len(payload) % 4
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(padding)


def attrs(data):
    """[(type, payload)] of a sequence of attributes; nothing may be left over."""
    found = []
    while data:
        length, kind = struct.unpack_from("=HH", data)
        assert 4 <= length <= len(data)
        found.append((kind, data[4:length]))
        data = data[(length + 3) & ~3:]
    return found


def message(kind, payload):
    return struct.pack("=IHHII", 16 + len(payload), kind, 0, 0, 0) + payload


def dump(options, xstats=None, kind="sbrm"):
    """A dump of one qdisc on lo: {attribute: payload}, bytes of the xstats."""
    body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex("lo"), 0x80010000,
                       TC_H_ROOT, 2)
    body += attr(TCA_KIND, kind.encode() + b"\0")
    if options is not None:
        body += attr(TCA_OPTIONS, b"".join(attr(k, v) for k, v in options.items()))
    if xstats is not None:
        body += attr(TCA_STATS2, attr(TCA_STATS_BASIC, struct.pack("=QII", 9000, 6, 0)) +
                     attr(TCA_STATS_APP, xstats))
    return message(RTM_NEWQDISC, body) + message(NLMSG_DONE, u32(0))


class Tc:
    """The installed tc with the plugin, and with the stub for the kernel."""

    def __init__(self, directory, kind="sbrm"):
        self.kind = kind
        self.plugin = directory / f"q_{kind}.so"
        self.request, self.reply = directory / "request", directory / "reply"
        stub = directory / "stub.so"
        cc = ["cc", *CFLAGS]
        subprocess.run([*cc, f"-I{UAPI}", "-o", self.plugin, TOOLS / f"q_{kind}.c"], check=True)
        subprocess.run([*cc, "-o", stub, HERE / "q_sbrm_stub.c", "-ldl"], check=True)
        self.env = dict(os.environ, TC_LIB_DIR=str(directory), LD_PRELOAD=str(stub),
                        STUB_REQUEST=str(self.request), STUB_REPLY=str(self.reply))

    def run(self, *words):
        return subprocess.run([TC, *words], env=self.env, text=True, capture_output=True)

    def add(self, line, verb="add"):
        self.request.unlink(missing_ok=True)
        return self.run("qdisc", verb, "dev", "lo", "root", self.kind, *shlex.split(line))

    def options(self, line, verb="add"):
        """{attribute: payload} that the line sends."""
        done = self.add(line, verb)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        request = self.request.read_bytes()
        length, kind = struct.unpack_from("=IH", request)
        assert kind == RTM_NEWQDISC and length == len(request)
        (k, name), (o, nest) = attrs(request[36:])
        assert (k, name) == (TCA_KIND, self.kind.encode() + b"\0")
        assert o == TCA_OPTIONS | NLA_F_NESTED
        inner = attrs(nest)
        assert len(dict(inner)) == len(inner)
        return dict(inner)

    def show(self, reply, *how):
        self.reply.write_bytes(reply)
        done = self.run(*how, "qdisc", "show", "dev", "lo")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def text(self, reply):
        """The words that "qdisc show" prints for the options."""
        out = self.show(reply)
        start = f"qdisc {self.kind} 8001: root refcnt 2 "
        assert out.startswith(start) and out.endswith("\n")
        return out[len(start):].strip()

    def json(self, reply, *how):
        def once(pairs):
            assert len(dict(pairs)) == len(pairs), "a key twice"
            return dict(pairs)

        (qdisc,) = json.loads(self.show(reply, "-j", *how), object_pairs_hook=once)
        return qdisc
