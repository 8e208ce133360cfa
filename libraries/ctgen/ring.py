"""The ports of the generator, as rings of frames in shared memory. kernel/layout.h describes a ring."""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence

from ctgen.layout import Ring

#: A descriptor (DPDK memif.h, memif_desc_t): flags u16, region u16, length u32, offset u32, metadata u32.
DESCRIPTOR_BYTES = 16
DESCRIPTOR_LENGTH, DESCRIPTOR_OFFSET = 4, 8

#: Bytes of a cache line.
LINE = 64

#: Rings side by side.
Rings = ctypes.Array[ctypes.Structure]


def on_lines(kind: type[ctypes.Structure], count: int) -> ctypes.Array[ctypes.Structure]:
    """Return `count` structs, all zero, at the beginning of a cache line."""
    memory = (ctypes.c_char * (count * ctypes.sizeof(kind) + LINE))()
    return (kind * count).from_buffer(memory, -ctypes.addressof(memory) % LINE)


def new_rings(count: int) -> Rings:
    """Return `count` rings, all zero."""
    return on_lines(Ring, count)


def joined(several: Sequence[Rings]) -> Rings:
    """Return copies of the rings of several links, of which each has as many: in turn, one of each link."""
    every = [ring for one_each in zip(*several, strict=True) for ring in one_each]
    rings = new_rings(len(every))
    rings[:] = every
    return rings


class Port(ABC):
    """A port of the generator on any medium: rings to put frames on, and rings to take frames from."""

    tx: Rings
    rx: Rings

    def dropped(self) -> int:
        """Return the frames since the last call that found the generator's own receive rings full: not the DUT's
        losses."""
        return 0

    @abstractmethod
    def check_link(self) -> None:
        """Raise `GeneratorError` where the link to the DUT is gone. Cheap."""

    def reconnect(self) -> None:
        """Make a link again that was lost with a restarted DUT. The rings keep their addresses, and are empty."""

    @abstractmethod
    def close(self) -> None:
        """Release the port."""
