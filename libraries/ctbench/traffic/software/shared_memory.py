"""Memory for rings and tables: shared with the DUT, or the generator's own."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import struct
from typing import Final

import numpy as np

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


def zeroed_memory(size: int) -> tuple[mmap.mmap, int]:
    """Private memory for tables, with huge pages where the kernel gives them, and its address."""
    memory = mmap.mmap(-1, max(size, 2 << 20) + (2 << 20), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):
        memory.madvise(_MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, -(-address // (2 << 20)) * (2 << 20)
