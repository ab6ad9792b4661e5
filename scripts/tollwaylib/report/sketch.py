# SPDX-License-Identifier: GPL-2.0
"""A sketch of the network of a run, from the links and paths in its raw result: routers, links
with their rate and delay, queues, and paths.

Raw results of older programs do not name the routers. They follow from the paths: if one
link of a path follows another, the end of the first is the beginning of the second, and all
paths of a host begin or end at the same router.
"""

from .about import counted, listed, numbers

# All in units of the drawing, which is _WIDTH wide.
_WIDTH, _MARGIN, _LANE, _ROW = 860, 70, 40, 104
_MOST_LANES = 16


class _Sets:
    """Sets of equal things, joined two at a time."""

    def __init__(self):
        self._above = {}

    def of(self, thing):
        while self._above.get(thing, thing) != thing:
            thing = self._above[thing]
        return thing

    def join(self, one, other):
        self._above[self.of(one)] = self.of(other)


def sketch(raw, look, queue):
    """The data of the template: {width, height, links, nodes, lanes, text}.

    queue: text about the queue under test, which all links have that do not have one of
    their own. links and lanes have x1, x2 and y; text describes the network in a sentence.
    None if the result has no paths.
    """
    if not raw.get("paths"):
        return None
    ends = _routers(raw)
    levels = _levels(ends)
    gap = (_WIDTH - 2 * _MARGIN) / max(1, *levels.values())
    groups = _groups(raw)
    nodes, links, lanes, y, part = [], [], [], 58, 0
    for names in _parts(ends):
        back = 0
        for name in names:
            first, last = (levels[end] for end in ends[name])
            back += last < first
            links.append(_link(raw, name, queue, _MARGIN + gap * first,
                               _MARGIN + gap * last,
                               y + _ROW * (last < first)))
        routers = {end for name in names for end in ends[name]}
        for router in sorted(routers, key=levels.get):
            part += 1
            nodes.append({"x": _MARGIN + gap * levels[router], "y": y,
                          "height": _ROW if back else 0,
                          "name": router if isinstance(router, str)
                          else f"router {part}"})
        y += 46 + _ROW * bool(back)
        for group in groups:
            if group["links"][0] in names and len(lanes) < _MOST_LANES:
                lanes.append(_lane(raw, group, ends, levels, gap, y, look))
                y += _LANE
        y += 46
    return {"width": _WIDTH, "height": y - 66, "nodes": nodes, "links": links,
            "lanes": lanes, "left_out": len(groups) - len(lanes),
            "text": _text(raw, groups)}


def _routers(raw):
    """{link: (its first router, its last)}, routers as any hashable."""
    used = list(dict.fromkeys(link for path in raw["paths"].values()
                              for link in path["links"]))
    if all("routers" in raw["links"][link] for link in used):
        return {link: tuple(raw["links"][link]["routers"]) for link in used}
    sets = _Sets()
    for path in raw["paths"].values():
        for before, after in zip(path["links"], path["links"][1:]):
            sets.join((before, "end"), (after, "begin"))
        if path.get("source") is not None:
            sets.join(("host", path["source"]), (path["links"][0], "begin"))
            sets.join(("host", path["sink"]), (path["links"][-1], "end"))
    return {link: (sets.of((link, "begin")), sets.of((link, "end")))
            for link in used}


def _levels(ends):
    """{router: number of links from the left}. Links that close a circle go back."""
    levels = {router: 0 for pair in ends.values() for router in pair}
    after = {}
    for first, last in ends.values():
        if not _leads(after, last, first):
            after.setdefault(first, []).append(last)
    for _ in levels:
        for first, following in after.items():
            for last in following:
                levels[last] = max(levels[last], levels[first] + 1)
    return levels


def _leads(after, start, goal):
    """Is there a way from one router to another?"""
    return start == goal or any(_leads(after, router, goal)
                                for router in after.get(start, ()))


def _parts(ends):
    """Lists of links that are connected."""
    sets = _Sets()
    for name, (first, last) in ends.items():
        sets.join(first, last)
    parts = {}
    for name, (first, _) in ends.items():
        parts.setdefault(sets.of(first), []).append(name)
    return list(parts.values())


def _groups(raw):
    """Paths over the same links are drawn once."""
    groups = {}
    for name, path in raw["paths"].items():
        groups.setdefault(tuple(path["links"]), []).append(name)
    alone = len(raw["paths"]) <= _MOST_LANES
    return [{"links": links, "paths": some} for links, names in groups.items()
            for some in ([[name] for name in names] if alone else [names])]


def _rate(bps):
    return f"{bps / 1e9:g} Gbit/s" if bps >= 1e9 else f"{bps / 1e6:g} Mbit/s"


def _link(raw, name, queue, x1, x2, y):
    link = raw["links"][name]
    changed = any(name in case.get("links", {}) for case in raw["cases"])
    return {"name": name, "x1": x1, "x2": x2, "y": y,
            # Of a link that has a queue of its own.
            "queue": f"queue {link['queue']}" if "queue" in link else queue,
            "facts": _facts(link) + ("; cases differ" if changed else "")}


def _facts(link):
    rate = _rate(link["capacity_bps"])
    return f"{rate}, {link['delay_ms']:g} ms" if "delay_ms" in link else rate


def _flows(raw, paths):
    """The largest number of flows on these paths in a case."""
    return max(sum(flow["path"] in paths for flow in case["flows"])
               for case in raw["cases"])


def _lane(raw, group, ends, levels, gap, y, look):
    paths = group["paths"]
    there = [raw["paths"][name] for name in paths]
    first = levels[ends[group["links"][0]][0]]
    last = levels[ends[group["links"][-1]][1]]
    x1, x2 = _MARGIN + gap * first, _MARGIN + gap * last
    name = f"path {paths[0]}" if len(paths) == 1 else \
        f"{len(paths)} paths, {paths[0]} to {paths[-1]}"
    label = f"{name}: {counted(_flows(raw, paths), 'flow')}"
    if all("rtt_ms" in path for path in there):
        label += f", round trip {numbers([path['rtt_ms'] for path in there])} ms"
    middle = (x1 + x2) / 2 > _WIDTH / 2 + 1
    return {"x1": x1, "x2": x2, "y": y, "label": label,
            "colour": f"var(--series-{look.series('path', paths[0])})"
            if len(paths) == 1 else "var(--theory)",
            "label_x": max(x1, x2) if middle else min(x1, x2),
            "anchor": "end" if middle else "start",
            "hosts": [listed(dict.fromkeys(str(path.get(end, "")) for path in
                                           there[:8]))
                      + (" …" if len(there) > 8 else "")
                      for end in ("source", "sink")]}


def _text(raw, groups):
    links = [f"{name} ({_facts(link)})" for name, link in raw["links"].items()]
    return (f"The network: the links {listed(links)}, and "
            f"{counted(len(raw['paths']), 'path')} over them.")
