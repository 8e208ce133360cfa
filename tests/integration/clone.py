"""A fresh clone of an ordinary user, in which the tests of the documents type their commands."""

import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import document_commands
import documents
import pytest
from documents import Command
from integration.small_testbed import write_small
from whole_records import read_all

from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.dut.ovs.settings import OvsInstallation
from icount import UNPACKED
from tools.all_tests import DROP, NOBODY, copy_checkout, copy_venv, folder_that_goes

#: Runs that the documents talk about; a run that is there already serves.
RUNS = ("20260101T000000Z-1", "last-release", "this-one")
#: Where the reader of docs/adding.md adds a promise.
PROMISES = "suites/02__ovs_dpdk/02__conntrack.robot"
RECORD = documents.ROOT.joinpath(
    "tests", "data", "golden-run", "records", "ovs-dpdk-conntrack.1-cpu-1-queue-short-lived-connections.json"
)
#: Variables of these tests, which a user does not have.
OURS = (
    "PYTHONPATH", RESULTS_VARIABLE, "VIRTUAL_ENV", "ROBOT_OPTIONS", "XDG_STATE_HOME",
    "XDG_CACHE_HOME", "TREX_HOME",
)  # fmt: skip
#: What is said after each dry run, on a line before its status.
END = "== it has ended\n"
#: Does what each line that it reads asks of `./run`, in a process for each.
DRY_RUNS = f"""
import os, shlex, sys
sys.path.insert(0, "libraries")
import ConntrackSLA
from ctbench.cli import main, sla
for line in sys.stdin:
    if os.fork() == 0:
        sys.argv[1:] = shlex.split(line)
        main.run()
    print({END!r} + str(os.waitstatus_to_exitcode(os.wait()[1])))
"""


@dataclass
class Clone:
    """A clone of an ordinary user."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "clone"

    @property
    def _how(self) -> dict[str, Any]:
        """How a program of this user is started."""
        inherited = {name: value for name, value in os.environ.items() if name not in OURS}
        settled = {"HOME": str(self.home), "USER": "nobody", "LOGNAME": "nobody", "LC_ALL": "C.UTF-8"}
        # A terminal gets each line at once, so stderr is merged where it was written.
        environment = inherited | settled | {"PYTHONUNBUFFERED": "1"}
        return {"cwd": self.folder, "env": environment, "stdout": PIPE, "stderr": STDOUT, "text": True}

    def type(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command line as a shell does."""
        typed = [*_drop(), "bash", "-c", command]
        return subprocess.run(typed, stdin=subprocess.DEVNULL, timeout=600, check=False, **self._how)

    @cached_property
    def _dry_runs(self) -> "subprocess.Popen[str]":
        return subprocess.Popen([*_drop(), ".venv/bin/python", "-c", DRY_RUNS], stdin=PIPE, **self._how)

    def dry_run(self, command: str) -> "subprocess.CompletedProcess[str]":
        """`./run sla` in a dry run, by a process that has everything imported: a shell and a Python of its own take
        longer than the run."""
        asked, answers = self._dry_runs.stdin, self._dry_runs.stdout
        assert asked and answers
        print(command.removeprefix("./run "), file=asked, flush=True)
        said = list(takewhile(END.__ne__, answers))
        return subprocess.CompletedProcess(command, int(answers.readline()), "".join(said))

    def _busy(self, done: "subprocess.CompletedProcess[str]") -> str:
        """Why a run measured nothing, where no fault is why; empty for any other command."""
        if done.returncode not in (3, 6) or "Records: " not in done.stdout:
            return ""
        records, _ = read_all(self.folder / "results" / "latest")
        unsaid = (each for each in records if each.verdict == "not measured" and each.limited_by != "fault")
        return next((each.verdict_reason for each in unsaid), "")

    def follow(self, command: Command) -> str:
        """Type what stands for a command of a document; what it said. Once more where others left too little of the
        machine to measure something, and skipped then."""
        typed = document_commands.typed(command)
        is_dry = typed.startswith("./run ") and document_commands.DRY in typed
        done = self.dry_run(typed) if is_dry else self.type(typed)
        if self._busy(done):
            done = self.type(typed)
        if reason := self._busy(done):
            pytest.skip(f"This machine was too busy to measure anything: {reason}")
        assert done.returncode in document_commands.STATUSES.get(command.text, {0}), f"{typed}\n{done.stdout}"
        assert "Traceback" not in done.stdout
        return done.stdout

    def own(self) -> None:
        """Everything in it belongs to its user."""
        if os.geteuid() == 0:
            for path in (self.home, *self.home.rglob("*")):
                if path.lstat().st_uid != NOBODY:
                    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def copy(self, kind: str, source: Path, name: str, old: str = "", new: str = "") -> None:
        """Copy a file to variables/KIND/ under another name, which it carries, with one more replacement."""
        text = re.sub(r"^name: .*$", f"name: {name}", source.read_text(), count=1, flags=re.MULTILINE)
        assert old in text
        (self.folder / "variables" / kind / f"{name}.yaml").write_text(text.replace(old, new))


def _drop() -> tuple[str, ...]:
    return DROP if os.geteuid() == 0 else ()


@pytest.fixture(scope="module")
def clone(able_machine: None) -> Iterator[Clone]:
    """What `git clone` would bring, were this checkout committed now, set up once; with what belongs to its reader."""
    with folder_that_goes() as folder:
        made = Clone(folder)
        copy_checkout(made.folder)
        _bring_venv(made)
        _bring_kernel(made)
        _prepare(made)
        made.own()
        yield made
        if "_dry_runs" in vars(made):
            made._dry_runs.communicate()


def _bring_venv(clone: Clone) -> None:
    """The checkout's own, where ./run made it as it would here: ./run itself shows that it does, half a minute each."""
    if (documents.ROOT / ".venv" / "stamp-requirements").exists():
        copy_venv(documents.ROOT, clone.folder)
    else:
        clone.own()
        done = clone.type("./run doctor")  # it would remove what is brought before
        assert (clone.folder / ".venv" / "bin" / "robot").exists(), done.stdout


def _bring_kernel(clone: Clone) -> None:
    """The kernel that ./run has unpacked for this checkout serves the clone as well: 27 MB to get, 120 MB to unpack."""
    if UNPACKED.is_dir() and not (clone.folder / ".venv" / UNPACKED.name).exists():
        shutil.copytree(UNPACKED, clone.folder / ".venv" / UNPACKED.name, symlinks=True)


def _prepare(clone: Clone) -> None:
    """The reader's own files, earlier runs and new promise, of which the documents speak."""
    results = clone.folder / "results"
    for name in RUNS:
        (results / name / "records").mkdir(parents=True)
        shutil.copy(RECORD, results / name / "records")
    (results / "latest").symlink_to(RUNS[0])
    for link, to in zip(OvsInstallation(str(results / "ovs-3.3")).files, OvsInstallation().files, strict=True):
        Path(link).parent.mkdir(parents=True, exist_ok=True)
        Path(link).symlink_to(to)
    local = clone.folder / "variables" / "testbeds" / "local.yaml"
    write_small(local)
    clone.copy("testbeds", local, "mylab")
    clone.copy("testbeds", local.with_name("emulated.yaml"), "mykernel")
    clone.copy("sla", clone.folder / "variables" / "sla" / "local.yaml", "mykernel")
    for lab in ("lab-a", "lab-b"):  # on this machine, which may have CPUs for one of them only
        clone.copy("testbeds", local, lab, "\noversubscribe: false\n", "\noversubscribe: true\n")
    clone.copy("sla", clone.folder / "variables" / "sla" / "local.yaml", "release-3")
    adding = (documents.ROOT / "docs" / "adding.md").read_text()
    for language, name in {"robotframework": PROMISES, "yaml": "variables/sla/local.yaml"}.items():
        block = re.search(rf"^ *```{language}\n(.*?)^ *```$", adding, re.DOTALL | re.MULTILINE)
        file = clone.folder / name
        file.write_text(file.read_text() + textwrap.dedent(block[1]))
