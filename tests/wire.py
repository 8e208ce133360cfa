"""A wire with somebody on it: joins the generator's two ports in plain Python, and may look, drop and rewrite.

Stands in the place of a DUT, so that what the generator does about a lost, broken or foreign packet can be shown
without one. Slow (some ten thousand frames per second) and meant to be."""

import ctypes
import os
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from packets import Endpoint, Packet, parse

from ctbench.base.yaml_files import load
from ctbench.dut.base import Ports
from ctbench.hosts.connections import HostPool
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Placement
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connectors.software import SoftwareConnector
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile
from ctgen import Cable, Ends, Generator, Link, clock, plan
from ctgen import ring as r
from ctgen.engine import Run
from ctgen.memif import JoinedPort, RingPlan, cable
from ctgen.wiring import Wiring

#: Gets a frame and where it came from (`client` or `server`); says what comes out at the other end.
Handler = Callable[[bytes, str], list[bytes]]
#: A load of connections that counts at once: nothing has to settle without a DUT.
AT_ONCE = {"RAMP_S": 0.0, "SETTLE_S": 0.1}
#: Seconds that what is to be sent may be late.
LATEST_S = 5.0


def _index(address: int) -> int:
    return ctypes.c_uint16.from_address(address).value


def _set_index(address: int, value: int) -> None:
    ctypes.c_uint16.from_address(address).value = value & 0xFFFF


def take(ring: ctypes.Structure, limit: int = 64) -> list[bytes]:
    """Frames that wait on a receive ring."""
    frames = []
    waiting = min(limit, (_index(ring.produced) - ring.index) & 0xFFFF)
    for _ in range(waiting):
        descriptor = ring.descriptors + (ring.index & ring.mask) * r.DESCRIPTOR_BYTES
        (length,) = struct.unpack_from("<I", ctypes.string_at(descriptor + r.DESCRIPTOR_LENGTH, 4))
        frames.append(ctypes.string_at(ring.first + (ring.index & ring.mask) * ring.stride, length))
        ring.index += 1
    if waiting:
        _set_index(ring.consumed, ring.index + ring.bias)
    return frames


def put(ring: ctypes.Structure, frame: bytes) -> bool:
    """Put a frame on a transmit ring; False when there is no room."""
    index = ring.index
    if (_index(ring.consumed) + ring.bias - index) & 0xFFFF == 0:
        return False
    descriptor = ring.descriptors + (index & ring.mask) * r.DESCRIPTOR_BYTES
    ctypes.memmove(ring.first + (index & ring.mask) * ring.stride, frame, len(frame))
    ctypes.c_uint32.from_address(descriptor + r.DESCRIPTOR_LENGTH).value = len(frame)
    ring.index += 1
    _set_index(ring.produced, index + 1)
    return True


def over_a_cable(profile: Profile, load: Load, seconds: float, ring_size: int = 2048) -> Trial:
    """A trial with nothing between the generator's two ports."""
    with patch.multiple(plan, **AT_ONCE), closing(Generator()) as generator:
        generator.connect(Cable(ring_size=ring_size))
        return generator.run_trial(profile, load, seconds)


def over_a_wire(
    handler: Handler, profile: Profile, load: float = 400, seconds: float = 0.25, *, patience: float = 10.0
) -> Trial:
    """A trial at a rate over a wire with this handler: by itself of few connections (packets), for a wire in Python.
    `patience`: how long the generator waits for what is under way, seconds: the wire may be kept off the CPU, and the
    generator as well, which begins late then what it was to begin."""
    with (
        patch.object(clock, "LATEST_S", LATEST_S),
        patch.object(plan, "REPLY_TIMEOUT_S", patience),
        patch.object(plan, "STREAM_LINGER_S", patience),
        Wire(handler) as wire,
    ):
        return wire.generator.run_trial(profile, Rate(load), seconds)


def software_connector(*cpus: int) -> SoftwareConnector:
    """Of the testbed `local`, with a generator on these CPUs."""
    local = load("testbeds", "local", TestbedConfig)
    return SoftwareConnector(local, HostPool({}), lambda: Placement(cpus, (), ()), Path())


def join(generator: Generator, ports: Ports, frame_bytes: int = 1514, threads: int = 1, **changes: object) -> None:
    """Connect the generator to a DUT's ports, with `changes` to what the DUT says of them. `threads`: of both."""
    connector = software_connector()
    connector.generator = generator
    placement = Placement(shared_cpus(threads), tuple(range(threads)), ())
    connector.connect(replace(ports, **changes), LocalHost(), placement, frame_bytes)  # type: ignore[arg-type]


def shared_cpus(threads: int) -> tuple[int, ...]:
    """A CPU for each of several threads, the same one for more than one where there are too few; none for one."""
    usable = sorted(os.sched_getaffinity(0))
    return tuple(usable[thread % len(usable)] for thread in range(threads)) if threads > 1 else ()


def deaf(_frame: bytes, _side: str) -> list[bytes]:
    """A slow DUT that lets nothing through: its rings fill."""
    time.sleep(0.002)
    return []


@contextmanager
def watching(watch: Callable[[Run], None]) -> Iterator[None]:
    """During a trial of the software generator `watch` gets its run, about ten times a second."""
    runs: list[Run] = []
    go_on, check_ports = Run.go_on, Wiring.check_ports

    def going_on(run: Run, *arguments: Any) -> None:
        runs[:] = [run]
        go_on(run, *arguments)

    def checked(wiring: Wiring) -> None:
        watch(runs[0])
        check_ports(wiring)

    with patch.object(Run, "go_on", going_on), patch.object(Wiring, "check_ports", checked):
        yield


class Tap:
    """A handler that passes on what goes in, and keeps it: when, the frame, and where it came from."""

    def __init__(self, lost: Callable[[Packet, str], bool] = lambda _packet, _side: False) -> None:
        """`lost`: what is not passed on."""
        self.frames: list[tuple[float, bytes, str]] = []
        self._lost = lost

    def __call__(self, frame: bytes, side: str) -> list[bytes]:
        self.frames.append((time.time(), frame, side))
        return [] if self._lost(parse(frame), side) else [frame]

    def packets(self, side: str = "") -> list[Packet]:
        """What went in, on both sides or on one."""
        return [parse(frame) for _, frame, came_from in self.frames if side in ("", came_from)]

    def conversations(self) -> dict[Endpoint, list[tuple[str, Packet]]]:
        """Packets of each connection, known by the client's address and port."""
        found: dict[Endpoint, list[tuple[str, Packet]]] = defaultdict(list)
        for _, frame, side in self.frames:
            packet = parse(frame)
            ends = (packet.source, packet.source_port), (packet.destination, packet.destination_port)
            found[ends[side == "server"]].append((side, packet))
        return found


@dataclass(frozen=True, kw_only=True)
class Made(Link):
    """A link whose ports are made."""

    client_end: r.Port
    server_end: r.Port
    threads: int

    def wire(self) -> Wiring:
        return Wiring(self.client_end, self.server_end, self, "a wire", most_threads=self.threads)


class Wire:
    """`with Wire(handler) as wire:` - `wire.generator` is connected and ready for `run_trial`."""

    def __init__(
        self,
        handler: Handler = lambda frame, _: [frame],
        queues: int = 1,
        *,
        threads: int = 1,
        comes_out: Callable[[int], int] = lambda queue: queue,
        ring_size: int = 2048,
        ends: tuple[Ends, ...] = (Ends(),),
    ) -> None:
        """`threads`: of the generator at most; `comes_out`: the ring on which frames of a queue come out; `ring_size`:
        frames that a ring of a queue holds; `ends`: of pairs of ports, whose queues take turns."""
        self._handler, self._queues, self._threads, self._comes_out = handler, queues, threads, comes_out
        self._ring_size, self._ends = ring_size, ends
        self._stop = threading.Event()
        self._at_once = patch.multiple(plan, **AT_ONCE)
        self.generator = Generator(shared_cpus(threads))
        #: Frames that went in, by the side that they came from and queue.
        self.seen_on: dict[tuple[str, int], int] = defaultdict(int)

    def __enter__(self) -> "Wire":
        self._at_once.start()
        self.rings = RingPlan(self._queues, self._queues, self._ring_size, s2c_size=16384)
        (client, at_client), (server, at_server) = cable(self.rings), cable(self.rings)
        bonded = JoinedPort([client]), JoinedPort([server])
        made = Made(client_end=bonded[0], server_end=bonded[1], threads=self._threads, ends=self._ends)
        self.generator.connect(made)
        self.ports = {"client": at_client, "server": at_server}
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._at_once.stop()
        self._thread.join(5)
        self.generator.close()
        for port in self.ports.values():
            port.close()

    def _relay(self) -> None:
        while not self._stop.is_set():
            for side, other in (("client", "server"), ("server", "client")):
                for queue, ring in enumerate(self.ports[side].rx):
                    for frame in take(ring):
                        self.seen_on[side, queue] += 1
                        for out in self._handler(frame, side):
                            put(self.ports[other].tx[self._comes_out(queue)], out)
