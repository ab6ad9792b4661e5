# SPDX-License-Identifier: GPL-2.0
"""What the results on a page cannot tell: the sentences that apply to them."""

from .. import papers
from . import about

# {place of a run: sentences}
_OF_PLACES = {
    "lab": (
        "In the lab, time is virtual: the clock jumps to the next event, and computation "
        "takes no time. The numbers say nothing about the load of a processor.",
        "The lab has one processor. Devices with several queues, and processors that wait "
        "for each other (SMP), do not occur.",
        "The clock of the lab counts in steps of 256 ns, and each reading of the clock "
        "takes one step.",
        "The kernel of the lab has HZ=1000, by a patch. The section about the kernel names "
        "all patches of a run. TCP, queues and timers have no patch.",
        "Two runs with the same seed give the same numbers. Only runs with different seeds, "
        "which also change the start times, show how much the numbers vary."),
    "host": (
        "On a host, time is real: other programs on the machine change the numbers, and two "
        "runs with the same seed differ. Only several runs show how much they vary.",),
    "qemu": (
        "In qemu, processors are emulated and slow: the load of the machine changes the "
        "numbers, and two runs with the same seed differ.",),
    "model": (
        "A fluid model has no packets: it shows means and their changes, but no bursts, no "
        "losses of single packets, no retransmissions and no timeouts.",
        "A model has few random numbers: runs with different seeds hardly differ, which "
        "says nothing about how much real runs vary."),
}
_EARLY = ("In these experiments, connections are established before they have data to send, "
          "so times of transfers do not include the handshake.")
_IP_ONLY = "The rates of the links count the bytes of IP packets, without Ethernet headers."
# Headers of IP and TCP, without and with timestamps, bytes.
_HEADERS_BYTES = (40, 52)


def limitations(groups):
    """Sentences for the groups of a page, see page.Group."""
    places = dict.fromkeys(result["provenance"].get("place", "lab")
                           for group in groups for result in group.results)
    return [*(text for place in places for text in _OF_PLACES.get(place, ())),
            *_published(groups), *_experiments([group.raw for group in groups])]


def _published(groups):
    """Where the published values beside measured ones are from."""
    named = dict.fromkeys(entry["paper"].split()[0] for group in groups
                          for entry in group.outcome["published"])
    found = [papers.PAPERS[name] for name in named if name in papers.PAPERS]
    if not found:
        return []
    whose = [f"{paper.name} ({paper.simulator})" if paper.simulator else paper.name
             for paper in found]
    return [f"The published values of {about.listed(whose)} come from simulations, in which "
            "TCP is not that of Linux. Agreement shows that the algorithms agree."]


def _experiments(raws):
    """How the flows and links of these raw results are special."""
    found = []
    if any(_is_early(flow) for raw in raws for case in raw["cases"]
           for flow in case["flows"]):
        found.append(_EARLY)
    if any(raw["parameters"].get("packet_bytes", 0) - (raw.get("mss_bytes") or 0)
           in _HEADERS_BYTES for raw in raws):
        found.append(_IP_ONLY)
    return found


def _is_early(flow):
    """True if a flow was connected before its start."""
    connected_s = flow.get("final", {}).get("connected_s")
    return connected_s is not None and connected_s < flow["start_s"]
