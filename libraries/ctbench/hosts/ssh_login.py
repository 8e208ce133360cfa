"""Logging in over SSH: host keys checked, passwords kept to ourselves, a connection that never waits for ever."""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from pydantic import SecretStr
from SSHLibrary import SSHClient

from ctbench.base.errors import ConfigError, TestbedError
from ctbench.hosts.config import SshConfig


def password_of(name: str, config: SshConfig) -> SecretStr | None:
    """The password of host `name`, from its environment variable; None where the file names none."""
    if config.password_env is None:
        return None
    text = os.environ.get(config.password_env)
    if not text:
        raise ConfigError(
            f"{name}: {config.password_place} is not set: put the password of {config.user} on "
            f"{config.address} into it before the run; the password itself never stands in a file."
        )
    if "\n" in text:
        raise ConfigError(f"{name}: the password in {config.password_place} has more than one line.")
    return SecretStr(text)


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


def log_in(
    host: str, config: SshConfig, password: SecretStr | None, sock: "socket.socket | paramiko.Channel"
) -> SSHClient:
    """A client that is logged in over `sock`, with the key, else with the password, else with the agent and ~/.ssh.

    It is SSHLibrary's, less its trust: that one takes any host key, and goes on after one was refused. Raises
    `TestbedError` for a host key that is not as known, and when the user may not log in."""
    made = SSHClient(config.address, port=config.port, timeout=config.connect_timeout_s)
    client: paramiko.SSHClient = made.client
    client.set_log_channel(QUIET)
    client.set_missing_host_key_policy(
        _RefuseUnknown(host, config) if config.check_host_key else paramiko.AutoAddPolicy()
    )
    known = client.get_host_keys()
    for name, each in _known_keys(host, config) if config.check_host_key else ():
        if each.get_name() not in (known.lookup(name) or ()):
            known.add(name, each.get_name(), each)
    key = _load_key(host, config, password) if config.key else None
    alone = key is None and password is None
    try:
        with _refusals(host, config):
            client.connect(
                config.address,
                config.port,
                config.user,
                pkey=key,
                password=password.get_secret_value() if password and not key else None,
                allow_agent=alone,
                look_for_keys=alone,
                timeout=config.connect_timeout_s,
                auth_timeout=LOGIN_TIMEOUT_S,
                sock=sock,
            )
    except BaseException:
        made.close()
        raise
    client.get_transport().set_keepalive(config.keepalive_s)
    return made


@contextmanager
def _refusals(host: str, config: SshConfig) -> Iterator[None]:
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
    """Names of hosts and their keys; sshd(8), SSH_KNOWN_HOSTS FILE FORMAT. Revoked keys are left out, and lines that
    paramiko would stumble over (certificates, kinds of keys that it does not know) say nothing."""
    file = Path(config.known_hosts).expanduser()
    try:
        lines = file.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []  # no host is known yet
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


def _load_key(host: str, config: SshConfig, passphrase: SecretStr | None) -> paramiko.PKey:
    file = Path(config.key).expanduser()
    try:
        return paramiko.PKey.from_path(file, passphrase.get_secret_value().encode() if passphrase else None)
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


#: Bytes a second that any useful connection carries.
LEAST_RATE = 64 * 1024


class ConnectionLost(TestbedError):
    """The connection broke; whether what was asked was done is not known."""


class SshConnection:
    """What carries a host's commands and files."""

    def __init__(self, name: str, config: SshConfig, jump: SshConfig | None) -> None:
        """Nothing is connected before the first use. Raises `ConfigError` when a password is not there."""
        self.name = name
        self.config = config
        self.password: SecretStr | None = password_of(name, config)
        self._jump = jump
        self._jump_name = f"jump host {jump.address}" if jump else ""
        self._jump_password = password_of(self._jump_name, jump) if jump else None
        #: The way to the host: itself, and before it the jump host.
        self._clients: list[SSHClient] = []
        self._silent = False

    @property
    def is_up(self) -> bool:
        """Whether it is connected, as far as one can know without asking."""
        transports = self._transports()
        return bool(transports) and all(transport.is_active() for transport in transports)

    def open(self) -> None:
        """Log in, unless that was done. `TestbedError` says why that is not possible."""
        if self.is_up:
            return
        self.close()
        self._silent = False
        try:
            sock = reach(self._jump_name if self._jump else self.name, self._jump or self.config)
            if self._jump:
                self._clients = [log_in(self._jump_name, self._jump, self._jump_password, sock)]
                sock = reach_through(self._transports()[0], self._jump_name, self.name, self.config)
            self._clients.insert(0, log_in(self.name, self.config, self.password, sock))
        except BaseException:
            self.close()
            raise

    def command(self, line: str) -> paramiko.Channel:
        """Have the login shell run `line`; the channel is its standard input, output and error."""
        with self.answering():
            channel = self._transport().open_session()
            channel.settimeout(self.config.connect_timeout_s)
            channel.exec_command(line)
        return channel

    @contextmanager
    def answering(self, bytes_: int = 0) -> Iterator[None]:
        """What happens within takes no longer than an answer may, and `bytes_` to be carried. paramiko itself waits
        for some answers without end. Its exceptions become a `TestbedError`."""
        limit = self.config.connect_timeout_s + bytes_ / LEAST_RATE
        timer = threading.Timer(limit, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except paramiko.ChannelException as error:
            raise TestbedError(
                f"{self.name}: sshd allows no more sessions on this connection ({error.text}): raise MaxSessions of "
                "sshd_config(5) there."
            ) from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, TimeoutError) and self.is_up:
                raise  # of a channel that ended early, not of the connection
            raise self.lost(error) from None
        finally:
            timer.cancel()

    def lost(self, error: BaseException | None = None) -> ConnectionLost:
        """The exception to raise when the connection broke; it is opened again the next time."""
        error = next((transport.get_exception() for transport in self._transports()), None) or error
        if self._silent or isinstance(error, TimeoutError):
            reason = "the host does not answer any more"
        elif error is None or isinstance(error, EOFError) or not str(error):
            reason = "the host ended it or is gone"
        else:
            reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        self.close()
        return ConnectionLost(f"{self.name}: the SSH connection was lost: {reason}.")

    def close(self) -> None:
        """Let go of it. May be called twice."""
        while self._clients:
            self._clients.pop(0).close()

    def _transport(self) -> paramiko.Transport:
        if not self._clients:
            raise self.lost()
        return self._transports()[0]

    def _transports(self) -> list[paramiko.Transport]:
        """That of the host first."""
        return [each.client.get_transport() for each in list(self._clients)]

    def _give_up(self) -> None:
        self._silent = True
        for transport in self._transports():
            transport.close()
