"""The one rule: the verdict by each kind of evidence, and that nothing outside its file finds a promise missed."""

import ast
from collections.abc import Sequence
from math import inf

import pytest

from ctbench.base.paths import LIBRARIES
from ctbench.results import verdict
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
    return verdict.by_saturation(limit, ceiling, 100.0, "saturates") or Verdict(None, Code.GENERATOR)


def row(*some: Verdict, held: bool = True, lowest_lost: bool = False) -> Verdict:
    return verdict.of_row(dict(zip(METRICS, some, strict=False)), "cps", held=held, lowest_lost=lowest_lost)


MET, MISSED, OPEN = Verdict(True, Code.SPRT), Verdict(False, Code.INTERVAL), Verdict(None, Code.TOO_CLOSE)
ALIKE, FIGURE = Verdict(None, Code.NO_SLOWER_SEEN), Verdict(True, Code.FIGURE)
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
    "a fault beside a figure": (row(MISSED, Verdict(False, Code.CRASHED)), "missed", Code.CRASHED),
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
    "a row without a promise": (row(), "met", Code.FIGURE),
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


def found_elsewhere(source: str) -> list[str]:
    """Where a source finds a promise kept or missed by itself."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [f"{call.lineno}: {ast.unparse(call)}" for call in calls if finds(call)]


def finds(call: ast.Call) -> bool:
    """Whether a call makes a verdict of a plain True or False, or of the word itself, changes one afterwards, or
    compares a figure with its limit."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    named = {each.arg: each.value for each in call.keywords}
    kept = [*call.args[:1], *(value for arg, value in named.items() if arg == "kept")]
    if name in ("Verdict", "RowVerdict") and any(type(value) is bool for value in constants(kept)):
        return True
    branches = [
        part for each in call.args for part in ([each.body, each.orelse] if isinstance(each, ast.IfExp) else [])
    ]
    words = [each.value for each in branches if isinstance(each, ast.Constant)]
    return name == "keeps" or (name == "replace" and "kept" in named) or "missed" in words


def constants(nodes: Sequence[ast.expr]) -> list[object]:
    return [each.value for node in nodes for each in ast.walk(node) if isinstance(each, ast.Constant)]


#: A trial is good or bad by its conditions, and a figure may be shown that its evidence contradicts.
MAY_COMPARE = ("measure/observation.py", "sla/verdict.py")


def test_nothing_else_finds_a_promise_missed() -> None:
    others = [path for path in LIBRARIES.rglob("*.py") if path != RULE]
    found = {str(path.relative_to(LIBRARIES / "ctbench")) for path in others if found_elsewhere(path.read_text())}
    assert found == set(MAY_COMPARE)
    assert not [line for name in MAY_COMPARE for line in found_elsewhere((LIBRARIES / "ctbench" / name).read_text())
                if ".keeps(" not in line]  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "Verdict(False, Code.FAULT)",
        "Verdict(kept=False)",
        "Verdict(True if it else None, code)",
        "replace(it, kept=None)",
        "metric.keeps(value, limit)",
        'Compared(test, "missed" if low > 0 else "met")',
    ],
)
def test_one_that_does_is_found(source: str) -> None:
    assert found_elsewhere(source)


def test_each_code_says_what_it_can_be_and_what_it_means() -> None:
    assert {code.can_be for code in Code} == {"met or missed", "missed", "met", "not measured"}
    assert len({code.means for code in Code}) == len(Code)
    assert Code("stood-still") is Code.STOOD_STILL and f"{Code.STOOD_STILL}" == "stood-still"
