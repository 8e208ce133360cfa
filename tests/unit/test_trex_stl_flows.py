"""What TRex is told to send of a packet profile: the flows of the software generator, with right checksums."""

from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packets import checksums_are_right, parse
from wire import Wire

from ctbench.base.errors import ConfigError
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import PacketProfile, load_profile
from ctbench.traffic.trex.stl_flows import LONGEST_LIST, walk

from .simulated_field_engine import packets_of

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


def test_a_million_flows_are_sent_in_jumps_each_once() -> None:
    """The shipped profile, which no list is long enough for."""
    which = load_profile("udp-64-1m")
    assert isinstance(which, PacketProfile)
    how = walk(which, "client", 64)
    seen = set()
    jumps = 0
    before = 0
    # What is written behind the ports, and the IP checksum, are left out: it takes half as long.
    addressed = [step for step in how.program[:-1] if step.get("pkt_offset", 0) < 36]
    for frame in islice(packets_of(how.frame, addressed), which.flows):
        seen.add(frame[26:36])
        now = int.from_bytes(frame[26:30], "big")
        jumps += abs(now - before) > 1
        before = now
    assert len(seen) == which.flows
    assert jumps > 0.99 * which.flows
    assert all(checksums_are_right(frame) for frame in sent(which, 20_000)[::997])


def test_a_random_order_jumps() -> None:
    which = profile(flows=1000, client_ips=254, flow_order="random")
    numbers = [int(ends(frame)[0].rpartition(".")[2]) for frame in sent(which, 100)]
    assert sum(abs(one - other) > 1 for one, other in pairwise(numbers)) > 90


@pytest.mark.parametrize("size", [64, 594, 1518, 9018])
def test_a_frame_has_the_size_of_the_profile_without_its_fcs(size: int) -> None:
    for which in (ALIGNED, ODD):
        assert {len(frame) for frame in sent(which, 30, size=size)} == {size - 4}


def test_a_vlan_tag_comes_on_top_of_the_size() -> None:
    frame = walk(profile(vlan=100), "client", 64).frame
    assert frame[12:16] == b"\x81\x00\x00\x64"
    assert len(frame) == 64


@pytest.mark.parametrize("which", [ALIGNED, ODD, profile(flows=1)])
def test_latency_packets_say_that_they_have_no_udp_checksum(which: PacketProfile) -> None:
    """TRex writes the time into their payload as it sends them."""
    frames = sent(which, which.flows, checksum=False)
    assert {frame[40:42] for frame in frames} == {b"\0\0"}
    assert len({ends(frame) for frame in frames}) == which.flows


@pytest.mark.parametrize(
    "more",
    [
        {"client_ip": "16.0.0.1"},
        {"client_ips": 100},
        {"flow_order": "random", "flows": 99_999},
    ],
)
def test_more_flows_than_a_list_holds_want_addresses_that_are_bits(more: dict[str, Any]) -> None:
    fine = {"flows": LONGEST_LIST + 1, "client_ip": "16.0.0.0", "client_ips": 256, "server_ip": "48.0.0.0"}
    fine["server_ips"] = 256
    walk(profile(**fine), "client", 64)
    with pytest.raises(ConfigError, match="powers of two"):
        walk(profile(**{**fine, **more}), "client", 64)
