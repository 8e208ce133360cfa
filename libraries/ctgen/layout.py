"""The constants and structs that the kernel and Python share, read from kernel/layout.h. A pointer is an address."""

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Any

HEADER = Path(__file__).parent / "kernel" / "layout.h"

_SCALARS: dict[str, Any] = {
    "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32, "uint16_t": ctypes.c_uint16,
    "uint8_t": ctypes.c_uint8, "double": ctypes.c_double,
}  # fmt: skip
_DEFINE = re.compile(r"^#define (\w+) (\S+)$")
_FIELD = re.compile(r"^    (struct )?(\w+) (\*?)(\w+)((?:\[\w+\])*);$")


@cache
def _lines() -> list[str]:
    """Return the lines of the header without comments."""
    return [line.partition("//")[0].rstrip() for line in HEADER.read_text(encoding="ascii").splitlines()]


@cache
def constants() -> dict[str, Any]:
    """Return the numbers that the header defines: integers, unless they have a decimal point."""
    found = (match for line in _lines() if (match := _DEFINE.match(line)))
    return {name: float(value) if "." in value else int(value, 0) for name, value in (each.groups() for each in found)}


@cache
def struct(name: str) -> type[ctypes.Structure]:
    """Return the struct of this name, with its fields. An assertion refuses what cannot be read here: a field that is
    left out would move the others."""
    lines = _lines()
    begin = lines.index(f"struct {name} {{") + 1
    fields = []
    for line in lines[begin : lines.index("};", begin)]:
        if not line.strip():
            continue
        match = _FIELD.match(line)
        assert match, f"{HEADER.name}, struct {name}: what is {line!r}?"
        of_struct, kind, pointer, field, sizes = match.groups()
        of: Any = ctypes.c_uint64 if pointer else struct(kind) if of_struct else _SCALARS[kind]
        for size in reversed(re.findall(r"\w+", sizes)):
            of *= constants()[size] if size in constants() else int(size)
        fields.append((field, of))

    class Struct(ctypes.Structure):
        _fields_ = fields

    return Struct


Ring = struct("ring")
LinkQueue = struct("link_queue")
LinkThread = struct("link_thread")
Crew = struct("crew")
Payload = struct("payload")
Parameters = struct("parameters")
Counters = struct("counters")
Point = struct("point")
Run = struct("run")
Phase = struct("phase")
Connection = struct("connection")
Flow = struct("flow")

#: The two ports, and as `Trial` names them.
CLIENT, SERVER = constants()["CLIENT"], constants()["SERVER"]
SIDES = ("client", "server")
#: As `Trial` names the causes of failures.
CAUSES = ("no_syn_ack", "no_reply", "no_fin", "no_last_ack", "reset", "bad_checksum")
assert all(constants()[name.upper()] == number for number, name in enumerate(CAUSES))
#: How connections end, by the profile's word.
ENDED_BY = {side: constants()[f"BY_{side.upper()}"] for side in ("client", "server", "reset")}
NEVER, NOBODY = constants()["NEVER"], constants()["NOBODY"]
#: States of a connection's client end.
SYN_SENT, AWAITS_REPLY, HELD = (constants()[name] for name in ("SYN_SENT", "AWAITS_REPLY", "HELD"))
#: The record's number in a tag, or that of a flow: the other bits of 32 tell trials apart.
SLOT_BITS, FLOW_BITS = constants()["SLOT_BITS"], constants()["FLOW_BITS"]
MOST_RECORDS: int = 1 << SLOT_BITS
MOST_THREADS: int = constants()["MOST_THREADS"]
MOST_PAIRS: int = constants()["MOST_PAIRS"]
#: Histograms of times, and the unit of their bins.
CONNECT, MESSAGE, FIRST_BYTE, LAST_BYTE, UNIT_SHIFT = (
    constants()[name] for name in ("CONNECT", "MESSAGE", "FIRST_BYTE", "LAST_BYTE", "UNIT_SHIFT")
)
#: The record of a connection.
RECORD_BYTES = ctypes.sizeof(Connection)
