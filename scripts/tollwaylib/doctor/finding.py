# SPDX-License-Identifier: GPL-2.0
"""What was found, in text and in JSON."""

import json
from dataclasses import dataclass

SCHEMA = 1


@dataclass
class Finding:
    """One thing that was looked at.

    about: a stable name. verdict: "ok", "wrong", "unknown" (it could not be
    told) or "note". text: what was found. remedy: what to do, or nothing.
    """

    about: str
    verdict: str
    text: str
    remedy: str = ""


def merged(found):
    """[(finding, how many more like it)]: many connections, one line."""
    groups = {}
    for one in found:
        key = (one.about, one.verdict, one.remedy) if " > " in one.text \
            else id(one)
        groups.setdefault(key, []).append(one)
    return [(group[0], len(group) - 1) for group in groups.values()]


def text_of(found):
    """The findings for a person."""
    lines = []
    for one, more in merged(found):
        lines.append(f"{one.verdict:8}{one.text}" +
                     (f" (and {more} more)" if more else ""))
        if one.remedy and one.verdict != "ok":
            lines.append(f"        -> {one.remedy}")
    return "\n".join(lines)


def json_of(seen, found):
    """The findings, and what they follow from, for a program."""
    return json.dumps(dict(seen, findings=[vars(one) for one in found]),
                      indent=1)


def all_is_ok(found):
    """Is all well, and known to be?"""
    return not any(one.verdict in ("wrong", "unknown", "missing")
                   for one in found)
