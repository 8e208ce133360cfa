"""Files and much output over SSH, as root by way of sudo too; a real sshd on loopback."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.sshd import TESTER, Sshd

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.ssh import SshHost

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

PASSWORD = "corr3ct h0rse'$"
VARIABLE = "CTBENCH_TEST_PASSWORD"


@pytest.fixture
def host(sshd: Sshd) -> Iterator[SshHost]:
    instance = SshHost("dut", sshd.config())
    yield instance
    instance.close()


def server_with_sudo(folder: Path, rule: str) -> Iterator[Sshd]:
    if os.geteuid() != 0:
        pytest.skip("sudo needs a machine of which one is root.")
    if shutil.which("sudo") is None:
        pytest.skip("sudo is not installed.")
    try:
        server = Sshd(folder, password=PASSWORD, sudoers=f"root ALL=(ALL) ALL\n{rule}\n")
    except MissingResource as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture(scope="module", params=["", "NOPASSWD:"], ids=["with password", "without"])
def sudo_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    yield from server_with_sudo(tmp_path_factory.mktemp("sudo"), f"{TESTER} ALL=(ALL) {request.param} ALL")


@pytest.fixture
def sudoer(sudo_server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshHost]:
    """An ordinary user who may become root."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    instance = SshHost("dut", sudo_server.config(user=TESTER, key="", password_env=VARIABLE, sudo=True))
    yield instance
    instance.close()


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755])
def test_a_file_keeps_its_mode_and_every_byte(host: SshHost, tmp_path: Path, mode: int) -> None:
    content = bytes(range(256)) * (1 << 14)  # 4 MiB
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "file").chmod(mode)

    host.put(tmp_path / "file", str(tmp_path / "there"))
    host.get(str(tmp_path / "there"), tmp_path / "back")

    assert (tmp_path / "back").read_bytes() == content
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("there", "back")] == [mode, mode]


def test_files_that_are_not_there_are_one_sentence(host: SshHost, tmp_path: Path) -> None:
    # In a folder of ours: elsewhere whoever may not look is told that instead.
    (tmp_path / "file").touch()
    none, there = tmp_path / "none", tmp_path / "no" / "such"

    with pytest.raises(TestbedError, match=rf"^dut: cannot copy {none} to .*/back: No such file or directory\.$"):
        host.get(str(none), tmp_path / "back")
    with pytest.raises(TestbedError, match=rf"^dut: cannot copy {none} to .*/there: No such file or directory\.$"):
        host.put(none, str(tmp_path / "there"))
    with pytest.raises(TestbedError, match=rf"^dut: cannot copy .*/file to {there}: No such .*directory\.$"):
        host.put(tmp_path / "file", str(there))
    with pytest.raises(TestbedError, match=rf"^dut: cannot read {none}: No such file or directory\.$"):
        host.read(str(none))


def test_a_file_without_a_size_comes_whole(host: SshHost, tmp_path: Path) -> None:
    host.get("/proc/cpuinfo", tmp_path / "back")

    assert "processor" in (tmp_path / "back").read_text()


def test_what_a_login_prints_disturbs_nothing(host: SshHost) -> None:
    # sshd(8): run at every command, before it.
    host.run(["sh", "-c", "mkdir -p ~/.ssh; echo 'echo welcome; echo warning >&2' > ~/.ssh/rc"])
    try:
        done = host.run(["echo", "hello"])
        assert (done.stdout, done.stderr) == ("hello\n", "")
    finally:
        host.run(["sh", "-c", "rm -r ~/.ssh"])


def test_commands_run_as_root_with_sudo(sudoer: SshHost) -> None:
    done = sudoer.run(["sh", "-c", "id -u; cat; echo $COLOUR"], stdin="input\n", env={"COLOUR": "blue"})

    assert done.stdout == "0\ninput\nblue\n"  # and no password


def test_a_command_with_sudo_ends_with_its_children_when_its_time_is_up(sudoer: SshHost) -> None:
    with pytest.raises(TestbedError, match=r"did not end within 0\.5 s"):
        sudoer.run(["sh", "-c", "sleep 47301 & sleep 47302"], timeout=0.5)

    assert "sleep 4730" not in sudoer.run(["ps", "-eo", "args"]).stdout


def test_a_command_is_started_and_stopped_with_sudo(sudoer: SshHost, tmp_path: Path) -> None:
    process = sudoer.start(["sh", "-c", "id -u; exec sleep 47303"], log=tmp_path / "log")
    while "0\n" not in (tmp_path / "log").read_text():
        assert process.is_running()

    assert sudoer.read(f"/proc/{process.pid}/comm") == "sleep\n"
    assert process.stop() == -15


def test_files_that_only_root_may_touch_come_and_go_with_sudo(sudoer: SshHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("secret")
    (tmp_path / "file").chmod(0o640)

    sudoer.put(tmp_path / "file", "/run/secret")
    sudoer.get("/run/secret", tmp_path / "back")

    assert sudoer.run(["stat", "-c", "%u %a", "/run/secret"]).stdout == "0 640\n"
    assert (tmp_path / "back").read_text() == "secret"
    assert (tmp_path / "back").stat().st_mode & 0o777 == 0o640
    with pytest.raises(TestbedError, match=r"^dut: cannot copy /run/none to .*: No such file or directory\.$"):
        sudoer.get("/run/none", tmp_path / "back")


def test_the_password_for_sudo_is_in_no_list_of_processes(sudoer: SshHost) -> None:
    assert PASSWORD not in sudoer.run(["ps", "-eww", "-o", "args"]).stdout


def test_who_may_not_use_sudo_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    for server in server_with_sudo(tmp_path, "# nobody else"):
        config = server.config(user=TESTER, key="", password_env=VARIABLE, sudo=True)

        with pytest.raises(TestbedError, match=rf"^dut: {TESTER} could not become root with sudo \(") as caught:
            SshHost("dut", config).run(["true"])
        with pytest.raises(TestbedError, match=r"could not become root with sudo \(.*password is required\)"):
            SshHost("dut", server.config(user=TESTER, sudo=True)).run(["true"])

        assert PASSWORD not in str(caught.value)
