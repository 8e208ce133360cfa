"""The doctor looks at real machines: this one, a sandbox in the place of a lab's host, and TRex where it is."""

import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import commands
import pytest
import yaml
import zmq
from integration.small_testbed import small
from integration.sshd import Sshd
from integration.test_traffic_interfaces import losing
from real_duts import tried

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import load
from ctbench.doctor import testbed_file
from ctbench.doctor.examine import Section, examine
from ctbench.doctor.found import _OPEN_DEVICES
from ctbench.doctor.frames import FRAMES, send
from ctbench.doctor.testbed_file import make_testbed_file
from ctbench.dut.base import Ports, wait_until
from ctbench.hosts.base import Host
from ctbench.hosts.connections import HostPool
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import Finding
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connectors.software import SoftwareConnector
from ctbench.testbed.testbed import Testbed

pytestmark = pytest.mark.beside_others

#: A lab's router with cards `lab0` and `lab1`, and TRex that somebody started on the same host.
ROUTER = {"type": "linux-router", "host": "dut", "ports": {"kind": "interfaces", "client": "lab0", "server": "lab1"}}
RUNNING = {"type": "trex", "host": "dut", "server": "running"}
#: What a doctor must not change.
STATE = (
    ["ip", "-d", "address"],
    ["ip", "route", "show", "table", "all"],
    ["nft", "list", "ruleset"],
    ["sysctl", "net.ipv4"],
    ["find", "/run", "-printf", "%p %T@ %s\n"],
)


def lab(**keys: Any) -> TestbedConfig:
    example = load("testbeds", "example-trex-xeon", TestbedConfig).model_dump()
    return TestbedConfig.model_validate(example | {"duts": [ROUTER], "generator": RUNNING} | keys)


def rows(sections: Iterator[Section]) -> dict[str, Finding]:
    return {finding.what: finding for section in sections for finding in section.findings}


@pytest.fixture
def pretended(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A lab's host: a sandbox with two pairs of veth for cards, of which only the first has a link."""
    host = Sandbox()
    monkeypatch.setattr(host, "close", lambda: None)  # it outlives the examination
    for command in (
        "link add lab0 address 02:00:00:00:00:01 type veth peer name gen0",
        *(f"link set {name} addrgenmode none" for name in ("lab0", "gen0")),  # whose addresses would be tentative
        "link set lab0 up",
        "link set gen0 up",
        "link add lab1 address 02:00:00:00:00:02 type veth peer name gen1",
        *(f"link set {name} addrgenmode none" for name in ("lab1", "gen1")),
        "link set lab1 up",
    ):
        host.run(["ip", *command.split()])
    yield host
    Sandbox.close(host)


def examined(host: Host, testbed: TestbedConfig) -> dict[str, Finding]:
    with patch.object(HostPool, "host", lambda _pool, _name: host):
        return rows(examine(testbed, lambda _: None))


def doctor(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        commands.command("doctor", *arguments),
        env=commands.environment(Path(os.devnull)),  # it writes no results
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.root_too
def test_the_local_testbed_needs_nothing_on_a_machine_that_can_measure(able_machine: None) -> None:
    done = doctor()
    assert done.returncode == 0, done.stdout
    assert "Open vSwitch" in done.stdout and "other runs" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == "doctor: looking at this machine ...\n"


@pytest.fixture
def sandbox_testbed(able_machine: None) -> TestbedConfig:
    return small(load("testbeds", "local", TestbedConfig))


def sent(testbed: TestbedConfig) -> dict[str, tuple[str, str]]:
    """What is said of each DUT; once more where the machine was too busy to tell."""
    findings = tried(
        lambda: send(testbed, lambda _: None).findings,
        lambda findings: "unknown" not in {finding.state for finding in findings},
    )
    return {finding.what: (finding.state, finding.found) for finding in findings}


@pytest.mark.usefixtures("unhurried", "resting", "any_packets")
def test_a_thousand_frames_each_way_come_through_every_dut(sandbox_testbed: TestbedConfig) -> None:
    every = f"{FRAMES} of {FRAMES} from the client, {FRAMES} of {FRAMES} from the server came through"
    found = sent(sandbox_testbed)
    assert len(found) == 3 and set(found.values()) == {("ok", every)}


@pytest.mark.usefixtures("unhurried", "resting", "any_packets")
def test_it_is_said_who_lost_frames(sandbox_testbed: TestbedConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator gets fifteen of sixteen that a router has sent; then the router drops some."""
    router = [dut for dut in sandbox_testbed.duts if dut.type == "linux-router"]
    testbed, connect, apply = (
        sandbox_testbed.model_copy(update={"duts": router}),
        SoftwareConnector.connect,
        Testbed.apply,
    )

    def lossy(connector: SoftwareConnector, ports: Ports, *arguments: Any) -> None:
        connect(connector, replace(ports, open_socket=losing(ports)), *arguments)

    def dropping(made: Testbed, *arguments: Any) -> None:
        apply(made, *arguments)
        ((_, host),) = made._duts.values()
        host.run(["iptables", "-w", "-I", "FORWARD", "1", "-s", "16.0.0.0/28", "-j", "DROP"])

    with monkeypatch.context() as patch:
        patch.setattr(SoftwareConnector, "connect", lossy)
        ((state, said),) = sent(testbed).values()
    assert state == "bad", said
    assert re.search(r"the DUT sent \d+ frames to the generator's (client|server) port, it took \d+", said)
    monkeypatch.setattr(Testbed, "apply", dropping)
    ((state, said),) = sent(testbed).values()
    assert state == "bad", said
    assert "of the packets were lost, mostly from" in said


def test_a_labs_host_is_seen_as_it_is(pretended: Sandbox) -> None:
    found = examined(pretended, lab())
    assert found["SSH"].state == "ok"
    assert found["link of lab0"].found.startswith("up")
    assert found["link of lab0"].found.endswith("MAC 02:00:00:00:00:01")
    assert found["link of lab1"].state == "bad"  # its peer is down
    assert found["rights"].found == "commands run as root"
    assert found["clock"].state != "bad"
    assert found["netfilter rules"].state == "ok"
    assert found["TRex server"].state == "bad"
    pretended.run(["nft", "add", "table", "inet", "firewall"])
    finding = examined(pretended, lab())["netfilter rules"]
    assert (finding.state, "table inet firewall" in finding.found) == ("bad", True)


def test_a_process_is_seen_that_has_a_device_of_a_card_open(pretended: Sandbox) -> None:
    opens = "mount -t tmpfs none /dev && mkdir /dev/vfio && exec 9>/dev/vfio/42 && echo && exec sleep 60"
    process = pretended.start(["sh", "-c", opens])
    opened = f"/proc/{process.pid}/fd/9 /dev/vfio/42\n"
    assert wait_until(lambda: pretended.run(_OPEN_DEVICES, check=False).stdout == opened, 5, 0.1)


def test_looking_changes_nothing(pretended: Sandbox) -> None:
    before = [pretended.run(argv, check=False).stdout for argv in STATE]
    examined(pretended, lab())
    assert [pretended.run(argv, check=False).stdout for argv in STATE] == before


def test_a_host_over_ssh_is_looked_at(sshd: Sshd, tmp_path: Path) -> None:
    hosts = {"dut": sshd.config().model_dump(), "tgen": sshd.config(known_hosts=str(tmp_path / "none")).model_dump()}
    content = lab(hosts=hosts, generator=RUNNING | {"host": "tgen"}).model_dump() | {"name": "mine"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    done = doctor(str(tmp_path / "mine.yaml"))
    assert done.returncode == 6, done.stderr
    dut, tgen = done.stdout.split("\ntgen (")
    assert "SSH                 " in dut
    assert "there is no such card (linux-router, client)" in dut
    assert "link of lab0" not in dut
    assert "the key of 127.0.0.1" in tgen  # is not known
    assert "isolated CPUs" not in tgen
    assert "Traceback" not in done.stderr


def server_row(port: int) -> Finding:
    """What is found of a TRex that somebody started on this machine."""
    local = {"duts": [ROUTER | {"host": "local"}], "generator": RUNNING | {"host": "local", "sync_port": port}}
    return examined(LocalHost(), lab(**local))["TRex server"]


def test_a_running_trex_is_asked_for_its_version_and_mode() -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as trex:
        port = trex.bind_to_random_port("tcp://127.0.0.1")

        def answer() -> None:
            if trex.poll(10_000):
                asked = trex.recv_json()
                trex.send_json({"jsonrpc": "2.0", "id": asked["id"], "result": {"version": "v3.08", "mode": "ASTF"}})

        thread = threading.Thread(target=answer)
        thread.start()
        finding = server_row(port)
        thread.join()
    assert (finding.state, finding.found.startswith("v3.08 in mode ASTF answers on 127.0.0.1:")) == ("ok", True)
    with socket.create_server(("127.0.0.1", 0)) as listening:  # and what is not a TRex
        finding = server_row(listening.getsockname()[1])
    assert (finding.state, "does not answer within" in finding.found) == ("bad", True)


def test_a_file_is_written_from_a_real_machine_and_a_host_over_ssh_without_free_cards_is_a_sentence(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    testbed = TestbedConfig.model_validate(yaml.safe_load(make_testbed_file("here", "", "")))
    assert {dut.host for dut in testbed.duts} == {"sandbox"}
    config = f"Host lab\n Hostname 127.0.0.1\n Port {sshd.port}\n User {sshd.user}\n IdentityFile {sshd.key}\n"
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text(f"{config} UserKnownHostsFile {sshd.known_hosts}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    if testbed_file.look(LocalHost(), "pci", sudo=False).macs:
        with pytest.raises(ConfigError, match=r"^--dut and --generator: lab and this machine are one host"):
            make_testbed_file("mylab", "lab", "")
    look = testbed_file.look
    monkeypatch.setattr(testbed_file, "look", lambda *args, **keys: replace(look(*args, **keys), macs=frozenset()))
    with pytest.raises(MissingResource, match=r"^dut: two .* are needed .*; .*\blo is not an Ethernet card"):
        make_testbed_file("mylab", "lab", "")
