"""The judgement of two sides, on made-up records: what it says, and how often it is wrong; the exit status of
`./run compare`, and what it refuses; instructions are in test_compare_counts.py.

How often it is wrong: a build is measured by searching a simulated DUT whose capacity differs from run to run by 2 %
and from trial to trial by 0.5 %; one trial in fifty is disturbed. All of it is seeded."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pages import read_page

from ctbench.base.errors import ConfigError
from ctbench.compare import text
from ctbench.compare.judge import compare
from ctbench.compare.page import comparison_html, write_comparison
from ctbench.compare.sides import Runs, differences, leaves, read_runs
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Mlr
from ctbench.measure.search import search
from ctbench.results import store
from ctbench.results.comparison import ComparedTest, Comparison
from ctbench.results.environment import CampaignFacts
from ctbench.results.record_model import Figure

from .compared import TRUTH, Run, around, environment, record, runs, side
from .simulated import SimulatedDut


def only_test(comparison: Comparison) -> ComparedTest:
    assert len(comparison.tests) == 1
    return comparison.tests[0]


def test_a_build_that_is_a_tenth_slower_regressed() -> None:
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH * 0.9, 5, 1)))
    test = only_test(judged)
    assert (judged.judgement, test.judgement) == ("regressed", "regressed")
    assert test.difference_pct == pytest.approx(-10, abs=1.5)
    assert test.p_regressed == test.p_regressed_corrected == pytest.approx(1 / 252)
    assert (test.metric, test.unit) == ("cps", "connections/s")
    assert test.base is not None
    assert len(test.base.values) == 5
    assert test.base.minimum <= test.base.median <= test.base.maximum
    assert judged.sentence == "The candidate regressed (1 regressed)."
    assert Comparison.model_validate_json(judged.model_dump_json()) == judged


FIVE = around(TRUTH, 5)
GATE = CampaignFacts(name="gate", search="gate")


@pytest.mark.parametrize(
    ("old", "new", "judgement", "said"),
    [
        (FIVE, around(TRUTH * 1.1, 5, 1), "improved", "The median got better by "),
        (FIVE, around(TRUTH, 5, 1), "no evidence", "which is within 3.00 %."),
        (
            around(TRUTH, 5, 3, 0.1),
            around(TRUTH * 0.93, 5, 4, 0.1),
            "no evidence",
            "but with no difference between the sides, samples this far apart are seen with p = ",
        ),
        (around(TRUTH, 8, 0, 0.001), around(TRUTH * 0.98, 8, 1, 0.001), "no evidence", "within 3.00 %"),
        (
            around(TRUTH, 4),
            around(TRUTH / 2, 4),
            "not measurable",
            "4 against 4 samples cannot show p < 0.01 among 1 tests: 5 on either side are needed.",
        ),
        ([0.0] * 5, FIVE, "improved", "The median got better from 0; with no difference"),
    ],
)
def test_samples_are_judged_with_a_reason(old: list[float], new: list[float], judgement: str, said: str) -> None:
    test = only_test(compare(runs("old", old), runs("new", new)))
    assert test.judgement == judgement
    assert said in test.reason
    assert (test.difference_pct is None) == (old[0] == 0), "from nothing there is no percentage"


@pytest.mark.parametrize(
    ("both", "candidate", "judgement", "said"),
    [
        ({"upper": TRUTH * 1.15}, {}, "no evidence", "which is within "),
        ({"limited_by": "range"}, {}, "not measurable", "raise loads.max"),
        (
            {},
            {"verdict": "not measured", "verdict_reason": "the generator was the limit."},
            "not measurable",
            "Of the candidate: not measured: the generator was",
        ),
        (
            {},
            {"limited_by": "floor", "campaign": GATE},
            "not measurable",
            "campaign gate tries the floor and nothing else",
        ),
    ],
)
def test_what_the_search_or_the_generator_or_the_floor_ended_is_no_regression(
    both: dict[str, Any], candidate: dict[str, Any], judgement: str, said: str
) -> None:
    test = only_test(compare(runs("old", FIVE, **both), runs("new", around(TRUTH * 0.9, 5), **both, **candidate)))
    assert test.judgement == judgement
    assert said in test.reason


def test_a_small_difference_is_a_regression_where_the_user_says_so() -> None:
    old, new = runs("old", around(TRUTH, 8, 0, 0.001)), runs("new", around(TRUTH * 0.98, 8, 1, 0.001))
    assert only_test(compare(old, new, least_difference=0.015)).judgement == "regressed"


def test_many_tests_need_more_samples() -> None:
    old = runs("old", *([TRUTH + run for run in range(5)] for _ in range(20)))
    new = runs("new", *([TRUTH * 0.8 + run for run in range(5)] for _ in range(20)))
    judged = compare(old, new)
    assert {test.judgement for test in judged.tests} == {"not measurable"}
    assert "among 20 tests: 7 on either side" in judged.tests[0].reason
    assert {test.judgement for test in compare(old, new, only=["test 3"]).tests} == {"regressed"}


def test_the_searches_of_one_run_or_the_medians_of_several_are_the_samples_and_it_is_said() -> None:
    judged = compare(side("old", [record(around(TRUTH, 5))]), side("new", [record(around(TRUTH * 0.9, 5, 1), "other")]))
    assert only_test(judged).judgement == "regressed"
    assert judged.notes[1].startswith("old is one run: what differs from one start of the DUT to the next")
    # Of several runs, the medians are.
    old = side("old", [record([TRUTH, TRUTH * 2, TRUTH * 3], f"old-{number}") for number in range(6)])
    test = only_test(compare(old, runs("new", around(TRUTH, 6))))
    assert test.base is not None
    assert test.base.values == [TRUTH * 2] * 6


def test_what_only_one_side_has_is_named_and_the_generator_by_itself_is_no_test() -> None:
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5), rulesets=1))
    assert [test.reason for test in judged.tests] == [
        "Of the candidate: there is no record of it.", "Of the base: there is no record of it.",
    ]  # fmt: skip
    cable = {"topology": Topology(datapath="cable", ruleset="none")}
    judged = compare(runs("old", around(TRUTH, 5), **cable), runs("new", around(TRUTH / 2, 5), **cable))
    assert (judged.tests, judged.judgement) == ([], "not measurable")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"environment": environment(machine={"kernel": "6.2"})}, 'kernel ("6.1" and "6.2")'),
        ({"environment": environment(testbed={"name": "lab"})}, "The testbed file is not"),
        ({"environment": environment(dut={"memory": {"kind": "hugepages"}})}, "The memory ovs-dpdk is not"),
        ({"environment": environment(dut={"memory": {"kind": "no-huge", "megabytes": 512}})}, "megabytes (0 and 512)"),
        ({"campaign": CampaignFacts(name="quick", search="bisection")}, "The campaign is not the same in all runs: n"),
    ],
)  # fmt: skip
def test_sides_that_are_not_alike_are_named(changes: dict[str, Any], said: str) -> None:
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5), **changes))
    assert len(judged.differences) == 1
    assert said in judged.differences[0]
    assert judged.differences[0] in text.markdown(judged).replace("\\", "")
    assert "NOT ALIKE" in text.console(judged)


def test_no_other_build_nor_what_is_free_nor_a_setting_that_says_nothing_is_a_difference() -> None:
    dut = {"type": "ovs-dpdk", "ovs": {"prefix": "/opt/ovs-3.3"}, "memory_mb": 1024}
    other = environment(
        testbed={"duts": [dut]}, dut={"version": "3.3.0", "product_details": "Open vSwitch 3.3.0, DPDK 22.11"},
        machine={"hugepages": [{"size_kb": 2048, "total": 0, "free": 7}]},
    )  # fmt: skip
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5), environment=other))
    assert judged.differences == []
    assert judged.candidate.versions == ["Open vSwitch 3.3.0, DPDK 22.11"]
    # Another test of the same topology and profile has conditions of its own.
    another = record([TRUTH]).model_copy(update={"test": "Another", "thresholds": []})
    assert record([TRUTH]).thresholds
    assert not differences(side("old", [record([TRUTH]), another]), side("new", []))
    older, newer = {"name": "quick"}, {"name": "quick", "skips": [], "max_spread": None}
    assert dict(leaves(older)) == dict(leaves(newer))
    assert dict(leaves(older)) != dict(leaves(newer | {"skips": ["long"]}))
    assert dict(leaves(older)) != dict(leaves(newer | {"max_spread": 0.0}))


def test_the_table_fits_the_console_and_the_page_says_how_it_was_judged() -> None:
    judged = compare(runs("old", around(TRUTH, 5), test="x" * 90), side("new", [record(around(TRUTH, 2))], broken=2))
    assert max(len(line) for line in text.console(judged).split("\n")) <= 120
    page = text.markdown(judged)
    assert "ruleset-0/1cpu-1rxq, short-lived, new connections" in page.replace("\\", "")
    assert "exact one-sided permutation test" in page
    assert "2 files of new are not records and were left out" in page
    assert " samples, spread " in page


@pytest.mark.parametrize(("factor", "judgement"), [(1.1, "regressed"), (0.9, "improved"), (1.0, "no evidence")])
def test_where_lower_is_better_a_rise_is_a_regression(wait: str, factor: float, judgement: str) -> None:
    judged = compare(runs("old", around(0.002, 5), metric=wait), runs("new", around(0.002 * factor, 5, 1), metric=wait))
    test = only_test(judged)
    assert (test.judgement, test.metric, test.unit) == (judgement, wait, "s")
    assert test.difference_pct == pytest.approx((factor - 1) * 100, abs=1.5)
    assert test.resolution == 0.0, "the load that did not hold is no time to wait"
    changed = {"regressed": "The median got worse by ", "improved": "The median got better by "}
    assert test.reason.startswith(changed.get(judgement, "The median changed by "))
    if judgement != "no evidence":
        assert test.p == pytest.approx(1 / 252)
        assert test.reason.endswith("samples this far apart are seen with p = 0.004.")


def test_every_output_writes_values_as_their_metric_and_two_metrics_are_two_tests(wait: str) -> None:
    judged = compare(
        runs("old", [0.0020, 0.0021, 0.0022, 0.0023, 0.0024], metric=wait),
        runs("new", [0.0040, 0.0041, 0.0042, 0.0043, 0.0044], metric=wait, limited_by="range"),
    )
    row = next(line for line in text.console(judged).splitlines() if line.startswith("Test 0"))
    assert row.split("  ")[-1] == "REGRESSED"
    for said in ("2.2 ms", "<= 4.2 ms", "+90.9 %", "0.004"):
        assert said in row
        assert said in text.markdown(judged).replace("\\", "")
    (row,) = read_page(comparison_html(judged, Path())).by_id("tests").all("tr", "test")
    assert "short-lived, time to wait" in row.one("th").text
    (judgement, base, candidate, *cells) = (cell.text for cell in row.all("td"))
    assert judgement.startswith("▼") and base.startswith("2.2 ms") and candidate.startswith("at most 4.2 ms")
    assert cells[:2] == ["+90.9 %", "0.004"] and "4.4 ms" in cells[2]

    def both(name: str, factor: float) -> Runs:
        rates, times = runs(name, around(TRUTH, 6)), runs(name, around(0.002 * factor, 6), metric=wait)
        return side(name, [*rates.records, *times.records])

    judged = compare(both("old", 1.0), both("new", 1.2))
    assert [(test.metric, test.judgement) for test in judged.tests] == [("cps", "no evidence"), (wait, "regressed")]
    assert [test.metric for test in compare(both("old", 1.0), both("new", 1.2), only=[wait]).tests] == [wait]


def test_the_page_begins_with_the_worst_news_and_links_every_record(tmp_path: Path) -> None:
    base, slower = [TRUTH + run for run in range(6)], [TRUTH * 0.8 + run for run in range(6)]
    elsewhere = environment(machine={"kernel": "6.2"})
    judged = compare(runs("old", base, base, base), runs("new", base, slower, environment=elsewhere))
    path = write_comparison(judged, tmp_path)
    assert (tmp_path / "report.css").exists()
    page = read_page(path.read_text())
    assert page.one("h1").text == judged.sentence
    assert "kernel" in page.by_id("differences").text
    assert page.one("ul", "counts").one("li").text == "1 ▼ regressed"
    rows = page.by_id("tests").all("tr", "test")
    assert [row.one("th").own_text for row in rows] == ["Test 1", "Test 2", "Test 0"]
    cells = {cell.attributes["data-name"]: cell.text for cell in rows[0].all("td")}
    assert cells["Judgement"] == "▼ regressed"
    assert cells["Base"].startswith("381.0 k/s 6 samples, spread 0.0") and cells["Candidate"].startswith("304.8 k/s")
    assert cells["Difference"] == "\u221220.0 %"
    assert len(rows[0].all("circle")) == len(rows[0].all("a")) == 12
    assert page.all("script") == [] and not any("style" in each.attributes for each in page.all())


def closed_loop(run: str, rates: list[float], search: str) -> Runs:
    """Runs that all found the same capacity, below rates of a closed loop that differ."""
    campaign = CampaignFacts(name=search, search=search)
    alike = [record([TRUTH / 2], f"{run}-{number}", campaign=campaign) for number in range(len(rates))]
    served = [{"saturation_cps": Figure(value=rate, unit="connections/s")} for rate in rates]
    return side(
        run, [each.model_copy(update={"figures": each.figures | its}) for each, its in zip(alike, served, strict=True)]
    )


@pytest.mark.parametrize(
    ("search", "told"), [("saturation", ("saturation_cps", "regressed")), ("mlr", ("cps", "no evidence"))]
)
def test_where_the_capacity_is_a_share_of_saturation_that_is_compared(search: str, told: tuple[str, str]) -> None:
    old, new = closed_loop("old", around(TRUTH, 5), search), closed_loop("new", around(TRUTH * 0.8, 5, 1), search)
    test = only_test(compare(old, new))
    assert (test.metric, test.judgement) == told


def test_a_side_may_be_a_run_a_folder_of_runs_or_several(tmp_path: Path) -> None:
    for number in range(3):
        store.write(record([TRUTH], f"run-{number}"), tmp_path / "old" / f"{number}")
    assert len(read_runs(str(tmp_path / "old")).records) == 3
    assert len(read_runs(str(tmp_path / "old" / "1")).records) == 1
    both = read_runs(f"{tmp_path}/old/0,{tmp_path}/old/2")
    assert [each.run_id for each in both.records] == ["run-0", "run-2"]
    with pytest.raises(ConfigError, match="has no records"):
        read_runs(str(tmp_path / "new"))


NARROW = Mlr.model_validate({"trial_duration": "1s", "final_duration": "2s", "relative_width": "2%"})
TESTS, SAMPLES = 6, 6


def searched(dice: random.Random, factor: float) -> float:
    dut = SimulatedDut(TRUTH * factor * dice.gauss(1, 0.02), noise=0.005, disturbed=0.02, seed=dice.randrange(10**9))
    return search(dut, 5_000, 1_500_000, NARROW, hint=100_000, rough=True).capacity


def judgements(seed: int, factor: float) -> list[str]:
    dice = random.Random(seed)

    def one(name: str, slower: float) -> Runs:
        return runs(name, *([searched(dice, slower if test == 0 else 1.0) for _ in range(SAMPLES)]
                            for test in range(TESTS)))  # fmt: skip

    return [test.judgement for test in compare(one("old", 1.0), one("new", factor)).tests]


def test_the_same_build_never_regresses_and_one_that_loses_a_tenth_is_found_out_there_only() -> None:
    found_words = [word for seed in range(25) for word in judgements(seed, 1.0)]
    assert set(found_words) == {"no evidence"}
    found_words = [judgements(1_000 + seed, 0.9) for seed in range(10)]
    assert sum(words[0] == "regressed" for words in found_words) >= 9
    assert {word for words in found_words for word in words[1:]} == {"no evidence"}


def write_runs(folder: Path, rates: Sequence[float], **changes: object) -> str:
    for number, rate in enumerate(rates):
        store.write(record([rate], f"{folder.name}-{number}", **changes), folder / f"{number}")
    return str(folder)


@pytest.mark.parametrize(("factor", "samples", "status"), [(1.0, 5, 0), (1.1, 5, 0), (0.9, 5, 7), (0.9, 3, 8)])
def test_the_exit_status_says_it(factor: float, samples: int, status: int, tmp_path: Path, run_compare: Run) -> None:
    old = write_runs(tmp_path / "old", around(TRUTH, samples))
    new = write_runs(tmp_path / "new", around(TRUTH * factor, samples, 1))
    out = tmp_path / "out"
    found, shown, _ = run_compare(old, new)
    assert found == status
    written = Comparison.model_validate_json((out / "compare.json").read_text())
    assert written.sentence in shown
    assert written.kind == "runs"
    assert "./run sla --candidate" in shown.replace("\n", " ")  # the better way
    assert written.sentence in (out / "compare.md").read_text()


def test_runs_of_two_testbeds_are_refused_unless_it_is_asked_for(tmp_path: Path, run_compare: Run) -> None:
    old = write_runs(tmp_path / "old", around(TRUTH, 5))
    other = environment(machine={"kernel": "6.2"})
    new = write_runs(tmp_path / "new", around(TRUTH, 5, 1), environment=other)
    status, _, said = run_compare(old, new)
    assert status == 4
    assert "kernel" in said
    assert "--different" in said
    status, shown, _ = run_compare(old, new, "--different")
    assert status == 0
    assert "NOT ALIKE: The machine" in shown


def test_runs_that_are_not_like_the_candidate_can_be_left_out_and_are_named(tmp_path: Path, run_compare: Run) -> None:
    old = tmp_path / "old"
    write_runs(old, around(TRUTH, 5))
    elsewhere = record([TRUTH * 3], "old-elsewhere", environment=environment(machine={"kernel": "6.2"}))
    store.write(elsewhere, old / "elsewhere")
    new = write_runs(tmp_path / "new", around(TRUTH, 5, 1))
    status, _, _ = run_compare(str(old), new)
    assert status == 4
    status, _, _ = run_compare(str(old), new, "--only-alike")
    assert status == 0
    written = Comparison.model_validate_json((tmp_path / "out" / "compare.json").read_text())
    assert written.base.records == 5
    assert str(old / "elsewhere") not in written.base.folders
    assert len(written.base.folders) == 5
    _, said = written.notes
    assert "old-elsewhere" in said
    assert "kernel" in said
    assert "old-elsewhere" in (tmp_path / "out" / "compare.html").read_text()
    shutil.rmtree(old)
    store.write(elsewhere, old / "elsewhere")
    status, _, said = run_compare(str(old), new, "--only-alike")
    assert status == 4
    assert "kernel" in said


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["", "one"], 4, "a folder without a name: has no records"),
        (["one", "two"], 4, "one: has no records, it is not a folder"),
        (["one", "two", "--least-difference", "3"], 4, "--least-difference"),
        (["--installations", "base=distribution", "candidate=here"], 4, "is not a side with an installation"),
        (["--installations", "base=distribution", "base=/opt/ovs"], 4, "names one side twice"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "-v", "SLA:mine"], 4, "no floor is judged"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "-v", "TESTBED:x"], 4, "Expected --testbed x"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "--starts", "3"], 2, "option --starts"),
        (["--installations", "base=distribution", "candidate=/opt/ovs", "--testbed", "locl"], 4, "Did you mean"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence(
    arguments: list[str], status: int, said: str, tmp_path: Path, run_compare: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, _, error = run_compare(*arguments)
    assert found == status
    assert said in error
