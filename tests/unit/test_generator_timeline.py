"""What the software generator notes over the time of a trial: connections open, completed, their set-up time, and the
one-way latency and jitter of their messages."""

import time

import numpy as np
import pytest
from kernel_parts import kernel_parts
from packets import ACK, SYN, parse
from wire import Wire, over_a_cable, over_a_wire, watching

from ctbench.measure.observation import Observation
from ctbench.traffic.generator import Latency
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctgen import clock
from ctgen import layout as lay
from ctgen.engine import Run

pytestmark = pytest.mark.usefixtures("compiled_generator")

SHORT = ConnectionProfile(name="short", messages=1, client_ips=100, server_ips=10)
#: Connections per second; half a second has ten steps.
LOAD, SECONDS, STEPS = 200, 0.5, 10


@pytest.mark.parametrize("profile", [SHORT, PacketProfile(name="stream", kind="packets")], ids=lambda each: each.name)
def test_every_step_has_its_point_and_what_was_completed_in_it(profile: Profile) -> None:
    trial = over_a_cable(profile, Rate(5000), SECONDS)
    assert trial.timeline_step_s == 0.05
    assert len(trial.timeline_active) == len(trial.timeline_completed) == STEPS
    assert len(trial.timeline_connect_max_us) == (STEPS if profile is SHORT else 0)
    # Some of those that count complete after the last step, some of those before it began earlier.
    assert sum(trial.timeline_completed) == pytest.approx(trial.completed, rel=0.25)
    # A machine that stops for a step leaves it empty, and the next one has its packets.
    assert sum(count > 0 for count in trial.timeline_completed) > STEPS / 2


def test_the_slowest_connection_is_the_slowest_of_a_step() -> None:
    waited = []

    def stall(frame: bytes, side: str) -> list[bytes]:
        if side == "server" and parse(frame).flags == SYN | ACK:
            waited.append(side)
            if len(waited) == 70:  # about the middle of the sustain phase
                time.sleep(0.03)
        return [frame]

    trial = over_a_wire(stall, SHORT, LOAD, SECONDS)
    means = [mean for mean in trial.timeline_connect_mean_us if mean]
    longest = [most for most in trial.timeline_connect_max_us if most]
    assert trial.connect_time_us.max == pytest.approx(max(longest), abs=0.001)
    assert max(longest) >= 30_000
    assert all(0 < mean <= most for mean, most in zip(means, longest, strict=True))


def test_a_step_in_which_no_connection_was_set_up_has_no_set_up_time() -> None:
    opened = []

    def gives_up(frame: bytes, side: str) -> list[bytes]:
        if side == "client" and parse(frame).flags == SYN:
            opened.append(frame)
        return [frame] if len(opened) < 55 else []

    trial = over_a_wire(gives_up, SHORT, LOAD, SECONDS, patience=0.75)
    assert trial.timeline_connect_mean_us[0] and trial.timeline_connect_max_us[0]
    assert trial.timeline_connect_mean_us[-1] is trial.timeline_connect_max_us[-1] is None
    assert trial.timeline_active[-1] > 0


def test_datagrams_have_no_set_up_time_and_a_short_trial_has_no_points() -> None:
    trial = over_a_cable(SHORT.model_copy(update={"udp_percent": 100.0}), Rate(5000), 0.1)
    assert trial.established == trial.completed > 0
    assert trial.connect_time_us is None
    assert trial.timeline_connect_mean_us == trial.timeline_connect_max_us == [None, None]
    trial = over_a_cable(SHORT, Rate(5000), 0.02)
    assert trial.timeline_active == trial.timeline_connect_mean_us == []
    assert trial.connect_time_us and trial.connect_time_us.max > 0


def test_means_are_those_of_the_step_and_not_of_the_trial() -> None:
    # A unit is 64 cycles; at 64 MHz, a microsecond.
    points = (lay.Point * 3)()
    for point, active, completed, established, total, most in zip(
        points, (7, 8, 9), (50, 60, 75), (4, 4, 6), (40, 40, 140), (20, 0, 90), strict=True
    ):
        point.active, point.counts.all_completed, point.counts.tcp_established = active, completed, established
        point.counts.setup_sum, point.counts.setup_max = total, most
    read = clock.timeline_of(points, 45, 64e6)
    assert read == {
        "timeline_active": [7, 8, 9],
        "timeline_completed": [5, 10, 15],
        "timeline_connect_mean_us": [10.0, None, 50.0],
        "timeline_connect_max_us": [20.0, None, 90.0],
    }


PROFILE = ConnectionProfile(name="short", messages=3, client_ips=100, server_ips=10)
#: Of the processor's counter: a unit of the histograms is a microsecond.
HERTZ = 64e6


#: The flag of a connection whose messages are timed, as kernel/connection.h has it.
TIMED = 16


def measured(times: list[tuple[int, int]], *, timing: int = 1, flags: int = TIMED) -> dict[str, Latency]:
    """Of messages from the client that were sent and taken at these times, in units."""
    of, connection = lay.Run(), lay.Connection(flags=flags)
    of.state.timing = timing
    for sent, taken in times:
        kernel_parts().message_sent(connection, sent << 6)
        kernel_parts().message_taken(of, connection, lay.CLIENT, taken << 6)
    histograms = np.ctypeslib.as_array(of.histograms)
    assert not histograms[lay.CONNECT].any()
    return clock.latencies_of(histograms, of.counts, HERTZ)


def test_jitter_is_the_mean_difference_of_messages() -> None:
    found = measured([(0, 10), (100, 130), (200, 225), (300, 325)])
    assert set(found) == {"client"}
    assert found["client"] == Latency(p50=26, p90=30, p99=30, max=30, jitter=(20 + 5 + 0) / 3)
    # The clock may wrap between a message and its arrival.
    assert measured([((1 << 32) - 5, (1 << 32) + 5), (20, 30)])["client"].max == 10
    assert measured([(0, 10), (100, 130)], flags=0) == {}


def test_one_connection_in_eight_has_its_messages_timed_and_the_others_their_replies() -> None:
    runs: list[Run] = []
    with watching(runs.append):
        trial = over_a_cable(SHORT, Rate(5000), 0.4)
    timed, replies = runs[0].counts.timed[lay.CLIENT], int(runs[0].times[lay.FIRST_BYTE].sum())
    assert timed == pytest.approx(trial.completed / 8, rel=0.1)
    assert replies == pytest.approx(trial.completed * 7 / 8, rel=0.02)


def test_replies_are_timed_from_the_syn_on() -> None:
    def delays(frame: bytes, _side: str) -> list[bytes]:
        time.sleep(0.002)
        return [frame]

    trial = over_a_wire(delays, SHORT.model_copy(update={"messages": 2}), 20, 0.3)
    # SYN and SYN-ACK; then the first request and its reply; then the others.
    ends = ((trial.connect_time_us, 4_000), (trial.first_byte_us, 8_000), (trial.last_byte_us, 12_000))
    for times, least_us in ends:
        assert times and times.p99 and least_us <= times.p50 <= times.p99 <= times.max
    assert trial.first_byte_us and trial.last_byte_us and trial.first_byte_us.p50 < trial.last_byte_us.p50


@pytest.mark.parametrize(("times", "timing"), [([(0, 10)], 1), ([(0, 10), (20, 30)], 0)])
def test_one_message_and_those_out_of_the_sustain_phase_count_not(times: list[tuple[int, int]], timing: int) -> None:
    assert measured(times, timing=timing) == {}


@pytest.mark.parametrize("udp_percent", [0.0, 100.0])
@pytest.mark.parametrize("wait_ms", [0.0, 5.0])
def test_a_trial_has_the_latency_of_both_ways_without_the_servers_wait(udp_percent: float, wait_ms: float) -> None:
    profile = PROFILE.model_copy(update={"udp_percent": udp_percent, "server_wait_ms": wait_ms})
    with Wire() as wire:
        made = (wire.generator.run_trial(profile, Rate(100), 0.4) for _ in range(5))
        trial = next(each for each in made if len(each.latency_us) > 1)  # others may have the CPU for most of one
    assert set(trial.latency_us) == {"client", "server"}
    for way in trial.latency_us.values():
        assert 0 < way.p50 <= way.p99 and way.max > 0 and way.jitter <= way.max
    seen = Observation(trial, {"loss_ratio": 0.0002})
    worst = max(trial.latency_us.values(), key=lambda way: way.p99)
    assert seen.values["latency_p99"] == pytest.approx(worst.p99 / 1e6)
    assert seen.values["latency_jitter"] == pytest.approx(worst.jitter / 1e6)
