"""The search for the capacity with the MLRsearch library (RFC 9971): short trials first, long ones where it counts.

The library decides what is tried next; everything that it is told goes through a measurer of ours, which keeps the
trials. So a fault, an end of patience and a load that nothing held are told apart here by type, where the library
raises the same RuntimeError for all of them.
"""

import math
from dataclasses import replace
from typing import Any, Final

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from ctbench.base.errors import TestbedError
from ctbench.measure.bisection import JUST_BELOW, STRIDE, STRIDE_FROM_FLOOR_LOAD
from ctbench.measure.campaign import Mlr
from ctbench.measure.expected import planned_halvings
from ctbench.measure.observation import Observation
from ctbench.measure.result import SearchFault, SearchResult, broken_off, conclude
from ctbench.measure.trial import OnTrial, Phase, Step, TrialFn, broken_trial

#: Packets that the library believes a trial to have had: it needs only their ratio.
_INTENDED: Final = 10**9
#: The library's own limit, by the clock; ours, by trials, comes first.
_FOREVER_S: Final = 1e9
#: How many widths above the result a trial looks whether there is more, and how often that may begin the search again.
_WIDTHS_ABOVE, _MAX_RESTARTS = 3, 3

Bounds = tuple[float | None, float | None]


class _OutOfTrials(Exception):
    """The search made as many trials as it may."""


class _GaveUp(Exception):
    """The library found a contradiction in what it was told; the text is its own."""


class MlrSearch(AbstractMeasurer):  # type: ignore[misc]  # the library comes without types
    """One search in progress, and the measurer of the library."""

    def __init__(self, trial_fn: TrialFn, lo: float, hi: float, settings: Mlr, on_trial: OnTrial) -> None:
        if not 0 < lo < hi:
            raise ValueError(f"the range {lo:g} to {hi:g} is empty")
        self.trial_fn, self.lo, self.hi, self.settings, self.on_trial = trial_fn, lo, hi, settings, on_trial
        self.steps: list[Step] = []
        self.hint: float | None = None
        #: The upper end of the range that the library is given.
        self.top = hi
        #: The trial that the library begins with, at that end, where it was made already to find it.
        self.first: Observation | None = None
        self.crashed = False
        self.note = ""

    def run(self, hint: float | None, floor_load: float | None) -> SearchResult:
        """Search; see `ctbench.measure.search.search` for the arguments."""
        try:
            bounds = self._search(hint, floor_load)
            if floor_load is not None:
                bounds = self._settle(floor_load, *bounds)
        except SearchFault as fault:
            lower, upper = self._known_bounds()
            return broken_off(self._seen(lower, good=True), upper, self.steps, str(fault))
        except _OutOfTrials:
            self.note = f" (stopped after {self.settings.max_iterations} trials)"
            bounds = self._known_bounds()
        except _GaveUp as error:
            self.note = f" (MLRsearch gave up: {error})"
            bounds = self._known_bounds()
        proof, above = self._seen(bounds[0], good=True), self._seen(bounds[1], good=False)
        return conclude(proof, above, self.steps, self.hi, self.note)

    # What the library is asked.

    def _search(self, hint: float | None, floor_load: float | None) -> Bounds:
        """The bounds that the library finds, once more where there is more above them: a search that a disturbed trial
        sent astray ends far too low, and a short trial a little above its result shows it."""
        lower, upper = self._search_once(hint, STRIDE_FROM_FLOOR_LOAD if hint == floor_load else STRIDE)
        for _ in range(_MAX_RESTARTS):
            above = self.top if upper is None else upper * (1 + self.settings.relative_width) ** _WIDTHS_ABOVE
            if above >= self.hi or (upper and not self._try(above, self.settings.trial_duration).good):
                break
            found, upper = self._search_once(above, STRIDE)
            lower = found or lower
        return lower, upper

    def _search_once(self, hint: float | None, stride: float) -> Bounds:
        self.top, goal = self._find_top(hint, stride), self._goal()
        config = Config()
        config.min_load = self.lo  # before the maximum, which the default minimum may be above
        config.max_load = self.top
        config.goals, config.search_duration_max, config.warmup_duration = [goal], _FOREVER_S, 0.0
        try:
            found = MultipleLossRatioSearch(config).search(self, _say_nothing)[goal]
        except RuntimeError as error:
            if self.crashed:  # a bug of ours that went through the library
                raise
            raise _GaveUp(str(error)) from error
        lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
        return float(lower) if lower else None, float(upper) if upper else None

    def _goal(self) -> Any:
        settings = self.settings
        return SearchGoal(
            loss_ratio=0.0,  # what is good and what is bad was decided before the library hears of it
            # Of two trials that a load would take, one long one that holds makes it a lower bound, two that do not, one
            # of them long, an upper one: a disturbance makes a good trial bad, never a bad one good.
            duration_sum=settings.final_duration * (2 if settings.recheck else 1),
            exceed_ratio=0.5 if settings.recheck else 0.0,
            relative_width=settings.relative_width / (1 + settings.relative_width),  # theirs is of the upper bound
            initial_trial_duration=settings.trial_duration,
            final_trial_duration=settings.final_duration,
            preceding_targets=settings.preceding_targets,
            fail_fast=False,
        )

    def _find_top(self, hint: float | None, stride: float) -> float:
        """The upper end of the range: a load not far above the hint that did not hold, so that none far above it is
        tried. The library begins there."""
        self.hint, self.first = hint if hint is not None and self.lo < hint < self.hi else None, None
        load, factor = self.hint or self.hi, max(stride, 1 + self.settings.relative_width)
        while (load := load * factor) < self.hi:
            seen = self._try(load, self.settings.trial_duration)
            if not seen.good:
                self.first = seen
                return load
            factor *= factor
        return self.hi

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Make a trial for the library. What it takes for the forwarding rate of an overloaded DUT is our guess."""
        seen, self.first = self.first or self._try(intended_load, intended_duration), None
        lost = 0 if seen.good else max(1, round(_INTENDED * (1 - self._guess(seen) / intended_load)))
        return MeasurementResult(intended_duration, intended_load, offered_count=_INTENDED, loss_count=lost)

    def _guess(self, over: Observation) -> float:
        """The load to try below one that did not hold: the hint, else what the DUT completed of it. Of connections it
        completes fewer under overload than it can, so the middle between that and what was offered."""
        held = (step.observation.load for step in self.steps if step.observation.good)
        least = max((load for load in held if load < over.load), default=self.lo)
        if self.hint is not None and least < self.hint < over.load:
            return self.hint
        completed = over.trial.rate * JUST_BELOW
        aim = completed if over.trial.unit == "packets" else math.sqrt(completed * over.load)
        return aim if over.state == "bad" and aim > least * STRIDE else math.sqrt(least * over.load)

    # Trials.

    def _try(self, load: float, duration: float) -> Observation:
        """Try a load, once more where the generator was the limit: a pause of the machine is gone by then."""
        seen = self._trial(load, duration)
        return self._trial(load, duration) if seen.state == "invalid" else seen

    def _trial(self, load: float, duration: float) -> Observation:
        if len(self.steps) >= self.settings.max_iterations:
            raise _OutOfTrials
        again = any(
            (made.observation.load, made.observation.trial.duration_s) == (load, duration) for made in self.steps
        )
        phase: Phase = "recheck" if again else "final" if duration >= self.settings.final_duration else "search"
        try:
            seen = self.trial_fn(load, duration)
        except TestbedError as error:
            raise SearchFault(broken_trial(len(self.steps) + 1, load, str(error))) from error
        except RuntimeError:
            self.crashed = True
            raise
        step = Step(len(self.steps) + 1, phase, seen, 0.0)
        self.steps.append(step)
        self.on_trial(replace(step, left_s=0.0 if seen.fault else self._left_s()))
        if seen.fault:
            raise SearchFault(broken_trial(step.number, load, seen.fault))
        return seen

    def _settle(self, floor_load: float, lower: float | None, upper: float | None) -> Bounds:
        """Try the floor's load if it is between the bounds, and once more if it fails: neither a width nor one
        disturbed trial is a reason to call a floor missed."""
        if (lower or self.lo) < floor_load < (upper or self.hi):
            long = self.settings.final_duration
            held = self._try(floor_load, long).good or self._try(floor_load, long).good
            return (floor_load, upper) if held else (lower, floor_load)
        return lower, upper

    # Results.

    def _known_bounds(self) -> Bounds:
        """The bounds as far as the trials say, where the library did not come to its end: the lowest load whose last
        trial failed, and the highest below it that held."""
        last = {step.observation.load: step.observation.good for step in self.steps}
        upper = min((load for load, good in last.items() if not good), default=None)
        held = (load for load, good in last.items() if good and (upper is None or load < upper))
        return max(held, default=None), upper

    def _seen(self, load: float | None, *, good: bool) -> Observation | None:
        """The longest trial at a load that held, or that did not; the last one of several."""
        made = [seen for seen in (step.observation for step in self.steps) if (seen.load, seen.good) == (load, good)]
        return max(reversed(made), key=lambda seen: seen.trial.duration_s, default=None)

    def _left_s(self) -> float:
        """Seconds until the result, if all goes well: halvings to come, then long trials at either bound."""
        overhead_s = sum(step.observation.trial.wall_s - step.observation.trial.duration_s for step in self.steps)
        overhead_s = max(0.0, overhead_s / len(self.steps))
        lower, upper = self._known_bounds()
        halvings = planned_halvings(lower or self.lo, upper or self.hi, self.settings)
        made = sum(step.phase != "search" for step in self.steps)
        long = max(1, (3 if self.settings.recheck else 2) - made)
        return halvings * (self.settings.trial_duration + overhead_s) + long * (
            self.settings.final_duration + overhead_s
        )


def _say_nothing(_text: str) -> None:
    """Take no notice of the library's log."""
