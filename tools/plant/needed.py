"""A program for Linux that loads one library more than it was linked with, and before all others: what the library has
in the place of another's functions is what the program calls. Nothing else of the program changes, not even where it is
in memory.

The layout is that of ELF for 64 bits, elf(5): the table that the loader reads (PT_DYNAMIC) ends with entries that are
free, and the page that the names of libraries are in ends with bytes that are free.
"""

import struct

_HEADER, _ENTRY = struct.Struct("<IIQQQQQQ"), struct.Struct("<QQ")
_LOADED, _DYNAMIC = 1, 2
_FREE, _NEEDED, _NAMES = 0, 1, 5
_PAGE = 4096


def with_library(program: bytes, library: str) -> bytes:
    """The program with this library: a path, which may begin with `$ORIGIN`, the folder of the program. `ValueError`
    says why it cannot be one of its libraries."""
    if program[:6] != b"\x7fELF\x02\x01":
        raise ValueError("is not a program for Linux of 64 bits")
    begin, size, number = *struct.unpack_from("<Q", program, 32), *struct.unpack_from("<HH", program, 54)
    headers = [_HEADER.unpack_from(program, begin + at * size) for at in range(number)]
    loaded = [(offset, address, length) for kind, _, offset, address, _, length, *_ in headers if kind == _LOADED]
    table = next(((offset, length) for kind, _, offset, _, _, length, *_ in headers if kind == _DYNAMIC), None)
    if table is None:
        raise ValueError("loads no libraries")
    entries = list(_ENTRY.iter_unpack(program[table[0] : sum(table)]))
    used = [entry for entry in entries if entry[0] != _FREE]
    names = next(value for tag, value in used if tag == _NAMES)
    offset, address, length = next(each for each in loaded if each[1] <= names < each[1] + each[2])
    free, text = offset + length, library.encode() + b"\0"
    end = min([free + -free % _PAGE, *(other for other, *_ in loaded if other > offset)])
    if end - free < len(text) or len(entries) - len(used) < 2 or any(program[free : free + len(text)]):
        raise ValueError("has no room for the name of one more library")
    used.insert(0, (_NEEDED, address + length - names))
    changed = bytearray(program)
    changed[free : free + len(text)] = text
    for at, entry in enumerate(used):
        _ENTRY.pack_into(changed, table[0] + at * _ENTRY.size, *entry)
    return bytes(changed)
