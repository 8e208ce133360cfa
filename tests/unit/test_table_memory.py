"""The memory of the connection table: what an entry takes, and what stays of it. A DUT that frees nothing is missed."""

from dataclasses import dataclass, field

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.base import Problem
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import table_memory
from ctbench.measure.procedures.table_memory import FILLED, TABLE_MEMORY
from ctbench.measure.promises import PROMISES
from ctbench.results.floor import Floor, parse
from ctbench.results.metrics import METRICS
from ctbench.run.measurement import TestName
from ctbench.run.testbed_session import TestbedSession
from ctbench.sla.verdict import RowVerdict, judge
from ctbench.traffic.generator import Opened
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile

from .simulated_run import BASE, OVS, SimulatedTestbed, floors
from .table_double import HELD, HoldingDouble, TableDouble, table_bench

MANY = 1_000_000
LIMITS, SHARE = {"memory_per_connection": 500.0, "memory_kept": 20.0}, "memory_of_build"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for memory that is free at once, nor for entries that never expire."""
    for name in ("FREED_S", "PATIENCE_S", "EVERY_S"):
        monkeypatch.setattr(table_memory, name, 0.0)


def measured(
    dut: TableDouble, topology: Topology = CABLE, most: float | None = None, memory: float | None = None
) -> Outcome:
    return TABLE_MEMORY.run(table_bench(dut, limits=LIMITS, topology=topology, most_held=most, most_filled=memory))


def judged(found: Outcome) -> RowVerdict:
    promised = {name: parse(f"<= {limit:g}", METRICS[name]) for name, limit in LIMITS.items()}
    metric = METRICS["memory_per_connection"]
    return judge(found, Floor("ovs-dpdk/conntrack/1cpu-1rxq", HELD, source="", metric=metric, thresholds=promised))


@pytest.mark.parametrize(("leaks", "kept"), [(400, 400), (48, 48)], ids=["whole entries", "a part of them"])
def test_a_dut_that_frees_nothing_is_missed_with_the_bytes_that_stay(leaks: int, kept: int) -> None:
    verdict = judged(measured(TableDouble(limit=MANY, leaks=leaks)))
    assert verdict.word == "missed"
    assert f"memory kept per connection that is gone: {kept} bytes instead of at most 20 bytes" in verdict.reason
    assert f"grew by +{kept}.0, +{kept}.0 and +{kept}.0 bytes a connection" in verdict.reason


@dataclass
class Stepping(TableDouble):
    """A DUT that makes a pool once its table was emptied for the first time."""

    def table_memory(self) -> int | None:
        return (super().table_memory() or 0) + (10_000_000 if self.flushed > 1 else 0)


def test_one_step_of_memory_is_not_a_leak_and_large_entries_are_missed() -> None:
    found = measured(Stepping(limit=MANY))
    assert found.figures["memory_kept"].value == 0 and judged(found).word == "met"
    assert "grew by +200.0, +0.0 and +0.0 bytes" in found.reason
    larger = judged(measured(TableDouble(limit=MANY, entry=800)))
    assert larger.word == "missed" and "memory per connection: 800 bytes instead of at most 500" in larger.reason


@pytest.mark.parametrize(
    ("dut", "said"),
    [
        (TableDouble(limit=40_000), "40000 of 50000 connections were in the table"),
        (TableDouble(limit=MANY, problems=[[Problem("invalid", "the machine slept")]] * 3), "the machine slept"),
        (TableDouble(limit=MANY, entry=0), "the memory of the DUT does not grow with its table"),
    ],
    ids=["too few", "invalid", "not its memory"],
)
def test_what_says_nothing_of_the_memory_is_not_measured(dut: TableDouble, said: str) -> None:
    verdict = judged(measured(dut))
    assert (verdict.word, said in verdict.reason) == ("not measured", True)


def test_where_the_memory_cannot_be_read_the_test_is_skipped() -> None:
    with pytest.raises(MissingResource, match="cannot be read here"):
        measured(TableDouble(reads=False))


@pytest.mark.parametrize(
    ("limit", "most", "memory", "filled", "fills"),
    [
        (None, None, None, FILLED, 4),
        (None, 24_000.0, None, 20_000, 4),  # and a fifth more, of which some may be opened again
        (MANY, 1.2e6, None, MANY, 4),
        (MANY, None, 3.9e6, MANY, 3),
    ],
    ids=["as always", "where fewer fit", "as many as there may be", "as often as there is room for"],
)
def test_the_topology_says_how_many_where_there_are_many(
    limit: int | None, most: float | None, memory: float | None, filled: int, fills: int
) -> None:
    dut = TableDouble(limit=MANY, leaks=40)
    found = measured(dut, Topology(max_connections=limit), most, memory)
    assert (sum(dut.opened[:2]), len(dut.opened), found.figures["memory_kept"].value) == (filled, 2 * fills, 40)


@dataclass
class Stalling(TableDouble):
    """A DUT that takes no more than nine tenths of a fill, once: a real Open vSwitch stops while it makes its table
    larger."""

    limit: int = FILLED * 9 // 10

    def hold(self, profile: ConnectionProfile, load: Hold) -> HoldingDouble:
        class Opening(HoldingDouble):
            def open(self, connections: int) -> Opened:
                opened = super().open(connections)
                if opened.refused:
                    self.dut.limit = MANY
                return opened

        return Opening(self, load)


def test_what_a_stall_refuses_is_opened_again() -> None:
    dut = Stalling()
    assert judged(measured(dut)).word == "met"
    assert dut.opened[:4] == [FILLED // 10, FILLED * 9 // 10, FILLED // 10, FILLED // 10]


@pytest.mark.parametrize(("most", "memory"), [(None, 2.9e6), (1.1e6, None)])
def test_a_table_that_there_is_no_room_for_is_left_out(most: float | None, memory: float | None) -> None:
    dut = TableDouble(limit=MANY)
    with pytest.raises(MissingResource, match=r"1\.00 M connections are filled in 3 times"):
        measured(dut, Topology(max_connections=MANY), most, memory)
    assert not dut.opened


@dataclass
class Expiring(TableDouble):
    """A DUT that has forgotten its entries at the second look, and never frees what it forgot so."""

    looks: int = field(default=0)

    def connections(self) -> int:
        self.looks += 1
        if self.looks % 4 == 0:
            self.leaked, self.entries = self.leaked + 400 * self.entries, 0
        return self.entries


def test_entries_with_short_timeouts_are_left_to_expire() -> None:
    """Before, few, all, expired: what a flush frees, and expiry does not, is found."""
    found = measured(Expiring(limit=MANY), Topology(timeout_s=10))
    assert found.figures["memory_kept"].value == 400 and judged(found).word == "missed"


@pytest.fixture
def candidate(simulated: SimulatedTestbed, monkeypatch: pytest.MonkeyPatch) -> SimulatedTestbed:
    """A testbed whose DUT has a table."""
    double = TableDouble(limit=MANY)
    for name in ("hold", "connections", "table_memory", "flush_state"):
        monkeypatch.setattr(simulated, name, getattr(double, name), raising=False)
    simulated.applied, simulated.offers = ["what another test left"], frozenset((Hold,))
    return simulated


PROMISED = {OVS.key: {"held": {name: f"<= {limit:g}" for name, limit in LIMITS.items()} | {SHARE: "<= 110%"}}}


def test_a_dut_that_nothing_has_used_is_measured(candidate: SimulatedTestbed) -> None:
    run = candidate.begin(floors=floors(None, **PROMISED)).run
    record = run.measure(TestName("Suite", "Test"), OVS, "held", PROMISES["memory"])
    assert record.verdict == "met" and candidate.discarded == ["what another test left"]
    assert record.threshold(SHARE) is None  # there is nothing to compare with


@pytest.mark.parametrize(
    ("base", "verdict", "said"),
    [
        (TableDouble(limit=MANY, entry=390), "met", "memory per connection: 400 bytes"),
        (TableDouble(limit=MANY, entry=300), "missed", "400 bytes, and 300 bytes in the base"),
        (
            TableDouble(limit=MANY, entry=0),
            "not measured",
            "what the base takes is not known: the memory of the DUT does not grow",
        ),
    ],
)
def test_a_candidate_is_compared_with_its_base(
    candidate: SimulatedTestbed, installed: None, monkeypatch: pytest.MonkeyPatch, base: TableDouble, verdict: str,
    said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(TestbedSession, "set_base_up", lambda *_: (base, base))
    run = candidate.gate(floors=floors(None, **PROMISED).compared_with(BASE)).run
    record = run.measure(TestName("Suite", "Test"), OVS, "held", PROMISES["memory"])
    assert (record.verdict, said in record.verdict_reason) == (verdict, True), record.verdict_reason
