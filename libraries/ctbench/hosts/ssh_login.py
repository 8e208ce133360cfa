"""Logging in over SSH: SSHLibrary's client, made to refuse host keys that nobody vouched for."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from SSHLibrary import SSHClient

from ctbench.base.errors import ConfigError, TestbedError
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_password import Password

#: Seconds that the server gets to check who logs in; PAM makes wrong passwords wait.
LOGIN_TIMEOUT_S = 30.0
#: Logger of our connections. What paramiko writes there (tracebacks of its threads among it) we say in one sentence
#: each; unheard, it would come out on stderr and in Robot's log.
QUIET = "ctbench.hosts.ssh"
logging.getLogger(QUIET).addHandler(logging.NullHandler())
logging.getLogger(QUIET).propagate = False


class _RefuseUnknown(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def __init__(self, host: str, config: SshConfig) -> None:
        self._host = host
        self._config = config

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        config = self._config
        raise TestbedError(
            f"{self._host}: the key of {config.address} ({key.get_name()} {key.fingerprint}) is not in "
            f"{config.known_hosts}: compare it with that host's own (`ssh-keygen -lf FILE.pub` there), and "
            f"add it with `ssh -p {config.port} -o UserKnownHostsFile={config.known_hosts} "
            f"{config.user}@{config.address}`; or set check_host_key to false in a lab that trusts its network."
        )


class _AcceptAny(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """The testbed file says that any will do."""


class CheckedClient:
    """SSHLibrary's client, less its trust: that one takes any host key, and goes on after one was refused.

    The library makes and closes the connection's paramiko client, its public attribute; the login is paramiko's own.
    """

    def __init__(self, host: str, config: SshConfig) -> None:
        self._host = host
        self._ssh = config
        self._of_library = SSHClient(config.address, port=config.port, timeout=config.connect_timeout_s)
        self._client: paramiko.SSHClient = self._of_library.client
        self._client.set_log_channel(QUIET)
        self._client.set_missing_host_key_policy(
            _RefuseUnknown(host, config) if config.check_host_key else _AcceptAny()
        )
        known = self._client.get_host_keys()
        for name, key in _known_keys(host, config) if config.check_host_key else ():
            if key.get_name() not in (known.lookup(name) or ()):
                known.add(name, key.get_name(), key)

    @property
    def transport(self) -> paramiko.Transport:
        """What carries the sessions, once logged in."""
        return self._client.get_transport()

    def close(self) -> None:
        """Let go of the connection. May be called twice."""
        self._of_library.close()

    def log_in(self, password: Password | None, sock: "socket.socket | paramiko.Channel") -> None:
        """Log in over `sock`, with the key, else with the password, else with the agent and ~/.ssh.

        Raises `TestbedError` for a host key that is not as known, and when the user may not log in."""
        config = self._ssh
        key = _load_key(self._host, config, password) if config.key else None
        alone = key is None and password is None
        with self._refusals():
            self._client.connect(
                config.address,
                config.port,
                config.user,
                pkey=key,
                password=password.reveal() if password and not key else None,
                allow_agent=alone,
                look_for_keys=alone,
                timeout=config.connect_timeout_s,
                auth_timeout=LOGIN_TIMEOUT_S,
                sock=sock,
            )
        self.transport.set_keepalive(config.keepalive_s)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        host, config = self._host, self._ssh
        try:
            yield
        except paramiko.BadHostKeyException as error:
            raise TestbedError(
                f"{host}: the key of {config.address} is {error.key.get_name()} {error.key.fingerprint}, and "
                f"{config.known_hosts} knows another ({error.expected_key.get_name()} "
                f"{error.expected_key.fingerprint}): if it was reinstalled, forget the old one with `ssh-keygen -R "
                f"'{known_name(config)}' -f {config.known_hosts}`; was it not, somebody is between you and it."
            ) from None
        except paramiko.AuthenticationException as error:
            raise TestbedError(
                f"{host}: {config.user} may not log in at {config.address} with {_means(config)} ({_reason(error)}): "
                f"try `ssh -p {config.port} {config.user}@{config.address}`. Correct `user`, `key` or `password_env`."
            ) from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            if "No authentication methods" in str(error):
                raise TestbedError(
                    f"{host}: there is nothing to log in with at {config.address}: neither `key` nor `password_env` is "
                    "given, no SSH agent has a key, and ~/.ssh has none without a passphrase."
                ) from None
            raise TestbedError(
                f"{host}: {config.address} does not answer as an SSH server on port {config.port} ({_reason(error)}): "
                "is sshd what listens there?"
            ) from None


def known_name(config: SshConfig) -> str:
    """What known_hosts calls the host, sshd(8)."""
    return config.address if config.port == 22 else f"[{config.address}]:{config.port}"


def reach(host: str, config: SshConfig) -> socket.socket:
    """A TCP connection, which ends by itself when the other end is silent for longer than keepalive and timeout."""
    where = f"{config.address}, port {config.port},"
    try:
        opened = socket.create_connection((config.address, config.port), config.connect_timeout_s)
    except socket.gaierror as error:
        raise TestbedError(
            f"{host}: there is no host {config.address} ({error.strerror}): correct `address`."
        ) from None
    except TimeoutError:
        raise TestbedError(
            f"{host}: {where} did not answer within {config.connect_timeout_s:g} s: is it up, and is `address` right?"
        ) from None
    except OSError as error:
        raise TestbedError(
            f"{host}: {where} cannot be reached ({error.strerror}): does sshd run there, on this port?"
        ) from None
    silence_s = config.keepalive_s + config.connect_timeout_s
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(silence_s * 1000))
    return opened


def reach_through(jump: paramiko.Transport, jump_name: str, host: str, config: SshConfig) -> paramiko.Channel:
    """A connection that the host `jump_name` makes for us; ssh(1), ProxyJump."""
    try:
        return jump.open_channel(
            "direct-tcpip", (config.address, config.port), ("127.0.0.1", 0), timeout=config.connect_timeout_s
        )
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise TestbedError(
            f"{host}: {jump_name} does not reach {config.address}, port {config.port} ({_reason(error)}): is it up, "
            "and does sshd of the jump host allow forwarding (AllowTcpForwarding)?"
        ) from None


def _known_keys(host: str, config: SshConfig) -> list[tuple[str, paramiko.PKey]]:
    """Names of hosts and their keys; sshd(8), SSH_KNOWN_HOSTS FILE FORMAT. Revoked keys are nobody's, and lines that
    paramiko would stumble over (certificates, kinds of keys that it does not know) say nothing."""
    file = Path(config.known_hosts).expanduser()
    try:
        lines = file.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []  # nobody is known yet
    except OSError as error:
        raise ConfigError(f"{host}: known_hosts: {file} cannot be read: {error.strerror}.") from error
    known: list[tuple[str, paramiko.PKey]] = []
    revoked: list[paramiko.PKey] = []
    for line in lines:
        with suppress(paramiko.SSHException, InvalidHostKey):
            entry = HostKeyEntry.from_line(line.removeprefix("@revoked").strip())
            if entry and line.startswith("@revoked"):
                revoked.append(entry.key)
            elif entry:
                known += [(name, entry.key) for name in entry.hostnames]
    return [(name, key) for name, key in known if key not in revoked]


def _load_key(host: str, config: SshConfig, passphrase: Password | None) -> paramiko.PKey:
    file = Path(config.key).expanduser()
    try:
        return paramiko.PKey.from_path(file, passphrase.reveal().encode() if passphrase else None)
    except OSError as error:
        raise ConfigError(f"{host}: key: {file} cannot be read: {error.strerror}.") from None
    except TypeError:  # cryptography's way to say that a passphrase is missing, or was given for nothing
        if passphrase is None:
            raise ConfigError(f"{host}: key: {file} has a passphrase: name its variable in password_env.") from None
        return paramiko.PKey.from_path(file)
    except (ValueError, paramiko.SSHException, paramiko.UnknownKeyType):
        if passphrase is None:
            raise ConfigError(f"{host}: key: {file} is not a private key of ssh-keygen(1).") from None
        raise ConfigError(f"{host}: key: the passphrase in {config.password_place} does not open {file}.") from None


def _means(config: SshConfig) -> str:
    if config.key:
        return f"the key {config.key}"
    return f"the password in {config.password_place}" if config.password_env else "the keys of the SSH agent and ~/.ssh"


def _reason(error: BaseException) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
