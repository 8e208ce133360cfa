"""The functions of a program or library: an ELF file of 64 bits (System V ABI, chapters 4 and 5)."""

import struct
from bisect import bisect_right
from collections.abc import Iterator

#: Section types of tables of symbols, the type of a symbol that is a function, and of a segment that is loaded.
_SYMTAB, _DYNSYM, _FUNCTION, _LOAD = 2, 11, 2, 1


class Program:
    """An ELF file by what is at which offset. Another file has nothing."""

    def __init__(self, data: bytes) -> None:
        is_elf = data[:5] == b"\x7fELF\x02"
        self._segments = list(_segments(data)) if is_elf else []
        self._functions = sorted(_functions(data)) if is_elf else []

    def name(self, offset: int) -> str:
        """The function at an offset of the file; empty where none is known."""
        address = self.address(offset)
        if address is None:
            return ""
        at = bisect_right(self._functions, address, key=lambda each: each[0]) - 1
        if at < 0:
            return ""
        begin, size, name = self._functions[at]
        return name if address < begin + size else ""

    def address(self, offset: int) -> int | None:
        """Where an offset of the file is loaded to; None where it is not."""
        for begin, address, size in self._segments:
            if begin <= offset < begin + size:
                return address + offset - begin
        return None


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Offset, address and size in the file of each segment that is loaded."""
    (table,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + number * size)
        if kind == _LOAD:
            yield offset, address, length


def _functions(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Address, size and name of each function: of its own table, or of what it exports where that was stripped."""
    (sections,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    every = [struct.unpack_from("<IIQQQQIIQQ", data, sections + number * size) for number in range(count)]
    table = next((each for kind in (_SYMTAB, _DYNSYM) for each in every if each[1] == kind), None)
    if table is None:
        return
    names = every[table[6]][4]
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, section, address, length = struct.unpack_from("<IBBHQQ", data, at)
        if info & 15 == _FUNCTION and length and section:
            text = data[names + name : data.index(b"\0", names + name)]
            # A version of it in a library follows its name: `pthread_mutex_lock@@GLIBC_2.2.5`.
            yield address, length, text.decode(errors="replace").partition("@")[0]
