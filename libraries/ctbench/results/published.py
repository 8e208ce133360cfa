"""Figures that others published, in the words of a record: topology, profile and what was measured, and nothing more.

A record holds trials, times and a verdict; a table in an article has none of them, so its figures are documents of
their own. Where both know something, the keys and units are the same.
"""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from ctbench.base.explain import narrow
from ctbench.base.regular_file import named_folder, read_regular
from ctbench.errors import ConfigError
from ctbench.results.record import Part
from ctbench.traffic.generator import LoadUnit
from ctbench.units import printable

#: The files that ship have less than 1 KiB.
_MOST_BYTES = 64 * 1024


class PublishedSource(Part):
    """Where a figure is from, and what is known of the machine and the procedure."""

    title: str
    #: Where in it: `2022, table 4`.
    place: str
    dut: str
    machine: str
    procedure: str


class PublishedTopology(Part):
    """How the DUT was set up, as far as the source says; None where it does not. Words as in a record."""

    datapath: str
    ruleset: str
    pmd_cpus: int | None
    rx_queues: int | None


class PublishedFigures(Part):
    """What was measured; None where the source does not say it. Rates are per second."""

    unit: LoadUnit
    rate: float
    pps: float | None = None
    #: Bits per second as the source counts them.
    bps: float | None = None
    active_connections: float | None = None


class Published(Part):
    """One published figure. It was measured on other hardware and promises nothing here."""

    schema_version: Literal[1] = 1
    kind: Literal["published"] = "published"
    #: Place in the source, by which figures are sorted: the number of the table, where there are tables.
    number: int = Field(ge=1)
    topology: PublishedTopology
    #: Name of the profile in variables/profiles/.
    profile: str
    measured: PublishedFigures
    #: Against the release before, in percent of connections, as the source has it.
    difference_pct: float | None = None
    source: PublishedSource

    @property
    def key(self) -> str:
        """Key of the SLA files, `ovs-dpdk/conntrack/1cpu-1rxq`; empty where the source does not say enough for one."""
        made = self.topology
        if made.pmd_cpus is None or made.rx_queues is None:
            return ""
        return f"{made.datapath}/{made.ruleset}/{made.pmd_cpus}cpu-{made.rx_queues}rxq"

    @property
    def label(self) -> str:
        """For example `Open vSwitch 3.0.0, 2022, table 4`."""
        return f"{self.source.dut}, {self.source.place}"


def is_published(folder: Path) -> bool:
    """Whether a folder holds published figures and not a run."""
    folder = named_folder(folder)
    return not (folder / "records").is_dir() and any(folder.glob("figure-*.json"))


def read_published(folder: Path) -> list[Published]:
    """All figures of a folder, in the order of their source. `ConfigError` names a file that is none."""
    found = []
    for path in sorted(folder.glob("figure-*.json")):
        shown = printable(str(path), 300)
        try:
            found.append(Published.model_validate(json.loads(read_regular(path, shown, _MOST_BYTES))))
        except ValidationError as errors:
            first = errors.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            what = narrow(f"{shown}: {where}: {first['msg']}.")
            raise ConfigError(f"{what}\n  Expected a published figure.") from None
        except (ValueError, RecursionError) as error:  # no JSON, a number without end, brackets without end
            what = printable(str(error), 200)
            raise ConfigError(f"{shown}: cannot be read ({what}).\n  Expected a published figure as JSON.") from None
    return sorted(found, key=lambda figure: figure.number)
