"""The search for the capacity: by bisection, with MLRsearch or below the saturation rate, as the campaign says."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctbench.base.units import format_rate
from ctbench.measure.campaign import Bisection, Mlr, SaturationSettings, SearchSettings
from ctbench.measure.observation import Observation
from ctbench.measure.trial import MOST_INVALID, TrialFault, TrialRunner, Trials
from ctbench.results.evidence import GoalRecord
from ctbench.traffic.loads import Rate


@dataclass(frozen=True)
class SearchResult:
    """The result of a capacity search."""

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
    #: All trials in their order.
    trials: tuple[Observation, ...]
    #: Capacity of each repetition; one entry when there was no other.
    capacities: tuple[float, ...] = ()
    #: What the search was to find and how its bounds were classified, where RFC 9971 asks for it.
    goal: GoalRecord | None = None
    #: What it found where more may be lost, of a search that was asked for both.
    partial: "SearchResult | None" = None

    def at_capacity(self) -> Observation | None:
        """Return the trial for the other figures; where no load held, the bad one at the lowest load."""
        if self.proof:
            return self.proof
        tried = [seen for seen in self.trials if seen.state == "bad"]
        return min(tried, key=lambda seen: seen.load, default=None)


def conclude(
    proof: Observation | None,
    above: Observation | None,
    trials: Sequence[Observation],
    end: float,
    note: str = "",
    goal: GoalRecord | None = None,
) -> SearchResult:
    """Return the result of a finished search: `proof` held, `above` did not; None where there is no such trial. The
    range ended at `end`; `note` is added to the reason."""
    lower = proof.load if proof else 0.0
    # An invalid trial says nothing of the DUT: it bounds nothing.
    upper = above.load if above and above.state != "invalid" else None
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
    return SearchResult(capacity, upper, limited_by, reason, proof, tuple(trials), (capacity,), goal)


def broken_off(
    proof: Observation | None, upper: float | None, trials: Sequence[Observation], reason: str
) -> SearchResult:
    """Return the result of a search that a fault ended, with what was known until then."""
    capacity = proof.rate if proof else 0.0
    return SearchResult(capacity, upper, "fault", reason, proof, tuple(trials), (capacity,))


def repeat(times: int, search_once: Callable[[float | None], SearchResult]) -> SearchResult:
    """Search several times. Return the result with the (lower) median capacity, with the trials of all searches.

    Each search gets the capacity that the one before found, to begin there; the first gets None. A search that a fault
    ended is the last one, and the result. One search that the generator limited does not void the others.
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
        trials=tuple(seen for result in results for seen in result.trials),
        capacities=tuple(result.capacity for result in results),
    )


def bisect(runner: TrialRunner, lo: float, hi: float, settings: Bisection, trials: Trials) -> SearchResult:
    """Search by halving the range; one trial classifies a load. Beyond the generator's limit every trial is invalid, so
    an invalid trial ends the range at its load. The procedure of 2022 (without a width) repeats no invalid trial."""
    width = settings.relative_width
    most = MOST_INVALID if width is not None else 1
    held: Observation | None = None
    failed: Observation | None = None
    lost: Observation | None = None  # as `failed`, without invalid ones
    for _ in range(settings.max_iterations):
        lower, upper = held.load if held else lo, failed.load if failed else hi
        if width is not None and upper <= lower * (1 + width):
            break
        load = math.sqrt(lower * upper) if settings.middle == "geometric" else (lower + upper) / 2
        try:
            seen = trials.offer(runner, Rate(load), settings.trial_duration, "search", most=most)
        except TrialFault as fault:
            return broken_off(held, lost.load if lost else None, trials.made, str(fault))
        if seen.good:
            held = seen
        else:
            failed, lost = seen, lost if seen.state == "invalid" else seen
    return replace(conclude(held, failed, trials.made, hi), upper=lost.load if lost else None)


def descend(
    runner: TrialRunner,
    saturation: float,
    hi: float,
    settings: SaturationSettings,
    trials: Trials,
    *,
    of_generator: bool = False,
) -> SearchResult:
    """Find a load that holds below the saturation rate, `hi` at most, with trials in an open loop.

    A closed loop serves more than the DUT holds, so the first trial offers the campaign's share of its rate. Each step
    down is twice as far as the one before. After a step down that held, the geometric mean of that load and the one
    that failed is tried too. Where no load failed, the saturation rate is the upper bound. An invalid trial before any
    load held ends the search without a capacity. `of_generator`: the generator limited the closed loop, so a load that
    holds is a lower bound of what the DUT serves.
    """
    load, factor = min(saturation * settings.first, hi), settings.first
    held: Observation | None = None
    failed: Observation | None = None
    for _ in range(settings.max_trials):
        middle, first = held is not None, failed is None
        try:
            seen = trials.offer(runner, Rate(load), settings.final_duration, "final")
        except TrialFault as fault:
            bound = None if of_generator else saturation
            return broken_off(held, failed.load if failed else bound, trials.made, str(fault))
        if seen.state == "invalid" and not held:
            found = conclude(None, seen, trials.made, hi)
            return replace(found, upper=failed.load if failed else None)
        held, failed = (seen if seen.good else held), (seen if seen.state == "bad" else failed)
        if middle or (seen.good and first):
            break
        if held and failed:
            load = math.sqrt(held.load * failed.load)
        else:
            load, factor = load * factor, factor * factor
    if failed or not held:
        return conclude(held, failed, trials.made, hi)
    found = conclude(held, None, trials.made, hi)
    if math.isclose(load, hi) or load > hi:
        return found
    if of_generator:
        reason = f"{format_rate(load)} held, and the generator serves no more than {format_rate(saturation)} itself"
        return replace(found, limited_by="generator", reason=reason)
    reason = f"{format_rate(load)} held, and a closed loop shows that the DUT serves {format_rate(saturation)}"
    return replace(found, upper=saturation, limited_by="dut", reason=reason)


def search(
    runner: TrialRunner,
    lo: float,
    hi: float,
    settings: SearchSettings,
    trials: Trials | None = None,
    *,
    hint: float | None = None,
    rough: bool = False,
    cold: bool = False,
    partial_drop: float = 0.0,
) -> SearchResult:
    """Search the capacity from `lo` to `hi`, in the profile's unit per second. `trials`: an empty recorder.

    MLRsearch begins at the `hint` (the saturation rate, or the capacity of a like topology); a wrong hint costs trials,
    and does not change the result. `rough`: the hint is only the promised rate, and no guess of the capacity. `cold`:
    nothing was offered to this DUT yet, so MLRsearch begins with a warm-up trial. `partial_drop`: loss ratio of the
    partial drop rate that MLRsearch finds in the same run; 0: none. A search below the saturation rate needs that rate
    as its hint. A fatal problem of the DUT or a `TestbedError` of a trial ends the search with `limited_by="fault"`.
    """
    trials = trials or Trials()
    if isinstance(settings, SaturationSettings):
        if hint is None:
            raise ValueError("no saturation rate to search below")
        return descend(runner, hint, hi, settings, trials)
    if isinstance(settings, Mlr):
        # The library looks at the source of every module that was imported before it: half a second.
        from ctbench.measure.mlr import MlrSearch  # noqa: PLC0415

        return MlrSearch(runner, lo, hi, settings, trials, partial_drop).run(hint, rough=rough, cold=cold)
    return bisect(runner, lo, hi, settings, trials)
