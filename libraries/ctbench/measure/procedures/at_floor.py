"""Whether the DUT holds the floor: trials at the rate that is promised, in a sequential test (SPRT)."""

from collections.abc import Collection
from dataclasses import dataclass

from ctbench.base.errors import ConfigError
from ctbench.dut.kind import Ability
from ctbench.measure.campaign import Campaign, GateSettings
from ctbench.measure.expected import Expected, expected
from ctbench.measure.procedure import Bench, Outcome, figures_of
from ctbench.measure.sequential import Known, SequentialResult, SequentialTest, scatter
from ctbench.results.figure import Figure
from ctbench.results.metrics import RATE_OF, RATES, SATURATION_OF, Metric
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile


@dataclass(frozen=True)
class AtFloor:
    """Implements `Procedure`."""

    how: GateSettings
    name: str = "at-floor"
    loads: frozenset[type[Load]] = frozenset((Rate,))
    abilities: frozenset[Ability] = frozenset()
    found_out: Collection[str] = RATES

    @property
    def headroom(self) -> float:
        """See `Procedure.headroom`."""
        return self.how.headroom

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return RATE_OF[profile.kind]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`."""
        return expected(self.how, campaign.load_range(profile))

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        if bench.floor_load is None:
            raise ConfigError("The campaign tries floors, and no rate is promised of this test.\n  Expected a floor.")
        known = known_of(bench.earlier, bench.profile)
        test = SequentialTest(
            bench.runner, bench.floor_load, self.how.trial_duration, known, bench.on_trial, bench.made
        )
        return outcome_of(test.run(bench.ceiling), bench.rate_metric)


def known_of(earlier: Outcome | None, profile: Profile) -> Known:
    """What a test has found out of a DUT so far, for the decision at its floor."""
    if earlier is None:
        return Known()
    seen = tuple(step.observation for step in earlier.steps)
    rates = [rate for rate in (earlier.figure(SATURATION_OF[profile.kind]),) if rate]
    at_least: list[float] = []
    if found := earlier.figure(RATE_OF[profile.kind]) or earlier.upper_bound:
        (rates if earlier.limited_by == "dut" else at_least).append(found)
    open_loop = tuple(each for each in seen if not each.trial.under_way and each.trial.load)
    return Known(tuple(rates), tuple(at_least), scatter(seen), open_loop)


def outcome_of(found: SequentialResult, metric: Metric) -> Outcome:
    """The outcome of trials at one load, in a metric's unit: they decide that metric, and with it every rate that was
    promised, because the load tries all of them."""
    kept = found.decision.kept
    # The offered load where it held, else what was completed of it.
    result = Figure(value=found.load, unit=metric.unit.name, low=found.load) if kept else None
    return Outcome(
        metric=metric,
        figures=figures_of(found.proof, metric, result),
        limited_by=found.limited_by,
        reason=found.decision.whole,
        held=kept is True,
        steps=found.steps,
        decisions={metric.name: found.decision},
    )
