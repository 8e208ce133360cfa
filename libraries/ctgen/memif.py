"""memif, the shared-memory packet interface: its control protocol, by DPDK's memif.h and memif_socket.c.

The *server* listens on a UNIX socket of type SEQPACKET, the *client* owns the memory: it passes one region (a sealed
memfd) and a descriptor ring per queue and direction. Open vSwitch is the server towards this generator. Both keep the
control channel open: when it closes, the link is down. The two ends of a cable are the same rings without a protocol.
"""

import array
import contextlib
import fcntl
import mmap
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ctgen import ring as r
from ctgen.errors import GeneratorError
from ctgen.library import require_x86_64

_HUGE_PAGE: Final = 2 << 20


def _with_huge_pages(memory: mmap.mmap) -> int:
    """Ask for huge pages, which the kernel may refuse, and return the memory's address."""
    with contextlib.suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return int(np.frombuffer(memory, dtype=np.uint8).ctypes.data)


def zeroed_memory(size: int) -> tuple[mmap.mmap, int]:
    """Return private zeroed memory for tables, with huge pages where the kernel gives them, and its address."""
    memory = mmap.mmap(-1, max(size, _HUGE_PAGE) + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return memory, -(-_with_huge_pages(memory) // _HUGE_PAGE) * _HUGE_PAGE


COOKIE: Final = 0x3E31F20
VERSION: Final = 2 << 8
MESSAGE_BYTES: Final = 128
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
_WORDS = ("ack", "hello", "init", "add_region", "add_ring", "connect", "connected", "disconnect")
NAMES: Final = dict(enumerate(_WORDS, 1))
FLAG_C2S: Final = 1
_FLAG_MASK_INT: Final = 1  # the receiver polls: no interrupts
_RING_HEADER_BYTES: Final = 128  # head in the first cache line, tail in the second
HEAD_OFFSET, TAIL_OFFSET = 6, 64
NAME: Final = b"ctgen"
#: Frames start here in their buffer, so that the IP header (14 bytes on) is aligned to four bytes.
_FRAME_OFFSET: Final = 2

#: Between two tries to connect, seconds.
_RETRY_S: Final = 0.1


#: The rings that the generator receives on hold this many frames: its own pauses of a few milliseconds cost nothing.
RECEIVE_RING = 16384
#: And half as many where they would take more memory than this per port, bytes: large frames come less often.
_MOST_BYTES = 1 << 28
#: Bytes per buffer: the smallest that hold a profile's frames keep the rings in the processor's caches.
_BUFFER_SIZES = (128, 256, 512, 1024, 2048, 4096, 9216)


def buffer_bytes(frame_bytes: int) -> int:
    """Return the smallest buffer that holds the frame, the two bytes before it, and a payload rounded up to eight."""
    return next(size for size in _BUFFER_SIZES if frame_bytes + 16 <= size)


@dataclass(frozen=True)
class RingPlan:
    """The rings that the client offers: their number, their size, and the size of their buffers."""

    #: Rings from the client to the server, and back.
    c2s: int
    s2c: int
    #: Entries per ring: powers of two up to 16384.
    c2s_size: int = 2048
    s2c_size: int = 2048
    #: Bytes per buffer; a frame and the two bytes before it must fit.
    buffer_bytes: int = 2048

    @classmethod
    def towards(cls, rx_queues: int, tx_queues: int, ring_size: int, frame_bytes: int) -> "RingPlan":
        """Return the plan for a DUT's port: rings of `ring_size` towards its receive queues, and a ring for each queue
        on which it transmits."""
        size = buffer_bytes(frame_bytes)
        receive = RECEIVE_RING if RECEIVE_RING * size * tx_queues <= _MOST_BYTES else RECEIVE_RING // 2
        return cls(rx_queues, tx_queues, ring_size, max(receive, ring_size), size)


class Region:
    """The memory of a link: the rings of a plan and the buffers that they describe, which are the client's at first."""

    def __init__(self, plan: RingPlan, fd: int | None = None) -> None:
        """`fd`: the file of a region of the same plan, to map it once more; this region then owns it. None: new zeroed
        memory, which cannot shrink while the peer has it mapped."""
        require_x86_64()
        self.plan = plan
        each = [_RING_HEADER_BYTES + size * r.DESCRIPTOR_BYTES for size in (plan.c2s_size, plan.s2c_size)]
        #: Offsets of the rings of either direction.
        self.c2s = [number * each[0] for number in range(plan.c2s)]
        self.s2c = [plan.c2s * each[0] + number * each[1] for number in range(plan.s2c)]
        self._buffers = -(-(plan.c2s * each[0] + plan.s2c * each[1]) // 4096) * 4096
        slots = plan.c2s * plan.c2s_size + plan.s2c * plan.s2c_size
        # A peer that ignores the buffer size must not write past the region: leave room for one jumbo frame.
        self.size = -(-(self._buffers + slots * plan.buffer_bytes + 16384) // _HUGE_PAGE) * _HUGE_PAGE
        self.fd = self._allocate() if fd is None else fd
        self._map = mmap.mmap(self.fd, self.size)
        self._address = _with_huge_pages(self._map)
        if fd is None:
            self._describe()

    def _allocate(self) -> int:
        fd = os.memfd_create("ctgen-memif", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(fd, self.size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return fd

    def _describe(self) -> None:
        """Write the headers of the rings, and the buffer of each descriptor."""
        first, step = self._buffers + _FRAME_OFFSET, self.plan.buffer_bytes
        for offsets, entries in ((self.c2s, self.plan.c2s_size), (self.s2c, self.plan.s2c_size)):
            for offset in offsets:
                struct.pack_into("<IH", self._map, offset, COOKIE, _FLAG_MASK_INT)
                words = np.frombuffer(self._map, np.uint32, entries * 4, offset + _RING_HEADER_BYTES).reshape(-1, 4)
                words[:, r.DESCRIPTOR_LENGTH // 4] = step - _FRAME_OFFSET
                words[:, r.DESCRIPTOR_OFFSET // 4] = first + np.arange(entries) * step
                first += entries * step

    def client_rings(self) -> tuple[r.Rings, r.Rings]:
        """Return the rings to send on and to receive on at the client's end, and offer the buffers. Towards a server of
        the protocol, call it only after that has connected: it sets all indices to 0."""
        plan = self.plan
        tx, rx = self._rings()
        for ring in tx:
            ring.bias = plan.c2s_size
        for ring in rx:
            ring.bias, ring.offers = plan.s2c_size, 1
        for offset in self.s2c:
            struct.pack_into("<H", self._map, offset + HEAD_OFFSET, plan.s2c_size)
        return tx, rx

    def server_rings(self) -> tuple[r.Rings, r.Rings]:
        """Return the rings at the server's end, which owns no buffers."""
        rx, tx = self._rings()
        return tx, rx

    def _rings(self) -> tuple[r.Rings, r.Rings]:
        """Return the rings from the client to the server, and back. The client moves the heads, the server the
        tails."""
        c2s, s2c = r.new_rings(len(self.c2s)), r.new_rings(len(self.s2c))
        for rings, offsets, entries, produced, consumed in (
            (c2s, self.c2s, self.plan.c2s_size, HEAD_OFFSET, TAIL_OFFSET),
            (s2c, self.s2c, self.plan.s2c_size, TAIL_OFFSET, HEAD_OFFSET),
        ):
            for ring, offset in zip(rings, offsets, strict=True):
                at = self._address + offset
                ring.produced, ring.consumed = at + produced, at + consumed
                ring.descriptors, ring.mask = at + _RING_HEADER_BYTES, entries - 1
                (first,) = struct.unpack_from("<I", self._map, offset + _RING_HEADER_BYTES + r.DESCRIPTOR_OFFSET)
                ring.first, ring.stride = self._address + first, self.plan.buffer_bytes
                ring.buffer_bytes = self.plan.buffer_bytes - _FRAME_OFFSET
        return c2s, s2c

    def close(self) -> None:
        """Release the memory. The peer keeps its own mapping. May be called twice."""
        if self.fd < 0:
            return
        with contextlib.suppress(BufferError):
            self._map.close()
        fd, self.fd = self.fd, -1
        os.close(fd)


class MemifPort(r.Port):
    """A connected memif port. The sender drops a frame that finds a ring full, so `dropped` stays 0 here."""

    def __init__(self, control: socket.socket, region: Region, rings: tuple[r.Rings, r.Rings], peer: str) -> None:
        self._control, self._region, self._peer = control, region, peer
        self.tx, self.rx = rings

    def check_link(self) -> None:
        readable, _, _ = select.select([self._control], [], [], 0)
        if not readable:
            return
        try:
            message = self._control.recv(MESSAGE_BYTES)
        except OSError as error:  # it ended with something of ours unread
            raise GeneratorError(f"The link to {self._peer} broke: {error.strerror}.") from error
        reason = _text(message[6:102]) if len(message) == MESSAGE_BYTES else "the control socket was closed"
        raise GeneratorError(f"The DUT has closed the memif link to {self._peer}: {reason or 'no reason given'}.")

    def connect_again(self) -> "MemifPort":
        """Return a new link to the same socket, in place of this one."""
        self.close()
        return connect(Path(self._peer), self._region.plan)

    def close(self) -> None:
        self._control.close()
        self._region.close()


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("ascii", "replace")


def _send(control: socket.socket, kind: int, body: bytes = b"", fd: int | None = None) -> None:
    ancillary = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    control.sendmsg([(struct.pack("<H", kind) + body).ljust(MESSAGE_BYTES, b"\0")], ancillary)


def _receive(control: socket.socket, expected: int) -> bytes:
    """Return the body of the next message, which must be of the `expected` kind."""
    try:
        data = control.recv(MESSAGE_BYTES)
    except TimeoutError as error:
        raise GeneratorError(f"memif: no {NAMES[expected]} message within {control.gettimeout()} s.") from error
    if len(data) < 2:
        raise GeneratorError(f"memif: the other side closed the link instead of sending {NAMES[expected]}.")
    (got,) = struct.unpack_from("<H", data)
    if got == DISCONNECT:
        raise GeneratorError(f"memif: the other side refused the link: {_text(data[6:102])!r}.")
    if got != expected:
        raise GeneratorError(f"memif: message {NAMES.get(got, got)} came instead of {NAMES[expected]}.")
    return data[2:]


def connect(path: Path, plan: RingPlan, timeout: float = 5.0) -> MemifPort:
    """Connect to the memif server at `path` in the client role, offering the rings of `plan`.

    Raise `GeneratorError` where no answer comes, or the server refuses. A server that has not yet noticed the end of
    the previous link resets the new one, so this is tried again until `timeout` seconds are over.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return _connect(path, plan, timeout)
        except ConnectionResetError as error:
            if time.monotonic() > deadline:
                raise GeneratorError(f"The DUT's memif port {path} resets the link: {error.strerror}.") from error
            time.sleep(_RETRY_S)
        except OSError as error:
            raise GeneratorError(f"The link to the DUT's memif port {path} could not be made: {error}") from error


def _connect(path: Path, plan: RingPlan, timeout: float) -> MemifPort:
    with contextlib.ExitStack() as made:
        control = made.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        control.settimeout(timeout)
        try:
            control.connect(str(path))
            low, high = struct.unpack_from("<HH", _receive(control, HELLO), 32)
        except ConnectionResetError:
            raise
        except (OSError, GeneratorError) as error:
            raise GeneratorError(f"The DUT's memif port {path} does not answer: {error}") from error
        if not low <= VERSION <= high:
            raise GeneratorError(f"memif: the server speaks versions {low:#x}-{high:#x}, this generator {VERSION:#x}.")
        region = Region(plan)
        made.callback(region.close)
        _offer(control, plan, region)
        made.pop_all()  # all of it is there
    return MemifPort(control, region, region.client_rings(), str(path))


def _offer(control: socket.socket, plan: RingPlan, region: Region) -> None:
    """Pass the memory and its rings to a server that has sent its hello."""

    def tell(kind: int, body: bytes, fd: int | None = None, answer: int = ACK) -> None:
        _send(control, kind, body, fd)
        _receive(control, answer)

    tell(INIT, struct.pack("<HIB24s32s", VERSION, 0, 0, b"", NAME))
    tell(ADD_REGION, struct.pack("<HQ", 0, region.size), region.fd)
    for flags, offsets, entries in ((FLAG_C2S, region.c2s, plan.c2s_size), (0, region.s2c, plan.s2c_size)):
        for index, offset in enumerate(offsets):
            event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            try:
                tell(ADD_RING, struct.pack("<HHHIBH", flags, index, 0, offset, entries.bit_length() - 1, 0), event)
            finally:
                os.close(event)  # the server has its own copy
    tell(CONNECT, NAME, answer=CONNECTED)


def cable(plan: RingPlan) -> tuple[MemifPort, MemifPort]:
    """Return the client's and the server's end of the rings of `plan`, joined directly: no file is made."""
    near, far = Region(plan), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    other = Region(plan, os.dup(near.fd))
    client = MemifPort(far[0], near, near.client_rings(), "cable")
    return client, MemifPort(far[1], other, other.server_rings(), "cable")


class JoinedPort(r.Port):
    """A port over one link, or over the links of a bond or of several port pairs, whose rings it offers in turn. All
    frames of a flow take the same ring."""

    def __init__(self, links: Sequence[r.Port]) -> None:
        self._links = tuple(links)
        # A ring holds this side's state of it: these copies are the only ones that are used.
        self.tx = r.joined([link.tx for link in links])
        self.rx = r.joined([link.rx for link in links])

    def dropped(self) -> int:
        return sum(link.dropped() for link in self._links)

    def check_link(self) -> None:
        for link in self._links:
            link.check_link()

    def reconnect(self) -> None:
        self._links = tuple(link.connect_again() if isinstance(link, MemifPort) else link for link in self._links)
        self.tx[:] = list(r.joined([link.tx for link in self._links]))
        self.rx[:] = list(r.joined([link.rx for link in self._links]))

    def close(self) -> None:
        for link in self._links:
            link.close()
