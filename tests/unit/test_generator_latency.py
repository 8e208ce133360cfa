"""One-way latency and jitter of the messages of connections."""

import numpy as np
import pytest
from wire import Wire

from ctbench.measure.observation import Observation
from ctbench.traffic.generator import Latency
from ctbench.traffic.loads import Hold, Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.software import clock, connection
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software.memif import zeroed_memory

pytestmark = pytest.mark.usefixtures("compiled_generator")

PROFILE = ConnectionProfile(name="short", messages=3, client_ips=100, server_ips=10)
#: Of the processor's counter: a unit of the histograms is a microsecond.
HERTZ = 64e6


def measured(times: list[tuple[int, int]], *, timing: int = 1, slot: int = 0) -> dict[str, Latency]:
    """Of messages from the client that were sent and taken at these times, in units."""
    _memory, record = zeroed_memory(connection.RECORD_BYTES)
    p, s = np.zeros(lay.PARAMETERS, np.int64), np.zeros(lay.STATES, np.int64)
    counts, histograms = np.zeros(lay.COUNTERS, np.int64), np.zeros((clock.ROWS, clock.BINS), np.int64)
    p[lay.TIMES_MESSAGES], s[lay.TIMING] = 1, timing
    for sent, taken in times:
        connection.message_sent(record, slot, sent << 6, p)
        connection.message_taken(record, slot, lay.CLIENT, taken << 6, p, s, counts, histograms)
    assert not histograms[clock.CONNECT].any()
    return clock.latencies_of(histograms, counts, HERTZ)


def test_jitter_is_the_mean_difference_from_one_message_to_the_next() -> None:
    found = measured([(0, 10), (100, 130), (200, 225), (300, 325)])
    assert set(found) == {"client"}
    assert found["client"] == Latency(p50=26, p99=31, max=30, jitter=(20 + 5 + 0) / 3)
    # The clock may wrap between a message and its arrival.
    assert measured([((1 << 32) - 5, (1 << 32) + 5), (20, 30)])["client"].max == 10


@pytest.mark.parametrize(("times", "timing"), [([(0, 10)], 1), ([(0, 10), (20, 30)], 0)])
def test_one_message_and_those_outside_of_the_sustain_phase_are_no_latency(
    times: list[tuple[int, int]], timing: int
) -> None:
    assert measured(times, timing=timing) == {}


def test_one_connection_in_eight_is_timed() -> None:
    times = [(0, 10), (100, 130)]
    assert [slot for slot in range(24) if measured(times, slot=slot)] == [0, 8, 16]


@pytest.mark.parametrize("udp_percent", [0.0, 100.0])
@pytest.mark.parametrize("wait_ms", [0.0, 5.0])
def test_a_trial_has_the_latency_of_both_ways_and_not_the_wait_of_the_server(
    udp_percent: float, wait_ms: float
) -> None:
    profile = PROFILE.model_copy(update={"udp_percent": udp_percent, "server_wait_ms": wait_ms})
    with Wire() as wire:
        trial = wire.generator.run_trial(profile, Rate(100), 0.4)
    assert set(trial.latency_us) == {"client", "server"}
    for way in trial.latency_us.values():
        assert 0 < way.p50 <= way.p99 and way.max > 0 and way.jitter <= way.max
    seen = Observation(trial, {"loss_ratio": 0.0002})
    worst = max(trial.latency_us.values(), key=lambda way: way.p99)
    assert seen.values["latency_p99"] == pytest.approx(worst.p99 / 1e6)
    assert seen.values["latency_jitter"] == pytest.approx(worst.jitter / 1e6)


def test_a_closed_loop_has_a_latency_and_connections_that_are_held_have_none() -> None:
    with Wire() as wire:
        assert set(wire.generator.run_trial(PROFILE, Saturation(8), 0.2).latency_us) == {"client", "server"}
        assert wire.generator.run_trial(PROFILE, Hold(10, 1000), 0.0).latency_us == {}
