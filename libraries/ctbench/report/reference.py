"""What a run is set beside: figures published elsewhere, or another run. Labelled as other hardware unless it is known
to be the same machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctbench.report.runs import read_runs
from ctbench.results.published import Published, is_published, read_published
from ctbench.results.record import Record


@dataclass(frozen=True)
class Figure:
    """One figure to compare with; rates per second, None where it is not known."""

    #: For example `Open vSwitch 3.0.0, 2022, table 4`, or the folder of a run.
    label: str
    #: Name of the profile that was offered.
    profile: str
    cps: float | None
    pps: float | None
    bps: float | None = None
    active_connections: float | None = None
    #: CPU of the machine; empty for published figures, which are other hardware in any case.
    machine: str = ""

    def other_hardware(self, record: Record) -> bool:
        """Whether it was measured on another machine than the record."""
        return not self.machine or self.machine != machine_of(record)


@dataclass(frozen=True)
class Against:
    """A record beside a figure."""

    figure: Figure
    #: What both did, in the words of the record: `connections`, or `packets` where the profiles differ in length.
    unit: str
    theirs: float
    ours: float
    difference_pct: float
    other_hardware: bool


@dataclass(frozen=True)
class References:
    """What `--reference` names, in its order."""

    #: By the name it is shown under, for example `Open vSwitch 3.0.0`: by topology key and profile.
    series: dict[str, dict[tuple[str, str], Figure]]
    #: The published ones among them, for their tables.
    published: tuple[Published, ...] = ()

    def find(self, record: Record) -> Figure | None:
        """The first figure for the test of a record: of a reference that was asked for, else the one that its SLA
        file has beside the floor."""
        names = _profiles(record)
        for figures in self.series.values():
            for name in names:
                if figure := figures.get((record.topology.key, name)):
                    return figure
        own = record.floors.reference
        return Figure(own.source, record.floors.profile, own.cps, own.pps) if own else None


NONE = References({})


def read_references(folders: Sequence[Path]) -> References:
    """Read what `--reference` names. `ConfigError` where a folder holds neither published figures nor a run."""
    series: dict[str, dict[tuple[str, str], Figure]] = {}
    published: list[Published] = []
    for folder in folders:
        if is_published(folder):
            figures = read_published(folder)
            published += figures
            for each in figures:
                series.setdefault(each.source.dut, {})[each.key, each.profile] = _of_published(each)
        else:
            own = series.setdefault(f"run {folder.resolve().name}", {})
            for stored in read_runs([folder]).newest:
                record = stored.record
                if record.measured:
                    own[record.topology.key, record.profile.name] = _of_record(record, folder)
    return References(series, tuple(published))


def against(record: Record, figure: Figure | None) -> Against | None:
    """Hold a record against a figure, None where they have nothing in common. Connections are compared only with the
    same profile; where the campaign shortened it, packets are, whose rate is the same whatever the length."""
    if figure is None or record.measured is None:
        return None
    same = record.profile.kind == "connections" and figure.profile == record.profile.name
    unit, theirs = ("connections", figure.cps) if same else ("packets", figure.pps)
    ours = record.measured.rate if same or record.profile.kind == "packets" else record.measured.pps
    if not theirs:
        return None
    return Against(figure, unit, theirs, ours, (ours / theirs - 1) * 100, figure.other_hardware(record))


def machine_of(record: Record) -> str:
    """The CPU that the DUT ran on, as the record has it; empty where it does not say."""
    for facts in (record.environment.dut.get("machine"), record.environment.machine):
        if isinstance(facts, dict) and facts.get("cpu_model"):
            return str(facts["cpu_model"])
    return ""


def _profiles(record: Record) -> tuple[str, ...]:
    """Names under which a figure may be found: the profile's, then that of the one it stands in for."""
    return (record.profile.name, *([_stands_in(record)] if _stands_in(record) else []))


def _stands_in(record: Record) -> str:
    """The profile that this one was derived from; empty when it is none."""
    return record.profile.derived_from if record.profile.kind == "connections" else ""


def _of_published(figure: Published) -> Figure:
    found = figure.measured
    cps = found.rate if found.unit == "connections" else None
    return Figure(figure.label, figure.profile, cps, found.pps, found.bps, found.active_connections)


def _of_record(record: Record, folder: Path) -> Figure:
    found = record.measured
    assert found is not None
    return Figure(
        label=f"run {folder.resolve().name}",
        profile=record.profile.name,
        cps=found.rate if found.unit == "connections" else None,
        pps=found.pps,
        bps=found.bps,
        active_connections=found.active_connections,
        machine=machine_of(record),
    )
