"""Logins over SSH, with checked host keys, passwords that no message shows, and a time limit for every connection."""

import logging
import os
import shlex
import socket
from collections.abc import Sequence
from contextlib import suppress

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from pydantic import SecretStr
from SSHLibrary import SSHClient

from ctbench.base.errors import ConfigError, TestbedError
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_config import Login, expanded

#: Where a password is, for a sentence. The name that stands there is not shown: it may be the password by mistake.
PASSWORD_PLACE = "the environment variable that password_env names"


def password_of(name: str, config: SshConfig) -> SecretStr | None:
    """Return the password of host `name` from its environment variable; None where the file names none. Raise
    `ConfigError` where it has no value."""
    if config.password_env is None:
        return None
    text = os.environ.get(config.password_env)
    if not text:
        raise ConfigError(
            f"{name}: {PASSWORD_PLACE} is not set: put the password of {config.user or 'the user'} on "
            f"{config.address} into it before the run; the password itself never stands in a file."
        )
    if "\n" in text:
        raise ConfigError(f"{name}: the password in {PASSWORD_PLACE} has more than one line.")
    return SecretStr(text)


#: Seconds that the server gets to check who logs in; PAM makes wrong passwords wait.
LOGIN_TIMEOUT_S = 30.0
#: Seconds between two signs of life, so that no firewall forgets the connection.
KEEPALIVE_S = 15
#: Logger of our connections. What paramiko writes there (tracebacks of its threads among it) we say in one sentence
#: each; heard by nobody else, it would come out on stderr and in Robot's log.
QUIET = "ctbench.hosts.ssh"
logging.getLogger(QUIET).propagate = False
logging.getLogger(QUIET).addHandler(logging.NullHandler())


def log_in(host: str, login: Login) -> SSHClient:
    """Return a client that is logged in with the key, else with the password, else with the agent and ~/.ssh. Connect
    by the command of `login` where it has one.

    SSHLibrary's own logins are not used: they believe any host, open a terminal there, offer a key's passphrase as the
    password, and do not say why a host refused. Raise `TestbedError` for a host that cannot be reached or has another
    key than is known, and when the user may not log in; `ConfigError` for a key, a password or a file of known hosts
    that cannot be used.
    """
    config, password = login.config, password_of(host, login.config)
    by_shell = shlex.join(["sh", "-c", f"exec {login.way}"])  # as ssh(1) runs it
    command = paramiko.ProxyCommand(by_shell) if login.way else None
    made = SSHClient(config.address, port=config.port, timeout=config.connect_timeout_s)
    client: paramiko.SSHClient = made.client
    client.set_log_channel(QUIET)
    if config.check_host_key:
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        for entry in _known_keys(host, login.known_hosts):
            for name in entry.hostnames:
                client.get_host_keys().add(name, entry.key.get_name(), entry.key)
    key = _load_key(host, config, password) if config.key else None
    alone = key is None and password is None
    try:
        sock = command or _connected(config)
        client.connect(
            # Where ssh_config(5) has another name for its key (HostKeyAlias), that is the one that counts.
            login.key_name or config.address,
            22 if login.key_name else config.port,
            config.user,
            pkey=key,
            password=password.get_secret_value() if password and not key else None,
            key_filename=list(login.keys) if alone else None,
            allow_agent=alone and login.agent,
            look_for_keys=False,
            timeout=config.connect_timeout_s,
            auth_timeout=LOGIN_TIMEOUT_S,
            sock=sock,
        )
        client.get_transport().set_keepalive(KEEPALIVE_S)
    except (paramiko.SSHException, EOFError, OSError) as error:
        transport = client.get_transport()
        said = _refusal(config, error, transport)
        if command and not transport.remote_version:
            said = f"`{login.way}`, by which ~/.ssh/config reaches it, does not work: {_complaint(command)}."
        made.close()
        raise TestbedError(f"{host}: {said}") from None
    except BaseException:
        made.close()
        raise
    return made


def _connected(config: SshConfig) -> socket.socket:
    sock = socket.create_connection((config.address, config.port), config.connect_timeout_s)
    # It ends by itself when the other end is silent for longer than keepalive and timeout.
    silence_s = KEEPALIVE_S + config.connect_timeout_s
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(silence_s * 1000))
    # A command is several small messages in turn: Nagle's algorithm would hold back the second of each pair.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _complaint(command: paramiko.ProxyCommand) -> str:
    """End a proxy command, and return the last line of its stderr."""
    command.close()
    os.set_blocking(command.process.stderr.fileno(), False)  # a child of it may hold on
    lines = (command.process.stderr.read() or b"").decode(errors="replace").splitlines()
    return next((line.strip().rstrip(".") for line in reversed(lines) if line.strip()), "it said nothing")


def _known_as(config: SshConfig) -> str:
    """Return the name of a host in files of known keys; sshd(8), SSH_KNOWN_HOSTS FILE FORMAT."""
    return config.address if config.port == 22 else f"[{config.address}]:{config.port}"


def _refusal(config: SshConfig, error: Exception, transport: paramiko.Transport | None) -> str:
    """Return why the login failed, and what to do. `transport`: the connection, where there is one."""
    address, known_hosts = config.address, config.known_hosts
    where, reason = f"{address}, port {config.port},", _reason(error)
    match error:
        case paramiko.IncompatiblePeer():
            said = (
                f"{address} and this machine have no algorithm in common ({reason}): sshd there is too old or too "
                "strict (KexAlgorithms, HostKeyAlgorithms, Ciphers, MACs of sshd_config(5))."
            )
        case paramiko.BadHostKeyException():
            said = (
                f"the key of {address} is {_fingerprint(error.key)}, and {known_hosts} knows another "
                f"({_fingerprint(error.expected_key)}): if it was reinstalled, forget the old one with "
                f"`ssh-keygen -R '{_known_as(config)}' -f {known_hosts}`; was it not, another machine answers in its "
                "place."
            )
        case paramiko.AuthenticationException():
            said = (
                f"{config.user} may not log in at {address} with {_means(config)} ({reason}): "
                f"try `ssh -p {config.port} {config.user}@{address}`. Correct `user`, `key` or `password_env`."
            )
        case paramiko.SSHException() if transport and "not found in known_hosts" in reason:
            said = (
                f"the key of {address} ({_fingerprint(transport.get_remote_server_key())}) is not in {known_hosts}: "
                "compare it with that host's own (`ssh-keygen -lf FILE.pub` there), and add it with "
                f"`ssh -p {config.port} -o UserKnownHostsFile={known_hosts} {config.user}@{address}`; "
                "or set check_host_key to false in a lab that trusts its network."
            )
        case paramiko.SSHException() if "No authentication methods" in reason:
            said = (
                f"there is nothing to log in with at {address}: neither `key` nor `password_env` is given, no SSH "
                "agent has a key, and ~/.ssh has none without a passphrase."
            )
        case socket.gaierror():
            said = f"there is no host {address} ({error.strerror}): correct `address`."
        case TimeoutError() if transport is None:
            said = f"{where} did not answer within {config.connect_timeout_s:g} s: is it up, and is `address` right?"
        case OSError() if transport is None:
            said = f"{where} cannot be reached ({error.strerror}): does sshd run there, on this port?"
        case _ if transport and transport.remote_version:
            said = (
                f"sshd of {where} ended the connection before the login was done ({reason}): its log says why. Most "
                "often the SSH agent and ~/.ssh offer more keys than sshd tries (MaxAuthTries): name one with `key`."
            )
        case _:
            said = (
                f"{address} does not answer as an SSH server on port {config.port} ({reason}): is sshd what listens "
                "there?"
            )
    return said


def _known_keys(host: str, files: Sequence[str]) -> list[HostKeyEntry]:
    """Return hosts and their keys; sshd(8), SSH_KNOWN_HOSTS FILE FORMAT. Leave out revoked keys, and lines that
    paramiko cannot read (certificates, unknown kinds of keys)."""
    lines: list[str] = []
    for file in dict.fromkeys(map(expanded, files)):
        try:
            lines += file.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            continue  # no host is known yet
        except OSError as error:
            raise ConfigError(f"{host}: known_hosts: {file} cannot be read: {error.strerror}.") from error
    known: list[HostKeyEntry] = []
    revoked: list[paramiko.PKey] = []
    for line in lines:
        with suppress(paramiko.SSHException, InvalidHostKey):
            entry = HostKeyEntry.from_line(line.removeprefix("@revoked").strip())
            if entry and line.startswith("@revoked"):
                revoked.append(entry.key)
            elif entry:
                known.append(entry)
    return [entry for entry in known if entry.key not in revoked]


def _load_key(host: str, config: SshConfig, passphrase: SecretStr | None) -> paramiko.PKey:
    file = expanded(config.key)
    secrets = [None, passphrase.get_secret_value().encode()] if passphrase else [None]  # a key may have none
    for secret in secrets:
        try:
            return paramiko.PKey.from_path(file, secret)
        except OSError as error:
            raise ConfigError(f"{host}: key: {file} cannot be read: {error.strerror}.") from None
        except (TypeError, ValueError, UnsupportedAlgorithm, paramiko.SSHException, paramiko.UnknownKeyType):
            continue  # what they say names other causes
    raise ConfigError(
        f"{host}: key: {file} does not open as a private key.\n"
        "  Expected one of ssh-keygen(1) without a FIDO token, and in password_env the variable of its passphrase, if "
        "it has one."
    )


def _means(config: SshConfig) -> str:
    if config.key:
        return f"the key {config.key}"
    return f"the password in {PASSWORD_PLACE}" if config.password_env else "the keys of the SSH agent and ~/.ssh"


def _fingerprint(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.fingerprint}"


def _reason(error: BaseException) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
