"""`./run prove`: plants known faults, and counts how often the gate of a candidate finds them here.

The gate knows nothing of it: the candidate is a prefix whose ovs-vswitchd is a program that becomes the real one with a
library preloaded (plant/), and each try is a run of `./run sla --candidate` like any other. What counts as found is its
exit status.
"""

import argparse
import os
import shlex
import shutil
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from ctbench import __version__
from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.files import check_writable
from ctbench.base.paths import LIBRARIES, SUITES, results_root
from ctbench.base.text import printable
from ctbench.base.units import did_you_mean, parse_whole, quoted
from ctbench.cli.child_runs import STATUS_FILE, ChildRuns, is_done
from ctbench.cli.parser.command import read_option
from ctbench.cli.parser.tree import parse
from ctbench.cli.robot.command_line import DataError
from ctbench.cli.robot.command_line import parse as parse_robot
from ctbench.dut.emulated.image import compile_program
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.results.proofs import FILE, Planted, Proof, Try
from ctbench.results.record import Record
from ctbench.results.store import read_stored, read_without_record

PLANT = Path(__file__).with_name("plant")
#: Where the programs of the emulated machine have what this one needs as well: calls of the kernel.
_KERNEL = LIBRARIES / "ctbench" / "dut" / "emulated" / "guest" / "kernel.h"
#: The rows that are tried where no others are chosen: what a DUT serves, and whether its table keeps what it has.
_ROWS = ("--test", "1 CPU, 1 Queue, Short-Lived Connections", "--test", "Connections Held, Open vSwitch", str(SUITES))
#: What ./run sla may end with so that the gate was one.
_GATES = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED)
#: Of each fault.
MOST_TRIES = 100
#: What plant.c counts, in its order.
_COUNTS = ("queues", "packets", "busy", "added", "sleeps", "connections", "lost", "emptied")


@dataclass(frozen=True)
class Fault:
    """What is planted: in words, what plant.c has to be told for it, and what it did in words, by its counts; empty
    where it did nothing."""

    title: str
    defines: Mapping[str, int] = field(default_factory=dict)
    effect: Callable[[Mapping[str, int]], str] = lambda _: "none"


def _slower(percent: int) -> Fault:
    return Fault(f"{percent} % slower", {"SLOWER": 10 * percent}, _added)


def _added(did: Mapping[str, int]) -> str:
    share = did["added"] / (did["busy"] + did["added"]) if did["added"] else 0.0
    return f"{share * 100:.1f} % of its time" if share else ""


def _number(what: str, name: str) -> Callable[[Mapping[str, int]], str]:
    return lambda did: f"{did[name]} {what}" if did[name] else ""


FAULTS = {
    "nothing": Fault("nothing"),
    "slower-2": _slower(2),
    "slower-5": _slower(5),
    "slower-10": _slower(10),
    "stalls": Fault("stalls of 45 ms each 400 ms", {"STALL_MS": 45, "EACH_MS": 400}, _number("stalls", "sleeps")),
    "losses": Fault("1 % of connections lost", {"LOSE": 100}, _number("connections", "lost")),
    "forgets": Fault("a table that forgets each 200 ms", {"FORGETS": 1, "EACH_MS": 200}, _number("times", "emptied")),
}


def plant(fault: Fault, base: OvsInstallation, folder: Path) -> None:
    """Make a prefix of the base's files, with the fault in its ovs-vswitchd. `ConfigError` for a base that none can be
    planted in, `MissingResource` where there is no compiler."""
    real = Path(base.vswitchd_path)
    try:
        shared = b"librte_ethdev.so" in real.read_bytes()
    except OSError as error:
        raise ConfigError(f"--base: {real}: {error.strerror}.\n  Expected the prefix of a build.") from None
    if base.packages or not shared:
        what = "packages that are not installed" if base.packages else "a build that has DPDK within"
        raise ConfigError(
            f"--base: {what}: no library gets between it and DPDK.\n  Expected distribution, or the prefix of a build "
            "with the libraries of DPDK (--with-dpdk=shared)."
        )
    for name in ("sbin", "bin", "share"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in map(Path, base.files[1:]):
        place = "share/openvswitch" if path.suffix else path.parent.name
        (folder / place).mkdir(exist_ok=True)
        (folder / place / path.name).symlink_to(path)
    counts, library, program = folder / "counts", folder / "plant", folder / "sbin" / "ovs-vswitchd"
    counts.write_bytes(bytes(8 * len(_COUNTS)))
    library.write_bytes(_compiled(folder, "plant", {**fault.defines, "COUNTS": str(counts)}, "-shared"))
    of_start = {"PLANT": str(library), "REAL": str(real), "KERNEL": str(_KERNEL)}
    program.write_bytes(_compiled(folder, "start", of_start, "-static"))
    program.chmod(0o755)


def _compiled(folder: Path, name: str, defines: Mapping[str, int | str], how: str) -> bytes:
    """A program of plant/ with what it is told."""
    lines = [f"#define {key} {_in_c(value) if isinstance(value, str) else value}" for key, value in defines.items()]
    source = folder / f"{name}.c"
    source.write_text("\n".join([*lines, f"#include {_in_c(str(PLANT / source.name))}"]) + "\n", encoding="utf-8")
    return compile_program(source, how)


def _in_c(text: str) -> str:
    """A string of C."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def did(folder: Path) -> dict[str, int]:
    """What the fault of a prefix counted."""
    return dict(zip(_COUNTS, struct.unpack(f"<{len(_COUNTS)}Q", (folder / "counts").read_bytes()), strict=True))


class Proving:
    """One proof: what was asked for, checked before anything is measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Raises `ConfigError` for whatever would be a pity to learn after an hour."""
        self.options = options
        self.tries = read_option("--tries", parse_whole, options.tries, 1, MOST_TRIES)
        self.faults = _faults(options.faults) if options.faults else FAULTS
        base = options.base if options.base == "distribution" else str(Path(options.base).absolute())
        self.base = OvsInstallation.at(base)
        self.output = Path(
            options.outputdir or results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-prove-{os.getpid()}"
        ).absolute()
        named = parse_robot(options.rest, SUITES)
        chosen = named.names_suites or any(named.options.get(each) for each in ("include", "test", "suite"))
        self.rest = list(options.rest) if chosen else [*options.rest, *_ROWS]
        if set(str(self.output)) & {" ", ":"}:  # what separates the libraries of LD_PRELOAD
            raise ConfigError(f"{self.output}: has a space or a colon in it.\n  Expected another --outputdir.")
        try:
            self.output.mkdir(parents=True, exist_ok=True)
            check_writable(self.output)
        except OSError as error:
            raise ConfigError(f"{self.output}: cannot be written ({error.strerror}): choose --outputdir.") from None

    def run(self) -> ExitStatus:
        """Make what is not there yet, and say what the gates found. Of faults in turn, so that what was made until a
        Ctrl-C is a proof as well."""
        made, tries = ChildRuns(_GATES), [(number, name) for number in range(1, self.tries + 1) for name in self.faults]
        found: dict[str, list[Try]] = {name: [] for name in self.faults}
        records: list[Record] = []
        for place, (number, name) in enumerate(tries):
            folder, prefix = self.output / "runs" / f"{name}-{number}", self.output / "plants" / f"{name}-{number}"
            if not is_done(folder):
                shutil.rmtree(prefix, ignore_errors=True)
                plant(self.faults[name], self.base, prefix)
            line = f"prove: {self.faults[name].title}, try {number} of {self.tries}"
            arguments = ["--candidate", str(prefix), "--base", self.options.base, "-v", "CAMPAIGN:gate"]
            arguments += ["-v", f"TESTBED:{self.options.testbed}", *self.rest]
            ended = made.make(folder, arguments, line, len(tries) - place)
            if ended:
                self._say(found, records)
                said = [each.reason for each in read_without_record(folder)[0]] or [f"it ended with status {ended}"]
                if ended != ExitStatus.INTERRUPTED:
                    print(f"prove: a gate is none: {said[0]}", file=sys.stderr)
                given = [part for part in sys.argv[1:] if part not in ("--outputdir", str(self.options.outputdir))]
                on = shlex.join(["./run", "prove", "--outputdir", str(self.output), *given])
                print(f"prove: To go on:\n  {on}", file=sys.stderr)
                if ended == ExitStatus.INTERRUPTED:
                    raise KeyboardInterrupt
                return ExitStatus.NOTHING_MEASURED
            of_run = [each.record for each in read_stored(folder)[0]]
            found[name].append(tried(self.faults[name], folder, of_run, did(prefix), self.output))
            records += of_run
        self._say(found, records)
        return ExitStatus.MET

    def _say(self, found: Mapping[str, Sequence[Try]], records: Sequence[Record]) -> None:
        """The table, and its record. `records` are those of all gates."""
        if not records:
            return
        proof = Proof(
            tool_version=__version__,
            made=datetime.now(UTC),
            machine=records[0].environment.dut_machine,
            product=records[0].environment.dut.product,
            rows=list(dict.fromkeys(f"{each.topology.key} {each.profile.name}" for each in records)),
            planted=[
                Planted(fault=name, title=self.faults[name].title, tries=list(tries))
                for name, tries in found.items()
                if tries
            ],
        )
        proof.write(self.output)
        print(printable("\n".join(table(proof))))
        print(f"Proof: {self.output / FILE}")


def _faults(given: str) -> dict[str, Fault]:
    names = list(dict.fromkeys(name.strip() for name in given.split(",")))
    for name in names:
        if name not in FAULTS:
            raise ConfigError(
                f"--faults: {quoted(name)} is none.\n  Expected some of {', '.join(FAULTS)}."
                f"{did_you_mean(name, list(FAULTS))}"
            )
    return {name: FAULTS[name] for name in names}


def tried(fault: Fault, folder: Path, records: Sequence[Record], did: Mapping[str, int], output: Path) -> Try:
    """What came of one gate."""
    shares = [share for record in records if (share := record.threshold("of_build")) and share.measured is not None]
    worst = min(shares, key=lambda share: share.measured or 0.0, default=None)
    seen = [worst.measured, worst.low, worst.high] if worst else [None] * 3
    difference, low, high = (None if each is None else (each - 1) * 100 for each in seen)
    return Try(
        folder=str(folder.relative_to(output)),
        status=int((folder / STATUS_FILE).read_text(encoding="utf-8")),
        seconds=sum(record.wall_s for record in records),
        said=[record.verdict for record in records],
        difference_pct=difference,
        low_pct=low,
        high_pct=high,
        did=dict(did),
        took_effect=bool(did["queues"] and fault.effect(did)) or not fault.defines,
    )


def table(proof: Proof) -> list[str]:
    """A line for each fault: how often it was found, and of its tries in the median the seconds and the difference that
    was seen, with its interval."""
    rows = [("planted", "found", "seconds", "difference seen", "what it did")]
    for each in proof.planted:
        counted = sorted(each.counted, key=lambda one: one.difference_pct or 0.0)
        middle = counted[len(counted) // 2] if counted else None
        seen = "-" if middle is None else _difference(middle)
        seconds = f"{median(one.seconds for one in counted):.0f}" if counted else "-"
        effect = FAULTS[each.fault].effect((middle or each.tries[0]).did) or "nothing: it did not take effect"
        rows.append((each.title, f"{each.found} of {len(counted)}", seconds, seen, effect))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _difference(one: Try) -> str:
    if one.difference_pct is None:
        return "no ratio"
    if one.low_pct is None or one.high_pct is None:
        return f"{one.difference_pct:+.1f} %"
    return f"{one.difference_pct:+.1f} % ({one.low_pct:+.1f} to {one.high_pct:+.1f})"


def main() -> int:
    try:
        return Proving(parse("prove")).run()
    except DataError as error:
        print(f"prove: {str(error).rstrip('.')}. Try `./run prove --help`.", file=sys.stderr)
        return ExitStatus.USAGE
