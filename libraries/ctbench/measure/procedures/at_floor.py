"""Whether the DUT holds the floor: trials at the rate that is promised, and nothing more."""

from collections.abc import Collection
from dataclasses import dataclass

from ctbench.base.errors import ConfigError
from ctbench.dut.kind import Ability
from ctbench.measure.campaign import Campaign, GateSettings
from ctbench.measure.expected import Expected, expected
from ctbench.measure.gate import GateResult, gate
from ctbench.measure.procedure import Bench, Outcome, figures_of
from ctbench.results.figure import Figure
from ctbench.results.metrics import RATE_OF, RATES, Metric
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
        return outcome_of(gate(bench.runner, bench.floor_load, self.how, bench.on_trial), bench.rate_metric)


def outcome_of(found: GateResult, metric: Metric) -> Outcome:
    """The outcome of trials at one load, in a metric's unit."""
    # The offered load where it held, else what was completed of it.
    result = Figure(value=found.load, unit=metric.unit.name, low=found.load) if found.passed else None
    return Outcome(
        metric=metric,
        figures=figures_of(found.proof, metric, result),
        limited_by=found.limited_by,
        reason=found.reason,
        held=found.passed is True,
        steps=found.steps,
    )
