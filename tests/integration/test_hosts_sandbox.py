"""A sandbox is a machine of its own, and leaves nothing behind however it ends."""

import contextlib
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from integration.whole_run import began_s

import ctbench
from ctbench.base.errors import TestbedError
from ctbench.dut.base import wait_until
from ctbench.hosts.sandbox import Sandbox

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

LIBRARIES = str(Path(ctbench.__file__).parents[1])
#: Makes a sandbox with a daemon in it, says so, and waits for its end.
MAKER = """
import os, sys, time
from ctbench.hosts.sandbox import Sandbox
sandbox = Sandbox()
sandbox.run(["setsid", "-f", "sleep", sys.argv[1]])
sandbox.start(["sleep", sys.argv[1]])
if "fork" in sys.argv and os.fork() == 0:
    os.close(1)
    time.sleep(30)  # a child that holds a copy of everything
    os._exit(0)
print(sandbox.init_pid, flush=True)
time.sleep(30)
"""
#: Seconds that the kernel gets to take a sandbox down.
GONE_WITHIN_S = 2.0


def end(pid: int) -> None:
    """Kill a process, and return when it is dead, which takes the kernel a moment: pidfd_open(2), poll."""
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [])
    finally:
        os.close(process)


def sleeping(marker: str) -> list[str]:
    """Living processes of `sleep` with this argument."""
    found = subprocess.run(["pgrep", "-xf", f"sleep {marker}"], stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout.split()


def namespace_is_used(namespace: str, before_s: float = math.inf) -> bool:
    """Whether a process that began before that time (seconds since boot) is in it: the next namespace that is made gets
    the number of one that is gone. Asked again where a process ended while lsns(8) looked at it, which then fails."""
    command = ["lsns", "-n", "-t", "net", "-o", "NS,PID"]
    for _ in range(20):
        listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if listed.returncode == 0:
            return any(
                began_s(pid) < before_s
                for number, pid in map(str.split, listed.stdout.splitlines())
                if number == namespace
            )
    raise AssertionError("lsns failed 20 times")


def test_it_is_a_machine_of_its_own(sandbox: Sandbox) -> None:
    assert sandbox.run(["id", "-u"]).stdout.strip() == "0"
    assert sandbox.run(["ls", "/sys/class/net"]).stdout.split() == ["lo"]
    assert sandbox.run(["cat", "/sys/class/net/lo/operstate"]).stdout.strip() == "unknown"  # which is `up` for lo
    assert sandbox.run(["ls", "/run"]).stdout == ""
    assert sandbox.run(["cat", "/proc/1/cmdline"]).stdout.endswith("sandbox_init.py\0")


def test_a_socket_of_a_daemon_in_it_can_be_reached_from_outside(sandbox: Sandbox) -> None:
    listener = (
        "import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind('/run/s.sock'); s.listen(); "
        "s.accept()[0].send(b'hello')"
    )
    process = sandbox.start([sys.executable, "-I", "-S", "-c", listener])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        while client.connect_ex(str(sandbox.local_path("/run/s.sock"))) != 0:
            assert process.is_running()
        assert client.recv(16) == b"hello"


def test_where_namespaces_are_forbidden_it_says_what_to_do(sandbox: Sandbox) -> None:
    # A limit of the sandbox's own user namespace: it holds for what is made inside, not for the machine.
    setting = "/proc/sys/user/max_user_namespaces"
    before = sandbox.run(["cat", setting]).stdout
    attempt = (
        "from ctbench.base.errors import MissingResource; from ctbench.hosts.sandbox import Sandbox\ntry: Sandbox()\n"
    )
    attempt += "except MissingResource as error: print(error)"
    sandbox.run(["tee", setting], stdin="0")
    try:
        said = sandbox.run([sys.executable, "-c", attempt], env={"PYTHONPATH": LIBRARIES}).stdout
    finally:
        sandbox.run(["tee", setting], stdin=before)

    assert said.strip().endswith("an administrator allows them with: sysctl user.max_user_namespaces=10000")


@pytest.mark.parametrize("end", ["kill -9", "kill -9, with a child that holds on", "Ctrl-C"])
def test_nothing_is_left_when_its_maker_ends(sandbox: Sandbox, end: str) -> None:
    marker = f"{len(end)}4720{os.getpid()}"
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKER, marker, *(["fork"] if "child" in end else [])],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": LIBRARIES},
        start_new_session=True,
    )
    init = int(maker.stdout.readline())
    namespace = str(Path(f"/proc/{init}/ns/net").stat().st_ino)
    assert wait_until(lambda: len(sleeping(marker)) == 2, GONE_WITHIN_S) and namespace_is_used(namespace)

    ended_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    os.kill(maker.pid, signal.SIGINT if end == "Ctrl-C" else signal.SIGKILL)
    maker.wait()
    try:
        # The child that holds on is not the sandbox's: it has the maker's command line and outlives it on purpose.
        assert wait_until(lambda: not sleeping(marker) and not namespace_is_used(namespace, ended_s), GONE_WITHIN_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(maker.pid, signal.SIGKILL)


def test_how_a_daemon_ended_is_known_although_nobody_waited_for_it(sandbox: Sandbox) -> None:
    daemon = "setsid sh -c 'sleep 60; exit 3' >/dev/null 2>&1 & echo $!"
    killed = int(sandbox.run(["sh", "-c", daemon]).stdout)
    failed = int(sandbox.run(["sh", "-c", daemon.replace("60", "0.2")]).stdout)
    sandbox.run(["kill", "-9", str(killed)])

    assert [sandbox.ended_with(each) for each in (killed, failed)] == [-signal.SIGKILL, 3]


def test_a_sandbox_whose_first_process_is_killed_says_so_to_whoever_asks_next() -> None:
    with Sandbox() as sandbox:
        end(sandbox.init_pid)

        with pytest.raises(TestbedError, match="The sandbox has ended: its first process"):
            sandbox.run(["true"], check=False)
        with pytest.raises(TestbedError, match="The sandbox has ended"):
            sandbox.get("/run/any", Path("/dev/null"))
        assert sandbox.ended_with(1) is None
