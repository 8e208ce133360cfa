"""A real sshd on a port of 127.0.0.1, with keys, users and a /run of its own, and nothing of the machine's.

It lives in a mount namespace: as root with the machine's users and one more, as an ordinary user in a user namespace in
which that one more is who we are. The listening socket is ours, and each connection gets an `sshd -i`."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import MissingResource
from ctbench.hosts.config import SshConfig

#: Where sshd is; the PATH of an ordinary user often leaves it out, and sshd wants its whole path.
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
#: The user that is there as well. Where we are an ordinary user its number is ours: what a host keeps for a user in
#: /tmp has the number in its name, and is refused to another user.
TESTER, TESTER_ID = "ctbench-tester", str(os.getuid() or 4711)
#: The password of all users where they have one, the variable that holds it, and how to log in with it.
PASSWORD = "corr3ct h0rse'$"
PASSWORD_VARIABLE = "CTBENCH_TEST_PASSWORD"
WITH_PASSWORD = {"key": "", "password_env": PASSWORD_VARIABLE}

#: In the namespace: its own /run and its own users; then whatever follows.
PREPARE = """
set -e
folder=$1
tester=$2
shift 2
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/home
chmod 755 /run
cp "$folder/authorized_keys" /run/authorized_keys
chmod 644 /run/authorized_keys
chown "$tester" /run/home
for file in passwd shadow sudoers; do
    if [ -e "$folder/$file" ] && [ -e "/etc/$file" ]; then mount --bind "$folder/$file" "/etc/$file"; fi
done
cd /
exec "$@"
"""
#: What inetd did: a process for each connection, which is its standard input and output. It also collects the dead, as
#: the first process of a PID namespace has to.
INETD = """
import os, socket, subprocess, sys, threading, time
def collect():
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.05)
threading.Thread(target=collect, daemon=True).start()
listening = socket.socket(fileno=int(sys.argv[1]))
print("ready", flush=True)
while True:
    with listening.accept()[0] as connection:
        subprocess.Popen(sys.argv[2:], stdin=connection, stdout=connection)
"""
CONFIG = """
HostKey {folder}/host_key
AuthorizedKeysFile /run/authorized_keys
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication {passwords}
KbdInteractiveAuthentication no
PidFile none
UseDNS no
PrintMotd no
PrintLastLog no
LogLevel VERBOSE
Subsystem sftp internal-sftp
"""


class Sshd:
    """Listens from when it is made to `close`."""

    def __init__(
        self,
        folder: Path,
        *,
        password: str = "",
        sudoers: str = "",
        own_network: bool = False,
        more_namespaces: Sequence[str] = (),
    ) -> None:
        """`folder`: an empty one, for its files and its log. With `password` it also lets the users in that know it.
        With `own_network` what logs in is in network and PID namespaces too, and ends with them. `more_namespaces`:
        further options of unshare(1).
        `MissingResource` where it cannot run."""
        if SSHD is None:
            raise MissingResource("sshd is not installed (package openssh-server).")
        self.folder = folder
        self.root = os.geteuid() == 0
        #: Who may log in, and what the keys are; the client's key has no passphrase.
        self.user = "root" if self.root else TESTER
        self.key = make_key(folder / "client_key")
        make_key(folder / "host_key")
        (folder / "authorized_keys").write_text((folder / "client_key.pub").read_text())
        (folder / "sshd_config").write_text(CONFIG.format(folder=folder, passwords="yes" if password else "no"))
        self._write_users(password)
        if sudoers:
            (folder / "sudoers").write_text(sudoers)
            (folder / "sudoers").chmod(0o440)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {(folder / 'host_key.pub').read_text()}")
        namespaces = ["--mount"]
        if not self.root or own_network:
            namespaces += ["--user", f"--map-user={TESTER_ID}", f"--map-group={TESTER_ID}", "--keep-caps"]
            self.user = TESTER
        if own_network:
            namespaces += ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        namespaces += more_namespaces
        descriptor = str(self._listening.fileno())
        inetd = [sys.executable, "-I", "-S", "-c", INETD, descriptor, SSHD, "-i", "-e", "-f", f"{folder}/sshd_config"]
        within = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", *namespaces, "--"]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*within, "sh", "-c", PREPARE, "sh", str(folder), TESTER_ID, *inetd],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[self._listening.fileno()],
                start_new_session=True,
            )
        if self._process.stdout.readline() != b"ready\n":
            self.close()
            raise MissingResource(f"sshd cannot run in namespaces here: {self.log.strip()}")

    def __enter__(self) -> "Sshd":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> str:
        """What it says of itself."""
        return (self.folder / "log").read_text(errors="replace")

    def config(self, **changed: Any) -> SshConfig:
        """How to log in."""
        return SshConfig.model_validate(
            {
                "address": "127.0.0.1",
                "port": self.port,
                "user": self.user,
                "key": str(self.key),
                "known_hosts": str(self.known_hosts),
                **changed,
            }
        )

    @property
    def pid(self) -> int:
        """The process in whose namespaces whoever logs in is; without `own_network`."""
        return self._process.pid

    def sessions(self) -> list[int]:
        """Processes of sshd that serve connections now."""
        found = []
        for pid in descendants(self._process.pid):
            with contextlib.suppress(OSError):
                # The dead have no command line.
                if Path(f"/proc/{pid}/cmdline").read_text().startswith((str(SSHD), "sshd")):
                    found.append(pid)
        return found

    def signal_sessions(self, number: signal.Signals) -> None:
        """Send a signal to all of them."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def close(self) -> None:
        """No more connections, those that there are included. May be called twice."""
        self._listening.close()
        self.signal_sessions(signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _write_users(self, password: str) -> None:
        lines = ["root:x:0:0::/run/home:/bin/sh", f"{TESTER}:x:{TESTER_ID}:{TESTER_ID}::/run/home:/bin/sh"]
        # Of two users with one number the first is the one that is found.
        lines += [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
        (self.folder / "passwd").write_text("\n".join(lines) + "\n")
        (self.folder / "passwd").chmod(0o644)
        if password:
            crypt = ["perl", "-e", "print crypt(<STDIN>, '$6$salt$')"]
            done = subprocess.run(crypt, input=password, capture_output=True, text=True, check=True)
            (self.folder / "shadow").write_text(
                "".join(f"{user}:{done.stdout}:19000:0:99999:7:::\n" for user in ("root", TESTER))
            )
            (self.folder / "shadow").chmod(0o600)


def serving(folder: Path, **options: Any) -> Iterator[Sshd]:
    """For a fixture: one with these options of `Sshd`; skips where it cannot run."""
    try:
        server = Sshd(folder, **options)
    except MissingResource as error:
        pytest.skip(str(error))
    with server:
        yield server


def make_key(file: Path) -> Path:
    """A new key pair, `file` and `file`.pub."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(file)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return file


def descendants(pid: int) -> Iterator[int]:
    """Children of a process, and theirs."""
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from descendants(int(child))
