"""How fast a table drains: from the last packet on, no entry before its timeout, and all of them gone in the end."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from ctbench.dut.base import Problem
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import TableSettings
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import table_expiry
from ctbench.measure.procedures.table_expiry import TableDrain
from ctbench.results.metrics import METRICS

from .table_double import TableDouble, table_bench

pytestmark = pytest.mark.unit

FIVE = Topology(timeout_s=5)
HOW = TableSettings(drained=500)


@dataclass
class Draining(TableDouble):
    """Entries go `lag` seconds after their timeout, `per_s` of them a second, and `stay` of them never."""

    timeout: float = 5.0
    lag: float = 0.0
    per_s: float = 1000.0
    stay: int = 0
    now: float = 100.0
    asked_at: float = field(default=0.0)

    def connections(self) -> int:
        gone = int(max(0.0, self.now - self.asked_at - self.timeout - self.lag) * self.per_s) if self.entries else 0
        return max(self.entries - gone, min(self.stay, self.entries))

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)


def measured(monkeypatch: pytest.MonkeyPatch, dut: Draining, limit: float = 10.0) -> Outcome:
    dut.asked_at = dut.now
    monkeypatch.setattr(table_expiry, "time", SimpleNamespace(monotonic=dut.monotonic, sleep=dut.sleep))
    return TableDrain().run(table_bench(dut, how=HOW, limits={"drain_time": limit}, topology=FIVE))


def test_a_table_drains_after_its_timeout_and_the_rate_of_reaping_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, Draining(lag=1.0))
    assert found.result is not None and found.result.value == pytest.approx(6.5, abs=table_expiry.EVERY_S)
    assert found.figures["drain_lag"].value == pytest.approx(1.5, abs=table_expiry.EVERY_S)
    assert found.figures["reaped_rate"].value == pytest.approx(1000, rel=0.5)
    assert found.decisions["drain_time"].kept is True
    assert [(each.moment, each.found) for each in found.evidence.table] == [
        ("before", 0), ("opened", 500), ("answered", 500), ("in the end", 0),
    ]  # fmt: skip
    series = found.steps[0].observation.samples[0]
    assert series.name == "entries_after_the_last_packet" and series.values[0] == 500 and series.values[-1] == 0


def test_no_more_are_opened_than_are_asked_before_the_first_is_forgotten() -> None:
    dut = Draining()
    how = TableSettings(drained=500, opened_per_s=100)
    found = TableDrain().run(table_bench(dut, how=how, limits={}, topology=FIVE.model_copy(update={"timeout_s": 1})))
    assert [each.expected for each in found.evidence.table][1] == 50, "half a second of opening, and as long for asking"


def test_a_table_that_drains_later_than_promised_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, Draining(lag=9.0))
    assert found.decisions["drain_time"].kept is False
    assert "500 entries were gone 14." in found.decisions["drain_time"].reason


def test_entries_that_go_before_their_timeout_make_the_trial_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, Draining(timeout=2.0))
    assert found.steps[0].observation.state == "bad" and found.decisions["drain_time"].kept is False
    assert "before their timeout of 5 s" in found.decisions["drain_time"].reason


def test_entries_that_stay_are_missed_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, Draining(stay=7))
    assert "drain_time" not in found.figures and found.decisions["drain_time"].kept is False
    assert "7 of 500 entries were left 55 s after the last packet" in found.decisions["drain_time"].reason


def test_a_dut_that_dies_is_a_fault_and_one_that_was_disturbed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    died = measured(monkeypatch, Draining(problems=[[Problem("fatal", "ovs-vswitchd died.")]]))
    assert died.limited_by == "fault" and "ovs-vswitchd died" in died.reason
    spoilt = measured(monkeypatch, Draining(problems=[[Problem("invalid", "the machine slept")]]))
    assert [step.observation.state for step in spoilt.steps] == ["invalid", "bad"]  # time goes on for the double


def test_the_metrics_of_a_drain_are_promised_in_seconds() -> None:
    assert METRICS["drain_time"].unit.parse("35s") == 35 and METRICS["drain_time"].operator == "<="
