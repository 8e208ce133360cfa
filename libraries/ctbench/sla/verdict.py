"""The verdict on a row: the comparison of figures with thresholds, the facts of the row that decide, and the sentence
that a product manager understands.

`ctbench.results.verdict` decides whether a promise is kept, and what excuses a miss. Green always means: measured, and
every promise and condition kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ctbench.base.units import format_margin, format_ratio
from ctbench.measure.procedure import Outcome
from ctbench.results.environment import MachineFacts
from ctbench.results.evidence import held_for
from ctbench.results.floor import Floor, Threshold
from ctbench.results.metrics import AT_HALF, COSTS, LASTS_S, METRICS, OFFERED, RATE_OF, SATURATION_OF, SERVED
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import (
    Code,
    Verdict,
    by_figure,
    decided,
    excusable,
    excused,
    is_near,
    of_promise,
    of_row,
    saturates,
    says_nothing,
    with_figure,
)


@dataclass(frozen=True)
class JudgedRow:
    """The outcome to judge, its floor, and the other arguments of `judge`."""

    outcome: Outcome
    floor: Floor
    ceiling: float | None = None
    machine: MachineFacts | None = None
    image: str = ""
    oversubscribed: bool = False
    unjudged: str = ""
    max_spread: float | None = None
    broken_before: Callable[[Threshold], bool] = lambda _: False

    @property
    def nothing_came(self) -> bool:
        """True where valid trials offered loads, and not one connection or packet came through."""
        tried = [each.trial for each in self.outcome.trials if each.state != "invalid" and each.trial.attempted]
        return bool(tried) and not any(trial.completed for trial in tried)

    @property
    def the_floor(self) -> str:
        """The floor in words, with the promised rate where there is one."""
        return f"the floor of {self.floor.metric.format(self.floor.main.limit)}" if self.floor.main else "the floor"

    @property
    def result(self) -> float:
        """The value that was found; 0 where none was."""
        return self.outcome.result.value if self.outcome.result else 0.0

    @property
    def nothing_held(self) -> bool:
        """True where no load held, and no evidence decided anything."""
        return not (self.outcome.kept_conditions or self.result or self.outcome.verdicts)

    def show(self, value: float) -> str:
        """Return a value of the metric that the test looked for, in words."""
        return self.outcome.metric.format(value)

    def tried(self, each: Threshold) -> bool:
        """Return True for a promise, and for a condition that a trial had to keep. The slices of a pair are no
        trials."""
        rate = RATE_OF[self.floor.profile.kind].name
        return each.is_promise or each.measured is not None or rate in self.outcome.figures

    def says(self, code: Code, each: Threshold | None = None) -> str:
        """Return why a code applies to the row, or to one of its thresholds, as a sentence; empty where it does not
        apply."""
        if each and code in _OF_PROMISE:
            return _OF_PROMISE[code](self, each)
        return _OF_ROW[code](self)


@dataclass(frozen=True)
class RowVerdict(Verdict):
    """The verdict on a row, from those on its promises, in one sentence."""

    #: The worst of the thresholds, in percent; None when not measured.
    margin_pct: float | None = None
    #: Each threshold with what was measured.
    thresholds: tuple[Threshold, ...] = ()

    @classmethod
    def not_measured(cls, reason: str, floor: Floor, code: Code = Code.FAULT) -> "RowVerdict":
        """Return the verdict on a test that broke off before it had a result."""
        nothing = cls(None, code, reason)
        return replace(nothing, thresholds=tuple(decided(each, nothing) for each in compare({}, floor)))


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

    `ceiling`: the generator's capacity over the cable with the same profile, in its unit per second; None where it is
    not known. `machine`: the DUT's; `image`: what an emulated machine booted: floors may be bound to either. On an
    oversubscribed testbed nothing counts as measured. Nor do repetitions whose results are farther apart than
    `max_spread`, nor a rate where `unjudged` says why, unless nothing came through at all. A ratio or a smoke
    test that is missed on a kind of CPU that it was not measured on counts only if another run found so:
    `broken_before`.
    """
    row = JudgedRow(outcome, floor, ceiling, machine, image, oversubscribed, unjudged, max_spread, broken_before)
    compared = compare(outcome.figures, floor, good=outcome.kept_conditions)
    if nothing := says_nothing(row.says, lost=outcome.lost):
        left = compared if nothing.code is Code.SCATTERED else tuple(decided(each, nothing) for each in compared)
        return RowVerdict(nothing.kept, nothing.code, nothing.reason, thresholds=left)
    main, nothing_came = floor.metric.name, row.nothing_came
    asked = [each for each in compared if row.tried(each) or floor.metric is RATE_OF[floor.profile.kind]]
    by_metric = {
        each.metric: of_promise(each, outcome.verdicts, main, partial(row.says, each=each), nothing_came=nothing_came)
        for each in asked
    }
    serves = outcome.figure(SATURATION_OF[floor.profile.kind])
    verdicts = excused(by_metric, next((each for each in asked if each.metric == main), None), serves)
    ended = [_ended(row, each, verdicts[each.metric]) for each in asked]
    found = of_row(
        verdicts, main, row.says, held=outcome.kept_conditions or not floor.main or main in outcome.verdicts,
        lowest_lost=row.nothing_held,
    )  # fmt: skip
    if found.kept is None:
        said = found.reason or undecided_text([each for each in ended if each.undecided])
    else:
        said = met_text(row, ended) if found.kept else missed_text(row, ended, found.code)
    return RowVerdict(found.kept, found.code, said, "", _margin(row, ended, found), tuple(ended))


def _ended(row: JudgedRow, each: Threshold, by: Verdict) -> Threshold:
    """Return a threshold with its verdict, and whether its floor is of another machine."""
    counts = by.code is not Code.RATES_NOT_JUDGED and excusable(each, nothing_came=row.nothing_came)
    return replace(decided(each, by), elsewhere=counts and bool(_elsewhere(row, each)))


def _margin(row: JudgedRow, thresholds: Sequence[Threshold], found: Verdict) -> float | None:
    """Return the worst margin of a row; None where it is not known. A search goes up to the conditions, so their
    margins are near zero by construction and would hide those of the promises. A condition that is not kept counts."""
    # As many connections as are promised were held, and no more were tried: how many more it may be is not known.
    unknown = row.floor.metric.of_table and row.outcome.limited_by == "floor"
    if found.kept is None or (found.kept and unknown):
        return None
    # As many connections are held as are promised, and no more are tried: no margin of what is measured meanwhile.
    of_rate = not row.floor.metric.of_table
    asked = [each for each in thresholds if of_rate and METRICS[each.metric].of_table and each.met]
    counted = [each for each in thresholds if not each.undecided and (each.is_promise or not each.met)]
    return min((each.margin_pct for each in counted if each.margin_pct is not None and each not in asked), default=None)


def compare(figures: Mapping[str, Estimate], floor: Floor, *, good: bool = False) -> tuple[Threshold, ...]:
    """Compare every threshold with its figure. A threshold without a figure is not met. `good`: whether the trial that
    the figures are of was good."""
    return tuple(_compared(threshold, figures.get(name), good=good) for name, threshold in floor.thresholds.items())


def _compared(threshold: Threshold, figure: Estimate | None, *, good: bool) -> Threshold:
    value = figure.value if figure else None
    relative = figure if threshold.kind != "absolute" else None
    compared = replace(
        threshold,
        measured=value,
        low=relative.low if relative else None,
        high=relative.high if relative else None,
        margin_pct=None if value is None else METRICS[threshold.metric].margin_pct(value, threshold.limit),
    )
    return with_figure(compared, good=good)


# What is so of a row, or of one of its thresholds: empty where it is not.


def _fault(row: JudgedRow) -> str:
    return f"the measurement broke off: {_why(row)}" if row.outcome.limited_by == "fault" else ""


def _oversubscribed(row: JudgedRow) -> str:
    return "threads share CPUs on this testbed (oversubscribe), so its rates say nothing" if row.oversubscribed else ""


def _nothing(row: JudgedRow) -> str:
    outcome = row.outcome
    offered = outcome.verdicts or any(seen.trial.attempted for seen in outcome.trials)
    known = offered and (outcome.figures or outcome.verdicts)
    return "" if known else outcome.reason or "nothing was offered"


def _scattered(row: JudgedRow) -> str:
    found, most = row.outcome.result, row.max_spread
    if most is None or found is None or found.spread is None or found.spread <= most:
        return ""
    low, high = (row.show(end(found.samples)) for end in (min, max))
    spread = f"a spread of {format_ratio(found.spread)} where the campaign allows {format_ratio(most)}"
    return f"{len(found.samples)} searches found {low} to {high}, {spread}"


def _unjudged(row: JudgedRow) -> str:
    return f"rates are not judged on this testbed: {as_part(row.unjudged)}" if row.unjudged else ""


def _generator(row: JudgedRow) -> str:
    limited = row.outcome.limited_by == "generator"
    return f"the traffic generator was the limit below {row.the_floor}: {_why(row)}" if limited else ""


def _near_ceiling(row: JudgedRow) -> str:
    """Return that a result below the floor is near the generator's ceiling."""
    if row.ceiling is None or not is_near(row.result, row.ceiling):
        return ""
    found, most = row.show(row.result), row.show(row.ceiling)
    return f"{found} is within 10 % of what the traffic generator can do ({most}), and below {row.the_floor}"


def _why(row: JudgedRow) -> str:
    return as_part(row.outcome.reason)


_OF_ROW: dict[Code, Callable[[JudgedRow], str]] = {
    Code.FAULT: _fault,
    Code.OVERSUBSCRIBED: _oversubscribed,
    Code.NOTHING: _nothing,
    Code.SCATTERED: _scattered,
    Code.RATES_NOT_JUDGED: _unjudged,
    Code.GENERATOR: _generator,
    Code.NEAR_CEILING: _near_ceiling,
}


def _untried(row: JudgedRow, each: Threshold) -> str:
    """Return that no valid trial had to keep a condition, such as the limit on the loss ratio."""
    why = f": {_why(row)}" if row.outcome.limited_by == "generator" else ""
    return "" if row.tried(each) else f"no valid trial tells what is lost{why}"


def _not_measured(_: JudgedRow, each: Threshold) -> str:
    if each.kind != "absolute":
        return f"the rate relative to {each.other} could not be measured"
    title = METRICS[each.metric].title
    return f"no closed loop tells of {title}" if each.metric in SERVED else f"{title} was not measured"


def _elsewhere(row: JudgedRow, each: Threshold) -> str:
    """Return that a promise is bound to another machine, or to another image."""
    floor, metric = row.floor, METRICS[each.metric]
    if each.metric in COSTS:
        here = f"this is image {row.image or 'unknown'}" if floor.image != row.image else ""
    else:
        here = floor.machine.differs_from(row.machine) if each.bound_to and floor.machine else ""
    found = f", where {metric.format(each.measured)} was measured" if each.measured is not None else ""
    made = f"this floor ({metric.format(each.limit)}) was made on {each.bound_to}"
    return f"{made}; {here}{found}" if here else ""


def _other_image(row: JudgedRow, each: Threshold) -> str:
    return _elsewhere(row, each) if each.metric in COSTS else ""


def _new_kind(row: JudgedRow, each: Threshold) -> str:
    """Return that a floor was measured on other kinds of CPU only, where no other run on this kind has found it
    broken."""
    kind, known = row.machine.cpu_kind if row.machine else "", row.floor.known_kinds
    if not kind or not known or kind in known or row.broken_before(each):
        return ""
    metric, value = METRICS[each.metric], each.measured
    found = each.relation or ("no figure" if value is None else f"{metric.format(value)}, {metric.title}")
    return (
        f"new kind of machine: this floor was measured on {', '.join(known)}, and this is {kind}; a second run on this "
        f"machine confirms or clears it ({found})"
    )


def _saturated(row: JudgedRow, each: Threshold) -> str:
    """Return that the DUT saturates below a floor that the generator cannot offer, where that was seen."""
    ceiling, outcome, floor = row.ceiling, row.outcome, row.floor
    limit = row.result if outcome.limited_by == "dut" else outcome.figure(SATURATION_OF[floor.profile.kind])
    if ceiling is None or limit is None or not saturates(limit, ceiling, floor.load(0.0)):
        return ""
    return (
        f"the DUT saturates at {row.show(limit)}, where the traffic generator reaches "
        f"{row.show(ceiling)}; the floor of {METRICS[each.metric].format(each.limit)} is above both"
    )


_OF_PROMISE: dict[Code, Callable[[JudgedRow, Threshold], str]] = {
    Code.CONDITION_UNTRIED: _untried,
    Code.NOTHING: _not_measured,
    Code.ANOTHER_MACHINE: _elsewhere,
    Code.ANOTHER_IMAGE: _other_image,
    Code.NEW_KIND: _new_kind,
    Code.SATURATED: _saturated,
}


# Sentences.


def met_text(row: JudgedRow, thresholds: Sequence[Threshold]) -> str:
    """Return how every promise was kept."""
    own = [each for each in thresholds if each.metric in (row.floor.metric.name, *SERVED, *AT_HALF)]
    compared = [each.relation for each in thresholds if each.kind != "absolute" and each.measured is not None]
    return "; ".join([*(_kept(row, each) for each in own), *compared])


def _kept(row: JudgedRow, each: Threshold) -> str:
    """Return a figure with its margin to the floor."""
    outcome, metric = row.outcome, METRICS[each.metric]
    is_main = metric is row.floor.metric
    if is_main and outcome.limited_by == "floor":
        return f"{row.the_floor} was held: {as_part(each.reason or outcome.reason)}"
    least = "at least " if is_main and outcome.limited_by in ("generator", "range") and not _is_brief(row) else ""
    found = metric.format(each.measured or 0.0)
    margin = f", {format_margin(each.margin_pct)}" if each.margin_pct is not None else ""
    why = f" ({each.reason})" if is_main and each.reason else ""
    return f"{metric.title}: {least}{found}{margin} against the floor of {metric.format(each.limit)}{why}"


def _is_brief(row: JudgedRow) -> bool:
    """Return True where the rate was held for less than `LASTS_S`: for longer, the DUT may hold less."""
    trials = (seen.as_record() for seen in row.outcome.trials)
    return row.outcome.metric.name in OFFERED and held_for(trials, row.result) < LASTS_S


def missed_text(row: JudgedRow, thresholds: Sequence[Threshold], code: Code) -> str:
    """Return what is missed and by how much, then each reason that decided it, once."""
    outcome, failing = row.outcome, [each for each in thresholds if not each.met and not each.undecided]
    if code is Code.LOWEST_LOAD_LOST:
        floor = f", the floor is {row.floor.metric.format(row.floor.main.limit)}" if row.floor.main else ""
        return f"not even the lowest load held{floor}: {as_part(outcome.reason)}"
    short = [_shortfall(row, each) for each in failing if each.measured is not None and not _keeps(each)]
    # What the evidence says, and not the figure, is said where nothing else is.
    held = [] if short else [_not_held(each) for each in failing if _keeps(each)][:1]
    reasons = [each.reason.removeprefix(f"{each.relation}; ") for each in failing if each.reason]
    trials = outcome.verdicts.get(row.floor.metric.name)
    if trials and any(not each.is_promise and each.measured is not None for each in failing):
        # A condition tells what was wrong with the trials.
        reasons = [as_part(trials.reason) if each == as_part(trials.whole) else each for each in reasons]
    if outcome.limited_by == "floor" and not outcome.verdicts:
        reasons.append(as_part(outcome.reason))
    more = [reason for reason in dict.fromkeys(reasons) if not any(reason in said for said in short)]
    return "; ".join([*short, *held, *more]) or "what was promised was not measured"


def _keeps(each: Threshold) -> bool:
    """Return True where the figure alone would keep its threshold."""
    return by_figure(METRICS[each.metric], each.measured, each.limit).kept is True


def _not_held(each: Threshold) -> str:
    metric = METRICS[each.metric]
    return f"{metric.title}: {metric.format(each.limit)} not held"


def _shortfall(row: JudgedRow, threshold: Threshold) -> str:
    """Return by how much one threshold is missed."""
    metric = METRICS[threshold.metric]
    margin = f" ({format_margin(threshold.margin_pct)})" if threshold.margin_pct is not None else ""
    if threshold.kind != "absolute":
        return f"{row.floor.metric.title}: {threshold.relation}{margin}"
    title = f"lost {row.floor.profile.kind}" if threshold.metric == "loss_ratio" else metric.title
    found, limit = metric.format(threshold.measured or 0.0), metric.format(threshold.limit)
    return f"{title}: {found} instead of {metric.bound} {limit}{margin}"


def undecided_text(undecided: list[Threshold]) -> str:
    """Return why some thresholds are undecided, each reason once. Of rates made on another machine, the first stands
    for all."""
    elsewhere = [each for each in undecided if each.elsewhere]
    return "; ".join(dict.fromkeys(each.reason for each in undecided if each not in elsewhere[1:]))


def as_part(text: str) -> str:
    """Return a sentence without its full stop, as a part of another one."""
    return text.rstrip(".")
