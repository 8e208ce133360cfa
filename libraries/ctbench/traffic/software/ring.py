"""Rings of frames in shared memory, as the kernel function sees them: take a frame, give it back, put one, publish.

A ring is a row of int64 columns, known by its address, the same for both roles and both directions of memif (DPDK's
memif.h, memif_ring_t):

* one side *produces* frames and moves an index, the other *consumes* them and moves another; both are free-running
  16-bit counters in shared memory;
* where the producer owns the buffers (client → server) the consumer's index follows the producer's, and `size` frames
  fit in between: `BIAS` is the ring's size;
* where the consumer owns them (server → client) its index runs ahead of the producer's by the buffers it has offered:
  `BIAS` is 0 for the producer; the consumer adds the size when it gives a buffer back.

A receive ring may also be that of a packet socket (packet(7), Documentation/networking/packet_mmap.rst: TPACKET_V2):
frames of one size, each with a header whose status says whose it is. Nothing of the state machine knows which it is.
"""

from abc import ABC, abstractmethod

import numpy as np
from numba import njit

from ctbench.traffic.software.machine_code import (
    load16,
    load16_acquire,
    load32,
    load32_acquire,
    load64,
    prefetch,
    store16,
    store16_release,
    store32,
    store64,
    swap16,
)

#: Columns of a ring's row. Addresses of the producer's and the consumer's index, and of the first descriptor.
PRODUCED, CONSUMED, DESCRIPTORS = 0, 1, 2
#: Address of the memory region that descriptor offsets count from; ring size - 1; see above.
REGION, MASK, BIAS = 3, 4, 5
#: What to write into a descriptor's length when its buffer is given back; 0: leave it (the producer's buffers).
BUFFER_BYTES = 6
#: This side's own index, not yet published; frames that may be put before the other index must be read again.
INDEX, ROOM = 7, 8
#: Bytes of a frame with its header in the ring of a packet socket; 0: this is a memif ring.
PACKET_BYTES = 9
#: Two cache lines a row, so that rings do not share one.
COLUMNS = 16
ROW_BYTES = COLUMNS * 8

#: A descriptor (DPDK memif.h, memif_desc_t): flags u16, region u16, length u32, offset u32, metadata u32.
DESCRIPTOR_BYTES = 16
DESCRIPTOR_LENGTH, DESCRIPTOR_OFFSET = 4, 8

#: Header of a frame in the ring of a packet socket (linux/if_packet.h, struct tpacket2_hdr).
_STATUS, _SNAPLEN, _MAC, _VLAN_TCI = 0, 8, 12, 24
_STATUS_KERNEL, _STATUS_USER, _STATUS_VLAN_VALID = 0, 1, 16
#: Frames that are looked for at a time: each costs a look at its header.
_PACKETS_AT_MOST = 32

#: `vlan_at` of a frame that has no tag.
NO_VLAN = -1
_ETHERTYPE_VLAN = 0x0081  # as it stands in memory

Counts = np.ndarray[tuple[int], np.dtype[np.int64]]
Rings = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def new_rings(count: int) -> Rings:
    """Rows for `count` rings, all zero."""
    return np.zeros((count, COLUMNS), dtype=np.int64)


class Port(ABC):
    """A port of the generator, on whatever it is: rings to put frames on, and rings to take frames from."""

    tx: Rings
    rx: Rings

    def dropped(self) -> int:
        """Frames that found the generator's own receive rings full since the last call: its fault, not the DUT's."""
        return 0

    @abstractmethod
    def check_link(self) -> None:
        """Raise `GeneratorError` when the link to the DUT is gone. Cheap."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the port."""


@njit(nogil=True, forceinline=True)
def _get(ring, column):  # type: ignore[no-untyped-def]
    # By address: a view of the array would be counted in and out for every frame.
    return load64(ring + 8 * column)


@njit(nogil=True, forceinline=True)
def _set(ring, column, value):  # type: ignore[no-untyped-def]
    store64(ring + 8 * column, value)


@njit(nogil=True, forceinline=True)
def _packet(ring, ahead):  # type: ignore[no-untyped-def]
    """Address of a frame's header in the ring of a packet socket."""
    return _get(ring, REGION) + ((_get(ring, INDEX) + ahead) & _get(ring, MASK)) * _get(ring, PACKET_BYTES)


@njit(nogil=True, forceinline=True)
def _descriptor(ring, ahead):  # type: ignore[no-untyped-def]
    return _get(ring, DESCRIPTORS) + ((_get(ring, INDEX) + ahead) & _get(ring, MASK)) * DESCRIPTOR_BYTES


@njit(nogil=True, forceinline=True)
def frames_waiting(ring):  # type: ignore[no-untyped-def]
    """Frames that the other side has put and this side has not taken (packet socket: some of them)."""
    if _get(ring, PACKET_BYTES):
        count = 0
        while count < _PACKETS_AT_MOST and load32_acquire(_packet(ring, count) + _STATUS) & _STATUS_USER:
            count += 1
        return count
    return (load16_acquire(_get(ring, PRODUCED)) - _get(ring, INDEX)) & 0xFFFF


@njit(nogil=True)
def backlog(ring):  # type: ignore[no-untyped-def]
    """Frames that wait on a receive ring; of a packet socket's to the next lower power of two. Not for every frame."""
    if not _get(ring, PACKET_BYTES):
        return (load16_acquire(_get(ring, PRODUCED)) - _get(ring, INDEX)) & 0xFFFF
    count = 0
    ahead = 1
    while ahead <= _get(ring, MASK) and load32_acquire(_packet(ring, ahead - 1) + _STATUS) & _STATUS_USER:
        count = ahead
        ahead *= 2
    return count


@njit(nogil=True, forceinline=True)
def frame_at(ring, ahead):  # type: ignore[no-untyped-def]
    """Address and length of the frame that is `ahead` places behind the next one to take."""
    if _get(ring, PACKET_BYTES):
        packet = _packet(ring, ahead)
        return packet + load16(packet + _MAC), load32(packet + _SNAPLEN)
    descriptor = _descriptor(ring, ahead)
    return _get(ring, REGION) + load32(descriptor + DESCRIPTOR_OFFSET), load32(descriptor + DESCRIPTOR_LENGTH)


@njit(nogil=True, forceinline=True)
def prefetch_frame(ring, ahead):  # type: ignore[no-untyped-def]
    """Bring the headers of a waiting frame close: two cache lines hold them all."""
    if _get(ring, PACKET_BYTES):
        prefetch(_packet(ring, ahead) + 64)
        prefetch(_packet(ring, ahead) + 128)
        return
    descriptor = _descriptor(ring, ahead)
    frame = _get(ring, REGION) + load32(descriptor + DESCRIPTOR_OFFSET)
    prefetch(frame)
    prefetch(frame + 64)


@njit(nogil=True, forceinline=True)
def vlan_at(ring, ahead, frame):  # type: ignore[no-untyped-def]
    """VLAN of a waiting frame and how many bytes its tag takes in it; `NO_VLAN` and 0 when it has none.

    The kernel takes the tag out of a frame and passes it apart; packet(7), PACKET_AUXDATA."""
    if _get(ring, PACKET_BYTES):
        packet = _packet(ring, ahead)
        if load32(packet + _STATUS) & _STATUS_VLAN_VALID:
            return load16(packet + _VLAN_TCI) & 0xFFF, 0
        return NO_VLAN, 0
    if load16(frame + 12) == _ETHERTYPE_VLAN:
        return swap16(load16(frame + 14)) & 0xFFF, 4
    return NO_VLAN, 0


@njit(nogil=True, forceinline=True)
def give_back(ring, count):  # type: ignore[no-untyped-def]
    """Take `count` frames off the ring: their buffers belong to the other side again."""
    if _get(ring, PACKET_BYTES):
        for ahead in range(count):
            store32(_packet(ring, ahead) + _STATUS, _STATUS_KERNEL)
        _set(ring, INDEX, _get(ring, INDEX) + count)
        return
    if _get(ring, BUFFER_BYTES):
        for ahead in range(count):
            descriptor = _descriptor(ring, ahead)
            store32(descriptor + DESCRIPTOR_LENGTH, _get(ring, BUFFER_BYTES))
    _set(ring, INDEX, _get(ring, INDEX) + count)
    store16_release(_get(ring, CONSUMED), _get(ring, INDEX) + _get(ring, BIAS))


@njit(nogil=True, forceinline=True)
def room(ring):  # type: ignore[no-untyped-def]
    """Whether a frame may be put. Reads the other side's index only when the known room is used up."""
    if _get(ring, ROOM) == 0:
        _set(ring, ROOM, (load16_acquire(_get(ring, CONSUMED)) + _get(ring, BIAS) - _get(ring, INDEX)) & 0xFFFF)
    return _get(ring, ROOM) > 0


@njit(nogil=True, forceinline=True)
def next_buffer(ring):  # type: ignore[no-untyped-def]
    """Address of the buffer for the next frame; only after `room` said yes."""
    descriptor = _descriptor(ring, 0)
    return _get(ring, REGION) + load32(descriptor + DESCRIPTOR_OFFSET)


@njit(nogil=True, forceinline=True)
def put(ring, length):  # type: ignore[no-untyped-def]
    """The frame written to `next_buffer` has `length` bytes and is ready; `publish` shows it to the other side."""
    descriptor = _descriptor(ring, 0)
    store16(descriptor, 0)
    store32(descriptor + DESCRIPTOR_LENGTH, length)
    _set(ring, INDEX, _get(ring, INDEX) + 1)
    _set(ring, ROOM, _get(ring, ROOM) - 1)


@njit(nogil=True, forceinline=True)
def publish(ring):  # type: ignore[no-untyped-def]
    """Show the frames that were put to the other side."""
    store16_release(_get(ring, PRODUCED), _get(ring, INDEX))


@njit(nogil=True, forceinline=True)
def publish_all(rings, count):  # type: ignore[no-untyped-def]
    """`publish` for the rows of `count` rings that begin at this address."""
    for queue in range(count):
        publish(rings + queue * ROW_BYTES)
