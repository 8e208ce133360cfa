"""The verdict on a row, with a sentence that a product manager understands; and which misses say nothing of the DUT.

The rule is that of `ctbench.results.verdict`. Green always means: measured, and every promise and condition kept. A
promise is decided by evidence of its own where its sampler has some (trials at the floor, the interval of a pair), else
by its figure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ctbench.base.units import format_margin, format_ratio
from ctbench.measure.procedure import Outcome
from ctbench.results.environment import MachineFacts
from ctbench.results.floor import Floor, Threshold
from ctbench.results.metrics import AT_HALF, COSTS, COUNTED, LOSS_OF, METRICS, RATE_OF, SATURATION_OF, SERVED
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import NEAR_CEILING, Code, Verdict, by_figure, by_saturation, of_row


@dataclass(frozen=True)
class Row:
    """What is judged: a row's result, its floor, the generator's ceiling, and the DUT's machine."""

    outcome: Outcome
    floor: Floor
    ceiling: float | None
    machine: MachineFacts | None
    #: Of an emulated machine: what it booted.
    image: str = ""
    #: Why rates are not judged on this testbed; empty where they are.
    unjudged: str = ""
    #: Whether another run on this kind of CPU found a promise broken.
    broken_before: Callable[[Threshold], bool] = lambda _: False

    @property
    def nothing_came(self) -> bool:
        """Whether loads were offered, and not one connection or packet came through: that is missed on any machine."""
        tried = [each.trial for each in self.outcome.trials if each.state != "invalid" and each.trial.attempted]
        return bool(tried) and not any(trial.completed for trial in tried)

    @property
    def the_floor(self) -> str:
        """In words, with the rate that is promised, where one is."""
        return f"the floor of {self.floor.metric.format(self.floor.main.limit)}" if self.floor.main else "the floor"

    @property
    def result(self) -> float:
        """What was found; 0 where nothing was."""
        return self.outcome.result.value if self.outcome.result else 0.0

    @property
    def nothing_held(self) -> bool:
        """Whether not even the lowest load held."""
        return not (self.outcome.kept_conditions or self.result or self.outcome.verdicts)

    def show(self, value: float) -> str:
        """A value of what the test looked for, in words."""
        return self.outcome.metric.format(value)

    @property
    def near_ceiling(self) -> Verdict | None:
        """Of a result below the floor that may be the generator's; None where it is well below what that can do."""
        if self.ceiling is None or self.result < NEAR_CEILING * self.ceiling:
            return None
        found, most = self.show(self.result), self.show(self.ceiling)
        text = f"{found} is within 10 % of what the traffic generator can do ({most}), and below {self.the_floor}"
        return Verdict(None, Code.NEAR_CEILING, text)


@dataclass(frozen=True)
class RowVerdict(Verdict):
    """The verdict on a row, by those on its promises, in one sentence."""

    #: The worst of the thresholds, in percent; None when not measured.
    margin_pct: float | None = None
    #: Each threshold with what was measured.
    thresholds: tuple[Threshold, ...] = ()

    @classmethod
    def not_measured(cls, reason: str, floor: Floor, code: Code = Code.FAULT) -> "RowVerdict":
        """The verdict of a test that broke off before there was a result."""
        nothing = Verdict(None, code, reason)
        return cls(None, code, reason, thresholds=tuple(_by(each, nothing) for each in compare({}, floor)))


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
    broken_before: Callable[[Threshold], bool] = lambda _: False,
) -> RowVerdict:
    """Judge an outcome by its floor.

    `ceiling` is the generator's capacity over the cable with the same profile, in its unit per second; None
    when nothing is known to compare with. `machine` is the DUT's, and `image` what an emulated one booted: floors may
    be bound to either. On an oversubscribed testbed nothing counts as measured, nor do repetitions whose results are
    farther apart than `max_spread`; nor does a rate where `unjudged` says why, unless nothing came through at all.
    A ratio that is missed on a kind of CPU that it was not measured on counts if another run found so: `broken_before`.
    """
    thresholds = compare(outcome.figures, floor, held=outcome.kept_conditions)
    unusable = _unusable(outcome, oversubscribed=oversubscribed)
    if nothing := unusable or _scattered(outcome, max_spread):
        left = tuple(_by(each, nothing) for each in thresholds) if unusable else thresholds
        return RowVerdict(None, nothing.code, nothing.reason, thresholds=left)
    row, rate = Row(outcome, floor, ceiling, machine, image, unjudged, broken_before), RATE_OF[floor.profile.kind]
    decided: list[Threshold] = []
    verdicts: dict[str, Verdict] = {}
    for each in thresholds:
        # A pair has slices only, so no condition is kept by it alone.
        if each.is_promise or each.measured is not None or rate.name in outcome.figures:
            known, verdicts[each.metric] = _decided(row, each)
            decided.append(known)
        elif floor.metric is rate:
            verdicts[each.metric] = untried(row)
            decided.append(_by(each, verdicts[each.metric]))
    missed = [each for each in decided if not each.met and not each.undecided]
    found = of_row(
        verdicts, floor.metric.name,
        held=outcome.kept_conditions or not floor.main or floor.metric.name in outcome.verdicts,
        lowest_lost=row.nothing_held and all(each.kind == "absolute" for each in missed),
    )  # fmt: skip
    if found.kept is False and not missed and (doubt := not_attributable(row)):
        return RowVerdict(None, doubt.code, doubt.reason, thresholds=tuple(decided))
    if found.kept is None:
        said = undecided_text([each for each in decided if each.undecided])
    else:
        said = met_text(row, decided) if found.kept else missed_text(row, missed)
    return RowVerdict(found.kept, found.code, said, "", _margin(row, decided, found), tuple(decided))


def _margin(row: Row, decided: Sequence[Threshold], found: Verdict) -> float | None:
    """The worst margin of a row, where it is known. A search goes up to the conditions, so theirs is near zero by
    construction and would hide that of the promises. One that is not kept counts all the same."""
    # As many connections as are promised were held, and no more were tried: how many more it may be is not known.
    unknown = row.floor.metric.of_table and row.outcome.limited_by == "floor"
    if found.kept is None or (found.kept and unknown):
        return None
    # As many connections are held as are promised, and no more are tried: no margin of what is measured meanwhile.
    asked = [each for each in decided if METRICS[each.metric].of_table and not row.floor.metric.of_table and each.met]
    counted = [each for each in decided if not each.undecided and (each.is_promise or not each.met)]
    return min((each.margin_pct for each in counted if each.margin_pct is not None and each not in asked), default=None)


def compare(figures: Mapping[str, Estimate], floor: Floor, *, held: bool = False) -> tuple[Threshold, ...]:
    """Compare every threshold with its figure. One that was not measured is not met. `held`: the trial that the figures
    are of was good, so it lost no more than it may, whatever share that is of few."""
    return tuple(_compared(threshold, figures.get(name), held=held) for name, threshold in floor.thresholds.items())


def _compared(threshold: Threshold, figure: Estimate | None, *, held: bool) -> Threshold:
    metric, value = METRICS[threshold.metric], figure.value if figure else None
    allowed = held and metric in LOSS_OF.values()
    relative = figure if threshold.kind != "absolute" else None
    return replace(
        threshold,
        measured=value,
        low=relative.low if relative else None,
        high=relative.high if relative else None,
        margin_pct=None if value is None else metric.margin_pct(value, threshold.limit),
        met=value is not None and (allowed or metric.keeps(value, threshold.limit)),
    )


def _decided(row: Row, each: Threshold) -> tuple[Threshold, Verdict]:
    """A threshold, decided by the evidence that there is, and the verdict on it; where it is not met, with the reason
    unless its figure is reason enough."""
    if unjudged := not_judged(row, each):
        return _by(each, unjudged), unjudged
    elsewhere = made_elsewhere(row, each)
    each = replace(each, elsewhere=elsewhere is not None)
    verdict = elsewhere if elsewhere and each.metric in COSTS else _evidence(row, each)
    if verdict is None:
        return each, Verdict(each.met, Code.FIGURE)
    if elsewhere and verdict.kept is False:
        verdict = elsewhere
    elif first := missed_first(row, each, verdict):
        each, verdict = replace(each, new_kind=True), first
    return _by(each, verdict), verdict


def _evidence(row: Row, each: Threshold) -> Verdict | None:
    """What decides a threshold besides its figure; None where the figure does."""
    verdicts, metric = row.outcome.verdicts, METRICS[each.metric]
    if each.kind != "absolute" or each.metric in SERVED:  # of which no trial at a rate says anything
        nothing = f"no closed loop tells of {metric.title}"
        if each.kind != "absolute":
            nothing = f"the rate relative to {each.other} could not be measured"
        return verdicts.get(each.metric) or Verdict(None, Code.NOTHING, nothing)
    # Trials at the floor are made at a load that tries every rate: they decide about packets as about connections.
    # Where these decide nothing, neither do the conditions that some of them broke.
    rate = verdicts.get(row.floor.metric.name)
    own = verdicts.get(each.metric) or (rate if rate and (each.is_promise or rate.kept is None) else None)
    if own and own.kept is not None and each.measured is None and each.metric not in verdicts:
        return Verdict(None, Code.NOTHING, f"{metric.title} was not measured")
    if own is not None:
        return _reconsidered(row, each, own) or own
    if each.met:
        return None
    return not_attributable(row) or by_figure(metric, each.measured, each.limit)


def _reconsidered(row: Row, each: Threshold, own: Verdict) -> Verdict | None:
    """What becomes of a verdict about a rate by the generator's ceiling; None where that changes nothing."""
    if not each.is_promise or own.kept or each.metric in AT_HALF:
        return None
    return saturated(row, each) if own.kept is None else row.near_ceiling


def _by(each: Threshold, verdict: Verdict) -> Threshold:
    """The promise as its evidence decided it. Its figure may scatter to the other side of the limit: the margin is 0
    then."""
    kept, margin = verdict.kept, each.margin_pct
    if kept is None:
        return replace(each, met=False, undecided=True, reason=as_part(verdict.reason))
    if margin is not None:
        margin = max(margin, 0.0) if kept else min(margin, 0.0)
    return replace(each, met=kept, margin_pct=margin, reason=as_part(verdict.whole))


def _unusable(outcome: Outcome, *, oversubscribed: bool) -> Verdict | None:
    """Why an outcome says nothing whatever it is; None when it does."""
    if outcome.limited_by == "fault" and not outcome.lost:
        return Verdict(None, Code.FAULT, f"the measurement broke off: {as_part(outcome.reason)}")
    if oversubscribed:
        text = "threads share CPUs on this testbed (oversubscribe), so its rates say nothing"
        return Verdict(None, Code.OVERSUBSCRIBED, text)
    offered = outcome.verdicts or any(seen.trial.attempted for seen in outcome.trials)
    if not offered or not (outcome.figures or outcome.verdicts):
        return Verdict(None, Code.NOTHING, outcome.reason or "nothing was offered")
    return None


def _scattered(outcome: Outcome, max_spread: float | None) -> Verdict | None:
    """Why repetitions that do not agree say nothing; None when they do."""
    found = outcome.result
    if max_spread is None or found is None or found.spread is None or found.spread <= max_spread:
        return None
    low, high = (outcome.metric.format(end(found.samples)) for end in (min, max))
    text = (
        f"{len(found.samples)} searches found {low} to {high}, a spread of {format_ratio(found.spread)} where the "
        f"campaign allows {format_ratio(max_spread)}"
    )
    return Verdict(None, Code.SCATTERED, text)


# Which misses say nothing of the DUT: a verdict of None, where there is such a reason.


def made_elsewhere(row: Row, each: Threshold) -> Verdict | None:
    """Why a threshold that is a promise of another machine, or of another image, is not judged here by a miss; None for
    one that is of this machine, or of any."""
    floor, machine = row.floor, row.floor.machine
    if each.metric in COSTS:
        here = f"this is image {row.image or 'unknown'}" if floor.image != row.image else ""
    else:
        here = machine.differs_from(row.machine) if each.bound_to and machine else ""
    if not here or (each.metric not in COUNTED and row.nothing_came):
        return None
    metric = METRICS[each.metric]
    found = f", where {metric.format(each.measured)} was measured" if each.measured is not None else ""
    text = f"this floor ({metric.format(each.limit)}) was made on {each.bound_to}; {here}{found}"
    return Verdict(None, Code.ANOTHER_IMAGE if each.metric in COSTS else Code.ANOTHER_MACHINE, text)


def missed_first(row: Row, each: Threshold, verdict: Verdict) -> Verdict | None:
    """Why a ratio that any machine is promised is not missed yet: it was measured on other kinds of CPU, and no other
    run of this kind has found it broken. None where a miss counts: of a DUT that crashed or stood still at once."""
    kind, known = row.machine.cpu_kind if row.machine else "", row.floor.known_kinds
    slow = each.metric == "ratio" and verdict.kept is False and verdict.code is Code.INTERVAL
    if not slow or not kind or not known or kind in known or row.broken_before(each):
        return None
    text = (
        f"new kind of machine: this floor was measured on {', '.join(known)}, and this is {kind}; a second run on this "
        f"machine confirms or clears it ({each.relation})"
    )
    return Verdict(None, Code.NEW_KIND, text)


def not_judged(row: Row, each: Threshold) -> Verdict | None:
    """Why a threshold that follows from how fast the testbed is says nothing of the DUT, kept or not."""
    if not row.unjudged or each.metric in COUNTED or row.nothing_came:
        return None
    text = f"rates are not judged on this testbed: {as_part(row.unjudged)}"
    return Verdict(None, Code.RATES_NOT_JUDGED, text)


def not_attributable(row: Row) -> Verdict | None:
    """Why a threshold that its figure does not keep says nothing about the DUT."""
    why = as_part(row.outcome.reason)
    if row.outcome.limited_by == "fault":
        return Verdict(None, Code.FAULT, f"the measurement broke off: {why}")
    if row.outcome.limited_by == "generator":
        return Verdict(None, Code.GENERATOR, f"the traffic generator was the limit below {row.the_floor}: {why}")
    return row.near_ceiling


def saturated(row: Row, each: Threshold) -> Verdict | None:
    """Of a floor that the generator cannot offer: the DUT's own limit, where that was seen."""
    ceiling, outcome, floor = row.ceiling, row.outcome, row.floor
    served = outcome.figure(SATURATION_OF[floor.profile.kind])
    limit = row.result if outcome.limited_by == "dut" else served
    if ceiling is None or limit is None:
        return None
    text = (
        f"the DUT saturates at {row.show(limit)}, where the traffic generator reaches "
        f"{row.show(ceiling)}; the floor of {METRICS[each.metric].format(each.limit)} is above both"
    )
    return by_saturation(limit, ceiling, floor.load(0.0), text)


def untried(row: Row) -> Verdict:
    """Of a condition that no valid trial had to keep, such as the limit on what is lost."""
    why = f": {as_part(row.outcome.reason)}" if row.outcome.limited_by == "generator" else ""
    return Verdict(None, Code.CONDITION_UNTRIED, f"no valid trial tells what is lost{why}")


# Sentences.


def met_text(row: Row, thresholds: Sequence[Threshold]) -> str:
    """How everything was kept."""
    own = [each for each in thresholds if each.metric in (row.floor.metric.name, *SERVED, *AT_HALF)]
    compared = [each.relation for each in thresholds if each.kind != "absolute" and each.measured is not None]
    return "; ".join([*(_kept(row, each) for each in own), *compared])


def _kept(row: Row, each: Threshold) -> str:
    """How much above its floor a figure is."""
    outcome, metric = row.outcome, METRICS[each.metric]
    is_main = metric is row.floor.metric
    if is_main and outcome.limited_by == "floor":
        return f"{row.the_floor} was held: {as_part(each.reason or outcome.reason)}"
    least = "at least " if is_main and outcome.limited_by in ("generator", "range") else ""
    found = metric.format(each.measured or 0.0)
    margin = f", {format_margin(each.margin_pct)}" if each.margin_pct is not None else ""
    why = f" ({each.reason})" if is_main and each.reason else ""
    return f"{metric.title}: {least}{found}{margin} against the floor of {metric.format(each.limit)}{why}"


def missed_text(row: Row, failing: list[Threshold]) -> str:
    """What is missed: by how much, then what decided that, each reason once."""
    outcome = row.outcome
    if row.nothing_held and all(each.kind == "absolute" for each in failing):
        floor = f", the floor is {row.floor.metric.format(row.floor.main.limit)}" if row.floor.main else ""
        return f"not even the lowest load held{floor}: {as_part(outcome.reason)}"
    short = [_shortfall(row, each) for each in failing if each.measured is not None and not _keeps(each)]
    # What the evidence says, and not the figure, is said where nothing else is.
    held = [] if short else [_not_held(each) for each in failing if _keeps(each)][:1]
    reasons = [each.reason for each in failing if each.reason]
    trials = outcome.verdicts.get(row.floor.metric.name)
    if trials and any(not each.is_promise and each.measured is not None for each in failing):
        # A condition tells what was wrong with the trials.
        reasons = [as_part(trials.reason) if each == as_part(trials.whole) else each for each in reasons]
    if outcome.limited_by == "floor" and not outcome.verdicts:
        reasons.append(as_part(outcome.reason))
    return "; ".join([*short, *held, *dict.fromkeys(reasons)]) or "what was promised was not measured"


def _keeps(each: Threshold) -> bool:
    """Whether its own figure would have kept a threshold."""
    return each.measured is not None and METRICS[each.metric].keeps(each.measured, each.limit)


def _not_held(each: Threshold) -> str:
    metric = METRICS[each.metric]
    return f"{metric.title}: {metric.format(each.limit)} not held"


def _shortfall(row: Row, threshold: Threshold) -> str:
    """By how much one threshold is missed."""
    metric = METRICS[threshold.metric]
    margin = f" ({format_margin(threshold.margin_pct)})" if threshold.margin_pct is not None else ""
    if threshold.kind != "absolute":
        return f"{row.floor.metric.title}: {threshold.relation}{margin}"
    title = f"lost {row.floor.profile.kind}" if threshold.metric == "loss_ratio" else metric.title
    found, limit = metric.format(threshold.measured or 0.0), metric.format(threshold.limit)
    return f"{title}: {found} instead of {metric.bound} {limit}{margin}"


def undecided_text(undecided: list[Threshold]) -> str:
    """Why nothing decided some thresholds, each reason once; of rates that were made elsewhere, the first stands for
    all."""
    elsewhere = [each for each in undecided if each.elsewhere]
    return "; ".join(dict.fromkeys(each.reason for each in undecided if each not in elsewhere[1:]))


def as_part(text: str) -> str:
    """A sentence as a part of another one."""
    return text.rstrip(".")
