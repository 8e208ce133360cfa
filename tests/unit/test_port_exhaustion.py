"""The ports of a NAT's one address: how fast connections open as they are used up, how many are found, and that new
ones open afterwards."""

from dataclasses import dataclass

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import CpuUse
from ctbench.dut.registry import abilities
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Outcome, require
from ctbench.measure.procedures.port_exhaustion import PORT_EXHAUSTION, TIMED, TRIALS
from ctbench.measure.procedures.table_limits import BEYOND
from ctbench.traffic.generator import Opened, Trial
from ctbench.traffic.loads import Hold, Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import made_up_trial
from .table_double import HoldingDouble, TableDouble, table_bench

PORTS = 10_000
BEHIND = Topology(ruleset="egress", timeout_s=120)
EGRESS = ConnectionProfile(name="egress", server_ips=1)
PROMISED = {
    "opening_at_half": 0.5, "opening_at_90": 0.2, "ports_used": 0.9, "forgotten_when_full": 0.0002,
    "recovery_time": 5.0, "refusal_time": 1e-4,
}  # fmt: skip


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
    assert all(each.kept for each in found.decisions.values()) and set(found.decisions) == set(PROMISED)
    assert "10000 connections found one of 10000 ports, 1000 more were refused, 10000 of those" in found.reason


def test_a_nat_that_walks_through_its_ports_is_missed() -> None:
    found = exhausted(Nat(tries=0.01))
    assert {name for name, each in found.decisions.items() if not each.kept} == {"opening_at_half", "opening_at_90"}
    assert "199.2 k/s opened with all ports free, 20.0 k/s with half in use" in found.reason


@pytest.mark.parametrize(
    ("nat", "missed", "said"),
    [
        (Nat(limit=8_000), "ports_used", "8000 connections found one of 10000 ports, 3000 more were refused"),
        (Nat(packet_ns=500_000), "refusal_time", "each that was refused took 500 us of a CPU"),
        (Nat(mute=50), "forgotten_when_full", "9950 of those that were open answered"),
        (Nat(keeps=True), "recovery_time", "0 of 1000 connections opened when there was room again"),
        (Nat(limit=20_000), "recovery_time", "none of 11000 connections was refused"),
        (Nat(limit=1000), "opening_at_half", "of the connections were lost"),
    ],
    ids=["finds too few", "looks at every port", "forgets", "never recovers", "has too many", "refuses nearly all"],
)
def test_what_else_may_not_happen_is_missed_and_said(nat: Nat, missed: str, said: str) -> None:
    decision = exhausted(nat).decisions[missed]
    assert decision.kept is False and said in decision.reason


def test_what_the_files_have_to_say_and_what_the_generator_has_to_offer() -> None:
    with pytest.raises(ConfigError, match="does not say how many there are"):
        PORT_EXHAUSTION.run(table_bench(Nat(), topology=Topology(ruleset="nat")))
    with pytest.raises(MissingResource, match="10000 ports, and 500 connections can be held"):
        exhausted(Nat(), most_held=500.0)
    require(PORT_EXHAUSTION, frozenset({Hold, Saturation}), abilities("linux-router"))
    with pytest.raises(MissingResource, match="a closed loop"):
        require(PORT_EXHAUSTION, frozenset({Hold}), abilities("linux-router"))
