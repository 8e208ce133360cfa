"""The search by bisection: as published in 2022, or stopping at a width, with a confirmed result.

The capacity is the highest offered load that held, so it always stands on a good trial; the lowest load that
did not hold says how far it can be from the truth. With the campaign's `middle: arithmetic`, no width, no
recheck and no final trial it is the procedure of the 2022 article (cps_ndr.py).
"""

import math
from dataclasses import replace

from ctbench.base.errors import TestbedError
from ctbench.measure.campaign import Bisection
from ctbench.measure.observation import Observation
from ctbench.measure.result import SearchFault, SearchResult, broken_off, conclude
from ctbench.measure.trial import OnTrial, Phase, Step, TrialFn, broken_trial

#: The first step away from a hint, as a factor: a narrow width is no reason to creep. From the floor's load it is a
#: large one, because a floor is a promise and not a guess of the capacity.
STRIDE, STRIDE_FROM_FLOOR_LOAD = 1.1, 1.5
#: Of what a DUT forwarded of too many packets: what it probably forwards without a loss.
JUST_BELOW = 0.985
#: Trials that a search from a hint makes, in the mean, until one holds and one does not.
TRIALS_TO_BRACKET = 2
#: Rechecks that succeed reopen the search above; so often at most.
_MAX_RECHECKS = 3


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
    """One search in progress: the loads that held, those that did not, and the trials."""

    def __init__(self, trial_fn: TrialFn, lo: float, hi: float, settings: Bisection, on_trial: OnTrial) -> None:
        if not 0 < lo < hi:
            raise ValueError(f"the range {lo:g} to {hi:g} is empty")
        self.trial_fn, self.lo, self.hi, self.settings, self.on_trial = trial_fn, lo, hi, settings, on_trial
        self.held: dict[float, Observation] = {}
        self.failed: dict[float, Observation] = {}
        self.steps: list[Step] = []
        self.iterations_left = settings.max_iterations
        self.confirmed: float | None = None
        self.note = ""
        self.hinted = False

    def run(self, hint: float | None, floor_load: float | None) -> SearchResult:
        """Search; see `ctbench.measure.search.search` for the arguments."""
        self.hinted = hint is not None
        try:
            if self.settings.start == "max":
                self._try(self.hi, "search")
            if hint is not None and self.settings.relative_width is not None and self.lo < hint < self.hi:
                self._bracket(hint, STRIDE_FROM_FLOOR_LOAD if hint == floor_load else STRIDE)
            self._narrow()
            if floor_load is not None:
                self._settle(floor_load)
            self._recheck()
            self._confirm(floor_load)
        except SearchFault as fault:
            return broken_off(self._proof(), self._upper(), self.steps, str(fault))
        upper = self._upper()
        return conclude(self._proof(), None if upper is None else self.failed[upper], self.steps, self.hi, self.note)

    # Bounds. A failed load counts even where a higher one held: the capacity is below the lowest that failed.

    def _upper(self) -> float | None:
        return min(self.failed, default=None)

    def _lower(self) -> float | None:
        upper = self._upper()
        return max((load for load in self.held if upper is None or load < upper), default=None)

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
        good = self._trial(load, phase)
        tell = good or self.failed[load].state != "invalid" or self.settings.relative_width is None
        return good if tell else self._trial(load, "recheck")

    def _trial(self, load: float, phase: Phase) -> bool:
        """Make one trial and file it; whether it was good."""
        final = phase == "final" and self.settings.final_duration is not None
        duration = self.settings.final_duration if final else self.settings.trial_duration
        try:
            seen = self.trial_fn(load, duration or self.settings.trial_duration)
        except TestbedError as error:
            raise SearchFault(broken_trial(len(self.steps) + 1, load, str(error))) from error
        if phase == "search":
            self.iterations_left -= 1
        self.held.pop(load, None)
        self.failed.pop(load, None)
        (self.held if seen.good else self.failed)[load] = seen
        step = Step(len(self.steps) + 1, phase, seen, 0.0)
        self.steps.append(step)
        self.on_trial(replace(step, left_s=0.0 if seen.fault else self._left_s(phase)))
        if seen.fault:
            raise SearchFault(broken_trial(step.number, load, seen.fault))
        return seen.good

    def _bracket(self, hint: float, stride: float) -> None:
        """Walk away from the hint until one trial holds and one does not."""
        if self._try(hint, "search"):
            self._walk(hint, upwards=True, stride=stride)
        elif self.failed[hint].trial.unit != "packets":  # else what was forwarded says where to go
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
        over, width = self.failed.get(upper), self.settings.relative_width
        if over and width is not None and over.state == "bad" and over.trial.unit == "packets":
            forwarded, step = over.trial.rate * JUST_BELOW, lower * (1 + width)
            if step < forwarded < upper:
                return forwarded
            # Once: a DUT that holds more than it forwarded of too many collapses under them, so that says nothing.
            if lower in self.held and lower <= forwarded * (1 + width) and forwarded <= step < upper:
                return step
        return math.sqrt(lower * upper) if self.settings.middle == "geometric" else (lower + upper) / 2

    def _settle(self, floor_load: float) -> None:
        """Try the floor's load, twice if need be, where no load as high held: neither a width nor one disturbed trial
        is a reason to call a floor missed."""
        if self.settings.relative_width is None or not self.lo < floor_load < self.hi:
            return
        for _ in range(1 if floor_load in self.failed else 2):
            if (self._lower() or 0.0) >= floor_load:
                return
            if self._try(floor_load, "recheck" if floor_load in self.failed else "search"):
                # A disturbance makes a good trial bad, never a bad one good: what failed below was disturbed.
                self.failed = {load: seen for load, seen in self.failed.items() if load > floor_load}
                self._climb(floor_load)
                return

    def _climb(self, load: float) -> None:
        """A load that had failed holds after all: go on above it."""
        self.iterations_left = max(self.iterations_left, self.settings.max_iterations)
        if self._upper() is None and self.settings.relative_width is not None:
            self._walk(load, upwards=True)
        self._narrow()

    def _recheck(self) -> None:
        """Try the lowest load that failed once more. A disturbance makes a good trial bad, never a bad one good:
        if it holds now, the search goes on above it."""
        for _ in range(_MAX_RECHECKS if self.settings.recheck else 0):
            upper = self._upper()
            if upper is None or not self._try(upper, "recheck"):
                return
            self._climb(upper)

    def _confirm(self, floor_load: float | None) -> None:
        """Hold the result once more, for longer; once again if that fails, then a width lower each time. Where nothing
        is left that held, the floor's load at last: it is not missed before it was tried."""
        if self.settings.final_duration is None:
            return
        load = self._lower() or self.lo
        # Without a campaign's width: what the bounds say.
        factor = 1 + (self.settings.relative_width or max(0.01, (self._upper() or load) / load - 1))
        for attempt in range(1 + self.settings.final_retries):
            if attempt > 1:
                load /= factor
            if load < self.lo:
                break
            if self._try(load, "final"):
                self.confirmed = load
                return
        untried = floor_load is not None and self.lo < floor_load < load and not self._lower()
        # Twice, as in `_settle`.
        if floor_load is not None and untried and (self._try(floor_load, "final") or self._try(floor_load, "final")):
            self.confirmed = floor_load
            return
        if self._lower():
            self.note = " (this load held in the search, no longer trial confirmed it)"
        else:
            self._descend(factor)

    def _descend(self, factor: float) -> None:
        """Nothing held: step down from the lowest load that failed, farther each time, to the end of the range. That
        something is missed is known by then; a DUT that does most of what was promised is not one that does nothing."""
        load = self._upper() or self.lo
        while load > self.lo:
            factor *= factor
            load = max(self.lo, load / factor)
            if self._try(load, "final"):
                self.confirmed = load
                return

    # Results.

    def _proof(self) -> Observation | None:
        lower = self.confirmed or self._lower()
        return self.held[lower] if lower else None

    def _left_s(self, phase: Phase) -> float:
        """Seconds until the result, if all goes well: trials to come, each as costly besides its traffic as so far."""
        overhead_s = sum(step.observation.trial.wall_s - step.observation.trial.duration_s for step in self.steps)
        overhead_s = max(0.0, overhead_s / len(self.steps))
        searches = 0 if phase == "final" or self._near_enough() else planned_trials(*self._bounds(), self.settings)
        if searches and self.hinted and not (self.held and self.failed):
            searches += TRIALS_TO_BRACKET
        searches = max(0, min(searches, self.iterations_left))
        rechecks = 1 if self.settings.recheck and phase == "search" else 0
        left = (searches + rechecks) * (self.settings.trial_duration + overhead_s)
        if self.settings.final_duration is not None and not (phase == "final" and self.steps[-1].observation.good):
            left += self.settings.final_duration + overhead_s
        return left
