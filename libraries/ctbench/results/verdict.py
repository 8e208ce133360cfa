"""The rule of verdicts: whether a promise is met, missed or not measured, and every way in which a row can be red.

A sampler yields evidence: the interval of an estimate, values, trials at a load, turns next to a base, or a fault with
its code. The promise is met where all of it is on the good side of the bound, and missed where all of it is on the
other side. Else more samples are taken while the row's budget lasts; after that the promise is not measured, with what
would have decided it.

Below the rule come the reason codes, the kinds of evidence, and the verdicts on a promise and on its row: which
evidence decides, and what excuses a miss. A sampler defines a sample. `ctbench.sla.verdict` finds what applies to a
row, in sentences. No other file finds a promise kept or missed, or changes what was found.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from ctbench.results.floor import Threshold
from ctbench.results.metrics import AT_HALF, COUNTED, LOSS_OF, METRICS, SERVED, Metric
from ctbench.results.record_model import Estimate
from ctbench.results.statistics import within
from ctbench.traffic.generator import Side

# The rule.


def side(metric: Metric, values: Collection[float], bound: float) -> bool | None:
    """Return True where all values, or both ends of an interval, keep a bound, False where none does, None where some
    do."""
    kept = {metric.keeps(value, bound) for value in values}
    return kept.pop() if len(kept) == 1 else None


def weakest(answers: Iterable[bool | None]) -> bool | None:
    """Return several answers as one: False where one is False, else None where one is None, else True."""
    found = set(answers)
    return False if False in found else None if None in found else True


# What a verdict says.

Word = Literal["met", "missed", "not measured"]
_EITHER, _RED, _GREEN, _OPEN = "met or missed", "missed", "met", "not measured"


class Code(StrEnum):
    """The reason code of a verdict: its name in records, the verdicts that it can have, and its meaning."""

    SPRT = "sequential-test", _EITHER, "so many trials at the floor held, or did not, that they decide"
    FAR = "far-from-the-floor", _EITHER, "all that is known lies far on one side of the floor, and a trial agrees"
    INTERVAL = "interval", _EITHER, "the whole interval lies on one side of the bound"
    RANGE = "range", _EITHER, "all values, of trials or of seeds, lie on one side of the bound"
    FIGURE = "figure", _EITHER, "the figure alone; missed as well where what was to happen did not happen"
    STOOD_STILL = "stood-still", _RED, "over all of its time it keeps less than promised, though its middle may keep it"
    HOLDS_LESS = "holds-less-than-base", _RED, "the candidate lost every trial of a load, and its base none"
    CRASHED = "crashed", _RED, "the candidate crashed in two starts (blocks) of the run, and its base in none"
    LOWEST_LOAD_LOST = "lowest-load-lost", _RED, "not even the lowest load held"
    SATURATED = "dut-saturated", _RED, "the generator cannot offer the floor, and the DUT's limit lies well below both"
    HOLDS_AS_BASE = "holds-as-base", _GREEN, "the candidate holds the load that its base holds, in turn"
    TOO_CLOSE = "too-close-to-call", _OPEN, "the bound lies within the interval, or trials and values are on both sides"
    LOST_AT_TIMES = "lost-at-times", _OPEN, "the candidate lost some trials of a load that its base holds, and not all"
    BASE_TOO = "base-too", _OPEN, "the base does not hold the load either"
    NO_SLOWER_SEEN = "no-slower-seen", _OPEN, "the generator was the limit of candidate and base, and both are alike"
    GENERATOR = "generator-limit", _OPEN, "the traffic generator was the limit"
    NEAR_CEILING = "near-ceiling", _OPEN, "what was found is within 10 % of what the traffic generator can do"
    INVALID = "invalid-trials", _OPEN, "what else happened on the machine could have changed the trials"
    FAULT = "fault", _OPEN, "the DUT, generator, testbed or an action failed"
    UNKNOWN_ANSWER = "unknown-answer", _OPEN, "the DUT answered in a form that nothing here can read"
    NOTHING = "nothing-measured", _OPEN, "no figure was measured"
    UNPROVED = "counts-not-proved", _OPEN, "what was counted in the emulated machine was not proved"
    CONDITION_UNTRIED = "condition-untried", _OPEN, "no valid trial offered a load under the floor's conditions"
    ANOTHER_MACHINE = "another-machine", _OPEN, "the floor is of another machine"
    ANOTHER_IMAGE = "another-image", _OPEN, "the floor is of another image of the emulated machine"
    NEW_KIND = "new-kind", _OPEN, "missed for the first time on a kind of CPU that the floor was not measured on"
    OVERSUBSCRIBED = "oversubscribed", _OPEN, "threads of the testbed share CPUs"
    RATES_NOT_JUDGED = "rates-not-judged", _OPEN, "the testbed file says so, and why"
    SCATTERED = "scattered", _OPEN, "repeated searches lie farther apart than the campaign allows"

    #: What a verdict of this code can be, and what it means.
    can_be: str
    means: str

    def __new__(cls, value: str, can_be: str, means: str) -> "Code":
        code = str.__new__(cls, value)
        code._value_, code.can_be, code.means = value, can_be, means
        return code


#: Misses that are no figure below its floor: what was tested broke, stood still, lost what its base holds, or held
#: nothing.
FAULTS = frozenset((Code.STOOD_STILL, Code.HOLDS_LESS, Code.CRASHED, Code.LOWEST_LOAD_LOST))


@dataclass(frozen=True)
class Verdict:
    """The verdict of evidence on one promise."""

    #: Whether the promise was kept; None: not measured.
    kept: bool | None
    code: Code
    #: One sentence: the trials or the interval that decided, or why nothing did.
    reason: str = ""
    #: What was wrong with the last trial that failed, if one did.
    because: str = ""

    @property
    def word(self) -> Word:
        """The verdict as records and reports name it."""
        return "not measured" if self.kept is None else "met" if self.kept else "missed"

    @property
    def whole(self) -> str:
        """The reason with what was wrong in the last failed trial."""
        return f"{self.reason}: {self.because}" if self.because else self.reason


# Evidence.


def by_values(
    metric: Metric, values: Collection[float], bound: float, said: str, code: Code = Code.RANGE, of: str = ""
) -> Verdict:
    """Judge by values of equal weight, or by both ends of an interval. `of`: what the values are of, for the sentence
    where they do not decide."""
    if (kept := side(metric, values, bound)) is not None:
        return Verdict(kept, code, said)
    promised = f"{metric.bound} {metric.format(bound)} promised"
    return Verdict(None, Code.TOO_CLOSE, f"too close to call: {of}{said}, {promised}")


def by_interval(metric: Metric, figure: Estimate, bound: float | None, what: str) -> dict[str, Verdict]:
    """Judge a figure (of `what`) by its interval, or by all of its samples where it has some. Returns verdicts by
    metric: none where nothing is promised, or where the figure has no interval."""
    if bound is None or figure.low is None or figure.high is None:
        return {}
    low, high = metric.format(figure.low), metric.format(figure.high)
    if figure.samples:
        return {metric.name: by_values(metric, figure.samples, bound, f"{what} found {low} to {high}")}
    ends, said = (figure.low, figure.high), f"{what}, between {low} and {high}"
    return {metric.name: by_values(metric, ends, bound, said, Code.INTERVAL, f"{metric.title}, ")}


def by_figure(
    metric: Metric, value: float | None, bound: float, reason: str = "", *, right: bool = True, valid: bool = True
) -> Verdict:
    """Judge by a figure alone. Without a figure the promise is missed, as what was to be done was not. `right`: whether
    all else went as it has to; `valid`: whether the trial is valid, else nothing is measured."""
    return _alone(right and value is not None and metric.keeps(value, bound), reason, valid=valid)


def by_loss(
    lost: float, of: float, bound: float, reason: str = "", *, right: bool = True, valid: bool = True
) -> Verdict:
    """Judge as `by_figure`, by `lost` of `of`: where few may be lost, one more or less is chance."""
    return _alone(right and within(lost, of, bound), reason, valid=valid)


def _alone(kept: bool, reason: str, *, valid: bool) -> Verdict:
    return Verdict(kept, Code.FIGURE, reason) if valid else Verdict(None, Code.INVALID, reason)


#: Chance that a trial is good of a DUT that keeps the promise, and of one that does not: between the two nothing is
#: decided. The chances of a wrong decision, for either, are at most `ERROR`.
GOOD_IF_KEPT, GOOD_IF_NOT, ERROR = 0.8, 0.3, 0.02
_STEP_UP, _STEP_DOWN = math.log(GOOD_IF_KEPT / GOOD_IF_NOT), math.log((1 - GOOD_IF_KEPT) / (1 - GOOD_IF_NOT))
_BOUND = math.log((1 - ERROR) / ERROR)


def by_trials(good: int, bad: int, far: bool | None = None) -> bool | None:
    """Return whether the DUT holds a load, by the number of good and bad trials (Wald's sequential test); None while
    that is open. `far`: the side of the load on which all known rates lie, where they are far away: one trial that
    agrees is enough."""
    if far is not None and (good, bad) == (int(far), int(not far)):
        return far
    evidence = good * _STEP_UP + bad * _STEP_DOWN
    return True if evidence >= _BOUND else False if evidence <= -_BOUND else None


def of_trials(good: int, bad: int, far: bool | None = None) -> Verdict | None:
    """Return the decision of `by_trials` as a verdict; its sentence is to be added."""
    kept = by_trials(good, bad, far)
    return None if kept is None else Verdict(kept, Code.FAR if good + bad == 1 else Code.SPRT)


def by_ratio(
    intervals: Iterable[tuple[Estimate, bool]], bound: float, waited: Collection[Side] = (), *, silent: bool = False
) -> bool | None:
    """Return whether the tested side keeps its share of the other side, by the middle of their turns and by all of
    their time; None while that is open.

    `intervals`: each ratio, and whether two like builds would hardly lie so far apart; if not, the row is not missed.
    `waited`: sides that waited for the generator, and may be faster than was seen. With the other side among them the
    ratio is an upper bound, with the tested side a lower bound. `silent`: nothing came through the tested side.
    """
    if silent:
        return False
    answers = [(side(METRICS["ratio"], found.ends, bound), apart) for found, apart in intervals]
    if not answers:
        return None
    kept = weakest(None if answer is False and not apart else answer for answer, apart in answers)
    return None if kept is not None and ("other" if kept else "tested") in waited else kept


def of_ratio(kept: bool | None, *, alike: bool, limited: bool, still: bool) -> Verdict:
    """Return the verdict on a ratio that `by_ratio` decided, or left open, without its sentence. `alike`: the tested
    side is no slower than the generator can see; `limited`: the generator limits a side, so more turns decide nothing;
    `still`: the ratio over all of the time breaks the promise, not its middle."""
    if kept is not None:
        return Verdict(kept, Code.STOOD_STILL if still and not kept else Code.INTERVAL)
    return Verdict(None, Code.NO_SLOWER_SEEN if alike else Code.GENERATOR if limited else Code.TOO_CLOSE)


def by_turns(lost: int, base_lost: int, made: int, most: int) -> Code | None:
    """Return the code of a load that the candidate lost in `lost` of `made` trials, and the base in `base_lost` of as
    many. None: make another block (A B B A), up to `most`.

    The candidate is missed (`HOLDS_LESS`) only where it lost all trials of all blocks, and the base none. It holds what
    the base holds where it lost no more trials than the base, or no more than a third. Where both lost all, or both
    some and the candidate not many more, the load is too near the limit of either (`BASE_TOO`). Else, after the last
    block, nothing is decided (`LOST_AT_TIMES`).
    """
    if lost == base_lost == made:
        return Code.BASE_TOO
    if lost <= base_lost or 3 * lost <= made:
        return Code.HOLDS_AS_BASE
    if made < 2 * most:
        return None
    if not base_lost and lost == made:
        return Code.HOLDS_LESS
    return Code.LOST_AT_TIMES if not base_lost or 2 * (lost - base_lost) > made else Code.BASE_TOO


def by_long_turns(lost: int, base_lost: int, made: int, most: int) -> Code | None:
    """Return the code as `by_turns`, for trials of a minute: the base has a turn only after each trial that the
    candidate lost.

    A row whose like build loses each trial with any given probability is missed in at most one of 1024 runs.
    """
    if 3 * lost <= made:
        return Code.HOLDS_AS_BASE
    if base_lost:
        return Code.BASE_TOO
    if lost == made:
        return Code.HOLDS_LESS if made == most else None
    return Code.LOST_AT_TIMES if made > 2 else None


def of_turns(code: Code, reason: str, because: str = "") -> Verdict:
    """Return the verdict on a load tried in turn, by its code."""
    return Verdict({Code.HOLDS_LESS: False, Code.HOLDS_AS_BASE: True}.get(code), code, reason, because)


#: Crashes of the candidate in a run that are no accident, while base lives.
CRASHES = 2


def by_crashes(here: int, of_run: int, samples: str, fault: str) -> Verdict:
    """Judge a candidate that broke: missed where it crashed `here`, and `CRASHES` times in the `samples` of this run
    (starts), while its base never did; else a fault."""
    if not here or of_run < CRASHES:
        return Verdict(None, Code.FAULT, fault)
    return Verdict(False, Code.CRASHED, f"it crashed in {of_run} {samples} of this run, and base in none: {fault}")


#: Of the generator's ceiling: what reaches as much, and is below a floor, may be the generator's own limit.
NEAR_CEILING = 0.9


def is_near(found: float, ceiling: float | None) -> bool:
    """Return True where a figure may be the limit of the generator (`ceiling`), and not of the DUT."""
    return ceiling is not None and found >= NEAR_CEILING * ceiling


def saturates(limit: float, ceiling: float, load: float) -> bool:
    """Return True where a floor asks for a `load` that the generator cannot offer, and the DUT's own `limit` was seen
    well below the generator's `ceiling`. No trial could be made at that load."""
    return load > ceiling and not is_near(limit, ceiling)


# A promise and its row, and what excuses a miss. Of a promise: it is not judged here, kept or not (no trial had to keep
# it, rates say nothing, it is of another image); it was missed on another machine, or for the first time on a new kind;
# its figure may be that of the generator, or of a fault. Of a row: a fault, shared CPUs, nothing offered, searches that
# do not agree.

#: Asked for a code: the sentence that says why it is so of a promise, or of a row; empty where it is not so.
Says = Callable[[Code], str]


def _open(says: Says, *codes: Code) -> Verdict | None:
    """Return *not measured*, by the first of these codes that applies."""
    said = ((code, says(code)) for code in codes)
    return next((Verdict(None, code, text) for code, text in said if text), None)


def with_figure(each: Threshold, *, good: bool) -> Threshold:
    """Return a promise, or a condition of trials, with `met` by its figure. `good`: a good trial measured it, so its
    loss limit is kept even where a few losses are a larger share than that."""
    metric, found = METRICS[each.metric], each.measured
    lost_no_more = good and found is not None and metric in LOSS_OF.values()
    return replace(each, met=lost_no_more or by_figure(metric, found, each.limit).kept is True)


def excusable(each: Threshold, *, nothing_came: bool) -> bool:
    """Return True where the testbed can excuse a miss. `nothing_came`: loads were offered, and not one connection or
    packet came through: no testbed excuses that for a metric that depends on a machine's speed."""
    return each.metric in COUNTED or not nothing_came


def of_promise(
    each: Threshold, verdicts: Mapping[str, Verdict], main: str, says: Says, *, nothing_came: bool
) -> Verdict:
    """Return the verdict on a promise, or on a condition of trials, that was compared with its figure. `verdicts`:
    those of evidence by metric; `main`: the metric that the row looks for; `nothing_came`: as in `excusable`."""
    can_excuse = excusable(each, nothing_came=nothing_came)
    of_rates = (Code.RATES_NOT_JUDGED,) if can_excuse and each.metric not in COUNTED else ()
    if nothing := _open(says, Code.CONDITION_UNTRIED, *of_rates, Code.ANOTHER_IMAGE):
        return nothing
    found = _by_evidence(each, verdicts, main, says)
    if found.kept is not False:
        return found
    here = (Code.ANOTHER_MACHINE,) if can_excuse else ()
    first = (Code.NEW_KIND,) if _waits(each, found.code, can_excuse=can_excuse) else ()
    return _open(says, *here, *first) or found


def _waits(each: Threshold, code: Code, *, can_excuse: bool) -> bool:
    """True where a first miss on a new kind of machine waits for a second run: of a ratio or a smoke test that any
    machine is promised. A DUT that crashed, stood still or let nothing through is missed at once."""
    if each.metric == "ratio":
        return code is Code.INTERVAL
    return each.smoke and can_excuse and code not in FAULTS


def _by_evidence(each: Threshold, verdicts: Mapping[str, Verdict], main: str, says: Says) -> Verdict:
    """Judge by the promise's own evidence, else by trials at the floor, else by its figure."""
    found, trials = verdicts.get(each.metric), verdicts.get(main)
    if each.kind != "absolute" or each.metric in SERVED:  # of which no trial at a rate says anything
        return found or Verdict(None, Code.NOTHING, says(Code.NOTHING))
    # These are made at a load that tries every rate: they decide about packets as about connections. Where they decide
    # nothing, neither do the conditions that some of them broke.
    if found is None and trials and (each.is_promise or trials.kept is None):
        if trials.kept is not None and each.measured is None:
            return Verdict(None, Code.NOTHING, says(Code.NOTHING))
        found = trials
    if found is None:
        missed = by_figure(METRICS[each.metric], each.measured, each.limit)
        return Verdict(True, Code.FIGURE) if each.met else _not_of_dut(says) or missed
    if found.kept or not each.is_promise or each.metric in AT_HALF:
        return found
    if found.kept is False:
        return _open(says, Code.NEAR_CEILING) or found
    said = says(Code.SATURATED)
    return Verdict(False, Code.SATURATED, said) if said else found


def _not_of_dut(says: Says) -> Verdict | None:
    """Return why a figure below its floor, or trials that kept no conditions, say nothing of the DUT; None where they
    do."""
    return _open(says, Code.FAULT, Code.GENERATOR, Code.NEAR_CEILING)


def excused(verdicts: Mapping[str, Verdict], main: Threshold | None, serves: float | None) -> Mapping[str, Verdict]:
    """Return the verdicts on a row's promises and conditions, by metric, where the trials at a floor had to lose: that
    miss is of another machine or waits for a second run, and so do the conditions that were broken there. `main`: the
    promise of what the row looks for; `serves`: what a closed loop served, which has to be less than its floor: a DUT
    that serves the load and loses some of it is missed on any machine."""
    by = verdicts.get(main.metric) if main else None
    if not main or not by or by.code not in (Code.ANOTHER_MACHINE, Code.NEW_KIND):
        return verdicts
    if serves is None or serves >= main.limit:
        return verdicts
    broken = {
        name
        for name, each in verdicts.items()
        if each.kept is False and each.code not in FAULTS and METRICS[name].role == "condition"
    }
    return {name: by if name in broken else each for name, each in verdicts.items()}


def decided(each: Threshold, by: Verdict) -> Threshold:
    """Return a promise with its verdict. Its figure may scatter to the other side of the limit; its margin is 0
    then."""
    margin = each.margin_pct
    if margin is not None and by.kept is not None:
        margin = max(margin, 0.0) if by.kept else min(margin, 0.0)
    return replace(
        each,
        met=by.kept is True,
        undecided=by.kept is None,
        new_kind=by.code is Code.NEW_KIND,
        margin_pct=margin,
        reason=by.whole.rstrip("."),
    )


def says_nothing(says: Says, *, lost: bool) -> Verdict | None:
    """Return the verdict on a row that tells nothing, whatever was found; None for a row that tells something. `lost`:
    a comparison was lost before a fault, and stays lost."""
    return _open(says, *(() if lost else (Code.FAULT,)), Code.OVERSUBSCRIBED, Code.NOTHING, Code.SCATTERED)


def of_row(verdicts: Mapping[str, Verdict], main: str, says: Says, *, held: bool, lowest_lost: bool) -> Verdict:
    """Return the verdict on a row from the verdicts on its promises, by metric: missed where one is missed, else not
    measured where one is, else met. Its code is that of the first of these promises, of misses that of the first fault,
    and where all are met that of the `main` metric.

    `held`: whether the conditions were kept at the result, or trials at the floor tell of it; `lowest_lost`: whether
    not even the lowest load held, and no evidence decided anything.
    """
    kept = weakest(each.kept for each in verdicts.values())
    codes = {metric: each.code for metric, each in verdicts.items() if each.kept is kept}
    first = next(iter(codes.values()), Code.FIGURE)
    if kept:
        return Verdict(True, codes.get(main, first)) if held else _not_of_dut(says) or Verdict(False, Code.FIGURE)
    if kept is False:
        fault = next((code for code in codes.values() if code in FAULTS), first)
        return Verdict(False, Code.LOWEST_LOAD_LOST if lowest_lost else fault)
    # What is not known outweighs what could not be seen.
    return Verdict(None, next((code for code in codes.values() if code is not Code.NO_SLOWER_SEEN), first))


def word_of(each: Threshold, row: Word) -> Word:
    """Return the verdict on a promise in a record. Where its `row` was not measured, no promise is missed."""
    if each.undecided or each.met:
        return "not measured" if each.undecided else "met"
    return "not measured" if row == "not measured" else "missed"


def confirms(each: Threshold, row: Word) -> bool:
    """Return True where the verdict of another run makes a miss count on a new kind of machine (`NEW_KIND`)."""
    return each.new_kind or word_of(each, row) == "missed"
