"""How a run speaks to a TRex server, against a replay of what a real one answered.

Without TRex our own question (probe.py) is tested. With TREX_HOME set, TRex' whole client is too."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from integration.trex_replay_server import TrexReplayServer
from integration.trex_server import DATA, astf_session, client, connect

from ctbench.base.errors import GeneratorError
from ctbench.hosts.local import LocalHost
from ctbench.traffic.trex import server
from ctbench.traffic.trex.server import Endpoint, TrexServer
from ctbench.traffic.trex.worker import TrexRefused, TrexWorker

pytestmark = pytest.mark.beside_others

#: What the real server answered to a client whose API is newer than its own.
TOO_NEW = {
    "error": {
        "code": -32000,
        "message": "Failed To Execute Method",
        "specific_err": "Version mismatch: your client version is too new to be supported by the server\n"
        "(API type 'ASTF':  - server: '2.3', client: '2.99')",
    }
}


def running(port: int) -> TrexServer:
    return TrexServer(Endpoint(LocalHost(), (), "127.0.0.1", port))


@pytest.mark.parametrize("mode", ["astf", "stl"])
def test_a_running_server_says_its_version_and_mode(mode: Any) -> None:
    with TrexReplayServer(DATA / f"rpc-{mode}.json") as replay:
        trex = running(replay.sync_port)
        endpoint = trex.start(mode)

        assert endpoint.sync_port == replay.sync_port
        assert trex.is_running()
        assert replay.calls == ["get_version", "get_version"]
        assert not replay.unknown
    snapshot = trex.snapshot()
    assert (snapshot["version"], snapshot["mode"]) == ("v3.08", mode.upper())


def test_a_server_in_the_other_mode_is_refused_with_the_command_that_mends_it() -> None:
    with TrexReplayServer(DATA / "rpc-stl.json") as replay, pytest.raises(GeneratorError) as error:
        running(replay.sync_port).start("astf")

    assert "runs in STL mode, and ASTF is needed: start it again with `./t-rex-64 -i --astf`" in str(error.value)


def test_nobody_there_is_said_with_the_command_that_mends_it() -> None:
    with pytest.raises(GeneratorError) as error:
        running(1).start("stl")

    said = "No TRex server listens on 127.0.0.1:1 (Connection refused): start it there with `./t-rex-64 -i`"
    assert str(error.value).startswith(said)
    assert not running(1).is_running()


@pytest.mark.parametrize("greeting", [None, b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n" + bytes(64), b""])
def test_what_does_not_answer_speaks_otherwise_or_hangs_up_is_not_taken_for_trex(
    monkeypatch: pytest.MonkeyPatch, greeting: bytes | None
) -> None:
    def answer() -> None:
        with suppress(OSError):
            while greeting is not None:  # each that connects, until it is over
                with listening.accept()[0] as connection:
                    connection.sendall(greeting)

    monkeypatch.setattr(server, "ANSWER_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        threading.Thread(target=answer, daemon=True).start()
        said = f"What listens on 127.0.0.1:{port} is not a TRex server: it does not answer"
        with pytest.raises(GeneratorError, match=said):
            running(port).start("astf")
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[TrexWorker]:
    """TRex' client; skips where there is none."""
    if not os.environ.get("TREX_HOME"):
        pytest.skip("TREX_HOME is not set: TRex' client comes with TRex, and is on no registry.")
    with client(tmp_path / "worker.log") as found:
        yield found


def test_the_client_lives_through_a_recorded_session(worker: TrexWorker) -> None:
    with TrexReplayServer(DATA / "rpc-astf.json") as replay:
        connected = connect(worker, "astf", replay.sync_port, replay.async_port)
        assert connected["version"] == "v3.08"
        assert [port["mac"] for port in connected["ports"]] == ["02:00:00:00:00:01", "02:00:00:00:00:02"]

        first, second, last = astf_session(worker)
        worker.call("disconnect", 20)

        assert 0 < first["tcps_connattempt"] < second["tcps_connattempt"] <= last["tcps_connattempt"]
        assert last.get("m_active_flows", 0) == 0
        assert not replay.unknown  # else: tools/trex_record.py
        order = [call.split()[0] for call in replay.calls]
        assert order.index("acquire") < order.index("start") < order.index("update") < order.index("stop")
        assert order.index("stop") < order.index("release")


@pytest.mark.parametrize(
    ("recording", "instead", "owners", "said"),
    [
        ("rpc-busy", {}, ("somebody",), "are held by somebody: end that first"),
        ("rpc-stl", {}, (), "runs in STL mode; ASTF is needed"),
        ("rpc-astf", {"api_sync_v2 name=ASTF major=2": TOO_NEW}, (), "your client version is too new"),
    ],
)
def test_a_server_that_refuses_the_client_is_understood(
    worker: TrexWorker, recording: str, instead: dict[str, Any], owners: tuple[str, ...], said: str
) -> None:
    with TrexReplayServer(DATA / f"{recording}.json", instead) as replay:
        with pytest.raises(TrexRefused, match=said) as error:
            connect(worker, "astf", replay.sync_port, replay.async_port)

        assert error.value.owners == owners
        assert not replay.unknown


def test_recordings_hold_nothing_of_the_machine_that_made_them() -> None:
    for path in DATA.glob("rpc-*.json"):
        exchanges = json.loads(path.read_text())["exchanges"]
        (info,) = [exchange["result"] for exchange in exchanges if exchange["call"] == "get_system_info"]
        assert (info["hostname"], info["core_type"]) == ("trex", "a CPU")
