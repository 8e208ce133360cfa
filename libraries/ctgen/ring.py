"""A port of the generator, as rings of frames in shared memory: what a ring is, says kernel/layout.h."""

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
    """So many structs, all zero, from the begin of a cache line on."""
    memory = (ctypes.c_char * (count * ctypes.sizeof(kind) + LINE))()
    return (kind * count).from_buffer(memory, -ctypes.addressof(memory) % LINE)


def new_rings(count: int) -> Rings:
    """So many, all zero."""
    return on_lines(Ring, count)


def joined(several: Sequence[Rings]) -> Rings:
    """Copies of all of them, of which each has as many: in turn, one of each."""
    every = [ring for one_each in zip(*several, strict=True) for ring in one_each]
    rings = new_rings(len(every))
    rings[:] = every
    return rings


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

    def reconnect(self) -> None:
        """Make the link again where it went with a DUT, which was started again. The rings are where they were, and
        empty."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the port."""
