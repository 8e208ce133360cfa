"""A table at a limit that cannot be changed: what is open stays, but for few; what is beyond is refused."""

from dataclasses import dataclass

import pytest

from ctbench.base.errors import MissingResource
from ctbench.measure import held
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures.table_limits import TableEarlyDrop

from .table_double import TableDouble, table_bench

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "COUNTERS_S", 0.0)


def measured(dut: TableDouble, **limits: float) -> Outcome:
    promised = {"forgotten_when_full": 0.01, "recovery_time": 5.0} | limits
    return TableEarlyDrop().run(table_bench(dut, limits=promised))


def test_what_is_forgotten_at_the_limit_and_how_soon_there_is_room_again() -> None:
    found = measured(TableDouble(limit=10_000, mute=50))
    assert found.figures["forgotten_when_full"].value == pytest.approx(0.005)
    assert [each.kept for each in found.decisions.values()] == [True, True]
    assert "of 10000 connections that opened at a limit of 10000 entries, 9950 answered" in found.reason
    assert (
        measured(TableDouble(limit=10_000, mute=50), forgotten_when_full=0.001).decisions["forgotten_when_full"].kept
        is False
    )


@dataclass
class Endless(TableDouble):
    """A DUT that lets in more than its limit."""

    def limit_now(self) -> int | None:
        return 5000


@pytest.mark.parametrize(
    ("dut", "said"),
    [
        (Endless(limit=20_000), "none of 6000 connections was refused"),
        (TableDouble(miscount=1), "the DUT counted more than its limit of 1000 entries"),
        (TableDouble(says=False), "the DUT does not say that its table was full"),
    ],
    ids=["no limit", "beyond it", "silent"],
)
def test_what_may_not_happen_at_the_limit_is_missed_and_said(dut: TableDouble, said: str) -> None:
    decision = measured(dut).decisions["forgotten_when_full"]
    assert decision.kept is False and said in decision.reason


def test_where_fewer_can_be_held_or_no_limit_is_known_the_test_is_skipped() -> None:
    with pytest.raises(MissingResource, match="1000 entries, and 500 connections can be held"):
        TableEarlyDrop().run(table_bench(TableDouble(), most_held=500.0))

    class Unknown(TableDouble):
        def limit_now(self) -> int | None:
            return None

    with pytest.raises(MissingResource, match="does not say how many entries"):
        TableEarlyDrop().run(table_bench(Unknown()))
