"""The software traffic generator behind the TrafficGenerator interface."""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.traffic.generator import PairedGenerator, Profiles, Side, Slice, TrafficGenerator, Trial
from ctbench.traffic.holding import HoldingGenerator
from ctbench.traffic.loads import Hold, Idle, Load, Rate, Saturation, require
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.software import engine, plan, stream_engine
from ctbench.traffic.software.hold import HeldConnections
from ctbench.traffic.software.kernel_thread import Watcher
from ctbench.traffic.software.memif import MemifPort, RingPlan, bonded_port, cable, connect
from ctbench.traffic.software.packet_port import LinkThreads, OpenSocket, PacketPort
from ctbench.traffic.software.pair import FIRST_SALT, PairedSlices
from ctbench.traffic.software.wiring import Wiring

#: The rings that the generator receives on hold this many frames: its own pauses of a few milliseconds cost nothing.
RECEIVE_RING = 16384
#: And half as many where they would take more memory than this per port, bytes: large frames come less often.
_MOST_BYTES = 1 << 28
#: Bytes per buffer: the smallest that hold a profile's frames keep the rings in the processor's caches.
_BUFFER_SIZES = (128, 256, 512, 1024, 2048, 4096, 9216)


class SoftwareTrafficGenerator(TrafficGenerator, HoldingGenerator, PairedGenerator):
    """Drives two ports from one thread. Wire it with one of `connect…`, offer with `run_trial`, end with `close`.

    Wired to a second DUT as well (`side="other"`), `run_trial` still offers to the first one alone, and `run_slices`
    serves both in turn."""

    def __init__(self, cpus: Sequence[int] = ()) -> None:
        """`cpus`: where its thread may run; empty: anywhere."""
        self._cpus = tuple(cpus)
        #: By side: what it is wired to, and that in words. The other side is there in a pair only.
        self._wirings: dict[Side, Wiring] = {}
        self._wired: dict[Side, str] = {}
        self._pair: PairedSlices | None = None
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
        side: Side = "tested",
    ) -> None:
        """Connect to the DUT's two memif sockets, and to those of further links where either side is a bond.

        `rx_queues`: rings towards the DUT per port, its receive queues; `tx_queues`: rings that it transmits on, all
        of which are polled; `ring_size`: entries of the rings towards the DUT; `frame_bytes`: the largest frame;
        `side`: of a pair, the tested one being connected first.
        """
        self._make_way(side)
        rings = _plan(rx_queues, tx_queues, ring_size, frame_bytes)
        ends: tuple[list[MemifPort], list[MemifPort]] = ([], [])
        with contextlib.ExitStack() as made:
            for pair in [(str(client), str(server)), *more]:
                for ports, path in zip(ends, pair, strict=True):
                    ports.append(connect(Path(path), rings))
                    made.callback(ports[-1].close)
            made.pop_all()  # all of them are there
        links = f"{1 + len(more)} links per side, " if more else ""
        sizes = f"{rx_queues} rings of {ring_size} towards the DUT, {tx_queues} of {rings.s2c_size} back"
        self._wire(side, Wiring(bonded_port(ends[0]), bonded_port(ends[1])), f"memif, {links}{sizes}")

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
        side: Side = "tested",
    ) -> None:
        """Use two network interfaces, in whose network namespace `open_socket` opens sockets.

        `rx_queues`, `ring_size`, `frame_bytes`, `side` as in `connect`; `rx_rings`: rings that take what the DUT sends,
        told apart by the CPU it sends from; `client_mac`, `server_mac`: where the frames of either end go, empty where
        the DUT bridges; `client_next_hop`, `server_next_hop`: addresses for which to answer ARP; `cpus`: where frames
        are handed to the DUT's interfaces, a thread each: in a pair, threads of the side that has its turn.
        """
        self._make_way(side)
        rings = _plan(rx_queues, rx_rings, ring_size, frame_bytes)
        # A fanout group is known by its number in a network namespace: two for each side.
        threads, group = max(1, len(cpus)), (os.getpid() * 4 + (2 if side == "other" else 0)) & 0xFFFF
        first = PacketPort(client, open_socket, rings, threads=threads, fanout_group=group)
        try:
            second = PacketPort(server, open_socket, rings, threads=threads, fanout_group=group + 1)
        except GeneratorError:
            first.close()
            raise
        link = LinkThreads([first.link_rings, second.link_rings], cpus)
        wiring = Wiring(first, second, client_mac, server_mac, client_next_hop, server_next_hop, link)
        self._wire(
            side,
            wiring,
            f"{client} and {server}, {rx_queues} rings of {ring_size} towards the DUT, carried by {threads} threads on "
            f"CPUs {list(cpus) or 'any'} with {first.sends_with}, {rx_rings} rings of {rings.s2c_size} back",
        )

    def connect_cable(
        self, queues: int = 1, ring_size: int = 2048, frame_bytes: int = 1514, side: Side = "tested"
    ) -> None:
        """Join the two ports directly, with no DUT between them: for the generator's ceiling."""
        self._make_way(side)
        wiring = Wiring(*cable(RingPlan(queues, queues, ring_size, ring_size, _buffer_bytes(frame_bytes))))
        self._wire(side, wiring, f"cable, {queues} rings of {ring_size} per direction")

    @property
    def offers(self) -> frozenset[type[Load]]:
        return frozenset({Rate, Hold, Saturation, Idle})

    def run_trial(self, profile: ConnectionProfile | PacketProfile, load: Load, duration_s: float) -> Trial:
        """A wire that broke is a `GeneratorError`."""
        require(self.offers, load, "the software traffic generator")
        if isinstance(load, Hold):
            if isinstance(profile, PacketProfile):
                raise MissingResource(f"Profile {profile.name} is of packets: no connection of it can be held open.")
            with self.hold(profile, load) as held:
                held.open(load.connections)
                time.sleep(duration_s)
                held.ask()
                return held.trial()
        wiring, salt = self._begin()
        started, tables = time.perf_counter(), self._tables
        if isinstance(profile, PacketProfile):
            timing = stream_engine.timing_of(profile, load, duration_s)
            run = stream_engine.prepare(wiring, tables, profile, load, timing, salt)
            run.go_on(wiring, self._cpus, timing.longest_s, self.watcher)
            return stream_engine.trial_of(run, wiring, profile, load, timing, started)
        timing = plan.timing_of(profile, load, duration_s)
        run = engine.prepare(wiring, tables, profile, load, timing, salt, times_messages=True)
        run.go_on(wiring, self._cpus, timing.longest_s, self.watcher)
        return engine.trial_of(run, wiring, load, timing, started)

    def hold(self, profile: ConnectionProfile, load: Hold) -> HeldConnections:
        """Until the next trial, which takes its memory."""
        wiring, salt = self._begin()
        return HeldConnections(wiring, self._tables, profile, load, self._cpus, salt)

    def run_slices(
        self, profiles: Profiles, order: Sequence[Side], slice_s: float, turn: Callable[[Side], None]
    ) -> list[Slice]:
        if self._pair is None:
            if "other" not in self._wirings:
                raise GeneratorError("The traffic generator is not connected to a pair of DUTs.")
            self._pair = PairedSlices(self._wirings["tested"], self._wirings["other"], self._cpus)
        return self._pair.run_slices(profiles, order, slice_s, turn)

    def forget(self) -> None:
        """Forget what is under way on the sides of a pair: for who empties the DUTs' connection tables, which knew it.
        The next slices begin with new connections."""
        if self._pair:
            self._pair.forget()

    def snapshot(self) -> dict[str, object]:
        wired = self._wired.get("tested", "not connected")
        other = {"other_wiring": self._wired["other"]} if "other" in self._wired else {}
        return {"type": "software", "cpus": list(self._cpus), "wiring": wired, **other}

    def disconnect(self) -> None:
        """Let go of the ports, of both sides."""
        self._pair = None
        self._wired.clear()
        while self._wirings:
            self._wirings.popitem()[1].close()

    def close(self) -> None:
        self.disconnect()

    def _begin(self) -> tuple[Wiring, int]:
        """What the next trial uses, and what tells its frames from those of others."""
        if "tested" not in self._wirings:
            raise GeneratorError("The traffic generator is not connected to a DUT.")
        self.forget()  # a trial takes what waits on the rings for another one's
        self._trials += 1
        return self._wirings["tested"], 1 + self._trials % (FIRST_SALT - 1)

    def _make_way(self, side: Side) -> None:
        if side == "tested":
            self.disconnect()
        elif set(self._wirings) != {"tested"}:
            raise GeneratorError("The other side of a pair is connected once, and after the tested one.")

    def _wire(self, side: Side, wiring: Wiring, description: str) -> None:
        self._wirings[side], self._wired[side] = wiring, description


def _plan(rx_queues: int, tx_queues: int, ring_size: int, frame_bytes: int) -> RingPlan:
    buffer_bytes = _buffer_bytes(frame_bytes)
    receive = RECEIVE_RING if RECEIVE_RING * buffer_bytes * tx_queues <= _MOST_BYTES else RECEIVE_RING // 2
    return RingPlan(rx_queues, tx_queues, ring_size, max(receive, ring_size), buffer_bytes)


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
        generator.run_trial(ConnectionProfile(name="warm-up"), Hold(10, 1000), 0.0)
    finally:
        generator.close()
