"""The software traffic generator behind the TrafficGenerator interface."""

import os
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.errors import GeneratorError
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Idle, Load, Rate, require
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software import engine, stream_engine
from ctbench.traffic.software.bundle import bundle
from ctbench.traffic.software.cable import cable
from ctbench.traffic.software.drive import Watcher
from ctbench.traffic.software.link import LinkThreads
from ctbench.traffic.software.memif import MemifPort, RingPlan, connect
from ctbench.traffic.software.packet_port import OpenSocket, PacketPort
from ctbench.traffic.software.wiring import Wiring

#: The rings that the generator receives on hold this many frames: its own pauses of a few milliseconds cost nothing.
RECEIVE_RING = 8192
#: Bytes per buffer: the smallest that hold a profile's frames keep the rings in the processor's caches.
_BUFFER_SIZES = (128, 256, 512, 1024, 2048, 4096, 9216)


class SoftwareTrafficGenerator:
    """Drives two ports from one thread. Wire it with one of `connect…`, offer with `run_trial`, end with `close`."""

    def __init__(self, cpus: Sequence[int] = ()) -> None:
        """`cpus`: where its thread may run; empty: anywhere."""
        self._cpus = tuple(cpus)
        self._wiring: Wiring | None = None
        self._wired = "not connected"
        self._tables = engine.Tables()
        self._trials = 0
        #: Called about ten times a second during a trial, for progress.
        self.watcher: Watcher | None = None

    def connect(
        self,
        client: Path,
        server: Path,
        *,
        rx_queues: int,
        tx_queues: int,
        ring_size: int = 2048,
        frame_bytes: int = 1514,
        more: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Connect to the DUT's two memif sockets, and to those of further links where either side is a bond.

        `rx_queues`: rings towards the DUT per port, its receive queues; `tx_queues`: rings that it transmits on, all
        of which are polled; `ring_size`: entries of the rings towards the DUT; `frame_bytes`: the largest frame.
        """
        self.disconnect()
        plan = _plan(rx_queues, tx_queues, ring_size, frame_bytes)
        ends: tuple[list[MemifPort], list[MemifPort]] = ([], [])
        try:
            for pair in [(str(client), str(server)), *more]:
                for ports, path in zip(ends, pair, strict=True):
                    ports.append(connect(Path(path), plan))
        except GeneratorError:
            for port in (*ends[0], *ends[1]):
                port.close()
            raise
        self._wiring = Wiring(bundle(ends[0]), bundle(ends[1]))
        links = f"{1 + len(more)} links per side, " if more else ""
        rings = f"{rx_queues} rings of {ring_size} towards the DUT, {tx_queues} of {plan.s2c_size} back"
        self._wired = f"memif, {links}{rings}"

    def connect_interfaces(
        self,
        client: str,
        server: str,
        *,
        open_socket: OpenSocket,
        rx_queues: int,
        rx_rings: int,
        ring_size: int = 2048,
        frame_bytes: int = 1514,
        client_mac: str = "",
        server_mac: str = "",
        client_next_hop: str = "",
        server_next_hop: str = "",
        cpus: Sequence[int] = (),
    ) -> None:
        """Use two network interfaces, in whose network namespace `open_socket` opens sockets.

        `rx_queues`, `ring_size`, `frame_bytes` as in `connect`; `rx_rings`: rings that take what the DUT sends, told
        apart by the CPU it sends from; `client_mac`, `server_mac`: where the frames of either end go, empty where the
        DUT bridges; `client_next_hop`, `server_next_hop`: addresses for which to answer ARP; `cpus`: where frames are
        handed to the DUT's interfaces, a thread each.
        """
        self.disconnect()
        plan = _plan(rx_queues, rx_rings, ring_size, frame_bytes)
        threads, group = max(1, len(cpus)), os.getpid() & 0xFFFE
        first = PacketPort(client, open_socket, plan, threads=threads, fanout_group=group)
        try:
            second = PacketPort(server, open_socket, plan, threads=threads, fanout_group=group + 1)
        except GeneratorError:
            first.close()
            raise
        link = LinkThreads([first.link_rings, second.link_rings], cpus)
        self._wiring = Wiring(first, second, client_mac, server_mac, client_next_hop, server_next_hop, link)
        self._wired = (
            f"{client} and {server}, {rx_queues} rings of {ring_size} towards the DUT, carried by {threads} threads on "
            f"CPUs {list(cpus) or 'any'} with {first.sends_with}, {rx_rings} rings of {plan.s2c_size} back"
        )

    def connect_cable(self, queues: int = 1, ring_size: int = 2048, frame_bytes: int = 1514) -> None:
        """Join the two ports directly, with no DUT between them: for the generator's ceiling."""
        self.disconnect()
        self._wiring = Wiring(*cable(RingPlan(queues, queues, ring_size, ring_size, _buffer_bytes(frame_bytes))))
        self._wired = f"cable, {queues} rings of {ring_size} per direction"

    @property
    def offers(self) -> frozenset[type[Load]]:
        """See `TrafficGenerator.offers`."""
        return frozenset({Rate, Idle})

    def run_trial(self, profile: ConnectionProfile | PacketProfile, load: Load, duration_s: float) -> Trial:
        """See `TrafficGenerator.run_trial`. A wire that broke is a `GeneratorError`."""
        require(self.offers, load, "the software traffic generator")
        if self._wiring is None:
            raise GeneratorError("The traffic generator is not connected to a DUT.")
        self._trials += 1
        salt = 1 + self._trials % 1000
        per_s = load.per_s if isinstance(load, Rate) else 0.0
        if isinstance(profile, PacketProfile):
            return stream_engine.run_trial(
                self._wiring, self._tables, profile, per_s, duration_s, cpus=self._cpus, salt=salt, watcher=self.watcher
            )
        return engine.run_trial(
            self._wiring, self._tables, profile, per_s, duration_s, cpus=self._cpus, salt=salt, watcher=self.watcher
        )

    def snapshot(self) -> dict[str, object]:
        """Kind, thread, CPUs and wiring."""
        return {"type": "software", "cpus": list(self._cpus), "wiring": self._wired}

    def disconnect(self) -> None:
        """Let go of the ports."""
        if self._wiring:
            self._wiring.close()
        self._wiring = None
        self._wired = "not connected"

    def close(self) -> None:
        """Let go of the ports. May be called twice."""
        self.disconnect()


def _plan(rx_queues: int, tx_queues: int, ring_size: int, frame_bytes: int) -> RingPlan:
    return RingPlan(rx_queues, tx_queues, ring_size, max(RECEIVE_RING, ring_size), _buffer_bytes(frame_bytes))


def _buffer_bytes(frame_bytes: int) -> int:
    """The smallest buffer that holds the frame, the two bytes before it, and a payload rounded up to eight."""
    for size in _BUFFER_SIZES:
        if frame_bytes + 16 <= size:
            return size
    raise GeneratorError(f"Frames of {frame_bytes} bytes do not fit a buffer of {_BUFFER_SIZES[-1]} bytes.")


def warm_up() -> None:
    """Compile the kernel functions, so that no trial waits for them. About 30 s the first time, nothing after it."""
    LinkThreads.compile()
    generator = SoftwareTrafficGenerator()
    generator.connect_cable()
    try:
        generator.run_trial(ConnectionProfile(name="warm-up"), Rate(1000), 0.05)
        generator.run_trial(PacketProfile(name="warm-up", kind="packets"), Rate(1000), 0.05)
    finally:
        generator.close()
