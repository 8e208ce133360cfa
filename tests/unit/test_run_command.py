"""`./run` itself: its help, its mistakes, what it says when it cannot install what is missing, what `./run setup` does
for the emulated machine, and that it makes a .venv once more that is damaged, and touches none of somebody else.

`python3 -m venv`, pip, apt and dpkg are stand-ins here."""

import getpass
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
from ctbench.base.paths import LIBRARIES
from ctbench.cli.parser.tree import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "run"
CLI = "libraries/ctbench/cli"


def run(*arguments: str, path: str = os.environ["PATH"], script: Path = RUN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", str(script), *arguments],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of ./run in a folder of its own, so that no test can touch this checkout's .venv: nothing is installed."""
    script = tmp_path / "run"
    script.write_text(RUN.read_text())
    (tmp_path / "libraries").symlink_to(ROOT / "libraries")
    return script


@pytest.fixture
def without_python(elsewhere: Path) -> Path:
    """The same on a machine that has no Python."""
    setup, cli = (ROOT / CLI / "setup.sh").read_text(), elsewhere.parent / CLI
    (elsewhere.parent / "libraries").unlink()
    cli.mkdir(parents=True)
    (cli / "setup.sh").write_text(setup.replace("system_python=/usr/bin/python3", "system_python=/nowhere/python3"))
    return elsewhere


def stub(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    command = folder / name
    command.write_text(f"#!/bin/sh\n{body}\n")
    command.chmod(0o755)


def test_a_bisect_skips_a_commit_where_nothing_can_be_set_up(without_python: Path) -> None:
    tools = without_python.parent / "tools"
    for name in ("dirname", "readlink", "env", "uname"):
        stub(tools, name, f'exec /usr/bin/{name} "$@"')
    assert run("sla", "--candidate", "x", path=str(tools), script=without_python).returncode == 6
    assert run("sla", "--candidate", "x", "--bisect", path=str(tools), script=without_python).returncode == 125
    assert run("sla", "--bisect", "--candidate").returncode == 125


@pytest.mark.parametrize("words", [["help"], ["--help"], ["-h"]])
def test_help_lists_commands_and_exit_statuses_where_nothing_is_installed(words: list[str], elsewhere: Path) -> None:
    done = run(*words, script=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    for name in COMMANDS:
        assert f"\n    {name} " in done.stdout
    for status in ExitStatus:
        assert f"\n  {status:d} " in done.stdout
    assert not (elsewhere.parent / ".venv").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_needs_nothing_that_is_installed(name: str, elsewhere: Path) -> None:
    done = run(name, "--help", script=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: ./run {name} ")
    assert done.stdout == run("help", name, script=elsewhere).stdout
    assert not (elsewhere.parent / ".venv").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus"], "there is no command 'bogus': see ./run --help."),
        (["slaa"], "there is no command 'slaa': see ./run --help. Did you mean \"sla\"?"),
        (["help", "bogus"], "there is no command 'bogus': see ./run --help."),
        (["\x1b[31m"], "there is no command '\\x1b[31m': see ./run --help."),
        (["setup", "now"], "now is one argument too many. Try `./run setup --help`."),
        (
            ["report", "--outputdri=x"],
            'there is no option --outputdri. Did you mean "--outputdir"? Try `./run report --help`.',
        ),
        (["report", "--outputdir"], "argument --outputdir/-d: expected one argument. Try `./run report --help`."),
        (["calibrate", "a", "b"], "b is one argument too many. Try `./run calibrate --help`."),
        (["doctor", "--nope", "x"], "there is no option --nope. Try `./run doctor --help`."),
        (["sla", "--testbeds"], "argument --testbeds: expected one argument. Try `./run sla --help`."),
        (["sla", "--resume"], "argument --resume: expected one argument. Try `./run sla --help`."),
        (
            ["check", "bogus"],
            "argument NAME: invalid choice: 'bogus' (choose from 'lint', 'types', 'promises', 'dryrun',"
            " 'unit', 'integration', 'docs'). Try `./run check --help`.",
        ),
        (["check"], "the following arguments are required: NAME. Try `./run check --help`."),
        (["check", "lint", "x"], "check lint takes no arguments, and x is one. Try `./run check --help`."),
    ],
)
def test_wrong_usage_is_one_sentence_before_any_installation(arguments: list[str], said: str, elsewhere: Path) -> None:
    done = run(*arguments, script=elsewhere)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"run: {said}\n")
    assert not (elsewhere.parent / ".venv").exists()


def test_no_command_at_all_is_status_2_and_the_help(elsewhere: Path) -> None:
    done = run(script=elsewhere)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == run("--help", script=elsewhere).stdout


@pytest.mark.parametrize("shell", ["--help | true", "--help >&- 2>&- <&-"])
def test_help_that_nobody_reads_is_no_mistake(shell: str, elsewhere: Path) -> None:
    done = subprocess.run(
        ["/bin/bash", "-c", f"bash '{elsewhere}' {shell}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["sla", "--help"], ["report"], []])
def test_without_python_there_is_one_sentence(arguments: list[str], without_python: Path) -> None:
    done = run(*arguments, script=without_python)
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == "run: there is no /nowhere/python3, which reads the command line: ./run setup installs it.\n"


@pytest.mark.parametrize(
    ("name", "machine"),
    [("setup", "elsewhere"), ("setup", "without_python"), ("sla", "without_python"), ("tests", "without_python")],
)
def test_another_processor_is_refused_before_anything_is_installed_and_without_python(
    name: str, machine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    stub(tmp_path / "bin", "uname", "echo aarch64")
    script = request.getfixturevalue(machine)
    done = run(name, path=f"{tmp_path}/bin:{os.environ['PATH']}", script=script)
    assert done.returncode == 6
    assert "aarch64" in done.stderr


def test_a_python_that_is_too_old_is_said(tmp_path: Path, without_python: Path) -> None:
    stub(tmp_path / "bin", "python3", "exit 1")
    setup = without_python.parent / CLI / "setup.sh"
    setup.write_text(setup.read_text().replace("/nowhere/python3", f"{tmp_path}/bin/python3"))
    done = run("--help", script=without_python)
    assert (done.returncode, done.stdout) == (6, "")
    assert "python3 is too old: Python 3.11 is needed" in done.stderr


def test_packages_that_cannot_be_installed_become_an_administrators_command(tmp_path: Path, elsewhere: Path) -> None:
    bin_folder = tmp_path / "bin"
    stub(bin_folder, "uname", "echo x86_64")
    stub(bin_folder, "dpkg-query", "exit 1")
    stub(bin_folder, "apt-cache", "echo '  Depends: librte-eal24'")
    stub(bin_folder, "apt-get", 'case "$*" in *update*) ;; *) exit 100 ;; esac')
    stub(bin_folder, "sudo", "exit 1")
    done = run("setup", path=f"{bin_folder}:{os.environ['PATH']}", script=elsewhere)
    assert done.returncode == 6
    command = done.stderr.splitlines()[-1]
    assert "apt-get install" in command
    assert "'librte-net-memif24' 'librte-mempool-ring24'" in command
    assert not (tmp_path / ".venv").exists()


SETUP = LIBRARIES / "ctbench" / "cli" / "setup.sh"
INSTALLED = 'for each in "$@"; do case $each in --*) ;; *) echo "$each installed";; esac; done'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine where everything is installed and apt knows a kernel of version 1.2."""
    stub(tmp_path / "bin", "dpkg-query", INSTALLED)
    programs = tmp_path / "bin"
    stub(programs, "apt-cache", 'case $1 in depends) echo "  Depends: linux-image-k";; *) echo "Version: 1.2";; esac')
    stub(tmp_path / "bin", "apt-get", 'case "$*" in *download*) touch linux-image-k_1.2.deb;; *) exit 100;; esac')
    stub(tmp_path / "bin", "dpkg-deb", 'mkdir -p "$3/boot" && echo unpacked >"$3/boot/vmlinuz-k"')
    (tmp_path / "venv").mkdir()
    return tmp_path


def emulated(machine: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    script = f'set -euo pipefail; root={machine}; venv={machine}/venv; say() {{ echo "$*"; }}; source {SETUP}; '
    script += f"emulated {' '.join(words)}"
    path = {"PATH": f"{machine}/bin:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", script], env=path | more, capture_output=True, text=True, check=False, timeout=30
    )


def test_the_kernel_is_unpacked_once_and_a_newer_one_where_it_is_asked_for(machine: Path) -> None:
    left = machine / "venv" / "emulated-kernel.new"  # by an unpacking that was killed
    left.mkdir()
    (left / "half").touch()
    assert "unpacking linux-image-k 1.2" in emulated(machine).stdout
    folder = machine / "venv" / "emulated-kernel"
    assert (folder / "boot/vmlinuz-k").read_text() == "unpacked\n"
    assert (folder / "version").read_text() == "linux-image-k 1.2\n"
    assert emulated(machine, "newest").stdout == ""
    (folder / "version").write_text("linux-image-k 1.1\n")
    assert emulated(machine).stdout == ""
    assert "unpacking linux-image-k 1.2" in emulated(machine, "newest").stdout
    assert [each.name for each in (machine / "venv").iterdir()] == ["emulated-kernel"]


def test_what_is_there_is_found_without_apt_and_kept_where_apt_has_nothing_newer(machine: Path) -> None:
    emulated(machine)
    stub(machine / "bin", "apt-cache", "exit 100")
    assert emulated(machine, "newest").stdout == ""
    assert (machine / "venv" / "emulated-kernel" / "version").exists()
    for name in ("apt-cache", "apt-get", "dpkg-deb"):
        stub(machine / "bin", name, f"echo {name}; exit 1")
    assert emulated(machine).stdout == ""


def test_it_can_be_declined(machine: Path) -> None:
    done = emulated(machine, CONNTRACK_SLA_EMULATED="no")
    assert "declined" in done.stdout and "skipped" in done.stdout
    assert list((machine / "venv").iterdir()) == []


@pytest.mark.parametrize(
    ("stubs", "said"),
    [
        ({"apt-cache": "exit 100"}, ()),
        ({"apt-get": "exit 100"}, ()),
        ({"dpkg-deb": "exit 2"}, ()),
        ({"dpkg-query": "exit 1", "sudo": '[ "$*" = "-n true" ]'},
         ("installing qemu-system-x86 busybox-static dash tcc", "could not be installed: the tests with an emulated")),
    ],
)  # fmt: skip
def test_without_kernel_or_packages_others_go_on(machine: Path, stubs: dict[str, str], said: tuple[str, ...]) -> None:
    for name, body in stubs.items():
        stub(machine / "bin", name, body)
    done = emulated(machine)
    assert done.returncode == 0
    assert all(text in done.stdout for text in (*said, "the tests with an emulated machine will be skipped"))
    assert list((machine / "venv").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root installs packages")
def test_who_cannot_be_root_is_told_so_in_one_sentence(machine: Path) -> None:
    stub(machine / "bin", "dpkg-query", "exit 1")
    stub(machine / "bin", "sudo", "echo sudo: a password is required >&2; exit 1")
    done = emulated(machine)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert "can be installed by root only, with ./run setup" in done.stdout
    assert "will be skipped" in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_who_may_not_change_the_venv_is_told_whose_it_is(machine: Path) -> None:
    (machine / "venv").chmod(0o555)
    done = emulated(machine)
    (machine / "venv").chmod(0o755)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert f"below {machine}/venv, which {getpass.getuser()} may change" in done.stdout


#: Makes a .venv as venv does; the Python in it is the same, and runs no program but says so.
STAND_IN = """#!/bin/sh
echo "$*" >>{calls}
case "$*" in
"-I -c print"*) echo yes ;;
"-m venv --clear "*)
    rm -rf "$4"/* && mkdir -p "$4/bin" && cp {itself} "$4/bin/python" ;;
"-m pip config list") printf '%s\\n' "{settings}" ;;
"-m pip install"*) env | grep ^PIP_ >>{calls}; {pip} ;;
*/cli/bootstrap.py*) echo venv >&3; {bootstrap} ;;
*/cli/__main__.py*) echo "entered $*"; env | grep ^PYTHON | sort >>{calls} ;;
esac
"""


class Checkout:
    """A copy of ./run with a Python of its own."""

    def __init__(self, folder: Path, pip: str = ":", settings: str = "", bootstrap: str = ":") -> None:
        """What the Python does where it is pip or ctbench.cli.bootstrap, and the lines of pip's settings."""
        self.folder = folder
        (folder / CLI).mkdir(parents=True)
        self.calls, python = folder / "calls", folder / "python3"
        python.write_text(
            STAND_IN.format(calls=self.calls, itself=python, pip=pip, settings=settings, bootstrap=bootstrap)
        )
        python.chmod(0o755)
        shutil.copy(ROOT / "run", folder)
        setup = (ROOT / CLI / "setup.sh").read_text()
        (folder / CLI / "setup.sh").write_text(setup.replace("/usr/bin/python3", str(python)))
        for name in ("requirements.txt", "requirements-dev.txt"):
            shutil.copy(ROOT / name, folder)

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def run(self, *before: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """`./run report`, which needs nothing but the .venv, by way of what is `before`."""
        self.calls.write_text("")
        return subprocess.run(
            [*before, "/bin/bash", str(self.folder / "run"), "report", "x"], env={**os.environ, **environment},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def made(self) -> int:
        return self.calls.read_text().count("-m venv --clear")


@pytest.fixture
def made_checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    assert made.run().returncode == 0
    return made


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


#: What may be anything: nobody's number, and an environment of which nothing is left or right.
NAMELESS = ("unshare", "--user", "--map-user=734512", "--map-group=734512")
BARE = ("env", "-i", f"PATH={os.environ['PATH']}", "LANG=xx_YY.nothing", "TMPDIR=/nowhere", "TERM=none")


TIGHT = ("sh", "-c", 'umask 077; exec "$@"', "sh")


@pytest.mark.parametrize("before", [NAMELESS, BARE, (*TIGHT, *BARE, *NAMELESS)])
def test_whoever_starts_it_and_whatever_the_environment_says_it_runs(before: tuple[str, ...], tmp_path: Path) -> None:
    made_checkout = Checkout(tmp_path)

    for _ in range(2):  # it is made, and then it is used
        done = made_checkout.run(*before)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("entered")


@pytest.mark.parametrize("ends", ["exit 1", "exit 77", "kill -SEGV $$"])
def test_a_set_up_that_fails_unforeseen_is_never_a_judgement(ends: str, tmp_path: Path) -> None:
    done = Checkout(tmp_path, bootstrap=ends).run()

    assert done.returncode == ExitStatus.NOTHING_MEASURED
    assert "the set-up failed with status" in done.stderr.splitlines()[-1]


DAMAGES = {
    "empty": "rm -r .venv && mkdir .venv",
    "a file": "rm -r .venv && echo x >.venv",
    "a dangling link": "rm -r .venv && ln -s /nowhere/at/all .venv",
    "no Python": "rm .venv/bin/python",
    "a Python that may not be started": "chmod 644 .venv/bin/python",
    "a Python that does nothing": "echo '#!/bin/sh' >.venv/bin/python",
    "no stamp": "rm .venv/stamp-requirements",  # as a damaged package leaves it (ctbench.cli.error_boundary)
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
    assert (
        f"{made_checkout.venv} belongs to nobody and cannot be read by root: clone the project for yourself."
        in done.stderr
    )
    assert made_checkout.made() == 0


def test_packages_that_cannot_be_installed_are_status_6_and_tried_again(tmp_path: Path) -> None:
    made_checkout = Checkout(tmp_path, pip="exit 1")

    for _ in range(2):
        done = made_checkout.run()
        assert done.returncode == 6
        assert "pip could not install requirements.txt" in done.stderr
        assert "-m pip install" in made_checkout.calls.read_text()


def test_of_pips_environment_and_files_only_sources_of_packages_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    files = ["install.prefix='/x'", "global.retries='9'", "install.retries='3'", r"global.find-links='\\n/a\\n/b'"]
    made_checkout = Checkout(tmp_path, settings="\n".join([*files, "list.proxy='other'"]))

    done = made_checkout.run(PIP_TARGET="/x", PIP_DRY_RUN="1", PIP_NO_DEPS="1", PIP_INDEX_URL="https://a.example/=")

    assert done.returncode == 0
    assert {line for line in made_checkout.calls.read_text().splitlines() if line.startswith("PIP_")} == {
        "PIP_CONFIG_FILE=/dev/null",
        "PIP_INDEX_URL=https://a.example/=",
        "PIP_RETRIES=3",
        "PIP_FIND_LINKS= /a /b",
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_what_ends_the_installation_ends_it_at_once_with_all_it_runs(number: signal.Signals, tmp_path: Path) -> None:
    made_checkout = Checkout(tmp_path, pip=f"echo $$ >{tmp_path}/pid; exec sleep 60")
    argv = ["/bin/bash", str(made_checkout.folder / "run"), "report"]
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
