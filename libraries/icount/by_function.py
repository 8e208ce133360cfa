"""Instructions by function, from one start of an emulated machine with plugin.c in QEMU's translator."""

import gzip
import struct
import tempfile
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from icount.errors import IcountError
from icount.image import compile_program
from icount.machine import Asked, Log, Workload, run_all, version

#: Section types of tables of symbols, the type of a symbol that is a function, and of a segment that is loaded.
_SYMTAB, _DYNSYM, _FUNCTION, _LOAD = 2, 11, 2, 1


class Program:
    """The segments and functions of an ELF file, by offset. Any other file has none."""

    def __init__(self, data: bytes) -> None:
        is_elf = data[:5] == b"\x7fELF\x02"
        self._segments = list(_segments(data)) if is_elf else []
        self._functions = sorted(_functions(data)) if is_elf else []

    def name(self, offset: int) -> str:
        """Return the function at an offset of the file; empty where none is known."""
        address = self.address(offset)
        if address is None:
            return ""
        at = bisect_right(self._functions, address, key=lambda each: each[0]) - 1
        if at < 0:
            return ""
        begin, size, name = self._functions[at]
        return name if address < begin + size else ""

    def address(self, offset: int) -> int | None:
        """Return the address to which an offset of the file is loaded; None where it is not loaded."""
        for begin, address, size in self._segments:
            if begin <= offset < begin + size:
                return address + offset - begin
        return None


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield offset, address and size in the file of each loaded segment."""
    (table,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + number * size)
        if kind == _LOAD:
            yield offset, address, length


def _functions(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield address, size and name of each function: from the symbol table, or from the exported symbols of a stripped
    file."""
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


#: Where the kernel's addresses begin (x86-64, Documentation/arch/x86/x86_64/mm.rst).
_KERNEL = 0xFFFF_8000_0000_0000
#: The program that sends and counts is linked to below this; other programs are anywhere above it.
_TRAFFIC_BELOW = 0x1000_0000


@dataclass
class Symbols:
    #: Of the kernel and its modules, by address.
    kernel: list[tuple[int, str]] = field(default_factory=list)
    #: Parts of files that are executed: begin, end, offset in the file, and the file.
    mapped: list[tuple[int, int, int, str]] = field(default_factory=list)
    #: Programs and libraries of the machine by their path.
    files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, packed: bytes, files: Mapping[str, bytes]) -> "Symbols":
        """Read the symbols that a machine wrote to its second serial line. Raise `IcountError` where they are not
        complete."""
        try:
            text = gzip.decompress(packed).decode(errors="replace")
        except (OSError, EOFError, zlib.error) as error:
            raise IcountError(f"The emulated machine did not say its symbols: {error}.") from None
        found, lines = cls(files=files), text.splitlines()
        for line in lines:
            word, *rest = line.split()
            if word == "symbol" and len(rest) > 1:
                found.kernel.append((int(rest[0], 16), rest[1] + (f" {rest[2]}" if len(rest) > 2 else "")))
            elif word == "mapped" and len(rest) == 3:
                begin, _, end = rest[0].partition("-")
                found.mapped.append((int(begin, 16), int(end, 16), int(rest[1], 16), rest[2]))
        if lines[-1:] != ["end"] or not found.kernel:
            raise IcountError("The emulated machine did not say all of its symbols.")
        found.kernel.sort(key=lambda each: each[0])
        return found

    @cached_property
    def _addresses(self) -> list[int]:
        return [address for address, _ in self.kernel]

    @cached_property
    def _programs(self) -> dict[str, Program]:
        return {path: Program(self.files[path]) for *_, path in self.mapped if path in self.files}

    def name(self, address: int) -> str:
        """Return the function at an address, with its module or program: `nf_conntrack_in [nf_conntrack]`. An address
        without a symbol is named by its program."""
        if address >= _KERNEL:
            place = bisect_right(self._addresses, address) - 1
            return self.kernel[place][1] if place >= 0 else "the kernel"
        if address < _TRAFFIC_BELOW:
            return "the traffic"
        for begin, end, offset, path in self.mapped:
            if begin <= address < end:
                program = self._programs.get(path)
                symbol = program.name(address - begin + offset) if program else ""
                return f"{symbol or '(no symbol)'} [{path.rpartition('/')[2]}]"
        return "other programs"


_HERE = Path(__file__).parent / "plugin"
#: Seconds that a machine may take: the plugin makes it some three times as long.
_LONGEST_S = 300.0
#: A workload whose functions add up to another figure (ratio) reads the clock in its own way, and is left out.
_MOST_ERROR = 1e-4
#: How the program that sends reads the counter (`instructions` of guest/kernel.h): rdtsc; shl $32, %rdx.
_READS_THE_COUNTER = bytes.fromhex("0f3148c1e220")


def plugin_for(qemu: str) -> bytes:
    """Return the plugin, compiled for a version of QEMU. What tcc makes does not say that it needs no executable stack,
    and glibc 2.41 and later do not load that."""
    per_cpu = int(qemu.partition(".")[0]) >= 9
    return compile_program(_HERE / "plugin.c", "gcc", "-fPIC", "-shared", *["-DPER_CPU"] * per_cpu)


def count_functions(
    folder: Path, files: Mapping[str, bytes], ready: Asked, given: Mapping[str, bytes], at_once: int = 1
) -> dict[str, dict[Workload, dict[str, float]]]:
    """Start a ready machine in a folder, once for each topology in `given`, and return the functions by topology and
    workload. `files`: those in the machine. Raise `IcountError` where one does not finish, or proves nothing."""
    found: dict[str, dict[Workload, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="functions-", dir=folder) as own:
        here, inside = Path(own), Path(own).name
        (here / "plugin.so").write_bytes(plugin_for(version()))
        mark, last = _mark(files["/guest/traffic"]), (_HERE / "last.sh").read_bytes()
        asked = [
            replace(ready, given=one + last, more=(
                "-serial", f"file:{inside}/{number}.symbols",
                "-plugin", f"{inside}/plugin.so,out={inside}/{number}.rounds,mark={mark:x}",
            ))
            for number, one in enumerate(given.values())
        ]  # fmt: skip
        for number, (name, log) in enumerate(zip(given, run_all(folder, asked, at_once, _LONGEST_S), strict=True)):
            if log.trouble:
                raise IcountError(f"The emulated machine did not count the functions of {name}: {log.trouble}.")
            symbols = Symbols.read((here / f"{number}.symbols").read_bytes(), files)
            found[name] = _found(log, _rounds((here / f"{number}.rounds").read_text()), symbols, name)
    return found


def _found(log: Log, rounds: list[Counter[int]], symbols: Symbols, name: str) -> dict[Workload, dict[str, float]]:
    found: dict[Workload, dict[str, float]] = {}
    for workload, told in log.workloads.items():
        own, rounds = rounds[: len(told.rounds)], rounds[len(told.rounds) :]
        if told.doubt or len(own) != len(told.rounds):
            raise IcountError(f"The functions of {name} were not proved: {told.doubt or 'rounds are missing'}.")
        sent = sum(each.sent for each in told.rounds)
        clock = sum(each.instructions for each in told.rounds) / sent
        functions = _by_function(own, symbols, sent)
        if abs(sum(functions.values()) / clock - 1) < _MOST_ERROR:
            found[workload] = functions
    return found


def _mark(program: bytes) -> int:
    """Return the address at which the program reads the counter."""
    address = Program(program).address(program.find(_READS_THE_COUNTER))
    if address is None:
        raise IcountError("guest/traffic does not read the counter in the way that the plugin looks for.")
    return address


def _rounds(text: str) -> list[Counter[int]]:
    found: list[Counter[int]] = []
    for line in text.splitlines():
        address, _, executed = line.partition(" ")
        if not executed:
            found.append(Counter())
        else:
            found[-1][int(address, 16)] += int(executed)
    return found


def _by_function(rounds: list[Counter[int]], symbols: Symbols, sent: int) -> dict[str, float]:
    """Return the instructions of one packet (connection) by function, wires and traffic included; the dearest first."""
    found: Counter[str] = Counter()
    for each in rounds:
        for address, executed in each.items():
            found[symbols.name(address)] += executed
    return {name: executed / sent for name, executed in found.most_common()}
