# SPDX-License-Identifier: GPL-2.0
"""Every packet of a link in the digest of a run: tcpdump writes what it captures
into a pipe, and sha256sum reads that. With a file, tee is between them.

Each is a process of its own, without a shell: only tcpdump is told to end, and the
others end when they have read all that it wrote.
"""

import re
import signal
import subprocess

from ..errors import TollwayError

# Programs get this long to write and hash what is left, s.
END_S = 60.0
# What sha256sum prints of its standard input.
HASH = re.compile(rb"[0-9a-f]{64} [ *]-\n")


def dropped(said):
    """Packets that the kernel dropped before tcpdump read them, from what tcpdump
    said at its end (bytes); None if it did not say so."""
    found = re.search(rb"(\d+) packets? dropped by kernel", said)
    return int(found[1]) if found else None


class Tracer:
    """The capture of a link, and its hash.

    link: name of the link; capture: Popen of tcpdump, whose standard output and
    standard error are pipes; out_dir: Path of the directory for the hash,
    trace-LINK.sha256, and, if `keep` is true, for the packets, LINK.pcap.
    """

    def __init__(self, link, capture, out_dir, keep):
        self.link, self.capture = link, capture
        self.path = out_dir / f"trace-{link}.sha256"
        self.readers = []
        if keep:
            self._read(["tee", str(out_dir / f"{link}.pcap")], subprocess.PIPE)
        with self.path.open("wb") as output:
            self._read(["sha256sum"], output)

    def _read(self, argv, output):
        """Start a program that reads what the last one writes."""
        last = (self.readers or [self.capture])[-1]
        self.readers.append(subprocess.Popen(argv, stdin=last.stdout,
                                             stdout=output))
        # If the reader ends, the writer is to see that.
        last.stdout.close()

    def wait_until_ready(self):
        """Wait until the capture has begun. Raises TollwayError if tcpdump ends
        before."""
        said = []
        for line in self.capture.stderr:
            if b"listening on " in line:
                return
            said.append(line)
        self.capture.wait()
        raise self._failed(b"".join(said))

    def stop(self):
        """End the capture; returns the line of sha256sum. Raises TollwayError if
        packets are missing in it."""
        self.capture.send_signal(signal.SIGTERM)
        try:
            _, said = self.capture.communicate(timeout=END_S)
            for reader in self.readers:
                reader.wait(END_S)
        except subprocess.TimeoutExpired:
            raise self._failed(b"it did not end in time") from None
        if dropped(said) != 0 or any(
                process.returncode for process in [self.capture, *self.readers]):
            raise self._failed(said)
        line = self.path.read_bytes()
        if not HASH.fullmatch(line):
            raise self._failed(line)
        return line.decode()

    def _failed(self, said):
        words = " ".join(said.decode(errors="replace").split())
        return TollwayError(f"--trace: tcpdump did not record all packets of "
                            f"{self.link}: {words or 'it said nothing'}")
