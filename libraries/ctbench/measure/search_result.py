"""Loads classified by all of their trials, as RFC 9971 asks: its code for load classification and for the conditional
throughput, with its names.

A trial is low-loss where it is good. One that says nothing about the DUT counts only where its load has no other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctbench.base.units import format_rate
from ctbench.measure.observation import Observation
from ctbench.measure.trial import Step
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

    @property
    def observations(self) -> tuple[Observation, ...]:
        """All trials in their order."""
        return tuple(step.observation for step in self.steps)

    def at_capacity(self) -> Observation | None:
        """The trial to take the figures besides the capacity from; where nothing held, of the lowest load tried."""
        if self.proof:
            return self.proof
        tried = [seen for seen in self.observations if seen.state == "bad"]
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
        held = f"{format_rate(lower)} held, {format_rate(above.load)} did not" if proof else ""
        reason = f"{held or f'no load held, not even {format_rate(above.load)}'}: {above.reason}{note}"
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
