"""Instructions by function: what a machine says of its addresses, symbols of programs, and which functions grew."""

import gzip
import struct

import pytest

from ctbench.base.errors import TestbedError
from ctbench.compare.judge import grown, judge_counts, that_differ
from ctbench.dut.abilities import ByFunction
from ctbench.dut.emulated import by_function
from ctbench.dut.emulated.by_function import Symbols
from ctbench.dut.emulated.image import GUEST, compile_program, pack, unpack

from .test_compare_counts import stored

PROGRAM = "/usr/sbin/ovs-vswitchd"
KERNEL = 0xFFFF_FFFF_8100_0000


def elf(functions: dict[str, tuple[int, int]], table: int = 11) -> bytes:
    """A program whose code is loaded from offset 0x1000 to address 0x2000, with these functions (address, size)."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in functions)
    symbols = b"\0" * 24 + b"".join(
        struct.pack("<IBBHQQ", names.index(b"\0" + name.encode() + b"\0") + 1, 0x12, 0, 1, *where)
        for name, where in functions.items()
    )
    data = bytearray(0x3000)
    data[:5] = b"\x7fELF\x02"
    struct.pack_into("<QQ", data, 0x20, 0x40, 0x2000)
    struct.pack_into("<HHHH", data, 0x36, 56, 1, 64, 3)
    struct.pack_into("<IIQQQQ", data, 0x40, 1, 5, 0x1000, 0x2000, 0, 0x1000)
    for number, (kind, at, size, link) in enumerate(
        [(0, 0, 0, 0), (table, 0x2400, len(symbols), 2), (3, 0x2200, 99, 0)]
    ):
        struct.pack_into("<IIQQQQIIQQ", data, 0x2000 + 64 * number, 0, kind, 0, 0, at, size, link, 0, 0, 0)
    data[0x2200 : 0x2200 + len(names)] = names
    data[0x2400 : 0x2400 + len(symbols)] = symbols
    return bytes(data)


def said(*more: str, end: str = "end") -> bytes:
    lines = [f"symbol {KERNEL:x} start_kernel", f"symbol {KERNEL + 0x100:x} nf_conntrack_in [nf_conntrack]", *more, end]
    return gzip.compress("\n".join(lines).encode(), mtime=0)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (KERNEL, "start_kernel"),
        (KERNEL + 0xFF, "start_kernel"),
        (KERNEL + 0x100, "nf_conntrack_in [nf_conntrack]"),
        (KERNEL - 1, "the kernel"),
        (0x40_0123, "the traffic"),
        (0x5555_5555_5000, "process_one [ovs-vswitchd]"),
        (0x5555_5555_500F, "process_one [ovs-vswitchd]"),
        (0x5555_5555_5010, "(no symbol) [ovs-vswitchd]"),
        (0x7FFF_0000_0000, "other programs"),
    ],
)
def test_an_address_is_of_a_function(address: int, name: str) -> None:
    packed = said(f"mapped 555555555000-555555556000 00001000 {PROGRAM}")
    symbols = Symbols.read(packed, {PROGRAM: elf({"process_one": (0x2000, 16), "main": (0x2020, 8)})})
    assert symbols.name(address) == name


def test_a_whole_table_of_symbols_is_better_than_what_is_exported() -> None:
    packed = said(f"mapped 555555555000-555555556000 00001000 {PROGRAM}")
    assert Symbols.read(packed, {PROGRAM: elf({"f": (0x2000, 4)}, 2)}).name(0x5555_5555_5000) == "f [ovs-vswitchd]"
    for other in (b"", b"#!/bin/sh"):
        assert Symbols.read(packed, {PROGRAM: other}).name(0x5555_5555_5000) == "(no symbol) [ovs-vswitchd]"


@pytest.mark.parametrize("packed", [b"", b"no gzip", said()[:-9], said(end=""), gzip.compress(b"end", mtime=0)])
def test_symbols_that_are_not_whole_are_refused(packed: bytes) -> None:
    with pytest.raises(TestbedError, match="symbols"):
        Symbols.read(packed, {})


def test_files_of_archives_are_found_again_the_later_ones_last() -> None:
    packed = pack({"a/b": b"12345", "c": b""}) + pack({"a/b": b"67"})
    found = unpack(packed)
    assert (found["/a/b"], found["/c"]) == (b"67", b"")


def test_the_program_reads_the_counter_where_the_plugin_looks() -> None:
    try:
        program = compile_program(GUEST / "traffic.c")
    except Exception as error:  # whatever is missing, the others are tested
        pytest.skip(str(error))
    assert by_function._mark(program) > 0x1000
    with pytest.raises(TestbedError, match="does not read the counter"):
        by_function._mark(program.replace(b"\x0f\x31", b"\x90\x90"))


def test_the_functions_that_grew_stand_first_with_their_parts() -> None:
    (test,) = judge_counts([stored("forward", [100])], [stored("forward", [160])]).tests
    base = ByFunction({"ip_rcv": 50.0, "f.isra.0 [m]": 40.0, "gone": 10.0}, 100.0)
    candidate = ByFunction({"ip_rcv": 50.0, "f [m]": 70.0, "f.part.3 [m]": 5.0, "new.constprop.0": 35.0}, 160.0)
    found = grown(test, base, candidate)
    assert [(each.function, each.base, each.candidate) for each in found.grown] == [("f [m]", 40, 75), ("new", 0, 35)]
    assert (found.base, found.candidate, candidate.error) == (100.0, 160.0, 0.0)


def test_tests_whose_seeds_are_not_apart_need_no_look() -> None:
    base = [stored("forward", [100, 102]), stored("bridge", [100]), stored("ovs-nat", [100])]
    candidate = [stored("forward", [101, 103]), stored("bridge", [100.1]), stored("ovs-nat", [90])]
    counts = judge_counts(base, candidate)
    assert [test.test for test in that_differ(counts.tests)] == ["Ovs-nat", "Bridge"]
