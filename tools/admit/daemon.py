# SPDX-License-Identifier: GPL-2.0
"""tollway-admit run: hold the gate of one path, and tell what it does."""

import collections
import contextlib
import errno
import json
import os
import secrets
import select
import signal
import socket
import stat
import struct
import sys
import time

from tollwaylib.errors import TollwayError

from . import htb, law, passing, signals, wire

RUN = "/run/tollway-admit"
SO_TIMESTAMPNS = 35
CHECK_NS = 1_000_000_000
# A realtime clock that is slewed does not move so much between two samples.
STEP_NS = 10_000_000
# Of IPv4 and UDP: --sample-bytes counts them.
HEADER_BYTES = 28
# Of samples that wait in the socket: more than any path needs in a moment.
BATCH = 256
STATES = {
    "waiting": "no valid sample of the peer has arrived yet",
    "controlled": "beta follows the delay of the samples",
    "lost": "the peer does not answer any more",
    "no-class": "the class was deleted: traffic is not shaped here",
}


def _ms(value):
    return None if value is None else round(value / 1e6, 3)


def log(text):
    """A line for the journal, which gives it the time."""
    # Without a reader, or on a full disk, the path is controlled all the same.
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


class Guardian:
    """A process that puts the class back when this one ends, however it ends.

    It reads what to put back from a pipe, and acts when the pipe is closed:
    at the end of this process, at SIGKILL too.
    """

    def __init__(self, device, handle, packet_bytes):
        reader, self._writer = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(reader)
            return
        status = 1
        try:
            os.close(self._writer)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            status = self._watch(reader, device, handle, packet_bytes)
        finally:
            os._exit(status)

    @staticmethod
    def _watch(reader, device, handle, packet_bytes):
        kept = None
        with open(reader, "rb") as pipe:
            while length := pipe.read(4):
                kept = pipe.read(struct.unpack("=I", length)[0])
        if kept:
            gate = htb.HtbClass(device, handle, packet_bytes)
            gate.original = kept
            with contextlib.suppress(htb.NoClass, OSError):
                # If it is still one of htb.
                gate.read()
                gate.restore()
        return 0

    def keep(self, options):
        """Put these options back; empty ones: leave the class alone."""
        # Somebody may have killed it: this process puts the class back, too.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._writer, struct.pack("=I", len(options)) + options)

    def end(self):
        """Let it act now, and wait until it has."""
        os.close(self._writer)
        os.waitpid(self._pid, 0)


class Path:
    """One path: its sockets, its association, its law and its gate.

    options: of the command line, see __main__.py.
    """

    def __init__(self, options, clock_ns=time.monotonic_ns):
        self.options = options
        self.clock_ns = clock_ns
        self.started_ns = clock_ns()
        packet_ns = options.packet * 10**9 // options.rate_Bps
        self.packet_ns = max(1, packet_ns)
        self.quota_packets = max(1.0, options.quota_ns / self.packet_ns)
        self.association = wire.Association(options.key)
        self.law = law.Law(options.low_ns, options.high_ns, options.up,
                           options.down, options.change, options.window_ns,
                           beta=options.start)
        self.bucket = law.Bucket(self.quota_packets) \
            if options.gate == "bucket" else None
        self.state = "waiting"
        self.counted = dict.fromkeys(
            ("sent", "unsent", "received", "reports", "clock_steps",
             "sessions", "lost", "class_changes", "data_sent",
             "data_reports"), 0)
        self._reports = collections.deque(maxlen=wire.REPORTS)
        self._reported = 0
        # Sequence numbers of data packets whose reports may come still, and when
        # the last of these reports came.
        self._data = collections.deque(maxlen=8 * passing.MOST)
        self._data_heard_ns = None
        self._heard_ns = None
        self._offset_ns = None
        self._seen = {"bytes": 0, "packets": 0, "drops": 0, "backlog_bytes": 0}
        self._sent_bytes = 0
        self.udp = self._socket()
        self.taps = passing.Taps(
            options.device, options.data, options.port, options.interval_ns) if options.data else None
        self._claim_class()
        self.gate = htb.HtbClass(options.device, options.handle,
                                 options.packet)
        try:
            self._seen = self.gate.claim()
            # As it is once more: may this process change it?
            self.gate.restore()
        except htb.NoClass as error:
            raise TollwayError(
                f"{error}: make it, for example by: tc class add dev "
                f"{options.device} parent ... classid {self.gate.name} htb "
                "rate ...") from error
        except PermissionError as error:
            raise TollwayError("only the administrator (CAP_NET_ADMIN) can "
                               "set the rate of a class") from error
        self._sent_bytes = self._seen["bytes"]
        # Last of all: a start that fails overwrites no trace.
        self._trace = self._open_trace()
        self.guardian = Guardian(options.device, options.handle,
                                 options.packet)
        self.guardian.keep(self.gate.original)

    def _open_trace(self):
        if not self.options.trace:
            return None
        try:
            # The other end of a pipe may never come.
            with signals.allowed():
                return open(self.options.trace, "w", encoding="ascii")
        except OSError as error:
            raise TollwayError(
                f"{self.options.trace}: {error.strerror}") from error

    def _socket(self):
        options = self.options
        family, here, there = options.ends
        made = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        made.setblocking(False)
        # One port serves the daemons of several peers.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if options.sample_class:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY,
                            options.sample_class)
        try:
            made.bind(here)
            made.connect(there)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL and options.local:
                raise TollwayError(f"--local {options.local}: "
                                   f"{error.strerror}") from error
            if error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL,
                               errno.EACCES):
                raise TollwayError(f"port {options.port}: "
                                   f"{error.strerror}") from error
            raise
        return made

    def _claim_class(self):
        """One daemon for each class: the name is of the network namespace,
        and the kernel forgets it when this process ends."""
        self._lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = f"\0tollway-admit/{self.options.device}/{self.options.handle:x}"
        try:
            self._lock.bind(name)
        except OSError as error:
            raise TollwayError(
                "another tollway-admit holds this class of "
                f"{self.options.device}") from error

    # --- samples ---------------------------------------------------------

    def turn(self):
        """A sampling interval has passed: send a sample, or leave it to data."""
        if self.taps:
            self._read_data()
            if self._data_will_do():
                return
        self.send()

    def _read_data(self):
        steps = self.counted["clock_steps"]
        self.taps.read(self.clock_ns, self._arrival_ns)
        if self.counted["clock_steps"] != steps:
            # One that seems to have left later than it did would be a delay that
            # is too small, which the law remembers for a window.
            self.taps.pending.clear()

    def _data_will_do(self):
        """Are data packets the samples, and can what is known of them wait for
        the next turn? If that is within half a quota: none is without a sample."""
        waiting, now_ns = self.taps.pending, self.clock_ns()
        return self._data_counts(now_ns) and 0 < len(waiting) < passing.MOST and \
            now_ns - waiting[0][1] + self.options.interval_ns <= \
            self.options.quota_ns // 2

    def _data_counts(self, now_ns):
        """Does the peer report data packets? If not, samples go on: it does not
        look at them, or they take another way, or somebody changes them."""
        return self._data_heard_ns is not None and \
            now_ns - self._data_heard_ns <= self.options.lost_ns

    def send(self):
        """Send one sample; a link that is down loses it, as the network may."""
        packets, length = (), self.options.sample_bytes - HEADER_BYTES
        now_ns = self.clock_ns()
        if self.taps:
            packets = list(self.taps.pending)
            self.taps.pending.clear()
            if packets and self._data_counts(now_ns):
                # The peer reports the delay of the data, not that of this.
                length = wire.SIZE
        made = self.association.make(now_ns, self._reports, length, packets)
        self._data.extend(range(self.association.sequence - len(packets),
                                self.association.sequence))
        try:
            self.udp.send(made)
            self.counted["sent"] += 1
            self.counted["data_sent"] += len(packets)
        except OSError:
            self.counted["unsent"] += 1

    def receive(self):
        """Take all samples that have come."""
        for _ in range(BATCH):
            try:
                datagram, ancillary, _, _ = self.udp.recvmsg(
                    wire.LARGEST, socket.CMSG_SPACE(16))
            except BlockingIOError:
                return
            except OSError:
                # An ICMP error of an earlier sample: the peer is not there.
                continue
            now_ns = self.clock_ns()
            sample = self.association.take(datagram)
            if sample:
                self._take(sample, self._arrival_ns(ancillary, now_ns), now_ns)

    def _arrival_ns(self, ancillary, now_ns):
        """When the kernel received it, by the monotonic clock.

        The kernel stamps by the realtime clock, which may step; a step between
        the stamp and this moment costs one wrong sample.
        """
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("@ll", content[:16])
                # In this order a pause of this process makes a sample late,
                # and never early.
                offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
                offset_ns -= self.clock_ns()
                last, self._offset_ns = self._offset_ns, offset_ns
                if last is not None and abs(offset_ns - last) > STEP_NS:
                    self.counted["clock_steps"] += 1
                    log("the realtime clock was stepped by "
                        f"{(offset_ns - last) / 1e9:+.3f} s")
                    return now_ns
                stamp_ns = seconds * 10**9 + nanoseconds - offset_ns
                # Later than now, or long ago: the clock stepped meanwhile.
                if 0 <= now_ns - stamp_ns < 10**9:
                    return stamp_ns
        return now_ns

    def _take(self, sample, arrival_ns, now_ns):
        if sample.is_new:
            self.counted["sessions"] += 1
            self._reports.clear()
            self._reported = 0
            self._data_heard_ns = None
            if self.counted["sessions"] > 1:
                self.law.restart(self.options.safe)
            log(f"the peer began session {self.counted['sessions']}")
        self.counted["received"] += 1
        self._reports.extend(self._delays(sample, arrival_ns))
        answered = False
        for sequence, delay_ns in sample.reports:
            # Of this process's own samples, each once.
            if self._reported < sequence <= self.association.sequence:
                answered = True
                self._reported = sequence
                self.counted["reports"] += 1
                if sequence in self._data:
                    self.counted["data_reports"] += 1
                    self._data_heard_ns = now_ns
                self.law.sample(delay_ns, now_ns)
        # A peer that hears nothing of ours, in one direction, is lost as well.
        if not answered:
            return
        self._heard_ns = now_ns
        if self.state in ("waiting", "lost"):
            if self.state == "lost":
                # What was believed of the path is old.
                self.law.restart(self.options.safe)
            self._enter("controlled")

    def _delays(self, sample, arrival_ns):
        """What to report of a sample: of the data that it names, and of itself
        where none of that was seen."""
        found = []
        if self.taps and sample.data:
            # What came before it may still be unread.
            self._read_data()
            for sequence, digest, left_ns in sample.data:
                came_ns = self.taps.seen.when_ns(digest)
                if came_ns is not None:
                    found.append((sequence, came_ns - left_ns))
        return found or [(sample.sequence, arrival_ns - sample.stamp_ns)]

    # --- the gate --------------------------------------------------------

    def _enter(self, state):
        if state != self.state:
            log(f"{self.state} -> {state}: {STATES[state]}")
            self.state = state

    def step(self):
        """End a quota interval: move beta, and the gate with it."""
        now_ns = self.clock_ns()
        if self.state == "controlled" and \
                now_ns - self._heard_ns > self.options.lost_ns:
            self.counted["lost"] += 1
            self._enter("lost")
        beta = self.law.step()
        if self.state in ("waiting", "lost"):
            share = self.options.safe
            if self.bucket:
                # What is sent at the safe rate is no measure of what may be.
                self.bucket = law.Bucket(self.quota_packets)
                self._sent_bytes = self._look()["bytes"]
        elif self.bucket:
            seen = self._look()
            sent, self._sent_bytes = seen["bytes"] - self._sent_bytes, \
                seen["bytes"]
            share = self.bucket.share(beta, sent / self.options.packet)
        else:
            share = law.spaced_share(beta, self.quota_packets)
        self._admit(share)
        if self._trace:
            self._write_trace(now_ns)

    def _write_trace(self, now_ns):
        seen = self._look()
        line = json.dumps({
            "t_ns": now_ns, "state": self.state,
            "beta": round(self.law.beta, 6),
            "delay_ms": _ms(self.law.delay_ns),
            "compared_ms": _ms(self.law.changed_ns),
            "rate_bps": 8 * (self.gate.rate_Bps or 0),
            "admitted_packets": seen["packets"],
            "waiting_bytes": seen["backlog_bytes"],
            "dropped_packets": seen["drops"]})
        try:
            print(line, file=self._trace, flush=True)
        except OSError as error:
            # A full disk is no reason to leave the path alone.
            log(f"{self.options.trace}: {error.strerror}: the trace ends here")
            self._trace = None

    def _admit(self, share):
        rate_Bps = max(1, int(share * self.options.rate_Bps))
        if rate_Bps == self.gate.rate_Bps or not self.check():
            return
        try:
            self.gate.set_rate(rate_Bps)
        except htb.NoClass:
            # Deleted since check(): the next one says so.
            return
        except OSError as error:
            log(f"the rate cannot be set: {error.strerror}")

    def _look(self):
        with contextlib.suppress(htb.NoClass, OSError):
            self._seen = self.gate.read()
        return self._seen

    def check(self):
        """Is the class there? If somebody else changed it, take what it is now
        as what it has to be in the end."""
        if self.taps:
            self.taps.follow()
        try:
            seen = self._seen = self.gate.read()
        except htb.NoClass:
            if self.state != "no-class":
                # A class that somebody makes anew is not this one's to put back.
                self.guardian.keep(b"")
                self._enter("no-class")
            return False
        except OSError as error:
            log(f"the class cannot be read: {error.strerror}")
            return False
        if self.state == "no-class" or not (
                self.gate.rate_Bps is None or
                self.gate.is_ours(seen["options"])):
            self.counted["class_changes"] += 1
            log(f"class {self.gate.name} was changed by another program")
            self.gate.original = seen["options"]
            # The end of the quota interval sets it again.
            self.gate.rate_Bps = None
            self.guardian.keep(self.gate.original)
            self._sent_bytes = seen["bytes"]
        if self.state == "no-class":
            self._enter("lost" if self._heard_ns else "waiting")
        return True

    # --- the state -------------------------------------------------------

    def status(self):
        """All that is known, as an object for JSON."""
        seen = self._look()
        now_ns = self.clock_ns()
        return {
            "state": self.state, "meaning": STATES[self.state],
            "peer": self.options.peer, "device": self.options.device,
            "class": self.gate.name, "beta": round(self.law.beta, 6),
            "rate_bps": None if self.gate.rate_Bps is None
            else 8 * self.gate.rate_Bps,
            "full_rate_bps": 8 * self.options.rate_Bps,
            "samples": "data" if self._data_counts(now_ns) else "own",
            "delay_ms": _ms(self.law.delay_ns),
            "compared_ms": _ms(self.law.changed_ns),
            "low_ms": _ms(self.law.low_ns), "high_ms": _ms(self.law.high_ns),
            "change": self.options.change,
            "heard_ms_ago": _ms(None if self._heard_ns is None
                               else now_ns - self._heard_ns),
            "admitted_bytes": seen["bytes"],
            "admitted_packets": seen["packets"],
            "waiting_bytes": seen["backlog_bytes"],
            "dropped_packets": seen["drops"],
            "uptime_s": round((now_ns - self.started_ns) / 1e9, 3),
            **self.counted, "refused": self.association.refused}

    def close(self):
        """Put the class back; nothing of this path is left."""
        with contextlib.suppress(htb.NoClass, OSError):
            if self.state != "no-class":
                self.gate.restore()
            self.guardian.keep(b"")
        self.guardian.end()
        self.gate.close()
        if self.taps:
            self.taps.close()
        self.udp.close()
        self._lock.close()


class Status:
    """The Unix socket that answers each connection with the state."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        try:
            # Only a socket that nobody listens at is in the way.
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
                    other.settimeout(5)
                    other.connect(path)
                    raise TollwayError(f"another tollway-admit answers at "
                                       f"{path}: give this one another "
                                       "--socket")
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISSOCK(os.lstat(path).st_mode):
                    raise TollwayError(f"{path} exists and is not a socket")
                os.unlink(path)
            # Its name appears when it answers: who waits for it may ask at once.
            made = os.path.join(os.path.dirname(path), f".{os.getpid()}")
            self.socket.bind(made)
            try:
                self.socket.listen(4)
                os.rename(made, path)
            except OSError:
                os.unlink(made)
                raise
        except OSError as error:
            # Of a name that is too long Python has no strerror.
            raise TollwayError(f"{path}: {error.strerror or error}") from error

    def answer(self, state):
        """Answer one connection; one that does not read is left alone."""
        with contextlib.suppress(OSError):
            connection, _ = self.socket.accept()
            with connection:
                connection.setblocking(False)
                connection.send((json.dumps(state, indent=1) + "\n").encode())

    def close(self):
        """Leave no socket behind."""
        self.socket.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        # Only if it is the default one, and nobody else's socket is in it.
        if os.path.dirname(self.path) == RUN:
            with contextlib.suppress(OSError):
                os.rmdir(RUN)


def serve(path, status):
    """Run until SIGINT or SIGTERM (KeyboardInterrupt of ends.guarded())."""
    options = path.options
    # Absolute times: a late turn delays no later one.
    now_ns = path.clock_ns()
    begins = {"sample": now_ns, "quota": now_ns, "check": now_ns + CHECK_NS}
    due = dict(begins)
    every = {"sample": options.interval_ns, "quota": options.quota_ns,
             "check": CHECK_NS}
    # Each sample is at a random time of its interval. With a fixed period a border
    # whose samples come just behind those of another one always sees a longer
    # queue than that: its beta stays at 0, and the other one's rises to 1.
    later_ns = {"sample": options.interval_ns}
    action = {"sample": path.turn, "quota": path.step, "check": path.check}
    readable = [path.udp] + ([status.socket] if status else [])
    while True:
        wait_s = max(0, min(due.values()) - path.clock_ns()) / 1e9
        ready, _, _ = select.select(readable, [], [], wait_s)
        if path.udp in ready:
            path.receive()
        if status and status.socket in ready:
            status.answer(path.status())
        now_ns = path.clock_ns()
        for name, when_ns in due.items():
            if now_ns >= when_ns:
                action[name]()
                # After a stop of this process: once, and not for each missed
                # turn.
                missed = (now_ns - begins[name]) // every[name]
                begins[name] += (missed + 1) * every[name]
                due[name] = begins[name] + secrets.randbelow(
                    later_ns.get(name, 1))
