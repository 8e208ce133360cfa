"""Who may log in over SSH and become root there, and whom we believe to be the host; a real sshd on loopback."""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.sshd import PASSWORD, PASSWORD_VARIABLE, TESTER, WITH_PASSWORD, Sshd, make_key, serving

from ctbench.base.errors import ConfigError, TestbedError
from ctbench.dut.base import wait_until
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh import SshHost

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

Connect = Callable[..., SshHost]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes hosts, and lets go of them in the end."""
    made: list[SshHost] = []

    def make(config: SshConfig) -> SshHost:
        made.append(SshHost("dut", config))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Another host, which takes passwords too."""
    yield from serving(tmp_path_factory.mktemp("other"), password=PASSWORD)


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


#: As ssh-keygen(1) writes a key whose other half is in a FIDO token (`-t ed25519-sk`); all zeros.
OF_A_TOKEN = """-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAASgAAABpzay1zc2
gtZWQyNTUxOUBvcGVuc3NoLmNvbQAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAARzc2g6AAAAYAAAAAAAAAAAAAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY2
9tAAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABHNzaDoBAAAAAAAA
AAAAAAAAAQ==
-----END OPENSSH PRIVATE KEY-----
"""
#: Keys of the file that are wrong, and what is said; of another machine than ours, `where` has the port.
MISTAKES = [
    ({"known_hosts": "{tmp}/none"}, TestbedError, r"^dut: the key of 127\.0\.0\.1 \(ssh-ed25519 SHA256:.* is not in "),
    ({"known_hosts": "{tmp}/empty"}, TestbedError, "is not in "),
    ({"key": "{tmp}/stranger"}, TestbedError, "may not log in at .* with the key .*stranger"),
    ({"key": "{tmp}/none"}, ConfigError, "key: .*/none cannot be read: No such file"),
    ({"key": "{tmp}/empty"}, ConfigError, "key: .*/empty does not open as a private key"),
    ({"key": "{tmp}/token"}, ConfigError, "key: .*/token does not open as a private key.*\n.*FIDO"),
    ({"key": ""}, TestbedError, r"nothing to log in with .*neither `key` nor `password_env`"),
    ({"port": 0}, TestbedError, r"port \d+, cannot be reached \(Connection refused\)"),
    ({"address": "no-such-host.invalid"}, TestbedError, r"there is no host no-such-host\.invalid .*correct `address`"),
]


@pytest.mark.parametrize(("keys", "kind", "said"), MISTAKES, ids=str)
def test_a_mistake_in_the_file_is_said(
    keys: dict[str, Any], kind: type[Exception], said: str, sshd: Sshd, connect: Connect, nobodys_home: Path
) -> None:
    make_key(nobodys_home / "stranger")
    (nobodys_home / "empty").touch()
    (nobodys_home / "token").write_text(OF_A_TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    made = {key: value.format(tmp=nobodys_home) if isinstance(value, str) else free for key, value in keys.items()}

    refused(kind, said, connect(sshd.config(**made)))

    assert not (nobodys_home / "none").exists() and (nobodys_home / "empty").read_text() == ""


def test_any_host_is_believed_where_the_file_says_so(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    connect(sshd.config(known_hosts=str(tmp_path / "none"), check_host_key=False)).run(["true"])
    assert not (tmp_path / "none").exists()


#: What known_hosts says, and what is said of a host whose name and key it has or lacks (None: it is believed).
KNOWN_HOSTS = {
    "other kinds of lines": ("# ours\n\n@cert-authority * {key}\nsome.example ssh-dss AAAAB3\nnonsense\n", "is not in"),
    "several names": ("nonsense\nother.example,{name} {key} comment\n", None),
    "revoked": ("{name} {key}\n@revoked * {key}\n", "is not in"),
    "another key": ("{name} {other}\n", r"knows another .*ssh-keygen -R '\[127\.0\.0\.1\]:\d+'.*another machine"),
}


@pytest.mark.parametrize(("text", "said"), KNOWN_HOSTS.values(), ids=KNOWN_HOSTS)
def test_a_host_is_believed_as_known_hosts_has_it(
    text: str, said: str | None, sshd: Sshd, connect: Connect, tmp_path: Path
) -> None:
    make_key(tmp_path / "other")
    keys = [" ".join(file.read_text().split()[:2]) for file in (sshd.folder / "host_key.pub", tmp_path / "other.pub")]
    (tmp_path / "known").write_text(text.format(name=f"[127.0.0.1]:{sshd.port}", key=keys[0], other=keys[1]))
    host = connect(sshd.config(known_hosts=str(tmp_path / "known")))
    if said:
        refused(TestbedError, said, host)
    else:
        host.run(["true"])


def write_config(home: Path, text: str, sshd: Sshd) -> None:
    """~/.ssh/config, which includes what is said of the host `lab`."""
    (home / ".ssh").mkdir()
    key = " ".join((sshd.folder / "host_key.pub").read_text().split()[:2])
    (home / ".ssh" / "known").write_text(f"the-lab {key}\n[127.0.0.1]:{sshd.port} {key}\n")
    said = f"HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n  IdentityFile {sshd.key}\n"
    said += f"  IdentitiesOnly yes\n  UserKnownHostsFile {home}/.ssh/known\n"
    (home / ".ssh" / "labs").write_text(f"Host lab lab-*\n  {said}")
    (home / ".ssh" / "config").write_text(f"Include {home}/.ssh/labs\n{text}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Host lab\n  HostKeyAlias the-lab\n",
        "Host lab\n  ProxyCommand bash -c 'exec 3<>/dev/tcp/%h/%p; cat <&3 & exec cat >&3'\n",
        "Host lab\n  ProxyJump lab-jump\n",
        "Host lab\n  ProxyJump lab-1,lab-2\nHost lab-1\n  ProxyJump lab-0\n",
    ],
    ids=["included", "HostKeyAlias", "ProxyCommand", "ProxyJump", "several jumps"],
)
def test_a_host_is_what_the_users_ssh_config_says(text: str, sshd: Sshd, connect: Connect, nobodys_home: Path) -> None:
    write_config(nobodys_home, text, sshd)
    assert connect(SshConfig(address="lab")).run(["echo", "reached"]).stdout == "reached\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ProxyCommand sh -c 'echo no way >&2; sleep 1'", "no way"),
        ("ProxyJump 127.0.0.1:1", r"`ssh .*-W '?\[127.*Connection refused"),
    ],
    ids=["ProxyCommand", "ProxyJump"],
)
def test_a_way_of_the_users_ssh_config_that_leads_nowhere_says_why(
    text: str, said: str, sshd: Sshd, connect: Connect, nobodys_home: Path
) -> None:
    write_config(nobodys_home, f"Host lab\n  {text}\n", sshd)
    refused(TestbedError, said, connect(SshConfig(address="lab", connect_timeout_s=2)))


def test_what_the_testbed_file_says_goes_before_the_users_ssh_config(
    sshd: Sshd, connect: Connect, nobodys_home: Path
) -> None:
    write_config(nobodys_home, "", sshd)
    refused(TestbedError, r"127\.0\.0\.1, port 1, cannot be reached", connect(SshConfig(address="lab", port=1)))
    own = {"user": sshd.user, "key": str(sshd.key)}
    refused(TestbedError, "not in .*empty", connect(SshConfig(address="lab", known_hosts="/nowhere/empty", **own)))


def test_a_mistake_in_the_users_ssh_config_is_that_of_a_file(sshd: Sshd, connect: Connect, nobodys_home: Path) -> None:
    write_config(nobodys_home, "Host lab\n  Prot 22\n", sshd)
    refused(ConfigError, r"`ssh lab` would not work: .*config.* bad configuration", connect(SshConfig(address="lab")))


#: What sshd is configured to, and what is said of its refusal.
REFUSALS = {
    "too many keys": ("MaxAuthTries 1", "ended the connection .* name one with `key`"),
    "algorithms": ("KexAlgorithms sntrup761x25519-sha512@openssh.com", "no algorithm in common .*sshd_config"),
}


@pytest.mark.parametrize(("line", "said"), REFUSALS.values(), ids=REFUSALS)
def test_why_sshd_refuses_is_its_own_reason(
    line: str, said: str, sshd: Sshd, connect: Connect, nobodys_home: Path
) -> None:
    strangers = [f"IdentityFile {make_key(nobodys_home / f'stranger{number}')}" for number in range(3)]
    write_config(nobodys_home, "", sshd)
    (nobodys_home / ".ssh" / "config").write_text(
        "\n".join(["Host lab", *strangers, f"Include {nobodys_home}/.ssh/labs"])
    )
    config = sshd.folder / "sshd_config"
    before = config.read_text()
    config.write_text(f"{line}\n{before}")
    try:
        refused(TestbedError, said, connect(SshConfig(address="lab")))
    finally:
        config.write_text(before)


@pytest.mark.parametrize("means", ["key", "password"])
def test_who_was_refused_is_not_given_the_password(
    other: Sshd, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, means: str
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    attempts = other.log.count("Accepted")
    config = other.config(known_hosts=str(tmp_path / "none"), **({} if means == "key" else WITH_PASSWORD))

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

    refused(ConfigError, "does not open", connect(sshd.config(key=str(key))))
    monkeypatch.setenv(PASSWORD_VARIABLE, "wrong")
    said = refused(ConfigError, "does not open", connect(sshd.config(key=str(key), password_env=PASSWORD_VARIABLE)))
    assert "wrong" not in said
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    connect(sshd.config(key=str(key), password_env=PASSWORD_VARIABLE)).run(["true"])
    connect(sshd.config(password_env=PASSWORD_VARIABLE)).run(["true"])  # a key without one minds no passphrase


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


def test_a_password_of_the_environment_logs_in_and_a_wrong_one_does_not(
    other: Sshd, connect: Connect, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    connect(other.config(**WITH_PASSWORD)).run(["true"])
    assert "Accepted password" in other.log

    monkeypatch.setenv(PASSWORD_VARIABLE, "wr0ng h0rse")
    said = refused(TestbedError, "may not log in .* password_env", connect(other.config(**WITH_PASSWORD)))
    assert "wr0ng" not in said


def test_the_password_is_seen_nowhere(
    other: Sshd, connect: Connect, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    caplog.set_level(0)
    caplog.set_level(0, "ctbench.hosts.ssh")
    host = connect(other.config(**WITH_PASSWORD))

    shown = host.run(["ps", "-eww", "-o", "args"]).stdout
    with pytest.raises(TestbedError) as caught:
        host.run(["false"])

    assert "ps -eww -o args" in shown  # it is the list of processes
    assert caplog.text  # something was logged
    for text in (shown, caplog.text, str(caught.value), repr(vars(host)), other.log):
        assert PASSWORD not in text


@pytest.mark.parametrize("greeting", [b"", b"220 mail.example ESMTP\r\n" * 200])
def test_what_is_no_ssh_server_is_given_up(sshd: Sshd, connect: Connect, greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = connect(sshd.config(port=silent.getsockname()[1], connect_timeout_s=0.5))
        if greeting:
            threading.Thread(target=lambda: silent.accept()[0].sendall(greeting), daemon=True).start()

        refused(TestbedError, "does not answer as an SSH server", host)


@pytest.mark.parametrize("prints", ["echo welcome; echo warning >&2", "printf %s welcome"])
def test_what_a_login_prints_disturbs_nothing(ssh_host: SshHost, prints: str, tmp_path: Path) -> None:
    # sshd(8): run at every command, before it.
    ssh_host.run(["sh", "-c", "mkdir -p ~/.ssh; cat > ~/.ssh/rc"], stdin=prints)
    try:
        done = ssh_host.run(["echo", "hello"])
        assert (done.stdout, done.stderr) == ("hello\n", "")
        started = ssh_host.start(["sh", "-c", "echo $$"], log=tmp_path / "log")
        assert wait_until(lambda: not started.is_running(), 10)
        assert (tmp_path / "log").read_text() == f"{started.pid}\n"
    finally:
        ssh_host.run(["sh", "-c", "rm -r ~/.ssh"])


def test_commands_run_as_root_with_sudo(sudoer: SshHost) -> None:
    assert sudoer.run(["sh", "-c", "id -u; cat"], stdin="input\n").stdout == "0\ninput\n"


@pytest.mark.usefixtures("sudoer")
def test_who_may_not_become_root_without_a_password_is_told_so(connect: Connect, tmp_path: Path) -> None:
    with Sshd(tmp_path, password=PASSWORD, sudoers=f"{TESTER} ALL=(ALL) ALL\n") as server:
        said = r"^dut: .*could not become root with sudo \(.*password is required\).*NOPASSWD"
        refused(TestbedError, said, connect(server.config(user=TESTER, sudo=True)))
