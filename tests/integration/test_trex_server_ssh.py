"""A real TRex on a host across SSH: started there, its log and its client brought here. Needs TREX_HOME and root."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.sshd import serving
from integration.trex_server import make_cable, needs_trex, new_server

from ctbench.base.errors import GeneratorError
from ctbench.hosts.ssh import SshHost
from ctbench.traffic.trex.locate import find_client

pytestmark = pytest.mark.root_too


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SshHost]:
    """Another mount namespace of this machine, with a cable in a network namespace that nobody else sees."""
    if os.geteuid() != 0:
        pytest.skip("TRex needs root, and an ordinary user's sshd lets nobody in as root.")
    for sshd in serving(tmp_path):
        ssh = SshHost("trex.lab", sshd.config())
        try:
            make_cable(ssh)
            new_server(ssh, tmp_path)
            needs_trex()
            yield ssh
            ssh.run(["ip", "netns", "delete", "generator"])
        finally:
            ssh.close()


def test_it_is_started_and_ended_over_ssh(host: SshHost, tmp_path: Path) -> None:
    server = new_server(host, tmp_path / "logs")

    server.start("astf")
    command = str(server.snapshot()["command"])
    assert server.is_running()
    assert server.snapshot()["host"] == "trex.lab"
    with pytest.raises(GeneratorError, match=r"trex\.lab: a TRex server runs there \(process \d+\) for another run"):
        new_server(host, tmp_path).start("astf")
    server.stop()

    assert not server.is_running()
    assert host.run(["pgrep", "-f", command.replace("trex_cfg", "[t]rex_cfg")], check=False).stdout == ""
    assert host.run(["find", "/run", "-name", "*ctbench-*"]).stdout == ""
    assert "received signal SIGINT" in (tmp_path / "logs/trex-1-astf.log").read_text()


@pytest.mark.parametrize("known", [True, False])
def test_its_client_is_copied_here(host: SshHost, tmp_path: Path, known: bool) -> None:
    home = needs_trex()
    if not known:  # then it is asked of the server that runs there
        server = new_server(host, tmp_path)
        server.start("stl")

    client = find_client(home if known else "", host, environment={"XDG_CACHE_HOME": str(tmp_path / "cache")})

    if not known:
        server.stop()
    assert client.origin == "copied from trex.lab"
    assert client.folder.is_relative_to(tmp_path / "cache/ctbench/trex" / client.version)
    assert client.version == find_client(home).version
