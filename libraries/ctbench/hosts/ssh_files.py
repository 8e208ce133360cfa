"""Files to and from another host over SFTP; where only root may, by way of a folder of the user that logged in."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import paramiko

from ctbench.base.errors import TestbedError
from ctbench.hosts.base import Completed, Host
from ctbench.hosts.ssh_connection import SshConnection

#: Requests that are under way at once while a file is read.
READ_AHEAD = 64
CHUNK = 1 << 18


def put_file(host: Host, connection: SshConnection, local: Path, remote: str) -> None:
    """Copy a file to the host, with its mode. It appears there when all of it has arrived."""
    try:
        with local.open("rb") as source, _passing_through(connection) as (sftp, there):
            stat = os.fstat(source.fileno())
            with connection.answering(stat.st_size):
                sftp.putfo(source, there)
            mode = f"{stat.st_mode & 0o777:o}"
            _require(host.run(["install", "-T", "-m", mode, "--", there, remote], check=False))
    except OSError as error:
        raise _failed(host, local, remote, error) from None


def get_file(host: Host, connection: SshConnection, remote: str, local: Path) -> None:
    """Copy a file from the host, with its mode."""
    config = connection.config
    try:
        with _passing_through(connection) as (sftp, there):
            if config.sudo and config.user != "root":
                shown = host.run(["stat", "-c", "%a", "--", remote], check=False)
                _require(shown)
                _require(host.run(["install", "-T", "-m", "600", "-o", config.user, "--", remote, there], check=False))
                mode = int(shown.stdout, 8)
                _fetch(connection, sftp, there, local)
            else:
                mode = _fetch(connection, sftp, remote, local)
        local.chmod(mode & 0o777)
    except OSError as error:
        raise _failed(host, remote, local, error) from None


def _fetch(connection: SshConnection, sftp: paramiko.SFTPClient, remote: str, local: Path) -> int:
    """Copy, to the end of what is there now; the file's mode. Files below /proc have no size but an end."""
    with connection.answering():
        source = sftp.open(remote, "rb")
        stat = source.stat()
    with connection.answering(stat.st_size or 0), source:
        if stat.st_size:
            source.prefetch(stat.st_size, max_concurrent_requests=READ_AHEAD)
        with local.open("wb") as target:
            while piece := source.read(CHUNK):
                target.write(piece)
    return int(stat.st_mode or 0o600)


@contextlib.contextmanager
def _passing_through(connection: SshConnection) -> Iterator[tuple[paramiko.SFTPClient, str]]:
    """An SFTP session, and the path of a file to be in a folder that only the user can enter, and that goes again."""
    sftp = connection.sftp()
    folder = f"/tmp/ctbench-{secrets.token_hex(8)}"
    with connection.answering():
        sftp.mkdir(folder, 0o700)
    try:
        yield sftp, f"{folder}/file"
    finally:
        with contextlib.suppress(TestbedError, OSError), connection.answering():
            with contextlib.suppress(FileNotFoundError):
                sftp.remove(f"{folder}/file")
            sftp.rmdir(folder)
            sftp.close()


def _require(done: Completed) -> None:
    """`OSError` with what the command complained about."""
    if done.exit_status != 0:
        said = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise OSError(said.rpartition(": ")[2])


def _failed(host: Host, source: Path | str, target: Path | str, error: OSError) -> TestbedError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return TestbedError(f"{host.name}: cannot copy {source} to {target}: {reason}.")
