"""The reference run: what an earlier release measured on this testbed, of which a floor may promise a share."""

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace

from ctbench.base.errors import ConfigError
from ctbench.base.files import named_folder
from ctbench.base.units import format_share, quoted
from ctbench.dut.topology import Topology
from ctbench.results import store
from ctbench.results.environment import MachineFacts
from ctbench.sla.floor import Floor, Threshold, promise
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
    machine: MachineFacts

    def check(self, testbed: str, machine: MachineFacts) -> None:
        """Refuse another testbed: `ConfigError` names what differs."""
        here = {"testbed": testbed} | {key: getattr(machine, key) for key in _SAME}
        there = {"testbed": self.testbed} | {key: getattr(self.machine, key) for key in _SAME}
        for key, value in here.items():
            if value != there[key]:
                raise ConfigError(
                    f"REFERENCE: {key} of {self.name} is {there[key]}, and here {value}.\n"
                    "  Expected a run of this testbed: rates of two testbeds cannot be compared."
                )

    def applied_to(self, floor: Floor, topology: Topology, profile: Profile, share: Threshold) -> Floor:
        """The floor, raised to a share of what the reference run measured where that is more. Without such a
        measurement it stays as it is."""
        rate = self.rates.get((topology, profile.name), 0.0)
        if not rate or (floor.main and share.limit * rate <= floor.main.limit):
            return floor
        metric = floor.metric
        words = f"the reference run {self.name}: {format_share(share.limit)} of {metric.format(rate)}"
        raised = {metric.name: promise(metric, float(f"{share.limit * rate:.6g}"))}
        return replace(floor, thresholds=dict(floor.thresholds) | raised, derivation=words)


def read_reference(folder: str) -> ReferenceRun:
    """Read the records of a run; `ConfigError` where it has no capacity of anything."""
    stored, _ = store.read_stored(named_folder(folder))
    found: dict[tuple[Topology, str], list[float]] = defaultdict(list)
    for record in (each.record for each in stored):
        if record.verdict != "not measured" and record.limited_by in ("dut", "range") and record.result:
            found[record.topology, record.profile.name] += record.result.repetitions
    rates = {key: statistics.median(capacities) for key, capacities in found.items() if capacities}
    if not rates:
        raise ConfigError(
            f"REFERENCE: {quoted(folder)} has no record with a capacity.\n"
            "  Expected the folder of a run that searched, not one that is being written (results/latest) and no gate."
        )
    environment = stored[0].record.environment
    return ReferenceRun(folder, rates, environment.testbed.name, environment.machine)
