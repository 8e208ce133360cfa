"""Entries that are removed from a large table beside a load: what the command has to remove, what counts, and what each
promise is decided by."""

import time
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.dut.abilities import Done, TableEntry
from ctbench.dut.base import DutCounts
from ctbench.dut.linux.forwarding import LinuxRouterDut
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.table import read_entries
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import TableSettings
from ctbench.measure.procedure import Code, Outcome, Scripted
from ctbench.measure.procedures import removal
from ctbench.measure.procedures.removal import ENTRY_REMOVAL, TABLE_REMOVAL, ZONE_REMOVAL
from ctbench.results.floor import Floor
from ctbench.results.metrics import METRICS
from ctbench.sla.verdict import Verdict, judge
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import Profile

from . import simulated
from .table_double import TableDouble, table_bench

#: Connections that fill the table, and its zones.
HELD, ZONES = 900, 64


@dataclass
class Removing(TableDouble):
    """A DUT whose entries can be removed, with its generator: a trial lasts until some were, and only beside a removal
    something is lost."""

    limit: int = 1_000_000
    takes: float = 0.02
    loss: float = 0.0
    #: What a removal leaves although it has to go, takes although it has to stay, and how often it was told.
    spares: int = 0
    more: int = 0
    told: list[str] = field(default_factory=list)
    beside: int = 0
    #: The last trial, and openings before `begin_trial` was called last.
    trial: Trial | None = None
    began: int = 0

    def list_entries(self, zone: int | None = None) -> list[TableEntry]:
        every = [TableEntry("tcp", "16.128.0.1", "48.0.0.1", 1024 + n, 8080, n % ZONES) for n in range(self.entries)]
        return [entry for entry in every if zone in (None, entry.zone)]

    def remove_entries(self, entry: TableEntry | None = None, zone: int | None = None) -> Done:
        size = self.entries
        self.told.append("entry" if entry else "all" if zone is None else "zone")
        inside = 1 if entry else size if zone is None else len(self.list_entries(zone))
        self.entries -= max(0, inside - self.spares) + self.more
        return Done(self.takes, size)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        assert isinstance(load, Rate)
        if duration_s == simulated.campaign().control_plane.alone_duration:
            return simulated.made_up_trial(load.per_s, duration_s)
        self.beside += 1
        wanted = 5 if self.told and "all" not in self.told else self.beside
        end = time.monotonic() + 1
        while len(self.told) < wanted and time.monotonic() < end:
            time.sleep(0.001)
        self.trial = simulated.made_up_trial(load.per_s, duration_s, loss=self.loss)
        return self.trial

    def begin_trial(self) -> None:
        self.began = len(self.opened)

    def counts(self) -> DutCounts | None:
        """What it sent: of the load what the generator took, and three frames of each connection that was opened."""
        took = self.trial.total_rx_packets if self.trial else {}
        return DutCounts({}, {side: count + 3 * sum(self.opened[self.began :]) for side, count in took.items()})


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_OFFERED_S", "_COUNTED_S"):
        monkeypatch.setattr(removal, name, 0.005)
    monkeypatch.setattr(removal._Removal, "every_s", 0.001)
    monkeypatch.setattr(removal, "_KNOWN", 100)


def measured(procedure: Scripted, dut: Removing, **limits: str) -> tuple[Outcome, Verdict]:
    """What a procedure finds, and what becomes of these promises."""
    name = procedure.found_out[0]
    thresholds = simulated.promises(**({name: "<= 1s"} | limits))
    bench = table_bench(
        dut, profile=simulated.SHORT, how=TableSettings(expiring=HELD),
        limits={name: each.limit for name, each in thresholds.items()}, topology=Topology(),
    )  # fmt: skip
    found = procedure.run(bench)
    floor = Floor(
        key="ovs-dpdk/conntrack/1cpu-1rxq", profile=simulated.SHORT, source="tests", metric=METRICS[name],
        thresholds=thresholds,
    )  # fmt: skip
    return found, judge(found, floor)


PROCEDURES = {"entry": ENTRY_REMOVAL, "zone": ZONE_REMOVAL, "all": TABLE_REMOVAL}


@pytest.mark.parametrize("what", PROCEDURES)
def test_what_is_removed_of_a_full_table_beside_the_load_is_timed(what: str) -> None:
    dut = Removing()
    found, verdict = measured(PROCEDURES[what], dut, loss_meanwhile="<= 1%")
    assert verdict.word == "met", verdict.reason
    (record,) = found.evidence.control
    assert set(dut.told) == {what} and record.median == 0.02
    assert record.size >= 0.8 * HELD
    # All of them go three times, each from a table that was filled again.
    assert [each.phase for each in found.trials] == ["alone", *["beside"] * (3 if what == "all" else 1)]
    assert dut.opened[:2] == [100, HELD - 100]


@pytest.mark.parametrize(
    ("what", "fault", "said"),
    [
        ("entry", {"spares": 1}, "the removal of one entry left 900 entries where 899 have to be"),
        ("entry", {"more": 3}, "the removal of one entry left 896 entries where 899 have to be"),
        ("zone", {"more": 1}, "entries of zone"),
        ("zone", {"spares": 5}, "entries of zone"),
        ("all", {"spares": 600}, "the removal of all 900 entries left 600"),
    ],
)
def test_a_command_that_removes_something_else_is_missed(what: str, fault: dict[str, int], said: str) -> None:
    found, verdict = measured(PROCEDURES[what], Removing(**fault))  # type: ignore[arg-type]
    assert (verdict.word, found.figures) == ("missed", {})
    assert said in verdict.reason


def test_one_that_takes_too_long_or_a_load_that_is_blocked_is_missed() -> None:
    _, verdict = measured(ENTRY_REMOVAL, Removing(takes=2.0))
    assert (verdict.word, verdict.code) == ("missed", Code.INTERVAL)
    # 5 % of a load for 6 s are 300 ms.
    found, verdict = measured(TABLE_REMOVAL, Removing(loss=0.05), blocked_meanwhile="<= 100ms")
    assert found.figures["blocked_meanwhile"].value == pytest.approx(0.3)
    assert [each.metric for each in verdict.thresholds if not each.met] == ["blocked_meanwhile"]
    assert verdict.word == "missed"
    assert measured(TABLE_REMOVAL, Removing(loss=0.05), blocked_meanwhile="<= 400ms")[1].word == "met"


def test_a_table_that_was_not_filled_says_nothing() -> None:
    found, verdict = measured(ENTRY_REMOVAL, Removing(limit=500))
    assert (verdict.word, found.limited_by) == ("not measured", "fault")
    assert "900 connections were opened to fill the table: the DUT counted 500 entries" in verdict.reason


def test_entries_are_read_from_what_the_tools_print() -> None:
    ovs = (
        "tcp,orig=(src=16.128.0.5,dst=48.0.0.7,sport=1024,dport=8080),reply=(src=48.0.0.7,dst=16.128.0.5,sport=8080,"
        "dport=1024),zone=5,protoinfo=(state=ESTABLISHED)\nicmp,orig=(src=1.1.1.1,dst=2.2.2.2,id=1,type=8,code=0)\n"
    )
    linux = (
        "udp      17 29 src=16.0.0.1 dst=48.0.0.1 sport=1025 dport=53 src=48.0.0.1 dst=16.0.0.1 sport=53 dport=1025 "
        "[ASSURED] mark=0 use=1\n"
    )
    assert read_entries(ovs) == [TableEntry("tcp", "16.128.0.5", "48.0.0.7", 1024, 8080, 5)]
    assert read_entries(linux) == [TableEntry("udp", "16.0.0.1", "48.0.0.1", 1025, 53)]


def test_each_tool_is_told_what_to_remove() -> None:
    entry = TableEntry("tcp", "16.128.0.5", "48.0.0.7", 1024, 8080, 5)
    ovs: Any = Mock(connections=lambda: 7)
    removals: list[dict[str, Any]] = [{}, {"zone": 3}, {"entry": entry}]
    assert [OvsDpdkDut.remove_entries(ovs, **which).size for which in removals] == [7, 7, 7]
    assert [call.args[1:] for call in ovs.control.ask.call_args_list] == [
        (), ("zone=3",),
        ("zone=5", "ct_nw_src=16.128.0.5,ct_nw_dst=48.0.0.7,ct_nw_proto=6,ct_tp_src=1024,ct_tp_dst=8080"),
    ]  # fmt: skip
    linux: Any = Mock(connections=lambda: 7)
    assert [LinuxRouterDut.remove_entries(linux, **which).size for which in removals] == [7, 7, 7]
    assert [" ".join(call.args[0]) for call in linux._host.run.call_args_list] == [
        "conntrack -F", "conntrack -D -w 3",
        "conntrack -D -p tcp -s 16.128.0.5 -d 48.0.0.7 --sport=1024 --dport=8080",
    ]  # fmt: skip
