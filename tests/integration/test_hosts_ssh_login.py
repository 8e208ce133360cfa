"""Who may log in over SSH with what, and whom we believe to be the host; a real sshd on loopback."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.sshd import Sshd, make_key

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh import SshHost

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

PASSWORD = "corr3ct h0rse'$"
VARIABLE = "CTBENCH_TEST_PASSWORD"

Connect = Callable[[SshConfig], SshHost]


@pytest.fixture
def connect() -> Iterator[Callable[..., SshHost]]:
    """Makes hosts, and lets go of them in the end."""
    made: list[SshHost] = []

    def make(config: SshConfig, jump: SshConfig | None = None) -> SshHost:
        made.append(SshHost("dut", config, jump))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Another host, which takes passwords too."""
    try:
        server = Sshd(tmp_path_factory.mktemp("other"), password=PASSWORD)
    except MissingResource as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture
def nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without keys, and no agent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path


def refused(kind: type[Exception], said: str, host: SshHost) -> str:
    with pytest.raises(kind, match=said) as caught:
        host.run(["true"])
    return str(caught.value)


#: Keys of the file that are wrong, and what is said; of another machine than ours, `where` has the port.
MISTAKES = [
    ({"known_hosts": "{tmp}/none"}, TestbedError, r"^dut: the key of 127\.0\.0\.1 \(ssh-ed25519 SHA256:.* is not in "),
    ({"known_hosts": "{tmp}/empty"}, TestbedError, "is not in "),
    ({"key": "{tmp}/stranger"}, TestbedError, "may not log in at .* with the key .*stranger"),
    ({"key": "{tmp}/none"}, ConfigError, "key: .*/none cannot be read: No such file"),
    ({"key": "{tmp}/empty"}, ConfigError, "key: .*/empty is not a private key"),
    ({"key": ""}, TestbedError, r"nothing to log in with .*neither `key` nor `password_env`"),
    ({"port": 0}, TestbedError, r"port \d+, cannot be reached \(Connection refused\)"),
    ({"address": "no-such-host.invalid"}, TestbedError, r"there is no host no-such-host\.invalid .*correct `address`"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "kind", "said"), MISTAKES, ids=str)
def test_a_mistake_in_the_file_is_said(
    keys: dict[str, Any], kind: type[Exception], said: str, sshd: Sshd, connect: Connect, nobodys_home: Path
) -> None:
    make_key(nobodys_home / "stranger")
    (nobodys_home / "empty").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    made = {key: value.format(tmp=nobodys_home) if isinstance(value, str) else free for key, value in keys.items()}

    refused(kind, said, connect(sshd.config(**made)))

    assert not (nobodys_home / "none").exists() and (nobodys_home / "empty").read_text() == ""


def test_any_host_is_believed_where_the_file_says_so(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    connect(sshd.config(known_hosts=str(tmp_path / "none"), check_host_key=False)).run(["true"])
    assert not (tmp_path / "none").exists()


def test_whoever_logs_in_has_the_number_that_we_have(sshd: Sshd, connect: Connect) -> None:
    # Otherwise two users who test on one machine at a time would be refused each other's folder in /tmp.
    host = connect(sshd.config())
    assert host.run(["id", "-un"]).stdout.strip() == sshd.user
    assert host.run(["id", "-u"]).stdout.strip() == str(os.getuid())


def test_lines_of_known_hosts_that_mean_nothing_to_us_are_passed_over(
    sshd: Sshd, connect: Connect, tmp_path: Path
) -> None:
    key = " ".join((sshd.folder / "host_key.pub").read_text().split()[:2])
    (tmp_path / "known").write_text(f"# ours\n\n@cert-authority * {key}\nsome.example ssh-dss AAAAB3\nnonsense\n")
    config = sshd.config(known_hosts=str(tmp_path / "known"))
    refused(TestbedError, "is not in", connect(config))

    with (tmp_path / "known").open("a") as known:
        known.write(f"other.example,[127.0.0.1]:{sshd.port} {key} comment\n")
    connect(config).run(["true"])


def test_a_revoked_key_is_nobodys(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    key = " ".join((sshd.folder / "host_key.pub").read_text().split()[:2])
    (tmp_path / "known").write_text(f"{sshd.known_hosts.read_text()}@revoked * {key}\n")

    refused(TestbedError, "is not in", connect(sshd.config(known_hosts=str(tmp_path / "known"))))


def test_names_in_known_hosts_may_be_hashed(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "known").write_text(sshd.known_hosts.read_text())
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(tmp_path / "known")], check=True, capture_output=True)
    assert "127.0.0.1" not in (tmp_path / "known").read_text()

    connect(sshd.config(known_hosts=str(tmp_path / "known"))).run(["true"])


def test_a_host_whose_key_changed_is_refused(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    another = make_key(tmp_path / "another")
    sshd.know(tmp_path / "known", another.with_suffix(".pub").read_text())

    with pytest.raises(TestbedError, match=r"knows another .*ssh-keygen -R '\[127\.0\.0\.1\]:\d+'.*is between"):
        connect(sshd.config(known_hosts=str(tmp_path / "known"))).run(["true"])


@pytest.mark.parametrize("means", ["key", "password"])
def test_who_was_refused_is_not_given_the_password(
    other: Sshd, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, means: str
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    attempts = other.log.count("Accepted")
    config = other.config(known_hosts=str(tmp_path / "none"), **({} if means == "key" else with_password()))

    refused(TestbedError, "is not in", connect(config))

    assert other.log.count("Accepted") == attempts


def test_a_key_with_a_passphrase_needs_it(
    sshd: Sshd, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_bytes(sshd.key.read_bytes())
    key.chmod(0o600)
    change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", PASSWORD, "-f", str(key)]
    subprocess.run(change, check=True, capture_output=True)

    refused(ConfigError, "has a passphrase: name its variable", connect(sshd.config(key=str(key))))
    monkeypatch.setenv(VARIABLE, "wrong")
    with pytest.raises(ConfigError, match=f"the passphrase in .*{VARIABLE} does not open"):
        connect(sshd.config(key=str(key), password_env=VARIABLE)).run(["true"])
    monkeypatch.setenv(VARIABLE, PASSWORD)
    connect(sshd.config(key=str(key), password_env=VARIABLE)).run(["true"])
    connect(sshd.config(password_env=VARIABLE)).run(["true"])  # a key without one minds no passphrase


def test_a_key_of_the_users_folder_logs_in(sshd: Sshd, connect: Connect, nobodys_home: Path) -> None:
    (nobodys_home / ".ssh").mkdir(mode=0o700)
    (nobodys_home / ".ssh" / "id_ed25519").write_bytes(sshd.key.read_bytes())

    connect(sshd.config(key="")).run(["true"])


def test_a_key_of_the_agent_logs_in(
    sshd: Sshd, connect: Connect, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = nobodys_home / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            assert agent.poll() is None
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        subprocess.run(["ssh-add", "-q", str(sshd.key)], check=True)

        connect(sshd.config(key="")).run(["true"])
    finally:
        agent.kill()
        agent.wait()


def with_password() -> dict[str, str]:
    return {"key": "", "password_env": VARIABLE}


def test_a_password_of_the_environment_logs_in_and_a_wrong_one_does_not(
    other: Sshd, connect: Connect, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    connect(other.config(**with_password())).run(["true"])
    assert "Accepted password" in other.log

    monkeypatch.setenv(VARIABLE, "wr0ng h0rse")
    said = refused(TestbedError, f"may not log in .* {VARIABLE}", connect(other.config(**with_password())))
    assert "wr0ng" not in said


def test_the_password_is_seen_nowhere(
    other: Sshd, connect: Connect, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    caplog.set_level(0)
    caplog.set_level(0, "ctbench.hosts.ssh")
    host = connect(other.config(**with_password()))

    shown = host.run(["ps", "-eww", "-o", "args"]).stdout
    with pytest.raises(TestbedError) as caught:
        host.run(["false"])

    assert "ps -eww -o args" in shown  # it is the list of processes
    assert caplog.text  # something was logged
    for text in (shown, caplog.text, str(caught.value), repr(vars(host)), repr(vars(host._connection)), other.log):
        assert PASSWORD not in text


def test_a_host_behind_another_is_reached_through_it(sshd: Sshd, other: Sshd, connect: Callable[..., SshHost]) -> None:
    host = connect(sshd.config(), other.config())

    assert host.run(["echo", "hello"]).stdout == "hello\n"
    assert other.sessions()

    host.close()
    assert wait_until(lambda: not other.sessions())


def wait_until(holds: Callable[[], bool]) -> bool:
    """Returns when it holds; pytest's own patience is the limit."""
    while not holds():
        pass
    return True


def test_a_jump_host_that_does_not_reach_the_host_says_so(other: Sshd, connect: Callable[..., SshHost]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    host = connect(other.config(port=free), other.config())

    with pytest.raises(TestbedError, match=rf"^dut: jump host 127\.0\.0\.1 does not reach 127\.0\.0\.1, port {free}"):
        host.run(["true"])


def test_the_key_of_a_jump_host_is_checked_too(
    sshd: Sshd, other: Sshd, connect: Callable[..., SshHost], tmp_path: Path
) -> None:
    host = connect(sshd.config(), other.config(known_hosts=str(tmp_path / "none")))

    with pytest.raises(TestbedError, match=r"^jump host 127\.0\.0\.1: the key of .* is not in"):
        host.run(["true"])


@pytest.mark.parametrize("greeting", [b"", b"220 mail.example ESMTP\r\n" * 200])
def test_what_is_no_ssh_server_is_given_up(sshd: Sshd, connect: Connect, greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = connect(sshd.config(port=silent.getsockname()[1], connect_timeout_s=0.5))
        if greeting:
            threading.Thread(target=lambda: silent.accept()[0].sendall(greeting), daemon=True).start()

        with pytest.raises(TestbedError, match="does not answer as an SSH server"):
            host.run(["true"])
