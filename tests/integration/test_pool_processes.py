"""The processes of a pool, whichever of them is ended and however: with suites that need no testbed, in a folder with a
blank in its name."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration.whole_run import Run
from robot.api import ExecutionResult

from ctbench.base.paths import LIBRARIES
from ctbench.results import store

pytestmark = pytest.mark.beside_others

#: Runs what its arguments select on two testbeds that have nothing.
DRIVER = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(LIBRARIES)!r})
from ctbench.cli.robot import pool
from ctbench.testbed.pool import Member
members = [Member(name, name) for name in ("one", "two")]
arguments = ["--outputdir", "output", *sys.argv[1:]]
sys.exit(pool.run(members, Path("output").absolute(), arguments, "run-1"))
"""
SUITE = """
*** Test Cases ***
{test}
    [Tags]    {tag}
    Log To Console    %{{CTBENCH_POOL}}
    Log To Console    asleep in ${{EXECDIR}}
    Sleep    ${{PAUSE}}
"""
#: Removes the tests without a tag, as Robot Framework's --include would.
MODIFIER = """
from robot.api import SuiteVisitor
class only(SuiteVisitor):
    def __init__(self, tag):
        self.tag = tag
    def start_suite(self, suite):
        suite.filter(included_tags=self.tag)
"""
Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a run of six suites, in a folder of its own; ends it when the test is over."""
    folder = tmp_path / "a folder"
    (folder / "suites").mkdir(parents=True)
    (folder / "output").mkdir()
    (folder / "driver.py").write_text(DRIVER)
    (folder / "only.py").write_text(MODIFIER)
    for number in range(6):
        text = SUITE.format(test=f"T{number}", tag="even" if number % 2 == 0 else "odd")
        (folder / "suites" / f"s{number}.robot").write_text(text)
    runs: list[Run] = []

    def begin(pause: float, *options: str) -> Run:
        variable = ["-v", f"PAUSE:{pause}"]
        runs.append(Run([sys.executable, str(folder / "driver.py"), *variable, *options, "suites"], folder))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()


def consoles(run: Run) -> list[str]:
    return [path.read_text() for path in run.output.glob("pabot_results/*/console.txt")]


def asleep(run: Run) -> None:
    """Wait until two suites sleep."""
    run.wait_until(lambda: sum("asleep" in text for text in consoles(run)) == 2)


def reasons(run: Run) -> dict[str, str]:
    """Of tests without a record."""
    return {test.test: test.reason for test in store.read_without_record(run.output)[0]}


def assert_nothing_is_left(run: Run) -> None:
    assert run.processes() == {}
    folders = (run.folder, run.output, run.temporary)
    assert [path for folder in folders for path in folder.iterdir() if path.name.startswith((".", "pabot"))] == []


def test_what_the_user_names_is_found_in_their_folder(start: Start) -> None:
    run = start(0, "--prerunmodifier", "only.py:even", "--removekeywords", "passed")

    assert run.wait() == 0, run.said
    result = ExecutionResult(str(run.output / "output.xml")).suite
    assert [(test.full_name, test.status) for test in result.all_tests] == [
        (f"Suites.S{number}.T{number}", "PASS") for number in (0, 2, 4)
    ]
    said = [path.read_text() for path in sorted((run.output / "console").iterdir())]
    assert [f"asleep in {run.folder}\n" in text for text in said] == [True] * 3
    given = [
        json.loads(next(line for line in text.splitlines() if "run_id" in line).partition(" ")[2]) for text in said
    ]
    assert {(each["run_id"], each["member"]["suite"]) for each in given} == {("run-1", number) for number in range(3)}
    assert {each["member"]["name"] for each in given} <= {"one", "two"}
    assert {each["other_tests"] for each in given} == {2}
    assert_nothing_is_left(run)


def test_what_robot_framework_writes_has_the_form_and_the_names_that_are_asked_for(start: Start) -> None:
    run = start(0, "--output", "x.xml", "--legacyoutput", "--xunit", "junit.xml")

    assert run.wait() == 0, run.said
    assert "starttime=" in (run.output / "x.xml").read_text()
    assert (run.output / "junit.xml").read_text().count("<testcase") == 6
    assert_nothing_is_left(run)


def test_a_run_that_is_told_to_end_merges_what_its_processes_found(start: Start) -> None:
    run = start(60)
    asleep(run)
    run.popen.send_signal(signal.SIGTERM)

    assert run.wait() == 1, run.said
    tests = {test.name: test.message for test in ExecutionResult(str(run.output / "output.xml")).suite.all_tests}
    assert tests == dict.fromkeys(("T0", "T1"), "Execution terminated by signal")
    assert reasons(run) == dict.fromkeys(("T2", "T3", "T4", "T5"), "The run was stopped before.")
    assert run.said.count("The run was stopped before.") == 4
    assert_nothing_is_left(run)
