# SPDX-License-Identifier: GPL-2.0
"""The modules accept the least and the greatest value of each parameter of --set."""

import pytest
from conftest import checks_of, run_check

from tollwaylib.components import COMPONENTS, aqm_words
from tollwaylib.experiments.parameters import COMMON, SPECIAL

GUEST_SCRIPT = "guest_accepted.py"

pytestmark = pytest.mark.lab
# Not red and others of the kernel's own.
OURS = [component for component in COMPONENTS if component.controls]
# Large values of others: a threshold of the law alpha is below its goal, the goal and a
# target are below the limit, and what is reserved is no more than the buffer.
ROOM = {"limit": 1000000, "goal": 999999, "buffer": 1000000}
# Small ones, and the queues that refuse a value with a reason of their own: a goal is
# below the limit, and gamma auto follows from a target.
SMALL = {"goal": {"high": 1}, "limit": {"target": 0}}
NOT_FOR = {("limit", 1): ("mark alpha",), ("gamma", 0.0): ("mark rem-pc1", "mark rem-pc3")}

# The harness itself uses these.
NOT_WRITTEN = set()


def ends_of(component):
    """[(parameter, value)]: both ends of a range, or each word."""
    for name, (_, least, most, _) in {**component.parameters,
                                      **component.special}.items():
        yield from ((name, value) for value in
                    (component.choices[name] if least is None else (least, most)))


def given():
    """{"parameter=value": {"sysctls": {name: value}, "queues": [words of tc]}} of all
    that the value changes."""
    room = {name: of[0] for name, of in {**COMMON, **SPECIAL}.items()} | ROOM
    found = {}
    for component in OURS:
        for name, value in ends_of(component):
            usual = room | (SMALL.get(name, {}) if value in (1, 2) else {})
            values = {**usual, name: value}
            before, sysctls = (component.sysctls(one, [one["wtp"]] * 4)
                               for one in (usual, values))
            words = [[aqm_words(queue, one) for queue, law in component.queues.items()
                      if not any(part in law for part in NOT_FOR.get((name, value), ()))]
                     for one in (usual, values)]
            found[f"{name}={value}"] = {
                "sysctls": {key: str(word) for key, word in sysctls.items()
                            if word != before.get(key)},
                "queues": [new for old, new in zip(*words) if new != old]}
    return found


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_accepted(guest, check):
    run_check(guest, check)


def test_parameters_are_written():
    """Each parameter of a component has an effect on a sysctl or on words of tc, so the
    check above has something to write."""
    spoken = {name.partition("=")[0] for name, one in given().items()
              if one["sysctls"] or one["queues"]}
    assert {name.partition("=")[0] for name in given()} - spoken == NOT_WRITTEN
