"""How long a search, or a test at a floor, that has not begun will probably take."""

import math
from dataclasses import dataclass

from ctbench.measure.bisection import TRIALS_TO_BRACKET, planned_trials
from ctbench.measure.campaign import GateSettings, LoadRange, Mlr, SaturationSettings, SearchSettings

#: Trials at a floor in the mean: one where it is far away, four to six where it is near. Trials with an open loop below
#: the saturation rate, in the mean. Long trials of MLRsearch, at the bounds in the end.
_FLOOR_TRIALS, _TRIALS_BELOW, LONG_TRIALS = 2, 1.5, 3


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


def expected(settings: SearchSettings | GateSettings, span: LoadRange) -> Expected:
    """The test at a floor, or a whole search over `span` that begins at a hint, if all goes well."""
    if isinstance(settings, GateSettings):
        return Expected(_FLOOR_TRIALS, _FLOOR_TRIALS * settings.trial_duration)
    if isinstance(settings, SaturationSettings):
        return Expected(_TRIALS_BELOW, _TRIALS_BELOW * settings.final_duration)
    if isinstance(settings, Mlr):
        short = planned_halvings(span.min, span.max, settings) + TRIALS_TO_BRACKET
        return Expected(short + LONG_TRIALS, short * settings.trial_duration + LONG_TRIALS * settings.final_duration)
    short = min(settings.max_iterations, planned_trials(span.min, span.max, settings) + TRIALS_TO_BRACKET)
    final = settings.final_duration
    confirming = 0 if final is None or final <= settings.trial_duration else 1
    return Expected(short + confirming, short * settings.trial_duration + confirming * (final or 0.0))


def planned_halvings(lo: float, hi: float, settings: Mlr) -> float:
    """Halvings that bring bounds near enough to each other."""
    return math.log2(max(1.0, math.log(hi / lo) / math.log1p(settings.relative_width)))
