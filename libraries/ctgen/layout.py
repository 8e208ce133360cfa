"""What the kernel and Python both know, as kernel/layout.h says it: its constants and its structs.

Each class has the fields of the struct of its name (`LinkQueue`: `struct link_queue`); a pointer is an address.
"""

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).parent / "kernel" / "layout.h"

_SCALARS: dict[str, Any] = {
    "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32, "uint16_t": ctypes.c_uint16,
    "uint8_t": ctypes.c_uint8, "double": ctypes.c_double,
}  # fmt: skip
_DEFINE = re.compile(r"^#define (\w+) (\S+)$")
_FIELD = re.compile(r"^    (struct )?(\w+) (\*?)(\w+)((?:\[\w+\])*);$")


@cache
def _lines() -> list[str]:
    """The header without comments."""
    return [line.partition("//")[0].rstrip() for line in HEADER.read_text(encoding="ascii").splitlines()]


@cache
def constants() -> dict[str, Any]:
    """The numbers that the header defines: integers, unless they have a point."""
    found = (match for line in _lines() if (match := _DEFINE.match(line)))
    return {name: float(value) if "." in value else int(value, 0) for name, value in (each.groups() for each in found)}


def _fields(name: str) -> list[tuple[str, Any]]:
    """Those of a struct. What this file cannot read it refuses: a field that is left out would move the others."""
    lines = _lines()
    begin = lines.index(f"struct {name} {{") + 1
    fields = []
    for line in lines[begin : lines.index("};", begin)]:
        if not line.strip():
            continue
        match = _FIELD.match(line)
        assert match, f"{HEADER.name}, struct {name}: what is {line!r}?"
        struct, kind, pointer, field, sizes = match.groups()
        of = ctypes.c_uint64 if pointer else globals()[_class_of(kind)] if struct else _SCALARS[kind]
        for size in reversed(re.findall(r"\w+", sizes)):
            of *= constants()[size] if size in constants() else int(size)
        fields.append((field, of))
    return fields


def _class_of(struct: str) -> str:
    return struct.title().replace("_", "")


class Ring(ctypes.Structure):
    _fields_ = _fields("ring")


class Template(ctypes.Structure):
    _fields_ = _fields("template")


class Port(ctypes.Structure):
    _fields_ = _fields("port")


class LinkQueue(ctypes.Structure):
    _fields_ = _fields("link_queue")


class LinkThread(ctypes.Structure):
    _fields_ = _fields("link_thread")


class Crew(ctypes.Structure):
    _fields_ = _fields("crew")


class Payload(ctypes.Structure):
    _fields_ = _fields("payload")


class Parameters(ctypes.Structure):
    _fields_ = _fields("parameters")


class State(ctypes.Structure):
    _fields_ = _fields("state")


class Counters(ctypes.Structure):
    _fields_ = _fields("counters")

    def __sub__(self, before: "Counters") -> "Counters":
        """What was counted since these others."""
        difference = Counters()
        found, now, then = (np.frombuffer(memoryview(each).cast("B"), np.int64) for each in (difference, self, before))
        np.subtract(now, then, out=found)
        return difference


class Point(ctypes.Structure):
    _fields_ = _fields("point")


class Run(ctypes.Structure):
    _fields_ = _fields("run")


class Phase(ctypes.Structure):
    _fields_ = _fields("phase")


class End(ctypes.Structure):
    _fields_ = _fields("end")


class Connection(ctypes.Structure):
    _fields_ = _fields("connection")


class Flow(ctypes.Structure):
    _fields_ = _fields("flow")


#: The two ports, and as `Trial` names them.
CLIENT, SERVER = constants()["CLIENT"], constants()["SERVER"]
SIDES = ("client", "server")
#: As `Trial` names the causes of failures.
CAUSES = ("no_syn_ack", "no_reply", "no_fin", "no_last_ack", "reset", "bad_checksum")
assert all(constants()[name.upper()] == number for number, name in enumerate(CAUSES))
#: How connections end, by the profile's word.
ENDED_BY = {side: constants()[f"BY_{side.upper()}"] for side in ("client", "server", "reset")}
NEVER, HELD, NOBODY = (constants()[name] for name in ("NEVER", "HELD", "NOBODY"))
#: The record's number in a tag, or that of a flow: the other bits of 32 tell trials apart.
SLOT_BITS, FLOW_BITS = constants()["SLOT_BITS"], constants()["FLOW_BITS"]
MOST_RECORDS: int = 1 << SLOT_BITS
MOST_THREADS: int = constants()["MOST_THREADS"]
CONNECT, MESSAGE, BINS, UNIT_SHIFT = (constants()[name] for name in ("CONNECT", "MESSAGE", "BINS", "UNIT_SHIFT"))
#: The record of a connection.
RECORD_BYTES = ctypes.sizeof(Connection)
