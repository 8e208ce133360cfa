"""Two jobs at once on one lab in a box: real sshds for its two hosts, and the kernel as the router."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import commands
import pytest
from integration.miniature_lab import as_yaml, lab_file
from integration.sshd import Sshd, serving

from ctbench.base.errors import ExitStatus
from ctbench.base.paths import LIBRARIES, ROOT
from ctbench.hosts.ssh import SshHost

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

#: A job that sets the router of the lab up, and takes it down once it is told to; without traffic, so without TRex. It
#: waits less then for a lock that might be given back just now.
JOB = """
import sys
from pathlib import Path
from ctbench.base.errors import TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.hosts import claims
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Place, Testbed
lab, ruleset = sys.argv[1:]
testbed = Testbed(load("testbeds", lab, TestbedConfig), Path(lab).parent)
testbed.claim(lambda line: print(line, flush=True))
testbed.dut_at(Place("linux-router"))[0].apply(Topology(datapath="linux-router", ruleset=ruleset))
print("stands", flush=True)
sys.stdin.read()
claims._GRACE_S = 0.5
try:
    testbed.close()
except TestbedError as error:
    print(error)
"""
Job = Callable[[str, str], "subprocess.Popen[str]"]


@pytest.fixture
def dut(tmp_path: Path) -> Iterator[Sshd]:
    """The host of the router, with a client's and a server's interface."""
    (tmp_path / "dut").mkdir()
    for server in serving(tmp_path / "dut", own_network=True):
        with closing(SshHost("dut", server.config())) as host:
            host.run(["mount", "-t", "sysfs", "sysfs", "/sys"])
            host.run(["ip", "link", "set", "lo", "up"])
            for name in ("client", "server"):
                host.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-peer"])
                host.run(["ip", "link", "set", f"{name}-peer", "up"])
        yield server


@pytest.fixture
def tgen(tmp_path: Path) -> Iterator[Sshd]:
    """TRex' host."""
    (tmp_path / "tgen").mkdir()
    yield from serving(tmp_path / "tgen")


@pytest.fixture
def lab(dut: Sshd, tgen: Sshd, tmp_path: Path) -> str:
    """Path of its testbed file, where another run is not waited for."""
    (tmp_path / "lab.yaml").write_text(lab_file(as_yaml(dut), as_yaml(tgen)))
    return str(tmp_path / "lab.yaml")


@pytest.fixture
def patient(lab: str, tmp_path: Path) -> str:
    """Another file of the same lab, with other names of the hosts, where another run is waited for."""
    text = Path(lab).read_text() + "wait_for_hosts_s: 60\n"
    for name, other in (("dut", "z-router"), ("tgen", "a-trex")):
        text = text.replace(f"  {name}: {{", f"  {other}: {{").replace(f"host: {name}\n", f"host: {other}\n")
    (tmp_path / "patient.yaml").write_text(text)
    return str(tmp_path / "patient.yaml")


@pytest.fixture
def job() -> Iterator[Job]:
    """Begins a job of CI with a testbed file and a ruleset."""
    begun = []

    def begin(testbed: str, ruleset: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(LIBRARIES), "BUILD_TAG": "jenkins-sla-57", "LOGNAME": "ci"}
        process = subprocess.Popen(
            [sys.executable, "-c", JOB, testbed, ruleset],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def said(process: "subprocess.Popen[str]") -> str:
    """Its next line."""
    return process.stdout.readline().rstrip("\n")


def rules(dut: Sshd) -> str:
    """Rules of netfilter that the router has."""
    with closing(SshHost("dut", dut.config())) as host:
        return host.run(["nft", "list", "ruleset"]).stdout


@pytest.mark.usefixtures("able_machine")
def test_two_jobs_of_one_lab_do_not_meet_there_however_one_ends_and_one_that_was_cut_off_leaves_it_to_the_next(
    dut: Sshd, tgen: Sshd, lab: str, patient: str, job: Job, tmp_path: Path
) -> None:
    """One is killed, another one loses its connections."""
    first = job(lab, "nftables-stateful")
    assert said(first) == "stands"

    options = ["-v", f"TESTBED:{lab}", "--outputdir", tmp_path / "out", "--test", "Forwarding, 10k Flows"]
    refused = subprocess.Popen(
        commands.command("sla", *options, ROOT / "suites"),
        env=commands.environment(tmp_path / "results"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    second = job(patient, "nftables-stateful")
    who = r"ci@\S+, process {}, since \S+ \S+ UTC \(jenkins-sla-57\) has this host"
    assert re.search(who.format(first.pid) + r"\. Waiting for its end, 1 min at most\.$", said(second))
    told, _ = refused.communicate(timeout=100)
    assert refused.returncode == ExitStatus.TESTBED, told
    assert re.search(who.format(first.pid), told)

    first.kill()
    lines = iter(lambda: said(second), "stands")  # of the other host, whose sshd may not have seen it yet
    assert all("Waiting for its end" in line for line in lines)
    for host in (dut, tgen):
        host.signal_sessions(signal.SIGKILL)

    third = job(lab, "nftables-snat")
    assert said(third) == "stands"
    stand = rules(dut)
    told, _ = second.communicate(timeout=100)
    assert re.fullmatch(f"z-router: {who.format(third.pid)} for itself: this run has no lock on .*\n", told)
    assert rules(dut) == stand != ""
    told, _ = third.communicate(timeout=100)
    assert (told, rules(dut)) == ("", "")
