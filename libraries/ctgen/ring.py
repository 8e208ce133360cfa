"""A port of the generator, as rings of frames in shared memory: what a ring is, says kernel/layout.h."""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence

from ctgen.layout import Ring

#: A descriptor (DPDK memif.h, memif_desc_t): flags u16, region u16, length u32, offset u32, metadata u32.
DESCRIPTOR_BYTES = 16
DESCRIPTOR_LENGTH, DESCRIPTOR_OFFSET = 4, 8

#: Rings side by side.
Rings = ctypes.Array[ctypes.Structure]


def new_rings(count: int) -> Rings:
    """So many, all zero."""
    return (Ring * count)()


def joined(several: Sequence[Rings]) -> Rings:
    """Copies of all of them, side by side."""
    every = [ring for rings in several for ring in rings]
    return (Ring * len(every))(*every)


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
