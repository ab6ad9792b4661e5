# SPDX-License-Identifier: GPL-2.0
"""Programs that an experiment declares in addition to its flows. They run in nodes of the
network during a case, and are ended after it."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from ..errors import TollwayError

# Programs of tools/ that are not built are in the checkout, or where it was
# installed.
TOOLS = Path(__file__).resolve().parents[3] / "tools"
# From the start of the programs to the first look at them, s.
READY_S = 1.0
# They get this long to end, s.
GRACE_S = 5.0
# What SIGTERM makes of a program in good order: nothing to tell, the exit status
# of a program that was interrupted, or none of its own.
ENDED = (0, 130, 128 + signal.SIGTERM, -signal.SIGTERM)
# Lines of a log that the raw result keeps.
LOG_LINES = 100


def _refuse(word):
    raise ValueError(f"{word} is no number in JSON")


def _place(bin_dir, program):
    """The path of a program: one of tools/, or of the system; None if there is none."""
    for folder in (bin_dir, TOOLS):
        if (folder / program).is_file():
            return str(folder / program)
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def _slug(text):
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


class Daemon:
    """One program of a case: started at once, in a directory of its own."""

    def __init__(self, run, case_name, declared):
        self.name, self.node = declared["name"], declared["node"]
        self.keep = declared["keep"]
        self.folder = run.out_dir / "programs" / _slug(case_name) / self.name
        self.folder.mkdir(parents=True)
        self.files = declared["files"]
        for name, content in self.files.items():
            path = self.folder / name
            path.touch(mode=0o600)
            path.write_text(content, encoding="utf-8")
        program, *words = [self._word(run, word)
                           for word in declared["words"]]
        self.words = [program, *words]
        argv = [_place(run.bin_dir, program), *words]
        node = run.topo.called.get(self.node, self.node)
        if node not in run.net:
            raise TollwayError(f"{case_name}: there is no node {self.node} for "
                               f"{self.name}")
        if argv[0] is None:
            raise TollwayError(f"{case_name}: there is no program {program} for "
                               f"node {self.node}")
        with open(self.folder / "log", "w", encoding="utf-8") as log:
            self.process = run.net[node].popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=str(self.folder))
        run.processes.append(self.process)

    @staticmethod
    def _word(run, word):
        return re.sub(r"\{address:([^}]+)\}",
                      lambda found: _address(run.net, run.topo.called.get(
                          found[1], found[1])), word)

    def log(self):
        """The last lines of its output."""
        text = (self.folder / "log").read_text(encoding="utf-8",
                                               errors="replace")
        return text.splitlines()[-LOG_LINES:]

    def check(self):
        """Raise TollwayError if it has ended by itself."""
        status = self.process.poll()
        if status is not None:
            raise self._failed(f"ended by itself with status {status}")

    def _failed(self, what):
        said = (self.log() or ["it said nothing"])[-1]
        return TollwayError(f"{self.name} in node {self.node} {what}: {said}")

    def stop(self):
        """Send SIGTERM and wait for its end."""
        self.check()
        self.process.send_signal(signal.SIGTERM)

    def stopped(self, epoch_ns):
        """Its output after its end, for the raw result."""
        try:
            status = self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            raise self._failed("did not end in time") from None
        if status not in ENDED:
            raise self._failed(f"ended with status {status}")
        output = {name: self._columns(name, epoch_ns) for name in self.keep}
        for name in self.files:
            (self.folder / name).unlink(missing_ok=True)
        return {"node": self.node, "command": self.words, "status": status,
                "log": self.log(), "output": output}

    def _columns(self, name, epoch_ns):
        try:
            lines = (self.folder / name).read_text(
                encoding="utf-8").splitlines()
            records = [json.loads(line, parse_constant=_refuse) for line in lines]
            if any(not isinstance(record, dict) or record.keys() != records[0].keys()
                   or not isinstance(record.get("t_ns", 0), (int, float))
                   for record in records):
                raise ValueError("it needs a JSON object on each line, all with "
                                 "the same keys, and numbers as t_ns")
        except (OSError, ValueError) as error:
            raise TollwayError(f"{self.name}: {name} cannot be read: "
                               f"{error}") from error
        columns = {key: [record[key] for record in records]
                   for key in (records[0] if records else ())}
        if "t_ns" in columns:
            columns["t_s"] = [round((t_ns - epoch_ns) / 1e9, 6)
                              for t_ns in columns.pop("t_ns")]
        return columns


def _address(net, name):
    """The address of an interface, or of a host's only one."""
    for node in net.values():
        if name == node.name and len(node.intfList()) == 1:
            return node.intfList()[0].tollway_ip
        if name in node.nameToIntf:
            return node.nameToIntf[name].tollway_ip
    raise TollwayError(f"no interface is called {name}")


class Daemons:
    """All programs of a case."""

    def __init__(self, run, case):
        self.all = [Daemon(run, case["name"], declared)
                    for declared in case["programs"]]

    def check(self):
        """Raise TollwayError if one has ended by itself."""
        for daemon in self.all:
            daemon.check()

    def stop(self, epoch_ns):
        """End all programs; {name: output for the raw result}."""
        for daemon in self.all:
            daemon.stop()
        return {daemon.name: daemon.stopped(epoch_ns) for daemon in self.all}
