"""The command `./run calibrate`: measures this machine in as many runs as it takes, and writes an SLA file with its
floors."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.files import check_writable, write_whole
from ctbench.base.paths import INSTALLED, ROOT, VARIABLES, own_files, results_root
from ctbench.base.units import parse_ratio, parse_whole, plural, quoted
from ctbench.base.yaml_files import check_name, contents, load, shown_path
from ctbench.cli.child_runs import ChildRuns, keep
from ctbench.dut.registry import abilities
from ctbench.results import store
from ctbench.results.record import Record
from ctbench.run.settings import RunSettings
from ctbench.sla.calibration import (
    LEAST_RUNS,
    Stock,
    calibrate,
    ceilings,
    counts_file,
    enough,
    gather,
    only_counts,
    runs_of,
    sla_file,
)
from ctbench.sla.floors import Floors

MOST_RUNS = 40
#: In the folder of a calibration: what all of its runs are asked for.
ARGUMENTS = "arguments-of-all.txt"
#: What ./run sla may end with so that it is worth going on: missed floors do not matter here.
_GOES_ON = (ExitStatus.MET, ExitStatus.MISSED, ExitStatus.NOT_MEASURED)


def main(options: argparse.Namespace) -> int:
    return Calibration(options).run()


class Calibration:
    """A calibration: its options, checked before anything is measured, and its runs so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Check the options. Raise `ConfigError` for a mistake that would otherwise show only after the runs."""
        self.options = options
        self.target = _target(options.name, force=options.force)
        self.widest = _widest(options.widest)
        self.most = _most_runs(options.most_runs)
        floors = load("sla", options.sla, Floors)
        assert floors.path is not None, "it was read from a file"
        if floors.path.resolve() == self.target.resolve():
            raise ConfigError(
                f"--sla: {quoted(options.sla)} is the file to write.\n  Expected another one, such as local."
            )
        ships = floors.path.parent == VARIABLES / "sla"
        data = contents(floors.path, "sla", Floors, ROOT)
        self.stock = Stock(floors.name, data, "" if ships else str(floors.path))
        if options.folders and options.outputdir:
            raise ConfigError("--from and --outputdir: runs that are there, or runs to make.\n  Expected one of them.")
        self.only_emulated = False
        if not options.folders:
            settings = RunSettings.load(options.testbed, options.campaign, options.sla)
            if (campaign := settings.campaign).search == "gate":
                raise ConfigError(
                    f"{campaign.file}: search: {campaign.search} finds no rate to make a floor of.\n"
                    "  Expected a campaign that searches, such as quick."
                )
            self.only_emulated = all("instructions" in abilities(dut.type) for dut in settings.testbed.duts)
        try:
            check_writable(self.target.parent)  # permissions do not tell of a file system that is full
        except OSError as error:
            raise ConfigError(
                f"{shown_path(self.target.parent, ROOT)}: the SLA file cannot be written there ({error.strerror}).\n"
                "  Expected a clone of the project that you may write to: make one for yourself."
            ) from None
        self.folders: list[Path] = list({folder.resolve(): folder for folder in options.folders}.values())
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-calibrate-{os.getpid()}"
        self.output: Path = (options.outputdir or results_root() / name).absolute()

    def run(self) -> int:
        """Measure, unless runs are given, and write the file. Return the exit status."""
        try:
            stopped = 0 if self.folders else self._measure()
        except (KeyboardInterrupt, SystemExit):
            self._say_what_is_kept()
            raise
        if stopped:
            self._say_what_is_kept()
            return stopped
        records = records_of(self.folders)
        counts = only_counts(records)
        name, stock = self.options.name, self.stock
        text = counts_file(name, records, stock) if counts else sla_file(name, records, self.widest, stock)
        try:
            self._write(text)
        except ConfigError:
            self._say_what_is_kept()
            raise
        if counts:
            print(f"calibrate: {len(ceilings(records))} floors are of image {records[0].environment.dut.image}.")
        else:
            self._say_what_was_measured(records)
        named = self.target if INSTALLED else self.options.name
        print(f"calibrate: {shown_path(self.target, ROOT)} written. Use it with: ./run sla -v SLA:{named}")
        return ExitStatus.MET

    def _measure(self) -> int:
        """Run the suites until every floor is narrow enough, or `--most-runs` is reached. Return the exit status of a
        run that broke off the series, else 0."""
        made, most = ChildRuns(_GOES_ON), 1 if self.only_emulated else self.most
        options = self.options
        files = [f"TESTBED:{options.testbed}", f"CAMPAIGN:{options.campaign}", f"SLA:{options.sla}"]
        arguments = [part for each in files for part in ("-v", each)]
        arguments += [part for tag in options.include for part in ("--include", tag)]
        self.output.mkdir(parents=True, exist_ok=True)
        keep(self.output / ARGUMENTS, "".join(f"{each}\n" for each in arguments))
        for number in range(1, most + 1):
            folder, line = self.output / f"{number:02d}", f"calibrate: run {number}, at most {most}"
            if ended := made.make(folder, arguments, line, most - number + 1):
                print(f"calibrate: run {number} ended with status {ended}.", file=sys.stderr)
                return ended
            self.folders.append(folder)
            records = records_of(self.folders)
            if only_counts(records):
                break
            if enough(gather(records), number, self.widest):
                break
        return 0

    def _write(self, text: str) -> None:
        """Write the file in one step. Raise `ConfigError` where that is no longer possible."""
        try:
            # Another calibration may have written it in the meantime.
            _refuse_existing(self.target, force=self.options.force)
            write_whole(self.target, text)
        except OSError as error:
            raise ConfigError(f"{shown_path(self.target, ROOT)}: cannot be written ({error.strerror}).") from None

    def _say_what_is_kept(self) -> None:
        """Print how to continue with the complete runs, and how to make the file of them; nothing where none is
        complete."""
        useful = [folder for folder in self.folders if any((folder / "records").glob("*.json"))]
        if useful:
            given = ["--widest", self.options.widest, "--sla", self.options.sla, *["--force"] * self.options.force]
            sources = [part for folder in useful for part in ("--from", str(folder))]
            command = shlex.join(["./run", "calibrate", self.options.name, *given, *sources])
            print(f"calibrate: {len(useful)} runs are kept. To make the file of them:\n  {command}", file=sys.stderr)
            if not self.options.folders:
                print(f"To go on: the same command with --outputdir {shlex.quote(str(self.output))}", file=sys.stderr)

    def _say_what_was_measured(self, records: Sequence[Record]) -> None:
        """Print the number of floors of this machine, and of figures without one, whose reasons are in the file."""
        tests, runs = calibrate(records, self.widest), runs_of(records)
        widths = sorted(test.bound.width for test in tests if test.threshold and test.bound)
        wide = f", {widths[0]:.0%} to {widths[-1]:.0%} worse than their medians" if widths else ""
        print(f"calibrate: floors of this machine: {len(widths)}, of {plural(runs, 'run')}{wide}.")
        if without := len(tests) - len(widths):
            print(f"calibrate: {plural(without, 'figure')} without one: the file says why.")


def records_of(folders: Sequence[Path]) -> list[Record]:
    """Return all records of the runs. Raise `ConfigError` for a folder without any."""
    records: list[Record] = []
    for folder in folders:
        found, broken = store.read_stored(folder)
        for file in broken:
            print(f"Not a record: {file.reason}", file=sys.stderr)
        if not found:
            raise ConfigError(f"{folder}: has no records. Expected the folder of a run, such as results/latest.")
        records += [each.record for each in found]
    return records


def _target(name: str, *, force: bool) -> Path:
    """Return the file to write. Raise `ConfigError` for an invalid name, or a file that exists (without `force`)."""
    try:
        target = own_files("sla") / f"{check_name(name)}.yaml"
    except ValueError as error:
        raise ConfigError(str(error)) from None
    _refuse_existing(target, force=force)
    return target


def _refuse_existing(target: Path, *, force: bool) -> None:
    if target.is_dir():
        raise ConfigError(f"{shown_path(target, ROOT)}: is a folder.\n  Expected another name.")
    if os.path.lexists(target) and not force:
        raise ConfigError(f"{shown_path(target, ROOT)}: is there already. Choose another name, or add --force.")


def _most_runs(text: str) -> int:
    try:
        return parse_whole(text, LEAST_RUNS, MOST_RUNS)
    except ValueError as error:
        raise ConfigError(f"--most-runs: {error}") from None


def _widest(text: str) -> float:
    """Return the limit, a ratio below 1: every machine would meet floors of 0."""
    with suppress(ValueError):
        if 0 < (widest := parse_ratio(text)) < 1:
            return widest
    raise ConfigError(
        f"--widest: {quoted(text)} is not a limit.\n  Expected more than 0% and less than 100%, such as 25%."
    )
