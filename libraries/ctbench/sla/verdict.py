"""The verdict: met, missed or not measured, with a sentence that a product manager understands.

The rules are those of design.md. Green always means: measured, and at or above the floor.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ctbench.base.units import format_margin, format_ratio
from ctbench.measure.procedure import Outcome
from ctbench.results.figure import Figure
from ctbench.results.metrics import METRICS
from ctbench.results.record import Baseline, ThresholdRecord, Word
from ctbench.sla.floor import Floor
from ctbench.sla.threshold import Threshold

#: A result below the floor that reaches this share of the generator's ceiling says nothing about the DUT.
NEAR_CEILING = 0.9


@dataclass(frozen=True)
class Verdict:
    """What a test is worth."""

    word: Word
    #: One sentence.
    reason: str
    #: The worst of the thresholds, in percent; None when not measured.
    margin_pct: float | None
    #: Each threshold with what was measured.
    thresholds: tuple[ThresholdRecord, ...]

    @classmethod
    def not_measured(cls, reason: str, floor: Floor) -> "Verdict":
        """The verdict of a test that broke off before there was a result."""
        return cls("not measured", reason, None, compare({}, floor))


@dataclass(frozen=True)
class _Case:
    """What is judged: a result, the floor, and what there is to compare with."""

    outcome: Outcome
    floor: Floor
    ceiling: float | None
    baseline: Baseline | None

    @property
    def needed(self) -> float:
        """What keeps the floor's own and its relative promise."""
        return self.floor.needed(self.baseline.rate if self.baseline else None)

    @property
    def promise(self) -> str:
        """That in words."""
        return self.show(self.needed)

    @property
    def result(self) -> float:
        """What was found."""
        return self.outcome.result.value if self.outcome.result else 0.0

    def show(self, value: float) -> str:
        """A value of what the test looked for, in words."""
        return self.outcome.metric.format(value)


def judge(
    outcome: Outcome,
    floor: Floor,
    ceiling: float | None = None,
    baseline: Baseline | None = None,
    *,
    oversubscribed: bool = False,
    max_spread: float | None = None,
) -> Verdict:
    """Judge an outcome by its floor.

    `ceiling` is the generator's capacity over the cable with the same profile, in its unit per second; None
    when there is none to compare with. `baseline` is what a relative floor compares with. On an oversubscribed
    testbed nothing counts as measured, nor do repetitions whose results are farther apart than `max_spread`.
    """
    case = _Case(outcome, floor, ceiling, baseline)
    thresholds = compare(outcome.figures, floor)
    unusable = _unusable(outcome, oversubscribed=oversubscribed) or _scattered(outcome, max_spread)
    if unusable or not outcome.figures:
        return Verdict("not measured", unusable, None, thresholds)
    margin = _worst_margin(thresholds)
    failing = [each for each in thresholds if not each.met]
    known = [each for each in failing if each.metric != "ratio" or each.measured is not None]
    if outcome.held and not known:
        if doubt := _baseline_doubt(case):
            return Verdict("not measured", doubt, None, thresholds)
        return Verdict("met", _praise(case, thresholds, margin), margin, thresholds)
    if excuse := _excuse(case):
        return Verdict("not measured", excuse, None, thresholds)
    return Verdict("missed", _blame(case, known), margin, thresholds)


def compare(figures: Mapping[str, Figure], floor: Floor) -> tuple[ThresholdRecord, ...]:
    """Compare every threshold with its figure. One that was not measured is not met."""
    return tuple(
        _compared(threshold, figures.get(name), floor.relative_to if name == "ratio" else None)
        for name, threshold in floor.thresholds.items()
    )


def _compared(threshold: Threshold, figure: Figure | None, to: str | None) -> ThresholdRecord:
    metric, value = threshold.metric, figure.value if figure else None
    return ThresholdRecord(
        metric=metric.name,
        operator=metric.operator,
        limit=threshold.limit,
        written=threshold.text,
        to=to,
        measured=value,
        margin_pct=None if value is None else metric.margin_pct(value, threshold.limit),
        met=value is not None and threshold.holds(value),
    )


def _unusable(outcome: Outcome, *, oversubscribed: bool) -> str:
    """Why an outcome says nothing whatever it is; empty when it does."""
    if outcome.limited_by == "fault":
        return f"the measurement broke off: {_sentence(outcome.reason)}"
    if oversubscribed:
        return "threads share CPUs on this testbed (oversubscribe), so its rates say nothing"
    if not outcome.figures or all(step.observation.trial.attempted == 0 for step in outcome.steps):
        return outcome.reason or "nothing was offered"
    return ""


def _scattered(outcome: Outcome, max_spread: float | None) -> str:
    """Why repetitions that do not agree say nothing; empty when they do."""
    found = outcome.result
    if max_spread is None or found is None or found.spread is None or found.spread <= max_spread:
        return ""
    low, high = (outcome.metric.format(end(found.samples)) for end in (min, max))
    return (
        f"{len(found.samples)} searches found {low} to {high}, a spread of {format_ratio(found.spread)} where the "
        f"campaign allows {format_ratio(max_spread)}"
    )


def _baseline_doubt(case: _Case) -> str:
    """Why a relative promise that is not broken is not kept for certain either; empty when it is."""
    if not case.floor.relative_to:
        return ""
    if case.baseline is None or not case.baseline.rate:
        why = f": {_sentence(case.baseline.doubt)}" if case.baseline and case.baseline.doubt else ""
        return f"the rate of {case.floor.relative_to}, to compare with, could not be measured{why}"
    if case.baseline.doubt:
        return (
            f"{case.baseline.key}, to compare with, does at least {case.show(case.baseline.rate)}, perhaps more: "
            f"{_sentence(case.baseline.doubt)}"
        )
    return ""


def _excuse(case: _Case) -> str:
    """Why a result below the floor says nothing about the DUT; empty when it does."""
    ceiling, promise, found = case.ceiling, case.promise, case.show(case.result)
    if case.outcome.limited_by == "generator":
        return f"the traffic generator was the limit below the floor of {promise}: {_sentence(case.outcome.reason)}"
    if ceiling is not None and ceiling < case.needed:
        return f"the traffic generator reaches only {case.show(ceiling)}, the floor is {promise}"
    if ceiling is not None and case.result >= NEAR_CEILING * ceiling:
        return (
            f"{found} is within 10 % of what the traffic generator can do ({case.show(ceiling)}), and below the floor "
            f"of {promise}"
        )
    if case.outcome.limited_by == "range":
        return (
            f"the campaign's range ended at {found}, where the floor of {promise} was not reached yet: raise loads.max "
            "in the campaign"
        )
    return ""


def _worst_margin(thresholds: tuple[ThresholdRecord, ...]) -> float | None:
    """A search goes up to the conditions, so their margin is near zero by construction and would hide that of the
    promises. One that is not kept counts all the same."""
    counted = [
        each.margin_pct
        for each in thresholds
        if each.margin_pct is not None and (METRICS[each.metric].role == "promise" or not each.met)
    ]
    return min(counted, default=None)


def _praise(case: _Case, thresholds: tuple[ThresholdRecord, ...], margin: float | None) -> str:
    ratio = next((each for each in thresholds if each.metric == "ratio"), None)
    compared = f"; {_relation(case, ratio)}" if ratio and ratio.measured is not None else ""
    if case.outcome.limited_by == "floor":
        return f"the floor of {case.promise} was held: {case.outcome.reason}{compared}"
    metric = case.outcome.metric
    least = "at least " if case.outcome.limited_by in ("generator", "range") else ""
    above = f", {format_margin(margin)} against the floor of {case.promise}" if margin is not None else ""
    return f"{metric.title}: {least}{metric.format(case.result)}{above}{compared}"


def _blame(case: _Case, failing: list[ThresholdRecord]) -> str:
    if not case.outcome.held and not case.result:
        return f"not even the lowest load held, the floor is {case.promise}: {_sentence(case.outcome.reason)}"
    parts = [_shortfall(case, each) for each in failing if each.measured is not None]
    if case.outcome.limited_by == "floor":
        parts.append(_sentence(case.outcome.reason))
    return "; ".join(parts)


def _shortfall(case: _Case, threshold: ThresholdRecord) -> str:
    """By how much one threshold is missed."""
    assert threshold.measured is not None
    metric = METRICS[threshold.metric]
    margin = f" ({format_margin(threshold.margin_pct)})" if threshold.margin_pct is not None else ""
    if threshold.metric == "ratio":
        return f"{case.outcome.metric.title}: {_relation(case, threshold)}{margin}"
    title = f"lost {case.floor.profile.kind}" if threshold.metric == "loss_ratio" else metric.title
    found, limit = metric.format(threshold.measured), metric.format(threshold.limit)
    return f"{title}: {found} instead of {metric.bound} {limit}{margin}"


def _relation(case: _Case, ratio: ThresholdRecord) -> str:
    """How a rate compares with that of another topology."""
    assert case.baseline and ratio.measured is not None
    return case.baseline.relation(ratio.measured, ratio.limit, case.outcome.metric)


def _sentence(text: str) -> str:
    return text.rstrip(".")
