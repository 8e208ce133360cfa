"""A procedure: how a metric is measured. It gets a bench to work at and returns figures with what they stand on."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Problem
from ctbench.dut.counting import Counted
from ctbench.dut.kind import Ability
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.observation import Conditions, Observation
from ctbench.measure.probe import Probe
from ctbench.measure.trial import OnTrial, Step, TrialDut, TrialGenerator, TrialRunner, nobody
from ctbench.results.evidence import (
    ControlRecord,
    GoalRecord,
    LookRecord,
    PairRecord,
    ProfileRecord,
    SideRecord,
    TableCount,
)
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, RATE_OF, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Side, Slice
from ctbench.traffic.loads import Load, in_words
from ctbench.traffic.profiles import Profile


class PairBench(Protocol):
    """Two DUTs side by side, set up as a pair (`Testbed.apply_pair`), and a generator that serves them in turn."""

    def sides(self) -> Mapping[Side, SideRecord]:
        """What the two are."""

    def flush(self) -> None:
        """Empty the connection tables of both."""

    def run_slices(self, order: Sequence[Side], slice_s: float) -> list[Slice]:
        """Serve the sides in this order, `slice_s` each."""

    def health(self) -> list[Problem]:
        """What went wrong with either DUT since the last flush."""


class Turns(Protocol):
    """Two set-ups of one DUT, which becomes the one or the other: where two cannot stand side by side."""

    @property
    def why(self) -> str:
        """Why they cannot, one sentence."""

    def sides(self) -> Mapping[Side, SideRecord]:
        """What the two are."""

    def turn(self, side: Side) -> tuple[TrialDut, TrialGenerator]:
        """Set the DUT up as this side, where it is not. `TestbedError` where it does not become that,
        `MissingResource` where it cannot."""


@dataclass(frozen=True)
class Look:
    """A look at the interval of a pair that is being measured."""

    number: int
    #: Where it stands now; None where there are too few rounds for an interval.
    found: LookRecord | None
    #: The ratio that is promised; None where none is.
    promised: float | None
    #: Whether that is decided by now; always where none is promised and this is the last look.
    decided: bool
    #: Seconds that are probably left until the last look.
    left_s: float


OnLook = Callable[[Look], None]


def looked_at_by_nobody(_look: Look) -> None:
    """Take no notice of a look: the default of `on_look`."""


#: Told of a topology, of what was counted of it, and of what each of these is net of the baseline.
OnCounted = Callable[[str, Sequence[Counted], Sequence[float]], None]


def told_to_nobody(_key: str, _counted: Sequence[Counted], _net: Sequence[float]) -> None:
    """Take no notice of what was counted: the default of `on_counted`."""


@dataclass(frozen=True)
class Decision:
    """Whether a promise was kept, by evidence that counts in both directions."""

    #: None: not decided.
    kept: bool | None
    #: One sentence: the trials or the interval that decided, or why nothing did.
    reason: str
    #: What was wrong with the last trial that failed, if one did.
    because: str = ""

    @property
    def whole(self) -> str:
        """The reason with what was wrong."""
        return f"{self.reason}: {self.because}" if self.because else self.reason


@dataclass(frozen=True)
class Bench:
    """What a procedure works with: a DUT that is set up, a generator that is connected to it, and what is known."""

    dut: TrialDut
    generator: TrialGenerator
    profile: Profile
    conditions: Conditions
    campaign: Campaign
    #: Told of each trial as it ends.
    on_trial: OnTrial = nobody
    #: The load that tries every rate promised, in the profile's unit per second; None where none is promised.
    floor_load: float | None = None
    #: Where a search may begin where nothing is known of the DUT itself: the capacity of something like it.
    hint: float | None = None
    #: What the generator reaches with the profile, where that is known.
    ceiling: float | None = None
    #: What was found out in this test so far.
    earlier: "Outcome | None" = None
    probes: Sequence[Probe] = ()
    #: Where the test compares with another topology, or another build: both side by side, or in turn.
    pair: PairBench | None = None
    turns: Turns | None = None
    #: Told of each look at a pair's interval.
    on_look: OnLook = looked_at_by_nobody
    #: The ratio that is promised of the pair; None where none is, and only the ratio is wanted.
    promised_ratio: float | None = None
    #: Connections that can be held at once here; None where nothing bounds them.
    most_held: float | None = None
    #: Where instructions are counted: the topology of the test and what it is compared with, where it is; what is
    #: promised, by metric; and who is told of what was counted of a topology.
    topology: Topology | None = None
    compared_with: Topology | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    on_counted: OnCounted = told_to_nobody

    @property
    def rate_metric(self) -> Metric:
        """What the profile's load counts per second."""
        return RATE_OF[self.profile.kind]

    @property
    def made(self) -> int:
        """Trials that were made in this test so far."""
        return len(self.earlier.steps) if self.earlier else 0

    @property
    def runner(self) -> TrialRunner:
        """Runs trials at this bench."""
        return TrialRunner(
            self.dut, self.generator, self.profile, self.conditions, self.campaign.settle, probes=self.probes
        )


@dataclass(frozen=True)
class Outcome:
    """What a procedure found out."""

    #: What it looked for.
    metric: Metric
    #: By metric; empty where no trial says anything.
    figures: Mapping[str, Figure]
    #: `floor`: nothing but the floor was tried; else as in the record.
    limited_by: LimitedBy
    #: One sentence.
    reason: str
    #: Whether the conditions were kept at `figures`: False where not even the lowest load did.
    held: bool
    #: All trials in their order.
    steps: tuple[Step, ...]
    #: The lowest load that did not hold, where one was found.
    upper_bound: float | None = None
    #: By metric: the promises that were decided by evidence of their own, a rate by trials at the floor (SPRT), a ratio
    #: by the interval of its pairs. What is not here is judged by its figure.
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    #: What ratios stand on.
    pairs: tuple[PairRecord, ...] = ()
    #: What instructions per packet or connection stand on.
    counts: tuple[Counted, ...] = ()
    #: What the control plane did beside a load.
    control: tuple[ControlRecord, ...] = ()
    #: Where the time of threads that forward went.
    profiles: tuple[ProfileRecord, ...] = ()
    #: Of connections that were held: the generator's count against the DUT's.
    table: tuple[TableCount, ...] = ()
    #: Of a search with MLRsearch.
    goal: GoalRecord | None = None

    @property
    def result(self) -> Figure | None:
        """The figure of what it looked for; None where no trial says anything."""
        return self.figures.get(self.metric.name)

    def figure(self, metric: Metric) -> float | None:
        """What was found of a metric; None where nothing was."""
        found = self.figures.get(metric.name)
        return found.value if found else None

    def merged(self, later: "Outcome") -> "Outcome":
        """This and what was found out after it in the same test. Of both, the earlier figure counts, but for a rate
        that held later, above what a search had found. What looked for a rate speaks for the test, before a ratio and
        before a detail; a fault before all of them."""
        speaks = max(self, later, key=lambda each: each._weight)
        steps = (*self.steps, *later.steps)
        raised = later.held and later._above(self)
        return replace(
            speaks,
            figures={**self.figures, **later.figures} if raised else {**later.figures, **self.figures},
            steps=tuple(replace(step, number=number) for number, step in enumerate(steps, 1)),
            upper_bound=self.upper_bound if later.upper_bound is None else later.upper_bound,
            decisions={**later.decisions, **self.decisions},
            goal=self.goal or later.goal,
            pairs=self.pairs + later.pairs,
            counts=self.counts + later.counts,
            control=self.control + later.control,
            profiles=self.profiles + later.profiles,
            table=self.table + later.table,
        )

    def _above(self, other: "Outcome") -> bool:
        """Whether both looked for the same rate, and this one found a higher one."""
        same_rate = self.metric is other.metric and self.metric in RATE_OF.values()
        found, known = self.result, other.result
        return bool(same_rate and found and known and found.value > known.value)

    @property
    def _weight(self) -> int:
        if self.limited_by == "fault":
            return 3
        return 2 if self.metric in RATE_OF.values() else 1 if self.metric.role == "promise" else 0


class Procedure(Protocol):
    """How a metric is measured."""

    @property
    def name(self) -> str:
        """As records call it: `highest-rate`."""

    @property
    def loads(self) -> frozenset[type[Load]]:
        """Kinds of loads that the generator has to offer."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the DUT has to answer besides forwarding."""

    @property
    def headroom(self) -> float:
        """How much more than the rate promised it tries (ratio): what a permitted loss and the packets in flight at the
        end of a trial take away must not push the measured rate below the floor."""

    @property
    def found_out(self) -> Collection[str]:
        """Metrics that a promise can be judged by afterwards."""

    def metric(self, profile: Profile) -> Metric:
        """What it looks for with a profile."""

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """How long it will probably take."""

    def run(self, bench: Bench) -> Outcome:
        """Measure. A DUT or a generator that breaks is an outcome (`limited_by: fault`), with the trials made until
        then."""


def require(procedure: Procedure, offered: frozenset[type[Load]], able: frozenset[Ability]) -> None:
    """`MissingResource` where a procedure needs a load that the generator does not offer, or something of the DUT."""
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


def figures_of(seen: Observation | None, metric: Metric, result: Figure | None = None) -> dict[str, Figure]:
    """Figures of one trial by metric, in the order of the registry; `result` replaces the trial's own of `metric`."""
    if seen is None:
        return {}
    values = seen.values
    found = {name: Figure(value=values[name], unit=METRICS[name].unit.name) for name in METRICS if name in values}
    return found | ({metric.name: result} if result else {})


def figures_by_name(values: Mapping[str, float | None]) -> dict[str, Figure]:
    """Figures of some metrics; those without a value are left out."""
    return {
        name: Figure(value=value, unit=METRICS[name].unit.name) for name, value in values.items() if value is not None
    }
