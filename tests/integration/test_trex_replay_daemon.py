"""How a run uses trex_daemon_server, against a replay of what a real one answered: no TRex is needed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from integration.trex_replay_daemon import TrexReplayDaemon
from integration.trex_server import DATA, trex_config

from ctbench.base.errors import GeneratorError
from ctbench.hosts.local import LocalHost
from ctbench.traffic.trex.server import DaemonServer, Mode
from ctbench.traffic.trex.source import TrexPort

pytestmark = pytest.mark.beside_others

#: A session of the recording -> the replay, and a server object that talks to it.
Replay = Callable[..., tuple[TrexReplayDaemon, DaemonServer]]


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    with ExitStack() as stack:

        def make(session: str, **settings: Any) -> tuple[TrexReplayDaemon, DaemonServer]:
            daemon = stack.enter_context(TrexReplayDaemon(DATA / "daemon.json", session))
            config = trex_config(cpus=[1], daemon_port=daemon.port).model_copy(update=settings)
            return daemon, DaemonServer(LocalHost(), config, "127.0.0.1", tmp_path)

        yield make


def test_it_reserves_starts_stops_and_lets_go(replay: Replay, tmp_path: Path) -> None:
    daemon, server = replay("life")

    server.start("astf")
    server.start("astf")  # it runs already
    assert server.is_running()
    assert daemon.pushed == server.snapshot()["trex_cfg.yaml"]
    server.log_excerpt()
    server.stop()
    server.stop()

    assert not daemon.unexpected
    assert daemon.left == ["get_running_info"]
    assert "zmq publisher at" in (tmp_path / "trex-1-astf.log").read_text()


@pytest.mark.parametrize(("session", "modes"), [("other mode", ["astf", "stl"]), ("abandoned", ["astf"])])
def test_another_mode_and_a_killed_run_are_ended_by_the_next_start(
    replay: Replay, session: str, modes: list[Mode]
) -> None:
    daemon, server = replay(session)

    for mode in modes:
        server.start(mode)
    server.stop()

    assert not daemon.unexpected
    assert not daemon.left


def test_a_trex_that_was_killed_is_noticed(replay: Replay) -> None:
    daemon, server = replay("killed")
    server.start("astf")

    assert not server.is_running()
    assert "Killed" in server.log_excerpt()
    server.stop()
    assert not daemon.unexpected


@pytest.mark.parametrize(
    ("session", "settings", "said"),
    [
        (
            "failed",
            {"client": TrexPort(interface="gx", dest_mac="02:00:00:00:00:02")},
            "Could not find Linux interface gx",
        ),
        ("late", {"start_timeout_s": 0.2}, "TRex stays at Starting state beyond defined timeout"),
        ("reserved", {}, r"TRex is already reserved to another user \(somebody\)"),
        ("in use", {}, "TRex is currently running, cannot reserve"),
    ],
)
def test_a_fault_is_a_sentence_and_leaves_nothing_reserved(
    replay: Replay, session: str, settings: dict[str, Any], said: str
) -> None:
    daemon, server = replay(session, **settings)

    with pytest.raises(GeneratorError, match=said) as error:
        server.start("astf")

    assert "\n" not in str(error.value)
    assert not daemon.unexpected
    assert not daemon.left  # the recorded session ends with the reservation cancelled, where there was one
    assert not server.is_running()


def test_without_a_daemon_it_says_how_to_start_one(replay: Replay) -> None:
    _, server = replay("life", daemon_port=1)

    with pytest.raises(GeneratorError, match=r"answers at 127.0.0.1:1 \(Connection refused\): start it on the host"):
        server.start("astf")
