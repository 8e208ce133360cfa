"""A connection over SSH that is made when it is needed, made again when it was lost, and never waits for ever."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import paramiko

from ctbench.base.errors import TestbedError
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_login import CheckedClient, reach, reach_through
from ctbench.hosts.ssh_password import Password, password_of

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
        self.password: Password | None = password_of(name, config)
        self._jump = jump
        self._jump_name = f"jump host {jump.address}" if jump else ""
        self._jump_password = password_of(self._jump_name, jump) if jump else None
        #: The way to the host: itself, and before it the jump host.
        self._clients: list[CheckedClient] = []
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
            sock: object = reach(self.name, self.config) if self._jump is None else None
            if self._jump is not None:
                through = self._log_in(
                    self._jump_name, self._jump, self._jump_password, reach(self._jump_name, self._jump)
                )
                sock = reach_through(through, self._jump_name, self.name, self.config)
            self._log_in(self.name, self.config, self.password, sock)
        except BaseException:
            self.close()
            raise

    def _log_in(self, name: str, config: SshConfig, password: Password | None, sock: object) -> paramiko.Transport:
        client = CheckedClient(name, config)
        self._clients.insert(0, client)
        client.log_in(password, sock)
        return client.transport

    def command(self, line: str) -> paramiko.Channel:
        """Have the login shell run `line`; the channel is its standard input, output and error."""
        with self.answering():
            channel = self._transport().open_session()
            channel.settimeout(self.config.connect_timeout_s)
            channel.exec_command(line)
        return channel

    def sftp(self) -> paramiko.SFTPClient:
        """A new SFTP session."""
        with self.answering():
            sftp = paramiko.SFTPClient.from_transport(self._transport())
            if sftp is None:
                raise ConnectionLost(f"{self.name}: no SFTP session.")
            return sftp

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
                raise  # a file that is not there
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
        return [client.transport for client in list(self._clients)]

    def _give_up(self) -> None:
        self._silent = True
        for transport in self._transports():
            transport.close()
