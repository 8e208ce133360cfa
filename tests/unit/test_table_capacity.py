"""How many connections are held at once: what counts, what the DUT has to say, and what makes it worth nothing."""

from dataclasses import dataclass

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.base import Problem
from ctbench.measure.campaign import TableSettings
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures.table_limits import TableCapacity
from ctbench.measure.trial import Step
from ctbench.results.metrics import METRICS
from ctbench.sla.floor import Floor, parse
from ctbench.sla.verdict import Verdict, judge

from .table_double import HELD, TableDouble, table_bench

pytestmark = pytest.mark.unit

METRIC = METRICS["held_connections"]
AT_ONCE = TableSettings.model_validate({"hold": "0s"})


def measured(dut: TableDouble, promised: float = 500, how: TableSettings = AT_ONCE, **more: object) -> Outcome:
    return TableCapacity().run(table_bench(dut, how=how, limits={METRIC.name: promised}, **more))


def judged(found: Outcome, promised: int = 500) -> Verdict:
    thresholds = {METRIC.name: parse(f">= {promised}", METRIC)}
    floor = Floor("ovs-dpdk/conntrack/1cpu-1rxq", HELD, source="", metric=METRIC, thresholds=thresholds)
    return judge(found, floor)


def test_as_many_as_are_promised_are_opened_and_the_dut_counts_them_at_every_step() -> None:
    told: list[Step] = []
    dut = TableDouble()
    found = TableCapacity().run(table_bench(dut, told, how=AT_ONCE, limits={METRIC.name: 500}))
    assert dut.opened == [500] and found.result is not None
    assert (found.result.value, found.limited_by, found.kept_conditions) == (500, "floor", True)
    counts = [(each.moment, each.expected, each.found) for each in found.evidence.table]
    assert counts == [("before", 0, 0), ("opened", 500, 500), ("held", 500, 500), ("answered", 500, 500)]
    assert [step.phase for step in told] == ["hold"] and told[0].observation.good
    verdict = judged(found)
    assert verdict.word == "met" and verdict.margin_pct is None  # no more were tried


def test_the_memory_of_an_entry_is_known_where_this_test_took_it() -> None:
    figure = measured(TableDouble()).figures["table_entry_bytes"]
    assert (figure.value, figure.unit) == (400, "bytes")
    # What an earlier test of a thousand left says nothing of five hundred.
    assert "table_entry_bytes" not in measured(TableDouble(left=400_000)).figures


def test_a_floor_above_what_the_table_takes_is_missed_with_what_it_took() -> None:
    found = measured(TableDouble(limit=300))
    assert found.result is not None and (found.result.value, found.limited_by) == (300, "dut")
    verdict = judged(found)
    assert verdict.word == "missed"
    assert "300 instead of at least 500" in verdict.reason and "200 of 500 were refused" in verdict.reason


@pytest.mark.parametrize(("miscount", "counted"), [(1, 501), (-1, 499)])
def test_a_dut_that_counts_another_number_makes_the_trial_bad(miscount: int, counted: int) -> None:
    told: list[Step] = []
    dut = TableDouble(miscount=miscount)
    found = TableCapacity().run(table_bench(dut, told, how=AT_ONCE, limits={METRIC.name: 500}))
    assert told[0].observation.state == "bad"
    said = f"opened: the DUT counted {counted} entries where 500 connections were open"
    assert told[0].observation.reason == said
    verdict = judged(found)
    assert verdict.word == "missed" and said in verdict.reason


def test_a_connection_that_does_not_answer_in_the_end_does_not_count() -> None:
    found = measured(TableDouble(mute=3))
    assert found.result is not None and found.result.value == 497
    assert judged(found).word == "missed"


def test_a_campaign_may_try_more_than_is_promised_as_far_as_there_can_be_so_many() -> None:
    more = replace_connections(900)
    for most, tried in ((None, 900), (700.0, 700), (100.0, 500)):
        dut = TableDouble()
        found = measured(dut, how=more, most_held=most)
        assert dut.opened == [tried] and found.result is not None and found.result.value == tried
        assert found.limited_by == ("floor" if tried == 500 else "range")
    refused = measured(TableDouble(limit=800), how=more)
    assert refused.result is not None and (refused.result.value, refused.limited_by) == (800, "dut")
    assert judged(refused).word == "met"  # the floor is 500


def replace_connections(number: float) -> TableSettings:
    return AT_ONCE.model_copy(update={"connections": number})


def test_what_another_process_spoilt_is_tried_again_and_in_the_end_not_measured() -> None:
    spoilt = [Problem("invalid", "other processes had the CPU")]
    once = measured(TableDouble(problems=[spoilt]))
    assert [step.observation.state for step in once.steps] == ["invalid", "good"] and judged(once).word == "met"
    always = measured(TableDouble(problems=[spoilt] * 9))
    assert {step.observation.state for step in always.steps} == {"invalid"} and not always.figures
    verdict = judged(always)
    assert verdict.word == "not measured" and "other processes had the CPU" in verdict.reason


def test_a_dut_that_dies_with_a_full_table_is_a_fault_with_its_reason() -> None:
    died = measured(TableDouble(problems=[[Problem("fatal", "ovs-vswitchd was killed by SIGKILL.")]]))
    assert died.limited_by == "fault" and "SIGKILL" in died.reason
    gone = measured(TableDouble(error=TestbedError("The link is gone.")))
    assert gone.limited_by == "fault" and "The link is gone, in trial 1" in gone.reason
    assert judged(gone).word == "not measured"


@dataclass
class Lowered(TableDouble):
    """A DUT whose limit somebody lowers while connections are open."""

    def table_memory(self) -> int | None:
        self.limit = 500
        return super().table_memory()


def test_a_limit_that_is_lowered_under_the_runs_feet_is_missed_with_the_reason() -> None:
    found = TableCapacity().run(table_bench(Lowered(), limits={"held_connections": 400.0}))
    decision = found.decisions["held_connections"]
    assert decision.kept is False
    assert "the DUT's limit of entries was 1000 when the trial began, and 500 at its end" in decision.reason


def test_what_a_full_table_refuses_is_missed_however_busy_the_machine_was() -> None:
    busy = [Problem("disturbed", "Other processes took 60 % of a PMD CPU of the DUT.", cpu_taken=0.6)]
    found = TableCapacity().run(
        table_bench(TableDouble(limit=900, problems=[busy]), limits={"held_connections": 1000.0})
    )
    decision = found.decisions["held_connections"]
    assert decision.kept is False and "100 of 1.0 k were refused" in decision.reason
    assert "The connection table was full" in found.steps[0].observation.reason
