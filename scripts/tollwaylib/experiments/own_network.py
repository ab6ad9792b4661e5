# SPDX-License-Identifier: GPL-2.0
"""The network in a file of one's own: its links, with their schedules, and paths."""

from .own_file import as_name, as_rate, as_time, one_of, shown, spoken
from .own_words import as_queue
from .parameters import COMMON


def links_of(file, duration_s):
    """{name: link} of a file."""
    found = {}
    for name, entry in file.named("links").items():
        place = ("links", name)
        link = file.table(place, entry, {"from": as_name, "to": as_name,
                                         "rate": as_rate},
                          {"delay": as_time, "queue": as_queue,
                           "schedule": lambda value: value})
        if link["from"] == link["to"]:
            raise file.error(place, f"{spoken(place)} leads from "
                             f"{link['from']} to itself: give two routers")
        for other in found.values():
            if (other["from"], other["to"]) == (link["from"], link["to"]):
                raise file.error(place, f"{spoken(place)} has the routers of "
                                 f"{other['name']}: one link is allowed from "
                                 "a router to another")
        found[name] = {"name": name, "from": link["from"], "to": link["to"],
                       "rate_bps": round(link["rate"]),
                       "delay_ms": round(1e3 * link.get("delay", 0.0), 6),
                       "queue": link.get("queue"),
                       "schedule": schedule_of(file, place, link.get("schedule", ()),
                                             duration_s)}
    _no_loop(file, found)
    return found


def schedule_of(file, place, given, duration_s):
    """((s, bit/s), ...): the rates of a link from these times on."""
    place = (*place, "schedule")
    if not isinstance(given, (list, tuple)):
        raise file.error(place, f"{spoken(place)} is {shown(given)}: give a list "
                         "of (time, rate)")
    found = []
    for index, entry in enumerate(given):
        inner = (*place, index)
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise file.error(inner, f"{spoken(inner)} is {shown(entry)}: give "
                             "(time, rate)")
        when_s = round(file.read(inner, entry[0], as_time), 6)
        least_s = found[-1][0] if found else 0.0
        if not least_s < when_s < duration_s:
            raise file.error(inner, f"{spoken(inner)} is at {when_s:g}s: give a "
                             f"time after {least_s:g}s and before the end, "
                             f"{duration_s:g}s")
        found.append((when_s, round(file.read(inner, entry[1], as_rate))))
    return tuple(found)


def rates_of(links):
    """The changes of all links of a case, see description.Case."""
    return tuple(sorted((when_s, rate_bps, name) for name, link in links.items()
                        for when_s, rate_bps in link["schedule"]))


def _no_loop(file, links):
    """Packets take the shortest way, which is the only one in a tree."""
    part = {}

    def root(router):
        while part.setdefault(router, router) != router:
            router = part[router]
        return router

    joined = set()
    for name, link in links.items():
        ends = frozenset((link["from"], link["to"]))
        first, second = map(root, (link["from"], link["to"]))
        if ends not in joined and first == second:
            raise file.error(("links", name), f"links['{name}'] closes a loop: "
                             "only one route is allowed between two routers")
        part[first] = second
        joined.add(ends)


def paths_of(file, links, case=()):
    """case: the place of the case whose links these are, if it is one."""
    found = {}
    back = {(link["from"], link["to"]): link for link in links.values()}
    for name, entry in file.named("paths").items():
        place = ("paths", name)
        path = file.table(place, entry, {"links": lambda value: value},
                          {"rtt": as_time})
        way = path["links"]
        if not isinstance(way, (list, tuple)) or not way:
            raise file.error((*place, "links"), f"{spoken(place)}['links'] is "
                             f"{shown(way)}: give a list of links, in the "
                             "order in which packets cross them")
        for index, link in enumerate(way):
            file.read((*place, "links", index), link,
                      one_of(tuple(links), "the name of a link, "))
        for before, after in zip(way, way[1:]):
            if links[before]["to"] != links[after]["from"]:
                raise file.error((*place, "links"), f"{spoken(place)} goes "
                                 f"from {before}, which leads to "
                                 f"{links[before]['to']}, to {after}, which "
                                 f"leads from {links[after]['from']}: give "
                                 "links that follow one another")
        visited = [links[way[0]]["from"], *(links[link]["to"] for link in way)]
        if len(set(visited)) < len(visited):
            raise file.error((*place, "links"), f"{spoken(place)} visits a "
                             "router twice, but packets take the shortest "
                             "route")
        least_ms = sum(
            links[link]["delay_ms"] + back.get(
                (links[link]["to"], links[link]["from"]),
                links[link])["delay_ms"] for link in way)
        rtt_ms = 1e3 * path["rtt"] if "rtt" in path else least_ms
        if rtt_ms < least_ms - 1e-6:
            of_case = f"{spoken(case)}: " if case else ""
            raise file.error(case or (*place, "rtt"),
                             f"{of_case}{spoken(place)}['rtt'] is "
                             f"{path['rtt'] * 1e3:g}ms: give {least_ms:g}ms at "
                             "least, which the delays of its links add up to, "
                             "there and back")
        found[name] = {"name": name, "links": list(way),
                       "rtt_ms": round(rtt_ms, 6),
                       "edge_ms": round((rtt_ms - least_ms) / 4, 6)}
    for name in links:
        if not any(name in path["links"] for path in found.values()):
            raise file.error(("links", name), f"links['{name}'] is in no path: "
                             "a link without a path is not allowed")
    return found


def echo_ms(links, paths):
    """The most that the calibration's echo of 98 bytes takes over the links of
    a path, there and back, with what every experiment allows."""
    return COMMON["rtt_tolerance_ms"][0] + max(sum(
        2 * 98 * 8e3 / links[link]["rate_bps"] for link in path["links"])
        for path in paths.values())
