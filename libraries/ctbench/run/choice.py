"""Which procedures answer what a keyword asks for."""

from collections.abc import Callable, Set
from dataclasses import dataclass

from ctbench.base.errors import LeftForTheNight, MissingResource
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Procedure
from ctbench.measure.procedures.at_floor import AtFloor
from ctbench.measure.procedures.control_plane import (
    PORT_CHURN,
    REVALIDATION,
    STATISTICS,
    SWEEP,
    TABLE_DUMP,
)
from ctbench.measure.procedures.held_dump import HeldDump
from ctbench.measure.procedures.highest_rate import HighestRate
from ctbench.measure.procedures.instruction_count import InstructionCount
from ctbench.measure.procedures.lock_share import LockShare
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.saturation import ClosedLoop
from ctbench.measure.procedures.table_capacity import TableCapacity
from ctbench.measure.procedures.table_drain import TableDrain
from ctbench.measure.procedures.table_early_drop import TableEarlyDrop
from ctbench.measure.procedures.table_full import TableFull
from ctbench.measure.procedures.table_reaping import TableReaping
from ctbench.measure.procedures.table_steady import TableSteady
from ctbench.measure.procedures.upcalls import NewFlows
from ctbench.measure.table_settings import TableSettings
from ctbench.results.metrics import RELATIVE
from ctbench.sla.floor import Floor
from ctbench.testbed.pair import Setup
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import ConnectionProfile, Profile

#: What can be asked for.
#: Of the control plane, beside a load.
DUMP, CHURN, REVALIDATE, FORCE = "table dump", "port churn", "revalidation", "revalidation sweep"
COLLECT, CONTENTION, UPCALLS = "collection of statistics", "contention", "upcalls"
HELD_DUMP = "dump of held connections"
#: By what is asked for, the procedure with a campaign and a profile.
OF_CONTROL: dict[str, Callable[[Campaign, Profile], Procedure]] = {
    DUMP: lambda *_: TABLE_DUMP,
    CHURN: lambda *_: PORT_CHURN,
    REVALIDATE: lambda *_: REVALIDATION,
    FORCE: lambda *_: SWEEP,
    COLLECT: lambda *_: STATISTICS,
    CONTENTION: lambda *_: LockShare(),
    UPCALLS: lambda *_: NewFlows(),
    HELD_DUMP: lambda campaign, _: HeldDump(campaign.table),
}
RATE, COST, CAPACITY, STEADY, DRAIN, FULL = "rate", "cost", "capacity", "steady", "drain", "full"
EARLY_DROP, REAPING = "early-drop", "reaping"


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
    #: Whether what is measured is the DUT's connection table, and no rate.
    of_table: bool = False

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

    @property
    def holds(self) -> bool:
        """Whether the floor is a number of connections that are held."""
        return isinstance(self.main, (TableCapacity, HeldDump))

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
    are compared, and there is one only, and for what has no rate."""
    if isinstance(profile, ConnectionProfile) and profile.counts != "opening":
        raise MissingResource(
            f"Profile {profile.name} is about a {profile.counts}, which only emulated machines count."
        )
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


def _control(what: str, campaign: Campaign, profile: Profile) -> Plan:
    """`MissingResource` where the campaign compares two builds, `LeftForTheNight` where it gives a test less time than
    this one takes."""
    if campaign.search == "pair":
        raise MissingResource(f"Campaign {campaign.name} compares two builds, by their rates: no {what}.")
    if what in campaign.control_plane.leave_out:
        raise LeftForTheNight(
            f"Campaign {campaign.name} leaves {what} out (control_plane.leave_out): test_lists/nightly.args has it."
        )
    procedure, most_s = OF_CONTROL[what](campaign, profile), campaign.control_plane.most
    takes_s = procedure.expected(profile, campaign).traffic_s
    if most_s is not None and takes_s > most_s:
        raise LeftForTheNight(
            f"A {what} with profile {profile.name} takes {takes_s:.0f} s of traffic, and campaign {campaign.name} "
            f"gives it {most_s:.0f} s (control_plane.most): test_lists/nightly.args has one that takes its time."
        )
    as_long = campaign.control_plane.trial_duration
    return Plan(
        procedure,
        # As long as the trial with samples: by both is known what these cost.
        ClosedLoop(campaign.saturation_for(profile).model_copy(update={"trial_duration": as_long}))
        if what == CONTENTION
        else None,
        of_table=what == HELD_DUMP,
    )


#: What is asked for of the connection table, with the procedure that answers.
OF_TABLE: dict[str, Callable[[TableSettings], Procedure]] = {
    CAPACITY: TableCapacity,
    STEADY: TableSteady,
    DRAIN: TableDrain,
    FULL: TableFull,
    EARLY_DROP: TableEarlyDrop,
    REAPING: TableReaping,
}

#: By what is asked for.
ANSWERS: dict[str, Callable[[Campaign, Topology, Profile], Plan]] = {RATE: _rate, COST: _cost}


def choose(what: str, campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """The procedures for `what` is asked of a topology with a profile."""
    if what in OF_CONTROL:
        return _control(what, campaign, profile)
    if what in OF_TABLE:
        if campaign.search == "pair":
            raise MissingResource(f"Campaign {campaign.name} compares the rates of two builds, and no tables.")
        return Plan(OF_TABLE[what](campaign.table), of_table=True)
    return ANSWERS[what](campaign, topology, profile)


def others(floor: Floor, topology: Topology, profile: Profile | None = None) -> dict[str, Setup]:
    """What a test is compared with, by the metric that is promised of the comparison. `profile`: what is offered to
    what a ratio is relative to; None: the test's own."""
    found = {}
    if floor.relative_to:
        found["ratio"] = Setup(Topology.parse(floor.relative_to), profile=profile)
    if floor.base_build:
        found["of_build"] = Setup(topology, floor.base_build)
    return found
