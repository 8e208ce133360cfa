"""A wire with somebody on it: joins the generator's two memif ports in plain Python, and may look, drop and rewrite.

Stands in the place of a DUT, so that what the generator does about a lost, broken or foreign packet can be shown
without one. Slow (some ten thousand frames per second) and meant to be.
"""

import ctypes
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import Profile
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.generator import SoftwareTrafficGenerator
from ctbench.traffic.software.memif import MemifPort, serve

#: Gets a frame and where it came from (`client` or `server`); says what comes out at the other end.
Handler = Callable[[bytes, str], list[bytes]]


def _index(address: int) -> int:
    return ctypes.c_uint16.from_address(address).value


def _set_index(address: int, value: int) -> None:
    ctypes.c_uint16.from_address(address).value = value & 0xFFFF


def take(row: "object", limit: int = 64) -> list[bytes]:
    """Frames that wait on a receive ring (a row of `ring.new_rings`)."""
    frames = []
    waiting = min(limit, (_index(int(row[r.PRODUCED])) - int(row[r.INDEX])) & 0xFFFF)
    for _ in range(waiting):
        descriptor = int(row[r.DESCRIPTORS]) + (int(row[r.INDEX]) & int(row[r.MASK])) * r.DESCRIPTOR_BYTES
        _, _, length, offset = struct.unpack_from("<HHII", ctypes.string_at(descriptor, 16))
        frames.append(ctypes.string_at(int(row[r.REGION]) + offset, length))
        row[r.INDEX] += 1
    if waiting:
        _set_index(int(row[r.CONSUMED]), int(row[r.INDEX]) + int(row[r.BIAS]))
    return frames


def put(row: "object", frame: bytes) -> bool:
    """Put a frame on a transmit ring; False when there is no room."""
    index = int(row[r.INDEX])
    if (_index(int(row[r.CONSUMED])) + int(row[r.BIAS]) - index) & 0xFFFF == 0:
        return False
    descriptor = int(row[r.DESCRIPTORS]) + (index & int(row[r.MASK])) * r.DESCRIPTOR_BYTES
    (offset,) = struct.unpack_from("<I", ctypes.string_at(descriptor + r.DESCRIPTOR_OFFSET, 4))
    ctypes.memmove(int(row[r.REGION]) + offset, frame, len(frame))
    ctypes.c_uint32.from_address(descriptor + r.DESCRIPTOR_LENGTH).value = len(frame)
    row[r.INDEX] += 1
    _set_index(int(row[r.PRODUCED]), index + 1)
    return True


def _listen(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen(1)
    listening.settimeout(5)
    return listening


def _accept(listening: socket.socket) -> MemifPort:
    control, _ = listening.accept()
    control.settimeout(5)
    return serve(control, "wire")


def over_a_cable(profile: Profile, load: Load, seconds: float, ring_size: int = 2048) -> Trial:
    """A trial with nothing between the generator's two ports."""
    with closing(SoftwareTrafficGenerator()) as generator:
        generator.connect_cable(ring_size=ring_size)
        return generator.run_trial(profile, load, seconds)


class Wire:
    """`with Wire(handler) as wire:` - `wire.generator` is connected and ready for `run_trial`."""

    def __init__(self, handler: Handler = lambda frame, _: [frame], queues: int = 1) -> None:
        self._handler, self._queues = handler, queues
        self._stop = threading.Event()
        self.generator = SoftwareTrafficGenerator()
        #: Frames that went in, by the side that they came from.
        self.seen = {"client": 0, "server": 0}

    def __enter__(self) -> "Wire":
        with tempfile.TemporaryDirectory() as folder:
            servers = [_listen(Path(folder) / name) for name in ("client", "server")]
            ports: list[MemifPort] = []
            acceptor = threading.Thread(target=lambda: ports.extend(map(_accept, servers)))
            acceptor.start()
            self.generator.connect(
                Path(folder) / "client", Path(folder) / "server", rx_queues=self._queues, tx_queues=self._queues
            )
            acceptor.join(5)
            for server in servers:
                server.close()
        self._ports = dict(zip(("client", "server"), ports, strict=True))
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)
        self.generator.close()
        for port in self._ports.values():
            port.close()

    def inject(self, side: str, frame: bytes) -> bool:
        """Send the generator's port a frame that nobody asked for; False when there is no room."""
        return put(self._ports[side].tx[0], frame)

    def _relay(self) -> None:
        while not self._stop.is_set():
            for side, other in (("client", "server"), ("server", "client")):
                for queue, row in enumerate(self._ports[side].rx):
                    for frame in take(row):
                        self.seen[side] += 1
                        for out in self._handler(frame, side):
                            put(self._ports[other].tx[queue], out)
