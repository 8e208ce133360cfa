"""Figures that others published, in the words of a record: topology, profile and what was measured, and nothing more.

A record holds trials, times and a verdict; a table in an article has none of them, so its figures are documents of
their own. Where both know something, the keys and units are the same.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ctbench.base.errors import ConfigError
from ctbench.base.files import UnreadableFile, read_regular
from ctbench.base.quantities import MOST_RECORD_BYTES, Amount, Real
from ctbench.base.text import printable
from ctbench.results.record_model import CPUS_NOT_GIVEN, MetricName, RecordModel, first_mistake


class PublishedSource(RecordModel):
    """Where a figure is from, and what is known of the machine and the procedure."""

    title: str
    #: Where in it: `2022, table 4`.
    place: str
    dut: str
    machine: str
    procedure: str


class PublishedTopology(RecordModel):
    """The set-up of this suite that a figure is shown next to, in the words of a record. A source that gives no number
    of CPUs has None there, and its figure is shown next to any number of them."""

    datapath: str
    ruleset: str
    cpus: Annotated[int, Field(ge=1, le=64)] | None
    rx_queues: Annotated[int, Field(ge=1, le=64)] | None


class Published(RecordModel):
    """One published figure. It was measured on other hardware and promises nothing here."""

    schema_version: Literal[2] = 2
    kind: Literal["published"] = "published"
    #: Place in the source, by which figures are sorted: the number of the table, where there are tables.
    number: int = Field(ge=1, le=10**9)
    topology: PublishedTopology
    #: Name of the profile in variables/profiles/.
    profile: str
    #: By metric, in its unit; a metric of which the source says nothing is missing.
    figures: Annotated[dict[MetricName, Amount], Field(min_length=1)]
    #: At the highest load, the share of the samples of a thread that forwards in its first functions (perf).
    functions: dict[str, Amount] = Field(default_factory=dict)
    #: Against the release before, in percent of connections, as the source has it.
    difference_pct: Real | None = None
    source: PublishedSource

    @property
    def key(self) -> str:
        """Key of the SLA files, `ovs-dpdk/conntrack/1cpu-1rxq`; `ovs-dpdk/conntrack` where the source does not say of
        how many CPUs its figure is."""
        made = self.topology
        return f"{made.datapath}/{made.ruleset}{f'/{made.cpus}cpu-{made.rx_queues}rxq' if self.cpus_given else ''}"

    @property
    def cpus_given(self) -> bool:
        """Whether the source says of how many CPUs and queues its figure is."""
        return self.topology.cpus is not None and self.topology.rx_queues is not None

    @property
    def label(self) -> str:
        """For example `Open vSwitch 3.0.0, 2022, table 4`."""
        return f"{self.source.dut}, {self.source.place}{'' if self.cpus_given else f', {CPUS_NOT_GIVEN}'}"


def read_published(folder: Path) -> list[Published]:
    """All figures of a folder, in the order of their source. `ConfigError` names a file that is none."""
    found = []
    for path in sorted(folder.glob("figure-*.json")):
        try:
            found.append(Published.model_validate_json(read_regular(path, MOST_RECORD_BYTES)))
        except (ValidationError, OSError, UnreadableFile) as error:
            why = first_mistake(error) if isinstance(error, ValidationError) else str(error)
            raise ConfigError(printable(f"{path}: {why}.\n  Expected a published figure as JSON.")) from None
    return sorted(found, key=lambda figure: figure.number)
