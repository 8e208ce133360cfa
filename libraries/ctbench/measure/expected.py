"""How long a search or a gate that has not begun will probably take."""

import math
from dataclasses import dataclass

from ctbench.measure.bisection import TRIALS_TO_BRACKET, planned_trials
from ctbench.measure.campaign import Bisection, GateSettings, LoadRange, Mlr

#: Trials of a gate that agree, and of MLRsearch at the bounds in the end.
_GATE_TRIALS, _LONG_TRIALS = 2, 3


@dataclass(frozen=True)
class Expected:
    """Trials to come, and the seconds of their traffic that counts."""

    trials: float
    traffic_s: float

    def seconds(self, overhead_s: float) -> float:
        """With what a trial takes besides its traffic: ramps, the flush, the DUT's health."""
        return self.traffic_s + self.trials * overhead_s

    def times(self, number: int) -> "Expected":
        """So much more than once."""
        return Expected(self.trials * number, self.traffic_s * number)


def expected(settings: Bisection | Mlr | GateSettings, span: LoadRange) -> Expected:
    """A gate, or a whole search over `span` that begins at a hint, if all goes well."""
    if isinstance(settings, GateSettings):
        return Expected(_GATE_TRIALS, _GATE_TRIALS * settings.trial_duration)
    if isinstance(settings, Mlr):
        short = planned_halvings(span.min, span.max, settings) + TRIALS_TO_BRACKET
        long = _LONG_TRIALS if settings.recheck else _LONG_TRIALS - 1
        return Expected(short + long, short * settings.trial_duration + long * settings.final_duration)
    short = min(settings.max_iterations, planned_trials(span.min, span.max, settings) + TRIALS_TO_BRACKET)
    final = [] if settings.final_duration is None else [settings.final_duration]
    return Expected(short + len(final), short * settings.trial_duration + sum(final))


def planned_halvings(lo: float, hi: float, settings: Mlr) -> float:
    """Halvings that bring bounds near enough to each other."""
    return math.log2(max(1.0, math.log(hi / lo) / math.log1p(settings.relative_width)))
