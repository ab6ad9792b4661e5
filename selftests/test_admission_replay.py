# SPDX-License-Identifier: GPL-2.0
"""tollway-admit: recorded samples that come again, and starts of either border.

No sockets: datagrams are handed from one association to the other.
"""

import pathlib
import random
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE.parent / "tools")]

from admit import wire  # noqa: E402

KEY = b"0123456789abcdef"
# Of 10 ms each: a second.
ROUNDS = 100


class Network:
    """Two borders, and everything that one of them ever sent.

    rounds() replays after each datagram, to its receiver: that is the worst moment,
    as what the receiver sends next answers the replay.
    """

    def __init__(self):
        self.ends = [wire.Association(KEY), wire.Association(KEY)]
        self.recorded = [[], []]

    def restart(self, index):
        self.ends[index] = wire.Association(KEY)

    def rounds(self, count, replay=lambda to: ()):
        """Both send a sample in each round; how many rounds until both believe."""
        for number in range(count):
            if self.believe():
                return number
            self.round(replay)
        return None

    def round(self, replay=lambda to: ()):
        for index in (0, 1):
            made = self.ends[index].make(1)
            self.recorded[1 - index].append(made)
            self.ends[1 - index].take(made)
            for old in replay(1 - index):
                assert self.ends[1 - index].take(old) is None

    def believe(self):
        one, other = self.ends
        return one.peer == other.session and other.peer == one.session


def settled(rounds=6):
    network = Network()
    for _ in range(rounds):
        network.round()
    assert network.believe()
    return network


@pytest.mark.parametrize("restarted", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("receiver", [0, 1])
def test_one_recorded_sample_blocks_no_start(restarted, number, receiver):
    """Whichever it is of those of the last session, and however often it comes."""
    network = settled()
    old = network.recorded[receiver][number]
    for index in restarted:
        network.restart(index)
    found = network.rounds(
        ROUNDS, lambda to: [old] * 3 if to == receiver else ())
    assert found is not None and found <= 10, found


def test_a_recorded_start_blocks_no_start():
    """What was sent since the start itself comes again, to either end."""
    network = settled()
    network.restart(0)
    found = network.rounds(ROUNDS, lambda to: network.recorded[to][:-1])
    assert found is not None and found <= 10, found


def test_many_recorded_sessions_block_no_start():
    """Samples of as many sessions as are answered, each never seen before."""
    network = settled()
    sessions = []
    for _ in range(wire.CLAIMS - 1):
        network.restart(0)
        assert network.rounds(ROUNDS) is not None
        first = len(network.recorded[1])
        for _ in range(ROUNDS):
            network.round()
        sessions.append(network.recorded[1][first:])
    # This one knows none of them.
    network.restart(1)
    network.restart(0)
    turn = iter(range(ROUNDS))

    def replay(to):
        if to == 0:
            return ()
        now = next(turn)
        return [session[now] for session in sessions]

    assert network.rounds(ROUNDS, replay) is not None


def test_a_replay_changes_nothing():
    """The believed peer stays, is heard, and every sample of it counts once."""
    network = settled()
    network.restart(0)
    network.rounds(ROUNDS)
    one, other = network.ends
    everything = [list(each) for each in network.recorded]
    before = one.peer, other.peer, one.highest, other.highest
    for index, end in enumerate(network.ends):
        for old in (*everything[index], *everything[1 - index]):
            assert end.take(old) is None
    assert (one.peer, other.peer, one.highest, other.highest) == before
    for _ in range(20):
        assert other.take(one.make(1)) and one.take(other.make(1))


def test_a_border_that_was_replaced_may_come_back():
    """As that of a pair with one address, of which the other one fails."""
    network = settled()
    first = network.ends[0]
    network.restart(0)
    assert network.rounds(ROUNDS) is not None
    network.ends[0] = first
    # It believes the other end still; that has to be won again.
    assert network.rounds(ROUNDS) is not None


def for_of(datagram):
    return int.from_bytes(datagram[24:32], "big")


def test_an_unknown_session_is_answered_a_few_times_only():
    stranger, one = wire.Association(KEY), wire.Association(KEY)
    one.take(stranger.make(1))
    answered = [for_of(one.make(1)) for _ in range(50)]
    assert answered.count(stranger.session) == wire.TURNS


def test_a_start_among_any_replays_and_losses():
    """Whatever comes again, in whatever order, while a third is lost."""
    for seed in range(60):
        source, network = random.Random(seed), Network()

        def replay(to):
            both = network.recorded[to] + network.recorded[1 - to]
            return [source.choice(both[:-1] or both) for _ in range(4)] \
                if len(both) > 2 else ()

        for _ in range(source.randrange(1, 5)):
            for _ in range(source.randrange(8)):
                round_with_losses(network, source, replay)
            network.restart(source.randrange(2))
        for _ in range(ROUNDS):
            if network.believe():
                break
            round_with_losses(network, source, replay)
        assert network.believe(), seed


def round_with_losses(network, source, replay):
    for index in (0, 1):
        made = network.ends[index].make(1)
        if source.random() < 0.33:
            continue
        network.recorded[1 - index].append(made)
        network.ends[1 - index].take(made)
        for old in replay(1 - index):
            network.ends[1 - index].take(old)
