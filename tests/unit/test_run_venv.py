"""`./run` makes a .venv once more that is empty or damaged, and touches none that belongs to somebody else.

`python3 -m venv` and pip are stand-ins here: what is tested is when they are called."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLI = "libraries/ctbench/cli"
#: Makes a .venv as venv does; the Python in it is the same, and runs no program but says so.
STAND_IN = """#!/bin/sh
echo "$*" >>{calls}
case "$*" in
"-I -c print"*) echo yes ;;
"-m venv --clear "*)
    rm -rf "$4"/* && mkdir -p "$4/bin" && cp {itself} "$4/bin/python" ;;
"-m pip install"*) {pip} ;;
*/cli/bootstrap.py*) echo venv >&3 ;;
*/cli/__main__.py*) echo "entered $*"; echo "PYTHONPATH=$PYTHONPATH PYTHONHOME=${{PYTHONHOME-unset}}" >>{calls} ;;
esac
"""


class Checkout:
    """A copy of ./run with a Python of its own."""

    def __init__(self, folder: Path, pip: str = ":") -> None:
        self.folder = folder
        (folder / CLI).mkdir(parents=True)
        self.calls, python = folder / "calls", folder / "python3"
        python.write_text(STAND_IN.format(calls=self.calls, itself=python, pip=pip))
        python.chmod(0o755)
        shutil.copy(ROOT / "run", folder)
        setup = (ROOT / CLI / "setup.sh").read_text()
        (folder / CLI / "setup.sh").write_text(setup.replace("/usr/bin/python3", str(python)))
        for name in ("requirements.txt", "requirements-dev.txt"):
            shutil.copy(ROOT / name, folder)

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def run(self, **environment: str) -> "subprocess.CompletedProcess[str]":
        """`./run report`, which needs nothing but the .venv."""
        self.calls.write_text("")
        return subprocess.run(
            ["/bin/bash", str(self.folder / "run"), "report", "x"], env={**os.environ, **environment},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def made(self) -> int:
        return self.calls.read_text().count("-m venv --clear")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    assert made.run().returncode == 0
    return made


def test_a_good_one_is_used_as_it_is_whatever_the_environment_says_to_python(checkout: Checkout) -> None:
    done = checkout.run(PYTHONPATH="/nowhere:junk", PYTHONHOME="/nowhere")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"entered {checkout.folder}/{CLI}/__main__.py report x\n"
    assert checkout.made() == 0
    assert checkout.calls.read_text().endswith(f"PYTHONPATH={checkout.folder}/libraries PYTHONHOME=unset\n")


DAMAGES = {
    "empty": "rm -r .venv && mkdir .venv",
    "a file": "rm -r .venv && echo x >.venv",
    "a dangling link": "rm -r .venv && ln -s /nowhere/at/all .venv",
    "no Python": "rm .venv/bin/python",
    "a Python that may not be started": "chmod 644 .venv/bin/python",
    "a Python that does nothing": "echo '#!/bin/sh' >.venv/bin/python",
    "no stamp": "rm .venv/stamp-requirements",  # as a damaged package leaves it (ctbench.cli.error_boundary)
}


def damage(checkout: Checkout, how: str) -> None:
    subprocess.run(DAMAGES[how], shell=True, cwd=checkout.folder, check=True)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_one_is_made_once_more_and_nobody_is_blamed(how: str, checkout: Checkout) -> None:
    damage(checkout, how)

    done = checkout.run()

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("entered")
    assert checkout.made() == 1
    assert "belongs to" not in done.stderr
    assert checkout.run().stderr == ""


@pytest.mark.root_too
@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can make files of another user.")
def test_that_of_another_user_is_left_alone_and_said(checkout: Checkout) -> None:
    damage(checkout, "no Python")
    os.chown(checkout.venv, 65534, 65534)

    done = checkout.run()

    assert done.returncode == 6
    assert (
        f"{checkout.venv} belongs to nobody and cannot be read by root: clone the project for yourself." in done.stderr
    )
    assert checkout.made() == 0


def test_packages_that_cannot_be_installed_are_status_6_and_tried_again(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, pip="exit 1")

    for _ in range(2):
        done = checkout.run()
        assert done.returncode == 6
        assert "pip could not install requirements.txt" in done.stderr
        assert "-m pip install" in checkout.calls.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_whatever_ends_the_installation_ends_it_at_once_and_leaves_nothing_running(
    number: signal.Signals, tmp_path: Path
) -> None:
    checkout = Checkout(tmp_path, pip=f"echo $$ >{tmp_path}/pid; exec sleep 60")
    process = subprocess.Popen(
        ["/bin/bash", str(checkout.folder / "run"), "report"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
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


def test_a_link_to_the_one_of_another_checkout_is_replaced_and_that_one_is_left_as_it_is(
    checkout: Checkout, tmp_path: Path
) -> None:
    shutil.copytree(checkout.venv, other := tmp_path / "other" / ".venv")
    (other / "stamp-requirements").write_text(f"{other.parent}\nmade there\n")
    before = sorted(path.relative_to(other) for path in other.rglob("*"))
    shutil.rmtree(checkout.venv)
    checkout.venv.symlink_to(other)

    assert checkout.run().returncode == 0
    assert (checkout.made(), checkout.venv.is_symlink()) == (1, False)
    assert sorted(path.relative_to(other) for path in other.rglob("*")) == before
