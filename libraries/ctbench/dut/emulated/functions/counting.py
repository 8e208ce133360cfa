"""One start of an emulated machine whose instructions are counted by function.

Nothing of the machine changes but its last act: it says its symbols. Its rounds still say their instructions by the
machine's own clock, so that what is found here is checked against what a test finds.
"""

import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.dut.counting import ByFunction, Workload
from ctbench.dut.emulated.functions.symbols import Symbols
from ctbench.dut.emulated.image import COMPILER, find_program
from ctbench.dut.emulated.log import Log, read_log
from ctbench.dut.emulated.machine import PRIVATE, Start, run_all
from ctbench.hosts.base import Host

_HERE = Path(__file__).parent
#: Seconds that a machine may take: the plugin makes it some three times as long.
_LONGEST_S = 300.0
#: A workload whose functions add up to another figure (ratio) reads the clock in its own way, and is left out.
_MOST_ERROR = 1e-4
#: How the program that sends reads the counter (`instructions` of guest/kernel.h): rdtsc; shl $32, %rdx.
_READS_THE_COUNTER = bytes.fromhex("0f3148c1e220")


def count_functions(
    host: Host, files: Mapping[str, bytes], ready: Start, given: Mapping[str, bytes], at_once: int = 1
) -> dict[str, dict[Workload, ByFunction]]:
    """Start a machine that is ready, once for each topology that it is given, by the topology's name; `files`: those in
    it. `TestbedError` where one does not come to its end, or proves nothing."""
    found: dict[str, dict[Workload, ByFunction]] = {}
    with tempfile.TemporaryDirectory(prefix="ctbench-functions-", dir=host.local_path(PRIVATE)) as folder:
        here, inside = Path(folder), f"{PRIVATE}/{Path(folder).name}"
        (here / "plugin.so").write_bytes(compile_plugin())
        mark, last = _mark(files["/guest/traffic"]), (_HERE / "last.sh").read_bytes()
        asked = [
            replace(ready, given=one + last, more=(
                "-serial", f"file:{inside}/{number}.symbols",
                "-plugin", f"{inside}/plugin.so,out={inside}/{number}.rounds,mark={mark:x}",
            ))
            for number, one in enumerate(given.values())
        ]  # fmt: skip
        for number, (name, one) in enumerate(zip(given, run_all(host, asked, at_once, _LONGEST_S), strict=True)):
            log = read_log(one.said)
            if trouble := one.trouble or log.trouble:
                raise TestbedError(f"The emulated machine did not count the functions of {name}: {trouble}.")
            symbols = Symbols.read((here / f"{number}.symbols").read_bytes(), files)
            found[name] = _found(log, _rounds((here / f"{number}.rounds").read_text()), symbols, name)
    return found


def _found(log: Log, rounds: list[Counter[int]], symbols: Symbols, name: str) -> dict[Workload, ByFunction]:
    """The functions of each workload that a machine measured."""
    found: dict[Workload, ByFunction] = {}
    for workload, told in log.workloads.items():
        own, rounds = rounds[: len(told.rounds)], rounds[len(told.rounds) :]
        if told.doubt or len(own) != len(told.rounds):
            raise TestbedError(f"The functions of {name} were not proved: {told.doubt or 'rounds are missing'}.")
        sent = sum(each.sent for each in told.rounds)
        clock = sum(each.instructions for each in told.rounds) / sent
        counted = ByFunction(_by_function(own, symbols, sent), clock)
        if abs(counted.error) < _MOST_ERROR:
            found[workload] = counted
    return found


def compile_plugin() -> bytes:
    """The plugin, compiled. `MissingResource` where there is no compiler."""
    compiler = find_program(COMPILER[0])
    with tempfile.TemporaryDirectory(prefix="ctbench-") as folder:
        target = Path(folder) / "plugin.so"
        argv = [str(compiler), "-Wall", "-shared", "-nostdlib", "-o", str(target), str(_HERE / "plugin.c")]
        said = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        if said.returncode or not target.exists():
            raise TestbedError(f"plugin.c could not be compiled: {said.stderr.strip()[-300:]}")
        return target.read_bytes()


def _mark(program: bytes) -> int:
    """The address at which the program reads the counter."""
    at = program.find(_READS_THE_COUNTER)
    headers, size, count = (
        int.from_bytes(program[begin:end], "little") for begin, end in ((0x20, 0x28), (0x36, 0x38), (0x38, 0x3A))
    )
    for number in range(count):
        header = program[headers + number * size :]
        kind, offset, address, length = (
            int.from_bytes(header[begin:end], "little") for begin, end in ((0, 4), (8, 16), (16, 24), (32, 40))
        )
        if kind == 1 and offset <= at < offset + length:
            return address + at - offset
    raise TestbedError("guest/traffic does not read the counter in the way that the plugin looks for.")


def _rounds(text: str) -> list[Counter[int]]:
    """Instructions by the address of their block, of each round."""
    found: list[Counter[int]] = []
    for line in text.splitlines():
        address, _, executed = line.partition(" ")
        if not executed:
            found.append(Counter())
        else:
            found[-1][int(address, 16)] += int(executed)
    return found


def _by_function(rounds: list[Counter[int]], symbols: Symbols, sent: int) -> dict[str, float]:
    found: Counter[str] = Counter()
    for each in rounds:
        for address, executed in each.items():
            found[symbols.name(address)] += executed
    return {name: executed / sent for name, executed in found.most_common()}
