"""The ratio of two set-ups that take turns, looked at until it decides what is promised (duet benchmarking)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ctbench.base.errors import ConfigError
from ctbench.dut.kind import Ability
from ctbench.measure import pairs, side_by_side
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.in_turn import InTurn
from ctbench.measure.pair_found import outcome_of
from ctbench.measure.procedure import Bench, Outcome
from ctbench.measure.side_by_side import SideBySide
from ctbench.results.metrics import METRICS, Metric
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import Profile

#: Seconds of a turn: the shorter, the more of what the machine does falls on both sides alike; but one that stood
#: still, and whose caches the other one had, needs a while to be as fast as before.
SLICE_S = 0.05
#: Rounds where nothing is promised, and only the ratio is wanted.
WITHOUT_PROMISE = 48


@dataclass(frozen=True)
class Pair:
    """Implements `Procedure`. At a bench with `pair`, both stand side by side; with `turns`, the DUT becomes the one or
    the other."""

    #: The metric that the ratio decides.
    promise: str = "ratio"
    slice_s: float = SLICE_S
    #: Rounds after which the interval is looked at; None: as many as the promise needs, else `WITHOUT_PROMISE`.
    looks: Sequence[int] | None = None
    name: str = "pair"
    #: Which of them is the bench's to know.
    loads: frozenset[type[Load]] = frozenset()
    abilities: frozenset[Ability] = frozenset()
    headroom: float = 0.0

    @property
    def found_out(self) -> Collection[str]:
        """See `Procedure.found_out`."""
        return (self.promise,)

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRICS[self.promise]

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: side by side, where most ratios are decided by the first look."""
        rounds = pairs.LOOKS[0] + 2 * side_by_side.WARM_UP
        return Expected(0, rounds * pairs.ROUND * self.slice_s)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`. `ConfigError` where the bench has nothing to compare with."""
        metric = self.metric(bench.profile)
        if bench.pair is not None:
            looks = self.looks or (pairs.LOOKS if bench.promised_ratio is not None else (WITHOUT_PROMISE,))
            return outcome_of(SideBySide(bench, bench.pair, self.slice_s, looks).measure(), bench, metric)
        if bench.turns is not None:
            found = InTurn(bench, bench.turns, bench.campaign.search_for(bench.profile, closed_loop=False)).measure()
            return outcome_of(found, bench, metric)
        raise ConfigError("A ratio is asked for, and there is nothing to compare with.\n  Expected two set-ups.")
