"""Which procedures measure what a test promises, and in which order."""

from collections.abc import Set
from dataclasses import dataclass

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import did_you_mean
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Procedure
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.rates import AtFloor, ClosedLoop, HighestRate
from ctbench.measure.promises import PROMISES, Promise
from ctbench.results.metrics import RELATIVE
from ctbench.sla.floor import Floor
from ctbench.testbed.pair import Setup
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import ConnectionProfile, Profile


@dataclass(frozen=True)
class Plan:
    """The procedures of one test."""

    promise: Promise
    #: What the record is called after, and what it looks for.
    main: Procedure
    #: Made first, where the generator offers what it needs and no pair has found the same out.
    first: Procedure | None = None
    #: Decides the rates that are promised, where any are; it may be `main` itself.
    decides: Procedure | None = None

    @property
    def compares(self) -> bool:
        """Whether ratios that are promised are measured too."""
        return self.promise.about == "rate"

    @property
    def makes_trials(self) -> bool:
        """Whether loads are offered, a trial each."""
        return self.promise.about != "cost"

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


def find_promise(name: str) -> Promise:
    """The promise of a name; `ConfigError` for one that there is not."""
    if name not in PROMISES:
        raise ConfigError(
            f"{name!r} is not a promise.{did_you_mean(name, list(PROMISES))}\n  Expected {', '.join(PROMISES)}."
        )
    return PROMISES[name]


def plan(promise: Promise, campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """The procedures for a promise of a topology with a profile. `MissingResource` where a campaign compares two builds
    and the promise is not about a rate."""
    if promise.procedure is None:
        return _rate(promise, campaign, topology, profile)
    if campaign.search == "pair" and promise.about != "cost":
        raise MissingResource(f"Campaign {campaign.name} compares the rates of two builds: no {promise.name}.")
    first = None
    if promise.procedure.after_closed_loop:
        as_long = {"trial_duration": campaign.control_plane.trial_duration}
        first = ClosedLoop(campaign.saturation_for(profile).model_copy(update=as_long))
    return Plan(promise, promise.procedure, first)


def _rate(promise: Promise, campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """What the campaign says; of the generator over a cable, always its ceiling. `MissingResource` where two builds
    are compared, and there is one only, and for what has no rate."""
    if isinstance(profile, ConnectionProfile) and profile.counts != "opening":
        raise MissingResource(
            f"Profile {profile.name} measures a {profile.counts}, which only the emulated machine supports."
        )
    if campaign.pair is not None and campaign.search == "pair":
        if topology.datapath not in KINDS or not KINDS[topology.datapath].builds:
            raise MissingResource(f"Campaign {campaign.name} compares two builds; of {topology.datapath} there is one.")
        return Plan(promise, Pair(promise="of_build", looks=(campaign.pair.rounds,)))
    decides = AtFloor(campaign.floor_trials(profile))
    cable = topology.datapath == CABLE.datapath
    first = ClosedLoop(campaign.saturation_for(profile), of_generator=cable)
    if campaign.search == "gate" and not cable:
        return Plan(promise, decides, first, decides)
    how, otherwise = campaign.search_for(profile), campaign.search_for(profile, closed_loop=False)
    return Plan(promise, HighestRate(how, campaign.repetitions, otherwise=otherwise), first, decides)


def others(floor: Floor, topology: Topology, profile: Profile | None = None) -> dict[str, Setup]:
    """What a test is compared with, by the metric that is promised of the comparison. `profile`: what is offered to
    what a ratio is relative to; None: the test's own."""
    found = {}
    if floor.relative_to:
        found["ratio"] = Setup(Topology.parse(floor.relative_to), profile=profile)
    if floor.base_build:
        found["of_build"] = Setup(topology, floor.base_build)
    return found
