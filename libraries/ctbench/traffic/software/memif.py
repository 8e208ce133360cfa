"""memif, the shared-memory packet interface: its control protocol, by DPDK's memif.h and memif_socket.c.

The *server* listens on a UNIX socket of type SEQPACKET, the *client* owns the memory: it passes one region (a sealed
memfd) and a descriptor ring per queue and direction. Open vSwitch is the server towards this generator; memif_server
makes the other end of a cable. Both keep the control channel open: when it closes, the link is down.
"""

import array
import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ctbench.base.errors import GeneratorError
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.kind import require_x86_64

_MADV_HUGEPAGE: Final = 14


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
        self._view[offset : offset + 2] = np.frombuffer(struct.pack("<H", value & 0xFFFF), np.uint8)

    def write32(self, offset: int, value: int) -> None:
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


def zeroed_memory(size: int) -> tuple[mmap.mmap, int]:
    """Private memory for tables, with huge pages where the kernel gives them, and its address."""
    memory = mmap.mmap(-1, max(size, 2 << 20) + (2 << 20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):
        memory.madvise(_MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, -(-address // (2 << 20)) * (2 << 20)


COOKIE: Final = 0x3E31F20
VERSION: Final = 2 << 8
MESSAGE_BYTES: Final = 128
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
_MESSAGES = ("ack", "hello", "init", "add_region", "add_ring", "connect", "connected", "disconnect")
NAMES: Final = dict(enumerate(_MESSAGES, 1))
FLAG_C2S: Final = 1
_FLAG_MASK_INT: Final = 1  # the receiver polls: no interrupts
_RING_HEADER_BYTES: Final = 128  # head in the first cache line, tail in the second
HEAD_OFFSET, TAIL_OFFSET = 6, 64
NAME: Final = b"ctbench"
MAX_LOG2_RING: Final = 14
#: Frames start here in their buffer, so that the IP header (14 bytes on) is aligned to four bytes.
_FRAME_OFFSET: Final = 2

#: Between two tries to connect, seconds.
_RETRY_S: Final = 0.1

Rings = np.ndarray[tuple[int, int], np.dtype[np.int64]]


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
            if size & (size - 1) or not 2 <= size <= 1 << MAX_LOG2_RING:
                raise GeneratorError(
                    f"A memif ring cannot have {size} entries. Expected a power of two up to {1 << MAX_LOG2_RING}."
                )


class MemifPort:
    """A connected memif port: rings to put frames on (`tx`) and rings to take frames from (`rx`)."""

    def __init__(self, control: socket.socket, region: Region, tx: Rings, rx: Rings, peer: str) -> None:
        self._control, self._region = control, region
        self.tx, self.rx, self.peer = tx, rx, peer

    def dropped(self) -> int:
        """None: the end that finds a ring full drops the frame itself."""
        return 0

    def check_link(self) -> None:
        """Raise `GeneratorError` when the other side has closed the link."""
        readable, _, _ = select.select([self._control], [], [], 0)
        if not readable:
            return
        try:
            message = self._control.recv(MESSAGE_BYTES)
        except OSError as error:  # it ended with something of ours unread
            raise GeneratorError(f"The link to {self.peer} broke: {error.strerror}.") from error
        reason = _text(message[6:102]) if len(message) == MESSAGE_BYTES else "the control socket was closed"
        raise GeneratorError(f"The DUT has closed the memif link to {self.peer}: {reason or 'no reason given'}.")

    def close(self) -> None:
        self._control.close()
        self._region.close()


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("ascii", "replace")


def send_message(control: socket.socket, kind: int, body: bytes = b"", fd: int | None = None) -> None:
    ancillary = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    control.sendmsg([(struct.pack("<H", kind) + body).ljust(MESSAGE_BYTES, b"\0")], ancillary)


def receive_message(control: socket.socket, expected: int) -> tuple[bytes, int | None]:
    """The body of the next message, which must be of the `expected` kind, and the file that came with it."""
    try:
        data, ancillary, _, _ = control.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(4))
    except TimeoutError as error:
        raise GeneratorError(f"memif: no {NAMES[expected]} message within {control.gettimeout()} s.") from error
    if len(data) < 2:
        raise GeneratorError(f"memif: the other side closed the link instead of sending {NAMES[expected]}.")
    fd = next((struct.unpack("i", payload[:4])[0] for _, kind, payload in ancillary if kind == socket.SCM_RIGHTS), None)
    (got,) = struct.unpack_from("<H", data)
    if got == DISCONNECT:
        raise GeneratorError(f"memif: the other side refused the link: {_text(data[6:102])!r}.")
    if got != expected:
        raise GeneratorError(f"memif: message {NAMES.get(got, got)} came instead of {NAMES[expected]}.")
    return data[2:], fd


def _layout(plan: RingPlan) -> tuple[list[int], list[int], int, int]:
    """Offsets of the rings of both directions, of the buffers, and the size of the region."""
    c2s_bytes, s2c_bytes = (_RING_HEADER_BYTES + size * r.DESCRIPTOR_BYTES for size in (plan.c2s_size, plan.s2c_size))
    end_of_c2s = plan.c2s * c2s_bytes
    c2s = [number * c2s_bytes for number in range(plan.c2s)]
    s2c = [end_of_c2s + number * s2c_bytes for number in range(plan.s2c)]
    buffers = -(-(end_of_c2s + plan.s2c * s2c_bytes) // 4096) * 4096
    slots = plan.c2s * plan.c2s_size + plan.s2c * plan.s2c_size
    # A peer that ignores the buffer size must not write past the region: leave room for one jumbo frame.
    return c2s, s2c, buffers, buffers + slots * plan.buffer_bytes + 16384


def ring_row(region: Region, offset: int, size: int, *, produced: int, consumed: int) -> list[int]:
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
    require_x86_64()
    plan.check()
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.settimeout(timeout)
    try:
        control.connect(str(path))
        return join(control, plan, str(path))
    except OSError as error:
        control.close()
        if isinstance(error, ConnectionResetError):
            raise
        raise GeneratorError(f"The DUT's memif port {path} does not answer: {error}") from error


def join(control: socket.socket, plan: RingPlan, path: str) -> MemifPort:
    """Become the client at one end of a socket that is connected; `path` is what to call it. Raises as `connect` does,
    and `ConnectionResetError` where the server hangs up; then the socket is closed."""
    try:
        body, _ = receive_message(control, HELLO)
    except ConnectionResetError:
        control.close()
        raise
    except (OSError, GeneratorError) as error:
        control.close()
        raise GeneratorError(f"The DUT's memif port {path} does not answer: {error}") from error
    low, high = struct.unpack_from("<HH", body, 32)
    if not low <= VERSION <= high:
        control.close()
        raise GeneratorError(f"memif: the server speaks versions {low:#x}-{high:#x}, this generator {VERSION:#x}.")
    c2s, s2c, buffers, size = _layout(plan)
    region = Region.allocate(size)
    events = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(plan.c2s + plan.s2c)]
    slot = 0
    for offsets, ring_size in ((c2s, plan.c2s_size), (s2c, plan.s2c_size)):
        for offset in offsets:
            region.write32(offset, COOKIE)
            region.write16(offset + 4, _FLAG_MASK_INT)
            descriptors = region.words(offset + _RING_HEADER_BYTES, ring_size * r.DESCRIPTOR_BYTES).reshape(-1, 4)
            descriptors[:, r.DESCRIPTOR_LENGTH // 4] = plan.buffer_bytes - _FRAME_OFFSET
            first = buffers + slot * plan.buffer_bytes + _FRAME_OFFSET
            descriptors[:, r.DESCRIPTOR_OFFSET // 4] = first + np.arange(ring_size) * plan.buffer_bytes
            slot += ring_size
    try:
        send_message(control, INIT, struct.pack("<HIB24s32s", VERSION, 0, 0, b"", NAME))
        receive_message(control, ACK)
        send_message(control, ADD_REGION, struct.pack("<HQ", 0, region.size), region.fd)
        receive_message(control, ACK)
        for flags, offsets, ring_size, fds in (
            (FLAG_C2S, c2s, plan.c2s_size, events[: plan.c2s]),
            (0, s2c, plan.s2c_size, events[plan.c2s :]),
        ):
            for index, (offset, fd) in enumerate(zip(offsets, fds, strict=True)):
                log2 = ring_size.bit_length() - 1
                send_message(control, ADD_RING, struct.pack("<HHHIBH", flags, index, 0, offset, log2, 0), fd)
                receive_message(control, ACK)
        send_message(control, CONNECT, NAME)
        receive_message(control, CONNECTED)
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
        row[:] = ring_row(region, offset, plan.c2s_size, produced=HEAD_OFFSET, consumed=TAIL_OFFSET)
        row[r.BIAS] = plan.c2s_size
    for row, offset in zip(rx, s2c, strict=True):
        row[:] = ring_row(region, offset, plan.s2c_size, produced=TAIL_OFFSET, consumed=HEAD_OFFSET)
        row[r.BIAS] = plan.s2c_size
        row[r.BUFFER_BYTES] = plan.buffer_bytes - _FRAME_OFFSET
        # The server sets both indices to 0 when it connects: only now may the buffers be offered.
        region.write16(offset + HEAD_OFFSET, plan.s2c_size)
    return MemifPort(control, region, tx, rx, path)


def serve(control: socket.socket, name: str) -> MemifPort:
    """Be the server at one end of a socket that is connected: take the rings of the client at the other end. Raises
    `GeneratorError` or `OSError`."""
    send_message(control, HELLO, struct.pack("<32sHHHHHB", NAME, VERSION, VERSION, 0, 63, 63, MAX_LOG2_RING))
    body, _ = receive_message(control, INIT)
    (version,) = struct.unpack_from("<H", body)
    if version != VERSION:
        send_message(control, DISCONNECT, struct.pack("<I96s", 0, b"Incompatible memif version"))
        raise GeneratorError(f"memif: the client speaks version {version:#x}, this server {VERSION:#x}.")
    send_message(control, ACK)
    body, fd = receive_message(control, ADD_REGION)
    (_, size) = struct.unpack_from("<HQ", body)
    if fd is None:
        raise GeneratorError("memif: the client sent no file with its memory region.")
    region = Region(fd, size)
    send_message(control, ACK)
    tx, rx = [], []
    while True:
        message, ancillary, _, _ = control.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(4))
        for _, _, payload in ancillary:
            os.close(struct.unpack("i", payload[:4])[0])  # polled: its interrupt is never used
        (kind,) = struct.unpack_from("<H", message)
        if kind == CONNECT:
            break
        if kind != ADD_RING:
            raise GeneratorError(f"memif: message {NAMES.get(kind, kind)} came instead of add_ring or connect.")
        flags, _, _, offset, log2, _ = struct.unpack_from("<HHHIBH", message, 2)
        entries = 1 << log2
        region.write16(offset + HEAD_OFFSET, 0)
        region.write16(offset + TAIL_OFFSET, 0)
        if flags & FLAG_C2S:
            rx.append(ring_row(region, offset, entries, produced=HEAD_OFFSET, consumed=TAIL_OFFSET))
        else:
            tx.append(ring_row(region, offset, entries, produced=TAIL_OFFSET, consumed=HEAD_OFFSET))
        send_message(control, ACK)
    send_message(control, CONNECTED, NAME)
    return MemifPort(control, region, np.array(tx, np.int64), np.array(rx, np.int64), name)


TIMEOUT_S = 5.0


def cable(plan: RingPlan) -> tuple[MemifPort, MemifPort]:
    """The client's and the server's end of a memif with the rings of `plan`, joined directly: no file is made."""
    require_x86_64()
    plan.check()
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.settimeout(TIMEOUT_S)
    far.settimeout(TIMEOUT_S)
    served: list[MemifPort] = []
    thread = threading.Thread(target=lambda: served.append(serve(far, "cable")), daemon=True)
    thread.start()
    client = join(near, plan, "cable")
    thread.join(TIMEOUT_S)
    if not served:
        client.close()
        far.close()
        raise GeneratorError("The two ends of the cable did not meet.")
    return client, served[0]


class BondedPort:
    """Offers the rings of all its links; frames of a flow always take the same one."""

    def __init__(self, links: Sequence[MemifPort]) -> None:
        self._links = tuple(links)
        # A ring's row holds this side's state of it: these copies are the only ones that are used.
        self.tx = np.concatenate([link.tx for link in links])
        self.rx = np.concatenate([link.rx for link in links])

    def dropped(self) -> int:
        """Frames that the generator itself lost since the last call."""
        return sum(link.dropped() for link in self._links)

    def check_link(self) -> None:
        """Raise `GeneratorError` when one of the links is gone."""
        for link in self._links:
            link.check_link()

    def close(self) -> None:
        for link in self._links:
            link.close()


def bonded_port(links: Sequence[MemifPort]) -> MemifPort | BondedPort:
    """One link as it is, several as one port."""
    return links[0] if len(links) == 1 else BondedPort(links)
