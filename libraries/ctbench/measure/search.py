"""The search for the capacity: by bisection, with MLRsearch or below the saturation rate, as the campaign says.

Loads are classified by all of their trials, as RFC 9971 asks: its code for load classification and for the conditional
throughput, with its names. A trial is low-loss where it is good. One that says nothing about the DUT counts only where
its load has no other.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctbench.base.units import format_rate
from ctbench.measure.campaign import Bisection, GateSettings, LoadRange, Mlr, SaturationSettings, SearchSettings
from ctbench.measure.observation import Observation
from ctbench.measure.trial import MOST_INVALID, Expected, Phase, Step, TrialFault, TrialFn, Trials
from ctbench.results.evidence import GoalRecord

Bound = Literal["lower", "upper", "undecided"]


@dataclass(frozen=True)
class Made:
    """A trial, and the sustain phase that was asked for, seconds: one that is lost may end earlier."""

    duration_s: float
    seen: Observation


@dataclass(frozen=True)
class Goal:
    """The attributes of a search goal."""

    #: Seconds: of a full-length trial, and of full-length trials that classify a load.
    final_duration_s: float
    duration_sum_s: float
    #: Share of that sum in which trials may be bad.
    exceed_ratio: float

    def classify(self, trials: Sequence[Made]) -> Bound:
        """What the trials at a load make of it: a lower or an upper bound of the capacity, or not yet either."""
        sums = _Sums.of(_that_count(trials), self)
        quantile_sum = sums.whole * self.exceed_ratio
        pessimistic = sums.whole - sums.full_low <= quantile_sum
        optimistic = sums.high <= quantile_sum
        return "lower" if pessimistic else "undecided" if optimistic else "upper"

    def bounds(self, trials: Mapping[float, Sequence[Made]]) -> tuple[float | None, float | None]:
        """The relevant bounds: the smallest load that is an upper one, and the largest lower one below it."""
        found = {load: self.classify(made) for load, made in trials.items()}
        upper = min((load for load, bound in found.items() if bound == "upper"), default=None)
        lower = (load for load, bound in found.items() if bound == "lower" and (upper is None or load < upper))
        return max(lower, default=None), upper

    def conditional_throughput(self, load: float, trials: Sequence[Made]) -> float:
        """What was forwarded of a load, by the loss ratio at the goal's quantile of its full-length trials."""
        counted = _that_count(trials)
        remaining = _Sums.of(counted, self).whole * (1 - self.exceed_ratio)
        loss: float | None = None
        for each in sorted((each for each in counted if self.is_full(each)), key=_lost):
            if loss is not None and remaining <= 0:
                return load * (1 - loss)
            loss = _lost(each)
            remaining -= each.duration_s
        return load * (1 - (1.0 if loss is None or remaining > 0 else loss))

    def is_full(self, made: Made) -> bool:
        """Whether a trial is as long as the final ones."""
        return made.duration_s >= self.final_duration_s * (1 - 1e-9)


@dataclass(frozen=True)
class _Sums:
    """Durations of a load's trials, seconds, as the RFC adds them up."""

    full_low: float
    #: High-loss: the full-length ones, and of the shorter ones what the low-loss ones do not outweigh.
    high: float
    whole: float

    @classmethod
    def of(cls, trials: Sequence[Made], goal: Goal) -> "_Sums":
        def total(*, full: bool, good: bool) -> float:
            return sum(each.duration_s for each in trials if goal.is_full(each) is full and each.seen.good is good)

        coefficient = goal.exceed_ratio / (1 - goal.exceed_ratio)
        excess = max(0.0, total(full=False, good=False) - total(full=False, good=True) * coefficient)
        full_low, high = total(full=True, good=True), total(full=True, good=False) + excess
        return cls(full_low, high, max(full_low + high, goal.duration_sum_s))


def _lost(made: Made) -> float:
    return made.seen.values["loss_ratio"]


def _that_count(trials: Sequence[Made]) -> Sequence[Made]:
    return [each for each in trials if each.seen.state != "invalid"] or trials


def strongest(trials: Sequence[Made], *, good: bool) -> Observation | None:
    """The longest of the trials that held, or that did not; the last one of several. Rather one that says something."""
    made = [each for each in trials if each.seen.good is good]
    found = max(reversed(made), key=lambda each: (each.seen.state != "invalid", each.duration_s), default=None)
    return found.seen if found else None


@dataclass(frozen=True)
class SearchResult:
    """What the search found."""

    #: What the DUT forwarded at the highest offered load that held, in the profile's unit per second; 0 when none did.
    capacity: float
    #: Lowest load above it that did not hold; None when every load held.
    upper: float | None
    #: `dut`; `generator`: the load that did not hold was the generator's limit; `range`: every load held, so the
    #: capacity is at least this; `fault`: the DUT or the generator broke and the search was given up.
    limited_by: Literal["dut", "generator", "range", "fault"]
    #: One sentence.
    reason: str
    #: The trial that the capacity stands on; None when none held.
    proof: Observation | None
    #: All trials in their order, each with the phase it was made in.
    steps: tuple[Step, ...]
    #: Capacity of each repetition; one entry when there was no other.
    capacities: tuple[float, ...] = ()
    #: What the search was to find and how its bounds were classified, where RFC 9971 asks for it.
    goal: GoalRecord | None = None

    def at_capacity(self) -> Observation | None:
        """The trial to take the figures besides the capacity from; where nothing held, of the lowest load tried."""
        if self.proof:
            return self.proof
        tried = [step.observation for step in self.steps if step.observation.state == "bad"]
        return min(tried, key=lambda seen: seen.load, default=None)


def conclude(
    proof: Observation | None,
    above: Observation | None,
    steps: Sequence[Step],
    end: float,
    note: str = "",
    goal: GoalRecord | None = None,
) -> SearchResult:
    """The result of a search that finished: `proof` held, `above` did not; None where there is no such load.
    The range was searched up to `end`; `note` is added to the reason."""
    lower, upper = proof.load if proof else 0.0, above.load if above else None
    limited_by: Literal["dut", "generator", "range"] = "dut"
    if above is None:
        limited_by = "range"
        reason = f"every load up to {format_rate(lower or end)} held; the range of the campaign ends there{note}"
    elif above.state == "invalid":
        limited_by = "generator"
        reason = f"at {format_rate(above.load)} the generator was the limit: {above.reason}{note}"
    else:
        held = f"{format_rate(lower)} held, " if proof else ""
        reason = f"{held}{format_rate(above.load)} did not{'' if proof else ' hold'}: {above.reason}{note}"
    capacity = proof.rate if proof else 0.0
    return SearchResult(capacity, upper, limited_by, reason, proof, tuple(steps), (capacity,), goal)


def broken_off(proof: Observation | None, upper: float | None, steps: Sequence[Step], reason: str) -> SearchResult:
    """The result of a search that a fault ended: what was known until then."""
    capacity = proof.rate if proof else 0.0
    return SearchResult(capacity, upper, "fault", reason, proof, tuple(steps), (capacity,))


def repeat(times: int, search_once: Callable[[float | None], SearchResult]) -> SearchResult:
    """Search several times; the result is the one with the (lower) median capacity and has all trials.

    Each search is given what the one before found, to begin there; the first one None. A fault ends it at once. One
    repetition that the generator limited does not make the others worthless.
    """
    results: list[SearchResult] = []
    for _ in range(times):
        results.append(search_once((results[-1].capacity or None) if results else None))
        if results[-1].limited_by == "fault":
            return _with_trials_of(results, results[-1])
    by_capacity = sorted(results, key=lambda result: result.capacity)
    return _with_trials_of(results, by_capacity[(times - 1) // 2])


def _with_trials_of(results: Sequence[SearchResult], chosen: SearchResult) -> SearchResult:
    return replace(
        chosen,
        steps=tuple(step for result in results for step in result.steps),
        capacities=tuple(result.capacity for result in results),
    )


#: Trials at a floor in the mean: one where it is far away, four to six where it is near. Trials with an open loop below
#: the saturation rate, in the mean. Long trials of MLRsearch, at the bounds in the end.
_FLOOR_TRIALS, _TRIALS_BELOW, LONG_TRIALS = 2, 1.5, 3


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


#: The first step away from a hint, as a factor: a narrow width is not a reason to creep. From one that is not a guess
#: of the capacity, but only a promise, it is a large one.
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

    def __init__(self, trial_fn: TrialFn, lo: float, hi: float, settings: Bisection, trials: Trials) -> None:
        self.trial_fn, self.lo, self.hi, self.settings, self.trials = trial_fn, lo, hi, settings, trials
        self.made: dict[float, list[Made]] = {}
        self.iterations_left = settings.max_iterations
        self.hinted = False
        #: The load that the final trial held.
        self.confirmed: float | None = None
        # One trial classifies a load; of several, more bad than good ones make it too high.
        self.goal = Goal(settings.final_duration or settings.trial_duration, duration_sum_s=0.0, exceed_ratio=0.5)

    def run(self, hint: float | None, *, rough: bool = False) -> SearchResult:
        """Search; see `search` for the arguments."""
        self.hinted = hint is not None
        try:
            if self.settings.start == "max":
                self._try(self.hi, "search")
            if hint is not None and self.settings.relative_width is not None and self.lo < hint < self.hi:
                self._bracket(hint, ROUGH_STRIDE if rough else STRIDE)
            while self.iterations_left > 0 and not self._near_enough():
                self._try(self._between(), "search")
            self._confirm()
        except TrialFault as fault:
            return broken_off(self._proof(), self._upper(), self.trials.steps, str(fault))
        return conclude(self._proof(), self._above(), self.trials.steps, self.hi)

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
        """Try a load; whether it held. Beyond what the generator can offer every trial is invalid: the range ends below
        such a load. The procedure of 2022 (without a width) repeats none."""
        final = self.settings.final_duration if phase == "final" else None
        duration = final or self.settings.trial_duration
        if phase == "search":
            self.iterations_left -= 1

        def note(seen: Observation) -> float:
            self.made.setdefault(load, []).append(Made(duration, seen))
            return 0.0 if seen.fault else self._left_s(phase, seen)

        return self.trials.make(
            phase, lambda _number: self.trial_fn(load, duration), load, note=note,
            again="recheck" if phase == "search" else phase,
            most=MOST_INVALID if self.settings.relative_width is not None else 1,
        ).good  # fmt: skip

    def _bracket(self, hint: float, stride: float) -> None:
        """Walk away from the hint until one trial holds and one does not."""
        if self._try(hint, "search"):
            self._walk(hint, upwards=True, stride=stride)
        elif self.trials.steps[-1].observation.trial.unit != "packets":  # else what was forwarded says where to go
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

    def _left_s(self, phase: Phase, last: Observation) -> float:
        """Seconds until the result, if all goes well: trials to come, each as costly besides its traffic as so far."""
        overhead_s = self.trials.overhead_s
        searches = 0 if phase == "final" or self._near_enough() else planned_trials(*self._bounds(), self.settings)
        if searches and self.hinted and None in (self._lower(), self._upper()):
            searches += TRIALS_TO_BRACKET
        searches = max(0, min(searches, self.iterations_left))
        left = searches * (self.settings.trial_duration + overhead_s)
        final = self.settings.final_duration
        longer = final is not None and (final > self.settings.trial_duration or phase == "final")
        if final is not None and longer and not (phase == "final" and last.good):
            left += final + overhead_s
        return left


def descend(
    trial_fn: TrialFn,
    saturation: float,
    hi: float,
    settings: SaturationSettings,
    trials: Trials,
    *,
    of_generator: bool = False,
) -> SearchResult:
    """Find a load that holds, at most `hi`, below the saturation rate: what a closed loop served is above what is held,
    so the first trial offers the campaign's share of it in an open loop, and each step down is twice as far as the one
    before; between the load that held then and the one that did not the middle is tried too. The saturation rate itself
    is the upper bound where nothing failed below it. Where no valid trial can be made at a load, nothing is known.
    `of_generator`: the generator was the limit of the closed loop, so what holds below its rate is a lower bound of
    what the DUT serves."""
    load, factor = min(saturation * settings.first, hi), settings.first
    held: Observation | None = None
    failed: Observation | None = None
    for left in reversed(range(settings.max_trials)):
        middle, first = held is not None, failed is None

        def ends(seen: Observation, left: int = left, middle: bool = middle, first: bool = first) -> bool:
            return not left or middle or (seen.good and first)

        try:
            seen = trials.make(
                "final", lambda _number, load=load: trial_fn(load, settings.final_duration), load,  # type: ignore[misc]
                note=lambda seen, ends=ends: 0.0 if ends(seen) else seen.trial.wall_s,  # type: ignore[misc]
            )  # fmt: skip
        except TrialFault as fault:
            return broken_off(held, saturation, trials.steps, str(fault))
        if seen.state == "invalid" and not held:
            found = conclude(None, seen, trials.steps, hi)
            return replace(found, upper=failed.load if failed else None)
        held, failed = (seen if seen.good else held), (seen if seen.state == "bad" else failed)
        if ends(seen):
            break
        if held and failed:
            load = math.sqrt(held.load * failed.load)
        else:
            load, factor = load * factor, factor * factor
    if failed or not held:
        return conclude(held, failed, trials.steps, hi)
    found = conclude(held, None, trials.steps, hi)
    if load >= hi:
        return found
    if of_generator:
        reason = f"{format_rate(load)} held, and the generator serves no more than {format_rate(saturation)} itself"
        return replace(found, limited_by="generator", reason=reason)
    reason = f"{format_rate(load)} held, and a closed loop shows that the DUT serves {format_rate(saturation)}"
    return replace(found, upper=saturation, limited_by="dut", reason=reason)


def search(
    trial_fn: TrialFn,
    lo: float,
    hi: float,
    settings: SearchSettings,
    trials: Trials | None = None,
    *,
    hint: float | None = None,
    rough: bool = False,
    cold: bool = False,
) -> SearchResult:
    """Search the capacity from `lo` to `hi`, in the profile's unit per second. `trials`: a recorder without any yet.

    With a `hint` (the saturation rate, the capacity of a like topology) it begins there and widens its steps until the
    capacity is between two trials; a wrong hint costs trials, never truth. A bisection needs a relative width for it.
    `rough`: the hint is only what is promised, and no guess of the capacity. `cold`: nothing was offered to this DUT
    yet; a search with MLRsearch begins with a trial that does not count.
    Below the saturation rate, that is the hint, and has to be one.
    A fatal problem of the DUT or a `TestbedError` of a trial ends the search with `limited_by="fault"`.
    """
    trials = trials or Trials()
    if isinstance(settings, SaturationSettings):
        if hint is None:
            raise ValueError("no saturation rate to search below")
        return descend(trial_fn, hint, hi, settings, trials)
    if isinstance(settings, Mlr):
        # The library looks at the source of every module that was imported before it: half a second.
        from ctbench.measure.mlr import MlrSearch  # noqa: PLC0415

        return MlrSearch(trial_fn, lo, hi, settings, trials).run(hint, rough=rough, cold=cold)
    return BisectionSearch(trial_fn, lo, hi, settings, trials).run(hint, rough=rough)
