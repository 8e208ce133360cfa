"""memif, the shared-memory packet interface: its control protocol in both roles, by DPDK's memif.h and memif_socket.c.

The *server* listens on a UNIX socket of type SEQPACKET, the *client* owns the memory: it passes one region (a sealed
memfd) and a descriptor ring per queue and direction. Open vSwitch is the server towards this generator; the server
role here makes the other end of a cable. Both keep the control channel open: when it closes, the link is down.
"""

import array
import contextlib
import ctypes
import fcntl
import mmap
import os
import platform
import select
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ctbench.errors import GeneratorError, MissingResource
from ctbench.traffic.software import ring as r

_COOKIE: Final = 0x3E31F20
_VERSION: Final = 2 << 8
_MESSAGE_BYTES: Final = 128
_ACK, _HELLO, _INIT, _ADD_REGION, _ADD_RING, _CONNECT, _CONNECTED, _DISCONNECT = range(1, 9)
_MESSAGES = ("none", "ack", "hello", "init", "add_region", "add_ring", "connect", "connected", "disconnect")
_NAMES: Final = dict(enumerate(_MESSAGES))
_FLAG_C2S: Final = 1
_FLAG_MASK_INT: Final = 1  # the receiver polls: no interrupts
_RING_HEADER_BYTES: Final = 128  # head in the first cache line, tail in the second
_HEAD_OFFSET, _TAIL_OFFSET = 6, 64
_NAME: Final = b"ctbench"
_MAX_LOG2_RING: Final = 14
_MADV_HUGEPAGE: Final = 14
#: Frames start here in their buffer, so that the IP header (14 bytes on) is aligned to four bytes.
_FRAME_OFFSET: Final = 2

#: Between two tries to connect, seconds.
_RETRY_S: Final = 0.1

Rings = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def check_processor() -> None:
    """The rings rely on the store order of x86-64."""
    if platform.machine() not in ("x86_64", "amd64"):
        raise MissingResource(
            f"The software traffic generator needs an x86-64 processor and found {platform.machine()}: its shared"
            " memory rings rely on that processor's order of stores. Use TRex on another host."
        )


class Region:
    """Shared memory, mapped once: its address, its size and the file behind it."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd, self.size = fd, size
        self._map = mmap.mmap(fd, size)
        with contextlib.suppress(OSError):  # huge pages are a courtesy of the kernel
            self._map.madvise(_MADV_HUGEPAGE)
        self._view = np.frombuffer(self._map, dtype=np.uint8)
        self.address = int(self._view.ctypes.data)

    @classmethod
    def allocate(cls, size: int) -> "Region":
        """New zeroed memory of at least `size` bytes that cannot shrink while the peer has it mapped."""
        size = -(-size // (2 << 20)) * (2 << 20)
        fd = os.memfd_create("ctbench-memif", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return cls(fd, size)

    def write16(self, offset: int, value: int) -> None:
        """Store a little-endian 16-bit value."""
        self._view[offset : offset + 2] = np.frombuffer(struct.pack("<H", value & 0xFFFF), np.uint8)

    def write32(self, offset: int, value: int) -> None:
        """Store a little-endian 32-bit value."""
        self._view[offset : offset + 4] = np.frombuffer(struct.pack("<I", value), np.uint8)

    def words(self, offset: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """The `size` bytes at `offset` as 32-bit words, to be written in place."""
        return self._view[offset : offset + size].view(np.uint32)

    def close(self) -> None:
        """Let go of the memory. The peer keeps its own mapping."""
        del self._view
        with contextlib.suppress(BufferError):
            self._map.close()
        os.close(self.fd)


@dataclass(frozen=True)
class RingPlan:
    """How many rings of which size the client offers, and how large their buffers are."""

    #: Rings from the client to the server, and back.
    c2s: int
    s2c: int
    #: Entries per ring: powers of two.
    c2s_size: int = 2048
    s2c_size: int = 2048
    #: Bytes per buffer; a frame and the two bytes before it must fit.
    buffer_bytes: int = 2048

    def check(self) -> None:
        """Raise `GeneratorError` for what memif cannot carry."""
        for size in (self.c2s_size, self.s2c_size):
            if size & (size - 1) or not 2 <= size <= 1 << _MAX_LOG2_RING:
                raise GeneratorError(
                    f"A memif ring cannot have {size} entries. Expected a power of two up to {1 << _MAX_LOG2_RING}."
                )


class MemifPort:
    """A connected memif port: rings to put frames on (`tx`) and rings to take frames from (`rx`)."""

    def __init__(self, control: socket.socket, region: Region, tx: Rings, rx: Rings, peer: str) -> None:
        self._control, self._region = control, region
        self.tx, self.rx, self.peer = tx, rx, peer

    def dropped(self) -> int:
        """None: whoever finds a ring full drops the frame himself."""
        return 0

    def check_link(self) -> None:
        """Raise `GeneratorError` when the other side has closed the link."""
        readable, _, _ = select.select([self._control], [], [], 0)
        if not readable:
            return
        try:
            message = self._control.recv(_MESSAGE_BYTES)
        except OSError as error:  # it ended with something of ours unread
            raise GeneratorError(f"The link to {self.peer} broke: {error.strerror}.") from error
        reason = _text(message[6:102]) if len(message) == _MESSAGE_BYTES else "the control socket was closed"
        raise GeneratorError(f"The DUT has closed the memif link to {self.peer}: {reason or 'no reason given'}.")

    def close(self) -> None:
        """Close the link."""
        self._control.close()
        self._region.close()


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("ascii", "replace")


def _send(control: socket.socket, kind: int, body: bytes = b"", fd: int | None = None) -> None:
    ancillary = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    control.sendmsg([(struct.pack("<H", kind) + body).ljust(_MESSAGE_BYTES, b"\0")], ancillary)


def _receive(control: socket.socket, expected: int) -> tuple[bytes, int | None]:
    """The body of the next message, which must be of the `expected` kind, and the file that came with it."""
    try:
        data, ancillary, _, _ = control.recvmsg(_MESSAGE_BYTES, socket.CMSG_SPACE(4))
    except TimeoutError as error:
        raise GeneratorError(f"memif: no {_NAMES[expected]} message within {control.gettimeout()} s.") from error
    if len(data) < 2:
        raise GeneratorError(f"memif: the other side closed the link instead of sending {_NAMES[expected]}.")
    fd = None
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fd = struct.unpack("i", payload[:4])[0]
    (got,) = struct.unpack_from("<H", data)
    if got == _DISCONNECT:
        raise GeneratorError(f"memif: the other side refused the link: {_text(data[6:102])!r}.")
    if got != expected:
        raise GeneratorError(f"memif: message {_NAMES.get(got, got)} came instead of {_NAMES[expected]}.")
    return data[2:], fd


def _layout(plan: RingPlan) -> tuple[list[int], list[int], int, int]:
    """Offsets of the rings of both directions, of the buffers, and the size of the region."""
    at = 0
    c2s: list[int] = []
    s2c: list[int] = []
    for offsets, count, size in ((c2s, plan.c2s, plan.c2s_size), (s2c, plan.s2c, plan.s2c_size)):
        for _ in range(count):
            offsets.append(at)
            at += _RING_HEADER_BYTES + size * r.DESCRIPTOR_BYTES
    buffers = -(-at // 4096) * 4096
    slots = plan.c2s * plan.c2s_size + plan.s2c * plan.s2c_size
    # A peer that ignores the buffer size must not write past the region: leave room for one jumbo frame.
    return c2s, s2c, buffers, buffers + slots * plan.buffer_bytes + 16384


def _row(region: Region, offset: int, size: int, *, produced: int, consumed: int) -> list[int]:
    base = region.address + offset
    row = [base + produced, base + consumed, base + _RING_HEADER_BYTES, region.address, size - 1]
    return row + [0] * (r.COLUMNS - len(row))


def connect(path: Path, plan: RingPlan, timeout: float = 5.0) -> MemifPort:
    """Connect to the memif server at `path` in the client role, offering the rings of `plan`.

    Raises `GeneratorError` when nobody answers, or the server refuses. A server that has not yet seen the end of the
    link before this one resets the new one, so that is tried again until the time is up.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return _connect(path, plan, timeout)
        except ConnectionResetError as error:
            if time.monotonic() > deadline:
                raise GeneratorError(f"The DUT's memif port {path} resets the link: {error.strerror}.") from error
            time.sleep(_RETRY_S)


def _connect(path: Path, plan: RingPlan, timeout: float) -> MemifPort:
    check_processor()
    plan.check()
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.settimeout(timeout)
    try:
        control.connect(str(path))
        body, _ = _receive(control, _HELLO)
    except ConnectionResetError:
        control.close()
        raise
    except (OSError, GeneratorError) as error:
        control.close()
        raise GeneratorError(f"The DUT's memif port {path} does not answer: {error}") from error
    low, high = struct.unpack_from("<HH", body, 32)
    if not low <= _VERSION <= high:
        control.close()
        raise GeneratorError(f"memif: the server speaks versions {low:#x}-{high:#x}, this generator {_VERSION:#x}.")
    c2s, s2c, buffers, size = _layout(plan)
    region = Region.allocate(size)
    events = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(plan.c2s + plan.s2c)]
    slot = 0
    for offsets, ring_size in ((c2s, plan.c2s_size), (s2c, plan.s2c_size)):
        for offset in offsets:
            region.write32(offset, _COOKIE)
            region.write16(offset + 4, _FLAG_MASK_INT)
            descriptors = region.words(offset + _RING_HEADER_BYTES, ring_size * r.DESCRIPTOR_BYTES).reshape(-1, 4)
            descriptors[:, r.DESCRIPTOR_LENGTH // 4] = plan.buffer_bytes - _FRAME_OFFSET
            first = buffers + slot * plan.buffer_bytes + _FRAME_OFFSET
            descriptors[:, r.DESCRIPTOR_OFFSET // 4] = first + np.arange(ring_size) * plan.buffer_bytes
            slot += ring_size
    try:
        _send(control, _INIT, struct.pack("<HIB24s32s", _VERSION, 0, 0, b"", _NAME))
        _receive(control, _ACK)
        _send(control, _ADD_REGION, struct.pack("<HQ", 0, region.size), region.fd)
        _receive(control, _ACK)
        for flags, offsets, ring_size, fds in (
            (_FLAG_C2S, c2s, plan.c2s_size, events[: plan.c2s]),
            (0, s2c, plan.s2c_size, events[plan.c2s :]),
        ):
            for index, (offset, fd) in enumerate(zip(offsets, fds, strict=True)):
                log2 = ring_size.bit_length() - 1
                _send(control, _ADD_RING, struct.pack("<HHHIBH", flags, index, 0, offset, log2, 0), fd)
                _receive(control, _ACK)
        _send(control, _CONNECT, _NAME)
        _receive(control, _CONNECTED)
    except (OSError, GeneratorError) as error:
        control.close()
        region.close()
        if isinstance(error, (ConnectionResetError, GeneratorError)):
            raise
        raise GeneratorError(f"The link to the DUT's memif port {path} could not be made: {error}") from error
    finally:
        for fd in events:  # the server has its own copies
            os.close(fd)
    tx, rx = r.new_rings(plan.c2s), r.new_rings(plan.s2c)
    for row, offset in zip(tx, c2s, strict=True):
        row[:] = _row(region, offset, plan.c2s_size, produced=_HEAD_OFFSET, consumed=_TAIL_OFFSET)
        row[r.BIAS] = plan.c2s_size
    for row, offset in zip(rx, s2c, strict=True):
        row[:] = _row(region, offset, plan.s2c_size, produced=_TAIL_OFFSET, consumed=_HEAD_OFFSET)
        row[r.BIAS] = plan.s2c_size
        row[r.BUFFER_BYTES] = plan.buffer_bytes - _FRAME_OFFSET
        # The server sets both indices to 0 when it connects: only now may the buffers be offered.
        region.write16(offset + _HEAD_OFFSET, plan.s2c_size)
    return MemifPort(control, region, tx, rx, str(path))


class MemifServer:
    """A memif server for one client: the other end of a cable, with nothing in between."""

    def __init__(self, path: Path, timeout: float = 5.0) -> None:
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._listener.settimeout(timeout)

    def accept(self) -> MemifPort:
        """Wait for the client and take its rings. Runs in a thread of its own while the client connects."""
        control, _ = self._listener.accept()
        control.settimeout(self._listener.gettimeout())
        try:
            return self._handshake(control)
        except (OSError, GeneratorError):
            control.close()
            raise

    def _handshake(self, control: socket.socket) -> MemifPort:
        _send(control, _HELLO, struct.pack("<32sHHHHHB", _NAME, _VERSION, _VERSION, 0, 63, 63, _MAX_LOG2_RING))
        body, _ = _receive(control, _INIT)
        (version,) = struct.unpack_from("<H", body)
        if version != _VERSION:
            _send(control, _DISCONNECT, struct.pack("<I96s", 0, b"Incompatible memif version"))
            raise GeneratorError(f"memif: the client speaks version {version:#x}, this server {_VERSION:#x}.")
        _send(control, _ACK)
        body, fd = _receive(control, _ADD_REGION)
        (_, size) = struct.unpack_from("<HQ", body)
        if fd is None:
            raise GeneratorError("memif: the client sent no file with its memory region.")
        region = Region(fd, size)
        _send(control, _ACK)
        tx, rx = [], []
        while True:
            message, ancillary, _, _ = control.recvmsg(_MESSAGE_BYTES, socket.CMSG_SPACE(4))
            for _, _, payload in ancillary:
                os.close(struct.unpack("i", payload[:4])[0])  # polled: its interrupt is never used
            (kind,) = struct.unpack_from("<H", message)
            if kind == _CONNECT:
                break
            if kind != _ADD_RING:
                raise GeneratorError(f"memif: message {_NAMES.get(kind, kind)} came instead of add_ring or connect.")
            flags, _, _, offset, log2, _ = struct.unpack_from("<HHHIBH", message, 2)
            entries = 1 << log2
            region.write16(offset + _HEAD_OFFSET, 0)
            region.write16(offset + _TAIL_OFFSET, 0)
            if flags & _FLAG_C2S:
                rx.append(_row(region, offset, entries, produced=_HEAD_OFFSET, consumed=_TAIL_OFFSET))
            else:
                tx.append(_row(region, offset, entries, produced=_TAIL_OFFSET, consumed=_HEAD_OFFSET))
            _send(control, _ACK)
        _send(control, _CONNECTED, _NAME)
        return MemifPort(control, region, np.array(tx, np.int64), np.array(rx, np.int64), str(self._path))

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self._listener.close()
        self._path.unlink(missing_ok=True)


def zeroed_memory(size: int) -> tuple[mmap.mmap, int]:
    """Private memory for tables, with huge pages where the kernel gives them, and its address."""
    memory = mmap.mmap(-1, max(size, 2 << 20) + (2 << 20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):
        memory.madvise(_MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, -(-address // (2 << 20)) * (2 << 20)
