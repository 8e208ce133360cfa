"""The connection table at its limit, or the ports of a NAT's one address: how many connections it holds, what counts,
what the DUT has to say of a full table, and what becomes of more than there is room for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import CpuUse, Problem
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import TableTrials
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import table_limits
from ctbench.measure.procedures.port_exhaustion import PORT_EXHAUSTION, TIMED, TRIALS
from ctbench.measure.procedures.table_limits import BEYOND, TABLE_CAPACITY, TABLE_EARLY_DROP, TABLE_FULL, ZONE_FULL
from ctbench.results.floor import Floor, parse
from ctbench.results.metrics import METRICS
from ctbench.sla.verdict import RowVerdict, judge
from ctbench.traffic.generator import Opened, Trial
from ctbench.traffic.loads import Hold, Rate
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import made_up_trial
from .table_double import HELD, HoldingDouble, TableDouble, table_bench

METRIC = METRICS["held_connections"]
AT_ONCE = TableTrials.model_validate({"hold": "0s"})


def capacity(dut: TableDouble, promised: float = 500, how: TableTrials = AT_ONCE, **more: object) -> Outcome:
    return TABLE_CAPACITY.run(table_bench(dut, how=how, limits={METRIC.name: promised}, **more))


def judged(found: Outcome, promised: int = 500) -> RowVerdict:
    thresholds = {METRIC.name: parse(f">= {promised}", METRIC)}
    floor = Floor("ovs-dpdk/conntrack/1cpu-1rxq", HELD, source="", metric=METRIC, thresholds=thresholds)
    return judge(found, floor)


BUSY = [Problem("disturbed", "Other processes took 60 % of a PMD CPU of the DUT.", cpu_taken=0.6)]


@pytest.mark.parametrize(
    ("dut", "value", "said", "seen"),
    [
        (TableDouble(limit=300), 300, "300 instead of at least 500", ""),
        # A full table is the DUT's own loss, however busy the machine was.
        (TableDouble(limit=300, problems=[BUSY]), 300, "200 of 500 were refused", "The connection table was full"),
        *(
            (TableDouble(miscount=by), min(500, 500 + by), said, said)
            for by, said in (
                (1, "opened: the DUT counted 501 entries where 500 connections were open"),
                (-1, "opened: the DUT counted 499 entries where 500 connections were open"),
            )
        ),
        (TableDouble(mute=3), 497, "", "of the connections were lost"),
        (TableDouble(lowered=500), 500, "limit of entries was 1000 when the trial began, and 500 at its end", ""),
    ],
)
def test_what_does_not_hold_is_missed_with_what_was_wrong(dut: TableDouble, value: int, said: str, seen: str) -> None:
    found = capacity(dut)
    assert found.result is not None and (found.result.value, found.limited_by) == (value, "dut")
    assert found.trials[0].state == "bad" and seen in found.trials[0].reason
    verdict = judged(found)
    assert (verdict.word, said in verdict.reason) == ("missed", True)


def test_a_campaign_may_try_more_than_is_promised_as_far_as_there_can_be_so_many() -> None:
    more = AT_ONCE.model_copy(update={"connections": 900})
    for most, tried in ((None, 900), (700.0, 700), (100.0, 500)):
        dut = TableDouble()
        found = capacity(dut, how=more, most_held=most)
        assert dut.opened == [tried] and found.result is not None and found.result.value == tried
        assert found.limited_by == ("floor" if tried == 500 else "range")
    refused = capacity(TableDouble(limit=800), how=more)
    assert refused.result is not None and (refused.result.value, refused.limited_by) == (800, "dut")
    assert judged(refused).word == "met"  # the floor is 500


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for counters that never come."""
    monkeypatch.setattr(table_limits, "COUNTERS_S", 0.0)


LIMIT = 10_000
LIMITED = Topology(timeout_s=120, max_connections=LIMIT)


def filled(dut: TableDouble, promised: float = 1.0, topology: Topology = LIMITED) -> Outcome:
    return TABLE_FULL.run(table_bench(dut, limits={"recovery_time": promised}, topology=topology))


def test_the_topology_has_to_say_how_many_entries_there_are() -> None:
    with pytest.raises(ConfigError, match="max_connections=10000"):
        filled(TableDouble(), topology=Topology())


def at_limit(dut: TableDouble, **limits: float) -> Outcome:
    promised = {"forgotten_when_full": 0.01, "recovery_time": 5.0} | limits
    return TABLE_EARLY_DROP.run(table_bench(dut, limits=promised))


def test_what_is_forgotten_at_the_limit_and_how_soon_there_is_room_again() -> None:
    found = at_limit(TableDouble(limit=10_000, mute=50))
    assert found.figures["forgotten_when_full"].value == pytest.approx(0.005)
    assert [each.kept for each in found.verdicts.values()] == [True, True]
    assert "of 10000 connections that opened at a limit of 10000 entries, 9950 answered" in found.reason
    missed = at_limit(TableDouble(limit=10_000, mute=50), forgotten_when_full=0.001)
    assert missed.verdicts["forgotten_when_full"].kept is False


def test_where_fewer_can_be_held_or_no_limit_is_known_the_test_is_skipped() -> None:
    with pytest.raises(MissingResource, match="1000 entries, and 500 connections can be held"):
        TABLE_EARLY_DROP.run(table_bench(TableDouble(), most_held=500.0))

    silent = TableDouble()
    silent.limit_now = lambda: None  # type: ignore[method-assign]
    with pytest.raises(MissingResource, match="does not say how many entries"):
        TABLE_EARLY_DROP.run(table_bench(silent))


@dataclass
class Zoned(TableDouble):
    """A DUT with two zones, one with a limit; `shared`: which the other one has as well."""

    shared: bool = False

    def hold(self, profile: ConnectionProfile, load: Hold) -> HoldingDouble:
        self.limit = LIMIT if profile.client_ip == HELD.client_ip or self.shared else 10 * LIMIT
        return super().hold(profile, load)


def zone_filled(dut: TableDouble, ruleset: str = "zone-limit") -> Outcome:
    topology = Topology(ruleset=ruleset, timeout_s=120)
    return ZONE_FULL.run(table_bench(dut, limits={METRIC.name: LIMIT}, topology=topology))


def test_a_full_zone_needs_a_ruleset_with_a_limit() -> None:
    with pytest.raises(ConfigError, match="the ruleset limits the entries of none"):
        zone_filled(Zoned(), "zones")


PORTS = 10_000
BEHIND = Topology(ruleset="egress", timeout_s=120)
EGRESS = ConnectionProfile(name="egress", server_ips=1)
PROMISED = {
    "opening_at_half": 0.5,
    "opening_at_90": 0.2,
    "ports_used": 0.9,
    "forgotten_when_full": 0.0002,
    "recovery_time": 5.0,
    "refusal_time": 1e-4,
}


@dataclass
class Nat(TableDouble):
    """A NAT of so many ports, each of which an entry takes."""

    limit: int = PORTS
    #: Ports that a new connection tries, for each that is in use.
    tries: float = 0.0
    #: Whether ports stay in use when the table is emptied while more were asked for than there are.
    keeps: bool = False
    #: CPU time of a packet, nanoseconds.
    packet_ns: float = 10_000

    def flush_state(self) -> None:
        if not (self.keeps and self.refused):
            super().flush_state()

    def hold(self, profile: ConnectionProfile, load: Hold) -> "Behind":
        return Behind(self, load, profile=profile)

    def run_trial(self, _profile: object, load: Rate, duration_s: float) -> Trial:
        return made_up_trial(load.per_s, duration_s, loss=1.0)

    def cpu_use(self) -> CpuUse:
        return CpuUse(0.5, self.packet_ns, "PMD cycles")


@dataclass
class Behind(HoldingDouble):
    """Connections behind it, of a profile with one server or many: each server has all ports."""

    dut: Nat
    profile: ConnectionProfile = EGRESS

    def open(self, connections: int) -> Opened:
        tried = self.dut.tries * self.dut.entries / self.profile.server_ips
        took_s = 1e-6 * connections * (5 + tried)
        opened = super().open(connections)
        return opened.model_copy(update={"last_s": took_s if opened.established else None})


def exhausted(nat: Nat, **more: object) -> Outcome:
    return PORT_EXHAUSTION.run(table_bench(nat, limits=PROMISED, topology=BEHIND, profile=EGRESS, **more))


def test_connections_are_timed_while_ports_are_used_up_and_then_more_are_opened_than_there_are() -> None:
    nat = Nat()
    found = exhausted(nat)
    filling = [TIMED, TIMED, 5000 - TIMED, TIMED, 4000 - TIMED, TIMED]
    assert nat.opened == [*filling * TRIALS, PORTS, PORTS, BEYOND, BEYOND]
    values = {name: figure.value for name, figure in found.figures.items()}
    assert values["opening_at_half"] == values["opening_at_90"] == values["ports_used"] == 1
    assert values["opening_rate"] == pytest.approx(200_000)
    assert all(each.kept for each in found.verdicts.values()) and set(found.verdicts) == set(PROMISED)
    assert "10000 connections found one of 10000 ports, 1000 more were refused, 10000 of those" in found.reason


def test_a_nat_that_walks_through_its_ports_is_missed() -> None:
    found = exhausted(Nat(tries=0.01))
    assert {name for name, each in found.verdicts.items() if not each.kept} == {"opening_at_half", "opening_at_90"}
    assert "199.2 k/s opened with all ports free, 20.0 k/s with half in use" in found.reason


def test_what_the_files_have_to_say_and_what_the_generator_has_to_offer() -> None:
    with pytest.raises(ConfigError, match="does not say how many there are"):
        PORT_EXHAUSTION.run(table_bench(Nat(), topology=Topology(ruleset="nat")))
    with pytest.raises(MissingResource, match="10000 ports, and 500 connections can be held"):
        exhausted(Nat(), most_held=500.0)


@pytest.mark.parametrize(
    ("run", "dut", "metric", "said"),
    [
        *((filled, dut, "recovery_time", said) for dut, said in (
            (TableDouble(evicts=True), "0 of 1000 connections beyond the limit were refused"),
            (TableDouble(deaf=True), "0 of 1000 connections opened when there was room again"),
            (TableDouble(mute=5), "9995 of 10000 open connections answered while the table was full"),
            (TableDouble(says=False), "the DUT does not say that its table was full"),
            (TableDouble(chatty=True), "the DUT's log says 1000 times that its table was full"),
            (TableDouble(miscount=1), "full: the DUT counted 10001 entries where 10000 connections were open"),
        )),
        (partial(filled, promised=1e-6), TableDouble(), "recovery_time", "10000 entries filled the table, 1000"),
        *((at_limit, dut, "forgotten_when_full", said) for dut, said in (
            (TableDouble(limit=5000, evicts=True), "none of 6000 connections was refused"),
            (TableDouble(miscount=1), "the DUT counted more than its limit of 1000 entries"),
            (TableDouble(says=False), "the DUT does not say that its table was full"),
        )),
        *((zone_filled, dut, METRIC.name, said) for dut, said in (
            (TableDouble(limit=1_000_000), "0 of 1000 connections beyond the limit of the zone were refused"),
            (Zoned(shared=True), "0 of 10000 connections of another zone opened and answered"),
            (Zoned(mute=2), "9998 of 10000 open connections of the zone answered while it was full"),
            (Zoned(miscount=1), "zone full: the DUT counted 10001 entries"),
        )),
        (exhausted, Nat(limit=8_000), "ports_used", "8000 connections found one of 10000 ports, 3000 more"),
        (exhausted, Nat(packet_ns=500_000), "refusal_time", "each that was refused took 500 us of a CPU"),
        (exhausted, Nat(mute=50), "forgotten_when_full", "9950 of those that were open answered"),
        (exhausted, Nat(keeps=True), "recovery_time", "0 of 1000 connections opened when there was room again"),
        (exhausted, Nat(limit=20_000), "recovery_time", "none of 11000 connections was refused"),
        (exhausted, Nat(limit=1000), "opening_at_half", "of the connections were lost"),
    ],
)  # fmt: skip
def test_what_may_not_happen_is_missed_and_said(
    run: Callable[..., Outcome], dut: TableDouble, metric: str, said: str
) -> None:
    found = run(dut)
    assert found.verdicts[metric].kept is False and said in found.verdicts[metric].reason
