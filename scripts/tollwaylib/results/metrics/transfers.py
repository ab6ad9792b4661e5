# SPDX-License-Identifier: GPL-2.0
"""Metrics of transfers and of retransmissions."""

from ...errors import TollwayError
from ..fields import mean_or_none
from ..schema import RECOVERY


def _transfers(data, words):
    """[(completion s or None, optimum s)] of a role."""
    found = [(data.completion_s(flow), flow["optimal_s"])
             for flow in data.of_role(words["role"])]
    if not found:
        raise TollwayError(f"the case {data.case['name']} has no flow named "
                           f"{words['role']}, of which a metric needs the "
                           "completion time")
    return found


def completion_ms(data, words):
    """Mean completion time of a role, ms; None if the case has no such flow."""
    if not data.of_role(words["role"]):
        return None
    value = mean_or_none(done for done, _ in _transfers(data, words))
    return None if value is None else 1000 * value


def optimal_ms(data, words):
    """Mean shortest possible completion time of the transfers of a role by theory, ms."""
    return 1000 * mean_or_none(best for _, best in _transfers(data, words))


def slowdown(data, words):
    """(mean completion time - optimum) / optimum of a role; None if one transfer did not end."""
    done, best = completion_ms(data, words), optimal_ms(data, words)
    return None if done is None else done / best - 1


def completion_units(data, words):
    """completion_ms() in time units of PP94, hundredths of the round-trip time."""
    value = completion_ms(data, words)
    return None if value is None else value / 10 / data.rtt_s


def optimal_units(data, words):
    """optimal_ms() in time units of PP94, hundredths of the round-trip time."""
    return optimal_ms(data, words) / 10 / data.rtt_s


def last_s(data, _words):
    """End of the last transfer, s from the start of the case; None if one did not end."""
    ends = [data.completion_s(flow) for flow in data.of_role()]
    return None if None in ends else max(
        end + flow["start_s"] for end, flow in zip(ends, data.of_role()))


def last_units(data, words):
    """last_s() in time units of PP94, hundredths of the round-trip time."""
    value = last_s(data, words)
    return None if value is None else 100 * value / data.rtt_s


def finished(data, words):
    """Number of transfers of a role that ended during the case."""
    return sum(data.completion_s(flow) is not None
               for flow in data.of_role(words.get("role")))


def retransmits(data, words):
    """Packets that the flows of a role retransmitted during the case."""
    # A stream sends nothing again.
    return sum(flow["final"].get("retransmits", 0)
               for flow in data.of_role(words.get("role")))


def srtt_ms(data, words):
    """Mean smoothed round-trip time of the flows of a role, ms."""
    start, stop = data.window(words)
    return mean_or_none(
        mean_or_none(rtt_us / 1000 for t_s, rtt_us in zip(
            flow["samples"]["t_s"], flow["samples"]["srtt_us"])
                     if start <= t_s <= stop and rtt_us)
        for flow in data.of_role(words.get("role"))
        if flow.get("samples"))


def outstanding(data, words):
    """Mean number of outstanding packets of the flows of a role in the window, of samples."""
    start, stop = data.window(words)
    return mean_or_none(
        mean_or_none(pkts for t_s, pkts in zip(
            flow["samples"]["t_s"], flow["samples"]["unacked"]) if start <= t_s <= stop)
        for flow in data.of_role(words.get("role"))
        if "unacked" in flow.get("samples", ()))


def loss_part(data, words):
    """Retransmitted packets as a fraction of the sent ones; of streams over UDP, the fraction
    of packets that did not arrive."""
    lost = retransmits(data, words)
    sent = 0
    for flow in data.of_role(words["role"]):
        if flow.get("law"):
            sent += flow["final"]["packets"]
            lost += flow["final"]["law"]["lost"]
        else:
            sent += flow["final"]["bytes_sent"] / data.mss
    return lost / max(sent, 1)


def goodput_sent(data, _words):
    """PP94 9.3: 1 - retransmissions/packets."""
    packets = sum(flow["packets"] for flow in data.of_role())
    return 1 - retransmits(data, {}) / packets


def units_of(data, flow):
    """Completion time of a flow in time units of PP94, hundredths of the round-trip time; None
    if it did not end."""
    done = data.completion_s(flow)
    return None if done is None else done / data.rtt_s * 100


def retransmission_rate(data, words):
    """Mean number of retransmitted packets of a flow of a role per 1000 time units of its
    transfer; None if one did not end."""
    rates = []
    for flow in data.of_role(words["role"]):
        units = units_of(data, flow)
        rates.append(None if units is None else
                     1000 * flow["final"]["retransmits"] / units)
    return mean_or_none(rates)


def recovery_of(network):
    """Counters of segments and timers, summed over all hosts and the whole run; None if the
    kernel of one host does not report them."""
    return {key: None if any(counts.get(key) is None
                             for counts in network.values())
            else sum(counts[key] for counts in network.values())
            for key in RECOVERY}
