"""The functions of a program or library for Linux, by nm(1), readelf(1) and objdump(1): binutils, which every C
compiler needs."""

import re
import subprocess
from bisect import bisect_right
from functools import cached_property
from pathlib import Path

#: A function among what nm prints: address, size, kind of symbol (in a section with code, also where it is weak), name.
#: In a library a version follows the name: `pthread_mutex_lock@@GLIBC_2.2.5`.
_FUNCTION = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) [tTW] ([^@\s]+)", re.MULTILINE)
#: Offset, address and size in the file of a segment that is loaded.
_LOADED = re.compile(r"^ +LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+)", re.MULTILINE)
#: Where functions begin, as the tables for their unwinding say, which stripped programs have as well.
_FRAME = re.compile(r" FDE .*pc=([0-9a-f]+)\.\.")
#: Where a function calls or jumps to.
_CALLED = re.compile(r"\t(?:call|jmp) +([0-9a-f]+)")


class Program:
    """An ELF file with its functions by offset. A file of another format has none."""

    def __init__(self, path: Path, debug: Path | None = None) -> None:
        """`debug`: the file with the symbols of a stripped program."""
        self._path = path
        known = _functions("nm", "-S", debug) if debug else []
        self._functions = known or _functions("nm", "-S", path) or _functions("nm", "-S", "-D", path)
        self._begins = [begin for begin, _, _ in self._functions]
        self._loaded = [
            tuple(int(each, 16) for each in found) for found in _LOADED.findall(_output("readelf", "-lW", path))
        ]

    def place(self, offset: int) -> str:
        """Return the function at an offset of the file: its name, or where it begins (`+0x1a2b`); empty where neither
        is known."""
        within = (address + offset - begin for begin, address, size in self._loaded if begin <= offset < begin + size)
        address = next(within, None)
        if address is None:
            return ""
        if name := self._named(address):
            return name
        at = bisect_right(self._frames, address) - 1
        return "" if at < 0 else self._parts.get(self._frames[at]) or f"+{self._frames[at]:#x}"

    @property
    def build_id(self) -> str:
        """The ID of the build, in hexadecimal; empty where it has none."""
        found = re.search(r"Build ID: ([0-9a-f]+)", _output("readelf", "-n", self._path))
        return found[1] if found else ""

    def _named(self, address: int) -> str:
        at = bisect_right(self._begins, address) - 1
        if at < 0:
            return ""
        begin, size, name = self._functions[at]
        return name if address < begin + size else ""

    @cached_property
    def _frames(self) -> list[int]:
        return sorted(int(begin, 16) for begin in _FRAME.findall(_output("readelf", "-wf", self._path)))

    @cached_property
    def _parts(self) -> dict[int, str]:
        """Functions without a name to which a function with a name about mutexes calls or jumps, named by it: most of
        the code that unlocks a mutex is in such a part."""
        found: dict[int, str] = {}
        begins = set(self._frames)
        for begin, size, name in reversed(self._functions):  # of several names, that without underscores
            if "mutex" in name or "lll_" in name:
                code = _output(
                    "objdump", "-d", f"--start-address={begin}", f"--stop-address={begin + size}", self._path
                )
                targets = {int(target, 16) for target in _CALLED.findall(code)} & begins
                for target in targets:
                    if not self._named(target):
                        found.setdefault(target, f"{name} (a part)")
        return found


def _functions(*command: str | Path) -> list[tuple[int, int, str]]:
    """Return address, size and name of each function that has a size."""
    found = _FUNCTION.findall(_output(*command))
    return sorted((int(begin, 16), int(size, 16), name) for begin, size, name in found)


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout
