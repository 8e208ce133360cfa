"""How TRex' client speaks to its server, against a replay of what a real one answered. Needs TREX_HOME."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.trex_replay_server import TrexReplayServer
from integration.trex_server import DATA, astf_session, client, connect

from ctbench.traffic.trex.client import TrexRefused, TrexWorker

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
        ("rpc-stl", {}, (), "runs in STL mode, and ASTF is needed: start it again with `./t-rex-64 -i --astf`"),
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
