"""The judgement of two sides, on made-up records: what it says, and how often it is wrong.

For the latter a build is measured by searching a simulated DUT whose capacity differs from run to run by 2 % and from
trial to trial by 0.5 %; one trial in fifty is disturbed. All of it is seeded.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ConfigError
from ctbench.compare import text
from ctbench.compare.judge import compare
from ctbench.compare.page import compose_comparison
from ctbench.compare.sides import Runs, leaves, read_runs
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Mlr
from ctbench.measure.search import search
from ctbench.results import store
from ctbench.results.comparison import ComparedTest, Comparison
from ctbench.results.environment import CampaignFacts
from ctbench.results.metrics import METRICS, SECONDS, Metric
from ctbench.results.record_model import Figure

from .compared import TRUTH, around, environment, record, runs, side
from .simulated import SimulatedDut

pytestmark = pytest.mark.unit

WAIT = Metric("wait", "time to wait", SECONDS, "lower", "promise")


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a metric that no other test knows, of which lower is better."""
    monkeypatch.setitem(METRICS, WAIT.name, WAIT)
    return WAIT.name


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


def test_a_build_that_is_faster_improved_and_one_that_is_alike_shows_no_evidence() -> None:
    old = runs("old", around(TRUTH, 5))
    assert only_test(compare(old, runs("new", around(TRUTH * 1.1, 5, 1)))).judgement == "improved"
    alike = only_test(compare(old, runs("new", around(TRUTH, 5, 1))))
    assert alike.judgement == "no evidence"
    assert alike.reason.endswith("which is within 3.00 %.")


def test_a_difference_that_chance_may_make_is_no_evidence() -> None:
    test = only_test(compare(runs("old", around(TRUTH, 5, 3, 0.1)), runs("new", around(TRUTH * 0.93, 5, 4, 0.1))))
    assert test.judgement == "no evidence"
    assert "but with no difference between the sides, samples this far apart are seen with p = " in test.reason


def test_a_small_difference_is_no_regression_however_sure_unless_the_user_says_so() -> None:
    old, new = runs("old", around(TRUTH, 8, 0, 0.001)), runs("new", around(TRUTH * 0.98, 8, 1, 0.001))
    assert only_test(compare(old, new)).judgement == "no evidence"
    assert only_test(compare(old, new, least_difference=0.015)).judgement == "regressed"


def test_what_is_within_the_width_of_the_search_is_no_regression() -> None:
    wide = {"upper": TRUTH * 1.15}
    old, new = runs("old", around(TRUTH, 6), **wide), runs("new", around(TRUTH * 0.9, 6), **wide)
    assert only_test(compare(old, new)).judgement == "no evidence"


def test_too_few_samples_are_not_measurable_and_the_reason_says_how_many_are_needed() -> None:
    test = only_test(compare(runs("old", around(TRUTH, 4)), runs("new", around(TRUTH / 2, 4))))
    assert test.judgement == "not measurable"
    assert test.reason == "4 against 4 samples cannot show p < 0.01 among 1 tests: 5 on either side are needed."


def test_many_tests_need_more_samples() -> None:
    def many(name: str, factor: float) -> Runs:
        return side(
            name,
            [
                record([TRUTH * factor + run + name.count("o")], f"{name}-{run}", test)
                for test in range(20)
                for run in range(5)
            ],
        )

    judged = compare(many("old", 1.0), many("new", 0.8))
    assert {test.judgement for test in judged.tests} == {"not measurable"}
    assert "among 20 tests: 7 on either side" in judged.tests[0].reason
    assert {test.judgement for test in compare(many("old", 1.0), many("new", 0.8), only=["test 3"]).tests} == {
        "regressed"
    }


def test_the_searches_of_one_run_are_its_samples_and_it_is_said() -> None:
    judged = compare(side("old", [record(around(TRUTH, 5))]), side("new", [record(around(TRUTH * 0.9, 5, 1), "other")]))
    assert only_test(judged).judgement == "regressed"
    assert judged.notes[1].startswith("old is one run: what differs from one start of the DUT to the next")


def test_of_several_runs_the_medians_are_the_samples() -> None:
    old = side("old", [record([TRUTH, TRUTH * 2, TRUTH * 3], f"old-{number}") for number in range(6)])
    test = only_test(compare(old, runs("new", around(TRUTH, 6))))
    assert test.base is not None
    assert test.base.values == [TRUTH * 2] * 6


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"verdict": "not measured", "verdict_reason": "the generator was the limit."},
            "not measured: the generator was",
        ),
        (
            {"limited_by": "floor", "campaign": CampaignFacts(name="gate", search="gate")},
            "campaign gate tries the floor and nothing else",
        ),
    ],
)
def test_what_found_no_limit_of_the_dut_is_not_measurable(changes: dict[str, Any], said: str) -> None:
    test = only_test(compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5), **changes)))
    assert test.judgement == "not measurable"
    assert said in test.reason


def test_a_test_that_only_one_side_has_is_named() -> None:
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5), rulesets=1))
    assert [test.reason for test in judged.tests] == [
        "Of the candidate: there is no record of it.", "Of the base: there is no record of it.",
    ]  # fmt: skip


def test_two_sides_that_both_reach_the_end_of_the_range_cannot_be_told_apart() -> None:
    test = only_test(
        compare(runs("old", [TRUTH] * 5, limited_by="range"), runs("new", [TRUTH] * 5, limited_by="range"))
    )
    assert test.judgement == "not measurable"
    assert "raise loads.max" in test.reason


def test_the_generator_by_itself_is_no_test_of_a_build() -> None:
    cable = {"topology": Topology(datapath="cable", ruleset="none")}
    judged = compare(runs("old", around(TRUTH, 5), **cable), runs("new", around(TRUTH / 2, 5), **cable))
    assert (judged.tests, judged.judgement) == ([], "not measurable")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"environment": environment(machine={"kernel": "6.2"})}, 'kernel ("6.1" and "6.2")'),
        ({"environment": environment(testbed={"name": "lab"})}, "The testbed file is not"),
        ({"environment": environment(dut={"memory": {"kind": "hugepages"}})}, "The memory ovs-dpdk is not"),
        ({"campaign": CampaignFacts(name="quick", search="bisection")}, "The campaign is not the same in all runs: n"),
    ],
)  # fmt: skip
def test_sides_that_are_not_alike_are_named(changes: dict[str, Any], said: str) -> None:
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5), **changes))
    assert len(judged.differences) == 1
    assert said in judged.differences[0]
    assert judged.differences[0] in text.markdown(judged).replace("\\", "")
    assert "NOT ALIKE" in text.console(judged)


def test_another_build_of_open_vswitch_and_what_is_free_are_no_difference() -> None:
    dut = {"type": "ovs-dpdk", "ovs": {"prefix": "/opt/ovs-3.3"}, "memory_mb": 1024}
    other = environment(
        testbed={"duts": [dut]}, dut={"version": "3.3.0", "product_details": "Open vSwitch 3.3.0, DPDK 22.11"},
        machine={"hugepages": [{"size_kb": 2048, "total": 0, "free": 7}]},
    )  # fmt: skip
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5), environment=other))
    assert judged.differences == []
    assert judged.candidate.versions == ["Open vSwitch 3.3.0, DPDK 22.11"]


def test_the_comparison_survives_its_file() -> None:
    judged = compare(runs("old", around(TRUTH, 5)), runs("new", around(TRUTH, 5, 1)))
    assert Comparison.model_validate_json(judged.model_dump_json()) == judged


def test_the_table_fits_the_console_and_the_page_says_how_it_was_judged() -> None:
    judged = compare(runs("old", around(TRUTH, 5), test="x" * 90), side("new", [record(around(TRUTH, 2))], broken=2))
    assert max(len(line) for line in text.console(judged).split("\n")) <= 120
    page = text.markdown(judged)
    assert "ruleset-0/1cpu-1rxq, short-lived, new connections" in page.replace("\\", "")
    assert "exact one-sided permutation test" in page
    assert "2 files of new are no records and were left out" in page
    assert "(spread " in page


@pytest.mark.parametrize(("factor", "judgement"), [(1.1, "regressed"), (0.9, "improved"), (1.0, "no evidence")])
def test_where_lower_is_better_a_rise_is_a_regression_and_a_fall_an_improvement(
    wait: str, factor: float, judgement: str
) -> None:
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


def test_every_output_writes_the_values_as_their_metric_is_written(wait: str) -> None:
    judged = compare(
        runs("old", [0.0020, 0.0021, 0.0022, 0.0023, 0.0024], metric=wait),
        runs("new", [0.0040, 0.0041, 0.0042, 0.0043, 0.0044], metric=wait, limited_by="range"),
    )
    row = next(line for line in text.console(judged).splitlines() if line.startswith("Test 0"))
    assert row.split("  ")[-1] == "REGRESSED"
    for said in ("2.2 ms", "<= 4.2 ms", "+90.9 %", "0.004"):
        assert said in row
        assert said in text.markdown(judged).replace("\\", "")
    tests = compose_comparison(judged, Path()).tests
    assert tests is not None
    (head, judgement, *cells) = tests[0].groups[0].lines[0].cells
    assert (head.notes[0].text, judgement.sign) == ("short-lived, time to wait", "▼")
    assert [cell.text for cell in cells] == ["2.2 ms", "at most 4.2 ms", "+90.9 %", "0.004", ""]
    assert "4.4 ms" in cells[-1].svg


def test_two_metrics_of_one_topology_and_profile_are_two_tests(wait: str) -> None:
    def both(name: str, factor: float) -> Runs:
        rates, times = around(TRUTH, 6), around(0.002 * factor, 6)
        made = zip(rates, times, strict=True)
        return side(
            name,
            [
                each
                for number, (rate, time) in enumerate(made)
                for each in (record([rate], f"{name}-{number}"), record([time], f"{name}-{number}", metric=wait))
            ],
        )

    judged = compare(both("old", 1.0), both("new", 1.2))
    assert [(test.metric, test.judgement) for test in judged.tests] == [("cps", "no evidence"), (wait, "regressed")]
    assert [test.metric for test in compare(both("old", 1.0), both("new", 1.2), only=[wait]).tests] == [wait]


def closed_loop(run: str, rates: list[float], search: str) -> Runs:
    """Runs that all found the same capacity, below rates of a closed loop that differ."""
    campaign = CampaignFacts(name=search, search=search)
    alike = [record([TRUTH / 2], f"{run}-{number}", campaign=campaign) for number in range(len(rates))]
    served = [{"saturation_cps": Figure(value=rate, unit="connections/s")} for rate in rates]
    return side(
        run,
        [each.model_copy(update={"figures": each.figures | its}) for each, its in zip(alike, served, strict=True)],
    )


@pytest.mark.parametrize(
    ("search", "told"), [("saturation", ("saturation_cps", "regressed")), ("mlr", ("cps", "no evidence"))]
)
def test_where_the_capacity_is_a_share_of_the_saturation_rate_that_rate_is_compared(
    search: str, told: tuple[str, str]
) -> None:
    old, new = closed_loop("old", around(TRUTH, 5), search), closed_loop("new", around(TRUTH * 0.8, 5, 1), search)
    test = only_test(compare(old, new))
    assert (test.metric, test.judgement) == told


def test_from_nothing_there_is_no_percentage() -> None:
    test = only_test(compare(runs("old", [0.0] * 5), runs("new", around(TRUTH, 5))))
    assert (test.judgement, test.difference_pct, test.p) == ("improved", None, None)
    assert test.reason.startswith("The median got better from 0; with no difference")


def test_a_side_may_be_a_run_a_folder_of_runs_or_several(tmp_path: Path) -> None:
    for number in range(3):
        store.write(record([TRUTH], f"run-{number}"), tmp_path / "old" / f"{number}")
    assert len(read_runs(str(tmp_path / "old")).records) == 3
    assert len(read_runs(str(tmp_path / "old" / "1")).records) == 1
    both = read_runs(f"{tmp_path}/old/0,{tmp_path}/old/2")
    assert [each.run_id for each in both.records] == ["run-0", "run-2"]
    with pytest.raises(ConfigError, match="has no records"):
        read_runs(str(tmp_path / "new"))


def test_a_setting_that_an_earlier_version_did_not_have_is_a_difference_only_where_it_says_something() -> None:
    older, newer = {"name": "quick"}, {"name": "quick", "probes": [], "max_spread": None}
    assert dict(leaves(older)) == dict(leaves(newer))
    assert dict(leaves(older)) != dict(leaves(newer | {"probes": ["table_entries"]}))
    assert dict(leaves(older)) != dict(leaves(newer | {"max_spread": 0.0}))


NARROW = Mlr.model_validate({"trial_duration": "1s", "final_duration": "2s", "relative_width": "2%"})
TESTS, SAMPLES = 6, 6


def searched(dice: random.Random, factor: float) -> float:
    dut = SimulatedDut(TRUTH * factor * dice.gauss(1, 0.02), noise=0.005, disturbed=0.02, seed=dice.randrange(10**9))
    return search(dut, 5_000, 1_500_000, NARROW, hint=100_000, rough=True).capacity


def judgements(seed: int, factor: float) -> list[str]:
    dice = random.Random(seed)

    def one(name: str, slower: float) -> Runs:
        return side(
            name,
            [
                record([searched(dice, slower if test == 0 else 1.0)], f"{name}-{run}", test)
                for run in range(SAMPLES)
                for test in range(TESTS)
            ],
        )

    return [test.judgement for test in compare(one("old", 1.0), one("new", factor)).tests]


def test_the_same_build_compared_with_itself_is_never_said_to_regress() -> None:
    found_words = [word for seed in range(25) for word in judgements(seed, 1.0)]
    assert set(found_words) == {"no evidence"}


def test_a_build_that_loses_a_tenth_in_one_test_is_found_out_and_only_there() -> None:
    found_words = [judgements(1_000 + seed, 0.9) for seed in range(10)]
    assert sum(words[0] == "regressed" for words in found_words) >= 9
    assert {word for words in found_words for word in words[1:]} == {"no evidence"}
