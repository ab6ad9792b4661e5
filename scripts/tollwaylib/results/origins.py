# SPDX-License-Identifier: GPL-2.0
"""Where results come from. Means are computed only over results of one origin."""

import shlex

_TRAFFIC = "--traffic"


def origin_of(result):
    """{what: value} of everything on which the numbers of a result depend, except for its
    experiment, its parameters and its seed.

    result: a result, an aggregate or a raw result. The entries are ordered by what tells a
    reader most. Results of earlier versions do not name their place: None.
    """
    made = result["provenance"]
    return {"place": made.get("place"),
            "flavour": made.get("flavour", "plain"),
            "traffic": _traffic(made["command"]),
            "separate cases": bool(made.get("separate")),
            "kernel": made["kernel"],
            "kernel config": made["config_sha256"][:12]}


def _traffic(command):
    """The program that sent. Only the command names it."""
    try:
        words = shlex.split(command)
    except ValueError:
        # The command is for people: tests and other programs write any text.
        return "tollway"
    found = "tollway"
    for word, following in zip(words, [*words[1:], found]):
        name, given, value = word.partition("=")
        # argparse takes a part of a name. "--tra" may also be --trace.
        if name.startswith("--traf") and _TRAFFIC.startswith(name):
            found = value if given else following
    return found


def key_of(result):
    """A hashable value that is the same for all results of one origin."""
    return tuple(origin_of(result).values())


def telling(origins):
    """The names of entries that distinguish the origins: as few as are needed, in the order of
    origin_of()."""
    chosen = []
    for name in origins[0]:
        if _count(origins, [*chosen, name]) > _count(origins, chosen):
            chosen.append(name)
    return chosen


def _count(origins, names):
    return len({tuple(origin[name] for name in names) for origin in origins})
