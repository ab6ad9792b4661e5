# SPDX-License-Identifier: GPL-2.0
"""The samples on the wire, and who is believed.

One UDP datagram of 208 bytes and 16 for each data packet, or longer with zeros after
them. All numbers are in network byte order:

    offset  bytes
         0      4  "TAS1"
         4      2  number of data packets, n, 0 to 8
         6      2  number of reports, 0 to 8
         8      8  session: random, one for each start of the sender
        16      8  nonce: what a peer has to echo once, before it is believed
        24      8  for: the session of the peer that the nonce was made for, or 0
        32      8  echo: the last nonce that this session made for the sender, or 0
        40      8  sequence number, from n + 1
        48      8  stamp: monotonic clock of the sender, ns
        56   8x16  reports: sequence number of a sample of the peer and its
                   virtual delay in ns (signed); unused ones are 0
       184   nx16  data packets that are samples (passing.py), which have the sequence
                   numbers before that of this sample: digest, and when it left in
                   ns of the sender's monotonic clock
   184+nx16    24  HMAC-SHA256 of all that is before it, the first 24 bytes

Each report travels in up to eight samples, so that one lost sample loses no report.

A sample is believed if all of this holds:

- its HMAC is right, by the key that both ends share;
- its session is not that of the receiver (a sample that was reflected);
- it is of the session that was accepted, and its sequence number is larger than
  any before (a sample that was recorded before, or overtaken);
- or it is of another session, and echoes the nonce for that session. The secret
  of the nonces changes whenever a session is accepted. A recorded sample of an
  earlier session echoes an earlier nonce, so that replay never moves a receiver to
  another session.

A session that is not accepted may be the start of the peer or a replay; only the
answer tells. So a border answers all such sessions in turn, with the accepted one
among them, and keeps sequence number and nonce of each apart. A replay delays the
answer to a true start by one sample for each session that is replayed, and does
nothing else, up to 31 sessions. More of them, at many times the rate of samples, make
it forget sessions that are true, and delay a start for longer. Each new sequence number
is worth a few answers.
"""

import hashlib
import hmac
import os
import secrets
import struct

MAGIC = b"TAS1"
REPORTS = 8
_HEAD = struct.Struct("!4sHHQQQQQQ")
_REPORT = struct.Struct("!Qq")
_DATA = struct.Struct("!QQ")
_BODY_BYTES = _HEAD.size + REPORTS * _REPORT.size
MAC_BYTES = 24
SIZE = _BODY_BYTES + MAC_BYTES
LARGEST = SIZE + REPORTS * _DATA.size
SHORTEST_KEY = 16
# Sessions that are answered at a time, with the accepted one. Each costs a start of
# the peer one sample per answer: 0.3 s with 32 of them and a sample each 10 ms.
CLAIMS = 32
# Answers to one sample of a session that is not accepted. Several, as they may be lost.
TURNS = 8
_MOST = (1 << 63) - 1


def draw():
    """A random number of 63 bits that is not 0."""
    while True:
        number = int.from_bytes(os.urandom(8), "big") & _MOST
        if number:
            return number


class Sample:
    """One believed sample of the peer."""

    def __init__(self, session, sequence, stamp_ns, reports, data, is_new):
        self.session = session
        self.sequence = sequence
        self.stamp_ns = stamp_ns
        self.reports = reports
        # Data packets: (sequence number, digest, when it left in ns).
        self.data = data
        self.is_new = is_new


class _Claim:
    """A session that says to be the peer."""

    def __init__(self):
        self.highest = 0
        # The last nonce that it made for the session of this end.
        self.echo = 0
        self.turns = 0


class Association:
    """Both directions of one path: makes samples, and takes those of the peer.

    refused: why samples were not believed, and how many.
    """

    def __init__(self, key):
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"a key has at least {SHORTEST_KEY} bytes")
        self._key = key
        self.session = draw()
        self.sequence = 0
        self.peer = None
        self.refused = dict.fromkeys(("size", "key", "own", "replay",
                                      "session"), 0)
        # {session: _Claim}, in the order in which they are answered.
        self._claims = {}
        self._secret = os.urandom(32)

    @property
    def highest(self):
        """The last sequence number of the accepted session."""
        return self._claims[self.peer].highest if self.peer else 0

    def _nonce(self, session):
        if not session:
            return 0
        made = hmac.new(self._secret, session.to_bytes(8, "big"),
                        hashlib.sha256).digest()
        # 0 means that there is none.
        return int.from_bytes(made[:8], "big") & _MOST or 1

    def _mac(self, body):
        return hmac.new(self._key, body, hashlib.sha256).digest()[:MAC_BYTES]

    def make(self, stamp_ns, reports=(), length=SIZE, data=()):
        """The next sample; reports: up to eight (sequence, delay_ns); data: up to
        eight data packets (digest, when it left in ns)."""
        data = list(data)[-REPORTS:]
        self.sequence += 1 + len(data)
        reports = list(reports)[-REPORTS:]
        answered, echo = self._next_claim()
        body = _HEAD.pack(MAGIC, len(data), len(reports), self.session,
                          self._nonce(answered), answered, echo,
                          self.sequence, stamp_ns)
        for index in range(REPORTS):
            body += _REPORT.pack(*(reports[index] if index < len(reports)
                                   else (0, 0)))
        body += b"".join(_DATA.pack(*one) for one in data)
        return (body + self._mac(body)).ljust(length, b"\0")

    def _next_claim(self):
        """(session, echo) to answer now."""
        if not self._claims:
            return 0, 0
        session = next(iter(self._claims))
        claim = self._claims.pop(session)
        claim.turns -= 1
        if session == self.peer or claim.turns > 0:
            self._claims[session] = claim
        return session, claim.echo

    def _claim_of(self, session):
        """The claim of a session; a new one may take the place of any but the
        accepted one."""
        if session not in self._claims:
            if len(self._claims) >= CLAIMS:
                # At random: nobody can choose which one is forgotten. Those that
                # have answered this start come last: few of the recorded have.
                others = [one for one in self._claims if one != self.peer]
                del self._claims[secrets.choice(
                    [one for one in others if not self._claims[one].echo]
                    or others)]
            self._claims[session] = _Claim()
        return self._claims[session]

    def take(self, data):
        """The Sample in a datagram, or None if it is not believed."""
        if len(data) < SIZE or data[:4] != MAGIC:
            return self._refuse("size")
        _, carried, count, session, nonce, made_for, echo, sequence, stamp_ns \
            = _HEAD.unpack_from(data)
        length = _BODY_BYTES + carried * _DATA.size
        if carried > REPORTS or len(data) < length + MAC_BYTES:
            return self._refuse("size")
        body, mac = data[:length], data[length:length + MAC_BYTES]
        if not hmac.compare_digest(mac, self._mac(body)):
            return self._refuse("key")
        # With the right key these come only from a program that is in error.
        packets = [(sequence - carried + index, *_DATA.unpack_from(
            body, _BODY_BYTES + index * _DATA.size)) for index in range(carried)]
        if count > REPORTS or not session or sequence <= carried or \
                max(session, nonce, echo, sequence, stamp_ns,
                    *(left_ns for _, _, left_ns in packets)) > _MOST:
            return self._refuse("size")
        if session == self.session:
            return self._refuse("own")
        claim = self._claim_of(session)
        if sequence <= claim.highest:
            return self._refuse("replay")
        claim.highest, claim.turns = sequence, TURNS
        if made_for == self.session:
            claim.echo = nonce
        is_new = session != self.peer
        if is_new:
            if not echo or echo != self._nonce(session):
                return self._refuse("session")
            self.peer = session
            self._claims = {session: claim}
            self._secret = os.urandom(32)
        reports = [_REPORT.unpack_from(body, _HEAD.size + index * _REPORT.size)
                   for index in range(count)]
        return Sample(session, sequence, stamp_ns, reports, packets, is_new)

    def _refuse(self, why):
        self.refused[why] += 1
        return None
