"""What becomes of TRex' counters, as the real one was recorded: loss, under-generation, its own losses, latency."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import PacketProfile
from ctbench.traffic.trex.stl import Reading, Readings, latency_of, spec_of, trial_of

pytestmark = pytest.mark.unit

RECORDINGS = Path(__file__).parents[1] / "data" / "trex"


def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RECORDINGS / f"stl-{name}.json").read_text())
    return content


def trial(recording: dict[str, Any]) -> Trial:
    spec = spec_of(PacketProfile(**recording["profile"]), recording["load"], recording["duration_s"])
    samples = tuple(Reading.of(sample) for sample in recording["samples"])
    zero, begin, end = (Reading.of(recording[name]) for name in ("zero", "begin", "end"))
    return trial_of(spec, Readings(zero, begin, (*samples, end), end, 0.25), recording["load"], 3.0)


def test_what_nobody_lost_has_all_come_out_with_the_bytes_that_were_sent() -> None:
    seen = trial(recorded("light"))
    assert (seen.unit, seen.generator_limited, seen.unexpected) == ("packets", "", {})
    assert seen.intended == seen.attempted == seen.completed == pytest.approx(40_000, abs=2)
    assert seen.tx_packets == {"client": seen.intended, "server": 0}
    assert seen.rx_packets == {"client": 0, "server": seen.intended}
    sizes = {60: 7, 590: 4, 1514: 1}
    mean = sum(size * share for size, share in sizes.items()) / sum(sizes.values())
    latency = 2000  # of the smallest size
    assert seen.tx_bytes["client"] == pytest.approx((seen.intended - latency) * mean + latency * 60, rel=1e-3)
    assert seen.rx_bytes["server"] == seen.tx_bytes["client"]


def test_the_packets_of_the_warm_up_are_only_in_the_totals_and_the_timeline_adds_up() -> None:
    seen = trial(recorded("router"))
    assert seen.tx_packets == {"client": 20_000, "server": 20_000}
    assert seen.total_tx_packets["client"] > seen.total_tx_packets["server"] > 20_000
    assert sum(seen.timeline_completed) == seen.completed
    assert seen.timeline_step_s == 0.25


def test_a_loss_is_put_down_to_its_direction() -> None:
    seen = trial(recorded("loss-from-server"))
    assert seen.directions["client"].loss_ratio == 0
    assert seen.directions["server"].loss_ratio == pytest.approx(0.02, abs=0.005)
    assert seen.completed == seen.attempted - (20_000 - seen.rx_packets["client"])
    assert seen.generator_limited == ""


def test_what_trex_did_not_send_in_time_limits_the_trial() -> None:
    seen = trial(recorded("under-generation"))
    assert seen.attempted < 0.5 * seen.intended
    assert seen.completed <= seen.attempted
    assert f"sent only {seen.attempted} of {seen.intended} packets" in seen.generator_limited


def test_frames_that_trex_itself_did_not_take_or_recognise_limit_the_trial() -> None:
    seen = trial(recorded("ring-overrun"))
    assert seen.intended == seen.attempted > seen.completed
    assert "receive ring full" in seen.generator_limited
    seen = trial(recorded("unrecognised"))
    assert seen.unexpected["unrecognised"] > 0.9 * seen.attempted
    assert "did not recognise" in seen.generator_limited


def test_packets_that_overran_trex_before_the_sustain_phase_do_not_matter() -> None:
    recording = recorded("router")
    for reading in (recording["begin"], *recording["samples"], recording["end"]):
        reading["ports"][1]["rx_missed_errors"] += 67
    assert trial(recording).generator_limited == ""


def test_what_trex_threw_away_at_its_full_ring_was_not_attempted() -> None:
    """It counts a packet as sent before its card has it."""
    recording = recorded("router")
    recording["end"]["ports"][0]["tx_good_packets"] -= 1000
    recording["end"]["global"]["m_total_queue_drop"] += 1000
    seen = trial(recording)
    assert seen.directions["client"].attempted == 19_000
    assert "1000 met a full ring of its own" in seen.generator_limited


def test_a_rate_that_was_too_low_limits_the_trial_even_when_all_was_sent_in_the_end() -> None:
    recording = recorded("router")
    slower = copy.deepcopy(recording)
    for reading in (*slower["samples"], slower["end"]):
        reading["from_s"] *= 1.02
        reading["to_s"] *= 1.02
    assert trial(recording).generator_limited == ""
    assert "packets/s" in trial(slower).generator_limited

    for reading in recording["samples"]:  # one that took long is not held against TRex
        reading["to_s"] += 0.05
    assert trial(recording).generator_limited == ""


def test_a_trial_of_which_nothing_was_sent_is_one() -> None:
    recording = recorded("router")
    for name in ("begin", "end"):
        recording[name] = copy.deepcopy(recording["zero"])
    recording["samples"] = []
    seen = trial(recording)
    assert (seen.attempted, seen.completed) == (0, 0)
    assert "sent only 0 of 40000" in seen.generator_limited


def test_latency_is_that_of_each_direction() -> None:
    for direction in trial(recorded("router")).directions.values():
        latency = direction.latency_us
        assert latency is not None
        assert 0 < latency.p50 <= latency.p99 <= latency.max


def histogram(bins: dict[str, int], total_max: float = 1e6) -> dict[str, Any]:
    return {"latency": {"histogram": bins, "total_max": total_max, "jitter": 7}}


@pytest.mark.parametrize(
    ("bins", "total_max", "expected"),
    [
        ({"0": 1, "10": 48, "30": 50, "200": 1}, 1e6, (40, 40, 1e6)),  # the upper end of its bin
        ({"0": 60, "90": 30, "3000": 10}, 1e6, (10, 4000, 1e6)),
        ({"40": 100}, 43, (43, 43, 43)),  # none is above the longest latency
        # TRex leaves the first packets out of its maximum; this is from a real trial.
        ({"900": 254, "1000": 115, "2000": 1, "4000": 2}, 1734, (1000, 2000, 4000)),
    ],
)
def test_percentiles_are_upper_ends_of_bins_and_not_above_the_longest(
    bins: dict[str, int], total_max: float, expected: tuple[float, ...]
) -> None:
    latency = latency_of(histogram(bins, total_max))
    assert latency is not None
    assert (latency.p50, latency.p99, latency.max) == expected


def test_without_latency_packets_no_latency_is_made_up() -> None:
    assert latency_of({}) is None
    assert latency_of(histogram({})) is None
    assert latency_of(histogram({"10": 1})) is None
