"""Packets with TRex: the flows that it is told to send are those of the software generator, with right checksums;
rates, numbers and phases; and what becomes of its counters, as the real one was recorded."""

import copy
import json
import struct
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packets import checksums_are_right, internet_checksum, parse
from trex_recordings import DATA
from wire import Wire

from ctbench.base.errors import ConfigError
from ctbench.dut.base import DutCounts
from ctbench.measure.observation import Observation
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import IMIX, PacketProfile
from ctbench.traffic.trex import client_worker, stl
from ctbench.traffic.trex.latency import latency_of_stream
from ctbench.traffic.trex.stl_flows import LONGEST_LIST, walk

Instruction = dict[str, Any]


class _Variable:
    """A variable that counts or walks through a list; before the first packet it stands one step before its start."""

    def __init__(self, instruction: Instruction) -> None:
        self.size = instruction["size"]
        self.next = instruction.get("next_var")
        self._list = instruction.get("value_list")
        self._step = instruction["step"] if instruction["op"] == "inc" else -instruction["step"]
        self._least = 0 if self._list else instruction["min_value"]
        most = len(self._list) - 1 if self._list else instruction["max_value"]
        self._range = most - self._least + 1
        assert self._range % abs(self._step) == 0, "TRex would make the range longer"
        begin = 0 if self._list else instruction["init_value"]
        self._place = (begin - self._least - self._step) % self._range

    @property
    def value(self) -> int:
        return int(self._list[self._place]) if self._list else self._least + self._place

    def advance(self) -> bool:
        """Take a step; whether it began again."""
        before, self._place = self._place, (self._place + self._step) % self._range
        return self._place < before if self._step > 0 else self._place > before


def packets_of(frame: bytes, program: list[Instruction]) -> Iterator[bytes]:
    """The frames that TRex sends of a template and a program, for ever."""
    declared = [step for step in program if step["do"] == "STLVmFlowVar"]
    variables = {step["name"]: _Variable(step) for step in declared}
    followers = {variable.next for variable in variables.values() if variable.next}
    for name in followers:  # moves for the first time when the one before it has begun
        variables[name].advance()
    first = True
    while True:
        for name, variable in variables.items():
            if name in followers:
                continue
            began_again = variable.advance()
            if began_again and variable.next and not first:
                variables[variable.next].advance()
        first = False
        sent = bytearray(frame)
        for step in program:
            _apply(step, variables, sent)
        yield bytes(sent)


def _apply(step: Instruction, variables: dict[str, _Variable], sent: bytearray) -> None:
    if step["do"] == "STLVmWrFlowVar":
        variable = variables[step["fv_name"]]
        at = step["pkt_offset"]
        sent[at : at + variable.size] = variable.value.to_bytes(variable.size, "big")
    elif step["do"] == "STLVmWrMaskFlowVar":
        value = (variables[step["fv_name"]].value + step["add_value"]) & 0xFFFFFFFF
        value = value << step["shift"] if step["shift"] > 0 else value >> -step["shift"]
        at, size, mask = step["pkt_offset"], step["pkt_cast_size"], step["mask"]
        was = int.from_bytes(sent[at : at + size], "big")
        sent[at : at + size] = ((was & ~mask | value & mask) & (1 << 8 * size) - 1).to_bytes(size, "big")
    elif step["do"] == "STLVmFixIpv4":
        at = step["offset"]
        struct.pack_into("!H", sent, at + 10, 0)
        struct.pack_into("!H", sent, at + 10, internet_checksum(bytes(sent[at : at + 20])))


#: What is sent is compared, and not when.
pytestmark = pytest.mark.beside_others

#: Address and port of the source, address and port of the destination.
Ends = tuple[str, int, str, int]


def profile(**settings: Any) -> PacketProfile:
    return PacketProfile.model_validate({"name": "mine", "kind": "packets", **settings})


def sent(which: PacketProfile, count: int, sender: str = "client", size: int = 64, **more: Any) -> list[bytes]:
    """The first frames, without a VLAN tag."""
    how = walk(which, sender, size, **more)
    frames = islice(packets_of(how.frame, how.program), count)
    return [frame[:12] + frame[16:] if which.vlan else frame for frame in frames]


def ends(frame: bytes) -> Ends:
    packet = parse(frame)
    return packet.source, packet.source_port, packet.destination, packet.destination_port


def swapped(flow: Ends) -> Ends:
    return flow[2], flow[3], flow[0], flow[1]


#: Counters walk through the first, lists through the second.
ALIGNED = profile(flows=23, client_ip="16.0.0.0", client_ips=4, server_ip="48.0.0.0", server_ips=2)
ODD = profile(flows=23, client_ip="16.0.0.77", client_ips=5, server_ip="192.168.255.254", server_ips=3)


@pytest.mark.usefixtures("compiled_generator")
@pytest.mark.parametrize("which", [ALIGNED, ODD, profile(flows=3), profile(flows=1)])
def test_the_flows_are_those_of_the_software_generator_in_its_order(which: PacketProfile) -> None:
    theirs: list[bytes] = []

    def listen(frame: bytes, _came_from: str) -> list[bytes]:
        theirs.append(frame)
        return [frame]

    with Wire(listen) as wire:
        wire.generator.run_trial(which, Rate(400), 0.5)
    assert [ends(frame) for frame in sent(which, 2 * which.flows)] == [
        ends(frame) for frame in theirs[: 2 * which.flows]
    ]


@settings(deadline=None)
@given(st.data())
def test_every_flow_is_sent_once_before_any_comes_again(data: st.DataObject) -> None:
    def first_and_count(net: int) -> tuple[str, int]:
        count = data.draw(st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 4, 16, 64])))
        begin = data.draw(st.one_of(st.just(0), st.integers(0, 255)))
        return f"{net}.0.0.{begin}", count

    (client_ip, client_ips), (server_ip, server_ips) = first_and_count(16), first_and_count(200)
    flows = data.draw(st.integers(1, 150))
    which = profile(
        flows=flows, client_ip=client_ip, client_ips=client_ips, server_ip=server_ip, server_ips=server_ips,
        flow_order=data.draw(st.sampled_from(["sequential", "random"])), vlan=data.draw(st.sampled_from([0, 100])),
        directions=data.draw(st.sampled_from(["both", "each"])),
    )  # fmt: skip
    sender = data.draw(st.sampled_from(["client", "server"]))
    start = data.draw(st.sampled_from([0.0, 0.3, 0.99]))
    frames = sent(which, 2 * flows, sender, start=start)
    walked = [ends(frame) for frame in frames]
    assert len(set(walked)) == flows
    assert walked[:flows] == walked[flows:]
    assert all(checksums_are_right(frame) for frame in frames)
    clients = {ends(frame) for frame in sent(which, flows)}
    same_ports = which.directions == "each"
    servers = {(flow[2], flow[1], flow[0], flow[3]) if same_ports else swapped(flow) for flow in clients}
    assert set(walked) == (clients if sender == "client" else servers)


def test_a_vlan_tag_comes_on_top_of_the_size_and_a_random_order_jumps() -> None:
    frame = walk(profile(vlan=100), "client", 64).frame
    assert frame[12:16] == b"\x81\x00\x00\x64"
    assert len(frame) == 64
    which = profile(flows=1000, client_ips=254, flow_order="random")
    numbers = [int(ends(frame)[0].rpartition(".")[2]) for frame in sent(which, 100)]
    assert sum(abs(one - other) > 1 for one, other in pairwise(numbers)) > 90


@pytest.mark.parametrize(
    "more", [{"client_ip": "16.0.0.1"}, {"client_ips": 100}, {"flow_order": "random", "flows": 99_999}]
)
def test_more_flows_than_a_list_holds_want_addresses_that_are_bits(more: dict[str, Any]) -> None:
    fine = {"flows": LONGEST_LIST + 1, "client_ip": "16.0.0.0", "client_ips": 256, "server_ip": "48.0.0.0"}
    fine["server_ips"] = 256
    walk(profile(**fine), "client", 64)
    with pytest.raises(ConfigError, match="powers of two"):
        walk(profile(**{**fine, **more}), "client", 64)


ONE = PacketProfile(name="one", kind="packets", flows=1000)
BOTH = ONE.model_copy(update={"directions": "both"})
MIX = ONE.model_copy(update={"frame_bytes": "imix"})


def test_latency_packets_are_few_and_imix_is_a_stream_for_each_size_in_its_share() -> None:
    for load in (100, 100_000):
        (latency,) = (stream for stream in stl.spec_of(ONE, load, 1).streams if stream.is_latency)
        assert latency.pps == min(stl.LATENCY_PPS, load / 10)
    spec = stl.spec_of(MIX, 13_000, 1)
    sizes = {stream.frame_bytes + 4: stream.packets for stream in spec.streams if not stream.is_latency}
    shares = sum(share for _, share in IMIX)
    assert sizes == {size: 12_000 * share // shares for size, share in IMIX}
    (latency,) = (stream for stream in spec.streams if stream.is_latency)
    assert latency.frame_bytes == 60
    frames = {stream.walk.frame[26:36] for stream in stl.spec_of(MIX, 10_000, 1).streams if not stream.is_latency}
    assert len(frames) == len(IMIX)


def test_both_directions_have_half_of_the_load_and_reach_the_sustain_phase_together() -> None:
    spec = stl.spec_of(BOTH, 10_000, 1)
    assert spec.senders == [0, 1]
    assert [sum(stream.packets for stream in spec.of(port)) for port in spec.senders] == [5000, 5000]
    (client, _), (server, _) = spec.of(0), spec.of(1)
    assert client.pps * server.delay_s > BOTH.flows
    for stream in (client, server):
        assert stream.delay_s + stream.warm_up_packets / stream.pps == pytest.approx(spec.warm_up_s, abs=0.001)
    assert {stream.delay_s for stream in spec.streams if stream.is_latency} == {spec.warm_up_s}


def test_each_pair_of_ports_has_an_equal_share_and_all_flows_on_addresses_of_its_own() -> None:
    one, spec = stl.spec_of(BOTH, 5_000, 1), stl.spec_of(BOTH, 10_000, 1, pairs=2)
    assert spec.senders == [0, 1, 2, 3] and spec.warm_up_s == one.warm_up_s
    assert [each.as_json() for each in one.streams] == [each.as_json() for each in spec.streams[:4]]
    for first, second in zip(one.streams, spec.streams[4:], strict=True):
        assert (second.port, second.group) == (first.port + 2, first.group + 4)
        assert (second.pps, second.packets) == (first.pps, first.packets)
        here, there = (list(islice(packets_of(each.walk.frame, each.walk.program), 200)) for each in (first, second))
        assert second.is_latency or all(map(checksums_are_right, there))
        moved = [
            [str(each).replace("16.0.", "16.1.").replace("48.0.", "48.1.") for each in ends(frame)] for frame in here
        ]
        assert [[str(each) for each in ends(frame)] for frame in there] == moved


def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / f"stl-{name}.json").read_text())
    return content


def trial(recording: dict[str, Any], late: stl.StreamReading | None = None) -> Trial:
    how = recording["load"], recording["duration_s"], recording.get("pairs", 1)
    spec = stl.spec_of(PacketProfile(**recording["profile"]), *how)
    samples = tuple(stl.StreamReading(**sample) for sample in recording["samples"])
    zero, begin, end = (stl.StreamReading(**recording[name]) for name in ("zero", "begin", "end"))
    return stl.trial_of(spec, stl.Readings(zero, begin, (*samples, end), end, 0.25, late), recording["load"], 3.0)


def test_what_was_not_lost_came_out_and_a_loss_is_put_down_to_its_direction() -> None:
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
    seen = trial(recorded("loss-from-server"))
    assert seen.directions["client"].loss_ratio == 0
    assert seen.directions["server"].loss_ratio == pytest.approx(0.02, abs=0.005)
    assert seen.completed == seen.attempted - (20_000 - seen.rx_packets["client"])
    assert seen.generator_limited == ""


def test_a_loss_of_one_pair_of_ports_is_put_down_to_it() -> None:
    seen = trial(recorded("pairs"))
    assert (seen.unit, seen.generator_limited, seen.unexpected) == ("packets", "", {})
    first, second = seen.port_pairs
    assert (first.attempted, first.lost, second.attempted) == (3000, 0, 3000)
    assert second.lost == seen.intended - seen.completed > 0
    assert seen.directions["server"].loss_ratio == 0
    assert seen.directions["client"].intended - seen.directions["client"].received == second.lost
    assert trial(recorded("router")).port_pairs == []  # one pair is what the trial says
    # Latency is that of the slowest pair.
    latency = [stl.latency_of_stream(recorded("pairs")["end"]["groups"][group]) for group in ("2", "6")]
    assert seen.directions["client"].latency_us == max(filter(None, latency), key=lambda each: each.p99)


def test_packets_that_come_out_at_another_pair_are_lost_and_said() -> None:
    recording = recorded("pairs")
    before, moved = trial(recording), 0
    for reading in (recording["begin"], *recording["samples"], recording["end"]):
        counted = reading["groups"]["3"]  # from the servers of the first pair
        moved = counted["rx_pkts"] // 10
        counted["rx_pkts"] -= moved
        for port, change in ((0, -moved), (2, moved)):
            reading["ports"][port]["rx_good_packets"] += change
    assert moved > 100
    seen = trial(recording)
    assert (seen.completed, seen.unexpected) == (before.completed - moved, {"unrecognised": moved})
    assert [pair.lost for pair in seen.port_pairs] == [moved, before.port_pairs[1].lost]
    assert seen.generator_limited == f"{moved} frames came back that TRex did not recognise as those that it had sent"
    assert seen.total_rx_packets == before.total_rx_packets


def test_of_a_stream_counts_what_the_other_port_of_its_pair_took() -> None:
    """Of group 5, which port 6 sends and 7 takes, 30 packets came out at port 3, and 2 at the port that had sent
    them."""
    sent, took = {2: 0, 3: 0, 6: 100, 7: 0, "total": 100}, {2: 0, 3: 30, 6: 2, 7: 60, "total": 92}
    stats = {"flow_stats": {5: {"tx_pkts": sent, "rx_pkts": took}}, "latency": {5: {"latency": {"jitter": 8}}}}
    client, session = Mock(), client_worker.Session("", "")
    client.pgid_stats.get_stats.return_value = stats
    client.get_xstats = lambda port: {"rx_good_packets": port, "of_its_driver": 1}
    client.global_stats.latest_stats = {"m_total_queue_drop": 4}
    session.client, session.ports = client, [2, 3, 6, 7]
    session.memory["groups"] = {5: 2, 9: 3}
    answer = client_worker.stl_stats(session)
    assert answer["groups"] == {5: {"tx_pkts": 100, "rx_pkts": 60, "latency": {"jitter": 8}}}
    assert answer["ports"] == [{"rx_good_packets": port} for port in session.ports]
    assert answer["dropped"] == 4
    client.pgid_stats.get_stats.assert_called_once_with([5, 9], relative=False)


def test_the_packets_of_the_warm_up_are_only_in_the_totals_and_the_timeline_adds_up() -> None:
    seen = trial(recorded("router"))
    assert seen.tx_packets == {"client": 20_000, "server": 20_000}
    assert seen.total_tx_packets["client"] > seen.total_tx_packets["server"] > 20_000
    assert sum(seen.timeline_completed) == seen.completed
    assert seen.timeline_step_s == 0.25


def test_what_trex_did_not_send_in_time_limits_the_trial_and_nothing_sent_is_one() -> None:
    seen = trial(recorded("under-generation"))
    assert seen.attempted < 0.5 * seen.intended
    assert seen.completed <= seen.attempted
    assert f"sent only {seen.attempted} of {seen.intended} packets" in seen.generator_limited
    recording = recorded("router")
    for name in ("begin", "end"):
        recording[name] = copy.deepcopy(recording["zero"])
    recording["samples"] = []
    seen = trial(recording)
    assert (seen.attempted, seen.completed) == (0, 0)
    assert "sent only 0 of 40000" in seen.generator_limited


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rx_good_packets", -5, "reports -5 rx_good_packets of port 1"),
        ("tx_good_packets", 0, "reports 0 tx_good_packets of port 1 after"),
        ("rx_good_packets", 1 << 63, "rx_good_packets of port 1 more within"),
    ],
)
def test_a_counter_that_cannot_be_makes_the_trial_invalid_and_is_named(name: str, value: int, said: str) -> None:
    recording = recorded("router")
    recording["end"]["ports"][1][name] = value
    seen = trial(recording)
    assert seen.generator_limited.startswith("TRex: it ") and said in seen.generator_limited
    assert (seen.completed, set(seen.total_rx_packets.values())) == (0, {0})


def test_frames_that_trex_did_not_take_or_recognise_limit_the_trial() -> None:
    seen = trial(recorded("ring-overrun"))
    assert seen.intended == seen.attempted > seen.completed
    assert "receive ring full" in seen.generator_limited
    seen = trial(recorded("unrecognised"))
    assert seen.unexpected["unrecognised"] > 0.9 * seen.attempted
    assert "did not recognise" in seen.generator_limited


@pytest.mark.parametrize("name", ["rx_missed_errors", "rx_mbuf_allocation_errors", "rx_errors"])
def test_frames_that_a_card_did_not_take_limit_the_trial_unless_before_the_sustain_phase(name: str) -> None:
    recording = recorded("router")
    for reading in (recording["begin"], *recording["samples"], recording["end"]):
        reading["ports"][1][name] += 67
    assert trial(recording).generator_limited == ""
    recording["end"]["ports"][1][name] += 68
    assert trial(recording).generator_limited.startswith("68 frames came back")


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

    for reading in recording["samples"]:  # one that took long is not counted as a fault of TRex
        reading["to_s"] += 0.05
    assert trial(recording).generator_limited == ""


def test_latency_is_that_of_each_direction_and_none_is_made_up() -> None:
    for direction in trial(recorded("router")).directions.values():
        latency = direction.latency_us
        assert 0 < latency.p50 <= latency.p99 <= latency.max
    assert latency_of_stream({}) is None
    assert latency_of_stream(histogram({})) is None
    assert latency_of_stream(histogram({"10": 1})) is None


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
    latency = latency_of_stream(histogram(bins, total_max))
    assert (latency.p50, latency.p99, latency.max) == expected


def test_what_the_dut_sends_after_the_end_is_lost_and_has_arrived_all_the_same() -> None:
    recording = recorded("loss-from-server")
    before = trial(recording)
    later, latest = copy.deepcopy(recording["end"]), copy.deepcopy(recording["end"])
    later["ports"][0]["rx_good_packets"] += 300
    latest["ports"][0] |= {"rx_good_packets": later["ports"][0]["rx_good_packets"] + 90, "rx_missed_errors": 10}
    readings = iter([stl.StreamReading(**each) for each in (later, latest, latest, latest)])
    late = stl._when_quiet(stl.StreamReading(**recording["end"]), lambda: next(readings), lambda _: None)
    after = trial(recording, late)
    assert (after.completed, after.unexpected) == (before.completed, before.unexpected)
    grown = {side: after.total_rx_packets[side] - count for side, count in before.total_rx_packets.items()}
    assert grown == {"client": 400, "server": 0}
    assert len(list(readings)) == 1


@pytest.mark.parametrize(
    ("name", "port", "why"),
    [
        # A veth cable, of which TRex did not take all: it says so itself, of the phase that counts.
        ("ring-overrun", "server", ": 1243 frames came back and found TRex' own receive ring full"),
        # A router that drops from the server's side, as if it had sent all: nothing but its counters tells.
        ("loss-from-server", "client", ""),
    ],
)
def test_what_the_dut_sent_and_trex_did_not_take_is_not_the_duts_loss(name: str, port: str, why: str) -> None:
    seen = trial(recorded(name))
    sent, took = seen.total_tx_packets, seen.total_rx_packets
    forwarded = {"client": sent["server"], "server": sent["client"]}
    assert forwarded[port] - took[port] > 0.01 * forwarded[port]

    away = Observation(seen, {"loss_ratio": 0.0002}, counts=DutCounts(sent, forwarded))

    assert away.state == "invalid" and away.lost_elsewhere
    assert away.reason == away.lost_elsewhere + why


def test_what_the_dut_did_not_send_is_its_own_loss_with_trex_too() -> None:
    """Of the real router, whose counters are those of TRex' other ports: it dropped one packet in fifty."""
    seen = trial(recorded("loss-from-server"))
    own = DutCounts(seen.total_tx_packets, seen.total_rx_packets)
    lost = Observation(seen, {"loss_ratio": 0.0002}, counts=own)
    assert (lost.state, lost.lost_elsewhere) == ("bad", "")
    assert "of the packets were lost, mostly from server to client" in lost.reason
    # Nor does a card that threw away a few besides make it TRex' loss.
    few = {side: count + 5 for side, count in seen.total_rx_packets.items()}
    assert Observation(seen, {"loss_ratio": 0.0002}, counts=DutCounts(seen.total_tx_packets, few)).state == "bad"
