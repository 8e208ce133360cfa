"""One test: the procedures that measure its promise, and the state of its measurement. Whatever ends the test, its
record has what is known by then."""

import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import did_you_mean, format_rate
from ctbench.base.version import SUITE_VERSION
from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign, SaturationSettings
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Outcome, Procedure, Promise
from ctbench.measure.procedures.below import Below
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.rates import AtFloor, ClosedLoop, HighestRate
from ctbench.measure.procedures.same_load import SameLoad
from ctbench.measure.procedures.starts import Starts
from ctbench.measure.promises import PROMISES
from ctbench.measure.sequential import FAR_SDS, scatter
from ctbench.measure.trial import NO_EVIDENCE, series_of
from ctbench.results import evidence
from ctbench.results.environment import (
    CampaignFacts,
    DutFacts,
    Environment,
    MachineFacts,
    RecordedFacts,
    TestbedFacts,
)
from ctbench.results.evidence import Evidence, TrialRecord
from ctbench.results.floor import Floor
from ctbench.results.metrics import AT_HALF, RATE_OF, RELATIVE, SATURATION_OF, SERVED
from ctbench.results.record import LimitedBy, PoolMember, Record
from ctbench.results.store import Stored
from ctbench.run import feasibility
from ctbench.sla.verdict import RowVerdict
from ctbench.testbed.two_sides import Setup
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
    #: Tells what is lost, where nothing else would offer a load under the conditions of the floor.
    tells_losses: Procedure | None = None
    #: Made last, where the campaign or the floor asks for it.
    below: Below | None = None
    #: Of a candidate, in turn with its base: of a rate after its starts, in the place of what tells losses, tries a
    #: smoke floor, or searches below what a closed loop serves; of another promise in the place of `main`.
    in_turn: Procedure | None = None

    def compared(self, floor: Floor, metrics: Collection[str]) -> list[Procedure]:
        """Return the procedures that measure next to another topology, or a base, for these promised `metrics`."""
        found: list[Procedure] = []
        of_rate = self.promise.about == "rate"
        for metric in metrics:
            if of_rate:
                found.append(Starts() if metric == "of_build" else Pair((metric,)))
            asked = not of_rate or floor.has_conditions or floor.smoke_rates
            if metric == "of_build" and self.in_turn and asked:
                found.append(self.in_turn)
        return found

    def alone(self, floor: Floor, offered: Set[type[Load]], *, after: Collection[Procedure] = ()) -> list[Procedure]:
        """Return the procedures that measure the DUT alone, in their order, `after` these. `offered`: the generator's
        loads."""
        first = self.first if self.first and not self.first.loads - offered else None
        decides = self.decides if self.decides and floor.load(0.0) else None
        main = self.main if self.main is not self.decides else None
        losses = self.tells_losses if floor.has_conditions and not (main or decides) else None
        if self.in_turn in after:
            losses = None
            main, decides = (None if self._in_turn_instead(each, floor) else each for each in (main, decides))
        below = self.below if self.below and (self.below.shares or AT_HALF.keys() & floor.thresholds.keys()) else None
        then = [each for each in (main, decides, losses, below) if each is not None]
        return [first, *then] if first and (then or SERVED & floor.thresholds.keys()) else then

    def named_after(self, floor: Floor) -> Procedure:
        """Return the procedure that the record is called after: the main one, trials in turn that replace it, or a pair
        where nothing else is promised or searched."""
        relative = [name for name in RELATIVE if name in floor.thresholds]
        only = self.promise.about == "rate" and relative and self.main is self.decides and not floor.load(0.0)
        if self.in_turn and floor.base_build and not only and self._in_turn_instead(self.main, floor):
            return self.in_turn
        return Pair((relative[0],)) if only else self.main

    def _in_turn_instead(self, procedure: Procedure | None, floor: Floor) -> bool:
        """Return True where trials in turn with the base replace a candidate's procedure: a search below what a closed
        loop serves, or trials at a smoke floor; for a promise other than a rate, any procedure."""
        if self.promise.about != "rate":
            return True
        if isinstance(procedure, HighestRate):
            return isinstance(procedure.how, SaturationSettings)
        return procedure is not None and procedure is self.decides and bool(floor.smoke_rates)


def find_promise(name: str) -> Promise:
    """Return the promise of a name. Raises `ConfigError` where there is none."""
    if name not in PROMISES:
        raise ConfigError(
            f"{name!r} is not a promise.{did_you_mean(name, list(PROMISES))}\n  Expected {', '.join(PROMISES)}."
        )
    return PROMISES[name]


def plan(promise: Promise, campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """Return the procedures for a promise of a topology with a profile."""
    if promise.procedure is None:
        return _rate(promise, campaign, topology, profile)
    return Plan(promise, promise.procedure, in_turn=promise.in_turn)


def _rate(promise: Promise, campaign: Campaign, topology: Topology, profile: Profile) -> Plan:
    """Return the procedures for a rate, by the campaign; over a cable always a search, for the generator's ceiling.
    Raises `MissingResource` for a profile without a rate."""
    if isinstance(profile, ConnectionProfile) and profile.counts != "opening":
        raise MissingResource(
            f"Profile {profile.name} measures a {profile.counts}, which only the emulated machine supports."
        )
    decides = AtFloor(campaign.floor_trials(profile))
    cable = topology.datapath == CABLE.datapath
    first = ClosedLoop(campaign.saturation_for(profile), of_generator=cable)
    highest = HighestRate(campaign.search_for(profile), campaign.repetitions, campaign.partial_drop)
    below = Below(campaign.latency, decides.how.trial_duration)
    in_turn = None if cable else SameLoad(campaign.saturation_for(profile), decides.how.headroom)
    if campaign.search == "gate" and not cable:
        return Plan(promise, decides, first, decides, tells_losses=highest, below=below, in_turn=in_turn)
    return Plan(promise, highest, first, decides, below=below, in_turn=in_turn)


def others(floor: Floor, topology: Topology, profile: Profile | None = None) -> dict[str, Setup]:
    """Return the set-ups that a test is compared with, by the metric that is promised of the comparison. `profile`:
    what is offered to the other topology of a ratio; None: the test's own profile."""
    found = {}
    if floor.base_build:  # first: in a ratio both sides are the candidate's, and one that crashes ends the test
        found["of_build"] = Setup(topology, floor.base_build)
    if floor.relative_to:
        found["ratio"] = Setup(Topology.parse(floor.relative_to), profile=profile)
    return found


Model = TypeVar("Model", bound=RecordedFacts)


def environment_of(topology: Topology, facts: Mapping[str, Mapping[str, Any]], rules: str = "") -> Environment:
    """Return the environment of a measurement, from `Testbed.facts()`. `rules`: tells the topology's rules from
    others."""
    dut, datapath = facts["dut"], topology.datapath
    named = {
        "product": registry.describe(datapath, dut),
        "product_details": registry.describe(datapath, dut, whole=True),
        "rules": rules,
    }
    return Environment(
        testbed=facts_of(TestbedFacts, facts["testbed"]),
        dut=facts_of(DutFacts, {**dut, **named}),
        generator=dict(facts["generator"]),
        machine=facts_of(MachineFacts, facts["machine"]),
    )


def facts_of(model: type[Model], facts: Mapping[str, Any]) -> Model:
    """Return the facts as a record has them. A fact of the wrong type is kept apart, as text (`odd_facts`): no
    measurement is thrown away for an odd fact."""
    try:
        return model.model_validate(facts)
    except ValidationError as errors:
        odd = {str(error["loc"][0]) for error in errors.errors() if error["loc"]}
        fitting = {name: value for name, value in facts.items() if name not in odd}
        return model.model_validate(fitting | {"odd_facts": {name: repr(facts[name])[:1000] for name in sorted(odd)}})


@dataclass(frozen=True)
class TestName:
    """The names and tags of the test that a measurement is of."""

    suite: str
    test: str
    tags: tuple[str, ...] = ()
    #: Those of its tags that the user's `--include` names: no campaign and no testbed skips it for these.
    asked: frozenset[str] = frozenset()


@dataclass
class Measurement:
    """The state of the test that runs."""

    name: TestName
    topology: Topology
    profile: Profile
    campaign: Campaign
    floor: Floor
    plan: Plan
    #: What tells the rules of the topology from any others of the same name.
    rules: str = ""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: The trials at the topology as they were made.
    trials: list[Observation] = field(default_factory=list)
    #: None as long as the trials did not yield one.
    outcome: Outcome | None = None
    ceiling: float | None = None
    #: What ends the range of the search early.
    bounds: list[feasibility.LoadLimit] = field(default_factory=list)
    #: What broke and was replaced, or is not known, and did not end the measurement: one sentence each.
    notes: list[str] = field(default_factory=list)
    #: The record of an earlier gate of this row, whose starts count where nothing has changed; and its file, which
    #: steps aside for the record of this one.
    before: Record | None = None
    earlier: list[Stored] = field(default_factory=list)
    #: Folder of what the DUT said of its failure.
    capture: str | None = None

    @property
    def procedure(self) -> Procedure:
        """The procedure that the record is called after."""
        return self.plan.named_after(self.floor)

    def add(self, found: Outcome) -> None:
        """Add the outcome of one more procedure."""
        self.outcome = self.outcome.merged(found) if self.outcome else found

    @property
    def broken(self) -> bool:
        """True where a procedure ended with a fault, so that no other follows."""
        return self.outcome is not None and self.outcome.limited_by == "fault"

    @property
    def broke_off(self) -> bool:
        """True where something broke, so that DUT and generator cannot be trusted any more."""
        return self.outcome is None or self.outcome.limited_by == "fault"

    def record(
        self,
        verdict: RowVerdict,
        *,
        run_id: str,
        environment: Environment,
        pool: PoolMember | None,
        oversubscribed: bool,
    ) -> Record:
        """Return the record of the test, with all trials that were made."""
        found = self.outcome
        limited_by: LimitedBy = found.limited_by if found else "fault"
        made: Sequence[Observation] = found.trials if found else self.trials
        trials = [seen.as_record() for seen in made]
        ended = datetime.now(UTC)
        return Record(
            schema_version=2,
            tool_version=SUITE_VERSION,
            run_id=run_id,
            suite=self.name.suite,
            test=self.name.test,
            tags=list(self.name.tags),
            started=self.started,
            ended=ended,
            wall_s=(ended - self.started).total_seconds(),
            traffic_s=sum(seen.trial.counted_s for seen in made),
            topology=self.topology,
            profile=self.profile,
            campaign=CampaignFacts(**self.campaign.model_dump(mode="json")),
            procedure=self.procedure.name,
            metric=self.procedure.metric(self.profile).name,
            figures=dict(found.figures) if found else {},
            limited_by=limited_by,
            thresholds=list(verdict.thresholds),
            floor=self.floor.as_record(),
            verdict=verdict.word,
            verdict_reason=verdict.reason,
            verdict_code=verdict.code,
            margin_pct=verdict.margin_pct,
            evidence=Evidence(
                **dict(found.evidence if found else NO_EVIDENCE)
                | {"trials": trials, "series": series_of(made), "ceiling": self.ceiling}
            ),
            environment=environment,
            capture=self.capture,
            pool=pool,
            notes=self._notes(trials, oversubscribed=oversubscribed),
        )

    @property
    def _contradiction(self) -> str:
        """The note that the DUT held more than a closed loop without a loss served, beyond the scatter of either; empty
        where it did not. The interval of what a pair served counts in place of the scatter."""
        found, kind = self.outcome, self.profile.kind
        served, held = (found.figures.get(of[kind].name) if found else None for of in (SATURATION_OF, RATE_OF))
        if not (found and found.kept_conditions and served and held):
            return ""
        most = served.high or served.value * math.exp(FAR_SDS * scatter(found.trials))
        if most >= (least := held.low or held.value):
            return ""
        return (
            f"{format_rate(least)} were held, and a closed loop that lost nothing was served at "
            f"{format_rate(served.value)} (at most {format_rate(most)}): the two contradict each other, so something "
            "else than the DUT's speed decided one of them; measure again, with longer trials."
        )

    def _notes(self, trials: Sequence[TrialRecord], *, oversubscribed: bool) -> list[str]:
        said = evidence.thrown_away_note(trials), evidence.lossy_loop_note(trials) or self._contradiction
        notes = [*self.floor.notes, *filter(None, said)]
        if self.floor.derivation:
            notes.append(f"{self.profile.description} Its floor follows {self.floor.derivation}.".strip())
        if oversubscribed:
            notes.append("Threads share CPUs: what this test shows is that the topology works, not how fast it is.")
        if isinstance(self.profile, ConnectionProfile) and self.profile.open_at_once:
            notes.append(
                f"Scaled by {self.campaign.scale:g}: {self.profile.open_at_once} connections are open at once."
            )
        found = self.outcome.result if self.outcome else None
        return notes + self.notes + feasibility.notes(self.bounds, found.value if found else None)
