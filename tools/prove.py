"""Plants known faults in a build of Open vSwitch, gates it as a candidate against the same build without them, and
counts how often the gate was red: 0, 2, 5 and 10 % slower, stalls, connections that are lost, a table that forgets, one
that leaks. Three rows are tried, one to three minutes a gate.

The gate knows nothing of it: the candidate is a prefix whose ovs-vswitchd is a copy that loads one library more
(plant/), and each try is a run of `./run sla --candidate` like any other. What counts as found is its exit status.
"""

import argparse
import json
import os
import shutil
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from ctbench import __version__
from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.files import check_writable
from ctbench.base.paths import PROGRAM, SUITES, results_root
from ctbench.base.text import printable
from ctbench.base.units import did_you_mean, quoted
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.local import run_child
from ctbench.results.record import Record
from ctbench.results.store import read_stored
from icount.image import compile_program
from tools import ending
from tools.plant.needed import with_library

PLANT = Path(__file__).parent / "plant" / "plant.c"
#: The rows that are tried where no others are chosen: what a DUT serves, whether its table keeps what it has, and
#: whether it frees what it had.
_ROWS = (
    "--test", "1 CPU, 1 Queue, Short-Lived Connections", "--test", "Connections Held, Open vSwitch",
    "--test", "Memory, Open vSwitch", str(SUITES),
)  # fmt: skip
#: What ./run sla may end with so that the gate was one.
_GATES = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED)
#: In the folder of a gate that has ended: its exit status; and of all of them, what they found.
STATUS_FILE, FILE = "exit-status", "proof.json"
#: What plant.c counts, in its order.
_COUNTS = ("queues", "packets", "busy", "added", "sleeps", "connections", "lost", "emptied", "kept")


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
    "leaks": Fault("a table that frees no entry", {"LEAKS": 1}, _number("entries", "kept")),
}


def plant(fault: Fault, base: OvsInstallation, folder: Path) -> None:
    """Make a prefix of the base's files, with the fault in its ovs-vswitchd. `ConfigError` for a base that none can be
    planted in, `MissingResource` where there is no compiler."""
    real = Path(base.vswitchd_path)
    if base.packages:
        raise ConfigError(
            "--base: packages that are not installed.\n  Expected distribution, or the prefix of a build."
        )
    try:
        # Next to it, wherever the gate shows it: the name is short enough for the room that there is.
        changed = with_library(real.read_bytes(), "$ORIGIN/../plant")
    except OSError as error:
        raise ConfigError(f"--base: {real}: {error.strerror}.\n  Expected the prefix of a build.") from None
    except ValueError as error:
        raise ConfigError(f"--base: {real}: {error}.\n  Expected another build.") from None
    if b"librte_ethdev.so" not in changed:
        raise ConfigError(
            "--base: a build that has DPDK within: no library gets between it and DPDK.\n  Expected distribution, or "
            "the prefix of a build with the libraries of DPDK (--with-dpdk=shared)."
        )
    for name in ("sbin", "bin", "share"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in map(Path, base.files[1:]):
        place = "share/openvswitch" if path.suffix else path.parent.name
        (folder / place).mkdir(exist_ok=True)
        (folder / place / path.name).symlink_to(path)
    counts, source, program = folder / "counts", folder / "plant.c", folder / "sbin" / "ovs-vswitchd"
    counts.write_bytes(bytes(8 * len(_COUNTS)))
    defines = {**fault.defines, "COUNTS": _in_c(str(counts))}
    lines = [*(f"#define {key} {value}" for key, value in defines.items()), f"#include {_in_c(str(PLANT))}"]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "plant").write_bytes(compile_program(source, "gcc", "-fPIC", "-shared"))
    program.write_bytes(changed)
    program.chmod(0o755)


def _in_c(text: str) -> str:
    """A string of C."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def did(folder: Path) -> dict[str, int]:
    """What the fault of a prefix counted."""
    return dict(zip(_COUNTS, struct.unpack(f"<{len(_COUNTS)}Q", (folder / "counts").read_bytes()), strict=True))


@dataclass(frozen=True)
class Try:
    """One gate, of a candidate with the fault against the same build without it."""

    #: What it ended with, and how long its tests took by the wall clock, seconds.
    status: int
    seconds: float
    #: The verdict of each row.
    said: list[str]
    #: Of the row that lost most, the candidate against the base, percent, with its interval; None where no ratio came
    #: of it.
    difference_pct: float | None
    low_pct: float | None
    high_pct: float | None
    #: What the fault did, by its own count.
    did: dict[str, int]
    #: Whether that was anything. A gate that had nothing to find proves nothing.
    took_effect: bool


def tried(fault: Fault, status: int, records: Sequence[Record], did: Mapping[str, int]) -> Try:
    """What came of one gate."""
    shares = [share for record in records if (share := record.threshold("of_build")) and share.measured is not None]
    worst = min(shares, key=lambda share: share.measured or 0.0, default=None)
    seen = [worst.measured, worst.low, worst.high] if worst else [None] * 3
    difference, low, high = (None if each is None else (each - 1) * 100 for each in seen)
    return Try(
        status=status,
        seconds=sum(record.wall_s for record in records),
        said=[record.verdict for record in records],
        difference_pct=difference,
        low_pct=low,
        high_pct=high,
        did=dict(did),
        took_effect=bool(did["queues"] and fault.effect(did)) or not fault.defines,
    )


def gate(folder: Path, arguments: Sequence[str]) -> int:
    """Run a gate unless that is done, and return what it ended with. What one that was broken off left goes."""
    done = folder / STATUS_FILE
    if done.exists():
        return int(done.read_text(encoding="utf-8"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ended = run_child([*PROGRAM, "sla", "--outputdir", str(folder), *arguments])
    if ended in _GATES:
        done.write_text(f"{ended}\n", encoding="utf-8")
    return ended


def prove(options: argparse.Namespace, rest: Sequence[str]) -> int:
    """Make the gates that are not there yet, of all faults in turn, and say what they found: of those that were made
    until one was none, or was stopped. `rest` goes to Robot Framework."""
    found: dict[str, list[Try]] = {name: [] for name in options.faults}
    records: list[Record] = []
    ended = 0
    for number, name in [(number, name) for number in range(1, options.tries + 1) for name in options.faults]:
        fault, place = FAULTS[name], f"{name}-{number}"
        folder, prefix = options.outputdir / "runs" / place, options.outputdir / "plants" / place
        if not (folder / STATUS_FILE).exists():
            shutil.rmtree(prefix, ignore_errors=True)
            plant(fault, OvsInstallation.at(options.base), prefix)
        print(f"prove: {fault.title}, try {number} of {options.tries}", flush=True)
        arguments = ["--candidate", str(prefix), "--base", options.base, "-v", "CAMPAIGN:gate"]
        ended = gate(folder, [*arguments, "-v", f"TESTBED:{options.testbed}", *(rest or _ROWS)])
        if ended not in _GATES:
            print(f"prove: the gate ended with status {ended}.", file=sys.stderr)
            print(f"To go on: the same command with --outputdir {options.outputdir}", file=sys.stderr)
            break
        of_run = [each.record for each in read_stored(folder)[0]]
        found[name].append(tried(fault, ended, of_run, did(prefix)))
        records += of_run
    if records:
        _say(options.outputdir, found, records)
    if ended in _GATES:
        return ExitStatus.MET
    return ended if ended > 128 else ExitStatus.NOTHING_MEASURED


def _say(output: Path, found: Mapping[str, Sequence[Try]], records: Sequence[Record]) -> None:
    """The table, and the same as JSON. `records` are those of all gates."""
    proof = {
        "tool_version": __version__,
        "made": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "machine": records[0].environment.dut_machine.model_dump(),
        "product": records[0].environment.dut.product,
        "rows": list(dict.fromkeys(f"{each.topology.key} {each.profile.name}" for each in records)),
        "planted": {name: [asdict(each) for each in tries] for name, tries in found.items() if tries},
    }
    (output / FILE).write_text(json.dumps(proof, indent=1) + "\n", encoding="utf-8")
    print(printable("\n".join(table(found))))
    print(f"Proof: {output / FILE}")


def table(found: Mapping[str, Sequence[Try]]) -> list[str]:
    """A line for each fault: how often it was found, and of its tries in the median the seconds and the difference that
    was seen, with its interval. Tries in which there was nothing to find do not count."""
    rows = [("planted", "found", "seconds", "difference seen", "what it did")]
    for name, tries in found.items():
        fault, counted = FAULTS[name], [each for each in tries if each.took_effect]
        counted.sort(key=lambda one: one.difference_pct or 0.0)
        middle = counted[len(counted) // 2] if counted else None
        seen = "-" if middle is None else _difference(middle)
        seconds = f"{median(one.seconds for one in counted):.0f}" if counted else "-"
        red = sum(one.status == ExitStatus.MISSED for one in counted)
        effect = fault.effect((middle or tries[0]).did) if tries else "not tried"
        rows.append((fault.title, f"{red} of {len(counted)}", seconds, seen, effect or "nothing: no effect"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _difference(one: Try) -> str:
    if one.difference_pct is None:
        return "no ratio"
    if one.low_pct is None or one.high_pct is None:
        return f"{one.difference_pct:+.1f} %"
    return f"{one.difference_pct:+.1f} % ({one.low_pct:+.1f} to {one.high_pct:+.1f})"


def _faults(given: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in given.split(",")))
    for name in names:
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(
                f"{quoted(name)} is none: expected some of {', '.join(FAULTS)}.{did_you_mean(name, list(FAULTS))}"
            )
    return names


def _output(given: Path | None) -> Path:
    """The folder of the gates, which can be written. `ConfigError` where that is not so."""
    output = (given or results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-prove-{os.getpid()}").absolute()
    try:
        output.mkdir(parents=True, exist_ok=True)
        check_writable(output)
    except OSError as error:
        raise ConfigError(f"{output}: cannot be written ({error.strerror}): choose --outputdir.") from None
    return output


def main(arguments: Sequence[str] | None = None) -> int:
    """Everything from the command line to the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.prove",
        description=__doc__,
        epilog="Other arguments go to Robot Framework, and choose rows. A command that was stopped goes on with the "
        "--outputdir that it names. Status 0: the table says what was found; 4: an option is invalid; 6: a gate was "
        "none.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--faults", type=_faults, default=list(FAULTS), metavar="NAME,NAME",
        help=f"plant only these (default: {','.join(FAULTS)})")  # fmt: skip
    add("--tries", type=int, choices=range(1, 101), default=3, metavar="N", help="gates for each fault (default: 3)")
    add(
        "--base",
        default="distribution",
        metavar="DIR",
        help="plant them in this build (--prefix) and not in the distribution's package",
    )
    add("--testbed", default="local", metavar="NAME", help="name or path (default: %(default)s)")
    add(
        "--outputdir",
        type=Path,
        metavar="DIR",
        help="where the runs go; none is made again (default: a new folder in results/)",
    )
    options, rest = parser.parse_known_args(arguments)
    options.outputdir = _output(options.outputdir)
    options.base = options.base if options.base == "distribution" else str(Path(options.base).absolute())
    return prove(options, rest)


if __name__ == "__main__":
    ending.run(main)
