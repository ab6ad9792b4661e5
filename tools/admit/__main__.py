# SPDX-License-Identifier: GPL-2.0
"""The command tollway-admit."""

import argparse
import ipaddress
import json
import os
import re
import secrets
import socket
import stat
import sys
from pathlib import Path as File

from tollwaylib.errors import TollwayError

from . import address, daemon, htb, law, signals, wire

RUN = File(daemon.RUN)
PORT = 5660
_TIMES_NS = {"us": 10**3, "ms": 10**6, "s": 10**9}
_RATES_BPS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
LONGEST_STATE = 1 << 20
NO_TEXT = "the file of arguments is not text"
# IFNAMSIZ of the kernel, without its zero.
LONGEST_DEVICE = 15


def _unit(text, units, what):
    # So many digits that no number is infinite.
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([a-z]+)", text)
    if not found or found[2] not in units:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a {what}: write a number and one of "
            f"{', '.join(units)}")
    return float(found[1]) * units[found[2]]


def time_ns(text):
    """An argparse type: a time of more than 0 and at most an hour, in ns."""
    value = round(_unit(text, _TIMES_NS, "time"))
    if not 0 < value <= 3600 * 10**9:
        raise argparse.ArgumentTypeError(
            f"{text!r}: it must be more than 0 and at most 3600s")
    return value


def rate_Bps(text):
    """An argparse type: a rate of 8 bit/s to 1000 Gbit/s, in bytes per s."""
    value = int(_unit(text, _RATES_BPS, "rate") / 8)
    if not 1 <= value <= 125 * 10**9:
        raise argparse.ArgumentTypeError(
            f"{text!r}: it must be 8bit to 1000gbit")
    return value


def part(lowest):
    """An argparse type: a number up to 1, and more than 0 or lowest."""
    def check(text):
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not lowest <= value <= 1:
            raise argparse.ArgumentTypeError(
                f"{text!r}: it must be a number from {lowest:g} to 1")
        return value
    return check


def count(lowest, highest):
    """An argparse type: an integer in a range."""
    def check(text):
        if not re.fullmatch("[0-9]{1,9}", text) or \
                not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(
                f"{text!r}: it must be an integer from {lowest} to {highest}")
        return int(text)
    return check


def network(text):
    """An argparse type: the addresses of a network, or one."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _words_of_line(line):
    """The words in one line of a file of arguments: one, or none if it is empty."""
    try:
        # Python 3.12 and later read bytes that are no text as surrogates.
        line.encode()
    except UnicodeEncodeError as error:
        raise TollwayError(NO_TEXT) from error
    if "\0" in line:
        raise TollwayError("the file of arguments has a zero byte")
    return [line] if line else []


def parser():
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="tollway-admit", fromfile_prefix_chars="@",
        description="Adaptive admission congestion control between two border "
        "hosts. An argument @FILE is replaced by those in that file, one on each "
        "line.")
    top.convert_arg_line_to_args = _words_of_line
    commands = top.add_subparsers(dest="command", required=True,
                                  metavar="COMMAND")
    run = commands.add_parser("run", help="control the class of HTB that "
                              "shapes the traffic to one peer")
    run.add_argument("--peer", required=True, metavar="HOST",
                     help="the other border")
    run.add_argument("--key", required=True, type=File, metavar="FILE",
                     dest="key_file", help="the key that both borders share")
    run.add_argument("--device", required=True, metavar="DEV",
                     help="network device of the class")
    run.add_argument("--class", required=True, metavar="ID", dest="classid",
                     help="class of HTB on DEV that has the traffic to the "
                     "peer, such as 1:10")
    run.add_argument("--rate", required=True, type=rate_Bps, metavar="RATE",
                     dest="rate_Bps", help="rate of the class when beta is 1, "
                     "such as 100mbit")
    run.add_argument("--packet", type=count(64, 65535), default=1514,
                     metavar="BYTES", help="size of a full packet (default: 1514)")
    run.add_argument("--sample-bytes", type=count(
        wire.SIZE + daemon.HEADER_BYTES, 9000),
                     default=wire.SIZE + daemon.HEADER_BYTES, metavar="BYTES",
                     help="size of a sample with its IPv4 and UDP headers "
                     "(default: %(default)s)")
    run.add_argument("--local", metavar="ADDRESS",
                     help="send samples from this address")
    run.add_argument("--port", type=count(1, 65535), default=PORT, metavar="N",
                     help=f"UDP port of samples, at both ends (default: {PORT})")
    run.add_argument("--sample-class", metavar="ID", dest="sample_classid",
                     help="class for samples; without it, filters of DEV must "
                     "keep them out of --class")
    run.add_argument("--interval", type=time_ns, default=10**7, metavar="TIME",
                     dest="interval_ns", help="time between samples (default: "
                     "10ms)")
    run.add_argument("--data", type=network, metavar="NETWORK",
                     help="use data to these addresses as samples, and send "
                     "others only while there are none; at both borders")
    run.add_argument("--quota", type=time_ns, default=10**8, metavar="TIME",
                     dest="quota_ns", help="time between two changes of beta, and "
                     "the longest gap between packets (default: 100ms)")
    run.add_argument("--low", type=time_ns, metavar="TIME", dest="low_ns",
                     help="beta rises if the delay changes by less (default: "
                     "the time of 2 packets at --rate)")
    run.add_argument("--high", type=time_ns, metavar="TIME", dest="high_ns",
                     help="beta falls if the delay changes by more (default: "
                     "that of --low)")
    run.add_argument("--up", type=part(1e-6), default=0.005, metavar="PART",
                     help="step up of beta (default: 0.005)")
    run.add_argument("--down", type=part(1e-6), default=0.05, metavar="PART",
                     help="step down of beta (default: 0.05)")
    run.add_argument("--change", choices=law.CHANGES, default="excess",
                     help="change of the delay: mean minus the smallest of "
                     "--window (excess, the default), mean minus that of the "
                     "last quota (interval), or mean of pairs of samples")
    run.add_argument("--window", type=time_ns, default=10**10, metavar="TIME",
                     dest="window_ns", help="window of the smallest delay "
                     "(default: 10s)")
    run.add_argument("--gate", choices=("gap", "bucket"), default="gap",
                     help="beta sets the distance of packets (gap, the "
                     "default), or the growth of their number (bucket)")
    run.add_argument("--start", type=part(0), default=0.0, metavar="PART",
                     help="beta at the beginning (default: 0)")
    run.add_argument("--safe", type=part(0.001), default=0.25, metavar="PART",
                     help="fraction of --rate while the peer does not answer "
                     "(default: 0.25)")
    run.add_argument("--lost", type=time_ns, default=10**9, metavar="TIME",
                     dest="lost_ns", help="time without a sample after which "
                     "the peer counts as lost (default: 1s)")
    run.add_argument("--trace", metavar="FILE", help="write a line of JSON for "
                     "each quota interval")
    run.add_argument("--socket", metavar="PATH",
                     help="Unix socket for the command status (default: "
                     f"{RUN}/DEV-ID)")
    told = commands.add_parser("status", help="print the state of a running "
                               "tollway-admit as JSON")
    told.add_argument("--socket", metavar="PATH",
                      help="Unix socket of the daemon (default: the only "
                      f"one in {RUN})")
    made = commands.add_parser("key", help="write a new key for both borders")
    made.add_argument("file", type=File, metavar="FILE",
                      help="a file that does not exist")
    return top


def read_key(path):
    """The key in a file; others may not be able to read it."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(4096).strip()
    except OSError as error:
        raise TollwayError(f"{path}: {error.strerror}") from error
    # Of what systemd hands on, the bits of the group are the mask of an ACL.
    own = os.environ.get("CREDENTIALS_DIRECTORY")
    others = stat.S_IRWXO if own and os.path.dirname(path) == own \
        else stat.S_IRWXG | stat.S_IRWXO
    if mode & others and stat.S_ISREG(mode):
        raise TollwayError(f"{path} can be read by others: chmod 600 {path}")
    if len(key) < wire.SHORTEST_KEY:
        raise TollwayError(f"{path}: a key has at least {wire.SHORTEST_KEY} "
                           "bytes: tollway-admit key FILE makes one")
    return key


def make_key(path):
    """Write a new key to a file that does not exist yet."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise TollwayError(f"{path}: {error.strerror}") from error
    with open(number, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
    return 0


def print_state(where):
    """Print what the daemon behind a Unix socket says."""
    if where is None:
        # One that begins with a dot does not answer yet.
        found = sorted(RUN.glob("[!.]*")) if RUN.is_dir() else []
        if len(found) != 1:
            raise TollwayError(
                "name one of these with --socket: " +
                " ".join(map(str, found)) if found else
                f"no tollway-admit runs here: there is no socket in {RUN}")
        where = str(found[0])
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(5)
            asked.connect(where)
            state = b""
            while piece := asked.recv(65536):
                state += piece
                if len(state) > LONGEST_STATE:
                    break
    except OSError as error:
        raise TollwayError(f"{where}: no tollway-admit answers "
                           f"({error.strerror or error})") from error
    if not _is_state(state):
        raise TollwayError(f"{where} is not the socket of a tollway-admit")
    sys.stdout.write(state.decode())
    return 0


def _is_state(state):
    try:
        return len(state) <= LONGEST_STATE and \
            isinstance(json.loads(state), dict)
    except (ValueError, RecursionError):
        return False


def run(options):
    """Control one path until a signal ends it."""
    options.handle = htb.class_id(options.classid)
    options.sample_class = htb.class_id(options.sample_classid) \
        if options.sample_classid else None
    if options.sample_class == options.handle:
        raise TollwayError("--sample-class: samples must not wait for "
                           "admission, choose another class than --class")
    if options.interval_ns > options.quota_ns:
        raise TollwayError("--interval must not be longer than --quota: each "
                           "quota needs a sample")
    given = options.low_ns
    options.low_ns = given or max(2, 2 * options.packet * 10**9 //
                                  options.rate_Bps)
    options.high_ns = options.high_ns or options.low_ns
    if options.low_ns > options.high_ns:
        raise TollwayError("--low must not be above --high" + (
            "" if given else f"; without --low it is {options.low_ns / 1e6:g} ms"))
    # Two samples may be nearly two intervals apart.
    if options.lost_ns < max(options.quota_ns, 2 * options.interval_ns):
        raise TollwayError("--lost must not be shorter than --quota, nor than "
                           "two of --interval")
    if len(os.fsencode(options.device)) > LONGEST_DEVICE:
        raise TollwayError(f"there is no device {options.device}: its name is "
                           "too long")
    options.key = read_key(options.key_file)
    options.ends = address.ends(options.peer, options.local, options.port)
    signals.interrupt_once()
    with signals.deferred():
        _hold(options, options.socket)
    return 0


def _hold(options, where):
    """Control the path of checked options; signals are held but in serve()."""
    if where is None:
        try:
            RUN.mkdir(mode=0o755, exist_ok=True)
        except OSError as error:
            raise TollwayError(f"{RUN}: {error.strerror}: name another place "
                               "with --socket") from error
        where = str(RUN / f"{options.device}-{options.classid}")
    status = daemon.Status(where)
    try:
        path = daemon.Path(options)
        try:
            with signals.allowed():
                daemon.serve(path, status)
        finally:
            path.close()
    finally:
        status.close()


def main(words=None):
    """Do what the command line says; returns the exit status."""
    try:
        options = parser().parse_args(words)
    except RecursionError as error:
        raise TollwayError("the file of arguments names itself") from error
    except UnicodeDecodeError as error:
        # Earlier ones do not read them.
        raise TollwayError(NO_TEXT) from error
    if options.command == "key":
        return make_key(options.file)
    if options.command == "status":
        return print_state(options.socket)
    return run(options)
