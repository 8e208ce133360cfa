"""What the software generator notes over the time of a trial: connections open, completed, and their set-up time."""

import time

import numpy as np
import pytest
from packets import ACK, SYN, parse
from wire import over_a_cable, over_a_wire

from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software import clock
from ctbench.traffic.software import layout as lay

pytestmark = pytest.mark.usefixtures("compiled_generator")

SHORT = ConnectionProfile(name="short", messages=1, client_ips=100, server_ips=10)
#: Connections per second; half a second has ten steps.
LOAD, SECONDS, STEPS = 200, 0.5, 10


def test_every_step_has_its_point_and_what_was_completed_in_it() -> None:
    trial = over_a_cable(SHORT, Rate(5000), SECONDS)
    assert trial.timeline_step_s == 0.05
    assert len(trial.timeline_active) == len(trial.timeline_completed) == STEPS
    assert len(trial.timeline_connect_mean_us) == len(trial.timeline_connect_max_us) == STEPS
    # Some of those that count complete after the last step, some of those before it began earlier.
    assert sum(trial.timeline_completed) == pytest.approx(trial.completed, rel=0.1)
    assert trial.timeline_completed[0] > 0


def test_every_step_of_a_stream_has_the_packets_that_came_in_it() -> None:
    trial = over_a_cable(PacketProfile(name="stream", kind="packets"), Rate(20_000), SECONDS)
    assert len(trial.timeline_completed) == STEPS
    # A machine that stops for a step leaves it empty, and the next one has its packets.
    assert sum(trial.timeline_completed) == pytest.approx(trial.completed, rel=0.1)
    assert sum(count > 0 for count in trial.timeline_completed) > STEPS / 2


def test_the_slowest_connection_is_the_slowest_of_a_step() -> None:
    waited = []

    def stall(frame: bytes, side: str) -> list[bytes]:
        if side == "server" and parse(frame).flags == SYN | ACK:
            waited.append(side)
            if len(waited) == 130:  # about the middle of the sustain phase
                time.sleep(0.03)
        return [frame]

    trial = over_a_wire(stall, SHORT, LOAD, SECONDS)
    means = [mean for mean in trial.timeline_connect_mean_us if mean]
    longest = [most for most in trial.timeline_connect_max_us if most]
    assert trial.connect_time_us
    assert trial.connect_time_us.max == pytest.approx(max(longest), abs=0.001)
    assert max(longest) >= 30_000
    assert all(0 < mean <= most for mean, most in zip(means, longest, strict=True))


def test_a_step_in_which_no_connection_was_set_up_has_no_set_up_time() -> None:
    opened = []

    def gives_up(frame: bytes, side: str) -> list[bytes]:
        if side == "client" and parse(frame).flags == SYN:
            opened.append(frame)
        return [frame] if len(opened) < 110 else []

    trial = over_a_wire(gives_up, SHORT, LOAD, SECONDS, patience=1.5)
    assert trial.timeline_connect_mean_us[0] and trial.timeline_connect_max_us[0]
    assert trial.timeline_connect_mean_us[-1] is trial.timeline_connect_max_us[-1] is None
    assert trial.timeline_active[-1] > 0


def test_datagrams_have_no_set_up_time() -> None:
    trial = over_a_cable(SHORT.model_copy(update={"udp_percent": 100.0}), Rate(5000), 0.1)
    assert trial.established == trial.completed > 0
    assert trial.connect_time_us is None
    assert trial.timeline_connect_mean_us == trial.timeline_connect_max_us == [None, None]


def test_a_trial_that_is_shorter_than_a_step_has_no_points_and_still_its_set_up_time() -> None:
    trial = over_a_cable(SHORT, Rate(5000), 0.02)
    assert trial.timeline_active == trial.timeline_connect_mean_us == []
    assert trial.connect_time_us and trial.connect_time_us.max > 0


def test_means_are_those_of_the_step_and_not_of_the_trial() -> None:
    # A unit is 64 cycles; at 64 MHz, a microsecond.
    points = np.zeros((3, clock.POINT_COLUMNS), np.int64)
    for at, counted in {
        clock.POINT_ACTIVE: (7, 8, 9),
        lay.ALL_COMPLETED: (50, 60, 75),
        lay.TCP_ESTABLISHED: (4, 4, 6),
        lay.SETUP_SUM: (40, 40, 140),
        lay.SETUP_MAX: (20, 0, 90),
    }.items():
        points[:, at] = counted
    read = clock.timeline_of(points, 45, 64e6)
    assert read == {
        "timeline_active": [7, 8, 9],
        "timeline_completed": [5, 10, 15],
        "timeline_connect_mean_us": [10.0, None, 50.0],
        "timeline_connect_max_us": [20.0, None, 90.0],
    }
