"""README.md and docs/ are typed in, as an ordinary user, in a fresh clone with a .venv that ./run makes there."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from pathlib import Path

import document_commands
import documents
import numba
import pytest
import yaml
from document_outputs import FORMS
from documents import Command
from numba.core.caching import UserProvidedCacheLocator
from unit.paired import start_record

import ctbench.traffic.software  # noqa: F401 - says where numba keeps what it compiles
from ctbench.base.paths import RESULTS_VARIABLE
from ctbench.base.statuses import ExitStatus
from ctbench.cli.checks.ordinary_user import DROP, NOBODY
from ctbench.cli.child_runs import ChildRun
from ctbench.compare.starts import pair_starts, same_starts
from ctbench.dut.emulated.kernel import UNPACKED
from ctbench.dut.topology import Topology
from ctbench.results import store
from ctbench.results.comparison import Comparison

COMMANDS, SHOWN = documents.everything()
#: Every command once, in the order in which a reader meets them: what one leaves, a later one may need.
ONCE = list({command.text: command for command in [*COMMANDS, *filter(attrgetter("in_block"), COMMANDS)]}.values())
RUNNABLE = [command for command in ONCE if document_commands.way(command)]
#: Runs that the documents talk about; a run that is there already serves.
RUNS = ("20260101T000000Z-1", "last-release", "this-one")
#: Where the reader of docs/adding.md adds a promise.
PROMISES = "suites/02__ovs_dpdk/02__conntrack.robot"
RECORD = documents.ROOT.joinpath(
    "tests", "data", "golden-run", "records", "ovs-dpdk-conntrack.1-cpu-1-queue-short-lived-connections.json"
)
#: Variables of these tests, which a user does not have.
OURS = (
    "PYTHONPATH",
    RESULTS_VARIABLE,
    "VIRTUAL_ENV",
    "NUMBA_CACHE_DIR",
    "ROBOT_OPTIONS",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "TREX_HOME",
)


@dataclass
class Clone:
    """A clone of an ordinary user, and what the runs in it have shown."""

    home: Path
    #: By what they measured; and what was tried, whether the machine had the time for it or not.
    measured: dict[str, str] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    #: What was typed side by side with a command before it, by what was typed.
    ahead: "dict[str, subprocess.CompletedProcess[str]]" = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home / "clone"

    def type(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command line as a shell does."""
        inherited = {name: value for name, value in os.environ.items() if name not in OURS}
        # A terminal gets each line at once, so stderr is merged where it was written.
        settled = {"HOME": str(self.home), "USER": "nobody", "LOGNAME": "nobody", "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            [*(DROP if os.geteuid() == 0 else []), "bash", "-c", command],
            cwd=self.folder,
            env=inherited | settled | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )

    def type_with(self, typed: str, more: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command line, and side by side with it, on all CPUs, those of `more`, whose turn comes later."""
        if typed not in self.ahead:
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                self.ahead |= zip([typed, *more], pool.map(self.type, [typed, *more]), strict=True)
        return self.ahead.pop(typed)

    def own(self) -> None:
        """Everything in it belongs to its user."""
        if os.geteuid() == 0:
            for path in (self.home, *self.home.rglob("*")):
                if path.lstat().st_uid != NOBODY:
                    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.write_text(text)
        self.own()

    def copy(self, kind: str, source: Path, name: str, old: str = "", new: str = "") -> None:
        """Copy a file to variables/KIND/ under another name, which it carries, with one more replacement."""
        text = re.sub(r"^name: .*$", f"name: {name}", source.read_text(), count=1, flags=re.MULTILINE)
        assert old in text
        self.write(f"variables/{kind}/{name}.yaml", text.replace(old, new))


@pytest.fixture(scope="module")
def clone(able_machine: None) -> Iterator[Clone]:
    """What `git clone` would bring, were this checkout committed now, set up once; with what belongs to its reader."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={documents.ROOT}", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=documents.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip(f"This is no clone, so there is nothing to clone: {listed.stderr.strip()}")
    with tempfile.TemporaryDirectory(prefix="ctbench-documents-", ignore_cleanup_errors=True) as folder:
        made = Clone(Path(folder))
        for name in listed.stdout.split("\0"):
            source, target = documents.ROOT / name, made.folder / name
            if name and source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        made.own()
        done = made.type("./run doctor")  # makes the .venv, which would remove what is brought before
        assert (made.folder / ".venv" / "bin" / "robot").exists(), done.stdout
        _bring_compiled_code(made)
        _bring_kernel(made)
        done = made.type("./run setup")
        assert done.returncode == 0, done.stdout
        _prepare(made)
        yield made


def _bring_compiled_code(clone: Clone) -> None:
    """What numba compiled of these sources serves the clone as well, filed under the clone's folder: 20 seconds."""
    here, there = (folder / "libraries/ctbench/traffic/software/kernel.py" for folder in (documents.ROOT, clone.folder))
    compiled = Path(numba.config.CACHE_DIR)
    ours, theirs = (UserProvidedCacheLocator.get_suitable_cache_subpath(str(file)) for file in (here, there))
    if (compiled / ours).is_dir():
        user = pwd.getpwuid(clone.folder.stat().st_uid).pw_name
        shutil.copytree(compiled / ours, clone.folder / ".venv" / f"numba-{user}" / compiled.name / theirs)
        clone.own()


def _bring_kernel(clone: Clone) -> None:
    """The kernel that ./run has unpacked for this checkout serves the clone as well: 27 MB to get, 120 MB to unpack."""
    if UNPACKED.is_dir():
        shutil.copytree(UNPACKED, clone.folder / ".venv" / UNPACKED.name, symlinks=True)
        clone.own()


def _prepare(clone: Clone) -> None:
    """The reader's own files, earlier runs and new promise, of which the documents speak."""
    results = clone.folder / "results"
    for name in RUNS:
        (results / name / "records").mkdir(parents=True)
        shutil.copy(RECORD, results / name / "records")
    compared, made = clone.folder / document_commands.COMPARED, document_commands.STARTS - 1
    for start in [*same_starts(compared, made), *pair_starts(compared, made)]:
        store.write(start_record(0.99**start.exponent, str(start.folder), topology=Topology()), start.folder)
        ChildRun(start.folder).mark_done(ExitStatus.MET)
    for role in ("base", "candidate"):  # whose instructions take a minute: test_emulated.py has fewer boots
        (compared / "counts" / role).mkdir(parents=True)
        ChildRun(compared / "counts" / role).mark_done(ExitStatus.MET)
    local = documents.ROOT / "variables" / "testbeds" / "local.yaml"
    clone.copy("testbeds", local, "mylab")
    clone.copy("testbeds", local.with_name("emulated.yaml"), "mykernel")
    clone.copy("sla", documents.ROOT / "variables" / "sla" / "local.yaml", "mykernel")
    for lab in ("lab-a", "lab-b"):  # on this machine, which may have CPUs for one of them only
        clone.copy("testbeds", local, lab, "\noversubscribe: false\n", "\noversubscribe: true\n")
    clone.copy("sla", document_commands.FLOORS, "release-3")
    adding = (documents.ROOT / "docs" / "adding.md").read_text()
    for language, file in {"robotframework": PROMISES, "yaml": "variables/sla/local.yaml"}.items():
        block = re.search(rf"^ *```{language}\n(.*?)^ *```$", adding, re.DOTALL | re.MULTILINE)
        assert block
        clone.write(file, (clone.folder / file).read_text() + textwrap.dedent(block[1]))


@pytest.mark.parametrize("command", RUNNABLE, ids=lambda command: f"{command.place}: {command.text}")
def test_a_command_of_the_documents_works(clone: Clone, command: Command) -> None:
    way = document_commands.way(command)
    assert way is not None
    short = bool(way.measures) and way.measures not in clone.tried
    clone.tried.add(way.measures)
    typed = way.short if short else way.typed
    if "SLA:mine" in typed and not (clone.folder / "variables" / "sla" / "mine.yaml").exists():
        pytest.skip("This machine was too busy to calibrate it.")
    done = clone.type_with(typed, [] if short else _dry_runs_behind(clone, command))
    _skip_where_the_machine_was_busy(clone, done)
    assert done.returncode in way.statuses, f"{typed}\n{done.stdout}"
    assert "Traceback" not in done.stdout
    if short:
        clone.measured[way.measures] = done.stdout
    if command.output:
        _is_like(command.output, done.stdout)
    if command.text.startswith("cp variables/testbeds/example-trex-xeon.yaml"):
        # The sentence before it says so.
        copied = clone.folder / "variables" / "testbeds" / "mylab.yaml"
        clone.copy("testbeds", copied, "mylab")


def _dry_runs_behind(clone: Clone, command: Command) -> list[str]:
    """Of a dry run, those that follow at once: they leave nothing that the others could find."""

    def is_dry(way: document_commands.Way | None) -> bool:
        return way is not None and way.measures in ("", *clone.tried) and document_commands.is_dry(way.typed)

    behind = takewhile(is_dry, map(document_commands.way, RUNNABLE[RUNNABLE.index(command) :]))
    return [way.typed for way in behind if way][1:]


def _skip_where_the_machine_was_busy(clone: Clone, done: "subprocess.CompletedProcess[str]") -> None:
    if done.returncode in (3, 6) and "Records: " in done.stdout:
        records, _ = store.read_all(clone.folder / "results" / "latest")
        for record in records:
            if record.limited_by == "generator":
                pytest.skip(f"This machine was too busy to measure anything: {record.verdict_reason}")


def _is_like(shown: str, real: str) -> None:
    """A command printed what a document shows, in that order; `...` stands for any lines."""
    known = _words(real)
    for part in shown.strip().split("\n...\n"):
        begin, wanted = known.find(_words(part)), _words(part)
        assert begin >= 0, f"{part}\nis not in\n{real}"
        known = known[begin + len(wanted) :]


def _words(text: str) -> str:
    """A text without its spaces, and without how a resolver words that there is no such host."""
    return " ".join(re.sub(r"\((Name or service not known|Temporary failure in name resolution)\)", "", text).split())


def test_what_the_documents_show_of_a_run_has_the_form_of_a_real_one(clone: Clone) -> None:
    real = clone.measured.get("./run sla")
    if real is None:
        pytest.skip("./run sla was not measured here.")
    for shown in SHOWN:
        form = FORMS[document_commands.output_of(shown) or ""]
        assert form(shown.text) == form(real), shown.place


def test_the_floors_that_calibrate_wrote_are_those_that_the_next_run_judged_by(clone: Clone) -> None:
    if not {"./run calibrate mine", "./run sla -v SLA:mine"} <= set(clone.measured):
        pytest.skip("This machine was too busy to calibrate it.")
    said = clone.measured["./run calibrate mine"]
    assert "calibrate: run 1 of about 5, at most 5; the time left is known after the first" in said
    assert "calibrate: run 2 of about 5, at most 5; about " in said
    mine = yaml.safe_load((clone.folder / "variables" / "sla" / "mine.yaml").read_text())
    (folder,) = [line for line in clone.measured["./run sla -v SLA:mine"].splitlines() if line.startswith("Results: ")]
    (record,), _ = store.read_all(Path(folder.removeprefix("Results: ")))
    assert mine["source"].startswith("5 runs on ")
    assert record.floor.source == mine["source"]
    promised = mine[record.topology.key][record.profile.name]["cps"]
    assert [each.written for each in record.thresholds if each.metric == "cps"] == [promised]
    assert (promised != ">= 1k") == ("calibrate: floors of this machine: 1, of " in said)


def test_the_comparison_that_was_stopped_made_the_starts_that_were_left(clone: Clone) -> None:
    said = clone.measured.get(document_commands.COMPARE)
    if said is None:
        pytest.skip("./run compare --installations was not measured here.")
    assert re.findall(r"^compare: (.*), start (\d) of 5", said, re.MULTILINE) == [
        ("base against itself", "5"),
        ("candidate against base", "5"),
    ]
    found = Comparison.model_validate_json((clone.folder / document_commands.COMPARED / "compare.json").read_text())
    (test,) = found.tests
    assert test.starts and len(test.starts.ratios) == len(test.starts.same) == 5
