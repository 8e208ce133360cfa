"""What TRex is told to send in a trial with packets: rates, numbers of packets, phases."""

import pytest

from ctbench.traffic.profiles import IMIX, PacketProfile, load_profile
from ctbench.traffic.trex.stl import LATENCY_PPS, SETTLE_S, notes, spec_of

pytestmark = pytest.mark.unit

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


def test_streams_are_told_apart_by_their_group() -> None:
    groups = [stream.group for stream in spec_of(BOTH, 10_000, 1).streams]
    assert len(set(groups)) == len(groups)


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
