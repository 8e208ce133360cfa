"""What every Host promises, held against this machine, a sandbox, and a host over SSH (a real sshd on loopback)."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ctbench
from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Host
from ctbench.hosts.local import LocalHost
from ctbench.hosts.sandbox import Sandbox
from ctbench.hosts.ssh import SshHost

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

#: What a process may be given as argument: anything but the end of a C string, as UTF-8.
ARGUMENTS = st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30), max_size=5)
#: Runs a command on a host of this kind, for a test that interrupts it.
CALLER = """
import json, sys
from ctbench.hosts.config import SshConfig
from ctbench.hosts.local import LocalHost
from ctbench.hosts.sandbox import Sandbox
from ctbench.hosts.ssh import SshHost
kind, config, *argv = sys.argv[1:]
made = {"LocalHost": LocalHost, "Sandbox": Sandbox, "SshHost": lambda: SshHost("dut", SshConfig(**json.loads(config)))}
made[kind]().run(argv)
"""


def near(kind: type) -> Iterator[Host]:
    """A host of this kind; skips where it cannot be had."""
    try:
        instance: Host = kind()
    except MissingResource as error:
        pytest.skip(str(error))
    yield instance
    instance.close()


@pytest.fixture(params=[LocalHost, Sandbox, "ssh_host", "sudoer"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    if isinstance(request.param, str):
        yield request.getfixturevalue(request.param)
    else:
        yield from near(request.param)


@pytest.fixture(params=[LocalHost, Sandbox])
def near_host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """One that is on this machine."""
    yield from near(request.param)


def own_sleep() -> str:
    """A command that rests for so long as no other test's: tests run next to one another, and see all processes."""
    return f"sleep {10**6 + secrets.randbelow(10**9)}"


def has_process(host: Host, marker: str) -> bool:
    return marker in host.run(["ps", "-eo", "args"]).stdout


def test_a_command_gets_its_input_and_environment_and_gives_its_output(host: Host) -> None:
    done = host.run(
        ["sh", "-c", 'read word; echo "$word $COLOUR"; echo oops >&2'], stdin="hello\n", env={"COLOUR": "blue"}
    )

    assert (done.exit_status, done.stdout, done.stderr) == (0, "hello blue\n", "oops\n")


def test_a_failing_command_is_an_error_that_says_what_it_said_or_may_be_looked_at(host: Host) -> None:
    with pytest.raises(TestbedError, match=rf"{host.name}: `ls /no-such-file` failed with status 2: .*No such file"):
        host.run(["ls", "/no-such-file"])
    with pytest.raises(TestbedError, match="no-such-command"):
        host.run(["no-such-command"])
    assert host.run(["sh", "-c", "exit 3"], check=False).exit_status == 3
    assert host.run(["sh", "-c", "kill -TERM $$"], check=False).exit_status == -15


def test_system_tools_are_found_whoever_runs_them(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    assert "/usr/sbin" in host.run(["printenv", "PATH"]).stdout


def test_a_command_that_takes_too_long_ends_with_its_children(host: Host) -> None:
    child, command = own_sleep(), own_sleep()

    with pytest.raises(TestbedError, match=r"did not end within 0\.5 s"):
        host.run(["sh", "-c", f"{child} & {command}"], timeout=0.5)

    assert not has_process(host, child)
    assert not has_process(host, command)


def test_a_command_ends_with_its_children_when_its_caller_is_interrupted(host: Host, tmp_path: Path) -> None:
    config = json.dumps(vars(host._config)) if isinstance(host, SshHost) else ""
    marker = tmp_path / "marker"
    child, rest = own_sleep(), own_sleep()
    command = ["sh", "-c", f"{child} & echo > {marker}; {rest}"]
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, type(host).__name__, config, *command],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(ctbench.__file__).parents[1])},
    )
    while not marker.exists():
        assert caller.poll() is None
    time.sleep(0.5)  # it may not have seen yet that what it started is there

    caller.send_signal(signal.SIGINT)

    assert caller.wait() != 0
    assert not has_process(LocalHost(), child)
    assert not has_process(LocalHost(), rest)


def test_a_command_that_leaves_a_daemon_behind_does_not_wait_for_it(host: Host) -> None:
    daemon = own_sleep()

    pid = int(host.run(["sh", "-c", f"{daemon} & echo $!"], timeout=20).stdout)

    assert has_process(host, daemon)
    host.run(["kill", str(pid)])


@settings(max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=ARGUMENTS)
@example(texts=["$(id)", "`id`", "'", '"', "\\", "!!", "-n", "a=b", "a\nb", "*", "~", ";id", "&", "\x81\x88"])
def test_arguments_and_environment_arrive_as_they_are(host: Host, texts: list[str]) -> None:
    value = "".join(texts)
    done = host.run(["sh", "-c", 'printf "<%s>" "$VALUE" "$@"', "sh", *texts], env={"VALUE": value})
    assert done.stdout == "".join(f"<{text}>" for text in (value, *texts))


def test_much_input_and_output_do_not_wait_for_each_other(host: Host) -> None:
    much = "0123456789abcde\n" * (1 << 18)  # 4 MiB, more than any buffer on the way

    done = host.run(["tee", "/dev/stderr"], stdin=much)

    assert done.stdout == much
    assert done.stderr == much
    assert host.run(["echo", "done"], stdin=much).stdout == "done\n"  # and one that does not want it does not mind


def test_a_started_command_is_known_by_the_hosts_own_process_id(host: Host) -> None:
    resting = own_sleep()
    process = host.start(resting.split())

    assert process.is_running()
    # In the middle of execve(2) a process has no command line yet.
    asked = (host.run(["cat", f"/proc/{process.pid}/cmdline"]).stdout for _ in range(100))
    assert resting.split()[1] in next(filter(None, asked), "")

    host.run(["kill", "-INT", str(process.pid)])  # which a shell's `&` would have it ignore
    while process.is_running():
        pass
    assert process.stop() == -2
    assert not process.is_running()
    assert not has_process(host, resting)


def test_a_command_that_ignores_the_request_to_end_is_killed(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = host.start(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"], log=log)
    while "ready" not in log.read_text():
        assert process.is_running()

    assert process.stop(timeout=0.2) == -9
    assert not process.is_running()


def test_what_a_started_command_prints_is_in_its_log(host: Host, tmp_path: Path) -> None:
    process = host.start(["sh", "-c", "echo $COLOUR; echo err >&2"], env={"COLOUR": "deep blue"}, log=tmp_path / "log")
    while process.is_running():
        pass

    assert (tmp_path / "log").read_text() == "deep blue\nerr\n"
    assert process.stop() == 0


def test_a_file_comes_from_there(host: Host, tmp_path: Path) -> None:
    content = bytes(range(256)) * (1 << 14)  # 4 MiB
    there = tmp_path / "there"
    there.write_bytes(content)

    host.get(str(there), tmp_path / "back")

    assert (tmp_path / "back").read_bytes() == content
    found = host.local_path(str(there))
    assert found is None if isinstance(host, SshHost) else found and found.read_bytes() == content


def test_a_file_that_is_not_there_is_one_sentence(host: Host, tmp_path: Path) -> None:
    for does in (lambda: host.get("/none", tmp_path / "back"), lambda: host.read("/none")):
        with pytest.raises(TestbedError, match=rf"^{host.name}: `\w+ /none` failed .*No such file or directory$"):
            does()
    (tmp_path / "there").touch()
    with pytest.raises(TestbedError, match=rf"^{host.name}: cannot copy .*/there to /none/back: No such file or dir"):
        host.get(str(tmp_path / "there"), Path("/none/back"))


def test_closing_ends_what_was_started_and_may_be_done_twice(host: Host) -> None:
    resting = own_sleep()
    process = host.start(resting.split())

    host.close()
    host.close()

    assert not process.is_running()
    assert not has_process(LocalHost(), resting)


def test_a_small_file_is_read_as_commands_there_see_it(host: Host) -> None:
    assert host.read("/sys/class/net/lo/operstate") == "unknown\n"


def test_a_socket_belongs_to_the_hosts_network(near_host: Host) -> None:
    try:
        opened = near_host.open_socket("packet")
        near_host.open_socket("xdp").close()
    except MissingResource as error:
        assert "needs CAP_NET_RAW" in str(error)
        pytest.skip(str(error))
    with opened:
        opened.bind(("lo", 0))
        assert (opened.family, opened.type, opened.proto) == (socket.AF_PACKET, socket.SOCK_RAW, 0)
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > 200_000


def test_a_socket_can_be_had_in_a_namespace_of_the_host(near_host: Host) -> None:
    if isinstance(near_host, LocalHost):
        pytest.skip("Nothing of this machine is changed.")
    near_host.run(["ip", "netns", "add", "within"])
    near_host.run(["ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", "within"])

    with near_host.open_socket("packet", "within") as opened:
        opened.bind(("there", 0))
        with pytest.raises(OSError, match="No such device"):
            opened.bind(("here", 0))
