"""The verdict: met, missed or not measured, with a sentence that a product manager understands.

The rules are those of design.md. Green always means: measured, and at or above the floor.
"""

from dataclasses import dataclass

from ctbench.measure.gate import GateResult
from ctbench.measure.search import SearchResult
from ctbench.results.record import Measured, ThresholdResult, Word
from ctbench.sla.floors import Floor
from ctbench.sla.threshold import Threshold
from ctbench.units import format_margin, format_rate

#: A result below the floor that reaches this share of the generator's ceiling says nothing about the DUT.
NEAR_CEILING = 0.9

#: Conditions on every trial rather than results: a search goes up to them, so their margin is near zero by
#: construction and would hide that of the rates. One that is not kept counts all the same.
_CONDITIONS = ("loss_ratio", "setup_time_p99")

_NAMES = {"cps": "new connections", "pps": "packets", "loss_ratio": "lost connections",
          "setup_time_p99": "connection set-up (p99)"}  # fmt: skip


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


def judge(
    result: SearchResult | GateResult, floor: Floor, ceiling: float | None = None, *, oversubscribed: bool = False
) -> Verdict:
    """Judge a result by its floor.

    `ceiling` is the generator's capacity over the cable with the same profile, connections per second; None
    when there is none to compare with. On an oversubscribed testbed nothing counts as measured.
    """
    if oversubscribed:
        reason = "threads share CPUs on this testbed (oversubscribe), so its rates say nothing"
        return _not_measured(reason, result, floor)
    if result.limited_by == "fault":
        return _not_measured(f"the measurement broke off: {_sentence(result.reason)}", result, floor)
    measured = result.measured
    if measured is None or all(seen.trial.attempted == 0 for seen in result.observations):
        return _not_measured(result.reason or "nothing was offered", result, floor)
    thresholds = _compare(measured, floor)
    margin = _worst_margin(thresholds)
    failing = [threshold for threshold in thresholds if not threshold.met]
    held = bool(result.capacity) if isinstance(result, SearchResult) else result.passed is True
    if held and not failing:
        return Verdict("met", _praise(result, measured, floor, margin), margin, thresholds)
    excuse = _excuse(result, measured, floor, ceiling)
    if excuse:
        return _not_measured(excuse, result, floor)
    return Verdict("missed", _blame(result, floor, failing), margin, thresholds)


def _excuse(result: SearchResult | GateResult, measured: Measured, floor: Floor, ceiling: float | None) -> str:
    """Why a result below the floor says nothing about the DUT; empty when it does."""
    if result.limited_by == "generator":
        return f"the traffic generator was the limit below the floor of {_promise(floor)}: {_sentence(result.reason)}"
    if ceiling is not None and ceiling < floor.cps.limit:
        return f"the traffic generator reaches only {format_rate(ceiling)}, the floor is {_promise(floor)}"
    if ceiling is not None and measured.cps >= NEAR_CEILING * ceiling:
        return (
            f"{format_rate(measured.cps)} is within 10 % of what the traffic generator can do "
            f"({format_rate(ceiling)}), and below the floor of {_promise(floor)}"
        )
    if result.limited_by == "range":
        return (
            f"the campaign's range ended at {format_rate(measured.cps)}, where the floor of {_promise(floor)} was not "
            "reached yet: raise loads.max in the campaign"
        )
    return ""


def _not_measured(reason: str, result: SearchResult | GateResult, floor: Floor) -> Verdict:
    measured = result.measured
    return Verdict("not measured", reason, None, _compare(measured, floor) if measured else ())


def _compare(measured: Measured, floor: Floor) -> tuple[ThresholdResult, ...]:
    """Hold every threshold against its figure. One that was not measured is not met."""
    times = measured.setup_time_us
    figures = {"cps": measured.cps, "pps": measured.pps, "loss_ratio": measured.loss_ratio,
               "setup_time_p99": times.p99 / 1e6 if times else None}  # fmt: skip
    return tuple(_result(metric, threshold, figures[metric]) for metric, threshold in floor.thresholds.items())


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


def _promise(floor: Floor) -> str:
    return floor.cps.show(floor.cps.limit)


def _praise(result: SearchResult | GateResult, measured: Measured, floor: Floor, margin: float | None) -> str:
    if isinstance(result, GateResult):
        return f"the floor of {_promise(floor)} was held: {result.reason}"
    least = "at least " if result.limited_by in ("generator", "range") else ""
    above = f", {format_margin(margin)} against the floor of {_promise(floor)}" if margin is not None else ""
    return f"{least}{format_rate(measured.cps)} new connections{above}"


def _blame(result: SearchResult | GateResult, floor: Floor, failing: list[ThresholdResult]) -> str:
    if isinstance(result, SearchResult) and not result.capacity:
        return f"not even the lowest load held, the floor is {_promise(floor)}: {_sentence(result.reason)}"
    parts = []
    for threshold in failing:
        if threshold.measured is not None:
            show = floor.thresholds[threshold.metric].show
            bound = "at least" if threshold.threshold.startswith(">=") else "at most"
            margin = f" ({format_margin(threshold.margin_pct)})" if threshold.margin_pct is not None else ""
            name = _NAMES[threshold.metric]
            parts.append(f"{name}: {show(threshold.measured)} instead of {bound} {show(threshold.limit)}{margin}")
    if isinstance(result, GateResult):
        parts.append(_sentence(result.reason))
    return "; ".join(parts)


def _sentence(text: str) -> str:
    return text.rstrip(".")
