"""Procedures: each measures a metric at a bench, and returns an outcome: figures with their evidence."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Dut
from ctbench.dut.cable import CABLE
from ctbench.dut.kind import Ability
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import Conditions, Observation
from ctbench.measure.probe import Probe
from ctbench.measure.start_rule import Scatter
from ctbench.measure.trial import (
    NO_EVIDENCE,
    OnTrial,
    Repetitions,
    TrialFault,
    TrialRunner,
    Trials,
    ignore,
    merge,
)
from ctbench.results.evidence import Evidence, LookRecord, PairRecord
from ctbench.results.floor import Floor
from ctbench.results.metrics import ANY, METRICS, RATE_OF, RELATIVE, SERVED, Metric
from ctbench.results.record import LimitedBy
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Verdict
from ctbench.testbed.two_sides import InTurn, SideBySide
from ctbench.traffic.generator import LoadUnit, TrafficGenerator
from ctbench.traffic.loads import Load, in_words
from ctbench.traffic.profiles import ConnectionProfile, Profile


@dataclass(frozen=True)
class Look:
    """A look at the interval of a pair that is being measured."""

    number: int
    #: Where it stands now; None where there are too few rounds for an interval.
    found: LookRecord | None
    #: The ratio that is promised; None where none is.
    promised: float | None
    #: Whether it is the last one, by now: the ratio is decided, or will not be.
    decided: bool
    #: Whether another look may follow.
    goes_on: bool
    #: What was counted: `rounds`, `blocks` of searches, or `starts`.
    of: str = "rounds"


OnLook = Callable[[Look], None]


@dataclass(frozen=True)
class Bench:
    """The bench of a procedure: a DUT that is set up, a generator that is connected to it, and prior knowledge."""

    dut: Dut
    generator: TrafficGenerator
    #: What is promised, of which profile.
    floor: Floor
    campaign: Campaign
    #: Told of each trial as it ends.
    on_trial: OnTrial = ignore
    #: What the run has left for making invalid trials again.
    repetitions: Repetitions = field(default_factory=Repetitions)
    #: What it has left for starting a candidate and its base further.
    more_starts: Repetitions = field(default_factory=lambda: Repetitions(0.0))
    #: Where a search may begin where nothing is known of the DUT itself: the capacity of something like it.
    hint: float | None = None
    #: What the generator reaches with the profile, where that is known.
    ceiling: float | None = None
    #: What was found out in this test so far.
    earlier: "Outcome | None" = None
    #: Where the test compares with another topology, or another build: both side by side, or in turn.
    sides: SideBySide | InTurn | None = None
    #: Sets both up again for the start of this number, from 0 on. And how far apart starts, or where both are set up in
    #: turn blocks, lay in the rows before: starts by their middle and by all of their time, blocks in the first alone.
    set_up_again: Callable[[int], SideBySide | InTurn | None] = ignore
    scatter: tuple[Scatter, Scatter] = field(default_factory=lambda: (Scatter(), Scatter()))
    #: Rows of this run that compare two builds: they share its error.
    gated_rows: int = 1
    #: What an earlier gate of this row found, with all else the same: its starts count where both builds are the same.
    before: PairRecord | None = None
    #: How the candidate crashed in this run so far, while its base lived, this test included.
    crashes: list[str] = field(default_factory=list)
    #: Told of each look at a pair's interval.
    on_look: OnLook = ignore
    #: Connections that can be held at once here; None where nothing bounds them.
    most_held: float | None = None
    #: Connections that memory has room for in all, where the DUT frees none; None where that is not known.
    most_filled: float | None = None
    #: The topology of the test.
    topology: Topology = CABLE

    @property
    def profile(self) -> Profile:
        """The profile that is offered."""
        return self.floor.profile

    @property
    def connections(self) -> ConnectionProfile:
        """The same profile, for a metric of connections."""
        assert isinstance(self.profile, ConnectionProfile), "the metric is of connections"
        return self.profile

    @property
    def conditions(self) -> Conditions:
        """Limits that a trial has to keep, by metric."""
        return self.floor.conditions(self.campaign.loss_limit)

    @property
    def rate_metric(self) -> Metric:
        """The rate metric of the profile: `cps` or `pps`."""
        return RATE_OF[self.profile.kind]

    @property
    def trials(self) -> Trials:
        """A new recorder, which goes on with the numbers of the test's earlier trials."""
        return Trials(self.on_trial, len(self.earlier.trials) if self.earlier else 0, self.repetitions)

    @property
    def timeout_s(self) -> int:
        """Timeout of an open connection's entry, seconds after its last packet."""
        return self.topology.timeout_s or 30

    @property
    def runner(self) -> TrialRunner:
        """A runner of trials at this bench."""
        return self.runner_for(self.conditions)

    def runner_for(self, conditions: Conditions, *probes: Probe) -> TrialRunner:
        """Return a runner of trials under other conditions, with probes."""
        return TrialRunner(self.dut, self.generator, self.profile, conditions, self.campaign.settle, probes=probes)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a procedure: figures and verdicts, with trials and evidence."""

    #: What it looked for.
    metric: Metric
    #: By metric; empty where no trial says anything.
    figures: Mapping[str, Estimate]
    #: `floor`: nothing but the floor was tried; else as in the record.
    limited_by: LimitedBy
    #: One sentence.
    reason: str
    #: Whether the conditions were kept at `figures`: False where not even the lowest load did.
    kept_conditions: bool
    #: All trials in their order.
    trials: tuple[Observation, ...] = ()
    #: By metric: the promises that were decided by evidence of their own, a rate by trials at the floor (SPRT), a ratio
    #: by the interval of its pairs. What is not here is judged by its figure.
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    #: What it stands on besides its trials and their series, which follow from `trials`.
    evidence: Evidence = NO_EVIDENCE

    @classmethod
    def nothing(
        cls, metric: Metric, limited_by: LimitedBy, reason: str, verdicts: Mapping[str, Verdict] | None = None
    ) -> "Outcome":
        """Return an outcome without figures. `limited_by` is `fault` where the DUT or the generator broke."""
        return cls(metric, {}, limited_by, reason, False, verdicts=verdicts or {})

    @classmethod
    def not_held(cls, metric: Metric, alone: Observation) -> "Outcome":
        """Return an outcome without figures, because the load was not held even alone."""
        why = f"the load alone is not held here: {alone.reason}"
        return cls.nothing(metric, "generator" if alone.state == "invalid" else "dut", why)

    @property
    def result(self) -> Estimate | None:
        """The figure of the metric looked for; None where no trial says anything."""
        return self.figures.get(self.metric.name)

    @property
    def lost(self) -> bool:
        """True where a comparison is lost. No later fault changes that."""
        return any(each.kept is False for name, each in self.verdicts.items() if name in RELATIVE)

    def figure(self, metric: Metric) -> float | None:
        """Return the value found for a metric; None without one."""
        found = self.figures.get(metric.name)
        return found.value if found else None

    def merged(self, later: "Outcome") -> "Outcome":
        """Merge this outcome with a later one of the same test. Where both have a figure the earlier one counts, unless
        the later one held a higher rate: then its conditions count too. The test ends as the weightier of both did: a
        fault weighs most, then a rate, a ratio, a detail."""
        speaks = max(self, later, key=lambda each: each._weight)
        raised = later.kept_conditions and later._above(self)
        figures = {**self.figures, **later.figures} if raised else {**later.figures, **self.figures}
        if raised and self.result and self.result.samples:  # that one load held brings no searches nearer together
            name = self.metric.name
            figures[name] = replace(figures[name], samples=self.result.samples)
        return replace(
            speaks,
            figures=figures,
            kept_conditions=raised or speaks.kept_conditions,
            trials=(*self.trials, *later.trials),
            verdicts={**later.verdicts, **self.verdicts},
            evidence=merge(self.evidence, later.evidence),
        )

    def _above(self, other: "Outcome") -> bool:
        """True where both looked for the same rate, and this one found a higher one, or the only one."""
        same_rate = self.metric is other.metric and self.metric in RATE_OF.values()
        found, known = self.result, other.result
        return bool(same_rate and found and (known is None or found.value > known.value))

    @property
    def _weight(self) -> int:
        if self.limited_by == "fault":
            return 3
        if self.metric in RATE_OF.values():
            return 2
        return 1 if self.metric.role == "promise" and self.metric.name not in SERVED else 0


@dataclass(frozen=True)
class Promise:
    """A kind of promise, and how it is measured."""

    #: In lower case; its keyword is made of it.
    name: str
    about: Literal["rate", "cost", "table", "control plane"]
    #: What is done, as a tag: it and `about` are in the place of the profile's tags. None for a rate or a cost.
    tag: str | None = None
    #: Kinds of profiles that it can be measured with.
    profiles: frozenset[LoadUnit] = ANY
    #: Whether it takes too long for a quick run: the tag `long`, which a campaign can skip.
    long: bool = False
    #: Whether the DUT has to be a new one: memory that another test took would hide what this one takes.
    fresh: bool = False
    #: What is made of a candidate in the place of `procedure`, in turn with its base.
    in_turn: "Procedure | None" = None
    #: Of a rate, what is measured of it.
    of_rate: str = ""
    #: How it is measured, which names it (`Procedure.promised`). Of a rate the campaign decides that
    #: (`ctbench.run.measurement`).
    procedure: "Procedure | None" = None

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags that stand in place of the profile's tags; empty where the profile's count."""
        return (self.about.replace(" ", "-"), self.tag) if self.tag else ()

    @property
    def holds(self) -> bool:
        """True where the procedure counts the table's entries: the host's limit, the profile's clients and memory bound
        their number; for held connections, the timeout and the generator too."""
        return self.procedure is not None and "connections" in self.procedure.abilities

    @property
    def says(self) -> str:
        """The measurement, as the end of a sentence that begins with "it"."""
        return self.procedure.says if self.procedure else self.of_rate


class Procedure:
    """The description of a procedure: its name, its needs, and the metrics that it finds. Subclasses fill it in."""

    #: As records call it: `highest-rate`.
    name: str
    #: What it does, for "Procedure highest-rate measured the connection rate: it ...".
    says: str
    #: Kinds of loads that the generator has to offer.
    loads: frozenset[type[Load]] = frozenset()
    #: What the DUT has to answer besides forwarding.
    abilities: frozenset[Ability] = frozenset()
    #: The kind of promise that it measures, where there is one of its own.
    promised: Promise | None = None

    #: Metrics that a promise can be judged by afterwards; the first is what it looks for, unless `metric` differs.
    found_out: tuple[str, ...]

    def metric(self, profile: Profile) -> Metric:
        """Return the metric that it looks for with a profile."""
        return METRICS[self.found_out[0]]

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        """Estimate its seconds of traffic; 0 where they are not known before the DUT is set up."""
        return 0.0


class BenchProcedure(Procedure, ABC):
    """A procedure that works at a bench."""

    def expected_at(self, bench: Bench) -> float:
        """Estimate its seconds of traffic at a bench: `expected_s`, unless the bench tells more."""
        return self.expected_s(bench.profile, bench.campaign)

    def run(self, bench: Bench) -> Outcome:
        """Measure. A fault of DUT or generator is an outcome (`limited_by: fault`) with the trials until then."""
        trials = bench.trials
        try:
            found = self.measure(bench, trials)
        except TrialFault as fault:
            found = Outcome.nothing(self.metric(bench.profile), "fault", str(fault))
        return replace(found, trials=tuple(trials.made), evidence=merge(trials.evidence, found.evidence))

    @abstractmethod
    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Measure with this recorder; its `TrialFault` may pass. `run` adds its trials and evidence."""


@dataclass(frozen=True, kw_only=True)
class Scripted(BenchProcedure):
    """A procedure that is one function, its `script`."""

    name: str
    says: str
    found_out: tuple[str, ...]
    script: Callable[[Bench, Trials], Outcome]
    #: Seconds that it will probably take at a bench; 0 where that is not known.
    expects: Callable[[Bench], float] = lambda _: 0.0
    loads: frozenset[type[Load]] = frozenset()
    abilities: frozenset[Ability] = frozenset()
    promised: Promise | None = None

    def expected_at(self, bench: Bench) -> float:
        return self.expects(bench)

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        return self.script(bench, trials)


def require(procedure: Procedure, offered: frozenset[type[Load]], able: frozenset[Ability]) -> None:
    """Raise `MissingResource` where the generator lacks a load that a procedure needs, or the DUT lacks an ability."""
    if missing := procedure.loads - offered:
        raise MissingResource(
            f"Procedure {procedure.name} needs {in_words(missing)}; the traffic generator of this testbed offers "
            f"{in_words(offered)}."
        )
    if lacking := sorted(procedure.abilities - able):
        raise MissingResource(
            f"Procedure {procedure.name} asks the DUT for {', '.join(lacking)}; this kind of DUT answers "
            f"{', '.join(sorted(able)) or 'nothing'}."
        )


def figures_of(seen: Observation | None, metric: Metric, result: Estimate | None = None) -> dict[str, Estimate]:
    """Return the figures of one trial by metric, in the registry's order; `result` replaces that of `metric`."""
    if seen is None:
        return {}
    found = figures_by_name({name: seen.values.get(name) for name in METRICS})
    return found | ({metric.name: result} if result else {})


def figures_by_name(values: Mapping[str, float | None]) -> dict[str, Estimate]:
    """Return these values as figures, by metric. A metric without a value is left out."""
    return {
        name: Estimate(value=value, unit=METRICS[name].unit.name) for name, value in values.items() if value is not None
    }
