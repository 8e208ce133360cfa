"""Open vSwitch from release to release: what each answers, and what each is worth (docs/releases.md).

Run by hand, with builds below prefixes of their own:
.venv/bin/python -m tools.benchmarks.releases answers 3.1=distribution main=/opt/ovs-main
writes to tests/data/ovs/NAME what a build answers to each command that is read, after a trial of known counts;
.venv/bin/python -m tools.benchmarks.releases measure 3.1=PREFIX 3.3=PREFIX...
measures the builds: the first is what all are compared with, and each also with the one before it. What
docs/evidence/releases.csv has already is not made again, so that it can be stopped and continued;
.venv/bin/python -m tools.benchmarks.releases table
writes the table of docs/releases.md from that file."""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from real_duts import on_shared_cpus
from wire import join

from ctbench.base.paths import ROOT
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.answers import Command
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.results.record import Record
from ctbench.results.store import read_stored
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile
from ctgen import Generator

SAMPLES = ROOT / "tests" / "data" / "ovs"
#: Two receive queues, which is one PMD thread's and the other threads' transmit queues: every DPDK survives that.
TOPOLOGY = Topology(rx_queues=2)
PROFILE, LOAD, SECONDS = ConnectionProfile(name="answers", udp_percent=10, client_ips=10, server_ips=2), 100, 1.0
#: Lines that are kept of a long answer.
MOST_LINES = 8


def record_answers(prefix: str, folder: Path) -> None:
    """Write what a build answers."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def keep(name: str, text: str) -> None:
        lines = text.splitlines(keepends=True)
        (folder / f"{name}.txt").write_text("".join(lines[:MOST_LINES] if name == "entries" else lines))

    def ask(name: str, command: Command[object], *more: str) -> None:
        run = {"ovs-appctl": control.appctl, "ovs-ofctl": control.ofctl, "ovs-vsctl": control.vsctl}[command.tool]
        keep(name, run(*command.words, *more))

    with Sandbox() as sandbox:
        dut = on_shared_cpus(OvsDpdkDut, sandbox, installation=OvsInstallation.at(prefix), memory_mb=512)
        generator, control = Generator((0,)), dut.control
        try:
            join(generator, dut.apply(TOPOLOGY))
            dut.flush_state()
            dut.begin_trial()
            trial = generator.run_trial(PROFILE, Rate(LOAD), SECONDS)
            assert trial.completed == trial.attempted > 0, trial
            for name, command in NAMED.items():
                if control.offers(command) if command.tool == "ovs-appctl" else True:
                    ask(name, command, *MORE.get(name, ()))
            keep("pmd-stats", control.appctl("dpif-netdev/pmd-stats-show"))
            keep("status", json.dumps(control.column("Interface", "port0", "status"), indent=1) + "\n")
            keep("threads", sandbox.run(["sh", "-c", "cat /proc/$1/task/*/comm", "sh", str(dut._running().pid)]).stdout)
            keep("version", sandbox.run([control.installation.vswitchd_path, "--version"]).stdout)
            counted = {"tx_packets": trial.total_tx_packets, "rx_packets": trial.total_rx_packets}
            keep("trial", json.dumps(counted, indent=1) + "\n")
            generator.close()
            generator = Generator((0,))
            join(generator, dut.apply(Topology(ruleset="normal", ports="bond")))
            ask("bond", answers.BOND, "bond0")
        finally:
            generator.close()
            dut.restore()


#: The commands by the names of the files.
NAMED: dict[str, Command[object]] = {
    "pmds": answers.PMDS,
    "queues": answers.QUEUES,
    "devices": answers.DEVICES,
    "revalidation": answers.REVALIDATION,
    "connections": answers.CONNECTIONS,
    "table-limit": answers.TABLE_LIMIT,
    "sweep": answers.SWEEP,
    "table-full": answers.TABLE_FULL,
    "entries": answers.ENTRIES,
    "ports": answers.PORTS,
    "zone-policies": answers.ZONE_POLICIES,
    "commands": answers.COMMANDS,
}
MORE = {"ports": ("br0",), "zone-policies": ("netdev",)}


@dataclass(frozen=True)
class Cell:
    """A figure of a release: rates as shares of another one's."""

    release: str
    #: Which run it is of, and what it says.
    run: str
    what: str
    value: str
    low: str = ""
    high: str = ""
    verdict: str = ""
    date: str = ""


CELLS, PAGE = ROOT / "docs" / "evidence" / "releases.csv", ROOT / "docs" / "releases.md"
#: Rows of a gate.
GATED = {"conntrack": "1 CPU, 1 Queue, Short-Lived Connections", "SNAT": "SNAT, 1 CPU, 1 Queue, Short-Lived"}
#: Other rows by what their figure is called here, and the figures.
FIGURES = {
    "sustained rate": ("Sustained Rate, Conntrack, Open vSwitch", "sustained_cps"),
    "drain": ("Drain, Open vSwitch", "drain_time"),
    "memory of an entry": ("Memory, Open vSwitch", "memory_per_connection"),
    "print 100 000 entries": ("Dump Of 100 000, Open vSwitch", "dump_time"),
    "instructions a packet": ("OVS in Userspace, Conntrack", "instructions_per_packet"),
}
#: Those about the connection table, which a run of all rows has too.
OF_THE_TABLE = ("sustained rate", "drain", "memory of an entry")
FIRST_POLICY = "Timeout Policy, First Of A Zone"


def cells_of_figures(records: Sequence[Record]) -> Iterator[tuple[str, str, str, str, str]]:
    by_name = {record.test: record for record in records}
    for what, (test, metric) in FIGURES.items():
        if record := by_name.get(test):
            figure = record.figures.get(metric)
            yield what, *ends(figure), record.verdict
    if record := by_name.get(FIRST_POLICY):
        yield "first policy", "", "", "", record.verdict


def cells_of_stock(records: Sequence[Record]) -> Iterator[tuple[str, str, str, str, str]]:
    yield from cells_of_figures(records)
    for word in ("met", "missed", "not measured"):
        found = [record for record in records if record.verdict == word]
        named = [f"{each.test} ({each.verdict_code})" if word == "not measured" else each.test for each in found]
        yield word, str(len(named)), "", "", "" if word == "met" else "; ".join(named)


def cells_of_gate(records: Sequence[Record]) -> Iterator[tuple[str, str, str, str, str]]:
    by_name = {record.test: record for record in records}
    for what, test in GATED.items():
        record = by_name.get(test)
        found = next((pair.result for pair in record.evidence.pairs if pair.starts), None) if record else None
        yield what, *ends(found), record.verdict if record else "not measured"


def ends(figure: object) -> tuple[str, str, str]:
    """Value, low and high of a figure or of a pair; empty where there is none."""
    value, low, high = (getattr(figure, name, None) for name in ("value", "low", "high"))
    return _text(value), _text(low), _text(high)


def _text(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


Cells = Callable[[Sequence[Record]], Iterator[tuple[str, str, str, str, str]]]
#: Runs of a release alone, by name: arguments, and what becomes of the records.
ALONE: dict[str, tuple[list[str], Cells]] = {
    "dump": (["--include", "long", "--test", FIGURES["print 100 000 entries"][0]], cells_of_figures),
    "count": (
        ["--include", "emulated", "--include", "extended", "--test", FIGURES["instructions a packet"][0]],
        cells_of_figures,
    ),
    "table": (
        [part for test in (*(FIGURES[each][0] for each in OF_THE_TABLE), FIRST_POLICY) for part in ("--test", test)],
        cells_of_figures,
    ),
    "stock": (["--include", "ovs-dpdk"], cells_of_stock),
}


def measure(builds: dict[str, str], runs: Sequence[str]) -> None:
    """Each of the runs of every build that the file does not have: `first` and `before` are gates against the first of
    the builds, and against the one before it; the others are those of `ALONE`."""
    (first, base), *others = builds.items()
    for run in runs:
        if run in ALONE:
            for name, prefix in builds.items():
                measure_alone(name, prefix, run)
        else:
            bases = [(first, base)] * len(others) if run == "first" else [*builds.items()]
            for (name, prefix), (against, its) in zip(others, bases, strict=False):
                named = [part for test in GATED.values() for part in ("--test", test)]
                arguments = ["--candidate", prefix, "--base", its, "-v", "CAMPAIGN:gate", *named]
                keep(name, f"against {against}", arguments, cells_of_gate)


def measure_alone(name: str, prefix: str, run: str) -> None:
    arguments, cells = ALONE[run]
    with tempfile.TemporaryDirectory() as folder:
        testbed, sla = Path(folder) / "release.yaml", Path(folder) / "alone.yaml"
        text = (ROOT / "variables" / "testbeds" / "local.yaml").read_text()
        testbed.write_text(re.sub(r"prefix: distribution\b", f"prefix: {prefix}", text))
        # Without a comparison with the package: each release is compared with others by gates.
        text = (ROOT / "variables" / "sla" / "local.yaml").read_text()
        sla.write_text(re.sub(r"(?m)^of_build:.*$", "others: skipped", text))
        keep(name, run, ["-v", f"TESTBED:{testbed}", "-v", f"SLA:{sla}", *arguments], cells)


def keep(name: str, run: str, arguments: list[str], cells: Cells) -> None:
    """Make a run of a release and add its cells, unless they are there."""
    if any((cell.release, cell.run) == (name, run) for cell in read_cells()):
        return
    with tempfile.TemporaryDirectory() as folder:
        command = ["./run", "sla", "--outputdir", folder, *arguments]
        done = subprocess.run(
            command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        records = [each.record for each in read_stored(Path(folder))[0]]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    found = [Cell(name, run, *cell, today) for cell in cells(records)]
    if not records:
        raise SystemExit(f"{name}, {run}: nothing was measured\n{done.stdout}")
    fresh = not CELLS.exists()
    with CELLS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow([each.name for each in fields(Cell)])
        writer.writerows(map(astuple, found))
    said = [f"{cell.what} {cell.value} {cell.verdict}" for cell in found]
    print(name, run, f"status {done.returncode}", *said, sep="; ", flush=True)


#: Columns of the page's two tables: their heads, what is shown, of which run, and how.
SHARES = (
    ("conntrack", "conntrack", "against 3.1", "share"),
    ("SNAT", "SNAT", "against 3.1", "share"),
    ("conntrack, of the release before", "conntrack", "against {before}", "share"),
    ("SNAT, of the release before", "SNAT", "against {before}", "share"),
)
FIGURES_ALONE = (
    ("sustained rate", "sustained rate", "table", "at least {:,.0f}/s"),
    ("instructions a packet", "instructions a packet", "count", "{:,.0f}"),
    ("memory of an entry", "memory of an entry", "table", "{:,.0f} B"),
    ("print 100 000 entries", "print 100 000 entries", "dump", "{:.2f} s"),
    ("drain", "drain", "table", "{:.1f} s"),
    ("first policy", "first policy", "table", "verdict"),
)
NOT_MEASURED = "not measured"
BEGIN, END = "<!-- measured -->", "<!-- /measured -->"


def write_table() -> None:
    """Write the two tables between their marks on the page, in the order of the releases."""
    cells = {(cell.release, cell.run, cell.what): cell for cell in read_cells()}
    releases = sorted({release for release, _, _ in cells}, key=by_age)

    def of_run(release: str, run: str, what: str) -> Cell | None:
        cell = cells.get((release, run, what))
        return cells.get((release, "stock", what), cell) if run == "table" and not (cell and cell.verdict) else cell

    lines = []
    for columns in (SHARES, FIGURES_ALONE):
        lines += ["", f"| release | {' | '.join(head for head, *_ in columns)} |", "|---" * (len(columns) + 1) + "|"]
        for before, release in zip([None, *releases], releases, strict=False):
            found = (of_run(release, run.format(before=before), what) for _, what, run, _ in columns)
            shown = [show(cell, how) for cell, (*_, how) in zip(found, columns, strict=True)]
            if columns is not SHARES or any(each != NOT_MEASURED for each in shown):
                lines.append(f"| {release} | {' | '.join(shown)} |")
    before_it, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before_it}{BEGIN}{chr(10).join(lines)}\n{END}{rest.partition(END)[2]}")


def by_age(release: str) -> tuple[int, ...]:
    """The place of a release in the order of time; what has no number, such as main, is the newest."""
    return tuple(map(int, release.split("."))) if release[0].isdigit() else (sys.maxsize,)


def show(cell: Cell | None, how: str) -> str:
    if cell is None or (how != "verdict" and not cell.value):
        return NOT_MEASURED
    if how == "verdict":
        return cell.verdict
    if how != "share":
        return how.format(float(cell.value))
    half = (float(cell.high) - float(cell.low)) / 2
    return f"{100 * float(cell.value):.1f} % ± {100 * half:.1f}"


def read_cells() -> list[Cell]:
    if not CELLS.exists():
        return []
    with CELLS.open(newline="") as file:
        return [Cell(**row) for row in csv.DictReader(file)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(required=True, dest="what")
    recorded = what.add_parser("answers", help="record what builds answer")
    measured = what.add_parser("measure", help="measure builds that are not in the table")
    measured.add_argument("--runs", nargs="+", default=["first", "before", *ALONE], choices=["first", "before", *ALONE])
    for each in (recorded, measured):
        each.add_argument("builds", nargs="+", metavar="NAME=PREFIX")
    what.add_parser("table", help="write the table from what was measured")
    options = parser.parse_args()
    if options.what == "table":
        write_table()
        return
    builds = dict(build.split("=", 1) for build in options.builds)
    if options.what == "measure":
        measure(builds, options.runs)
        return
    for name, prefix in builds.items():
        record_answers(prefix, SAMPLES / name)
        print(f"{name}: {SAMPLES / name}")


if __name__ == "__main__":
    main()
