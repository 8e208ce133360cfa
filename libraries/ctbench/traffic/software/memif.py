"""memif, the shared-memory packet interface: its control protocol, by DPDK's memif.h and memif_socket.c.

The *server* listens on a UNIX socket of type SEQPACKET, the *client* owns the memory: it passes one region (a sealed
memfd) and a descriptor ring per queue and direction. Open vSwitch is the server towards this generator; memif_server
makes the other end of a cable. Both keep the control channel open: when it closes, the link is down.
"""

import array
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

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.shared_memory import Region

COOKIE: Final = 0x3E31F20
VERSION: Final = 2 << 8
MESSAGE_BYTES: Final = 128
ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
_MESSAGES = ("none", "ack", "hello", "init", "add_region", "add_ring", "connect", "connected", "disconnect")
NAMES: Final = dict(enumerate(_MESSAGES))
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


def check_processor() -> None:
    """The rings rely on the store order of x86-64."""
    if platform.machine() not in ("x86_64", "amd64"):
        raise MissingResource(
            f"The software traffic generator needs an x86-64 processor and found {platform.machine()}: its shared"
            " memory rings rely on that processor's order of stores. Use TRex on another host."
        )


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
        """Close the link."""
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
    fd = None
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fd = struct.unpack("i", payload[:4])[0]
    (got,) = struct.unpack_from("<H", data)
    if got == DISCONNECT:
        raise GeneratorError(f"memif: the other side refused the link: {_text(data[6:102])!r}.")
    if got != expected:
        raise GeneratorError(f"memif: message {NAMES.get(got, got)} came instead of {NAMES[expected]}.")
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
    check_processor()
    plan.check()
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.settimeout(timeout)
    try:
        control.connect(str(path))
    except ConnectionResetError:
        control.close()
        raise
    except OSError as error:
        control.close()
        raise GeneratorError(f"The DUT's memif port {path} does not answer: {error}") from error
    return join(control, plan, str(path))


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
