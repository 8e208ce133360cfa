"""The tree of command lines: what it imports, and that what it shows is what it takes."""

import re
import shlex
import subprocess
import sys

import pytest

from ctbench.base.errors import ExitStatus
from ctbench.base.paths import LIBRARIES, ROOT
from ctbench.cli.check import CHECKS
from ctbench.cli.parser.command import Needs
from ctbench.cli.parser.tree import COMMANDS, command_of, parse


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
def test_the_help_has_the_examples_and_what_each_exit_status_means(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_of([name, "--help"])
    assert ended.value.code == ExitStatus.MET
    shown = capsys.readouterr().out
    for example in COMMANDS[name].examples:
        assert f"\n  {example}\n" in shown
    statuses = [int(number) for number in re.findall(r"^  (\d+)  ", shown.partition("exit status:")[2], re.MULTILINE)]
    assert statuses == sorted(statuses)
    assert {*COMMANDS[name].statuses, 2, 70, 74, 130} == set(statuses)


def test_sla_passes_on_what_it_does_not_know_and_shows_what_is_used_often() -> None:
    assert command_of(["sla", "--nope", "-v", "SLA:mine", "--include", "x", "suites"]) is COMMANDS["sla"]
    assert "--include" in COMMANDS["sla"].epilog
    assert ".venv/bin/robot --help" in " ".join(COMMANDS["sla"].epilog.split())


def test_compare_keeps_the_order_of_what_goes_to_robot_framework() -> None:
    given = ["--installations", "base=a", "candidate=b", "--only", "9", "-v", "X:y", "--include", "nat", "suites/a"]
    assert parse("compare", given).rest == ["-v", "X:y", "--include", "nat", "suites/a"]


def test_help_behind_a_check_is_that_of_its_program() -> None:
    assert parse("check", ["unit", "--help"]).arguments == ["--help"]
    assert parse("check", ["types", "-x", "--", "y"]).arguments == ["-x", "--", "y"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_with_more_than_one_program_takes_no_arguments(name: str) -> None:
    assert CHECKS[name].takes_arguments <= (len(CHECKS[name].programs) == 1)
