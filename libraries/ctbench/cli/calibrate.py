"""`./run calibrate`: measures this machine a few times and writes an SLA file with floors that suit it."""

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.paths import PROGRAM, ROOT, VARIABLES
from ctbench.base.statuses import ExitStatus
from ctbench.base.units import parse_ratio, quoted
from ctbench.base.yaml_files import Name, load
from ctbench.cli.parser.tree import parse
from ctbench.cli.results_folder import results_root
from ctbench.hosts.child import run_child
from ctbench.results import store
from ctbench.results.record import Record
from ctbench.run.settings import RunSettings
from ctbench.sla.calibration import Stock, kept_floors, sla_file
from ctbench.sla.calibration_figures import gather, runs_of
from ctbench.sla.floors import Floors

MOST_RUNS, LONGEST_NAME = 99, 64
#: What ./run sla may end with so that it is worth going on: missed floors do not matter here.
_GOES_ON = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED)


def main() -> int:
    """The command line; returns the exit status."""
    options = parse("calibrate")
    try:
        return Calibration(options).run()
    except CtbenchError as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED


class Calibration:
    """One calibration: what was asked for, checked before anything is measured, and the runs made so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Raises `ConfigError` for whatever would be a pity to learn after three runs."""
        self.options = options
        self.target = _target(options.name, force=options.force)
        self.runs, self.margin = _runs(options.runs), _margin(options.margin)
        floors = load("sla", options.sla, Floors)
        assert floors.path is not None, "it was read from a file"
        self.stock = Stock.read(floors.name, floors.path.read_text(encoding="utf-8"))
        if not options.folders:
            RunSettings.load(options.testbed, options.campaign, options.sla)
        _check_writable(self.target)
        self.folders: list[Path] = list({folder.resolve(): folder for folder in options.folders}.values())

    def run(self) -> int:
        """Measure unless there are runs already, and write the file. Returns the exit status."""
        try:
            stopped = 0 if self.folders else self._measure()
        except (KeyboardInterrupt, SystemExit):
            self._say_what_is_kept()
            raise
        if stopped:
            self._say_what_is_kept()
            return stopped
        records = records_of(self.folders)
        text = sla_file(self.options.name, records, self.margin, self.stock)
        try:
            self._write(text)
        except CtbenchError:
            self._say_what_is_kept()
            raise
        self._say_what_was_measured(records)
        print(f"calibrate: {_shown(self.target)} written. Use it with: ./run sla -v SLA:{self.options.name}")
        return ExitStatus.MET

    def _measure(self) -> int:
        """Run the suites several times. Returns why that stopped early, or 0."""
        begun = time.monotonic()
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-calibrate-{os.getpid()}"
        for number in range(1, self.runs + 1):
            made = number - 1
            left = (time.monotonic() - begun) / made * (self.runs - made) if made else None
            told = "the time left is known after the first" if left is None else f"about {_duration(left)} left"
            print(f"calibrate: run {number} of {self.runs}, {told}", flush=True)
            folder = results_root() / f"{stamp}-{number}"
            self.folders.append(folder)
            ended = run_child(_command(self.options, folder))
            if ended not in _GOES_ON:
                print(f"calibrate: run {number} of {self.runs} ended with status {ended}.", file=sys.stderr)
                return ended
        return 0

    def _write(self, text: str) -> None:
        """Write the file in one step; `ConfigError` where that is not possible any more."""
        part = self.target.with_name(f".{self.target.name}-{os.getpid()}")
        try:
            # Another calibration may have written it in the meantime.
            _refuse_existing(self.target, force=self.options.force)
            part.write_text(text, encoding="utf-8")
            part.replace(self.target)
        except OSError as error:
            raise ConfigError(f"{_shown(self.target)}: cannot be written ({error.strerror}).") from None
        finally:
            part.unlink(missing_ok=True)

    def _say_what_is_kept(self) -> None:
        """How to go on with the runs that left records; nothing where none did."""
        useful = [folder for folder in self.folders if any((folder / "records").glob("*.json"))]
        if not useful:
            return
        given = ["--margin", self.options.margin, "--sla", self.options.sla] + ["--force"] * self.options.force
        sources = [part for folder in useful for part in ("--from", str(folder))]
        command = shlex.join(["./run", "calibrate", self.options.name, *given, *sources])
        print(f"calibrate: what was measured is kept. To make the file of it:\n  {command}", file=sys.stderr)

    def _say_what_was_measured(self, records: Sequence[Record]) -> None:
        """How many floors are this machine's, and which are not, or of fewer runs than the others."""
        runs, figures = runs_of(records), gather(records)
        measured = [found for found in figures if found.results]
        worse = f"{self.options.margin} worse than the median of {runs} run{'s' * (runs > 1)}"
        print(f"calibrate: {len(measured)} floors are {worse}.")
        for found in figures:
            if len(found.results) < runs:
                print(f"  {found.key} {found.profile}: measured in {len(found.results)} of {runs} runs only")
        if kept := sum(len(profiles) for profiles in kept_floors(figures, self.stock).values()):
            print(
                f"calibrate: {kept} floors are those of SLA {self.stock.name}, because their tests were skipped, not "
                "measured or not chosen; the reports of the runs say which."
            )


def _command(options: argparse.Namespace, folder: Path) -> list[str]:
    """One run of the suites."""
    variables = [f"TESTBED:{options.testbed}", f"CAMPAIGN:{options.campaign}", f"SLA:{options.sla}"]
    argv = [*PROGRAM, "sla", "--outputdir", str(folder)]
    argv += [part for variable in variables for part in ("-v", variable)]
    return argv + [part for tag in options.include for part in ("--include", tag)]


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


def _target(name: str, *, force: bool) -> Path:
    """The file to write; `ConfigError` for an invalid name, or one that is taken."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        fault = "is not a name.\n  Expected small letters, digits and dashes, such as mine or release-3."
        raise ConfigError(f"{quoted(name)} {fault}") from None
    if len(name) > LONGEST_NAME:
        raise ConfigError(f"{quoted(name)} is too long for a name.\n  Expected at most {LONGEST_NAME} characters.")
    target = VARIABLES / "sla" / f"{name}.yaml"
    _refuse_existing(target, force=force)
    return target


def _refuse_existing(target: Path, *, force: bool) -> None:
    if target.is_dir():
        raise ConfigError(f"{_shown(target)}: is a folder.\n  Expected another name.")
    if os.path.lexists(target) and not force:
        raise ConfigError(f"{_shown(target)}: is there already. Choose another name, or add --force.")


def _check_writable(target: Path) -> None:
    """Try it: permissions do not tell of a file system that is read-only, nor of one that is full."""
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-"):
            pass
    except OSError as error:
        raise ConfigError(
            f"{_shown(target.parent)}: the SLA file cannot be written there ({error.strerror}).\n"
            "  Expected a clone of the project that you may write to: make one for yourself."
        ) from None


def _runs(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MOST_RUNS:
        return int(text)
    raise ConfigError(f"--runs: {quoted(text)} is no number of runs.\n  Expected a whole number from 1 to {MOST_RUNS}.")


def _margin(text: str) -> float:
    """A ratio below 1: floors of nothing would be met by every machine."""
    with suppress(ValueError):
        if (margin := parse_ratio(text)) < 1:
            return margin
    raise ConfigError(f"--margin: {quoted(text)} is no margin.\n  Expected from 0% to less than 100%, for example 20%.")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
