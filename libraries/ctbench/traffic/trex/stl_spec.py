"""From a packet profile and an offered load to the streams that TRex sends, in a form that JSON can hold.

Every stream of the load is a chain of two bursts that TRex itself joins: one to warm up, and one of exactly the packets
that the sustain phase intends, which alone are counted. So nothing depends on when this side reads counters, and a
packet belongs to the sustain phase or does not, wherever it is when that begins or ends.
"""

from dataclasses import dataclass
from typing import Any

from ctbench.traffic.profiles import IMIX, PacketProfile
from ctbench.traffic.trex import stl_flows

SIDES = ("client", "server")
#: At the full rate before anything counts, seconds; and long enough for every flow to have been sent once: creating its
#: state in the DUT is another measurement.
SETTLE_S = 0.2
_FLOW_PASS = 1.1
#: Packets of a stream before anything counts, at least, so that each of TRex' threads has some.
_FEWEST = 64
#: Latency packets per second and direction, and the share of the load that they are at most.
LATENCY_PPS = 1000.0
_LATENCY_SHARE = 0.1


@dataclass(frozen=True)
class Stream:
    """One size of frames in one direction, or the latency packets of a direction."""

    sender: str
    is_latency: bool
    #: Bytes of a frame without FCS, its VLAN tag included.
    frame_bytes: int
    pps: float
    #: Packets of the sustain phase, and those before it (latency: none).
    packets: int
    warm_up_packets: int
    #: Seconds until the first packet.
    delay_s: float
    #: TRex' number ("packet group") under which the packets of the sustain phase are counted.
    group: int
    walk: stl_flows.Walk

    @property
    def total_packets(self) -> int:
        """Packets of both phases."""
        return self.warm_up_packets + self.packets

    def as_json(self) -> dict[str, Any]:
        """What stl_worker.py needs to build it."""
        return {
            "port": SIDES.index(self.sender),
            "latency": self.is_latency,
            "pps": self.pps,
            "packets": self.packets,
            "warm_up_packets": self.warm_up_packets,
            "delay_us": 1e6 * self.delay_s,
            "group": self.group,
            "frame": self.walk.frame.hex(),
            "program": self.walk.program,
        }


@dataclass(frozen=True)
class Spec:
    """The streams of a trial and its phases."""

    warm_up_s: float
    duration_s: float
    streams: tuple[Stream, ...]

    def of(self, sender: str) -> list[Stream]:
        """The streams of a direction."""
        return [stream for stream in self.streams if stream.sender == sender]

    @property
    def senders(self) -> tuple[str, ...]:
        """Who sends: `client`, or `client` and `server`."""
        return tuple(side for side in SIDES if self.of(side))

    @property
    def intended(self) -> int:
        """Packets of the sustain phase."""
        return sum(stream.packets for stream in self.streams)

    def as_json(self) -> list[dict[str, Any]]:
        """The streams for stl_worker.py."""
        return [stream.as_json() for stream in self.streams]


def spec_of(profile: PacketProfile, load: float, duration_s: float) -> Spec:
    """The streams that offer `load` packets per second, all directions added, latency packets included.

    The servers begin when the clients have sent every flow once: a DUT with state lets answers pass, nothing else.
    """
    senders = SIDES if profile.directions == "both" else SIDES[:1]
    rate = load / len(senders)
    latency_pps = min(LATENCY_PPS, _LATENCY_SHARE * rate)
    sizes = _sizes(profile)
    shares = sum(share for _, share in sizes)
    rarest = (rate - latency_pps) * min(share for _, share in sizes) / shares
    first_pass = _FLOW_PASS * profile.flows / (rate - latency_pps)
    servers_begin = max(first_pass, _FEWEST / rarest) if len(senders) > 1 else 0.0
    warm_up_s = max(servers_begin + max(SETTLE_S, _FEWEST / rarest), first_pass)
    streams: list[Stream] = []
    for sender in senders:
        delay = servers_begin if sender == "server" else 0.0
        begun = 0
        for size, share in sizes:
            pps = (rate - latency_pps) * share / shares
            walk = stl_flows.walk(profile, sender, size, start=begun / shares)
            begun += share  # where the next size begins among the flows, so that together they soon have sent each
            warm_up_packets = round(pps * (warm_up_s - delay))
            packets = round(pps * duration_s)
            streams.append(_stream(sender, False, pps, packets, warm_up_packets, delay, len(streams), walk))
        walk = stl_flows.walk(profile, sender, min(size for size, _ in sizes), checksum=False)
        packets = max(1, round(latency_pps * duration_s))
        streams.append(_stream(sender, True, latency_pps, packets, 0, warm_up_s, len(streams), walk))
    return Spec(warm_up_s, duration_s, tuple(streams))


def notes(profile: PacketProfile) -> list[str]:
    """What TRex does otherwise than the software generator with this profile, for the record."""
    found = [
        f"latency: from {LATENCY_PPS:g} packets/s per direction besides the load (at most {_LATENCY_SHARE:.0%} of it), "
        "without UDP checksum; in steps of one decimal digit from 10 us",
        "reordered packets: known of the latency packets only",
        "packets that are counted carry a type of service of 1 and IPv4 identifications above 0xfc00, by which TRex "
        "recognises them",
    ]
    if profile.directions == "both":
        found.append("servers send to the clients' own addresses, not to what the DUT translated them to")
    return found


def _sizes(profile: PacketProfile) -> tuple[tuple[int, int], ...]:
    """Bytes of the frames with FCS, and their shares."""
    return IMIX if profile.frame_bytes == "imix" else ((profile.frame_bytes, 1),)


def _stream(
    sender: str,
    is_latency: bool,
    pps: float,
    packets: int,
    warm_up_packets: int,
    delay_s: float,
    number: int,
    walk: stl_flows.Walk,
) -> Stream:
    return Stream(sender, is_latency, len(walk.frame), pps, packets, warm_up_packets, delay_s, number + 1, walk)
