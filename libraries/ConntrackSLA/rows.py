"""What a row of a suite says: the topology and the profile that are the arguments of its promise."""

from collections.abc import Iterator
from dataclasses import dataclass

from robot.running import TestCase, TestSuite

from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.run.choice import (
    CAPACITY,
    CHURN,
    COLLECT,
    CONTENTION,
    COST,
    DRAIN,
    DUMP,
    EARLY_DROP,
    FORCE,
    FULL,
    HELD_DUMP,
    RATE,
    REAPING,
    REVALIDATE,
    STEADY,
    UPCALLS,
)
from ctbench.traffic.profiles import Profile, load_profile

#: What keywords begin with whose arguments are a topology, a profile, and options of the topology; and those of a rate.
OF_A_TOPOLOGY = "Topology Should "
OF_A_RATE = ("Topology Should Hold Its Connection Rate", "Topology Should Hold Its Packet Rate")
#: Where instructions are counted.
OF_A_COST = "Topology Should Keep Its Cost"
#: Those of the control plane, with what they ask for (`ctbench.run.choice`).
OF_CONTROL = {
    "Topology Should Dump Its Table In Time": DUMP,
    "Topology Should Take Ports In Time": CHURN,
    "Topology Should Revalidate In Time": REVALIDATE,
    "Topology Should Sweep Its Flows In Time": FORCE,
    "Topology Should Collect Statistics In Time": COLLECT,
    "Topology Should Seldom Wait For Locks": CONTENTION,
    "Topology Should Take New Flows": UPCALLS,
    "Topology Should Dump Held Connections In Time": HELD_DUMP,
}
#: Those of the connection table.
OF_THE_TABLE = {
    "Topology Should Hold Its Connections": CAPACITY,
    "Topology Should Keep Its Table Steady": STEADY,
    "Topology Should Drain Its Table": DRAIN,
    "Topology Should Withstand A Full Table": FULL,
    "Topology Should Keep Connections At Its Limit": EARLY_DROP,
    "Topology Should Serve While Entries Expire": REAPING,
}
#: The one whose argument is a profile.
OF_THE_GENERATOR = "Traffic Generator Should Be Fast Enough"


@dataclass(frozen=True)
class Row:
    """A promise."""

    test: TestCase
    topology: Topology
    profile: Profile
    #: The keyword.
    promise: str

    @property
    def what(self) -> str:
        """What is asked for: see `ctbench.run.choice`."""
        of_state = OF_CONTROL | OF_THE_TABLE
        return of_state.get(self.promise, COST if self.promise == OF_A_COST else RATE)


def rows(suite: TestSuite) -> Iterator[Row]:
    """All promises of a suite and those in it."""
    for test in suite.all_tests:
        row = row_of(test)
        if row:
            yield row


def row_of(test: TestCase) -> Row | None:
    """What a test promises; None where it is not a row of a promise. `ConfigError` for a profile that is not there,
    `ValueError` for a topology that cannot be."""
    keyword = next(iter(test.body), None)
    name, arguments = getattr(keyword, "name", ""), [str(argument) for argument in getattr(keyword, "args", ())]
    if name == OF_THE_GENERATOR and len(arguments) == 1:
        return Row(test, CABLE, load_profile(arguments[0]), name)
    if not name.startswith(OF_A_TOPOLOGY) or len(arguments) < 5:
        return None
    datapath, ruleset, cpus, queues, profile, *options = arguments
    named = {"datapath": datapath, "ruleset": ruleset, "cpus": cpus, "rx_queues": queues}
    named |= dict(option.partition("=")[::2] for option in options)
    return Row(test, Topology.model_validate(named), load_profile(profile), name)
