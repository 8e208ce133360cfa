"""The description of a link between generator and DUT, and the wiring, which has the ports made from it."""

import ctypes
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import ClassVar

from ctgen.loads import Load, Saturation
from ctgen.memif import RingPlan
from ctgen.packet_port import LinkThreads
from ctgen.profiles import Profile
from ctgen.ring import Port
from ctgen.trial import LinkWork


@dataclass(frozen=True)
class Ends:
    """The addresses of a pair of ports, client side first."""

    #: Ethernet addresses of the ports; locally administered ones.
    macs: tuple[str, str] = "02:00:00:00:00:01", "02:00:00:00:00:02"
    #: Ethernet addresses that their frames go to; empty: to the other port.
    gateway_macs: tuple[str, str] = ("", "")
    #: Addresses for which they answer ARP besides those of the profile.
    next_hops: tuple[str, str] = ("", "")


@dataclass(frozen=True, kw_only=True)
class Link(ABC):
    """The description of a link: what the ports lead to."""

    #: Whether a DUT stands between them.
    has_dut: ClassVar[bool] = True
    #: Rings of a port towards the DUT: its receive queues.
    rx_queues: int = 1
    #: Rings that the DUT transmits on, all of which are polled.
    tx_queues: int = 1
    #: Entries of a ring towards the DUT.
    ring_size: int = 2048
    #: Bytes of the largest frame, without FCS.
    frame_bytes: int = 1514
    #: Of each pair of ports: `Wiring` has the rings of all pairs in turn.
    ends: tuple[Ends, ...] = (Ends(),)

    @abstractmethod
    def wire(self) -> "Wiring":
        """Make the ports. Raise `GeneratorError` where that fails."""

    def rings(self) -> RingPlan:
        """Return the plan of a port's rings."""
        return RingPlan.towards(self.rx_queues, self.tx_queues, self.ring_size, self.frame_bytes)


#: Of 16 384 frames a DUT that only forwards takes each faster than in a closed loop, by some 8 %: they have left the
#: caches of the CPU that wrote them (docs/evidence/backlogs-depth.csv).
MOST_BACKLOG = 4096


@dataclass(frozen=True)
class Wiring:
    """The generator's two ports, client end first."""

    client: Port
    server: Port
    of: Link
    #: What they are joined to, in words.
    said: str
    #: Where frames are carried to the DUT's interfaces.
    carried: LinkThreads | None = None
    #: Threads of the generator at most: as many as the DUT puts answers on rings of their own for. More would hand the
    #: rings to each other all the time.
    most_threads: int = 1
    #: Of either port: by ring to take frames from, the thread that does. What was found out in a trial is known in the
    #: next one.
    pollers: tuple["ctypes.Array[ctypes.c_int64]", "ctypes.Array[ctypes.c_int64]"] = field(init=False)

    def __post_init__(self) -> None:
        made = tuple(
            (ctypes.c_int64 * max(1, len(port.rx)))(*range(len(port.rx))) for port in (self.client, self.server)
        )
        object.__setattr__(self, "pollers", made)

    def bounded(self, load: Load) -> int:
        """Return what a closed loop may have under way, 0 for another load: as many as asked for, but at most half of
        what a port's rings towards the DUT hold, so that none of them overflows."""
        if not isinstance(load, Saturation):
            return 0
        return max(1, min(load.under_way, self.ring_frames // 2))

    def join(self, p: ctypes.Structure, profile: Profile) -> None:
        """Write the wiring into the kernel's parameters, which then point into its memory."""
        addresses = profile.client_ip, profile.server_ip
        for place, port in enumerate((self.client, self.server)):
            to = p.ports[place]
            to.tx, to.rx, to.rx_rings = ctypes.addressof(port.tx), ctypes.addressof(port.rx), len(port.rx)
            for pair, ends in enumerate(self.of.ends):
                template, hop = to.templates[pair], ip_address(ends.next_hops[place] or "0.0.0.0")
                gateway_mac = ends.gateway_macs[place] or ends.macs[1 - place]
                to.next_hops[pair] = int(hop) if hop.version == 4 else 0
                template.macs[:] = _mac(gateway_mac) + _mac(ends.macs[place])
                if profile.ip_version == 6:
                    _fill_ipv6(template, addresses[place], addresses[1 - place])
                    template.next_hop[:] = hop.packed if hop.version == 6 else bytes(16)
        p.queues, p.pairs = len(self.client.tx), len(self.of.ends)
        if self.carried:
            p.links, p.link_count = ctypes.addressof(self.carried.counters), len(self.carried.counters)

    def poll_with(self, threads: int) -> None:
        """Assign each ring to one of `threads` threads."""
        for pollers in self.pollers:
            pollers[:] = [thread % threads for thread in pollers]

    @property
    def ring_frames(self) -> int:
        """Frames that the rings of one port towards the DUT hold."""
        frames: int = min(sum(ring.mask + 1 for ring in port.tx) for port in (self.client, self.server))
        return frames

    @property
    def backlog(self) -> int:
        """Frames of a direction that the DUT may be given at once: the least of what its rings hold, of what a single
        ring back holds, on which it may put all frames, and of `MOST_BACKLOG`."""
        back: int = min(ring.mask + 1 for port in (self.client, self.server) for ring in port.rx)
        return min(self.ring_frames, back, MOST_BACKLOG)

    def start(self) -> None:
        """Start to carry frames. Frames that were dropped before do not count."""
        self.client.dropped()
        self.server.dropped()
        if self.carried:
            self.carried.start()

    def stop(self) -> None:
        if self.carried:
            self.carried.stop()

    def check_ports(self) -> None:
        self.client.check_link()
        self.server.check_link()

    def reconnect(self) -> None:
        """Make links again that were lost with a restarted DUT. Raise `GeneratorError` where that fails."""
        self.client.reconnect()
        self.server.reconnect()

    def check(self) -> None:
        """Raise `GeneratorError` where a link is gone, or where the interfaces took no frame."""
        self.check_ports()
        if self.carried:
            self.carried.check()

    def work(self, busy_cycles: int, frames: int, refused: int, seconds: float, hertz: float) -> LinkWork | None:
        """Return the work of the link threads in `seconds`; None without link threads."""
        if self.carried is None:
            return None
        busy_s = busy_cycles / hertz
        return LinkWork(
            busy_cpus=busy_s / seconds,
            packets=frames,
            refused=refused,
            ns_per_packet=busy_s * 1e9 / frames if frames else 0.0,
            waiting=max(self.carried.waiting),
        )

    def close(self) -> None:
        """Release both ports. May be called twice."""
        self.stop()
        self.client.close()
        self.server.close()


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


_HOP_LIMIT = 64
#: Bytes of an address that all clients (servers) have alike.
_PREFIX_BYTES = 12


def _fill_ipv6(template: ctypes.Structure, source: str, destination: str) -> None:
    """Fill in the IPv6 header that all frames of an end share, and the sum of both prefixes in 16-bit words."""
    prefixes = [IPv6Address(address).packed[:_PREFIX_BYTES] for address in (source, destination)]
    header = struct.pack(">HIHBB", 0x86DD, 6 << 28, 0, 0, _HOP_LIMIT)
    template.ipv6[:] = (header + b"".join(prefix + bytes(4) for prefix in prefixes)).ljust(len(template.ipv6), b"\0")
    template.prefix_sum = sum(struct.unpack("<12H", b"".join(prefixes)))
