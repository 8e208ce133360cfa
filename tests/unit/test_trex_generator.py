"""TRex as a TrafficGenerator: when it connects, loads and starts again, and connections that it holds. Server and
client are stand-ins: the client answers what the real one (v3.08) was seen to answer (tools/trex_record.py). Of those
held, thirty filled the table of Open vSwitch, ten more were refused, then there was room for ten."""

import copy
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trex_recordings import DATA, Recording, ReplayedWorker

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.hosts.local import Owner
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.trex import astf, held, stl
from ctbench.traffic.trex.client import TrexClient, TrexRefused
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.held import HeldByTrex


class StandInServer:
    """A server that does as it is told."""

    def __init__(self) -> None:
        self.running = False
        self.mode = ""
        self.starts: list[str] = []
        self.lost = 0
        self.said = ""

    def start(self, mode: str, flows: int = 0, lost: int = 0) -> dict[str, Any]:
        if not self.running or mode != self.mode:
            self.starts.append(mode)
        self.running, self.mode, self.lost = True, mode, lost
        return {"server": "127.0.0.1", "sync_port": 4501, "async_port": 4500}

    def is_running(self) -> bool:
        return self.running

    def log_excerpt(self) -> str:
        return self.said

    def snapshot(self) -> dict[str, object]:
        return {"server": "stand-in", "mode": self.mode}

    def stop(self) -> None:
        self.running = False


class StandInWorker(ReplayedWorker):
    """A client whose process can end, and whose server can refuse."""

    client = TrexClient(Path("/nowhere"), "tests", "v3.06")

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self.is_running = False
        #: Raised by the next command of that name.
        self.trouble: dict[str, BaseException] = {}
        #: A server that ends when the traffic is to end.
        self.dies_with: StandInServer | None = None
        #: Who holds the ports.
        self.holder = ""

    def start(self) -> None:
        self.is_running = True

    def close(self) -> None:
        self.is_running = False

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        assert self.is_running
        answer = super().call(do, timeout, **arguments)
        if do == "astf_update" and self.dies_with:
            self.dies_with.running, self.dies_with = False, None
            raise TrexRefused("TRex: astf_update: Failed to get server response")
        if do in self.trouble:
            raise self.trouble.pop(do)
        if do == "connect":
            if self.holder and not arguments["force"]:
                raise TrexRefused(f"The ports are held by {self.holder}.", [self.holder])
            return {"version": "v3.08", "ports": [], "catch_up_s": 0.002}
        return answer

    def count(self, do: str) -> int:
        return [name for name, _ in self.asked].count(do)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(astf, "RAMP_UP_S", 0.0)
    monkeypatch.setattr(astf, "DRAIN_S", 0.0)


@dataclass
class Stand:
    """A generator between its stand-ins, and what was recorded."""

    server: StandInServer
    worker: StandInWorker
    light: Recording
    generator: TrexTrafficGenerator

    def run(self, per_s: float = 1000, **changes: object) -> Trial:
        return self.generator.run_trial(self.light.profile.model_copy(update=changes), Rate(per_s), 2)


@pytest.fixture
def trex() -> Stand:
    server, light = StandInServer(), Recording("light")
    worker = StandInWorker(light)
    return Stand(server, worker, light, TrexTrafficGenerator(server, worker))  # type: ignore[arg-type]


def test_packets_need_the_server_in_another_mode(trex: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    monkeypatch.setattr(stl, "run_trial", lambda *arguments: sent.append(arguments[1:]))
    packets = PacketProfile(name="p", kind="packets")
    trex.run()
    trex.generator.run_trial(packets, Rate(5000), 3)
    trex.run()
    assert sent == [(packets, 5000, 3, 1)]
    assert trex.server.starts == ["astf", "stl", "astf"]
    assert [arguments["mode"] for do, arguments in trex.worker.asked if do == "connect"] == ["astf", "stl", "astf"]
    assert trex.worker.count("astf_load") == 2
    facts = trex.generator.snapshot()  # pages show the version
    assert (facts["version"], facts["client"]) == ("v3.08, client v3.06", {"version": "v3.06"})


def test_a_server_gets_room_for_connections_that_are_lost(trex: Stand) -> None:
    trex.run(1000)
    assert trex.server.lost > 4000  # TRex gives each 5 s


def test_a_server_that_dies_is_named_with_its_last_words_and_started_again(trex: Stand) -> None:
    trex.run()
    trex.server.said = "watchdog: a thread has not answered."
    trex.worker.dies_with = trex.server
    with pytest.raises(GeneratorError, match="in the middle of a trial: watchdog: a thread has not answered"):
        trex.run()
    assert trex.run().completed > 0
    assert trex.server.starts == ["astf", "astf"]
    assert (trex.worker.count("connect"), trex.worker.count("astf_load")) == (2, 2)


def test_a_refusal_of_a_server_that_lives_is_passed_on_and_ctrl_c_ends_the_traffic(trex: Stand) -> None:
    trex.worker.trouble["astf_load"] = TrexRefused("TRex: astf_load: cps is below 0.5")
    with pytest.raises(TrexRefused, match=r"below 0\.5"):
        trex.run()
    trex.run()
    assert trex.worker.count("connect") == 2
    trex.worker.trouble["astf_update"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        trex.run()
    assert not trex.worker.is_running


def test_ports_are_left_to_whom_holds_them_unless_that_is_this_run_or_a_killed_one_of_ours(trex: Stand) -> None:
    mine, another = Owner.myself(), Owner.of(str(os.getppid()))
    for trex.worker.holder in ("alice", str(another)):
        with pytest.raises(GeneratorError, match="are held by"):
            trex.run()
    for owner in (mine, Owner(mine.machine, mine.boot, ticks="1", pid=mine.pid)):
        trex.worker.asked.clear()
        trex.worker.holder = str(owner)
        trex.run()
        trex.worker.close()
        assert [arguments["force"] for do, arguments in trex.worker.asked if do == "connect"] == [False, True]


PROFILE = ConnectionProfile(name="held", udp_percent=0, messages=1, request_bytes=20, reply_bytes=20)
#: As it was recorded.
LOAD = Hold(50, 100, asks=2, asked_after_s=8)


class ReplayedHold:
    """Answers with the counters that were recorded, and tells the time at which they were."""

    def __init__(self) -> None:
        self.left: list[dict[str, Any]] = json.loads((DATA / "hold-full.json").read_text())["stats"]
        self.now = self.left[0]["at_s"]
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.broken = False

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        assert timeout > 0
        self.asked.append((do, arguments))
        if self.broken:
            raise GeneratorError("TRex' client ended.")
        if do == "astf_start":  # it came back when TRex had begun
            self.now = self.left[0]["at_s"] - 0.4
        if do != "stats":
            return None
        answer = self.left.pop(0)
        self.now = answer["at_s"]
        return answer

    def of(self, do: str) -> list[dict[str, Any]]:
        """What it was told to do by this name."""
        return [arguments for name, arguments in self.asked if name == do]


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> ReplayedHold:
    replayed = ReplayedHold()
    monkeypatch.setattr(held.time, "monotonic", lambda: replayed.now)
    return replayed


def holding(replay: ReplayedHold, *opened: int, told: list[BaseException] | None = None) -> HeldByTrex:
    """So many connections were opened, one opening after the other."""
    let_go = [] if told is None else told
    connections = HeldByTrex(replay, (0, 1), PROFILE, LOAD, let_go.append, sleep=lambda _: None)
    for count in opened:
        connections.open(count)
    return connections


def test_the_recorded_table_fills_refuses_and_opens_again_and_all_is_forgotten_in_the_end(replay: ReplayedHold) -> None:
    told: list[BaseException] = []
    with holding(replay, told=told) as connections:
        first, refused = connections.open(30), connections.open(10)
        while_full = connections.ask()
        again = connections.open(10)
        in_the_end = connections.ask()
        trial = connections.trial()

        assert (first.begun, first.established, first.refused) == (30, 30, 0)
        assert first.waited_s > 0, "TRex needs a while to begin"
        assert first.first_s is not None and first.last_s is not None and 0 <= first.first_s <= first.last_s
        assert (refused.begun, refused.established, refused.first_s) == (10, 0, None)
        assert (while_full.asked, while_full.answered) == (30, 30)
        assert (again.established, again.refused) == (10, 0)
        assert (in_the_end.asked, in_the_end.answered, connections.held()) == (40, 40, 40)
        assert (trial.intended, trial.attempted, trial.established, trial.completed) == (50, 50, 40, 40)
        assert trial.failed == {"no_syn_ack": 10}
        assert trial.generator_limited == ""
        assert trial.rx_packets["client"] == 40 + 30 + 40, "SYN-ACKs, replies of both askings"
        assert trial.tx_packets["client"] == 30 + 3 * 10 + 10 + 40 + 2 * (30 + 40), "SYNs, ACKs, requests with ACKs"
    assert not replay.left, "every answer that was recorded was asked for"
    assert [each["profile"] for each in replay.of("astf_remove")] == ["held-0", "held-1", "held-2"]
    assert told == []


@pytest.mark.parametrize("broken", [False, True])
def test_a_trial_or_a_client_that_breaks_lets_go_of_trex(replay: ReplayedHold, broken: bool) -> None:
    told: list[BaseException] = []
    with pytest.raises((RuntimeError, GeneratorError)) as trouble, holding(replay, told=told) as connections:
        connections.open(30)
        replay.broken = broken
        if not broken:
            raise RuntimeError("the DUT broke")

    assert told == [trouble.value]
    assert bool(replay.of("astf_remove")) is broken


def test_one_that_is_asked_before_somebody_says_so_says_nothing(replay: ReplayedHold) -> None:
    connections = holding(replay, 30, 10)
    replay.left = [each | {"at_s": each["at_s"] + 60} for each in replay.left]

    with pytest.raises(GeneratorError, match=r"asked the connections \d+\.\d s too soon: .* longer than 8 s\.$"):
        connections.ask()


@pytest.mark.parametrize("asked", [True, False])
def test_replies_that_do_not_come_are_lost_unless_trex_did_not_ask(replay: ReplayedHold, asked: bool) -> None:
    connections = holding(replay, 30, 10)
    del replay.left[14:]  # the last before they are asked
    requests = copy.deepcopy(replay.left[-1]) | {"at_s": replay.now + 60}
    if asked:
        requests["stats"]["traffic"]["client"]["tcps_sndbyte"] = 600
    replay.left.append(requests)

    assert connections.ask().lost == 30
    trial = connections.trial()
    assert trial.failed == {"no_syn_ack": 10, "no_reply": 30}
    assert trial.completed == 0
    said = "" if asked else "TRex did not ask 30 of the connections that it holds in time"
    assert trial.generator_limited == said


def test_packets_that_are_sent_again_are_losses(replay: ReplayedHold) -> None:
    for reading in replay.left:
        reading["stats"]["traffic"]["client"]["tcps_sndrexmitpack"] = 2
    replay.left[0]["stats"]["traffic"]["client"].pop("tcps_sndrexmitpack")
    trial = holding(replay, 30).trial()
    assert trial.failed == {"retransmitted": 2}
    assert trial.completed == 28


def test_connections_that_trex_does_not_begin_are_its_own_fault(replay: ReplayedHold) -> None:
    for reading in replay.left:
        reading["stats"]["traffic"]["client"]["tcps_connattempt"] = 7
        reading["at_s"] += len(replay.left)
    replay.left[0]["stats"]["traffic"]["client"] = {}
    replay.left[5]["at_s"] += 1000

    assert holding(replay, 40).trial().generator_limited.startswith("TRex began only 7 of 40 connections")


def test_no_more_are_opened_than_was_said_or_than_there_are_ports(replay: ReplayedHold) -> None:
    connections = holding(replay, 30)
    with pytest.raises(GeneratorError, match="No more than 50 connections"):
        connections.open(21)
    last = PROFILE.model_copy(update={"tcp_port": 65_535})
    with pytest.raises(MissingResource, match="no port of the server for the open number 2"):
        held.hold_spec(last, LOAD, 1, 10, 8.0)


@pytest.mark.parametrize(
    ("profile", "load", "sentence"),
    [
        (PROFILE.model_copy(update={"udp_percent": 25.0}), LOAD, "without TCP"),
        (PROFILE, Hold(10, 100, asks=None), "asked at any time"),
    ],
)
def test_what_trex_cannot_hold_is_said(trex: Stand, profile: ConnectionProfile, load: Hold, sentence: str) -> None:
    with pytest.raises(MissingResource, match=sentence):
        trex.generator.hold(profile, load)
