# SPDX-License-Identifier: GPL-2.0
"""Fixtures of the tests that boot the lab.

    /usr/bin/python3 -m pytest selftests
    TOLLWAY_LAB_FLAVOUR=debug /usr/bin/python3 -m pytest selftests/lab

TOLLWAY_LAB_FLAVOUR: plain (default) or debug; none skips what needs the lab,
and says so. A lab that cannot be built is an error, never a skip. TOLLWAY_SEED
is the seed of every boot, 1 by default. TOLLWAY_LAB_OUT keeps what the boots
wrote.
"""

import ast
import json
import os
import re
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from tollwaylib import add_sbin  # noqa: E402

# What is collected after this finds tc, too.
add_sbin()
# What tests share is explained like a test where it fails.
pytest.register_assert_rewrite(*(path.stem for path in HERE.glob("*_bench.py")))

SCRIPTS = "/run/tollway/src/selftests/lab"
KERNEL_TROUBLE = re.compile(
    r"WARNING|\bBUG\b|KASAN|UBSAN|INFO: |Oops|kmemleak: \d+ new|"
    r"suspicious RCU|refcount_t|unreferenced object|lockdep|"
    r"unregister_netdevice: waiting")
# Lines of a healthy kernel that would match.
HARMLESS = re.compile(
    r"Lock dependency validator|Kernel memory leak detector initialized|"
    r"KernelAddressSanitizer initialized|lockdep selftests|"
    r"\.\.\. (MAX_LOCK|CLASSHASH)|MAX_LOCKDEP|per task-struct|"
    r"\[<[0-9a-f]+>\]")
# User mode 6.1 walks the address space at fork without its lock: PROVE_RCU
# says so, of lib/maple_tree.c, and it is no business of ours.
KNOWN_TRACE = "force_flush_all"
# Minutes, and about 13 times as long on the debug kernel: with the short forms
# as long as a boot may take.
MEASUREMENT = [pytest.mark.full, pytest.mark.skipif(
    os.environ.get("TOLLWAY_LAB_FLAVOUR") == "debug",
    reason="measures what the short forms run on the debug kernel")]
LOG_CHECKS = ["kernel_log_is_clean", "modules_unload", "no_memory_leaks"]


def pytest_configure(config):
    """What the marks of these tests mean; a core for each worker of xdist."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        # A lab takes the first core that it may have.
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker[2:]) % len(cores)]})
    config.addinivalue_line("markers", "lab: boots the lab; make check-full "
                            "repeats it with the debug kernel")


def full_checks_of(script):
    """Names of the checks in a guest script, in the order of the boot: those that
    it has from elsewhere stand in its tuple FIRST."""
    found = []
    for node in ast.parse((HERE / "lab" / script).read_text()).body:
        if isinstance(node, ast.Assign) and \
                ast.unparse(node.targets[0]) == "FIRST":
            found += [name.id for name in node.value.elts]
        elif isinstance(node, ast.FunctionDef):
            found.append(node.name)
    return [name[len("check_"):] for name in found if name.startswith("check_")]


def checks_of(script):
    """The same, and those after each boot."""
    return full_checks_of(script) + LOG_CHECKS


def with_measurements(script, names=()):
    """The same as parameters, those that only measure marked so, and some of the others
    only for the extended forms."""
    return [pytest.param(name, marks=MEASUREMENT if name.startswith("many_") else
                         pytest.mark.full if name in names else ())
            for name in checks_of(script)]


def extended(script, names):
    """The same as parameters, some of them only for the extended forms."""
    return [pytest.param(name, marks=pytest.mark.full if name in names else ())
            for name in checks_of(script)]


@pytest.fixture(scope="session")
def lab():
    """The lab of the flavour asked for, built if need be."""
    flavour = os.environ.get("TOLLWAY_LAB_FLAVOUR", "plain")
    if flavour == "none":
        pytest.skip("TOLLWAY_LAB_FLAVOUR=none: nothing ran in the lab")
    from tollwaylib.places.machine import Lab
    from tollwaylib.progress import Progress
    progress = Progress()
    try:
        return Lab(flavour, progress)
    finally:
        progress.done()


class Guest:
    """One boot of the lab that ran the checks of one script."""

    def __init__(self, lab, script, names, out_dir, full=False, limits=None,
                 given=None, shipped=False):
        """limits: {"wall_s" or "virtual_s": seconds}, where those of all others
        will not do. given: what the script needs of the host. shipped: with the
        modules' defaults where the papers' law and source are used else."""
        self.out_dir = out_dir
        self.names = names
        self.failure = None
        self.lines = []
        (out_dir / "checks.json").write_text(json.dumps(
            {"checks": [name for name in names if name not in LOG_CHECKS],
             "flavour": lab.kernel.flavour, "full": full, "given": given,
             "shipped": shipped,
             "seed": int(os.environ.get("TOLLWAY_SEED", "1"))}))
        started = time.monotonic()
        self.seconds = {}

        def on_line(line):
            self.lines.append(line)
            found = re.fullmatch(r"done: (\w+)", line.strip())
            if found:
                self.seconds[found[1]] = (time.monotonic() - started -
                                          sum(self.seconds.values()))

        # The real time is in case it hangs: it is ten times as much where others
        # use the machine as well.
        try:
            status = lab.run(["/usr/bin/python3", f"{SCRIPTS}/{script}"],
                             out_dir, on_line=on_line,
                             seed=int(os.environ.get("TOLLWAY_SEED", "1")),
                             **{"virtual_s": 10**6,
                                "wall_s": 3600 if lab.kernel.flavour == "plain"
                                else 7200, "memory_mb": memory_mb(lab),
                                **(limits or {})})
            if status:
                self.failure = f"the guest's script ended with {status}"
        except Exception as error:  # reported by every test of this boot
            self.failure = str(error)
        path = out_dir / "results.json"
        self.results = json.loads(path.read_text()) if path.exists() else {}
        (out_dir / "seconds.json").write_text(json.dumps(self.seconds, indent=1))

    def verify(self, name):
        """Fail unless the check held."""
        if name not in self.results:
            pytest.fail(f"{name} has no result: {self.failure or 'not run'}\n" +
                        "\n".join(self.lines[-40:]), pytrace=False)
        result = self.results[name]
        if result["skipped"]:
            pytest.skip(result["skipped"])
        for line in result["notes"]:
            print(line)
        if not result["ok"]:
            pytest.fail(result["error"], pytrace=False)

    def verify_log(self):
        """Fail if the kernel complained, or did not survive."""
        if self.failure:
            pytest.fail(self.failure + "\n" + "\n".join(self.lines[-60:]),
                        pytrace=False)
        trouble = trouble_in((self.out_dir / "dmesg").read_text())
        if trouble:
            pytest.fail("the kernel said:\n" + trouble, pytrace=False)


def trouble_in(log):
    """Complaints in a kernel log, each with the lines after it."""
    lines = log.splitlines()
    found, known_until = [], -1
    for index, line in enumerate(lines):
        if not KERNEL_TROUBLE.search(line) or HARMLESS.search(line):
            continue
        report = lines[index:index + 60]
        if KNOWN_TRACE in "\n".join(report) and "RCU" in line:
            known_until = index + len(report)
        if index >= known_until:
            found.append("\n".join(report[:40]))
    return "\n".join(found[:3])


def memory_mb(lab):
    """MiB for a guest: KASAN needs room beside each object, and keeps those that
    were freed for a while."""
    from tollwaylib.places.limits import MEMORY_MB
    return MEMORY_MB if lab.kernel.flavour == "plain" else 2 * MEMORY_MB


@pytest.fixture(scope="module")
def guest(lab, request, tmp_path_factory):
    """Boot once and run all checks of the module's GUEST_SCRIPT.

    Only those that are selected on pytest's command line are run.
    """
    return boot(lab, request.module, selected(request), tmp_path_factory)


@pytest.fixture(scope="module")
def shipped_guest(lab, request, tmp_path_factory):
    """The same with law, source and w as the modules come."""
    return boot(lab, request.module, selected(request), tmp_path_factory,
                shipped=True)


def selected(request):
    """The checks of a module that want a fixture, and are not skipped."""
    return [item.callspec.params["check"] for item in request.session.items
            if item.module is request.module and
            request.fixturename in item.fixturenames and
            "check" in getattr(getattr(item, "callspec", None), "params", {})
            and not any(mark.args[0] for mark in item.iter_markers("skipif"))]


@pytest.fixture
def full_guest(lab, request, tmp_path_factory):
    """Boot for the long form of one check, which has a kernel of its own."""
    return boot(lab, request.module, [request.param], tmp_path_factory,
                full=True)


def boot(lab, module, names, tmp_path_factory, full=False, shipped=False):
    """Run checks of a module's GUEST_SCRIPT in a kernel of their own.

    The module may have GUEST_LIMITS, {"virtual_s": seconds}, and FULL_LIMITS
    for the long form; and given(), what the script finds in
    guest_base.SETTINGS["given"], since in the lab there is nothing of the
    host's part of tollwaylib.
    """
    script = module.GUEST_SCRIPT
    name = Path(script).stem + (f"-full-{names[0]}" if full else "") + (
        "-shipped" if shipped else "")
    kept = os.environ.get("TOLLWAY_LAB_OUT")
    if kept:
        out_dir = Path(kept).absolute() / name
        out_dir.mkdir(parents=True, exist_ok=True)
        (out_dir / "results.json").unlink(missing_ok=True)
    else:
        out_dir = tmp_path_factory.mktemp(name)
    for source in getattr(module, "GUEST_FILES", lambda lab: ())(lab):
        (out_dir / Path(source).name).write_bytes(Path(source).read_bytes())
    limits = getattr(module, "FULL_LIMITS" if full else "GUEST_LIMITS", {})
    given = getattr(module, "given", lambda: None)()
    return Guest(lab, script, names, out_dir, full, limits, given, shipped)


def run_check(guest, check):
    """The body of every parametrised test."""
    if check == "kernel_log_is_clean":
        guest.verify_log()
    else:
        guest.verify(check)


def run_full(guest):
    """The body of a long form: the check and what is asked after each boot."""
    run_check(guest, guest.names[0])
    for check in LOG_CHECKS:
        try:
            run_check(guest, check)
        except pytest.skip.Exception as skipped:
            print(f"{check}: {skipped}")
