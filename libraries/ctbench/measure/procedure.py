"""A procedure: how a metric is measured. It gets a bench to work at and returns figures with what they stand on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ctbench.base.errors import MissingResource
from ctbench.dut.kind import Ability
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.observation import Conditions, Observation
from ctbench.measure.probe import Probe
from ctbench.measure.trial import OnTrial, Step, TrialDut, TrialGenerator, TrialRunner, nobody
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS, RATE_OF, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.loads import Load, in_words
from ctbench.traffic.profiles import Profile


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
    #: Where a search may begin: the capacity of something like it.
    hint: float | None = None
    probes: Sequence[Probe] = ()

    @property
    def rate_metric(self) -> Metric:
        """What the profile's load counts per second."""
        return RATE_OF[self.profile.kind]

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

    @property
    def result(self) -> Figure | None:
        """The figure of what it looked for; None where no trial says anything."""
        return self.figures.get(self.metric.name)

    def relative_to(self, rate: float | None) -> "Outcome":
        """The same with the ratio of its result to another topology's `rate`, where both are known."""
        if self.result is None or not rate:
            return self
        ratio = Figure(value=self.result.value / rate, unit=METRICS["ratio"].unit.name)
        return replace(self, figures={**self.figures, "ratio": ratio})


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
