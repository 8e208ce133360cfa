"""The verdict in words: what was met, what is missed and by how much, and why something is not decided."""

from ctbench.base.units import format_margin
from ctbench.results.metrics import METRICS
from ctbench.results.promised import ThresholdRecord
from ctbench.sla.case import Case, as_part


def praise(case: Case, thresholds: tuple[ThresholdRecord, ...]) -> str:
    """How everything was kept."""
    compared = [each.relation for each in thresholds if each.kind != "absolute" and each.measured is not None]
    main = next((each for each in thresholds if each.metric == case.floor.metric.name), None)
    if main is None:
        return "; ".join(compared)
    return "; ".join([_held(case, main), *compared])


def _held(case: Case, main: ThresholdRecord) -> str:
    """How a rate that is promised was kept."""
    if case.outcome.limited_by == "floor":
        return f"the floor of {case.promise} was held: {as_part(main.reason or case.outcome.reason)}"
    metric = case.outcome.metric
    least = "at least " if case.outcome.limited_by in ("generator", "range") else ""
    above = ""
    if main.margin_pct is not None:
        above = f", {format_margin(main.margin_pct)} against the floor of {case.promise}"
    why = f" ({main.reason})" if main.reason else ""
    return f"{metric.title}: {least}{metric.format(case.result)}{above}{why}"


def blame(case: Case, failing: list[ThresholdRecord]) -> str:
    """What is missed."""
    relative = any(each.kind != "absolute" for each in failing)
    if not case.outcome.held and not case.result and not relative and not case.outcome.decisions:
        floor = f", the floor is {case.promise}" if case.promise else ""
        return f"not even the lowest load held{floor}: {as_part(case.outcome.reason)}"
    failing, trials = _each_cause_once(case, failing)
    parts = [_shortfall(case, each) for each in failing if not _repeats(each, failing)] + trials
    if case.outcome.limited_by == "floor" and not case.outcome.decisions:
        parts.append(as_part(case.outcome.reason))
    return "; ".join(parts) or "what was promised was not measured"


def _each_cause_once(case: Case, failing: list[ThresholdRecord]) -> tuple[list[ThresholdRecord], list[str]]:
    """Where a condition tells what was wrong with the trials at the floor, the rates do not: those that fell short say
    how many trials held, and in the place of those that did not, this is said once at the end."""
    trials = case.outcome.decisions.get(case.floor.metric.name)
    if trials is None or all(each.is_promise or each.measured is None for each in failing):
        return failing, []
    by_trials = [each for each in failing if each.reason == as_part(trials.whole)]
    held = [each for each in by_trials if _keeps(each)]
    said = [
        each.model_copy(update={"reason": as_part(trials.reason)}) if each in by_trials else each
        for each in failing
        if each not in held
    ]
    return said, [as_part(trials.reason)] if held and len(held) == len(by_trials) else []


def _keeps(each: ThresholdRecord) -> bool:
    """Whether its own figure would have kept a threshold."""
    return each.measured is not None and METRICS[each.metric].keeps(each.measured, each.limit)


def _repeats(each: ThresholdRecord, failing: list[ThresholdRecord]) -> bool:
    """Whether there is nothing to say of a threshold that was not said of one before it: the same trials decided both,
    and its own figure would have kept it."""
    if each.measured is None:
        return not each.reason
    before = failing[: failing.index(each)]
    return bool(each.reason) and _keeps(each) and any(one.reason == each.reason for one in before)


def doubts(undecided: list[ThresholdRecord]) -> str:
    """Why nothing decided some thresholds, each reason once; of rates that were made elsewhere, the first stands for
    all."""
    elsewhere = [each for each in undecided if each.elsewhere]
    return "; ".join(dict.fromkeys(each.reason for each in undecided if each not in elsewhere[1:]))


def _shortfall(case: Case, threshold: ThresholdRecord) -> str:
    """By how much one threshold is missed."""
    metric = METRICS[threshold.metric]
    margin = f" ({format_margin(threshold.margin_pct)})" if threshold.margin_pct is not None else ""
    if threshold.measured is None:
        return f"{metric.title}: {threshold.reason}"
    if threshold.kind != "absolute":
        return f"{case.floor.metric.title}: {threshold.relation}{margin}"
    title = f"lost {case.floor.profile.kind}" if threshold.metric == "loss_ratio" else metric.title
    found, limit = metric.format(threshold.measured), metric.format(threshold.limit)
    if threshold.reason and _keeps(threshold):
        return f"{title}: {limit} not held: {threshold.reason}"  # the evidence says so, and not the figure
    why = f": {threshold.reason}" if threshold.reason else ""
    return f"{title}: {found} instead of {metric.bound} {limit}{margin}{why}"
