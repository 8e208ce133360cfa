"""TRex as a TrafficGenerator: when it connects, loads and starts anew. The server and the client are stand-ins: the
client answers what the real one was seen to answer."""

from typing import Any

import pytest
from trex_recordings import Recording, ReplayedWorker

from ctbench.base.errors import GeneratorError
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import PacketProfile
from ctbench.traffic.trex import astf_trial, stl_trial
from ctbench.traffic.trex.generator import TrexTrafficGenerator
from ctbench.traffic.trex.owner import Owner
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
        return Endpoint("127.0.0.1", 4501, 4500)

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
            raise TrexRefused("TRex: astf_update: Failed to get server response", "connect")
        if do in self.trouble:
            raise self.trouble.pop(do)
        if do == "connect":
            if self.holder and not arguments["force"]:
                raise TrexRefused(f"The ports are held by {self.holder}.", "busy", [self.holder])
            return {"version": "v3.08", "ports": [], "catch_up_s": 0.002}
        return answer

    def count(self, do: str) -> int:
        return [name for name, _ in self.asked].count(do)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(astf_trial, "RAMP_UP_S", 0.0)
    monkeypatch.setattr(astf_trial, "DRAIN_S", 0.0)


@pytest.fixture
def light() -> Recording:
    return Recording("light")


@pytest.fixture
def server() -> StandInServer:
    return StandInServer()


@pytest.fixture
def worker(light: Recording) -> StandInWorker:
    return StandInWorker(light)


@pytest.fixture
def generator(server: StandInServer, worker: StandInWorker) -> TrexTrafficGenerator:
    return TrexTrafficGenerator(server, worker)  # type: ignore[arg-type]


def test_one_connection_and_one_profile_serve_all_trials(
    generator: TrexTrafficGenerator, server: StandInServer, worker: StandInWorker, light: Recording
) -> None:
    for load in (1000, 2000, 3000):
        generator.run_trial(light.profile, Rate(load), 2)
    assert server.starts == ["astf"]
    assert (worker.count("connect"), worker.count("astf_load"), worker.count("astf_start")) == (1, 1, 3)
    assert [arguments["mult"] for do, arguments in worker.asked if do == "astf_start"] == [10, 20, 30]


def test_another_profile_is_loaded(generator: TrexTrafficGenerator, worker: StandInWorker, light: Recording) -> None:
    generator.run_trial(light.profile, Rate(1000), 2)
    generator.run_trial(light.profile.model_copy(update={"reply_bytes": 100}), Rate(1000), 2)
    assert (worker.count("connect"), worker.count("astf_load")) == (1, 2)


def test_packets_need_the_server_in_another_mode(
    generator: TrexTrafficGenerator, server: StandInServer, worker: StandInWorker, light: Recording,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    sent = []
    monkeypatch.setattr(stl_trial, "run_trial", lambda *arguments: sent.append(arguments[1:]))
    packets = PacketProfile(name="p", kind="packets")
    generator.run_trial(light.profile, Rate(1000), 2)
    generator.run_trial(packets, Rate(5000), 3)
    generator.run_trial(light.profile, Rate(1000), 2)
    assert sent == [(packets, 5000, 3)]
    assert server.starts == ["astf", "stl", "astf"]
    assert [arguments["mode"] for do, arguments in worker.asked if do == "connect"] == ["astf", "stl", "astf"]
    assert worker.count("astf_load") == 2


def test_a_server_that_dies_is_named_with_its_last_words_and_started_again(
    generator: TrexTrafficGenerator, server: StandInServer, worker: StandInWorker, light: Recording
) -> None:
    generator.run_trial(light.profile, Rate(1000), 2)
    server.said = "watchdog: a thread has not answered."
    worker.dies_with = server
    with pytest.raises(
        GeneratorError, match="TRex ended in the middle of a trial: watchdog: a thread has not answered"
    ):
        generator.run_trial(light.profile, Rate(1000), 2)
    assert generator.run_trial(light.profile, Rate(1000), 2).completed > 0
    assert server.starts == ["astf", "astf"]
    assert (worker.count("connect"), worker.count("astf_load")) == (2, 2)


def test_a_refusal_of_a_server_that_lives_is_passed_on(
    generator: TrexTrafficGenerator, worker: StandInWorker, light: Recording
) -> None:
    worker.trouble["astf_load"] = TrexRefused("TRex: astf_load: cps is below 0.5", "trex")
    with pytest.raises(TrexRefused, match=r"below 0\.5"):
        generator.run_trial(light.profile, Rate(1000), 2)
    generator.run_trial(light.profile, Rate(1000), 2)
    assert worker.count("connect") == 2


def test_ctrl_c_ends_the_traffic(generator: TrexTrafficGenerator, worker: StandInWorker, light: Recording) -> None:
    worker.trouble["astf_update"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        generator.run_trial(light.profile, Rate(1000), 2)
    assert not worker.is_running


def test_ports_that_somebody_holds_are_left_to_them(
    generator: TrexTrafficGenerator, worker: StandInWorker, light: Recording
) -> None:
    for holder in ("alice", str(Owner.myself())):
        worker.holder = holder
        with pytest.raises(GeneratorError, match="are held by"):
            generator.run_trial(light.profile, Rate(1000), 2)


def test_ports_that_a_killed_run_of_ours_held_are_taken(
    generator: TrexTrafficGenerator, worker: StandInWorker, light: Recording
) -> None:
    mine = Owner.myself()
    worker.holder = str(Owner(mine.machine, mine.boot, ticks="1", pid=mine.pid))
    generator.run_trial(light.profile, Rate(1000), 2)
    assert [arguments["force"] for do, arguments in worker.asked if do == "connect"] == [False, True]


def test_the_record_says_version_server_and_what_trex_does_otherwise(
    generator: TrexTrafficGenerator, light: Recording
) -> None:
    assert generator.snapshot()["type"] == "trex"
    generator.run_trial(light.profile, Rate(1000), 2)
    facts = generator.snapshot()
    assert facts["version"] == "v3.08"
    assert facts["server"] == {"server": "stand-in", "mode": "astf"}
    assert any("random order" in str(note) for note in facts["notes"])  # type: ignore[attr-defined]


def test_close_ends_client_and_server_and_may_be_repeated(
    generator: TrexTrafficGenerator, server: StandInServer, worker: StandInWorker, light: Recording
) -> None:
    generator.run_trial(light.profile, Rate(1000), 2)
    generator.close()
    generator.close()
    assert not worker.is_running
    assert not server.running
