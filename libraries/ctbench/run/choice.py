"""Which procedures answer what a keyword asks for."""

from collections.abc import Callable, Set
from dataclasses import dataclass

from ctbench.base.errors import MissingResource
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Procedure
from ctbench.measure.procedures.at_floor import AtFloor
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.measure.procedures.instruction_count import InstructionCount
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.saturation import ClosedLoop
from ctbench.results.metrics import RELATIVE
from ctbench.sla.floor import Floor
from ctbench.testbed.pair import Setup
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import Profile

#: What can be asked for.
RATE, COST = "rate", "cost"


@dataclass(frozen=True)
class Plan:
    """The procedures of one test."""

    #: What the record is called after, and what it looks for.
    main: Procedure
    #: Made first, where the generator offers what it needs and no pair has found the same out.
    first: Procedure | None = None
    #: Decides the rates that are promised, where any are; it may be `main` itself.
    decides: Procedure | None = None
    #: Whether ratios that are promised are measured too.
    compares: bool = False

    @property
    def makes_trials(self) -> bool:
        """Whether loads are offered, a trial each."""
        return not isinstance(self.main, InstructionCount)

    def alone(self, floor: Floor, offered: Set[type[Load]]) -> list[Procedure]:
        """What is measured of the DUT alone, in this order."""
        first = self.first if self.first and not self.first.loads - offered else None
        decides = self.decides if self.decides and floor.load(0.0) else None
        main = self.main if self.main is not self.decides and not isinstance(self.main, Pair) else None
        return [each for each in (first, main, decides) if each is not None]

    def pair(self, metric: str) -> Pair:
        """How a ratio is measured: until it is decided, or as it is looked for."""
        return self.main if isinstance(self.main, Pair) else Pair(promise=metric)

    def named_after(self, floor: Floor) -> Procedure:
        """The procedure that the record is called after: a pair where nothing else is promised or searched."""
        relative = [name for name in RELATIVE if name in floor.thresholds]
        only = self.compares and relative and self.main is self.decides and not floor.load(0.0)
        return Pair(promise=relative[0]) if only else self.main


def _rate(campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """What the campaign says; of the generator over a cable, always its capacity. `MissingResource` where two builds
    are compared, and there is one only."""
    if campaign.pair is not None and campaign.search == "pair":
        if topology.datapath not in KINDS or not KINDS[topology.datapath].builds:
            raise MissingResource(f"Campaign {campaign.name} compares two builds; of {topology.datapath} there is one.")
        return Plan(Pair(promise="of_build", looks=(campaign.pair.rounds,)), compares=True)
    decides = AtFloor(campaign.floor_trials(profile))
    cable = topology.datapath == CABLE.datapath
    first = ClosedLoop(campaign.saturation_for(profile), of_generator=cable)
    if campaign.search == "gate" and not cable:
        return Plan(decides, first, decides, compares=True)
    how, otherwise = campaign.search_for(profile), campaign.search_for(profile, closed_loop=False)
    search = HighestRate(how, campaign.repetitions, otherwise=otherwise)
    return Plan(search, first, decides, compares=True)


def _cost(campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """The same whatever the campaign: a count needs no search."""
    return Plan(InstructionCount())


#: By what is asked for.
ANSWERS: dict[str, Callable[[Campaign, Topology, Profile], Plan]] = {RATE: _rate, COST: _cost}


def choose(what: str, campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """The procedures for `what` is asked of a topology with a profile."""
    return ANSWERS[what](campaign, topology, profile)


def others(floor: Floor, topology: Topology) -> dict[str, Setup]:
    """What a test is compared with, by the metric that is promised of the comparison."""
    found = {}
    if floor.relative_to:
        found["ratio"] = Setup(Topology.parse(floor.relative_to))
    if floor.base_build:
        found["of_build"] = Setup(topology, floor.base_build)
    return found
