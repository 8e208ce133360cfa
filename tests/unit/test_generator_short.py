"""Connections of two lengths, and a population of them that is open from the beginning."""

from collections import Counter

import pytest
from packets import SYN, parse
from wire import Wire

from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile

pytestmark = pytest.mark.usefixtures("compiled_generator")


def test_three_of_four_connections_are_short() -> None:
    requests: Counter[tuple[str, int]] = Counter()

    def count(frame: bytes, side: str) -> list[bytes]:
        packet = parse(frame)
        if side == "client":
            requests[packet.source, packet.source_port] += len(packet.payload) == 20
        return [frame]

    profile = ConnectionProfile(
        name="mixed", messages=5, short_percent=75, short_messages=2, client_ips=100, server_ips=10
    )
    with Wire(count) as wire:
        trial = wire.generator.run_trial(profile, Rate(100), 0.4)
    assert trial.completed == trial.intended
    found = Counter(requests.values())
    assert set(found) == {2, 5}
    assert found[2] == pytest.approx(3 * found[5], abs=3)


def test_as_many_are_open_as_the_profile_says_and_as_many_begin_as_end() -> None:
    opened: set[tuple[str, int]] = set()

    def note(frame: bytes, side: str) -> list[bytes]:
        packet = parse(frame)
        if packet.flags == SYN:
            opened.add((packet.source, packet.source_port))
        return [frame]

    profile = ConnectionProfile(
        name="mixed", messages=19, short_percent=75, short_messages=3, open_at_once=300, client_ips=100, server_ips=10
    ).at_rate(100.0)
    with Wire(note) as wire:
        trial = wire.generator.run_trial(profile, Rate(100), 2.0)
    assert trial.active_mean == pytest.approx(300, rel=0.04)
    ends = trial.timeline_active
    assert ends[-1] == pytest.approx(ends[0], rel=0.2)
    assert trial.attempted - trial.completed < 0.02 * trial.attempted
