"""The search for the capacity: by bisection, with MLRsearch or below the saturation rate, as the campaign says."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctbench.base.units import format_rate
from ctbench.measure.campaign import Bisection, Mlr, SaturationSettings, SearchSettings
from ctbench.measure.observation import Observation
from ctbench.measure.trial import MOST_INVALID, Runner, TrialFault, Trials
from ctbench.results.evidence import GoalRecord
from ctbench.traffic.loads import Rate


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
    #: All trials in their order.
    trials: tuple[Observation, ...]
    #: Capacity of each repetition; one entry when there was no other.
    capacities: tuple[float, ...] = ()
    #: What the search was to find and how its bounds were classified, where RFC 9971 asks for it.
    goal: GoalRecord | None = None
    #: What it found where more may be lost, of a search that was asked for both.
    partial: "SearchResult | None" = None

    def at_capacity(self) -> Observation | None:
        """The trial to take the figures besides the capacity from; where nothing held, of the lowest load tried."""
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
    """The result of a search that finished: `proof` held, `above` did not; None where there is no such load.
    The range was searched up to `end`; `note` is added to the reason."""
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
    """The result of a search that a fault ended: what was known until then."""
    capacity = proof.rate if proof else 0.0
    return SearchResult(capacity, upper, "fault", reason, proof, tuple(trials), (capacity,))


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
        trials=tuple(seen for result in results for seen in result.trials),
        capacities=tuple(result.capacity for result in results),
    )


def bisect(runner: Runner, lo: float, hi: float, settings: Bisection, trials: Trials) -> SearchResult:
    """Halve the range, again and again; one trial classifies a load. Beyond what the generator can offer every trial is
    invalid: the range ends below such a load. The procedure of 2022 (without a width) repeats none."""
    width = settings.relative_width
    most = MOST_INVALID if width is not None else 1
    held: Observation | None = None
    failed: Observation | None = None
    for _ in range(settings.max_iterations):
        lower, upper = held.load if held else lo, failed.load if failed else hi
        if width is not None and upper <= lower * (1 + width):
            break
        load = math.sqrt(lower * upper) if settings.middle == "geometric" else (lower + upper) / 2
        try:
            seen = trials.offer(runner, Rate(load), settings.trial_duration, "search", most=most)
        except TrialFault as fault:
            return broken_off(held, failed.load if failed else None, trials.made, str(fault))
        if seen.good:
            held = seen
        else:
            failed = seen
    return conclude(held, failed, trials.made, hi)


def descend(
    runner: Runner,
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
    runner: Runner,
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
    """Search the capacity from `lo` to `hi`, in the profile's unit per second. `trials`: a recorder without any yet.

    With a `hint` (the saturation rate, the capacity of a like topology) MLRsearch begins there; a wrong hint costs
    trials, never truth. `rough`: the hint is only what is promised, and no guess of the capacity. `cold`: nothing was
    offered to this DUT yet; a search with MLRsearch begins with a trial that does not count.
    `partial_drop`: MLRsearch looks in the same run for what is held where so much may be lost (ratio); 0: for nothing
    else.
    Below the saturation rate, that is the hint, and has to be one.
    A fatal problem of the DUT or a `TestbedError` of a trial ends the search with `limited_by="fault"`.
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
