"""A full table: what is beyond it is refused, what is open goes on, and new connections open when there is room."""

from dataclasses import dataclass

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import Problem
from ctbench.dut.registry import abilities
from ctbench.dut.topology import Topology
from ctbench.measure import held
from ctbench.measure.procedure import Outcome, require
from ctbench.measure.procedures.table_limits import BEYOND, TableFull
from ctbench.traffic.holding import Answered, Opened
from ctbench.traffic.loads import Hold, Rate
from ctbench.traffic.profiles import ConnectionProfile

from .table_double import HoldingDouble, TableDouble, table_bench

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for counters that never come."""
    monkeypatch.setattr(held, "COUNTERS_S", 0.0)


LIMIT = 10_000
TOPOLOGY = Topology(timeout_s=120, max_connections=LIMIT)


def measured(dut: TableDouble, promised: float = 1.0, topology: Topology = TOPOLOGY) -> Outcome:
    return TableFull().run(table_bench(dut, limits={"recovery_time": promised}, topology=topology))


def test_a_full_table_refuses_keeps_what_it_has_and_recovers() -> None:
    dut = TableDouble()
    found = measured(dut)
    assert dut.opened == [LIMIT, BEYOND, BEYOND] and dut.limit == LIMIT + BEYOND
    assert found.decisions["recovery_time"].kept is True and found.kept_conditions
    assert [each.moment for each in found.evidence.table] == ["before", "full", "refused", "room again"]
    assert "10000 entries filled the table, 1000 connections more were refused" in found.reason
    assert measured(TableDouble(), promised=1e-6).decisions["recovery_time"].kept is False


@dataclass
class Evicting(TableDouble):
    """A DUT that makes room for new connections by forgetting old ones."""

    def hold(self, profile: ConnectionProfile, load: Hold) -> HoldingDouble:
        return _Evicted(self, load)


@dataclass
class _Evicted(HoldingDouble):
    def open(self, connections: int) -> Opened:
        if self.dut.entries < self.dut.limit:
            return super().open(connections)
        return Opened(intended=connections, begun=connections, established=connections, first_s=0.001, last_s=0.5)


@dataclass
class Deaf(TableDouble):
    """A DUT that stays full, whatever its limit is."""

    def limit_table(self, entries: int) -> None:
        if not self.entries:
            super().limit_table(entries)


@dataclass
class Forgetful(TableDouble):
    """A DUT whose open connections do not answer while its table is full."""

    def hold(self, profile: ConnectionProfile, load: Hold) -> HoldingDouble:
        return _Forgotten(self, load)


@dataclass
class _Forgotten(HoldingDouble):
    def ask(self) -> Answered:
        found = super().ask()
        return found.model_copy(update={"answered": found.asked - 5})


@pytest.mark.parametrize(
    ("dut", "said"),
    [
        (Evicting(), "0 of 1000 connections beyond the limit were refused"),
        (Deaf(), "0 of 1000 connections opened when there was room again"),
        (Forgetful(), "9995 of 10000 open connections answered while the table was full"),
        (TableDouble(says=False), "the DUT does not say that its table was full"),
        (TableDouble(chatty=True), "the DUT's log says 1000 times that its table was full"),
        (TableDouble(miscount=1), "full: the DUT counted 10001 entries where 10000 connections were open"),
    ],
    ids=["evicts", "stays full", "forgets", "silent", "chatty", "miscounts"],
)
def test_what_a_full_table_may_not_do_is_missed_and_said(dut: TableDouble, said: str) -> None:
    found = measured(dut)
    decision = found.decisions["recovery_time"]
    assert decision.kept is False and said in decision.reason
    assert found.steps[0].observation.state == "bad"


def test_a_dut_that_crashes_is_a_fault() -> None:
    found = measured(TableDouble(problems=[[Problem("fatal", "ovs-vswitchd was killed by SIGSEGV.")]]))
    assert found.limited_by == "fault" and "SIGSEGV" in found.reason


def test_the_topology_has_to_say_how_many_entries_there_are() -> None:
    with pytest.raises(ConfigError, match="max_connections=10000"):
        measured(TableDouble(), topology=Topology())


def test_where_the_limit_cannot_be_changed_or_nothing_is_held_the_test_is_skipped() -> None:
    full = TableFull()
    with pytest.raises(MissingResource, match="asks the DUT for table limit"):
        require(full, frozenset({Hold}), abilities("linux-router"))
    require(full, frozenset({Hold}), abilities("ovs-dpdk"))
    with pytest.raises(MissingResource, match="a number of connections that stay open"):
        require(full, frozenset({Rate}), abilities("ovs-dpdk"))
