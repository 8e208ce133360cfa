"""Trials with packets: what TRex is told to send (rates, numbers of packets, phases), and what becomes of its counters,
as the real one was recorded: loss, under-generation, its own losses, latency."""

import copy
import json
from typing import Any

import pytest
from trex_recordings import DATA

from ctbench.traffic.generator import Trial
from ctbench.traffic.profiles import IMIX, PacketProfile, load_profile
from ctbench.traffic.trex.stl import (
    LATENCY_PPS,
    SETTLE_S,
    Readings,
    StreamReading,
    latency_of,
    notes,
    spec_of,
    trial_of,
)

ONE = PacketProfile(name="one", kind="packets", flows=1000)
BOTH = ONE.model_copy(update={"directions": "both"})
MIX = ONE.model_copy(update={"frame_bytes": "imix"})


@pytest.mark.parametrize("profile", [ONE, BOTH, MIX])
@pytest.mark.parametrize("load", [50, 2_000, 1_000_000])
def test_all_streams_together_are_the_load_latency_packets_included(profile: PacketProfile, load: float) -> None:
    spec = spec_of(profile, load, 2)
    assert sum(stream.pps for stream in spec.streams) == pytest.approx(load)
    assert spec.intended == pytest.approx(2 * load, abs=len(spec.streams))


def test_latency_packets_are_few() -> None:
    for load in (100, 100_000):
        (latency,) = (stream for stream in spec_of(ONE, load, 1).streams if stream.is_latency)
        assert latency.pps == min(LATENCY_PPS, load / 10)


def test_both_directions_have_half_of_the_load_each() -> None:
    spec = spec_of(BOTH, 10_000, 1)
    assert spec.senders == ("client", "server")
    assert [sum(stream.packets for stream in spec.of(side)) for side in spec.senders] == [5000, 5000]


def test_servers_begin_when_each_client_has_sent_and_all_reach_the_sustain_phase_together() -> None:
    spec = spec_of(BOTH, 10_000, 1)
    (client, _), (server, _) = spec.of("client"), spec.of("server")
    assert client.pps * server.delay_s > BOTH.flows
    for stream in (client, server):
        assert stream.delay_s + stream.warm_up_packets / stream.pps == pytest.approx(spec.warm_up_s, abs=0.001)
    assert {stream.delay_s for stream in spec.streams if stream.is_latency} == {spec.warm_up_s}


@pytest.mark.parametrize("load", [1000, 10_000])
def test_every_flow_is_sent_before_anything_counts(load: float) -> None:
    spec = spec_of(ONE, load, 1)
    assert sum(stream.warm_up_packets for stream in spec.streams) > ONE.flows
    assert spec.warm_up_s >= SETTLE_S


def test_imix_is_a_stream_for_each_size_in_its_share() -> None:
    spec = spec_of(MIX, 13_000, 1)
    sizes = {stream.frame_bytes + 4: stream.packets for stream in spec.streams if not stream.is_latency}
    shares = sum(share for _, share in IMIX)
    assert sizes == {size: 12_000 * share // shares for size, share in IMIX}
    (latency,) = (stream for stream in spec.streams if stream.is_latency)
    assert latency.frame_bytes == 60


def test_each_size_begins_at_another_flow_so_that_together_they_soon_have_sent_each() -> None:
    frames = {stream.walk.frame[26:36] for stream in spec_of(MIX, 10_000, 1).streams if not stream.is_latency}
    assert len(frames) == len(IMIX)


@pytest.mark.parametrize("name", ["udp-64-10k", "udp-imix-10k", "udp-64-10k-both", "udp-64-10k-vlan", "udp-9018"])
def test_the_shipped_profiles_fit_into_a_line_of_moderate_length(name: str) -> None:
    """Each trial sends it to TRex; lists of flows would be megabytes."""
    profile = load_profile(name)
    assert isinstance(profile, PacketProfile)
    assert len(str([stream.as_json() for stream in spec_of(profile, 100_000, 1).streams])) < 200_000


def test_the_record_says_what_latency_and_reordering_rest_on() -> None:
    text = " ".join(notes(BOTH))
    assert "latency" in text
    assert "reordered" in text
    assert "translated" in text
    assert "translated" not in " ".join(notes(ONE))


def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / f"stl-{name}.json").read_text())
    return content


def trial(recording: dict[str, Any]) -> Trial:
    spec = spec_of(PacketProfile(**recording["profile"]), recording["load"], recording["duration_s"])
    samples = tuple(StreamReading(**sample) for sample in recording["samples"])
    zero, begin, end = (StreamReading(**recording[name]) for name in ("zero", "begin", "end"))
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
    recording["end"]["dropped"] += 1000
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
