"""What a run is compared with: figures published elsewhere, or another run. Labelled as other hardware unless it is
known to be the same machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctbench.dut import registry
from ctbench.dut.topology import Topology
from ctbench.report import figures, labels
from ctbench.report.method import dut
from ctbench.report.page import Cell, Column, Line, Part, Table
from ctbench.report.runs import href, read_runs
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.published import Published, is_published, read_published
from ctbench.results.record import Record
from ctbench.results.record_model import CPUS_NOT_GIVEN
from ctbench.results.store import Stored

#: The columns of the published tables, by metric.
_COLUMNS = {
    "cps": "Connection rate", "active_connections": "Active connections", "bps": "Bandwidth", "pps": "Packet rate",
}  # fmt: skip
_PUBLISHED = (Column("Version", right=False), *map(Column, _COLUMNS.values()), Column("Difference"))
NOTE = (
    "The published figures are from other hardware: they say what others saw, and promise nothing about this machine. "
    "Difference is that of connections per second against the line above it, as in the article; against this run, "
    "where the campaign substituted a profile with shorter connections, that of packets per second."
)


@dataclass(frozen=True)
class Elsewhere:
    """What was measured elsewhere of one topology with one profile."""

    #: For example `Open vSwitch 3.0.0, 2022, table 4`, or the folder of a run.
    label: str
    #: Name of the profile that was offered.
    profile: str
    #: By metric, in its unit; what is not known is missing.
    figures: Mapping[str, float]
    #: CPU of the machine; empty for published figures, which are other hardware in any case.
    machine: str = ""
    #: Whether it is known of how many CPUs they are.
    cpus_given: bool = True

    def other_hardware(self, record: Record) -> bool:
        """Whether it was measured on another machine than the record."""
        return not self.machine or self.machine != record.environment.dut_machine.cpu_model


@dataclass(frozen=True)
class Against:
    """A record next to what was measured elsewhere."""

    figure: Elsewhere
    #: Of both: that of the record, or packets where the profiles differ in length.
    metric: Metric
    theirs: float
    #: How much larger ours is.
    difference_pct: float
    other_hardware: bool


@dataclass(frozen=True)
class References:
    """What `--reference` names, in its order."""

    #: By the name it is shown under, for example `Open vSwitch 3.0.0`: by topology key and profile.
    series: dict[str, dict[tuple[str, str], Elsewhere]]
    #: The published ones among them, for their tables.
    published: tuple[Published, ...] = ()

    def find(self, record: Record) -> Elsewhere | None:
        """The first figure for the test of a record: of a reference that was asked for, else the one that its SLA
        file has next to the floor."""
        for found in self.series.values():
            for name in profiles(record):
                for key in keys(record.topology):
                    if figure := found.get((key, name)):
                        return figure
        own = record.floor.reference
        return Elsewhere(own.label, record.floor.profile, own.figures, cpus_given=own.cpus_given) if own else None


NONE = References({})


def read_references(folders: Sequence[Path]) -> References:
    """Read what `--reference` names. `ConfigError` where a folder holds neither published figures nor a run."""
    series: dict[str, dict[tuple[str, str], Elsewhere]] = {}
    published: list[Published] = []
    for folder in folders:
        if is_published(folder):
            figures_there = read_published(folder)
            published += figures_there
            for each in figures_there:
                elsewhere = Elsewhere(each.label, each.profile, each.figures)
                series.setdefault(each.source.dut, {})[each.key, each.profile] = elsewhere
        else:
            label = f"run {folder.resolve().name}"
            own = series.setdefault(label, {})
            for stored in read_runs([folder]).newest:
                record = stored.record
                profile, machine = record.profile.name, record.environment.dut_machine.cpu_model
                if record.result:
                    own[record.topology.key, profile] = Elsewhere(label, profile, record.values, machine)
    return References(series, tuple(published))


def against(record: Record, figure: Elsewhere | None) -> Against | None:
    """Compare a record with what was measured elsewhere, None where they have nothing in common: by the record's own
    metric where the profile is the same; where the campaign substituted a shorter one, by the rate of packets, which is
    the same whatever the length."""
    if figure is None:
        return None
    if figure.profile == record.profile.name:
        metric = figures.metric_of(record)
    elif figures.is_rate(record):
        metric = METRICS["pps"]
    else:
        return None
    ours, theirs = record.values.get(metric.name), figure.figures.get(metric.name)
    difference = None if ours is None or theirs is None else figures.difference_pct(ours, theirs)
    if ours is None or theirs is None or difference is None:
        return None
    return Against(figure, metric, theirs, difference, figure.other_hardware(record))


def keys(topology: Topology) -> tuple[str, str]:
    """Keys under which a figure may be found: the topology's, then that without its CPUs and queues."""
    return topology.key, topology.key.replace(f"/{topology.label}", "", 1)


def profiles(record: Record) -> tuple[str, ...]:
    """Names under which a figure may be found: the profile's, then that of the one that it substitutes."""
    derived = record.profile.derived_from if record.profile.kind == "connections" else ""
    return (record.profile.name, *([derived] if derived else []))


def published_parts(newest: Sequence[Stored], references: References, output: Path) -> list[Part]:
    """A table of the published figures of each topology and profile, in the order of their source, with a line of this
    run in each group, as the 2022 article compares two releases. A topology that this run did not measure says so."""
    tables: dict[tuple[str, str, int], list[Published]] = {}
    for figure in references.published:
        tables.setdefault((figure.key, figure.profile, figure.number), []).append(figure)
    groups = dict(_group(some, newest, output) for _, some in sorted(tables.items(), key=lambda item: item[0][2]))
    return [Part(table=Table(_PUBLISHED, groups, "published"))] if groups else []


def _group(some: Sequence[Published], newest: Sequence[Stored], output: Path) -> tuple[str, list[Line]]:
    one, ordered = some[0], sorted(some, key=lambda figure: figure.source.dut)
    cpus = CPUS_NOT_GIVEN
    if one.topology.cpus and one.topology.rx_queues:
        cpus = labels.cpus_and_queues(one.topology.cpus, one.topology.rx_queues)
    ruleset = registry.ruleset_title(one.topology.ruleset).lower()
    theirs = [_line(Cell(each.source.dut), each.figures, labels.margin(each.difference_pct)) for each in ordered]
    ours = [
        _own_line(each, ordered[-1], output)
        for each in newest
        if one.key in keys(each.record.topology) and one.profile in profiles(each.record) and each.record.figures
    ]
    ours = ours or [_line(Cell("this run: no figure"), {}, labels.DASH, "ours")]
    return f"{one.source.place}: {ruleset}, {cpus}, {one.profile}", [*theirs, *ours]


def _own_line(each: Stored, last: Published, output: Path) -> Line:
    record = each.record
    compared = against(record, Elsewhere(last.label, last.profile, last.figures))
    short = "" if record.profile.name == last.profile else f", {record.profile.name}"
    made = record.topology
    cpus = "" if last.cpus_given else f", {labels.cpus_and_queues(made.cpus, made.rx_queues)}"
    doubt = ", not measured" if record.verdict == "not measured" else ""
    by = f" ({compared.metric.title})" if compared and short else ""
    head = Cell(labels.name(f"this run: {dut(record)}{cpus}{short}{doubt}"), href(each.path, output))
    difference = f"{labels.margin(compared.difference_pct)}{by}" if compared else labels.DASH
    return _line(head, record.values, difference, "ours")


def _line(head: Cell, found: Mapping[str, float], difference: str, style: str = "") -> Line:
    """A line with the figures that the tables have; a dash for those that are not known."""
    texts = [METRICS[name].format(found[name]) if name in found else labels.DASH for name in _COLUMNS]
    return Line((head, *map(Cell, [*texts, difference])), style)
