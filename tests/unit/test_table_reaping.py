"""A load beside entries that expire: what it loses is judged where they have gone, and the load alone was held."""

from dataclasses import dataclass, field

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Problem
from ctbench.measure.campaign import TableSettings
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import table_expiry
from ctbench.measure.procedures.table_expiry import TableReaping
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, Profile

from .simulated import made_up_trial
from .table_double import TableDouble, table_bench

pytestmark = pytest.mark.unit

HOW = TableSettings(expiring=20_000)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_expiry, "_LATER_S", 0.01)
    monkeypatch.setattr(table_expiry, "_EVERY_S", 0.001)


@dataclass
class Reaper(TableDouble):
    """A DUT that serves 20 000 a second, and loses some of a load while entries expire."""

    limit: int = 5_000_000
    sweep_s: float = 0.01
    loss: float = 0.0
    alone: float = 0.0
    stays: bool = False
    #: Share of a load that the generator does not begin while entries expire.
    unsent: float = 0.0
    offered: list[tuple[float, float]] = field(default_factory=list)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        if isinstance(load, Saturation):
            points = {"timeline_step_s": 1.0, "timeline_completed": [20_000]}
            return made_up_trial(20_000, duration_s).model_copy(update={"under_way": 512, **points})
        assert isinstance(load, Rate)
        self.offered.append((load.per_s, duration_s))
        expiring = bool(self.entries)
        if not self.stays:
            self.entries = 0
        made = made_up_trial(load.per_s, duration_s, loss=max(self.loss, self.unsent) if expiring else self.alone)
        unsent = round(self.unsent * made.intended) if expiring else 0
        return made.model_copy(update={"attempted": made.intended - unsent})


def measured(dut: Reaper, limit: float = 0.01) -> Outcome:
    profile = ConnectionProfile(name="short-lived")
    return TableReaping().run(table_bench(dut, how=HOW, limits={"loss_while_reaping": limit}, profile=profile))


def test_half_of_what_is_served_is_offered_alone_and_while_entries_expire() -> None:
    dut = Reaper(loss=0.005)
    found = measured(dut)
    assert dut.offered == [(10_000, 3.0), (10_000, pytest.approx(30.02))]
    assert found.figures["loss_while_reaping"].value == pytest.approx(0.005)
    assert found.decisions["loss_while_reaping"].kept is True
    assert [(each.moment, each.found) for each in found.evidence.table] == [("before", 0), ("opened", 20_000)]
    assert measured(Reaper(loss=0.02)).decisions["loss_while_reaping"].kept is False


def test_entries_that_stay_are_missed_and_a_load_that_is_not_held_alone_says_nothing() -> None:
    kept = measured(Reaper(stays=True)).decisions["loss_while_reaping"]
    assert kept.kept is False and "20000 entries were left in the end" in kept.reason
    nothing = measured(Reaper(alone=0.5))
    assert not nothing.decisions and "the load alone is not held here" in nothing.reason


def test_a_load_whose_own_entries_would_fill_the_table_is_smaller_and_one_without_room_is_left_out() -> None:
    dut = Reaper(limit=25_050)
    measured(dut)
    assert dut.offered[0][0] == pytest.approx(0.9 * 5050 / 1.01)
    with pytest.raises(MissingResource, match="no room for a load besides 20000"):
        measured(Reaper(limit=900))
    dut = Reaper()
    TableReaping().run(
        table_bench(dut, how=TableSettings(expiring=2020), profile=ConnectionProfile(name="short-lived"))
    )
    assert dut.offered[0][0] == pytest.approx(2000)


def test_what_the_generator_did_not_offer_decides_nothing_unless_the_promise_allows_it() -> None:
    late = Reaper(unsent=0.02)
    found = measured(late)
    assert found.decisions["loss_while_reaping"].kept is None and not found.figures
    found = measured(Reaper(unsent=0.005))
    assert found.decisions["loss_while_reaping"].kept is True
    assert found.figures["loss_while_reaping"].value == pytest.approx(0.005)


def test_a_dut_that_breaks_is_a_fault() -> None:
    found = measured(Reaper(problems=[[], [Problem("fatal", "it died.")]]))
    assert found.limited_by == "fault" and "it died" in found.reason
