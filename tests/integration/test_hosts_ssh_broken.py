"""What becomes of a host over SSH when the connection breaks, or the run that used it; a real sshd on loopback."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from integration.sshd import Sshd

import ctbench
from ctbench.base.errors import TestbedError
from ctbench.dut.base import wait_until
from ctbench.hosts import claims
from ctbench.hosts.connections import HostPool
from ctbench.hosts.local import LocalHost
from ctbench.hosts.ssh import SshHost

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

#: A run that uses the host: starts one command, waits for another, and says what became of that.
CLIENT = """
import sys
from ctbench.base.errors import TestbedError
from ctbench.dut.base import wait_until
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh import SshHost
config, started, waited, marker = sys.argv[1:]
host = SshHost("dut", SshConfig.model_validate_json(config))
host.start(["sleep", started])
try:
    host.run(["sh", "-c", f"echo > {marker}; exec sleep {waited}"])
except TestbedError as error:
    print(error)
"""


def running(marker: str) -> bool:
    return marker in LocalHost().run(["ps", "-eo", "args"]).stdout.splitlines()


def gone(marker: str) -> bool:
    """Whether it ends; pytest's own patience is the limit."""
    while running(marker):
        pass
    return True


def client(sshd: Sshd, started: str, waited: str, marker: Path) -> "subprocess.Popen[str]":
    """Another run, up to where it waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, sshd.config().model_dump_json(), started, waited, str(marker)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(ctbench.__file__).parents[1])},
    )
    while not marker.exists():
        assert process.poll() is None
    return process


def when_there(marker: Path, sshd: Sshd, number: signal.Signals) -> threading.Thread:
    """Sends a signal to sshd as soon as a command has made the file."""

    def watch() -> None:
        if wait_until(marker.exists, 60, 0.001):  # not where the login failed
            sshd.signal_sessions(number)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGKILL, r"\w.*\."), (signal.SIGSTOP, r"the host does not answer any more\.")]
)
def test_a_connection_that_breaks_in_the_middle_of_a_command_is_said_and_made_again(
    number: signal.Signals, said: str, sshd: Sshd, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    watching = when_there(marker, sshd, number)
    with closing(SshHost("dut", sshd.config(connect_timeout_s=1))) as host:
        with pytest.raises(TestbedError, match=rf"^dut: the SSH connection was lost: {said}$"):
            host.run(["sh", "-c", f"echo > {marker}; exec sleep 47201"], timeout=2)
        watching.join()
        sshd.signal_sessions(signal.SIGKILL)

        assert gone("sleep 47201")
        assert host.run(["echo", "again"]).stdout == "again\n"


@pytest.mark.parametrize(
    "does",
    [
        lambda host, _: host.run(["true"]),
        lambda host, _: host.start(["true"]),
        lambda _, process: process.stop(),
    ],
)
def test_a_host_that_does_not_answer_any_more_is_given_up(sshd: Sshd, does: Callable[..., object]) -> None:
    host = SshHost("dut", sshd.config(connect_timeout_s=1))
    process = host.start(["sleep", "47203"])
    sshd.signal_sessions(signal.SIGSTOP)
    try:
        with pytest.raises(TestbedError, match="dut: the SSH connection was lost: the host does not answer any more"):
            does(host, process)
    finally:
        sshd.signal_sessions(signal.SIGKILL)
        host.close()
    assert gone("sleep 47203")


@pytest.mark.parametrize("broken", [True, False])
def test_what_a_run_started_ends_with_it_and_with_its_connection(broken: bool, sshd: Sshd, tmp_path: Path) -> None:
    process = client(sshd, "47205", "47206", tmp_path / "marker")
    assert running("sleep 47205") and running("sleep 47206")

    if broken:
        sshd.signal_sessions(signal.SIGKILL)
    else:
        process.kill()
    out, err = process.communicate()
    assert (out.count("\n"), err) == (int(broken), "")
    assert out.startswith("dut: the SSH connection was lost: " if broken else "")
    assert gone("sleep 47205") and gone("sleep 47206")


def folders_of_this_user() -> set[Path]:
    """What is left of hosts; other tests run as another user meanwhile, whose folders come and go."""
    found = set()
    for path in Path("/tmp").glob("ctbench-*"):
        with suppress(FileNotFoundError):
            found |= {path} if path.stat().st_uid == os.getuid() else set()
    return found


def test_nothing_stays_on_the_host(ssh_host: SshHost) -> None:
    left = folders_of_this_user()
    ssh_host.start(["sleep", "47212"])
    ssh_host.run(["true"])
    with pytest.raises(TestbedError):
        ssh_host.run(["sleep", "47213"], timeout=0.5)

    ssh_host.close()

    assert gone("sleep 47212") and gone("sleep 47213")
    assert folders_of_this_user() == left


#: A job that has the host for itself.
JOB = """
import sys, time
from ctbench.hosts.config import SshConfig
from ctbench.hosts.connections import HostPool
from ctbench.hosts.claims import FOLDER, Claim
claim = Claim(HostPool({"dut": SshConfig.model_validate_json(sys.argv[1])}), {"dut": [FOLDER]}, 0, print)
print("claimed", flush=True)
time.sleep(60)
"""


def job(sshd: Sshd) -> "subprocess.Popen[str]":
    """One that has claimed the host."""
    process = subprocess.Popen(
        [sys.executable, "-c", JOB, sshd.config().model_dump_json()],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(ctbench.__file__).parents[1]), "BUILD_TAG": "jenkins-sla-57"},
    )
    assert process.stdout and process.stdout.readline() == "claimed\n"
    return process


def test_a_host_is_one_job_s_until_that_is_killed_or_loses_its_connection(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(claim: Callable[[], object], process: int) -> None:
        with monkeypatch.context() as hurried:
            hurried.setattr(claims, "_GRACE_S", 0.1)
            with pytest.raises(claims.Taken, match=rf"^dut: .*, process {process}, since .* UTC \(jenkins-sla-57\) "):
                claim()

    with closing(HostPool({"dut": sshd.config()})) as hosts:
        with job(sshd) as other:
            refused(lambda: claims.Claim(hosts, {"dut": [claims.FOLDER]}, 0, pytest.fail), other.pid)
            other.kill()
        claim = claims.Claim(hosts, {"dut": [claims.FOLDER]}, 0, pytest.fail)
        sshd.signal_sessions(signal.SIGKILL)  # the connection, and what it held
        with job(sshd) as other:
            for _ in range(2):
                refused(lambda: hosts.host("dut").run(["false"]), other.pid)
            refused(claim.renew, other.pid)
            other.kill()
        hosts.host("dut").run(["true"])
        assert f"process {os.getpid()}, since" in claims.holders(hosts.host("dut"))[claims.FOLDER]
    with job(sshd) as other:
        other.kill()


def test_a_lock_is_taken_again_where_the_host_does_not_notice_that_its_connection_is_gone(sshd: Sshd) -> None:
    with closing(HostPool({"dut": sshd.config(connect_timeout_s=1)})) as hosts:
        host = hosts.host("dut")
        claim = claims.Claim(hosts, {"dut": [claims.FOLDER]}, 0, pytest.fail)
        sshd.signal_sessions(signal.SIGSTOP)
        with pytest.raises(TestbedError, match="the host does not answer any more"):
            host.run(["true"])
        host.run(["true"])
        assert claims._processes(host, [claims.FOLDER]) == {claims.FOLDER: str(claim._held["dut"].pid)}
        sshd.signal_sessions(signal.SIGKILL)
