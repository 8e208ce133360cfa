"""The life of a TRex server in a sandbox, on a veth cable: of the real one where TREX_HOME is set, else of a stand-in.

No root, no NIC, no hugepages."""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.trex_server import WITHIN, make_cable, needs_trex, new_server
from integration.trex_stand_in import home_with_a_stand_in

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.hosts.local import Owner
from ctbench.hosts.sandbox import Sandbox
from ctbench.traffic.trex.server import StartedServer
from ctbench.traffic.trex.source import TrexPort

pytestmark = pytest.mark.beside_others

#: Makes a server object; keywords change the configuration.
New = Callable[..., StartedServer]
#: What TRex' own scripts leave in the folder that the sandbox shares with the machine.
TRACES = (Path("/tmp/trex-bird"), Path("/tmp/trex.txt"))


@pytest.fixture(scope="module")
def cabled(sandbox: Sandbox) -> Sandbox:
    make_cable(sandbox)
    return sandbox


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    return os.environ.get("TREX_HOME") or home_with_a_stand_in(tmp_path_factory.mktemp("trex"))


@pytest.fixture
def new(cabled: Sandbox, home: str, tmp_path: Path) -> Iterator[New]:
    """What it makes is stopped after the test, and has left nothing."""
    made: list[StartedServer] = []
    before = [path for path in TRACES if path.exists()]

    def make(**more: Any) -> StartedServer:
        made.append(new_server(cabled, tmp_path, **{"trex_home": home, **more}))
        return made[-1]

    yield make
    for server in made:
        server.stop()
    assert servers(cabled) == []
    assert cabled.run(["find", "/run", "-name", "*ctbench*"]).stdout == ""
    assert [path for path in TRACES if path.exists()] == before


def servers(host: Sandbox) -> list[str]:
    return host.run(["pgrep", "-f", "^[^ ]*_t-rex-64 .*trex_cfg"], check=False).stdout.split()


def test_it_starts_in_the_mode_that_is_needed_and_only_then(cabled: Sandbox, new: New, tmp_path: Path) -> None:
    server = new()

    server.start("astf")
    first = servers(cabled)
    server.start("astf")
    assert servers(cabled) == first

    server.start("stl")
    assert servers(cabled) != first
    assert {path.name for path in tmp_path.iterdir()} == {"trex-1-astf.log", "trex-1-stl.log"}
    assert "received signal SIGINT" in (tmp_path / "trex-1-astf.log").read_text()
    assert server.snapshot()["mode"] == "STL"


def test_more_connections_than_it_has_room_for_start_it_anew(cabled: Sandbox, new: New) -> None:
    server = new()
    server.start("astf", flows=100_000)
    first = servers(cabled)

    server.start("astf", flows=2_000_000)
    second = servers(cabled)
    server.start("astf", flows=1_000_000)

    assert second != first
    assert servers(cabled) == second
    assert "dp_flows: 8388608" in str(server.snapshot()["trex_cfg.yaml"])


def test_another_server_is_left_alone_and_other_ports_let_both_run(cabled: Sandbox, new: New) -> None:
    new().start("astf")
    (pid,) = servers(cabled)

    with pytest.raises(GeneratorError, match=rf"a TRex server runs there \(process {pid}\) for another run"):
        new().start("astf")
    new(sync_port=4511, async_port=4510).start("stl")

    assert pid in servers(cabled)
    assert len(servers(cabled)) == 2


def test_what_a_killed_run_left_is_ended_at_the_next_start(
    cabled: Sandbox, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_run = dataclasses.replace(Owner.myself(), pid="4000000")
    with monkeypatch.context() as patch:
        patch.setattr(Owner, "myself", lambda: killed_run)
        abandoned = new()
        abandoned.start("astf")
    left = servers(cabled)

    new().start("astf")

    assert not set(left) & set(servers(cabled))
    assert not abandoned.is_running()


def test_a_server_that_is_killed_is_noticed_and_started_anew(cabled: Sandbox, new: New) -> None:
    server = new()
    server.start("astf")

    cabled.run(["kill", "-KILL", *servers(cabled)])
    while server.is_running():
        pass
    server.start("astf")

    assert server.is_running()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"client": TrexPort(interface="gx", dest_mac="02:00:00:00:00:02")}, "there is no interface gx for TRex"),
        (
            {"client": TrexPort(interface="g0", ip="16.0.0.2", gateway="16.0.0.9")},
            "TRex got no answer to ARP from gateway 16.0.0.9 of port 0: is the DUT up?",
        ),
        ({"memory": {"mbuf_9k": 1}, "cpus": [999]}, "TRex ended while it started: "),
        ({"start_timeout_s": 1}, "TRex is not ready after 1 s"),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_nothing(new: New, settings: dict[str, Any], said: str) -> None:
    server = new(**settings)
    if "start_timeout_s" in settings:
        needs_trex()  # the stand-in is ready at once

    with pytest.raises(GeneratorError, match=said):
        server.start("astf")

    assert not server.is_running()


def test_a_folder_without_trex_is_said(new: New, tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match=f"there is no TRex in {tmp_path}: give the folder of t-rex-64"):
        new(trex_home=str(tmp_path)).start("astf")


def test_a_port_that_something_else_holds_is_said(cabled: Sandbox, new: New, tmp_path: Path) -> None:
    holder = "import socket; s = socket.create_server(('127.0.0.1', 4501)); print('there', flush=True); s.accept()"
    process = cabled.start([*WITHIN, sys.executable, "-c", holder], log=tmp_path / "holder.log")
    while not (tmp_path / "holder.log").read_text():
        assert process.is_running()
    with pytest.raises(GeneratorError, match="port 4501, where TRex is to listen, is taken"):
        new().start("astf")
    process.stop()
