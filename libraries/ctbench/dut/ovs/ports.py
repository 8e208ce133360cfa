"""What DPDK drives at the bridge's interfaces: memif, af_packet over veth pairs, or a lab's network cards."""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Ports, queue_size
from ctbench.dut.iproute import IpRoute
from ctbench.dut.ovs.installation import refuse_unequal_rings, transmit_queues
from ctbench.dut.ovs.ruleset import NUMBERS, BridgeRules
from ctbench.dut.topology import Topology
from ctbench.dut.veth import VethLinks
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Placement

#: Bytes that af_packet has in a frame's place of its ring besides what the MTU allows: headers of packet(7), of
#: Ethernet with two tags, and room for their alignment.
AF_PACKET_OVERHEAD = 128
#: Rings of locked memory that an af_packet device has per queue: one to receive, one to transmit.
AF_PACKET_RINGS = 2
#: Bytes of a page.
PAGE = 4096
MIB = 1 << 20


class Devices(Protocol):
    """The devices of one kind. Their interfaces are `port0` to `port3`, see ruleset.py."""

    @property
    def kind(self) -> Literal["memif", "veth", "pci"]:
        """What the testbed file calls them."""

    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        """Raise `MissingResource` where they cannot be what the topology asks for."""

    def shape(self, topology: Topology, placement: Placement) -> object:
        """What they have to be created again for when it is another one."""

    def make(self, topology: Topology, placement: Placement) -> None:
        """Make what they stand on; no port of the bridge is there."""

    def devargs(self, interface: str, topology: Topology) -> str:
        """Device arguments for a port that is created again (DPDK's guides of the drivers)."""

    def transmit_queues(self, topology: Topology) -> int:
        """Queues that OVS transmits on, of each port."""

    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        """How the generator reaches them."""

    def sockets(self, rules: BridgeRules) -> list[str]:
        """Files of the host that are there as long as the generator can reach them."""

    def remove(self) -> None:
        """Remove what `make` made; OVS has let go of it. May be called twice."""

    def facts(self) -> dict[str, Any]:
        """For the record."""


class MemifDevices:
    """Shared memory: OVS is the server of a socket for each interface."""

    kind: Final = "memif"

    def __init__(self, host: Host, folder: str, frames: int = 2048) -> None:
        """Sockets are in `folder` of the host; a link holds `frames` frames towards OVS."""
        self._host = host
        self._folder = folder
        self._frames = frames
        self._made = 0
        self._sockets: dict[str, str] = {}

    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        """See `Devices.require`."""
        refuse_unequal_rings(dpdk_version, topology)

    def shape(self, topology: Topology, placement: Placement) -> object:
        """A device has the size of its rings in its name."""
        return topology.rx_descriptors

    def make(self, topology: Topology, placement: Placement) -> None:
        """OVS makes all of it."""

    def devargs(self, interface: str, topology: Topology) -> str:
        """DPDK guide, memif poll mode driver. Its `rsize` is log2 of the ring's size. A socket that is a file crosses
        network namespaces, an abstract one does not. A live port whose devargs change leaves the old socket busy: each
        device has a name that was not used before."""
        self._made += 1
        self._sockets[interface] = f"{self._folder}/{interface}.{self._made}.sock"
        ring = topology.rx_descriptors.bit_length() - 1
        socket = f"socket={self._sockets[interface]},socket-abstract=no"
        return f"net_memif{self._made},role=server,{socket},id=0,rsize={ring}"

    def transmit_queues(self, topology: Topology) -> int:
        """See `Devices.transmit_queues`."""
        return transmit_queues(topology)

    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        """See `Devices.ports`; on a host across the network the paths are that host's."""
        reached = [str(self._host.local_path(socket) or socket) for socket in self.sockets(rules)]
        (client, server), *more = _pairs(reached)
        ring = queue_size(self._frames, topology.rx_queues)
        return Ports("memif", client, server, topology.rx_queues, transmit_queues(topology), ring, tuple(more))

    def sockets(self, rules: BridgeRules) -> list[str]:
        """See `Devices.sockets`."""
        return [self._sockets[interface] for interface in rules.interfaces]

    def remove(self) -> None:
        """The sockets go with OVS' folder."""

    def facts(self) -> dict[str, Any]:
        """See `Devices.facts`."""
        return {"kind": self.kind}


class VethDevices:
    """Two veth pairs. DPDK's af_packet driver has a packet socket on OVS' end for each queue, with rings that the
    kernel fills, in the time of the sender, and that a PMD thread polls."""

    kind: Final = "veth"

    def __init__(self, host: Host, frames: int) -> None:
        """A link holds `frames` frames towards OVS, and as many back."""
        self._host = host
        self._frames = frames
        self._links = VethLinks(IpRoute(host))
        self._made = 0

    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        """See `Devices.require`; the rings are locked memory, of which an ordinary user has little."""
        if len(rules.interfaces) > len(self._links.interfaces):
            raise MissingResource(
                f"The ruleset needs {len(rules.interfaces)} network ports; over veth OVS has two: bonds need memif."
            )
        needed = len(self._links.interfaces) * AF_PACKET_RINGS * self._frames * _frame_bytes(topology)
        allowed = locked_memory(self._host.run(["cat", "/proc/self/limits"]).stdout)
        if allowed is not None and needed > allowed:
            fitting = _power(self._frames * allowed // needed)
            raise MissingResource(
                f"The rings of the veth links need {needed // MIB} MiB of locked memory (ports.ring_size"
                f" {self._frames}, MTU {topology.mtu}), and {allowed // MIB} MiB are allowed (ulimit -l): take"
                f" ring_size {fitting}, or have the limit raised (limits.conf(5), memlock)."
            )

    def shape(self, topology: Topology, placement: Placement) -> object:
        """A device's queues are sockets; the pair has a queue for each thread that carries frames into it."""
        return topology.rx_queues, topology.mtu, placement.housekeeping

    def make(self, topology: Topology, placement: Placement) -> None:
        """See `Devices.make`."""
        self._links.make(topology.mtu, topology.rx_queues, placement.housekeeping)
        self._links.up()

    def devargs(self, interface: str, topology: Topology) -> str:
        """DPDK guide, AF_PACKET poll mode driver; `framecnt` frames for each queue."""
        self._made += 1
        frame, count = _frame_bytes(topology), queue_size(self._frames, topology.rx_queues)
        ring = f"framesz={frame},framecnt={count},blocksz={max(PAGE, frame)}"
        end = self._links.interfaces[NUMBERS[interface] - 1]
        return f"net_af_packet{self._made},iface={end},qpairs={topology.rx_queues},{ring}"

    def transmit_queues(self, topology: Topology) -> int:
        """The driver has as many as receive queues, and PMD threads share them where they are fewer."""
        return min(transmit_queues(topology), topology.rx_queues)

    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        """See `Devices.ports`. Frames are handed over on the CPUs that are left to OVS' other threads: a NIC would take
        no time of a PMD thread's CPU for it either."""
        client, server = self._links.peers
        return Ports(
            "interface", client, server, topology.rx_queues, len(placement.pmd),
            queue_size(self._frames, topology.rx_queues),
            cpus=placement.housekeeping, open_socket=self._links.open_socket,
        )  # fmt: skip

    def sockets(self, rules: BridgeRules) -> list[str]:
        """None: they are interfaces."""
        return []

    def remove(self) -> None:
        """See `Devices.remove`."""
        self._links.remove()

    def facts(self) -> dict[str, Any]:
        """See `Devices.facts`."""
        return {"kind": self.kind, "driver": "net_af_packet", "frames": self._frames}


class PciDevices:
    """A lab's network cards, bound to a driver that DPDK works with."""

    kind: Final = "pci"

    def __init__(self, addresses: Sequence[str]) -> None:
        """PCI addresses, client and server side in turn."""
        self._addresses = tuple(addresses)

    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        """See `Devices.require`."""
        if len(self._addresses) < len(rules.interfaces):
            raise MissingResource(
                f"The ruleset needs {len(rules.interfaces)} network ports; OVS has {len(self._addresses)} on this"
                " testbed (ports.client, ports.server, ports.more)."
            )

    def shape(self, topology: Topology, placement: Placement) -> object:
        """A card can be set again as it is."""
        return None

    def make(self, topology: Topology, placement: Placement) -> None:
        """The cards are there."""

    def devargs(self, interface: str, topology: Topology) -> str:
        """The card's address; DPDK finds the driver."""
        return self._addresses[NUMBERS[interface] - 1]

    def transmit_queues(self, topology: Topology) -> int:
        """See `Devices.transmit_queues`."""
        return transmit_queues(topology)

    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        """See `Devices.ports`."""
        (client, server), *more = _pairs(self._addresses[: len(rules.interfaces)])
        queues = transmit_queues(topology)
        return Ports("pci", client, server, topology.rx_queues, queues, topology.rx_descriptors, tuple(more))

    def sockets(self, rules: BridgeRules) -> list[str]:
        """None: they are cards."""
        return []

    def remove(self) -> None:
        """The cards stay bound as they are."""

    def facts(self) -> dict[str, Any]:
        """See `Devices.facts`."""
        return {"kind": self.kind, "addresses": list(self._addresses)}


def locked_memory(limits: str) -> int | None:
    """Bytes that a process may lock, from /proc/PID/limits; None: no limit."""
    found = re.search(r"^Max locked memory\s+(\d+|unlimited)", limits, re.MULTILINE)
    return int(found[1]) if found and found[1] != "unlimited" else None


def _frame_bytes(topology: Topology) -> int:
    """Bytes of a frame's place in the rings of af_packet: places fill blocks of pages without a rest."""
    return 1 << (topology.mtu + AF_PACKET_OVERHEAD - 1).bit_length()


def _power(number: int) -> int:
    """The largest power of two that is not above a number."""
    return 1 << (number.bit_length() - 1) if number > 0 else 0


def _pairs(ends: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(ends[::2], ends[1::2], strict=True))
