"""The verdict in words: what was met, what is missed and by how much, and why something is not decided."""

from dataclasses import dataclass, replace
from enum import StrEnum

from ctbench.base.units import format_margin
from ctbench.measure.procedure import Code, Decision, Outcome
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import COSTS, COUNTED, METRICS, SATURATION_OF, SERVED
from ctbench.results.record_model import ThresholdRecord
from ctbench.sla.floor import Floor

#: A result below the floor that reaches this share of the generator's ceiling says nothing about the DUT.
NEAR_CEILING = 0.9


class Reason(StrEnum):
    """What a verdict stands on besides what the trials decided (`ctbench.measure.procedure.Code`)."""

    #: No load that was tried held.
    LOWEST_LOAD_LOST = "lowest-load-lost"
    #: The generator cannot offer the floor; the DUT was seen to end below both.
    SATURATED = "dut-saturated"
    #: The generator, or the campaign's range, was the limit.
    NEAR_CEILING = "near-ceiling"
    CEILING_BELOW_FLOOR = "ceiling-below-floor"
    RANGE_ENDED = "range-ended"
    #: The promise is bound to another machine, or to another image.
    ANOTHER_MACHINE = "another-machine"
    ANOTHER_IMAGE = "another-image"
    #: A ratio that is more than the file says can be.
    #: No valid trial offered a load under the conditions of the floor.
    CONDITION_UNTRIED = "condition-untried"
    OVERSUBSCRIBED = "oversubscribed"
    #: The testbed file says so, and why.
    RATES_NOT_JUDGED = "rates-not-judged"
    SCATTERED = "scattered"


@dataclass(frozen=True)
class Judgement:
    """What is judged: a result, the floor, the generator's ceiling, and the DUT's machine."""

    outcome: Outcome
    floor: Floor
    ceiling: float | None
    machine: MachineFacts | None
    #: Of an emulated machine: what it booted.
    image: str = ""
    #: Why rates are not judged on this testbed; empty where they are.
    unjudged: str = ""

    @property
    def nothing_came(self) -> bool:
        """Whether loads were offered, and not one connection or packet came through: that is missed on any machine."""
        seen = [step.observation for step in self.outcome.steps]
        tried = [each.trial for each in seen if each.state != "invalid" and each.trial.attempted]
        return bool(tried) and not any(trial.completed for trial in tried)

    @property
    def promise(self) -> str:
        """The rate that is promised, in words; empty where none is."""
        return self.floor.metric.format(self.floor.main.limit) if self.floor.main else ""

    @property
    def result(self) -> float:
        """What was found; 0 where nothing was."""
        return self.outcome.result.value if self.outcome.result else 0.0

    @property
    def nothing_held(self) -> bool:
        """Whether not even the lowest load held."""
        return not (self.outcome.kept_conditions or self.result or self.outcome.decisions)

    def show(self, value: float) -> str:
        """A value of what the test looked for, in words."""
        return self.outcome.metric.format(value)

    @property
    def own_limit(self) -> float | None:
        """The rate at which the DUT itself was seen to end, well below what the generator can do; None where it was
        not seen."""
        found = self.outcome.figures.get(SATURATION_OF[self.floor.profile.kind].name)
        limit = self.result if self.outcome.limited_by == "dut" else found.value if found else None
        return limit if limit is not None and self.ceiling and limit < NEAR_CEILING * self.ceiling else None

    @property
    def is_beyond_generator(self) -> bool:
        """Whether the floor is more than the generator can offer."""
        return self.ceiling is not None and self.floor.load(0.0) > self.ceiling


# --- what a missed figure does not say of the DUT: a decision for None, where there is such a reason ------------------


def is_made_elsewhere(judgement: Judgement, each: ThresholdRecord) -> bool:
    """Whether a figure was promised of another machine, or of another image, than this one."""
    if each.metric not in COUNTED and judgement.nothing_came:
        return False
    if each.metric in COSTS:
        return judgement.floor.image != judgement.image
    machine = judgement.floor.machine
    return bool(each.bound_to and machine and machine.differs_from(judgement.machine))


def made_elsewhere(judgement: Judgement, each: ThresholdRecord) -> Decision | None:
    """Why a threshold for which `is_made_elsewhere` holds is not judged here by a miss."""
    if not each.elsewhere:
        return None
    metric, machine = METRICS[each.metric], judgement.floor.machine
    limit, found = metric.format(each.limit), metric.format(each.measured) if each.measured is not None else ""
    if each.metric in COSTS:
        here = f"this is image {judgement.image or 'unknown'}{f'; this one found {found}' if found else ''}"
        text = f"this floor ({limit}) was made with {each.bound_to}, and {here}"
        return Decision(None, text, code=Reason.ANOTHER_IMAGE)
    differs = machine.differs_from(judgement.machine) if machine else ""
    text = f"this floor ({limit}) was made on {each.bound_to}; {differs}{f', and reaches {found}' if found else ''}"
    return Decision(None, text, code=Reason.ANOTHER_MACHINE)


def not_judged(judgement: Judgement, each: ThresholdRecord) -> Decision | None:
    """Why a threshold that follows from how fast the testbed is says nothing of the DUT, kept or not."""
    if not judgement.unjudged or each.metric in COUNTED or judgement.nothing_came:
        return None
    text = f"rates are not judged on this testbed: {as_part(judgement.unjudged)}"
    return Decision(None, text, code=Reason.RATES_NOT_JUDGED)


def not_attributable(judgement: Judgement, *, is_promise: bool) -> Decision | None:
    """Why a threshold that its figure does not keep says nothing about the DUT."""
    outcome = judgement.outcome
    promise = f" of {judgement.promise}" if judgement.promise else ""
    if outcome.limited_by == "fault":
        return Decision(None, f"the measurement broke off: {as_part(outcome.reason)}", code=Code.FAULT)
    if outcome.limited_by == "generator":
        text = f"the traffic generator was the limit below the floor{promise}: {as_part(outcome.reason)}"
        return Decision(None, text, code=Code.GENERATOR)
    if near := near_ceiling(judgement):
        return near
    if judgement.is_beyond_generator and judgement.own_limit is None and is_promise:
        reached = judgement.show(judgement.ceiling or 0.0)
        text = f"the traffic generator reaches only {reached}, the floor is {judgement.promise}"
        return Decision(None, text, code=Reason.CEILING_BELOW_FLOOR)
    if outcome.limited_by == "range":
        text = (
            f"the campaign's range ended at {judgement.show(judgement.result)}, where the floor{promise} was not "
            "reached yet: raise loads.max in the campaign"
        )
        return Decision(None, text, code=Reason.RANGE_ENDED)
    return None


def near_ceiling(judgement: Judgement) -> Decision | None:
    """Why a result below the floor may be the generator's; None where it is well below what that can do."""
    if judgement.ceiling is None or judgement.result < NEAR_CEILING * judgement.ceiling:
        return None
    promise = f" of {judgement.promise}" if judgement.promise else ""
    text = (
        f"{judgement.show(judgement.result)} is within 10 % of what the traffic generator can do "
        f"({judgement.show(judgement.ceiling)}), and below the floor{promise}"
    )
    return Decision(None, text, code=Reason.NEAR_CEILING)


def saturated(judgement: Judgement, each: ThresholdRecord) -> Decision | None:
    """Of a floor that the generator cannot offer, so that no trial could be made at it: missed all the same where the
    DUT's own limit was seen below what the generator can do."""
    if judgement.ceiling is None or judgement.own_limit is None or not judgement.is_beyond_generator:
        return None
    text = (
        f"the DUT saturates at {judgement.show(judgement.own_limit)}, where the traffic generator reaches "
        f"{judgement.show(judgement.ceiling)}; the floor of {METRICS[each.metric].format(each.limit)} is above both"
    )
    return Decision(kept=False, reason=text, code=Reason.SATURATED)


def untried(judgement: Judgement) -> Decision:
    """Of a condition that no valid trial had to keep, such as the limit on what is lost."""
    why = f": {as_part(judgement.outcome.reason)}" if judgement.outcome.limited_by == "generator" else ""
    return Decision(None, f"no valid trial tells what is lost{why}", code=Reason.CONDITION_UNTRIED)


# --- sentences --------------------------------------------------------------------------------------------------------


def met_text(judgement: Judgement, thresholds: tuple[ThresholdRecord, ...]) -> str:
    """How everything was kept."""
    compared = [each.relation for each in thresholds if each.kind != "absolute" and each.measured is not None]
    main = [_held(judgement, each) for each in thresholds if each.metric == judgement.floor.metric.name]
    served = [_kept(each) for each in thresholds if each.metric in SERVED]
    return "; ".join([*main, *served, *compared])


def _kept(each: ThresholdRecord) -> str:
    """How much above its floor a figure is."""
    metric, margin = METRICS[each.metric], format_margin(each.margin_pct or 0.0)
    found, floor = metric.format(each.measured or 0.0), metric.format(each.limit)
    return f"{metric.title}: {found}, {margin} against the floor of {floor}"


def _held(judgement: Judgement, main: ThresholdRecord) -> str:
    """How a rate that is promised was kept."""
    outcome, metric = judgement.outcome, judgement.outcome.metric
    if outcome.limited_by == "floor":
        return f"the floor of {judgement.promise} was held: {as_part(main.reason or outcome.reason)}"
    least = "at least " if outcome.limited_by in ("generator", "range") else ""
    above = ""
    if main.margin_pct is not None:
        above = f", {format_margin(main.margin_pct)} against the floor of {judgement.promise}"
    why = f" ({main.reason})" if main.reason else ""
    return f"{metric.title}: {least}{metric.format(judgement.result)}{above}{why}"


def missed_text(judgement: Judgement, failing: list[ThresholdRecord]) -> str:
    """What is missed."""
    outcome = judgement.outcome
    if judgement.nothing_held and all(each.kind == "absolute" for each in failing):
        floor = f", the floor is {judgement.promise}" if judgement.promise else ""
        return f"not even the lowest load held{floor}: {as_part(outcome.reason)}"
    failing, trials = _each_cause_once(judgement, failing)
    to_say = [each for each in failing if not _repeats(each, failing)]
    parts = [_shortfall(judgement, each) for each in _each_reason_once(to_say)] + trials
    if outcome.limited_by == "floor" and not outcome.decisions:
        parts.append(as_part(outcome.reason))
    return "; ".join(parts) or "what was promised was not measured"


def _each_cause_once(judgement: Judgement, failing: list[ThresholdRecord]) -> tuple[list[ThresholdRecord], list[str]]:
    """Where a condition tells what was wrong with the trials at the floor, the rates do not: those that fell short say
    how many trials held, and in the place of those that did not, this is said once at the end."""
    trials = judgement.outcome.decisions.get(judgement.floor.metric.name)
    if trials is None or all(each.is_promise or each.measured is None for each in failing):
        return failing, []
    by_trials = [each for each in failing if each.reason == as_part(trials.whole)]
    held = [each for each in by_trials if _keeps(each)]
    said = [
        replace(each, reason=as_part(trials.reason)) if each in by_trials else each
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


def _each_reason_once(failing: list[ThresholdRecord]) -> list[ThresholdRecord]:
    """The same, without a reason that one before it has: the same trials decided both."""
    found: list[ThresholdRecord] = []
    for each in failing:
        said = each.measured is not None and any(one.reason == each.reason for one in failing[: failing.index(each)])
        found.append(replace(each, reason="") if said else each)
    return found


def _shortfall(judgement: Judgement, threshold: ThresholdRecord) -> str:
    """By how much one threshold is missed."""
    metric = METRICS[threshold.metric]
    margin = f" ({format_margin(threshold.margin_pct)})" if threshold.margin_pct is not None else ""
    if threshold.measured is None:
        return f"{metric.title}: {threshold.reason}"
    if threshold.kind != "absolute":
        return f"{judgement.floor.metric.title}: {threshold.relation}{margin}"
    title = f"lost {judgement.floor.profile.kind}" if threshold.metric == "loss_ratio" else metric.title
    found, limit = metric.format(threshold.measured), metric.format(threshold.limit)
    if threshold.reason and _keeps(threshold):
        return f"{title}: {limit} not held: {threshold.reason}"  # the evidence says so, and not the figure
    why = f": {threshold.reason}" if threshold.reason else ""
    return f"{title}: {found} instead of {metric.bound} {limit}{margin}{why}"


def undecided_text(undecided: list[ThresholdRecord]) -> str:
    """Why nothing decided some thresholds, each reason once; of rates that were made elsewhere, the first stands for
    all."""
    elsewhere = [each for each in undecided if each.elsewhere]
    return "; ".join(dict.fromkeys(each.reason for each in undecided if each not in elsewhere[1:]))


def as_part(text: str) -> str:
    """A sentence as a part of another one."""
    return text.rstrip(".")
