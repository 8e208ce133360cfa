"""DPDK devices of the bridge's interfaces (memif, af_packet over veth pairs, network cards), and DPDK's memory."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Ports, queue_size
from ctbench.dut.ovs.ruleset import NUMBERS, BridgeRules
from ctbench.dut.topology import Topology
from ctbench.dut.veth import IpRoute, VethLinks
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Hugepages, Placement, reserve_command

#: Bytes that af_packet has in a frame's place of its ring besides what the MTU allows: headers of packet(7), of
#: Ethernet with two tags, and room for their alignment.
AF_PACKET_OVERHEAD = 128
#: Rings of locked memory that an af_packet device has per queue: one to receive, one to transmit.
AF_PACKET_RINGS = 2
#: Descriptors of each queue of a device, either way: a power of two.
DESCRIPTORS = 2048
#: Bytes of a page.
PAGE = 4096
MIB = 1 << 20
#: Releases of DPDK 21.11 whose memif driver reads the statistics of rings that are not there, when a link has more of
#: them one way than the other, and takes OVS with it; https://bugs.dpdk.org/show_bug.cgi?id=734, fixed in 21.11.3.
CRASH_ON_UNEQUAL_RINGS = ("21.11.0", "21.11.1", "21.11.2")


class Devices(ABC):
    """The devices of one kind. Their interfaces are `port0`, `port1` and so on, see ruleset.py."""

    #: What the testbed file calls them.
    kind: Literal["memif", "veth", "pci"]
    #: Pairs of ports.
    pairs: int = 1

    @abstractmethod
    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        """Raise `MissingResource` where the devices cannot do what the topology asks for."""

    def shape(self, topology: Topology, placement: Placement) -> object:
        """Return the properties of the devices that only new devices can change."""
        return None

    def make(self, topology: Topology, placement: Placement) -> None:
        """Make what the devices need below them. No port of the bridge exists then."""

    @abstractmethod
    def devargs(self, interface: str, topology: Topology) -> str:
        """Return the device arguments for a port that is created again (DPDK's guides of the drivers)."""

    def transmit_queues(self, topology: Topology) -> int:
        """Return the queues that OVS transmits on, of each port: one for each PMD thread and one for its other
        threads."""
        return topology.cpus + 1

    @abstractmethod
    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        """Return the ports for the generator."""

    def sockets(self, rules: BridgeRules) -> list[str]:
        return []

    def remove(self) -> None:
        """Remove what `make` made, once OVS has released it. May be called twice."""

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind}


class MemifDevices(Devices):
    """Memif devices, which are shared memory. OVS is the server of a socket for each interface."""

    kind = "memif"

    def __init__(self, host: Host, folder: str, frames: int = 2048, *, pairs: int = 1) -> None:
        """`folder`: folder of the host for the sockets. `frames`: frames that a link holds towards OVS."""
        self._host = host
        self._folder = folder
        self.pairs = pairs
        self._frames = frames
        self._made = 0
        self._sockets: dict[str, str] = {}

    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        """Raise `MissingResource` where DPDK would crash: some releases do, on links with unlike numbers of receive and
        transmit queues."""
        transmit = self.transmit_queues(topology)
        if dpdk_version in CRASH_ON_UNEQUAL_RINGS and topology.rx_queues != transmit:
            raise MissingResource(
                f"DPDK {dpdk_version} crashes when a memif link has {topology.rx_queues} ring(s) one way and {transmit}"
                f" the other: {topology.cpus} PMD CPU(s) work with {transmit} RX queues there, and any topology with"
                " DPDK 21.11.3 or later."
            )

    def devargs(self, interface: str, topology: Topology) -> str:
        """Return the device arguments; DPDK guide, memif poll mode driver. `rsize` is log2 of the ring's size. A socket
        that is a file crosses network namespaces, an abstract one does not. A live port whose devargs change leaves the
        old socket busy: each device has a name that was not used before."""
        self._made += 1
        self._sockets[interface] = f"{self._folder}/{interface}.{self._made}.sock"
        ring = DESCRIPTORS.bit_length() - 1
        socket = f"socket={self._sockets[interface]},socket-abstract=no"
        return f"net_memif{self._made},role=server,{socket},id=0,rsize={ring}"

    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        """Return the ports; on a host across the network, the paths are that host's."""
        reached = [str(self._host.local_path(socket) or socket) for socket in self.sockets(rules)]
        ring = queue_size(self._frames, topology.rx_queues)
        queues = topology.rx_queues, self.transmit_queues(topology)
        return Ports("memif", _pairs(reached), *queues, ring, self.pairs)

    def sockets(self, rules: BridgeRules) -> list[str]:
        return [self._sockets[interface] for interface in rules.interfaces]


class VethDevices(Devices):
    """Veth pairs, two for a pair of ports. DPDK's af_packet driver has a packet socket on OVS' end for each queue. The
    kernel fills its rings, in the time of the sender, and a PMD thread polls them."""

    kind = "veth"

    def __init__(self, host: Host, frames: int, *, pairs: int = 1) -> None:
        self._host = host
        self._frames = frames
        self._links = VethLinks(IpRoute(host), pairs=pairs)
        self.pairs = pairs
        self._made = 0

    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        """Raise `MissingResource` for bonds, and for rings that exceed the user's locked memory."""
        if len(rules.interfaces) > len(self._links.interfaces):
            raise MissingResource(
                f"The ruleset needs {len(rules.interfaces)} network ports; over veth OVS has two: bonds need memif."
            )
        needed = len(self._links.interfaces) * AF_PACKET_RINGS * self._frames * _frame_bytes(topology)
        allowed = locked_memory(self._host.run(["cat", "/proc/self/limits"]).stdout)
        if allowed is not None and needed > allowed:
            most = self._frames * allowed // needed
            fitting = 1 << (most.bit_length() - 1) if most else 0  # a power of two
            raise MissingResource(
                f"The rings of the veth links need {needed // MIB} MiB of locked memory (ports.ring_size"
                f" {self._frames}, MTU {topology.mtu}), and {allowed // MIB} MiB are allowed (ulimit -l): take"
                f" ring_size {fitting}, or have the limit raised (limits.conf(5), memlock)."
            )

    def shape(self, topology: Topology, placement: Placement) -> object:
        """Return RX queues, MTU and link CPUs: a device's queues are sockets, and a pair has one for each thread that
        carries frames into it."""
        return topology.rx_queues, topology.mtu, placement.of_links

    def make(self, topology: Topology, placement: Placement) -> None:
        self._links.make(topology.mtu, topology.rx_queues, placement.of_links)
        self._links.up()

    def devargs(self, interface: str, topology: Topology) -> str:
        """Return the device arguments; DPDK guide, AF_PACKET poll mode driver. `framecnt`: frames for each queue."""
        self._made += 1
        frame, count = _frame_bytes(topology), queue_size(self._frames, topology.rx_queues)
        ring = f"framesz={frame},framecnt={count},blocksz={max(PAGE, frame)}"
        end = self._links.interfaces[NUMBERS[interface] - 1]
        return f"net_af_packet{self._made},iface={end},qpairs={topology.rx_queues},{ring}"

    def transmit_queues(self, topology: Topology) -> int:
        """Return the transmit queues: the driver has as many as receive queues, and PMD threads share them where they
        are fewer."""
        return min(super().transmit_queues(topology), topology.rx_queues)

    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        """Return the ports. Frames are handed over on CPUs without PMD threads: a NIC would take no time of one for it
        either."""
        return self._links.ports(topology, placement.of_links, len(placement.pmd), self._frames)

    def remove(self) -> None:
        self._links.remove()

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, "driver": "net_af_packet", "frames": self._frames}


class PciDevices(Devices):
    """A lab's network cards, bound to a driver that DPDK works with."""

    kind = "pci"

    def __init__(self, addresses: Sequence[str], *, pairs: int = 1) -> None:
        self._addresses = tuple(addresses)
        self.pairs = pairs

    def require(self, topology: Topology, rules: BridgeRules, dpdk_version: str) -> None:
        if len(self._addresses) < len(rules.interfaces):
            raise MissingResource(
                f"The ruleset needs {len(rules.interfaces)} network ports; OVS has {len(self._addresses)} on this"
                " testbed (ports.client, ports.server, ports.more)."
            )

    def devargs(self, interface: str, topology: Topology) -> str:
        """Return the card's address; DPDK finds the driver."""
        return self._addresses[NUMBERS[interface] - 1]

    def ports(self, topology: Topology, rules: BridgeRules, placement: Placement) -> Ports:
        links = _pairs(self._addresses[: len(rules.interfaces)])
        return Ports("pci", links, topology.rx_queues, self.transmit_queues(topology), DESCRIPTORS, self.pairs)

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, "addresses": list(self._addresses)}


def locked_memory(limits: str) -> int | None:
    """Return the bytes that a process may lock, from /proc/PID/limits; None: no limit."""
    found = re.search(r"^Max locked memory\s+(\d+|unlimited)", limits, re.MULTILINE)
    return int(found[1]) if found and found[1] != "unlimited" else None


def _frame_bytes(topology: Topology) -> int:
    """Return the bytes of a frame's place in the rings of af_packet: places fill blocks of pages without a rest."""
    return 1 << (topology.mtu + AF_PACKET_OVERHEAD - 1).bit_length()


def _pairs(ends: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(ends[::2], ends[1::2], strict=True))


@dataclass(frozen=True)
class Memory:
    """DPDK's memory, and the command that reserves hugepages where there are none; DPDK guide, EAL parameters."""

    megabytes: int
    hugepages: bool
    #: What an administrator types; empty with hugepages.
    advice: str = ""

    def as_record(self) -> dict[str, Any]:
        kind = "hugepages" if self.hugepages else "no-huge"
        return {"kind": kind, "megabytes": self.megabytes, **({"advice": self.advice} if self.advice else {})}


def require_room(host: str, meminfo: str, memory: Memory) -> None:
    """Raise `MissingResource` where a host has less free memory than DPDK needs, by its /proc/meminfo, proc(5): DPDK
    touches all of its memory, and Linux would end it, or another process. Hugepages are free already, or were not
    chosen."""
    known = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    free = int(known[1]) // 1024 if known else memory.megabytes
    if not memory.hugepages and free < memory.megabytes:
        raise MissingResource(
            f"Open vSwitch needs {memory.megabytes} MiB of memory for DPDK (memory_mb), and {host} has {free} MiB free:"
            " a pair side by side takes twice as much as one of them."
        )


def choose_memory(
    hugepages: Sequence[Hugepages],
    megabytes: int,
    *,
    allowed: bool = True,
    of_nodes: Mapping[int, Sequence[Hugepages]] | None = None,
) -> Memory:
    """Return hugepages where they are `allowed` and `megabytes` of one size are free, else ordinary pages. `of_nodes`:
    those of the NUMA nodes that DPDK asks, each for an equal part; where the kernel tells them, they count alone."""
    if not allowed:
        return Memory(megabytes, hugepages=False, advice="the testbed file forbids hugepages")
    places: list[tuple[int | None, Sequence[Hugepages]]] = [(None, hugepages)]
    if of_nodes and any(of_nodes.values()):
        places = [*of_nodes.items()]
    share = -(-megabytes // len(places))
    lacking = [
        reserve_command(pages, share, node)
        for node, pages in places
        if all(each.free * each.size_kb < share * 1024 for each in pages)
    ]
    return Memory(megabytes, hugepages=not lacking, advice="; ".join(lacking))


def dpdk_options(memory: Memory, nodes: Sequence[int], *, cards: bool) -> dict[str, str]:
    """Return the options of the Open_vSwitch table with which DPDK starts, its memory on these NUMA nodes in equal
    parts. Raise `MissingResource` for network cards without hugepages. `--in-memory` keeps hugepages anonymous, so that
    they are free again however the process ends. It excludes `--no-huge`, which needs `--legacy-mem` to have one
    contiguous area."""
    if cards and not memory.hugepages:
        raise MissingResource(f"A network card needs hugepages for DPDK: {memory.advice}")
    pages = "--in-memory" if memory.hugepages else f"--no-huge --legacy-mem -m {memory.megabytes}"
    # Open vSwitch 4.0 forbids each bus otherwise, and DPDK ends where the driver of one is not installed.
    options = {"dpdk-init": "true", "dpdk-probe-at-init": "true"}
    options["dpdk-extra"] = pages if cards else f"--no-pci {pages}"
    share = -(-memory.megabytes // len(nodes))
    of_nodes = (str(share if node in nodes else 0) for node in range(max(nodes) + 1))
    return options | ({"dpdk-socket-mem": ",".join(of_nodes)} if memory.hugepages else {})
