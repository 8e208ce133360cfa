"""The table is printed while connections are held: what counts, what decides a promise, and what says nothing."""

from dataclasses import dataclass, field
from time import sleep

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import Done
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import held_dump
from ctbench.measure.procedures.held_dump import DUMPS, LONG_DUMPS, HeldDump

from .table_double import HoldingDouble, TableDouble, table_bench


@dataclass
class Dumping(TableDouble):
    """A DUT whose table takes so long to be printed; `mute` connections do not answer once it was."""

    takes: float = 0.1
    #: Of its entries, those that are printed.
    prints: float = 1.0
    declines: str = ""
    dumps: int = 0
    dies: bool = False
    deaf: int = 0
    silent: list[int] = field(default_factory=list)

    def dump_connections(self) -> Done:
        sleep(0.001)
        self.dumps += 1
        self.mute = self.deaf
        if self.declines:
            raise TestbedError(self.declines)
        return Done(self.takes, self.entries * self.prints)

    def trouble(self) -> str:
        return "ovs-vswitchd died." if self.dies and self.dumps else ""

    def hold(self, profile: object, load: object) -> HoldingDouble:
        return Patient(self, load)  # type: ignore[arg-type]


class Patient(HoldingDouble):
    """Connections that answer after a while."""

    def ask(self) -> object:  # type: ignore[override]
        sleep(0.001)
        return super().ask()


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_dump, "MOST_S", 2.0)


def measured(dut: Dumping, **limits: float) -> Outcome:
    return HeldDump().run(table_bench(dut, limits={"held_connections": 500} | limits))


def test_as_many_as_are_promised_are_held_and_the_table_is_printed_nine_times() -> None:
    found = measured(Dumping())
    assert found.result is not None and found.result.value == pytest.approx(0.1)
    (record,) = found.evidence.control
    assert record.number >= DUMPS and record.size == 500
    assert (found.figures["held_connections"].value, found.figures["loss_meanwhile"].value) == (500, 0)
    assert [each.found for each in found.evidence.table] == [0, 500, 500]
    assert [step.phase for step in found.steps] == ["hold"]


def test_dumps_that_take_long_are_three() -> None:
    (record,) = measured(Dumping(takes=10.0)).evidence.control
    assert LONG_DUMPS <= record.number < DUMPS


def test_what_does_not_answer_meanwhile_is_lost() -> None:
    found = measured(Dumping(deaf=50), loss_meanwhile=0.01)
    assert 0 < found.figures["loss_meanwhile"].value <= 0.1
    assert found.decisions["loss_meanwhile"].kept is False


@pytest.mark.parametrize(("limit", "kept"), [(0.2, True), (0.05, False)])
def test_a_promise_is_decided_by_the_times(limit: float, kept: bool) -> None:
    assert measured(Dumping(), dump_time=limit).decisions["dump_time"].kept is kept


@pytest.mark.parametrize(
    ("dut", "reason"),
    [
        (Dumping(limit=400), "were not held: 100 of 500 were refused"),
        (Dumping(miscount=1), "were not held: opened: the DUT counted 501 entries"),
        (Dumping(mute=3), "3 connections did not answer before any dump"),
        (Dumping(prints=0.5), "0 dumps of all entries say nothing"),
        (Dumping(declines="printed no connection"), "0 dumps of all entries say nothing"),
    ],
)
def test_what_says_nothing_says_why(dut: Dumping, reason: str) -> None:
    found = measured(dut)
    assert (found.figures, found.kept_conditions) == ({}, False)
    assert reason in found.reason


def test_no_more_dumps_are_waited_for_where_the_dut_is_dead() -> None:
    dut = Dumping(dies=True, declines="gone")
    assert "0 dumps" in measured(dut).reason
    dut.error = TestbedError("ovs-vswitchd was killed.")
    assert measured(dut).limited_by == "fault"
