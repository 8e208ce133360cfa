"""The verdict: met, missed or not measured, with a sentence that a product manager understands.

The rules are those of design.md. Green always means: measured, and every promise and condition kept. A promise is
decided by evidence of its own where the procedure has some (trials at the floor, the interval of a pair), else by its
figure. The test is missed if one is missed, else not measured if one is undecided, else met.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ctbench.base.units import format_ratio
from ctbench.measure.procedure import Code, Decision, Outcome
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import COSTS, METRICS, RATE_OF, SERVED, kind_of
from ctbench.results.record import Word
from ctbench.results.record_model import Figure, ThresholdRecord
from ctbench.sla import verdict_text as say
from ctbench.sla.floor import Floor, Threshold
from ctbench.sla.verdict_text import Judgement, Reason

#: What a trial was found good by.
_LOSSES = ("loss_ratio", "packet_loss_ratio")


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
    #: What it stands on, or why there is none: a `Reason` or a `Code`, of the first threshold that decided.
    code: StrEnum

    @classmethod
    def not_measured(cls, reason: str, floor: Floor, code: StrEnum = Code.FAULT) -> "Verdict":
        """The verdict of a test that broke off before there was a result."""
        nothing = Decision(None, reason, code=code)
        return cls("not measured", reason, None, tuple(_by(each, nothing) for each in compare({}, floor)), code)


def judge(
    outcome: Outcome,
    floor: Floor,
    ceiling: float | None = None,
    *,
    machine: MachineFacts | None = None,
    image: str = "",
    oversubscribed: bool = False,
    unjudged: str = "",
    max_spread: float | None = None,
) -> Verdict:
    """Judge an outcome by its floor.

    `ceiling` is the generator's capacity over the cable with the same profile, in its unit per second; None
    when nothing is known to compare with. `machine` is the DUT's, and `image` what an emulated one booted: floors may
    be bound to either. On an oversubscribed testbed nothing counts as measured, nor do repetitions whose results are
    farther apart than `max_spread`; nor does a rate where `unjudged` says why, unless nothing came through at all.
    """
    thresholds = compare(outcome.figures, floor, held=outcome.kept_conditions)
    unusable = _unusable(outcome, oversubscribed=oversubscribed)
    if nothing := unusable or _scattered(outcome, max_spread):
        left = tuple(_by(each, nothing) for each in thresholds) if unusable else thresholds
        return Verdict("not measured", nothing.reason, None, left, nothing.code)
    judgement = Judgement(outcome, floor, ceiling, machine, image, unjudged)
    codes: dict[str, StrEnum] = {}
    found = []
    for each in thresholds:
        if each.is_promise or _has_trials(judgement, each):
            record, codes[each.metric] = _decided(judgement, each)
        elif floor.metric is RATE_OF[floor.profile.kind]:
            decision = say.untried(judgement)
            record, codes[each.metric] = _by(each, decision), decision.code
        else:
            continue
        found.append(record)
    decided = tuple(found)
    missed = [each for each in decided if not each.met and not each.undecided]
    undecided = [each for each in decided if each.undecided]
    # As many connections are held as are promised, and no more are tried: no margin of what is measured meanwhile.
    asked = [each for each in decided if METRICS[each.metric].of_table and not floor.metric.of_table and each.met]
    margin = _worst_margin(tuple(each for each in decided if each not in asked))
    if missed:
        lowest = judgement.nothing_held and all(each.kind == "absolute" for each in missed)
        code = Reason.LOWEST_LOAD_LOST if lowest else codes[missed[0].metric]
        return Verdict("missed", say.missed_text(judgement, missed), margin, decided, code)
    if undecided:
        # What is not known outweighs what could not be seen.
        known = [codes[each.metric] for each in undecided]
        code = next((code for code in known if code is not Code.NO_SLOWER_SEEN), known[0])
        return Verdict("not measured", say.undecided_text(undecided), None, decided, code)
    if not outcome.kept_conditions and floor.main and floor.metric.name not in outcome.decisions:
        if doubt := say.not_attributable(judgement, is_promise=floor.metric.role == "promise"):
            return Verdict("not measured", doubt.reason, None, decided, doubt.code)
        return Verdict("missed", say.missed_text(judgement, []), margin, decided, Code.FIGURE)
    # As many connections as are promised were held, and no more were tried: how many more it may be is not known.
    unknown = floor.metric.of_table and outcome.limited_by == "floor"
    code = codes.get(floor.metric.name) or next(iter(codes.values()), Code.FIGURE)
    return Verdict("met", say.met_text(judgement, decided), None if unknown else margin, decided, code)


def compare(figures: Mapping[str, Figure], floor: Floor, *, held: bool = False) -> tuple[ThresholdRecord, ...]:
    """Compare every threshold with its figure. One that was not measured is not met. `held`: the trial that the figures
    are of was good, so it lost no more than it may, whatever share that is of few."""
    return tuple(
        _compared(threshold, figures.get(name), floor, held=held) for name, threshold in floor.thresholds.items()
    )


def _compared(threshold: Threshold, figure: Figure | None, floor: Floor, *, held: bool) -> ThresholdRecord:
    metric, value = threshold.metric, figure.value if figure else None
    allowed = held and metric.name in _LOSSES
    relative = kind_of(metric.name) != "absolute"
    to = {"ratio": floor.compared_with, "of_build": floor.base_build}.get(kind_of(metric.name))
    return ThresholdRecord(
        metric=metric.name,
        kind=kind_of(metric.name),
        operator=metric.operator,
        limit=threshold.limit,
        written=threshold.text,
        to=to,
        bound_to=floor.bound_to(metric.name),
        smoke=metric.name in floor.smoke,
        measured=value,
        low=figure.low if figure and relative else None,
        high=figure.high if figure and relative else None,
        margin_pct=None if value is None else metric.margin_pct(value, threshold.limit),
        met=value is not None and (allowed or threshold.holds(value)),
    )


def _has_trials(judgement: Judgement, condition: ThresholdRecord) -> bool:
    """Whether there is a trial that had to keep a condition. A pair has slices only: no rate is met by it alone."""
    rate = RATE_OF[judgement.floor.profile.kind]
    return condition.measured is not None or rate.name in judgement.outcome.figures


def _decided(judgement: Judgement, each: ThresholdRecord) -> tuple[ThresholdRecord, StrEnum]:
    """A threshold, decided by the evidence that there is, and what that is; where it is not met, with the reason unless
    its figure is reason enough."""
    if unjudged := say.not_judged(judgement, each):
        return _by(each, unjudged), unjudged.code
    if say.is_made_elsewhere(judgement, each):
        each = replace(each, elsewhere=True)
    elsewhere = say.made_elsewhere(judgement, each)
    decision = elsewhere if elsewhere and each.metric in COSTS else _evidence(judgement, each)
    if decision is None:
        return each, Code.FIGURE
    if elsewhere and decision.kept is False:
        decision = elsewhere
    return _by(each, decision), decision.code


def _evidence(judgement: Judgement, each: ThresholdRecord) -> Decision | None:
    """What decides a threshold besides its figure; None where the figure does."""
    decisions = judgement.outcome.decisions
    if each.kind != "absolute":
        return decisions.get(each.metric) or _by_interval(each)
    # Trials at the floor are made at a load that tries every rate: they decide about packets as about connections.
    # Where these decide nothing, neither do the conditions that some of them broke.
    rate = decisions.get(judgement.floor.metric.name)
    if each.metric in SERVED:  # of which no trial at a rate says anything
        nothing = Decision(None, f"no closed loop tells of {METRICS[each.metric].title}", code=Code.NOTHING)
        return decisions.get(each.metric) or (nothing if each.measured is None else Decision.by_figure(each.met))
    own = decisions.get(each.metric) or (rate if rate and (each.is_promise or rate.kept is None) else None)
    if own is not None:
        return _reconsidered(judgement, each, own) or own
    if each.met:
        return None
    return say.not_attributable(judgement, is_promise=each.is_promise) or Decision.by_figure(kept=False)


def _reconsidered(judgement: Judgement, each: ThresholdRecord, own: Decision) -> Decision | None:
    """What becomes of a decision about a rate by the generator's ceiling; None where that changes nothing."""
    if not each.is_promise or own.kept:
        return None
    return say.saturated(judgement, each) if own.kept is None else say.near_ceiling(judgement)


def _by_interval(each: ThresholdRecord) -> Decision:
    """What the interval of a ratio says where its pairs did not: the whole of it has to be on one side."""
    if each.measured is None:
        return Decision(None, f"the rate relative to {each.other} could not be measured", code=Code.NOTHING)
    low, high = each.low if each.low is not None else each.measured, each.high
    if low >= each.limit:
        return Decision(kept=True, reason="", code=Code.INTERVAL)
    if (each.measured if high is None else high) < each.limit:
        return Decision(kept=False, reason="", code=Code.INTERVAL)
    return Decision(None, f"too close to call on this machine: {each.relation}", code=Code.TOO_CLOSE)


def _by(each: ThresholdRecord, decision: Decision) -> ThresholdRecord:
    """As its evidence says; a figure that scatters to the other side of the limit does not contradict it."""
    kept, margin = decision.kept, each.margin_pct
    if kept is None:
        return replace(each, met=False, undecided=True, reason=say.as_part(decision.reason))
    if margin is not None:
        margin = max(margin, 0.0) if kept else min(margin, 0.0)
    return replace(each, met=kept, margin_pct=margin, reason=say.as_part(decision.whole))


def _unusable(outcome: Outcome, *, oversubscribed: bool) -> Decision | None:
    """Why an outcome says nothing whatever it is; None when it does."""
    if outcome.limited_by == "fault" and not outcome.lost:
        return Decision(None, f"the measurement broke off: {say.as_part(outcome.reason)}", code=Code.FAULT)
    if oversubscribed:
        text = "threads share CPUs on this testbed (oversubscribe), so its rates say nothing"
        return Decision(None, text, code=Reason.OVERSUBSCRIBED)
    offered = outcome.decisions or any(step.observation.trial.attempted for step in outcome.steps)
    if not offered or not (outcome.figures or outcome.decisions):
        return Decision(None, outcome.reason or "nothing was offered", code=Code.NOTHING)
    return None


def _scattered(outcome: Outcome, max_spread: float | None) -> Decision | None:
    """Why repetitions that do not agree say nothing; None when they do."""
    found = outcome.result
    if max_spread is None or found is None or found.spread is None or found.spread <= max_spread:
        return None
    low, high = (outcome.metric.format(end(found.samples)) for end in (min, max))
    text = (
        f"{len(found.samples)} searches found {low} to {high}, a spread of {format_ratio(found.spread)} where the "
        f"campaign allows {format_ratio(max_spread)}"
    )
    return Decision(None, text, code=Reason.SCATTERED)


def _worst_margin(thresholds: tuple[ThresholdRecord, ...]) -> float | None:
    """A search goes up to the conditions, so their margin is near zero by construction and would hide that of the
    promises. One that is not kept counts all the same."""
    counted = [
        each.margin_pct
        for each in thresholds
        if each.margin_pct is not None and not each.undecided
        and (each.is_promise or not each.met)
    ]  # fmt: skip
    return min(counted, default=None)
