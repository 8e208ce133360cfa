"""The one rule: the verdict by each kind of evidence, and that nothing outside its file finds a promise missed."""

import ast
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf
from typing import get_args

import pytest

from ctbench.base.paths import LIBRARIES
from ctbench.results import floor, verdict
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import Code, Verdict

RATE, TIME, LOST = METRICS["cps"], METRICS["dump_time"], METRICS["loss_meanwhile"]
RULE = LIBRARIES / "ctbench" / "results" / "verdict.py"


def values(*some: float) -> Verdict:
    return verdict.by_values(TIME, some, 1.0, "3 seeds")


def interval(low: float, high: float, *middle: float) -> Verdict:
    samples = (low, *middle, high) if middle else ()
    (found,) = verdict.by_interval(RATE, Estimate(low, "connections/s", low, high, samples), 100.0, "loops").values()
    return found


def turns(code: Code | None) -> Verdict:
    assert code is not None
    return verdict.of_turns(code, "in turn")


def saturation(limit: float, ceiling: float) -> Verdict:
    return promise(90.0, {"cps": GENERATOR}, [Code.SATURATED] * verdict.saturates(limit, ceiling, 100.0))


def promise(
    found: float | None, verdicts: Mapping[str, Verdict] | None = None, so: Collection[Code] = (), *,
    of: str = "cps", limit: float = 100.0, good: bool = False, nothing_came: bool = False,
) -> Verdict:  # fmt: skip
    """The verdict on a promise, or a condition; of these codes it is so that..."""
    each = replace(floor.promise(METRICS[of], limit), measured=found)
    each = verdict.with_figure(each, good=good)
    return verdict.of_promise(each, verdicts or {}, "cps", saying(*so), nothing_came=nothing_came)


def saying(*so: Code) -> verdict.Says:
    return lambda code: f"{code} it is" * (code in so)


def row(*some: Verdict, held: bool = True, lowest_lost: bool = False, so: Collection[Code] = ()) -> Verdict:
    verdicts = dict(zip(METRICS, some, strict=False))
    return verdict.of_row(verdicts, "cps", saying(*so), held=held, lowest_lost=lowest_lost)


MET, MISSED, OPEN = Verdict(True, Code.SPRT), Verdict(False, Code.INTERVAL), Verdict(None, Code.TOO_CLOSE)
ALIKE, FIGURE = Verdict(None, Code.NO_SLOWER_SEEN), Verdict(True, Code.FIGURE)
GENERATOR = Verdict(None, Code.GENERATOR)
#: Evidence, and its verdict.
CASES: dict[str, tuple[Verdict, str, Code]] = {
    "an interval above": (interval(100, 120), "met", Code.INTERVAL),
    "an interval up to the bound": (interval(90, 100), "not measured", Code.TOO_CLOSE),
    "an interval below": (interval(80, 99), "missed", Code.INTERVAL),
    "all values keep it": (values(0.2, 1.0), "met", Code.RANGE),
    "a value does not": (values(0.2, 1.1), "not measured", Code.TOO_CLOSE),
    "one never ended": (values(0.2, inf), "not measured", Code.TOO_CLOSE),
    "all seeds keep it": (interval(100, 120, 110), "met", Code.RANGE),
    "a seed does not": (interval(90, 120, 110), "not measured", Code.TOO_CLOSE),
    "no value does": (values(1.1, inf), "missed", Code.RANGE),
    "a figure at its bound": (verdict.by_figure(TIME, 1.0, 1.0), "met", Code.FIGURE),
    "a figure beyond": (verdict.by_figure(TIME, 1.1, 1.0), "missed", Code.FIGURE),
    "no figure": (verdict.by_figure(TIME, None, 1.0), "missed", Code.FIGURE),
    "a figure of what went wrong": (verdict.by_figure(TIME, 0.1, 1.0, right=False), "missed", Code.FIGURE),
    "a fault next to a figure": (row(MISSED, Verdict(False, Code.CRASHED)), "missed", Code.CRASHED),
    "a figure of an invalid trial": (verdict.by_figure(TIME, 0.1, 1.0, valid=False), "not measured", Code.INVALID),
    "a bad figure of an invalid trial": (verdict.by_figure(TIME, 2.0, 1.0, valid=False), "not measured", Code.INVALID),
    "few of many lost": (verdict.by_loss(1, 10_000, 0.0001), "met", Code.FIGURE),
    "one of few lost": (verdict.by_loss(1, 1_000, 0.0001), "met", Code.FIGURE),
    "many lost": (verdict.by_loss(10, 1_000, 0.0001), "missed", Code.FIGURE),
    "nothing offered": (verdict.by_loss(0, 0, 0.0001), "missed", Code.FIGURE),
    "none lost, but something went wrong": (verdict.by_loss(0, 9, 0.1, right=False), "missed", Code.FIGURE),
    "lost by the generator": (verdict.by_loss(9, 9, 0.1, valid=False), "not measured", Code.INVALID),
    "an action that did nothing": (verdict.by_figure(TIME, None, 0.0, "no port was added"), "missed", Code.FIGURE),
    "all trials of a load lost": (turns(verdict.by_turns(6, 0, 6, 3)), "missed", Code.HOLDS_LESS),
    "some of them": (turns(verdict.by_turns(5, 0, 6, 3)), "not measured", Code.LOST_AT_TIMES),
    "the base lost one": (turns(verdict.by_turns(6, 1, 6, 3)), "not measured", Code.LOST_AT_TIMES),
    "the base lost many": (turns(verdict.by_turns(6, 4, 6, 3)), "not measured", Code.BASE_TOO),
    "both lost all": (turns(verdict.by_turns(2, 2, 2, 3)), "not measured", Code.BASE_TOO),
    "none lost": (turns(verdict.by_turns(0, 0, 2, 3)), "met", Code.HOLDS_AS_BASE),
    "no more lost than by the base": (turns(verdict.by_turns(1, 1, 2, 3)), "met", Code.HOLDS_AS_BASE),
    "all long trials lost": (turns(verdict.by_long_turns(4, 0, 4, 4)), "missed", Code.HOLDS_LESS),
    "two of three long trials": (turns(verdict.by_long_turns(2, 0, 3, 4)), "not measured", Code.LOST_AT_TIMES),
    "the base lost a long trial": (turns(verdict.by_long_turns(1, 1, 1, 4)), "not measured", Code.BASE_TOO),
    "no long trial lost": (turns(verdict.by_long_turns(0, 0, 1, 4)), "met", Code.HOLDS_AS_BASE),
    "trials said nothing": (turns(Code.INVALID), "not measured", Code.INVALID),
    "one crash": (verdict.by_crashes(1, 1, "starts", "it crashed"), "not measured", Code.FAULT),
    "two crashes": (verdict.by_crashes(1, 2, "starts", "it crashed"), "missed", Code.CRASHED),
    "two crashes, and here another fault": (verdict.by_crashes(0, 2, "starts", "it broke"), "not measured", Code.FAULT),
    "a limit far below a low ceiling": (saturation(40, 50), "missed", Code.SATURATED),
    "a limit near a low ceiling": (saturation(45, 50), "not measured", Code.GENERATOR),
    "a limit below a ceiling above the floor": (saturation(40, 100), "not measured", Code.GENERATOR),
    "a row of which all is met": (row(FIGURE, MET), "met", Code.FIGURE),
    "a row of which one is missed": (row(MET, OPEN, MISSED), "missed", Code.INTERVAL),
    "a row of which one is open": (row(MET, OPEN), "not measured", Code.TOO_CLOSE),
    "what could not be seen, and what is not known": (row(ALIKE, OPEN), "not measured", Code.TOO_CLOSE),
    "what could not be seen": (row(MET, ALIKE), "not measured", Code.NO_SLOWER_SEEN),
    "a row of which not even the lowest load held": (row(MISSED, lowest_lost=True), "missed", Code.LOWEST_LOAD_LOST),
    "the conditions were not kept": (row(MET, held=False), "missed", Code.FIGURE),
    "the generator was the limit where they were not": (
        row(MET, held=False, so=[Code.GENERATOR]),
        "not measured",
        Code.GENERATOR,
    ),
    "a row without a promise": (row(), "met", Code.FIGURE),
    "a ratio": (verdict.of_ratio(False, alike=False, limited=False, still=False), "missed", Code.INTERVAL),
    "a ratio of one that stood still": (
        verdict.of_ratio(False, alike=False, limited=False, still=True),
        "missed",
        Code.STOOD_STILL,
    ),
    "a ratio kept by one that stood still": (
        verdict.of_ratio(True, alike=False, limited=False, still=True),
        "met",
        Code.INTERVAL,
    ),
    "a ratio of two that wait alike": (
        verdict.of_ratio(None, alike=True, limited=True, still=False),
        "not measured",
        Code.NO_SLOWER_SEEN,
    ),
    "a ratio of one that waits": (
        verdict.of_ratio(None, alike=False, limited=True, still=False),
        "not measured",
        Code.GENERATOR,
    ),
    "a ratio within its interval": (
        verdict.of_ratio(None, alike=False, limited=False, still=True),
        "not measured",
        Code.TOO_CLOSE,
    ),
    # Promises: what decides them, and what excuses a miss.
    "a promise by its figure": (promise(100.0), "met", Code.FIGURE),
    "a promise below by its figure": (promise(99.0), "missed", Code.FIGURE),
    "a promise not measured": (promise(None), "missed", Code.FIGURE),
    "few lost in a good trial": (promise(0.1, of="loss_ratio", limit=0.01, good=True), "met", Code.FIGURE),
    "many lost in a bad one": (promise(0.1, of="loss_ratio", limit=0.01), "missed", Code.FIGURE),
    "a low figure near the ceiling": (promise(99.0, so=[Code.NEAR_CEILING]), "not measured", Code.NEAR_CEILING),
    "a low figure of a fault": (promise(99.0, so=[Code.NEAR_CEILING, Code.FAULT]), "not measured", Code.FAULT),
    "a good figure of a fault": (promise(100.0, so=[Code.FAULT]), "met", Code.FIGURE),
    "trials failed near the ceiling": (
        promise(99.0, {"cps": MISSED}, [Code.NEAR_CEILING]),
        "not measured",
        Code.NEAR_CEILING,
    ),
    "trials failed of a fault": (promise(99.0, {"cps": MISSED}, [Code.FAULT]), "missed", Code.INTERVAL),
    "another rate by trials at the floor": (promise(99.0, {"cps": MET}, of="pps"), "met", Code.SPRT),
    "another rate that was not measured": (
        promise(None, {"cps": MET}, [Code.NOTHING], of="pps"),
        "not measured",
        Code.NOTHING,
    ),
    "a condition by its figure": (promise(0.1, {"cps": MET}, of="loss_ratio", limit=0.01), "missed", Code.FIGURE),
    "a condition by its own evidence, near the ceiling": (
        promise(0.1, {"loss_ratio": Verdict(False, Code.HOLDS_LESS)}, [Code.NEAR_CEILING], of="loss_ratio", limit=0.01),
        "missed",
        Code.HOLDS_LESS,
    ),
    "a condition where trials decided nothing": (
        promise(0.1, {"cps": OPEN}, of="loss_ratio", limit=0.01),
        "not measured",
        Code.TOO_CLOSE,
    ),
    "a condition that was not tried": (
        promise(None, so=[Code.CONDITION_UNTRIED], of="loss_ratio"),
        "not measured",
        Code.CONDITION_UNTRIED,
    ),
    "a ratio without a pair": (promise(2.0, so=[Code.NOTHING], of="ratio", limit=1.0), "not measured", Code.NOTHING),
    "missed on another machine": (promise(99.0, so=[Code.ANOTHER_MACHINE]), "not measured", Code.ANOTHER_MACHINE),
    "met on another machine": (promise(100.0, so=[Code.ANOTHER_MACHINE]), "met", Code.FIGURE),
    "nothing came on another machine": (
        promise(0.0, so=[Code.ANOTHER_MACHINE], nothing_came=True),
        "missed",
        Code.FIGURE,
    ),
    "met where rates are not judged": (
        promise(100.0, so=[Code.RATES_NOT_JUDGED]),
        "not measured",
        Code.RATES_NOT_JUDGED,
    ),
    "a count where they are not": (
        promise(99.0, so=[Code.RATES_NOT_JUDGED], of="held_connections"),
        "missed",
        Code.FIGURE,
    ),
    "nothing came where they are not": (
        promise(0.0, so=[Code.RATES_NOT_JUDGED], nothing_came=True),
        "missed",
        Code.FIGURE,
    ),
    "a ratio of a new kind": (
        promise(0.5, {"ratio": MISSED}, [Code.NEW_KIND], of="ratio", limit=1.0),
        "not measured",
        Code.NEW_KIND,
    ),
    "a rate of a new kind": (promise(99.0, {"cps": MISSED}, [Code.NEW_KIND]), "missed", Code.INTERVAL),
    "met with another image": (
        promise(1.0, so=[Code.ANOTHER_IMAGE], of="instructions_per_packet"),
        "not measured",
        Code.ANOTHER_IMAGE,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_evidence_has_its_word_and_its_code(case: str) -> None:
    found, word, code = CASES[case]
    assert (found.word, found.code) == (word, code)
    assert word in found.code.can_be


@pytest.mark.parametrize(
    ("good", "bad", "far", "kept"),
    [
        (4, 0, None, True), (3, 0, None, None), (0, 4, None, False), (0, 3, None, None), (5, 1, None, None),
        (1, 0, True, True), (0, 1, False, False), (1, 0, False, None), (0, 1, True, None), (2, 0, True, None),
    ],
)  # fmt: skip
def test_trials_decide_together_or_one_where_all_that_is_known_is_far(
    good: int, bad: int, far: bool | None, kept: bool | None
) -> None:
    assert verdict.by_trials(good, bad, far) is kept
    found = verdict.of_trials(good, bad, far)
    code = Code.FAR if good + bad == 1 else Code.SPRT
    assert found == (None if kept is None else Verdict(kept, code))


ABOVE, ACROSS, BELOW = (Estimate(value=at, low=at - 0.02, high=at + 0.02) for at in (1.0, 0.97, 0.9))


@pytest.mark.parametrize(
    ("intervals", "waited", "kept"),
    [
        ([(ABOVE, True), (ABOVE, True)], (), True),
        ([(ABOVE, True), (ACROSS, True)], (), None),
        ([(ABOVE, True), (BELOW, True)], (), False),
        ([(BELOW, True), (ACROSS, True)], (), False),
        ([(ABOVE, True), (BELOW, False)], (), None),  # two like builds may lie so far apart
        ([(ABOVE, True)], ("other",), None),
        ([(ABOVE, True)], ("tested",), True),
        ([(BELOW, True)], ("other",), False),
        ([(BELOW, True)], ("tested",), None),
        ([], (), None),
    ],
)
def test_both_intervals_of_a_ratio_keep_it_and_either_breaks_it(
    intervals: list[tuple[Estimate, bool]], waited: tuple[str, ...], kept: bool | None
) -> None:
    assert verdict.by_ratio(intervals, 0.97, waited) is kept  # type: ignore[arg-type]
    assert verdict.by_ratio(intervals, 0.97, waited, silent=True) is False  # type: ignore[arg-type]


#: What a verdict, or a promise that one was found for, has of it.
FOUND = {"kept", "met", "undecided", "new_kind"}
WORDS: set[object] = set(get_args(verdict.Word))
#: Of these a sampler may say that they are so: none of them is a miss.
OPEN_CODES = {code.name for code in Code if code.can_be == "not measured"}


def found_elsewhere(source: str, *, samples: bool = True) -> list[str]:
    """Where a source finds a promise kept or missed by itself, changes what was found, or compares a figure with its
    limit. `samples`: whether it may say that nothing was measured, and why."""
    nodes = list(ast.walk(ast.parse(source)))
    return [f"{node.lineno}: {ast.unparse(node)}" for node in nodes if finds(node, samples=samples)]  # type: ignore[attr-defined]


def finds(node: ast.AST, *, samples: bool) -> bool:
    if isinstance(node, ast.IfExp):  # not `"missed" if many else "met, failed"`, of a tally
        words = {each.value for each in (node.body, node.orelse) if isinstance(each, ast.Constant)}
        return "missed" in words and words <= WORDS
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(each, ast.Attribute) and each.attr in FOUND for each in targets)
    return isinstance(node, ast.Call) and makes(node, samples=samples)


def makes(call: ast.Call, *, samples: bool) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    named = {each.arg: each.value for each in call.keywords}
    kept = call.args[0] if call.args else named.get("kept")
    if name == "Verdict":
        code = call.args[1] if len(call.args) > 1 else None
        told = getattr(code, "attr", "") if getattr(getattr(code, "value", None), "id", "") == "Code" else ""
        is_open = isinstance(kept, ast.Constant) and kept.value is None and (not told or told in OPEN_CODES)
        return not (samples and is_open)
    if name == "RowVerdict":  # of a row: as it was found
        return not (isinstance(kept, ast.Attribute) and kept.attr == "kept")
    return name == "keeps" or (name in ("replace", "Threshold") and bool(FOUND & named.keys()))


#: A trial is good or bad by its conditions, of which some are promises.
MAY_COMPARE = "ctbench/measure/observation.py"
#: Who makes samples, and says where there are none.
SAMPLES = ("ctbench/measure", "ctbench/run")


def test_nothing_else_finds_a_promise_missed() -> None:
    found = {}
    for path in sorted({*LIBRARIES.rglob("*.py")} - {RULE}):
        name = str(path.relative_to(LIBRARIES))
        if lines := found_elsewhere(path.read_text(), samples=name.startswith(SAMPLES)):
            found[name] = lines
    assert found.keys() == {MAY_COMPARE}
    assert all(".keeps(" in line for line in found[MAY_COMPARE])


@pytest.mark.parametrize(
    "source",
    [
        "Verdict(False, Code.FAULT)",
        "Verdict(kept=False)",
        "Verdict(True if it else None, code)",
        "Verdict(self.side, Code.FAR)",
        "Verdict(None, Code.HOLDS_LESS)",
        "RowVerdict(None, doubt.code)",
        "replace(it, kept=None)",
        "replace(each, met=kept)",
        "replace(each, undecided=True)",
        "Threshold(metric=name, met=True)",
        "each.met = False",
        "metric.keeps(value, limit)",
        'Compared(test, "missed" if low > 0 else "met")',
        'word = "met" if share.met else "missed"',
    ],
)
def test_one_that_does_is_found(source: str) -> None:
    assert found_elsewhere(source)


def test_one_that_says_why_nothing_was_measured_may_only_sample() -> None:
    source = "Verdict(None, Code.GENERATOR, text)"
    assert not found_elsewhere(source) and found_elsewhere(source, samples=False)


def test_each_code_says_what_it_can_be_and_what_it_means() -> None:
    assert {code.can_be for code in Code} == {"met or missed", "missed", "met", "not measured"}
    assert len({code.means for code in Code}) == len(Code)
    assert Code("stood-still") is Code.STOOD_STILL and f"{Code.STOOD_STILL}" == "stood-still"
