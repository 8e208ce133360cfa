"""`./run` itself: what it says when it cannot install what is missing, what it does for the emulated machine, and that
it makes a .venv once more that is damaged, and touches none of somebody else.

`python3 -m venv`, pip, apt and dpkg are stand-ins here."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ctbench.base.errors import ExitStatus

ROOT = Path(__file__).resolve().parents[2]
CLI = "libraries/ctbench/cli"
#: Makes a .venv as venv does; the Python in it is the same, and runs no program but says so.
STAND_IN = """#!/bin/sh
echo "$*" >>{calls}
case "$*" in
"-I -m venv --clear "*) rm -rf "$5"/* && mkdir -p "$5/bin" && cp {itself} "$5/bin/python" ;;
"-m pip config list") printf '%s\\n' "{settings}" ;;
"-m pip install"*) env | grep ^PIP_ >>{calls}; {pip} ;;
*/cli/__main__.py*) echo "entered $*"; env | grep ^PYTHON | sort >>{calls} ;;
esac
"""

#: The apt-cache of a user who reads German: it translates kinds of dependencies, and no names of fields.
APT_CACHE = """
[ "$1" = depends ] || exec echo "Version: 1.2"
[ "$LC_ALL" = C ] && word="Depends" || word="Hängt ab von"
echo "  $word: linux-image-k"
"""
#: A sudo that needs a password, which its user types where it may ask, and that drops the environment.
SUDO = """
[ "$1" != -n ] || { echo "sudo: a password is required" >&2; exit 1; }
shift
exec env -i PATH="$PATH" "$@"
"""


class Checkout:
    """A copy of ./run with a Python of its own, and programs that stand in for those of the system."""

    def __init__(self, folder: Path, pip: str = ":", settings: str = "") -> None:
        """What the Python does where it is pip, and the lines of pip's settings."""
        self.folder, self.venv = folder, folder / ".venv"
        (folder / CLI).mkdir(parents=True)
        self.calls, self.python = folder / "calls", folder / "python3"
        self.python.write_text(STAND_IN.format(calls=self.calls, itself=self.python, pip=pip, settings=settings))
        self.python.chmod(0o755)
        shutil.copy(ROOT / "run", folder)
        setup = (ROOT / CLI / "setup.sh").read_text()
        setup = setup.replace("/var/lib/apt/lists/lock", str(folder / "lists-lock"))
        (folder / CLI / "setup.sh").write_text(setup.replace("/usr/bin/python3", str(self.python)))
        for name in ("requirements.txt", "requirements-dev.txt"):
            shutil.copy(ROOT / name, folder)
        # Everything is installed, and apt knows a kernel of version 1.2.
        self.program("uname", "echo x86_64")
        self.program("dpkg-query", "echo 'installed '")
        self.program("apt-cache", APT_CACHE)
        self.program("apt-get", 'case "$*" in *download*) touch linux-image-k_1.2.deb;; *) exit 100;; esac')
        self.program("dpkg-deb", 'mkdir -p "$3/boot" && echo unpacked >"$3/boot/vmlinuz-k"')

    def program(self, name: str, body: str) -> None:
        (self.folder / "bin").mkdir(exist_ok=True)
        program = self.folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)

    def run(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """`./run ARGUMENTS`, else `./run report x`, which needs nothing but the .venv."""
        self.calls.write_text("")
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return subprocess.run(
            ["/bin/bash", str(self.folder / "run"), *(arguments or ("report", "x"))],
            env={**os.environ, "PATH": path, **environment},
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def made(self) -> int:
        return self.calls.read_text().count("-m venv --clear")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Nothing of Python's packages is installed."""
    return Checkout(tmp_path)


@pytest.fixture
def made_checkout(checkout: Checkout) -> Checkout:
    assert checkout.run().returncode == 0
    return checkout


@pytest.mark.parametrize(
    "arguments",
    ["--help", "sla --help", "report -h", "help", "bogus", "", "calibrate mine --help", "sla -t x -h", "check --help"],
)
def test_help_needs_nothing_that_is_installed(arguments: str, checkout: Checkout) -> None:
    done = checkout.run(*arguments.split(" "))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("entered")
    assert not checkout.venv.exists()


@pytest.mark.parametrize("arguments", ["check unit --help", "sla -- -h"])
def test_help_of_another_program_needs_what_is_installed(arguments: str, checkout: Checkout) -> None:
    assert checkout.run(*arguments.split()).returncode == 0
    assert checkout.venv.exists()


def test_without_a_python_or_with_one_that_is_too_old_there_is_one_sentence(checkout: Checkout) -> None:
    for python in ("#!/bin/sh\nexit 1\n", ""):
        checkout.python.write_text(python)
        done = checkout.run("sla", "--help")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (6, "", 1)
        assert "Python 3.11 is needed" in done.stderr
        checkout.python.chmod(0o644)


@pytest.mark.parametrize("arguments", [["setup"], ["sla"], ["sla", "--bisect", "--candidate", "x"], ["tests"]])
def test_another_processor_and_a_system_without_apt_are_one_sentence(arguments: list[str], checkout: Checkout) -> None:
    status = 125 if "--bisect" in arguments else ExitStatus.NOTHING_MEASURED
    for name in ("dirname", "readlink"):
        checkout.program(name, f'exec /usr/bin/{name} "$@"')
    for name in ("apt-cache", "apt-get"):
        (checkout.folder / "bin" / name).unlink()
    done = checkout.run(*arguments, PATH=str(checkout.folder / "bin"))
    assert (done.returncode, done.stderr.count("\n")) == (status, 1)
    assert "no apt-get" in done.stderr and "docs/containers.md" in done.stderr
    checkout.program("uname", "echo aarch64")
    done = checkout.run(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (status, 1)
    assert "aarch64" in done.stderr


@pytest.mark.parametrize("unknown", ["exit 1", "echo 'not-installed '", "echo 'half-installed '"])
def test_packages_that_cannot_be_installed_become_an_administrators_command(unknown: str, checkout: Checkout) -> None:
    checkout.program("dpkg-query", f'case "$*" in *Depends*) echo librte-eal24;; *) {unknown};; esac')
    checkout.program("apt-get", 'case "$*" in *update*) ;; *) exit 100 ;; esac')
    checkout.program("sudo", "exit 1")
    done = checkout.run("setup")
    assert done.returncode == 6
    command = done.stderr.splitlines()[-1]
    assert "apt-get install" in command
    assert "'python3-venv'" in command
    assert "'librte-net-memif24' 'librte-mempool-ring24'" in command
    assert not checkout.venv.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="Root needs no sudo.")
@pytest.mark.parametrize("terminal", [True, False])
def test_sudo_asks_on_a_terminal_and_apt_has_the_users_proxies(terminal: bool, checkout: Checkout) -> None:
    proxies = {"http_proxy": "http://me:a b@proxy.example:3128", "https_proxy": "", "no_proxy": "mirror.example"}
    environment = checkout.folder / "environment"
    checkout.program("dpkg-query", "echo 'not-installed '")
    checkout.program("apt-get", f"[ ! -t 0 ] && env >{environment}")
    checkout.program("sudo", SUDO)
    ends = os.openpty()
    stdin = ends[1] if terminal else subprocess.DEVNULL
    done = checkout.run("setup", stdin=stdin, CONNTRACK_SLA_EMULATED="no", **proxies)
    for end in ends:
        os.close(end)
    assert done.returncode == (0 if terminal else ExitStatus.NOTHING_MEASURED), done.stderr
    assert ("a password is required" in done.stderr) == (not terminal)
    known = environment.read_text().splitlines() if terminal else []
    assert all(f"{name}={value}" in known for name, value in proxies.items()) == terminal


@pytest.mark.parametrize(
    ("held", "status", "asked"),
    [(True, 100, "update update install"), (False, 100, "update install"), (False, 1, "update")],
)
def test_apt_is_asked_again_while_another_has_its_lists(
    held: bool, status: int, asked: str, checkout: Checkout
) -> None:
    calls = checkout.folder / "apt"
    checkout.program("dpkg-query", "echo 'not-installed '")
    checkout.program("sudo", 'shift 2; exec "$@"')
    checkout.program("sleep", "")
    checkout.program(
        "apt-get",
        f"""for word; do case $word in update | install) echo $word >>{calls} ;; esac; done
        [ $(wc -l <{calls}) != 1 ] || exit {status}""",
    )
    with (checkout.folder / "lists-lock").open("w") as lock:
        if held:
            fcntl.lockf(lock, fcntl.LOCK_EX)
        done = checkout.run("setup", CONNTRACK_SLA_EMULATED="no")
    assert calls.read_text().split() == asked.split()
    assert done.returncode == (ExitStatus.NOTHING_MEASURED if status == 1 else 0)


@pytest.fixture
def kernel(made_checkout: Checkout) -> Path:
    """Where the kernel of the emulated machine is unpacked."""
    return made_checkout.venv / "emulated-kernel"


def test_the_kernel_is_unpacked_once_and_a_newer_one_where_it_is_asked_for(
    made_checkout: Checkout, kernel: Path
) -> None:
    left = kernel.with_name("emulated-kernel.new")  # by an unpacking that was killed
    left.mkdir()
    (left / "half").touch()
    assert "unpacking linux-image-k 1.2" in made_checkout.run("sla").stderr
    assert (kernel / "boot/vmlinuz-k").read_text() == "unpacked\n"
    assert (kernel / "version").read_text() == "linux-image-k 1.2\n"
    assert made_checkout.run("setup").stderr == ""
    (kernel / "version").write_text("linux-image-k 1.1\n")
    assert made_checkout.run("sla").stderr == ""
    assert "unpacking linux-image-k 1.2" in made_checkout.run("setup").stderr
    made_checkout.program("apt-cache", "exit 100")
    assert made_checkout.run("setup").stderr == ""
    assert (kernel / "version").exists() and not left.exists()


def test_a_kernel_that_another_run_has_just_unpacked_stays(made_checkout: Checkout, kernel: Path) -> None:
    made_checkout.program("flock", f'mkdir {kernel} && echo "linux-image-k 1.2" >{kernel}/version')
    assert made_checkout.run("sla").stderr == ""
    assert [each.name for each in kernel.iterdir()] == ["version"]


@pytest.mark.parametrize(
    ("programs", "environment"),
    [
        ({}, {"CONNTRACK_SLA_EMULATED": "no"}),
        ({"apt-cache": "exit 100"}, {}),
        ({"apt-get": "exit 100"}, {}),
        ({"dpkg-deb": "exit 2"}, {}),
        ({"dpkg-query": 'case "$*" in *qemu*) printf not-;; esac; echo "installed "', "sudo": "exit 1"}, {}),
    ],
)
def test_without_kernel_or_packages_others_go_on(
    made_checkout: Checkout, kernel: Path, programs: dict[str, str], environment: dict[str, str]
) -> None:
    for name, body in programs.items():
        made_checkout.program(name, body)
    done = made_checkout.run("sla", "x", **environment)
    assert done.returncode == 0
    assert done.stdout.startswith("entered")
    assert "tests" in done.stderr and "will be skipped" in done.stderr
    assert not kernel.exists()


def test_a_good_one_is_used_as_it_is_whatever_the_environment_says_to_python(made_checkout: Checkout) -> None:
    strange = {"PYTHONWARNINGS": "error", "PYTHONHASHSEED": "many", "PYTHONOPTIMIZE": "2", "PYTHONSAFEPATH": "1"}
    done = made_checkout.run(PYTHONPATH="/nowhere:junk", PYTHONHOME="/nowhere", PYTHONDONTWRITEBYTECODE="1", **strange)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"entered {made_checkout.folder}/{CLI}/__main__.py report x\n"
    assert made_checkout.made() == 0
    assert re.findall(r"PYTHON.*=.*", made_checkout.calls.read_text()) == [
        "PYTHONDONTWRITEBYTECODE=1",
        f"PYTHONPATH={made_checkout.folder}/libraries",
        "PYTHONUTF8=1",
    ]


def test_of_pips_environment_and_files_only_sources_of_packages_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    files = ["install.prefix='/x'", "global.retries='9'", "install.retries='3'", r"global.find-links='\\n/a\\n/b'"]
    checkout = Checkout(tmp_path, settings="\n".join([*files, "list.proxy='other'"]))

    done = checkout.run(PIP_TARGET="/x", PIP_DRY_RUN="1", PIP_NO_DEPS="1", PIP_INDEX_URL="https://a.example/=")

    assert done.returncode == 0
    assert {line for line in checkout.calls.read_text().splitlines() if line.startswith("PIP_")} == {
        "PIP_CONFIG_FILE=/dev/null",
        "PIP_INDEX_URL=https://a.example/=",
        "PIP_RETRIES=3",
        "PIP_FIND_LINKS= /a /b",
    }


@pytest.mark.parametrize("ends", ["exit 1", "exit 77", "kill -SEGV $$"])
def test_packages_that_cannot_be_installed_are_status_6_and_tried_again(ends: str, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, pip=ends)

    for _ in range(2):
        done = checkout.run()
        assert done.returncode == ExitStatus.NOTHING_MEASURED
        assert "pip could not install requirements.txt" in done.stderr
        assert "-m pip install" in checkout.calls.read_text()


DAMAGES = {
    "empty": "rm -r .venv && mkdir .venv",
    "a file": "rm -r .venv && echo x >.venv",
    "a dangling link": "rm -r .venv && ln -s /nowhere/at/all .venv",
    "no Python": "rm .venv/bin/python",
    "a Python that may not be started": "chmod 644 .venv/bin/python",
    "no stamp": "rm .venv/stamp-requirements",
    "of the system's last Python": "mv python3 python3.13 && ln -s python3.13 python3",
}


def damage(made_checkout: Checkout, how: str) -> None:
    subprocess.run(DAMAGES[how], shell=True, cwd=made_checkout.folder, check=True)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_one_is_made_once_more_without_blame(how: str, made_checkout: Checkout) -> None:
    damage(made_checkout, how)

    done = made_checkout.run()

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("entered")
    assert made_checkout.made() == 1
    assert "belongs to" not in done.stderr
    assert made_checkout.run().stderr == ""


@pytest.mark.root_too
@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can make files of another user.")
def test_that_of_another_user_is_left_alone_and_said(made_checkout: Checkout) -> None:
    damage(made_checkout, "no Python")
    os.chown(made_checkout.venv, 65534, 65534)

    done = made_checkout.run()

    assert done.returncode == 6
    assert f"{made_checkout.venv} is missing or out of date, and belongs to nobody: " in done.stderr
    assert made_checkout.made() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_what_ends_the_installation_ends_it_at_once_with_all_it_runs(number: signal.Signals, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, pip=f"echo $$ >{tmp_path}/pid; exec sleep 60")
    argv = ["/bin/bash", str(checkout.folder / "run"), "report"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True)
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        assert process.poll() is None
    process.send_signal(number)
    _, err = process.communicate(timeout=30)  # its end is that of all that write there

    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert err.count("\n") <= 2
    assert ended(Path(f"/proc/{pid.read_text().strip()}/stat"))


def ended(stat: Path) -> bool:
    """Whether a process ends: the kernel kills it when its parent is gone, and it needs a moment on a busy machine."""
    for _ in range(100):
        with suppress(FileNotFoundError, ProcessLookupError):
            if ") Z " not in stat.read_text():
                time.sleep(0.1)
                continue
        return True
    return False


def test_a_link_to_another_checkouts_is_replaced_and_that_one_is_kept(made_checkout: Checkout, tmp_path: Path) -> None:
    shutil.copytree(made_checkout.venv, other := tmp_path / "other" / ".venv")
    (other / "stamp-requirements").write_text(f"{other.parent}\nmade there\n")
    before = sorted(path.relative_to(other) for path in other.rglob("*"))
    shutil.rmtree(made_checkout.venv)
    made_checkout.venv.symlink_to(other)

    assert made_checkout.run().returncode == 0
    assert (made_checkout.made(), made_checkout.venv.is_symlink()) == (1, False)
    assert sorted(path.relative_to(other) for path in other.rglob("*")) == before
