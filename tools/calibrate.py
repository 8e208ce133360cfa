"""`./run calibrate`: measures this machine a few times and writes an SLA file with floors that suit it."""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ctbench.errors import ConfigError, CtbenchError
from ctbench.exit_status import ExitStatus
from ctbench.hosts.child import run_child
from ctbench.results import store
from ctbench.results.record import Record
from ctbench.sla.calibration import sla_file
from ctbench.units import parse_ratio
from sla import ROOT, results_root


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./run calibrate",
        description="Measure this machine several times and write variables/sla/NAME.yaml: floors a margin below the"
        " medians, with the spread as comments. Then ./run sla -v SLA:NAME notices when something gets slower.",
    )
    add = parser.add_argument
    add("name", nargs="?", default="here", help="of the SLA file to write (default: %(default)s)")
    add("--runs", type=int, default=3, help="how often to measure (default: %(default)s)")
    add("--margin", default="20%", help="how far below the median the floors are (default: %(default)s)")
    add("--testbed", default="local", help="name or path (default: %(default)s)")
    add("--campaign", default="quick", help="name or path (default: %(default)s)")
    add("--sla", default="local", help="floors to measure with: which tests there are (default: %(default)s)")
    add("--include", action="append", default=[], metavar="TAG", help="measure only these tests, as robot --include")
    add("--from", dest="folders", action="append", default=[], type=Path, metavar="DIR",
        help="do not measure: use the records of this run (may be repeated)")  # fmt: skip
    add("--force", action="store_true", help="replace a file that is there")
    return parser


def measure(options: argparse.Namespace, folder: Path) -> None:
    """One run of the suites. Missed floors do not matter here; only what broke does."""
    variables = [f"TESTBED:{options.testbed}", f"CAMPAIGN:{options.campaign}", f"SLA:{options.sla}"]
    argv = [sys.executable, str(ROOT / "tools" / "sla.py"), "--outputdir", str(folder)]
    argv += [part for variable in variables for part in ("-v", variable)]
    argv += [part for tag in options.include for part in ("--include", tag)]
    status = run_child(argv)
    if status not in (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED):
        raise SystemExit(status)


def records_of(folders: Sequence[Path]) -> list[Record]:
    """All records of the runs; `ConfigError` for a folder without any."""
    records: list[Record] = []
    for folder in folders:
        found, broken = store.read_all(folder)
        for file in broken:
            print(f"Not a record: {file.reason}", file=sys.stderr)
        if not found:
            raise ConfigError(f"{folder}: has no records. Expected the folder of a run, such as results/latest.")
        records += found
    return records


def run(options: argparse.Namespace) -> Path:
    """Measure and write; returns the file."""
    target = ROOT / "variables" / "sla" / f"{options.name}.yaml"
    if target.exists() and not options.force:
        raise ConfigError(f"{target.relative_to(ROOT)}: is there already. Choose another name, or add --force.")
    try:
        margin = parse_ratio(options.margin)
    except ValueError as error:
        raise ConfigError(f"--margin: {error}") from None
    folders = list(options.folders)
    begun = time.monotonic()
    for number in range(1, options.runs + 1 if not folders else 1):
        left = f", about {(time.monotonic() - begun) / (number - 1) * (options.runs - number + 1) / 60:.0f} min left"
        print(f"calibrate: run {number} of {options.runs}{left if number > 1 else ''}", flush=True)
        folder = results_root() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-calibrate-{number}"
        measure(options, folder)
        folders.append(folder)
    target.write_text(sla_file(options.name, records_of(folders), margin), encoding="utf-8")
    return target


def main() -> int:
    """The command line; returns the exit status."""
    options = arguments().parse_args()
    try:
        target = run(options)
    except CtbenchError as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    print(f"calibrate: {target.relative_to(ROOT)} written. Use it with: ./run sla -v SLA:{options.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
