"""Sending through AF_XDP: a socket whose frames and descriptors are in shared memory.

Documentation/networking/af_xdp.rst. In copy mode the kernel makes a packet of each frame and hands it to the interface
at once, within the system call. That is cheaper than a packet socket (docs/evidence) and needs no BPF program,
so no root: only receiving would.
"""

import ctypes
import mmap
import os
import socket
import struct
from typing import Final

from ctbench.traffic.software.shared_memory import zeroed_memory

# linux/if_xdp.h
AF_XDP: Final = 44
_SOL_XDP: Final = 283
_MMAP_OFFSETS, _TX_RING, _UMEM_REG, _UMEM_FILL_RING, _UMEM_COMPLETION_RING = 1, 3, 4, 5, 6
_PGOFF_TX_RING, _PGOFF_COMPLETION_RING = 0x80000000, 0x180000000
_FLAG_COPY: Final = 1 << 1
#: Bytes of a descriptor (struct xdp_desc: address, length, options), and of one in the completion ring.
DESCRIPTOR_BYTES, _COMPLETION_BYTES = 16, 8
#: Frames under way: twice a batch. All are done when the system call returns.
ENTRIES: Final = 64
#: Bytes of a frame's place in the shared memory, the most that copy mode takes without chains of frames.
CHUNK_BYTES: Final = 4096


class XdpSender:
    """A socket to send from, on one transmit queue of an interface; `row` is what the link thread needs of it."""

    def __init__(self, opened: socket.socket, interface_index: int, queue: int) -> None:
        """Takes over the socket `opened`. Raises OSError where the kernel, a limit (RLIMIT_MEMLOCK) or another socket
        on this queue forbids it."""
        self._socket = opened
        self._memory, address = zeroed_memory(ENTRIES * CHUNK_BYTES)
        # struct xdp_umem_reg; the kernel takes its size as the version of it.
        opened.setsockopt(
            _SOL_XDP, _UMEM_REG, struct.pack("QQIIII", address, ENTRIES * CHUNK_BYTES, CHUNK_BYTES, 0, 0, 0)
        )
        for option in (_UMEM_FILL_RING, _UMEM_COMPLETION_RING, _TX_RING):
            opened.setsockopt(_SOL_XDP, option, ENTRIES)
        # struct xdp_mmap_offsets: producer, consumer, descriptors, flags of the rings rx, tx, fill, completion.
        offsets = struct.unpack("16Q", opened.getsockopt(_SOL_XDP, _MMAP_OFFSETS, 128))
        tx, completion = offsets[4:8], offsets[12:16]
        self._tx = mmap.mmap(opened.fileno(), tx[2] + ENTRIES * DESCRIPTOR_BYTES, offset=_PGOFF_TX_RING)
        self._done = mmap.mmap(
            opened.fileno(), completion[2] + ENTRIES * _COMPLETION_BYTES, offset=_PGOFF_COMPLETION_RING
        )
        tx_at, done_at = (ctypes.addressof(ctypes.c_char.from_buffer(each)) for each in (self._tx, self._done))
        #: Addresses: producer, consumer and descriptors of the transmit ring, producer and consumer of the completion
        #: ring, frames.
        self.row = (
            tx_at + tx[0],
            tx_at + tx[1],
            tx_at + tx[2],
            done_at + completion[0],
            done_at + completion[1],
            address,
        )
        _bind(opened, struct.pack("HHIII", AF_XDP, _FLAG_COPY, interface_index, queue, 0))

    def fileno(self) -> int:
        """The socket's file descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Let go of the interface; the memory goes with this object."""
        self._socket.close()


def _bind(opened: socket.socket, address: bytes) -> None:
    """bind(2) with an address that Python's socket module has no form for."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.bind(opened.fileno(), address, len(address)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
