"""The reference run: what an earlier release measured on this testbed, of which a floor may promise a share."""

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from ctbench.base.errors import ConfigError
from ctbench.base.regular_file import named_folder
from ctbench.base.units import format_rate, format_share, quoted, write_number
from ctbench.dut.topology import Topology
from ctbench.results import store
from ctbench.sla.floor import Floor
from ctbench.sla.threshold import Threshold, parse
from ctbench.traffic.profiles import Profile

#: Facts of a machine that have to be the same for rates to be compared.
_SAME = ("cpu_model", "usable_cpus", "kernel")


@dataclass(frozen=True)
class ReferenceRun:
    """The capacities of an earlier run."""

    #: The folder, as the user named it.
    name: str
    #: Of each topology with each profile, in the profile's unit per second.
    rates: dict[tuple[Topology, str], float]
    #: The testbed's name, and the facts of its machine.
    testbed: str
    machine: dict[str, Any]

    def check(self, testbed: str, machine: dict[str, Any]) -> None:
        """Refuse another testbed: `ConfigError` names what differs."""
        here = {"testbed": testbed} | {key: machine.get(key) for key in _SAME}
        there = {"testbed": self.testbed} | {key: self.machine.get(key) for key in _SAME}
        for key, value in here.items():
            if _plain(value) != _plain(there[key]):
                raise ConfigError(
                    f"REFERENCE: {key} of {self.name} is {_plain(there[key])}, and here {_plain(value)}.\n"
                    "  Expected a run of this testbed: rates of two testbeds are not to be compared."
                )

    def applied_to(self, floor: Floor, topology: Topology, profile: Profile, share: Threshold) -> Floor:
        """The floor, raised to a share of what the reference run measured where that is more. Without such a
        measurement it stays as it is."""
        rate = self.rates.get((topology, profile.name), 0.0)
        if share.limit * rate <= floor.rate.limit:
            return floor
        promised = parse(f">= {write_number(float(f'{share.limit * rate:.6g}'))}", "rate")
        words = f"the reference run {self.name}: {format_share(share.limit)} of {format_rate(rate)}"
        raised = replace(floor, cps=promised) if floor.cps else replace(floor, pps=promised)
        return replace(raised, derivation=words)


def read_reference(folder: str) -> ReferenceRun:
    """Read the records of a run; `ConfigError` where it has no capacity of anything."""
    records, _ = store.read_all(named_folder(folder))
    found: dict[tuple[Topology, str], list[float]] = defaultdict(list)
    for record in records:
        if record.verdict != "not measured" and record.limited_by in ("dut", "range"):
            found[record.topology, record.profile.name] += record.capacities
    rates = {key: statistics.median(capacities) for key, capacities in found.items() if capacities}
    if not rates:
        raise ConfigError(
            f"REFERENCE: {quoted(folder)} has no record with a capacity.\n"
            "  Expected the folder of a run that searched, not one that is being written (results/latest) and no gate."
        )
    environment = records[0].environment
    return ReferenceRun(folder, rates, str(environment.testbed.get("name")), environment.machine)


def _plain(value: Any) -> str:
    """A fact as text: a list from JSON and a tuple are the same."""
    return str(list(value) if isinstance(value, list | tuple) else value)
