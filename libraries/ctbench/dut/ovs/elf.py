"""The functions of a program or library for Linux: an ELF file (System V ABI, chapters 4 and 5)."""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

#: Section types, the type of a symbol that is a function, and types of segments: what is loaded, notes, and the table
#: of where functions begin (.eh_frame_hdr; Linux Standard Base, Core).
_SYMTAB, _DYNSYM, _FUNCTION = 2, 11, 2
_LOAD, _NOTE, _FRAMES = 1, 4, 0x6474_E550
#: Type of the note with the ID of a build; encodings of .eh_frame_hdr that every compiler uses: a number of entries of
#: four bytes, and entries relative to its begin.
_BUILD_ID = 3
_FRAMES_ENCODED = (0x1B, 0x03, 0x3B)
#: Opcodes of a call and of a jump with a distance of four bytes (x86-64).
_CALL, _JUMP = 0xE8, 0xE9


class Program:
    """An ELF file by what is at which offset. Another file has nothing."""

    def __init__(self, data: bytes, debug: bytes = b"") -> None:
        """`debug`: of a stripped program, the file with its symbols."""
        self._data = data
        self._segments = list(_segments(data))
        self._functions = sorted(_functions(debug)) or sorted(_functions(data))
        self._begins = [begin for begin, _, _ in self._functions]

    def place(self, offset: int) -> str:
        """The function at an offset: its name, or where it begins (`+0x1a2b`), as the tables for its unwinding say,
        which stripped programs have as well; empty where not even that is known."""
        address = self.address(offset)
        if address is None:
            return ""
        if name := self._named(address):
            return name
        at = bisect_right(self._frames, address) - 1
        return "" if at < 0 else self._parts.get(self._frames[at]) or f"+{self._frames[at]:#x}"

    @property
    def build_id(self) -> str:
        """The ID of the build, as a hexadecimal number; empty where it has none."""
        for kind, offset, _, size in self._segments:
            at = offset
            while kind == _NOTE and at + 12 <= offset + size:
                name_size, size_of, type_ = struct.unpack_from("<III", self._data, at)
                begin = at + 12 + _whole(name_size)
                if type_ == _BUILD_ID and self._data[at + 12 : at + 16] == b"GNU\0":
                    return self._data[begin : begin + size_of].hex()
                at = begin + _whole(size_of)
        return ""

    def address(self, offset: int) -> int | None:
        """Where an offset of the file is loaded to; None where it is not."""
        return next((address + offset - begin for kind, begin, address, size in self._segments
                     if kind == _LOAD and begin <= offset < begin + size), None)  # fmt: skip

    def _offset(self, address: int) -> int | None:
        return next((begin + address - where for kind, begin, where, size in self._segments
                     if kind == _LOAD and where <= address < where + size), None)  # fmt: skip

    def _named(self, address: int) -> str:
        at = bisect_right(self._begins, address) - 1
        if at < 0:
            return ""
        begin, size, name = self._functions[at]
        return name if address < begin + size else ""

    @cached_property
    def _frames(self) -> list[int]:
        """Where functions begin."""
        for kind, offset, address, _ in self._segments:
            if kind == _FRAMES and tuple(self._data[offset + 1 : offset + 4]) == _FRAMES_ENCODED:
                (count,) = struct.unpack_from("<I", self._data, offset + 8)
                table = struct.unpack_from(f"<{2 * count}i", self._data, offset + 12)
                return sorted(address + begin for begin in table[::2])
        return []

    @cached_property
    def _parts(self) -> dict[int, str]:
        """Functions that have no name, and that one with a name about mutexes calls or jumps to, named by it: most of
        what unlocks one is in such a part."""
        found: dict[int, str] = {}
        begins = set(self._frames)
        for begin, size, name in reversed(self._functions):  # of several names, that without underscores
            if "mutex" not in name and "lll_" not in name:
                continue
            offset = self._offset(begin)
            if offset is None:
                continue
            code = self._data[offset : offset + size]
            for at in range(len(code) - 4):
                if code[at] in (_CALL, _JUMP):
                    target = begin + at + 5 + int(struct.unpack_from("<i", code, at + 1)[0])
                    if target in begins and not self._named(target):
                        found.setdefault(target, f"{name} (a part)")
        return found


def _whole(size: int) -> int:
    return (size + 3) & ~3


def _segments(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Type, offset, address and size in the file of each segment."""
    if data[:5] != b"\x7fELF\x02":
        return
    (programs,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, programs + number * size)
        yield kind, offset, address, length


def _functions(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Address, size and name of each function: of its own table, or of what it exports where that was stripped."""
    if data[:5] != b"\x7fELF\x02":
        return
    (sections,) = struct.unpack_from("<Q", data, 0x28)
    section_size, section_count = struct.unpack_from("<HH", data, 0x3A)
    tables = [struct.unpack_from("<IIQQQQIIQQ", data, sections + n * section_size) for n in range(section_count)]
    table = next((each for kind in (_SYMTAB, _DYNSYM) for each in tables if each[1] == kind), None)
    if table is None:
        return
    names = tables[table[6]][4]
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, section, address, length = struct.unpack_from("<IBBHQQ", data, at)
        if info & 15 == _FUNCTION and length and section:
            text = data[names + name : data.index(b"\0", names + name)]
            # A version of it in a library follows its name: `pthread_mutex_lock@@GLIBC_2.2.5`.
            yield address, length, text.decode(errors="replace").partition("@")[0]
