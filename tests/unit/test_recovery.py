"""How a DUT goes on: after a restart, and after datagrams that were cut short in fragments."""

from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from ctbench.dut.linux.forwarding import LinuxRouterDut
from ctbench.dut.ovs import answers
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import reassembly
from ctbench.measure.procedures.reassembly import REASSEMBLY, TIMES
from ctbench.measure.procedures.restart import HELD, RESTART
from ctbench.measure.procedures.table_limits import BEYOND
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Load, Saturation
from ctbench.traffic.profiles import PacketProfile, Profile

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
        return made_up_trial(load.per_s, duration_s, loss=self.loses if self.restarts else 0.0)


def restarted(dut: Restarted) -> Outcome:
    return RESTART.run(table_bench(dut, limits={"recovery_time": 30.0, "forgotten_by_restart": 0.001}))


def test_a_load_goes_on_after_a_restart_and_so_do_connections_that_were_open() -> None:
    dut = Restarted()
    found = restarted(dut)
    assert dut.opened == [HELD, BEYOND] and dut.restarts == 1
    assert [each.phase for each in found.trials] == ["alone", "hold", "alone"]
    assert {name: each.kept for name, each in found.verdicts.items()} == {
        "recovery_time": True,
        "forgotten_by_restart": True,
    }
    assert "at 10.0 k/s offered, and 10000 of 10000 that were open answered" in found.reason
    # The first one opens after 1 ms, the last one of the thousand after half a second: then the rate is back.
    assert 0.5 <= found.figures["recovery_time"].value < 1.0


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
    assert {name for name, each in found.verdicts.items() if each.kept is False} == missed
    assert said in found.verdicts["forgotten_by_restart"].reason


def test_a_load_that_is_not_held_before_measures_nothing() -> None:
    found = restarted(Restarted(loses=0.1, restarts=1))  # as after a restart, from the beginning
    assert not found.figures and "the load alone is not held here" in found.reason


FRAGMENTS = PacketProfile(name="udp-fragments", kind="packets", frame_bytes=1518, fragments=3)
SERVES = 40_000.0


@dataclass
class Reassembling(TableDouble):
    """A DUT that serves `SERVES` datagrams per second, with its generator: of more it keeps fragments, and gives some
    of them up while whole packets pass."""

    keeps: int = 300
    gives_up: int = 100
    #: Entries that never go; and the share of an easy load that is lost while fragments stay.
    stay: int = 0
    kept: int = 0
    loads: list[tuple[int, float]] = field(default_factory=list)
    #: Bytes of each fragment that are never freed once it was given up.
    forgets: int = 0
    sweep_s: float = 0.0

    def run_trial(self, profile: PacketProfile, load: Load, duration_s: float) -> Trial:  # type: ignore[override]
        per_s = SERVES if isinstance(load, Saturation) else load.per_s  # type: ignore[union-attr]
        self.loads.append((profile.fragments, per_s))
        if per_s > SERVES:
            self.kept = self.keeps
            self.leaked += self.forgets * self.keeps
        elif profile.fragments == 1:
            self.kept -= min(self.kept, self.gives_up)
        lost = 0.5 if self.kept and profile.fragments > 1 and not isinstance(load, Saturation) else 0.0
        trial = made_up_trial(per_s, duration_s, loss=lost)
        under_way = 100 if isinstance(load, Saturation) else 0
        return trial.model_copy(update={"unit": "packets", "under_way": under_way})

    def fragments(self) -> int:
        return self.kept

    def connections(self) -> int:
        return self.stay


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reassembly, "PATIENCE_S", 0.02)
    # By looks, whatever the machine does meanwhile.
    monkeypatch.setattr(reassembly, "time", SimpleNamespace(monotonic=count(step=0.001).__next__))
    monkeypatch.setattr(reassembly, "_ENTRIES_S", -4.99)


def kept(dut: Reassembling) -> Outcome:
    topology = Topology(timeout_s=5)
    limits = {"reassembly_time": 30.0, "fragment_memory_kept": 64.0}
    return REASSEMBLY.run(table_bench(dut, profile=FRAGMENTS, topology=topology, limits=limits))


def test_fragments_that_are_given_up_are_gone_and_an_easy_load_is_held() -> None:
    dut = Reassembling()
    found = kept(dut)
    assert {name: each.kept for name, each in found.verdicts.items()} == {
        "reassembly_time": True,
        "fragment_memory_kept": True,
    }, found.reason
    assert dut.loads == [(3, SERVES), *[(3, 2 * SERVES), *[(1, 20_000.0)] * 3] * TIMES, (3, SERVES / 4)]
    assert "300 fragments were gone after" in found.reason


@pytest.mark.parametrize(
    ("dut", "said"),
    [
        (Reassembling(gives_up=0), "300 of 300 fragments stayed"),
        (Reassembling(gives_up=0), "lost"),
        (Reassembling(stay=7), "7 entries stayed beyond their timeout"),
    ],
    ids=["keeps fragments", "puts none together any more", "keeps entries"],
)
def test_what_stays_is_missed_and_said(dut: Reassembling, said: str) -> None:
    verdict = kept(dut).verdicts["reassembly_time"]
    assert verdict.kept is False and said in verdict.reason


def test_memory_of_fragments_that_is_never_freed_is_missed() -> None:
    found = kept(Reassembling(forgets=100))
    assert {name: each.kept for name, each in found.verdicts.items()} == {
        "reassembly_time": True,
        "fragment_memory_kept": False,
    }
    assert found.figures["fragment_memory_kept"].value == pytest.approx(100)
    # Of what cannot be read nothing is said, nor where fragments stayed.
    for dut, gone in ((Reassembling(reads=False), True), (Reassembling(gives_up=0), False)):
        found = kept(dut)
        assert {name: each.kept for name, each in found.verdicts.items()} == {"reassembly_time": gone}
        assert "fragment_memory_kept" not in found.figures


def test_where_no_datagram_was_cut_short_nothing_is_measured() -> None:
    found = kept(Reassembling(keeps=0))
    assert not found.verdicts and "no datagram was cut short" in found.reason


def test_the_fragments_that_a_dut_keeps_are_read() -> None:
    status = "        max num frags (v4/v6): 1000\n        num frag: 12\n        min v4 frag size: 1200\n"
    assert answers.FRAGMENTS.read(status) == 12
    with pytest.raises(answers.Unread):
        answers.FRAGMENTS.read("nothing")

    sockstat = "UDP: inuse 1 mem 0\nRAW: inuse 0\nFRAG: inuse 3 memory 4608\n"
    host = Mock(run=lambda *_: Completed(0, sockstat, ""))
    assert LinuxRouterDut(host, Mock(), Mock()).fragments() == 3
