"""What a run is compared with: figures published elsewhere, or another run. Labelled as other hardware unless it is
known to be the same machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctbench.report import figures
from ctbench.report.facts import dut_machine
from ctbench.report.runs import read_runs
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.published import Published, is_published, read_published
from ctbench.results.record import Record


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

    def other_hardware(self, record: Record) -> bool:
        """Whether it was measured on another machine than the record."""
        return not self.machine or self.machine != dut_machine(record).cpu_model


@dataclass(frozen=True)
class Against:
    """A record next to what was measured elsewhere."""

    figure: Elsewhere
    #: Of both: that of the record, or packets where the profiles differ in length.
    metric: Metric
    theirs: float
    ours: float
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
                if figure := found.get((record.topology.key, name)):
                    return figure
        own = record.floor.reference
        return Elsewhere(own.source, record.floor.profile, own.figures) if own else None


NONE = References({})


def read_references(folders: Sequence[Path]) -> References:
    """Read what `--reference` names. `ConfigError` where a folder holds neither published figures nor a run."""
    series: dict[str, dict[tuple[str, str], Elsewhere]] = {}
    published: list[Published] = []
    for folder in folders:
        if is_published(folder):
            found = read_published(folder)
            published += found
            for each in found:
                series.setdefault(each.source.dut, {})[each.key, each.profile] = of_published(each)
        else:
            own = series.setdefault(f"run {folder.resolve().name}", {})
            for stored in read_runs([folder]).newest:
                record = stored.record
                if record.result:
                    own[record.topology.key, record.profile.name] = _of_record(record, folder)
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
    ours, theirs = figures.value_of(record, metric.name), figure.figures.get(metric.name)
    difference = None if ours is None or theirs is None else figures.difference_pct(ours, theirs)
    if ours is None or theirs is None or difference is None:
        return None
    return Against(figure, metric, theirs, ours, difference, figure.other_hardware(record))


def profiles(record: Record) -> tuple[str, ...]:
    """Names under which a figure may be found: the profile's, then that of the one that it substitutes."""
    derived = record.profile.derived_from if record.profile.kind == "connections" else ""
    return (record.profile.name, *([derived] if derived else []))


def of_published(figure: Published) -> Elsewhere:
    """What was published, for comparison."""
    return Elsewhere(figure.label, figure.profile, figure.figures)


def _of_record(record: Record, folder: Path) -> Elsewhere:
    return Elsewhere(
        label=f"run {folder.resolve().name}",
        profile=record.profile.name,
        figures={name: figure.value for name, figure in record.figures.items()},
        machine=dut_machine(record).cpu_model,
    )
