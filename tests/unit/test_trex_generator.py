"""TRex as a TrafficGenerator: when it connects, loads and starts anew. The server and the client are stand-ins: the
client answers what the real one was seen to answer."""

from dataclasses import dataclass
from typing import Any

import pytest
from trex_recordings import Recording, ReplayedWorker

from ctbench.base.errors import GeneratorError
from ctbench.hosts.local import LocalHost, Owner
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import PacketProfile
from ctbench.traffic.trex import astf, stl
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.server import Endpoint
from ctbench.traffic.trex.worker import TrexRefused


class StandInServer:
    """A server that does as it is told."""

    def __init__(self) -> None:
        self.running = False
        self.mode = ""
        self.starts: list[str] = []
        self.said = ""

    def start(self, mode: str, flows: int = 0) -> Endpoint:
        if not self.running or mode != self.mode:
            self.starts.append(mode)
        self.running, self.mode = True, mode
        return Endpoint(LocalHost(), (), "127.0.0.1")

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


def test_one_connection_and_one_profile_serve_all_trials(trex: Stand) -> None:
    for load in (1000, 2000, 3000):
        trex.run(load)
    count = trex.worker.count
    assert trex.server.starts == ["astf"]
    assert (count("connect"), count("astf_load"), count("astf_start")) == (1, 1, 3)
    assert [arguments["mult"] for do, arguments in trex.worker.asked if do == "astf_start"] == [10, 20, 30]
    trex.run(reply_bytes=100)
    assert (count("connect"), count("astf_load")) == (1, 2), "another profile is loaded"


def test_packets_need_the_server_in_another_mode(trex: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    monkeypatch.setattr(stl, "run_trial", lambda *arguments: sent.append(arguments[1:]))
    packets = PacketProfile(name="p", kind="packets")
    trex.run()
    trex.generator.run_trial(packets, Rate(5000), 3)
    trex.run()
    assert sent == [(packets, 5000, 3)]
    assert trex.server.starts == ["astf", "stl", "astf"]
    assert [arguments["mode"] for do, arguments in trex.worker.asked if do == "connect"] == ["astf", "stl", "astf"]
    assert trex.worker.count("astf_load") == 2


def test_a_server_that_dies_is_named_with_its_last_words_and_started_again(trex: Stand) -> None:
    trex.run()
    trex.server.said = "watchdog: a thread has not answered."
    trex.worker.dies_with = trex.server
    with pytest.raises(GeneratorError, match="in the middle of a trial: watchdog: a thread has not answered"):
        trex.run()
    assert trex.run().completed > 0
    assert trex.server.starts == ["astf", "astf"]
    assert (trex.worker.count("connect"), trex.worker.count("astf_load")) == (2, 2)


def test_a_refusal_of_a_server_that_lives_is_passed_on(trex: Stand) -> None:
    trex.worker.trouble["astf_load"] = TrexRefused("TRex: astf_load: cps is below 0.5")
    with pytest.raises(TrexRefused, match=r"below 0\.5"):
        trex.run()
    trex.run()
    assert trex.worker.count("connect") == 2


def test_ctrl_c_ends_the_traffic(trex: Stand) -> None:
    trex.worker.trouble["astf_update"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        trex.run()
    assert not trex.worker.is_running


def test_ports_are_left_to_whom_holds_them_unless_that_is_a_killed_run_of_ours(trex: Stand) -> None:
    mine = Owner.myself()
    for trex.worker.holder in ("alice", str(mine)):
        with pytest.raises(GeneratorError, match="are held by"):
            trex.run()
    trex.worker.holder = str(Owner(mine.machine, mine.boot, ticks="1", pid=mine.pid))
    trex.run()
    assert [arguments["force"] for do, arguments in trex.worker.asked if do == "connect"] == [False] * 3 + [True]


def test_the_record_says_version_server_and_what_trex_does_otherwise(trex: Stand) -> None:
    assert trex.generator.snapshot()["type"] == "trex"
    trex.run()
    facts = trex.generator.snapshot()
    assert (facts["version"], facts["server"]) == ("v3.08", {"server": "stand-in", "mode": "astf"})
    assert any("random order" in str(note) for note in facts["notes"])  # type: ignore[attr-defined]


def test_close_ends_client_and_server_and_may_be_repeated(trex: Stand) -> None:
    trex.run()
    trex.generator.close()
    trex.generator.close()
    assert not trex.worker.is_running
    assert not trex.server.running
