# SPDX-License-Identifier: GPL-2.0
"""The experiments of ALPHA sections IV to VI, and one beyond the paper.

Queues, losses and ratios depend only on mu tau, mu Delta and alpha tau^2. So a link with
fewer packets per ms has the times of the paper multiplied by s = mu/mu', the gains divided
by s^2, and the same number of packets in its queues and files. Here mu' is 12 packets/ms, a
link of 96 Mbit/s and packets of 1000 bytes.
"""

from ..experiments.description import (Case, Experiment, Paper, Variant, case_bound,
                                       metric, panel)
from ..experiments.parameters import SHIPPED
from ..experiments.workload import capacity_pps, flow_of
from ..theory.rate_cycle import RateCycle
from . import networks

PAPER = Paper(
    "ALPHA", "X. Zhang and K. Shin, Second-Order Rate-Based Flow Control with Decoupled "
    "Error Control for High-Throughput Transport Protocols")

LINK = "R1"
OURS = ("alpha+alpha",)
PACKET_BYTES, RATE_MBIT = 1000, 96.0
# 155 Mbit/s in cells of 53 bytes, and the link of section V; packets/ms.
MU, EXAMPLE_MU, CELL_BYTES = 367, 184, 53
# ms of the paper.
TAU, EXAMPLE_TAU = 2.0, 2.0
# Losses change no rate: as in the paper.
NEVER = 1.0
# Room for all that waits for a loss to be repaired.
BUFFERS = {"net.ipv4.tcp_wmem": "4096 1000000 8000000",
           "net.ipv4.tcp_rmem": "4096 8000000 16000000"}


class Scale:
    """From a paper's link of `mu` packets/ms to ours."""

    def __init__(self, mu, rate_mbit=RATE_MBIT, packet_bytes=PACKET_BYTES):
        self.pps = capacity_pps({"rate_mbit": rate_mbit,
                                 "packet_bytes": packet_bytes})
        self.slower = 1e3 * mu / self.pps

    def seconds(self, paper_ms):
        return paper_ms * self.slower / 1e3

    def rtt_ms(self, paper_ms):
        return round(paper_ms * self.slower, 3)

    def gain(self, per_ms2):
        """packets/s^2 of packets/ms^2."""
        return round(per_ms2 * 1e6 / self.slower ** 2)

    def rate(self, per_ms):
        """packets/s of packets/ms."""
        return round(per_ms * 1e3 / self.slower)


def _scale(values, mu=MU):
    return Scale(mu, values["rate_mbit"], values["packet_bytes"])


def _sources(count):
    """The same round trip for all; no link but the bottleneck has a queue."""
    def shape(values):
        return {"rtts_ms": [values["rtt_ms"]] * count,
                "delay_ms": round(values["rtt_ms"] / 2 - 0.2, 6),
                "sink_ms": 0.1}
    return shape


def _defaults(mu=MU, **more):
    scale = Scale(mu)
    return {"packet_bytes": PACKET_BYTES, "rate_mbit": RATE_MBIT,
            "edge_mbit": 10 * RATE_MBIT, "warmup_s": 0.0,
            "start_jitter_s": 0.001, "rtt_ms": scale.rtt_ms(TAU),
            "queue_sample_us": 1000,
            # BW_EST is the link's rate: see ALPHA 1.1 and tcp_alpha(7).
            "bw_pps": round(scale.pps), "loss_share": NEVER, **more}


def _fixed(scale, alpha):
    """Parameters of a gain that stays what it is."""
    return {"gain": scale.gain(alpha), "gip": 0, "gdp": 1.0}


# --- Figures 7 and 8 -------------------------------------------------------

# (8) and (16) are of a rate that changes at any time: Delta is a 20th of the round
# trip here, and not a fifth as in section VI.
LOSS_ROOM, LOSS_HIGH, LOSS_STEP = 400, 50, 0.05
TAUS, ALPHAS = (2.0, 2.4, 2.8, 3.2), (10, 20, 30, 40, 50, 60)
# The queue's lower threshold is half of the upper one.
LOW = 0.5


def _loss_name(alpha, tau, room="xi 400"):
    return f"alpha {alpha}, tau {tau:g}, {room}"


def _fluid(alpha, tau):
    return RateCycle(MU, tau, alpha, LOSS_HIGH, LOSS_HIGH * LOW)


def _loss_cases(values):
    scale = _scale(values)
    cases = []
    for room in (LOSS_ROOM, 2000):
        for tau in TAUS:
            for alpha in ALPHAS:
                if room != LOSS_ROOM and alpha not in (10, 30, 60):
                    continue
                # The start, and eight cycles.
                ms = MU / alpha + 8 * _fluid(alpha, tau).duration
                name = _loss_name(alpha, tau, "xi 400" if room == LOSS_ROOM
                                  else "room for all")
                cases.append(Case(
                    name, (flow_of(1, 0.0),), round(scale.seconds(ms), 3),
                    values={**_fixed(scale, alpha), "limit": room,
                            "goal": room - 10,
                            "rtt_ms": scale.rtt_ms(tau)},
                    sysctls=BUFFERS, rtt_s=scale.rtt_ms(tau) / 1000,
                    x=float(alpha), series=f"{tau:g} ms" + (
                        "" if room == LOSS_ROOM else ", room for all")))
    return cases


def _loss_bounds(_values):
    """(8) where nothing is lost, (16) and (15) where something is."""
    bounds = []
    for tau in TAUS:
        for alpha in ALPHAS:
            fluid, name = _fluid(alpha, tau), _loss_name(alpha, tau)
            lost, due = fluid.lost(LOSS_ROOM), fluid.largest_queue
            if alpha in (10, 30, 60):
                free = _loss_name(alpha, tau, "room for all")
                bounds += [
                    case_bound("mean largest queue of a cycle "
                               f"({due:.0f} by equation (8)), {word}", free,
                               "largest", operator, factor * due)
                    for word, operator, factor in (("at least", ">=", 0.95),
                                                   ("at most", "<=", 1.05))]
            if due < 0.95 * LOSS_ROOM:
                bounds.append(case_bound(
                    "mean drops of a cycle (0 by equation (16))", name, "rho",
                    "<=", 0))
            elif due > 1.05 * LOSS_ROOM:
                # What is lost is a difference: a 20th of the largest queue.
                bounds += [
                    case_bound("mean drops of a cycle "
                               f"({lost:.0f} by equation (16)), {word}", name,
                               "rho", operator, lost + part * due)
                    for word, operator, part in (("at least", ">=", -0.05),
                                                 ("at most", "<=", 0.05))]
    return bounds


# --- section V -------------------------------------------------------------

EXAMPLE_HIGH, EXAMPLE_GOAL = 20, 200
EXAMPLE = (
    # name; gains at first; tau in ms; sums of gains between which it swings
    ("goal 18", (3.035, 12.76), 2.0, (15.838, 19.795)),
    ("goal 6", (4.028, 11.81), 3.34, (5.19, 6.488)),
    ("goal 18 again", (1.65, 4.838), 2.0, (14.791, 18.488)))


def _example_cases(values):
    scale = _scale(values, EXAMPLE_MU)
    return [Case(
        name, tuple(flow_of(number, 0.0, sysctls=_own_gain(scale, alpha))
                    for number, alpha in enumerate(alphas, 1)),
        round(scale.seconds(700), 3),
        values={"rtt_ms": scale.rtt_ms(tau)}, sysctls=BUFFERS,
        sample_ms=10, rtt_s=scale.rtt_ms(tau) / 1000)
        for name, alphas, tau, _ in EXAMPLE]


def _own_gain(scale, alpha):
    return {"net.ipv4.tcp_alpha.gain": scale.gain(alpha)}


def _example_bounds(_values):
    """The largest queue is within 20 % of the goal. Jain's index of the gains (phi,
    definition 3) begins at 0.725. An addition of p to the gains raises it, and a
    reduction of all gains by the same factor does not change it."""
    return [bound for name, *_ in EXAMPLE for bound in (
        case_bound("largest queue of each cycle from cycle 8 on, at most", name,
                   "most", "<=", 1.2 * EXAMPLE_GOAL),
        case_bound("largest queue of each cycle from cycle 8 on, at least", name,
                   "least", ">=", 0.8 * EXAMPLE_GOAL),
        case_bound("Jain's index of the gains at the end", name, "phi", ">=",
                   0.72))]


# --- section VI ------------------------------------------------------------

STARTS_MS, END_MS = (0, 245, 710), 1000
CONNECTION_GAINS, CONNECTION_GIP, CONNECTION_GDP = (8.7, 14.7, 17.7), 2.9, 0.6
FIRST_RATE, GOAL = 30, 300
PERIODS = tuple(zip(STARTS_MS, (*STARTS_MS[1:], END_MS)))


# Sources with BW_EST the link's rate, as in the paper; with a constant gain; and with
# BW_EST between the link's rate and their mean share, see tcp_alpha(7). With the q of the
# paper, 0.6, (8) leads from just below the goal of 300 to 373 packets, more than the 20 %
# of the bounds, and with 0.7 to 348. Steps of a fifth of the round trip add some.
PAPERS, CONSTANT, SHARE = "alpha", "constant", "share"
KINDS = {PAPERS: {}, CONSTANT: {"gip": 0, "gdp": 1.0},
         SHARE: {"bw_share": 1, "gdp": 0.7, "step": 0.05}}


def _connection_cases(values):
    scale = _scale(values)
    cases = []
    for case, room in (("I", 800), ("II", 400)):
        for kind, own in KINDS.items():
            cases.append(Case(
                f"{case}, {kind}",
                tuple(flow_of(number, scale.seconds(start_ms), name=f"C{number}",
                              role=f"C{number}",
                              sysctls=_own_gain(scale, alpha))
                      for number, (start_ms, alpha) in enumerate(
                          zip(STARTS_MS, CONNECTION_GAINS), 1)),
                round(scale.seconds(END_MS), 3),
                values={"limit": room, **own},
                sysctls=BUFFERS, sample_ms=20,
                rtt_s=scale.rtt_ms(TAU) / 1000))
    return cases


def _window(number, part=0.0):
    """Words for period T_number, or what comes after a part of it."""
    scale, (start_ms, stop_ms) = Scale(MU), PERIODS[number - 1]
    return {"link": LINK, "to_s": scale.seconds(stop_ms),
            "from_s": scale.seconds(start_ms + part * (stop_ms - start_ms))}


def _connection_metrics():
    found = []
    for number in (1, 2, 3):
        words = _window(number)
        found += [
            metric(f"first_{number}", "cycle_first",
                   f"T{number}: peak of cycle 1", 0, **words),
            metric(f"least_{number}", "cycle_least",
                   f"T{number}: smallest peak from cycle 3 on", 0, skip=2, **words),
            metric(f"most_{number}", "cycle_most",
                   f"T{number}: largest peak from cycle 3 on", 0, skip=2, **words),
            metric(f"mean_{number}", "cycle_mean",
                   f"T{number}: mean peak from cycle 3 on", 0, skip=2, **words),
            metric(f"drops_{number}", "drops_after",
                   f"T{number}: drops from cycle 4 on", 0, skip=3, **words)]
    for number in (2, 3):
        found += [
            metric(f"jain_{number}", "jain",
                   f"T{number}: Jain's index of rates, last half", 4, **_window(number, 0.5)),
            metric(f"shares_{number}", "share_error",
                   f"T{number}: largest error of a share, last half", 1, **_window(number, 0.5))]
    for number in (1, 2, 3):
        found += [
            metric(f"received_{number}", "received", f"C{number}: received",
                   0, role=f"C{number}"),
            metric(f"resent_{number}", "retransmits", f"C{number}: retransmissions",
                   0, role=f"C{number}"),
            metric(f"loss_{number}", "loss_part", f"C{number}: loss", 3,
                   role=f"C{number}")]
    return tuple(found)


def _controlled_bounds(kind):
    """What section VI says of its figures, and the ratios of Table I."""
    one, two = f"I, {kind}", f"II, {kind}"
    bounds = []
    for number in (1, 2, 3):
        bounds += [
            case_bound(f"T{number}: largest queue of each cycle from cycle 3 on, "
                       f"{word}", one, key, operator, factor * GOAL)
            for word, key, operator, factor in (
                ("at most", f"most_{number}", "<=", 1.2),
                ("at least", f"least_{number}", ">=", 0.8))]
        bounds += [
            case_bound(f"C{number}: loss", two, f"loss_{number}", "<=", 0.002),
            case_bound(f"C{number}: loss, part of that with a constant gain", two,
                       f"loss_{number}", "<=", 0.1, of_case="II, constant"),
            case_bound(f"C{number}: received, part of that with a constant gain",
                       two, f"received_{number}", ">=",
                       (1.09, 1.11, 1.14)[number - 1],
                       of_case="II, constant"),
            case_bound(f"T{number}: drops from cycle 4 on", two,
                       f"drops_{number}", "<=", 0)]
    for number in (2, 3):
        bounds += [
            case_bound(f"T{number}: Jain's index of the rates in the last half",
                       one, f"jain_{number}", ">=", 0.99),
            case_bound(f"T{number}: largest error of a share in the last half",
                       one, f"shares_{number}", "<=", 0.2)]
    return bounds


def _connection_bounds(_values):
    return _controlled_bounds(PAPERS) + _controlled_bounds(SHARE) + [
        case_bound("T2: mean largest queue of a cycle from cycle 3 on",
                   "I, constant", "mean_2", ">=", 1.7 * GOAL),
        *(case_bound(f"T{number}: drops from cycle 4 on", "II, constant",
                     f"drops_{number}", ">=", 1) for number in (2, 3))]


# --- Table II --------------------------------------------------------------

FILE_KBYTES = tuple(1700 * row for row in range(1, 21))
FILE_ROOM, FILE_GOAL, FILE_ALPHA, FILE_DELTA = 300, 200, 91.6, 1.0


def file_case(kbytes, control):
    """The name of the case of a file of this size, in kB. control: True with control of the
    gain, False with a constant gain."""
    return f"{kbytes} kB, {'alpha' if control else 'constant'}"


def _file_cases(values):
    scale = _scale(values)
    cases = []
    for control in (False, True):
        # The shortest is the last one, see test_every_experiment.py.
        for kbytes in reversed(FILE_KBYTES):
            packets = round(1000 * kbytes / CELL_BYTES)
            cases.append(Case(
                file_case(kbytes, control),
                (flow_of(1, 0.0, packets, "file"),),
                # Table II's slowest are of 14.1 kB/ms.
                round(scale.seconds(kbytes / 8), 3),
                values={} if control else {"gip": 0, "gdp": 1.0},
                sysctls=BUFFERS, x=float(kbytes),
                series="alpha" if control else "constant",
                sample_ms=100, queue_us=10000,
                rtt_s=scale.rtt_ms(TAU) / 1000))
    return cases


def _file_bounds(_values):
    """Time is gained with each size, and what is lost does not grow with it by more
    than a cycle's, which is as much of it again."""
    shortest = file_case(FILE_KBYTES[0], True)
    bounds = []
    for kbytes in FILE_KBYTES:
        bounds.append(case_bound(
            "time, part of that with alpha", file_case(kbytes, False), "time_ms",
            ">=", 1.15, of_case=file_case(kbytes, True)))
        bounds.append(case_bound(
            f"retransmitted data, part of that of {FILE_KBYTES[0]} kB",
            file_case(kbytes, True), "lost_kbytes", "<=", 2.0, of_case=shortest))
    return bounds


# --- beyond the paper ------------------------------------------------------

COUNTS = (1, 2, 4, 8, 16, 32)
PATH_RTT_MS, OTHER_RTTS_MS = 60.0, (20.0, 43.0, 93.0, 200.0)
PATH_ROOM, PATH_S = 800, 20.0
RTTS_CASE, CHANGE_CASE = "round trips 1:10", "half of the link is gone"
# The half of it that comes after a while, and goes.
CHANGE_S = (7.0, 14.0)
VARIANTS = tuple(Variant(f"{cc}-{aqm}", cc, aqm) for cc, aqm in (
    ("alpha", "alpha"), ("sbrm", "delay"), ("pp", "fq_rr"), ("cubic", "pfifo"),
    ("bbr", "pfifo")))


def _path_shape(_values):
    return {"rtt_ms": PATH_RTT_MS, "others_ms": list(OTHER_RTTS_MS)}


def _path_cases(values):
    more = {"sample_ms": 50, "queue_us": 2000,
            "rtt_s": PATH_RTT_MS / 1000, "sysctls": {
                "net.ipv4.tcp_wmem": "4096 400000 4000000",
                "net.ipv4.tcp_rmem": "4096 2000000 4000000"}}
    cases = [Case(f"n = {count}", tuple(
        flow_of(1, 0.05 * number, name=str(number))
        for number in range(1, count + 1)),
        PATH_S, x=float(count), series="n", **more) for count in COUNTS]
    cases.append(Case(RTTS_CASE, tuple(
        flow_of(2 + number, 0.0)
        for number in range(len(OTHER_RTTS_MS))), 2 * PATH_S, **more))
    taken = flow_of(1, CHANGE_S[0], role="udp", name="udp",
                    stop_s=CHANGE_S[1], arrival="cbr", seed=1,
                    udp=values["rate_mbit"] * 1e6 / 2,
                    udp_bytes=values["packet_bytes"])
    cases.append(Case(CHANGE_CASE, (
        *(flow_of(1, 0.0, name=str(number)) for number in range(1, 5)), taken),
        3 * CHANGE_S[0], **more))
    return cases


def _path_bounds(_values):
    bounds = []
    for count in COUNTS:
        name = f"n = {count}"
        bounds += [case_bound("drops in the last half", name, "drops", "<=", 0),
                   case_bound("utilisation in the last half", name,
                              "utilization", ">=", 0.8)]
        if count > 1:
            bounds.append(case_bound("Jain's index of the rates in the last half",
                                     name, "jain", ">=", 0.99))
    return bounds


# --- the list --------------------------------------------------------------

def _experiment(name, title, reproduces, topology=networks.confluence, **more):
    return Experiment(
        name=name, title=title, reproduces=reproduces, topology=topology,
        cc="alpha", aqm="alpha", **more)


EXPERIMENTS = (
    _experiment(
        "alpha-loss", "Losses of a cycle over gain and round trip",
        "ALPHA IV.B: Figures 7 and 8",
        duration_s=20.0, cases=_loss_cases, shape=_sources(1),
        defaults=_defaults(high=LOSS_HIGH, first_pps=Scale(MU).rate(30),
                           step=LOSS_STEP),
        metrics=(
            metric("cycles", "cycles", "cycles", 0, link=LINK),
            metric("largest", "cycle_mean", "mean peak of a cycle", 1,
                   link=LINK, skip=2),
            metric("largest_8", "fluid_largest", "peak by equation (8)", 1,
                   link=LINK),
            metric("rho", "cycle_drops", "mean drops of a cycle", 1,
                   link=LINK, skip=2),
            metric("rho_16", "fluid_drops", "drops by equation (16)", 1,
                   link=LINK),
            metric("loss", "loss_part", "retransmissions, part of all packets", 3,
                   role="source"),
            metric("loss_15", "fluid_loss", "loss by equation (15)", 3,
                   link=LINK)),
        bounds=((OURS, _loss_bounds),),
        x_title="gain of the paper [packets/ms²]",
        pictures=(("curves", (panel("rho"), panel("rho_16"), panel("loss"),
                              panel("loss_15"))),),
        about="A constant gain, over gains and round trips. The largest queue of "
              "a cycle (its peak) is compared with equation (8), and the drops of "
              "a cycle with equation (16)."),
    _experiment(
        "alpha-example", "Two connections come to the goal",
        "ALPHA V: examples 1 and 2, Figure 9",
        duration_s=20.0, cases=_example_cases, shape=_sources(2),
        defaults=_defaults(
            EXAMPLE_MU, high=EXAMPLE_HIGH, goal=EXAMPLE_GOAL, limit=1000,
            rtt_ms=Scale(EXAMPLE_MU).rtt_ms(EXAMPLE_TAU),
            gip=Scale(EXAMPLE_MU).gain(2.0), gdp=0.8, step=0.05,
            # (8) of the sum of gains is of sources whose BW_EST is their share.
            bw_pps=0,
            first_pps=Scale(EXAMPLE_MU).rate(30)),
        metrics=(
            metric("least", "cycle_least", "smallest peak from cycle 8 on",
                   0, link=LINK, skip=7),
            metric("most", "cycle_most", "largest peak from cycle 8 on", 0,
                   link=LINK, skip=7),
            metric("gain_least", "gain_least", "smallest sum of the gains", 2,
                   link=LINK, mu=EXAMPLE_MU, from_part=0.5),
            metric("gain_most", "gain_most", "largest sum of the gains", 2,
                   link=LINK, mu=EXAMPLE_MU, from_part=0.5),
            metric("phi", "gain_jain", "Jain's index of the gains at the end", 3),
            metric("jain", "jain", "Jain's index of rates, last half", 4,
                   from_part=0.5)),
        bounds=((OURS, _example_bounds),),
        pictures=tuple(("queue", name) for name, *_ in EXAMPLE),
        about="Two connections with the gains of example 1. A peak is the "
              "largest queue of a cycle."),
    _experiment(
        "alpha-connections", "Three connections that start one by one",
        "ALPHA VI: Figures 10-12, Table I",
        duration_s=40.0, cases=_connection_cases, shape=_sources(3),
        defaults=_defaults(
            high=50, goal=GOAL, limit=800, step=0.2,
            gip=Scale(MU).gain(CONNECTION_GIP), gdp=CONNECTION_GDP,
            first_pps=Scale(MU).rate(FIRST_RATE)),
        metrics=_connection_metrics(),
        bounds=((OURS, _connection_bounds),),
        pictures=(("queue", "I, alpha"), ("rates", "I, alpha"),
                  ("queue", "I, constant"), ("rates", "I, constant"),
                  ("queue", "I, share"), ("rates", "I, share"),
                  ("queue", "II, alpha"), ("queue", "II, constant")),
        about="Three connections that start one by one, with a limit of 800 packets "
              "(I) and of 400 (II). BW_EST, the bandwidth in the law (BW in "
              "tcp_alpha(7)), is the rate of the link as in the paper (alpha), or "
              "between this rate and the mean share of all flows (share). The cases "
              "share have q 0.7 and steps of a twentieth of the round trip, the others "
              "0.6 and a fifth. A third case (constant) has the BW_EST of the paper and "
              "a constant gain. A peak is the largest queue of a cycle."),
    _experiment(
        "alpha-files", "Files of twenty sizes", "ALPHA VI: Table II",
        duration_s=140.0, cases=_file_cases, shape=_sources(1),
        defaults=_defaults(
            high=50, goal=FILE_GOAL, limit=FILE_ROOM, step=FILE_DELTA / TAU,
            gain=Scale(MU).gain(FILE_ALPHA), gdp=CONNECTION_GDP,
            gip=Scale(MU).gain(CONNECTION_GIP),
            first_pps=Scale(MU).rate(FIRST_RATE)),
        metrics=(
            metric("time_ms", "paper_ms", "transfer time at the rate of the paper", 1,
                   link=LINK, mu=MU, role="file"),
            metric("lost_kbytes", "resent_kbytes", "retransmitted data", 1,
                   bytes=CELL_BYTES, role="file"),
            metric("drops", "drops", "drops", 0)),
        bounds=((OURS, _file_bounds),), x_title="size of the file [kB]",
        pictures=(("curves", (panel("time_ms"), panel("lost_kbytes"))),),
        about="Files of twenty sizes with and without control of the gain. All "
              "forty cases take some minutes: --set only=1700 runs a few."),
    _experiment(
        "alpha-paths", "1 to 32 flows, unequal round trips, half of the link gone",
        "no paper: a comparison", networks.one_link,
        duration_s=60.0, cases=_path_cases, shape=_path_shape,
        variants=VARIANTS,
        defaults={"packet_bytes": PACKET_BYTES, "rate_mbit": RATE_MBIT,
                  "edge_mbit": 10 * RATE_MBIT, "warmup_s": 0.0,
                  "start_jitter_s": 0.1, "initcwnd": 10,
                  "queue_sample_us": 2000, "limit": PATH_ROOM,
                  "buffer": PATH_ROOM, "fifo_limit": PATH_ROOM,
                  # The others as their modules are shipped.
                  "high": 50, "goal": GOAL, **SHIPPED},
        metrics=(
            metric("utilization", "utilization",
                   "utilisation, last half", 1, link=LINK, from_part=0.5),
            metric("queue_mean", "queue_mean", "mean queue, last half", 0,
                   link=LINK, from_part=0.5),
            metric("queue_max", "queue_max", "largest queue, last half", 0,
                   link=LINK, from_part=0.5),
            metric("drops", "drops", "drops, last half", 0, from_part=0.5),
            metric("jain", "jain", "Jain's index of rates, last half", 4,
                   from_part=0.5),
            metric("start_drops", "drops", "drops of the whole case", 0)),
        bounds=((OURS, _path_bounds),), x_title="flows",
        pictures=(("curves", (panel("utilization"), panel("queue_mean"),
                              panel("queue_max"), panel("jain"))),
                  ("rates", RTTS_CASE), ("queue", CHANGE_CASE)),
        about="1 to 32 flows, round trips of 20 to 200 ms, and a link of which "
              "other traffic takes half for a while. Without --cc and --aqm it "
              "compares alpha with its defaults with sbrm, pp, cubic and bbr, with "
              "the same limit."),
)
