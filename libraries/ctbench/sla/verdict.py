"""The verdict: met, missed or not measured, with a sentence that a product manager understands.

The rules are those of design.md. Green always means: measured, and at or above the floor.
"""

from dataclasses import dataclass

from ctbench.base.units import format_margin, format_rate, format_ratio
from ctbench.measure.gate import GateResult
from ctbench.measure.result import SearchResult
from ctbench.results.record import Baseline, Measured, ThresholdResult, Word
from ctbench.sla.floor import Floor
from ctbench.sla.threshold import Threshold
from ctbench.traffic.generator import LoadUnit

#: A result below the floor that reaches this share of the generator's ceiling says nothing about the DUT.
NEAR_CEILING = 0.9

#: Conditions on every trial rather than results: a search goes up to them, so their margin is near zero by
#: construction and would hide that of the rates. One that is not kept counts all the same.
_CONDITIONS = ("loss_ratio", "setup_time_p99", "latency_p99")

_NAMES = {"cps": "new connections", "pps": "packets", "bps": "throughput", "setup_time_p99": "connection set-up (p99)",
          "latency_p99": "latency (p99)"}  # fmt: skip
_COUNTED: dict[LoadUnit, str] = {"connections": "new connections", "packets": "packets"}


@dataclass(frozen=True)
class Verdict:
    """What a test is worth."""

    word: Word
    #: One sentence.
    reason: str
    #: The worst of the thresholds, in percent; None when not measured.
    margin_pct: float | None
    #: Each threshold beside what was measured.
    thresholds: tuple[ThresholdResult, ...]

    @property
    def message(self) -> str:
        """Word and sentence, as a failing test says it."""
        return f"{self.word.capitalize()}: {self.reason}"


@dataclass(frozen=True)
class _Case:
    """What is judged: a result, the floor, and what there is to compare with."""

    result: SearchResult | GateResult
    floor: Floor
    ceiling: float | None
    baseline: Baseline | None

    @property
    def needed(self) -> float:
        """The rate that keeps the floor's own and its relative promise."""
        return self.floor.needed(self.baseline.rate if self.baseline else None)

    @property
    def promise(self) -> str:
        """That rate in words."""
        return format_rate(self.needed)


def judge(
    result: SearchResult | GateResult,
    floor: Floor,
    ceiling: float | None = None,
    baseline: Baseline | None = None,
    *,
    oversubscribed: bool = False,
    max_spread: float | None = None,
) -> Verdict:
    """Judge a result by its floor.

    `ceiling` is the generator's capacity over the cable with the same profile, in its unit per second; None
    when there is none to compare with. `baseline` is what a relative floor compares with. On an oversubscribed
    testbed nothing counts as measured, nor do repetitions whose capacities are farther apart than `max_spread`.
    """
    case = _Case(result, floor, ceiling, baseline)
    unusable = _unusable(result, oversubscribed=oversubscribed) or _scattered(result, max_spread)
    measured = result.measured
    if unusable or measured is None:
        return _not_measured(unusable, case)
    thresholds = _compare(measured, case)
    margin = _worst_margin(thresholds)
    failing = [threshold for threshold in thresholds if not threshold.met]
    known = [threshold for threshold in failing if threshold.metric != "relative" or threshold.measured is not None]
    held = bool(result.capacity) if isinstance(result, SearchResult) else result.passed is True
    if held and not known:
        if doubt := _baseline_doubt(case):
            return _not_measured(doubt, case)
        return Verdict("met", _praise(case, measured, margin), margin, thresholds)
    excuse = _excuse(case, measured)
    if excuse:
        return _not_measured(excuse, case)
    return Verdict("missed", _blame(case, known), margin, thresholds)


def _unusable(result: SearchResult | GateResult, *, oversubscribed: bool) -> str:
    """Why a result says nothing whatever it is; empty when it does."""
    if result.limited_by == "fault":
        return f"the measurement broke off: {_sentence(result.reason)}"
    if oversubscribed:
        return "threads share CPUs on this testbed (oversubscribe), so its rates say nothing"
    if result.measured is None or all(seen.trial.attempted == 0 for seen in result.observations):
        return result.reason or "nothing was offered"
    return ""


def _scattered(result: SearchResult | GateResult, max_spread: float | None) -> str:
    """Why repetitions that do not agree say nothing; empty when they do."""
    if max_spread is None or not isinstance(result, SearchResult) or result.spread is None:
        return ""
    if result.spread <= max_spread:
        return ""
    low, high = format_rate(min(result.capacities)), format_rate(max(result.capacities))
    return (
        f"{len(result.capacities)} searches found {low} to {high}, a spread of {format_ratio(result.spread)} where the "
        f"campaign allows {format_ratio(max_spread)}"
    )


def _baseline_doubt(case: _Case) -> str:
    """Why a relative promise that is not broken is not kept for certain either; empty when it is."""
    if case.floor.relative is None:
        return ""
    if case.baseline is None or not case.baseline.rate:
        why = f": {_sentence(case.baseline.doubt)}" if case.baseline and case.baseline.doubt else ""
        return f"the rate of {case.floor.relative.to}, to compare with, could not be measured{why}"
    if case.baseline.doubt:
        return (
            f"{case.baseline.key}, to compare with, does at least {format_rate(case.baseline.rate)}, perhaps more: "
            f"{_sentence(case.baseline.doubt)}"
        )
    return ""


def _excuse(case: _Case, measured: Measured) -> str:
    """Why a result below the floor says nothing about the DUT; empty when it does."""
    ceiling, promise = case.ceiling, case.promise
    if case.result.limited_by == "generator":
        return f"the traffic generator was the limit below the floor of {promise}: {_sentence(case.result.reason)}"
    if ceiling is not None and ceiling < case.needed:
        return f"the traffic generator reaches only {format_rate(ceiling)}, the floor is {promise}"
    if ceiling is not None and measured.rate >= NEAR_CEILING * ceiling:
        return (
            f"{format_rate(measured.rate)} is within 10 % of what the traffic generator can do "
            f"({format_rate(ceiling)}), and below the floor of {promise}"
        )
    if case.result.limited_by == "range":
        return (
            f"the campaign's range ended at {format_rate(measured.rate)}, where the floor of {promise} was not "
            "reached yet: raise loads.max in the campaign"
        )
    return ""


def _not_measured(reason: str, case: _Case) -> Verdict:
    measured = case.result.measured
    return Verdict("not measured", reason, None, _compare(measured, case) if measured else ())


def _compare(measured: Measured, case: _Case) -> tuple[ThresholdResult, ...]:
    """Hold every threshold against its figure. One that was not measured is not met."""
    times, latency = measured.setup_time_us, measured.latency_us
    base = case.baseline.rate if case.baseline else None
    figures = {
        "cps": measured.rate,
        "pps": measured.pps,
        "bps": measured.bps,
        "relative": measured.rate / base if base else None,
        "loss_ratio": measured.loss_ratio,
        "setup_time_p99": times.p99 / 1e6 if times else None,
        "latency_p99": latency.p99 / 1e6 if latency else None,
    }
    return tuple(_result(metric, threshold, figures[metric]) for metric, threshold in case.floor.thresholds.items())


def _result(metric: str, threshold: Threshold, figure: float | None) -> ThresholdResult:
    return ThresholdResult(
        metric=metric,
        threshold=threshold.text,
        limit=threshold.limit,
        measured=figure,
        margin_pct=None if figure is None else threshold.margin_pct(figure),
        met=figure is not None and threshold.holds(figure),
    )


def _worst_margin(thresholds: tuple[ThresholdResult, ...]) -> float | None:
    counted = [
        threshold.margin_pct
        for threshold in thresholds
        if threshold.margin_pct is not None and (threshold.metric not in _CONDITIONS or not threshold.met)
    ]
    return min(counted, default=None)


def _praise(case: _Case, measured: Measured, margin: float | None) -> str:
    compared = ""
    if case.floor.relative and case.baseline and case.baseline.rate:
        compared = f"; {case.baseline.relation(measured.rate, case.floor.relative.rate.limit)}"
    if isinstance(case.result, GateResult):
        return f"the floor of {case.promise} was held: {case.result.reason}{compared}"
    least = "at least " if case.result.limited_by in ("generator", "range") else ""
    above = f", {format_margin(margin)} against the floor of {case.promise}" if margin is not None else ""
    return f"{least}{format_rate(measured.rate)} {_COUNTED[measured.unit]}{above}{compared}"


def _blame(case: _Case, failing: list[ThresholdResult]) -> str:
    if isinstance(case.result, SearchResult) and not case.result.capacity:
        return f"not even the lowest load held, the floor is {case.promise}: {_sentence(case.result.reason)}"
    parts = [_shortfall(case, threshold) for threshold in failing if threshold.measured is not None]
    if isinstance(case.result, GateResult):
        parts.append(_sentence(case.result.reason))
    return "; ".join(parts)


def _shortfall(case: _Case, threshold: ThresholdResult) -> str:
    """By how much one threshold is missed."""
    assert threshold.measured is not None
    margin = f" ({format_margin(threshold.margin_pct)})" if threshold.margin_pct is not None else ""
    if threshold.metric == "relative" and case.baseline and case.baseline.rate:
        rate = threshold.measured * case.baseline.rate
        return f"{_COUNTED[case.floor.unit]}: {case.baseline.relation(rate, threshold.limit)}{margin}"
    show = case.floor.thresholds[threshold.metric].show
    bound = "at least" if threshold.threshold.startswith(">=") else "at most"
    name = _NAMES.get(threshold.metric, f"lost {case.floor.unit}")
    return f"{name}: {show(threshold.measured)} instead of {bound} {show(threshold.limit)}{margin}"


def _sentence(text: str) -> str:
    return text.rstrip(".")
