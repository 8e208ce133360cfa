"""The tree of command lines: what it imports, and that what it shows is what it takes; each list of test_lists/ names
files that exist, and selects what it promises; tags select the same tests in ./run sla and in plain Robot Framework."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from robot.running import TestSuiteBuilder

from ConntrackSLA.rows import rows
from ctbench.base.errors import ExitStatus
from ctbench.base.paths import LIBRARIES, ROOT, SUITES
from ctbench.base.yaml_files import load
from ctbench.cli import sla
from ctbench.cli.check import CHECKS
from ctbench.cli.parser.command import Needs
from ctbench.cli.parser.tree import COMMANDS, command_of, parse
from ctbench.cli.robot.command_line import selected_suite
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors


def test_it_imports_nothing_but_pythons_own_library() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(LIBRARIES)!r}); import ctbench.cli.bootstrap\n"
        "import ctbench.cli.parser.tree\n"
        "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"__main__", "ctbench"}


def test_run_knows_what_every_command_needs() -> None:
    cases = re.findall(r"^    (\w+)\) ", (ROOT / "run").read_text(), re.MULTILINE)
    assert set(cases) == set(Needs)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_module_and_examples_that_it_takes(name: str) -> None:
    assert name == "setup" or (LIBRARIES / "ctbench" / "cli" / f"{name}.py").is_file()
    for example in COMMANDS[name].examples:
        program, *arguments = shlex.split(example)
        assert program == "./run"
        assert command_of(arguments) is COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_has_examples_and_what_each_exit_status_means(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_of([name, "--help"])
    assert ended.value.code == ExitStatus.MET
    shown = capsys.readouterr().out
    for example in COMMANDS[name].examples:
        assert f"\n  {example}\n" in shown
    statuses = [int(number) for number in re.findall(r"^  (\d+)  ", shown.partition("exit status:")[2], re.MULTILINE)]
    assert statuses == sorted(statuses)
    assert {*COMMANDS[name].statuses, 2, 70, 74, 130} == set(statuses)


def test_what_goes_on_to_other_programs_is_kept_in_its_order() -> None:
    assert command_of(["sla", "--nope", "-v", "SLA:mine", "--include", "x", "suites"]) is COMMANDS["sla"]
    assert "--include" in COMMANDS["sla"].epilog
    assert ".venv/bin/robot --help" in " ".join(COMMANDS["sla"].epilog.split())
    assert parse("check", ["unit", "--help"]).arguments == ["--help"]
    assert parse("check", ["types", "-x", "--", "y"]).arguments == ["-x", "--", "y"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_with_more_than_one_program_takes_no_arguments(name: str) -> None:
    assert CHECKS[name].takes_arguments <= (len(CHECKS[name].programs) == 1)


LISTS = sorted((ROOT / "test_lists").glob("*.args"))


def command(name: str) -> sla.CommandLine:
    return sla.parse(["--argumentfile", str(ROOT / "test_lists" / f"{name}.args")], SUITES)


def selected(name: str) -> list[str]:
    """Long names of the tests that a list selects."""
    return names(command(name))


def names(chosen: sla.CommandLine) -> list[str]:
    return [test.full_name for test in selected_suite(chosen.arguments).all_tests]


TEXTS = [path.read_text() for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *LISTS)]
OPTIONS = sorted({found for text in TEXTS for found in re.findall(r"--(include|exclude) ([A-Za-z0-9-]+)", text)})


@pytest.mark.parametrize("option", OPTIONS, ids=" ".join)
def test_tags_that_docs_and_lists_name_select_the_same_in_plain_robot(option: tuple[str, str]) -> None:
    way, tags = option
    plain = TestSuiteBuilder().build(SUITES)
    every = plain.test_count
    plain.configure(**{f"{way}_tags": [tags]})
    assert 0 < plain.test_count < every
    assert names(sla.parse([f"--{way}", tags], SUITES)) == [test.full_name for test in plain.all_tests]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_list_names_a_campaign_and_an_sla_that_exist_and_each_choice_has_a_comment(path: Path) -> None:
    chosen = sla.chosen_files(command(path.stem).assignments)
    assert {"campaign", "sla"} <= set(chosen)
    RunSettings.load(**chosen)
    blocks = path.read_text().strip().split("\n\n")
    assert all(block.startswith("#") for block in blocks if "--metadata" not in block)


@pytest.mark.parametrize("name", ["gate", "nightly"])
def test_the_gate_and_the_night_leave_nothing_out(name: str) -> None:
    everything = [test.full_name for test in TestSuiteBuilder().build(SUITES).all_tests]
    assert selected(name) == everything


def test_published_is_tables_2_to_17() -> None:
    floors = load("sla", "published-2022", Floors).floors
    promised = {
        row.test.full_name
        for row in rows(TestSuiteBuilder().build(SUITES))
        if row.promise.about == "rate" and row.profile.name in floors.get(row.topology.key, {})
    }
    # What else the list selects, such as a row of one's own, that SLA leaves out.
    names = [name for name in selected("published") if name in promised]
    assert len(names) == 16
    assert all(".OVS-DPDK." in name for name in names)
    assert sum("No Conntrack" in name for name in names) == 2


def test_what_is_said_after_the_list_wins() -> None:
    given = sla.parse(["--argumentfile", str(LISTS[0]), "-v", "SLA:mine", "-v", "CAMPAIGN:quick"], SUITES)
    assert sla.chosen_files(given.assignments) == {"campaign": "quick", "sla": "mine"}
