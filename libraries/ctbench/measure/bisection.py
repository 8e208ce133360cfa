"""The search by bisection: as published in 2022, or stopping at a width, with a confirmed result.

The capacity is the highest offered load that held, so it always stands on a good trial; the lowest load that
did not hold says how far it can be from the truth. Where trials at a load disagree, all of them count (RFC 9971). With
the campaign's `middle: arithmetic`, no width and no final trial it is the procedure of the 2022 article (cps_ndr.py).
"""

import math
from dataclasses import replace

from ctbench.base.errors import TestbedError
from ctbench.measure.campaign import Bisection
from ctbench.measure.classification import Goal, Made, strongest
from ctbench.measure.observation import Observation
from ctbench.measure.result import SearchFault, SearchResult, broken_off, conclude
from ctbench.measure.trial import OnTrial, Phase, Step, TrialFn, broken_trial

#: The first step away from a hint, as a factor: a narrow width is no reason to creep. From one that is no guess of the
#: capacity, but only a promise, it is a large one.
STRIDE, ROUGH_STRIDE = 1.1, 1.5
#: Of what a DUT forwarded of too many packets: what it probably forwards without a loss.
JUST_BELOW = 0.985
#: Trials that a search from a hint makes, in the mean, until one holds and one does not.
TRIALS_TO_BRACKET = 2
#: Steps down of a width each from a result that was not confirmed.
_NARROW_STEPS = 3


def planned_trials(lo: float, hi: float, settings: Bisection) -> int:
    """Bisections that bring the bounds near enough to each other, as far as they are allowed."""
    if settings.relative_width is None:
        return settings.max_iterations
    if hi <= lo * (1 + settings.relative_width):
        return 0
    if settings.middle == "geometric":
        needed = math.log2(math.log(hi / lo) / math.log1p(settings.relative_width))
    else:  # the lower bound is seldom as low as `lo` in the end: half the range is a fair guess of it
        needed = math.log2((hi - lo) / (settings.relative_width * (lo + hi) / 2))
    return max(1, min(settings.max_iterations, math.ceil(needed)))


class BisectionSearch:
    """One search in progress: the trials by their load, which say what held."""

    def __init__(
        self, trial_fn: TrialFn, lo: float, hi: float, settings: Bisection, on_trial: OnTrial, before: int = 0
    ) -> None:
        """`before`: trials that the test made already, for messages."""
        if not 0 < lo < hi:
            raise ValueError(f"the range {lo:g} to {hi:g} is empty")
        self.trial_fn, self.lo, self.hi, self.settings, self.on_trial = trial_fn, lo, hi, settings, on_trial
        self.made: dict[float, list[Made]] = {}
        self.steps: list[Step] = []
        self.before = before
        self.iterations_left = settings.max_iterations
        self.hinted = False
        #: The load that the final trial held.
        self.confirmed: float | None = None
        # One trial classifies a load; of several, more bad than good ones make it too high.
        self.goal = Goal(settings.final_duration or settings.trial_duration, duration_sum_s=0.0, exceed_ratio=0.5)

    def run(self, hint: float | None, *, rough: bool = False) -> SearchResult:
        """Search; see `ctbench.measure.search.search` for the arguments."""
        self.hinted = hint is not None
        try:
            if self.settings.start == "max":
                self._try(self.hi, "search")
            if hint is not None and self.settings.relative_width is not None and self.lo < hint < self.hi:
                self._bracket(hint, ROUGH_STRIDE if rough else STRIDE)
            self._narrow()
            self._confirm()
        except SearchFault as fault:
            return broken_off(self._proof(), self._upper(), self.steps, str(fault))
        return conclude(self._proof(), self._above(), self.steps, self.hi)

    # Bounds. A failed load counts even where a higher one held: the capacity is below the lowest that failed.

    def _upper(self) -> float | None:
        return self.goal.bounds(self.made)[1]

    def _lower(self) -> float | None:
        return self.goal.bounds(self.made)[0]

    def _bounds(self) -> tuple[float, float]:
        """The bounds to search between, the ends of the range where nothing better is known."""
        return self._lower() or self.lo, self._upper() or self.hi

    def _near_enough(self) -> bool:
        lower, upper = self._bounds()
        width = self.settings.relative_width
        return lower >= upper or (width is not None and upper <= lower * (1 + width))

    # Trials.

    def _try(self, load: float, phase: Phase) -> bool:
        """Try a load; whether it held. Where the generator was the limit the trial says nothing about the DUT, so it
        is made once more: a pause of the machine is gone by then, a load beyond the generator is not."""
        seen = self._trial(load, phase)
        if seen.state == "invalid" and self.settings.relative_width is not None:
            seen = self._trial(load, "recheck" if phase == "search" else phase)
        return seen.good

    def _trial(self, load: float, phase: Phase) -> Observation:
        """Make one trial and file it."""
        final = self.settings.final_duration if phase == "final" else None
        duration = final or self.settings.trial_duration
        try:
            seen = self.trial_fn(load, duration)
        except TestbedError as error:
            raise SearchFault(broken_trial(self.before + len(self.steps) + 1, load, str(error))) from error
        if phase == "search":
            self.iterations_left -= 1
        self.made.setdefault(load, []).append(Made(duration, seen))
        step = Step(len(self.steps) + 1, phase, seen, 0.0)
        self.steps.append(step)
        self.on_trial(replace(step, left_s=0.0 if seen.fault else self._left_s(phase)))
        if seen.fault:
            raise SearchFault(broken_trial(self.before + step.number, load, seen.fault))
        return seen

    def _bracket(self, hint: float, stride: float) -> None:
        """Walk away from the hint until one trial holds and one does not."""
        if self._try(hint, "search"):
            self._walk(hint, upwards=True, stride=stride)
        elif self.steps[-1].observation.trial.unit != "packets":  # else what was forwarded says where to go
            self._walk(hint, upwards=False, stride=stride)

    def _walk(self, load: float, *, upwards: bool, stride: float = STRIDE) -> None:
        """Try loads around this one in growing steps until one ends differently than it did."""
        assert self.settings.relative_width is not None
        factor = max(stride, 1 + self.settings.relative_width)
        while self.iterations_left > 0:
            lower, upper = self._bounds()
            load = load * factor if upwards else load / factor
            if not lower < load < upper or self._try(load, "search") != upwards:
                return
            factor *= factor

    def _narrow(self) -> None:
        while self.iterations_left > 0 and not self._near_enough():
            self._try(self._between(), "search")

    def _between(self) -> float:
        """The load to try between the bounds: their middle, or what the DUT forwarded of too many packets.

        A DUT that is offered more packets than it can forward goes on forwarding about as many as it can, so that is
        tried first, and a width above it next. (Connections do not: what loses one packet fails as a whole.)
        """
        lower, upper = self._bounds()
        over, width = self._above(), self.settings.relative_width
        if over and width is not None and over.state == "bad" and over.trial.unit == "packets":
            forwarded, step = over.trial.forwarded_rate * JUST_BELOW, lower * (1 + width)
            if step < forwarded < upper:
                return forwarded
            # Once: a DUT that holds more than it forwarded of too many collapses under them, so that says nothing.
            if lower in self.made and lower <= forwarded * (1 + width) and forwarded <= step < upper:
                return step
        return math.sqrt(lower * upper) if self.settings.middle == "geometric" else (lower + upper) / 2

    def _confirm(self) -> None:
        """Hold the result once more, for longer. If that fails, or where nothing held, step down, at last farther each
        time, to the end of the range: a DUT that does most of what was promised is not one that does nothing."""
        final, load = self.settings.final_duration, self._lower()
        if final is None or (load is not None and final <= self.settings.trial_duration):
            return
        # Without a campaign's width: what the bounds say.
        factor = 1 + (self.settings.relative_width or max(0.01, (self._upper() or self.hi) / (load or self.lo) - 1))
        if load is None:
            factor *= factor
            load = max(self.lo, (self._upper() or self.lo) / factor)
        tries = 0
        while not self._try(load, "final"):
            if load <= self.lo:
                return
            tries += 1
            factor = factor if tries <= _NARROW_STEPS else factor * factor
            load = max(self.lo, load / factor)
        self.confirmed = load

    # Results.

    def _proof(self) -> Observation | None:
        return strongest(self.made.get(self.confirmed or self._lower() or 0.0, []), good=True)

    def _above(self) -> Observation | None:
        return strongest(self.made.get(self._upper() or 0.0, []), good=False)

    def _left_s(self, phase: Phase) -> float:
        """Seconds until the result, if all goes well: trials to come, each as costly besides its traffic as so far."""
        overhead_s = sum(step.observation.trial.wall_s - step.observation.trial.duration_s for step in self.steps)
        overhead_s = max(0.0, overhead_s / len(self.steps))
        searches = 0 if phase == "final" or self._near_enough() else planned_trials(*self._bounds(), self.settings)
        if searches and self.hinted and None in (self._lower(), self._upper()):
            searches += TRIALS_TO_BRACKET
        searches = max(0, min(searches, self.iterations_left))
        left = searches * (self.settings.trial_duration + overhead_s)
        final = self.settings.final_duration
        longer = final is not None and (final > self.settings.trial_duration or phase == "final")
        if final is not None and longer and not (phase == "final" and self.steps[-1].observation.good):
            left += final + overhead_s
        return left
