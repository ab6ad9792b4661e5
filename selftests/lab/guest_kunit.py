# SPDX-License-Identifier: GPL-2.0
"""Load the KUnit modules that lie in the working directory."""

import re
from pathlib import Path

import guest_base
from guest_base import note, run

FIXP_CASES = {"fixp_exp_neg_test", "fixp_ln_test", "fixp_pow_test",
              "fixp_roundtrip_test", "fixp_mul_test", "fixp_mul_div_test"}


def ktap(text):
    """{name of a case or suite: ok} of a kernel log, and the other lines."""
    found, rest = {}, []
    for line in text.splitlines():
        line = re.sub(r"^\[ *[\d.]+\] ?", "", line)
        match = re.match(r"\s*(not )?ok \d+ (?:- )?(\S+)", line)
        if match:
            found[match[2]] = not match[1]
        else:
            rest.append(line)
    return found, rest


def check_fixp():
    """tollway_fixp.h holds its bounds over the whole domain."""
    run(["insmod", "kunit.ko", *(["enable=1"] if "enable" in
                                 run("modinfo kunit.ko") else [])])
    assert Path("fixp_kunit.ko").exists(), "the module was not built"
    run("insmod fixp_kunit.ko")
    text = run("dmesg")
    found, rest = ktap(text)
    for line in rest:
        if "worst error" in line:
            note(line.strip())
    bad = [name for name, ok in found.items() if not ok]
    assert not bad, f"{bad}:\n" + "\n".join(
        line for line in rest if line.strip())[:1500]
    assert FIXP_CASES <= set(found), f"missing in the log: {text}"
    run("rmmod fixp_kunit kunit")


if __name__ == "__main__":
    guest_base.main(globals())
