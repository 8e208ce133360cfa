"""A fresh Debian system of another release in a folder, as a new machine has it, with the registries of this one."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

#: An ordinary user who may become root with sudo, and her clone of the project.
USER, CLONE = "engineer", "/home/engineer/clone"
#: Of this machine: how its registries are reached.
REGISTRY_FILES = ("/etc/hosts", "/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
REGISTRY_VARIABLES = re.compile(r"PIP_\w+|(https?|no|all)_proxy", re.IGNORECASE)
#: Of apt's own settings: how it fetches, and not what.
FETCHING = re.compile(r"^Acquire::(?!IndexTargets|Changelogs|CompressionTypes|Languages|cdrom)[^:].*;$", re.MULTILINE)
#: A plain chroot forbids namespaces of one's own (unshare(2): EPERM), so the folder becomes the root of a mount
#: namespace. /tmp of this machine may be mounted without set-uid programs, which sudo is.
ENTER = """
mount --bind "$1" "$1"
mount -o remount,bind,suid,dev,exec "$1"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t proc proc "$1/proc"
cd "$1"
mkdir -p .outside
pivot_root . .outside
umount --lazy .outside
shift
exec "$@"
"""


class NotMade(Exception):
    """The system cannot be had on this machine; says why."""


@dataclass(frozen=True)
class DebianRoot:
    """The system in a folder. What runs in it ends when the program that started it does."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, release: str) -> "DebianRoot":
        """Install the packages that every Debian has, certificates and sudo; half a minute.

        Raises `NotMade` where this machine cannot have it, for example because no mirror of Debian is reached.
        """
        if os.geteuid() != 0:
            raise NotMade("Only root can make the root of another system and enter it.")
        if shutil.which("mmdebstrap") is None:
            raise NotMade("mmdebstrap is not installed.")
        settings = [f"--aptopt={line}" for line in FETCHING.findall(_said("apt-config", "dump"))]
        command = ["mmdebstrap", "--variant=minbase", "--include=ca-certificates,sudo", *settings, release, str(folder)]
        done = subprocess.run(
            [*command, *_sources(release)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise NotMade(f"mmdebstrap cannot make {release}: {done.stderr.strip().splitlines()[-1:]}")
        for file in map(Path, REGISTRY_FILES):
            if file.exists():
                copy = folder / file.relative_to("/")
                copy.unlink(missing_ok=True)
                shutil.copyfile(file, copy)
        made = cls(folder)
        made.run("useradd", "--create-home", "--shell", "/bin/bash", USER).check_returncode()
        (folder / "etc" / "sudoers.d" / USER).write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
        return made

    @property
    def clone(self) -> Path:
        """The user's clone, as it is seen from outside."""
        return self.folder / CLONE[1:]

    def own(self) -> None:
        """The clone belongs to its user."""
        self.run("chown", "--recursive", f"{USER}:", CLONE).check_returncode()

    def type(self, command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command line in the clone, as its user does."""
        return self.run("runuser", f"--user={USER}", "--", "bash", "-c", f"cd {CLONE} && {command}", **variables)

    def run(self, *argv: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a program as root."""
        settled = {"HOME": f"/home/{USER}", "USER": USER, "LOGNAME": USER, "LC_ALL": "C.UTF-8"}
        path = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        inherited = {name: value for name, value in os.environ.items() if REGISTRY_VARIABLES.fullmatch(name)}
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "sh", self.folder, *argv],
            env=inherited | settled | path | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )


def _sources(release: str) -> list[str]:
    """Where this machine gets Debian's packages from, for another release; empty: from where mmdebstrap does."""
    targets = _said(
        "apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"
    )
    mirrors = re.findall(r"^Debian Debian main (\S+)$", targets, re.MULTILINE)
    return [f"deb {mirror} {release} main" for mirror in sorted(set(mirrors))[:1]]


def _said(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout
