"""A restart of the DUT: how soon connections open again, which of those that were open go on, and what is missed."""

from dataclasses import dataclass

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.registry import abilities
from ctbench.measure.procedure import Outcome, require
from ctbench.measure.procedures.restart import HELD, RESTART
from ctbench.measure.procedures.table_limits import BEYOND
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Load, Rate
from ctbench.traffic.profiles import Profile

from .simulated import made_up_trial
from .table_double import TableDouble, table_bench


@dataclass
class Restarted(TableDouble):
    """A DUT that forgets its table when it is restarted, with its generator."""

    limit: int = 100_000
    #: What it comes back with: how many connections it lets open, and the share of the load that it loses.
    lets: int = 100_000
    loses: float = 0.0
    restarts: int = 0

    def restart(self) -> None:
        self.restarts, self.entries, self.limit = self.restarts + 1, 0, self.lets

    def run_trial(self, _profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        return made_up_trial(load.per_s, duration_s, loss=self.loses if self.restarts else 0.0)


def restarted(dut: Restarted) -> Outcome:
    return RESTART.run(table_bench(dut, limits={"recovery_time": 30.0, "forgotten_by_restart": 0.001}))


def test_a_load_goes_on_after_a_restart_and_so_do_connections_that_were_open() -> None:
    dut = Restarted()
    found = restarted(dut)
    assert dut.opened == [HELD, BEYOND] and dut.restarts == 1
    assert [each.phase for each in found.trials] == ["alone", "hold", "alone"]
    assert {name: each.kept for name, each in found.decisions.items()} == {
        "recovery_time": True, "forgotten_by_restart": True,
    }  # fmt: skip
    assert "at 10.0 k/s offered, and 10000 of 10000 that were open answered" in found.reason


@pytest.mark.parametrize(
    ("dut", "missed", "said"),
    [
        (
            Restarted(lets=0),
            {"recovery_time", "forgotten_by_restart"},
            "0 of 1000 connections opened after the restart",
        ),
        (Restarted(mute=2000), {"forgotten_by_restart"}, "8000 of 10000 that were open answered"),
        (Restarted(loses=0.1), {"recovery_time", "forgotten_by_restart"}, "is not held after the restart"),
    ],
    ids=["passes nothing", "forgets", "is slower"],
)
def test_what_does_not_come_back_is_missed_and_said(dut: Restarted, missed: set[str], said: str) -> None:
    found = restarted(dut)
    assert {name for name, each in found.decisions.items() if each.kept is False} == missed
    assert said in found.decisions["forgotten_by_restart"].reason


def test_a_load_that_is_not_held_before_measures_nothing_and_a_kernel_is_not_restarted() -> None:
    class Weak(Restarted):
        def run_trial(self, _profile: Profile, load: Load, duration_s: float) -> Trial:
            assert isinstance(load, Rate)
            return made_up_trial(load.per_s, duration_s, loss=0.1)

    found = restarted(Weak())
    assert not found.figures and "the load alone is not held here" in found.reason
    with pytest.raises(MissingResource, match="asks the DUT for restart"):
        require(RESTART, frozenset({Hold, Rate}), abilities("linux-router"))
    require(RESTART, frozenset({Hold, Rate}), abilities("ovs-dpdk"))
