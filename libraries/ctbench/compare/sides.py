"""The two sides of a comparison: the runs that each is made of, and what was counted of each test in them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ctbench.dut.topology import Topology
from ctbench.report.labels import once
from ctbench.results.comparison import ComparedSide
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.store import Broken, Stored

Role = Literal["base", "candidate"]
ROLES: tuple[Role, Role] = ("base", "candidate")

#: A test is the same on either side when these are: the topology, the name of the profile that was offered, and the
#: metric that is compared.
TestKey = tuple[Topology, str, str]


@dataclass(frozen=True)
class Runs:
    """The records of one side."""

    #: As the user named it.
    name: str
    folders: Sequence[Path]
    stored: Sequence[Stored]
    broken: Sequence[Broken]

    @property
    def records(self) -> list[Record]:
        """All records."""
        return [each.record for each in self.stored]

    def as_side(self) -> ComparedSide:
        """What a comparison says of this side."""
        environments = [record.environment for record in self.records]
        return ComparedSide(
            name=self.name,
            folders=[str(folder) for folder in self.folders],
            records=len(self.stored),
            versions=once(environment.dut.product_details for environment in environments),
            testbeds=once(environment.testbed.name for environment in environments),
            machines=once(environment.machine.cpu_model for environment in environments),
            kernels=once(environment.machine.kernel for environment in environments),
            campaigns=once(record.campaign.name for record in self.records),
            broken=[each.reason for each in self.broken],
        )


def by_test(stored: Sequence[Stored]) -> dict[TestKey, list[Stored]]:
    """The records of each test, in their order."""
    found: dict[TestKey, list[Stored]] = defaultdict(list)
    for each in stored:
        record = each.record
        found[record.topology, record.profile.name, record.metric].append(each)
    return found


def without(stored: Sequence[Stored]) -> str:
    """Why a test has no samples: what its last record says, in a sentence without its full stop."""
    if not stored:
        return "there is no record of it"
    last = stored[-1].record
    if last.verdict == "not measured":
        return f"not measured: {last.verdict_reason.rstrip('.')}"
    return f"its record has no figure of {METRICS[last.metric].title}"


def names_of(record: Record) -> dict[str, str]:
    """What a comparison calls a test."""
    metric = METRICS[record.metric]
    return {
        "suite": record.suite,
        "test": record.test,
        "topology": record.topology.key,
        "profile": record.profile.name,
        "metric": metric.name,
        "unit": metric.unit.name,
    }
