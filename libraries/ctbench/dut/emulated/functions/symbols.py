"""Which function an address of an emulated machine is of, by what it says and by the symbols of its programs."""

import gzip
import zlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ctbench.base.elf import Program
from ctbench.base.errors import TestbedError

#: Where the kernel's addresses begin (x86-64, Documentation/arch/x86/x86_64/mm.rst).
_KERNEL = 0xFFFF_8000_0000_0000
#: The program that sends and counts is linked to below this; other programs are anywhere above it.
_TRAFFIC_BELOW = 0x1000_0000


@dataclass(frozen=True)
class _Mapped:
    """A part of a file that is executed, and where in memory it is."""

    begin: int
    end: int
    offset: int
    path: str


@dataclass
class Symbols:
    """What is at which address."""

    #: Of the kernel and its modules, by address.
    kernel: list[tuple[int, str]] = field(default_factory=list)
    mapped: list[_Mapped] = field(default_factory=list)
    #: Programs and libraries of the machine by their path.
    files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, packed: bytes, files: Mapping[str, bytes]) -> "Symbols":
        """What a machine said on its second serial line. `TestbedError` where that is not whole."""
        try:
            text = gzip.decompress(packed).decode(errors="replace")
        except (OSError, EOFError, zlib.error) as error:
            raise TestbedError(f"The emulated machine did not say its symbols: {error}.") from None
        found, lines = cls(files=files), text.splitlines()
        for line in lines:
            word, *rest = line.split()
            if word == "symbol" and len(rest) > 1:
                found.kernel.append((int(rest[0], 16), rest[1] + (f" {rest[2]}" if len(rest) > 2 else "")))
            elif word == "mapped" and len(rest) == 3:
                begin, _, end = rest[0].partition("-")
                found.mapped.append(_Mapped(int(begin, 16), int(end, 16), int(rest[1], 16), rest[2]))
        if lines[-1:] != ["end"] or not found.kernel:
            raise TestbedError("The emulated machine did not say all of its symbols.")
        found.kernel.sort(key=lambda each: each[0])
        return found

    @cached_property
    def _addresses(self) -> list[int]:
        return [address for address, _ in self.kernel]

    @cached_property
    def _programs(self) -> dict[str, Program]:
        return {each.path: Program(self.files[each.path]) for each in self.mapped if each.path in self.files}

    def name(self, address: int) -> str:
        """The function, with its module or program: `nf_conntrack_in [nf_conntrack]`. What has no symbol is named by
        its program."""
        if address >= _KERNEL:
            place = bisect_right(self._addresses, address) - 1
            return self.kernel[place][1] if place >= 0 else "the kernel"
        if address < _TRAFFIC_BELOW:
            return "the traffic"
        for each in self.mapped:
            if each.begin <= address < each.end:
                program = self._programs.get(each.path)
                symbol = program.name(address - each.begin + each.offset) if program else ""
                return f"{symbol or '(no symbol)'} [{each.path.rpartition('/')[2]}]"
        return "other programs"
