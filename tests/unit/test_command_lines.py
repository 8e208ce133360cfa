"""The command line: its help, its mistakes, and that what it shows is what it takes; each list of test_lists/ names
files that exist, and selects what it promises; tags that the documents name select rows."""

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import commands
import pytest
from robot.running import TestSuite, TestSuiteBuilder

from ConntrackSLA.rows import asked_for, rows
from ctbench.base.errors import ExitStatus
from ctbench.base.paths import LIBRARIES, ROOT, SUITES
from ctbench.base.yaml_files import load
from ctbench.cli import arguments, sla
from ctbench.cli.main import main
from ctbench.cli.robot.command_line import chosen_files, selected_suite
from ctbench.measure.campaign import Campaign
from ctbench.run.settings import RunSettings
from ctbench.sla.floors import Floors


def test_help_needs_nothing_but_pythons_own_library() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(LIBRARIES)!r}); import ctbench.cli.main\n"
        "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"__main__", "ctbench"}


COMMANDS = arguments._parser()[1]
#: Statuses that mean the same for every command; `./run --help` has them all.
OF_ALL = {ExitStatus.USAGE, ExitStatus.INTERNAL, ExitStatus.OUTPUT, ExitStatus.INTERRUPTED}


def shown(capsys: pytest.CaptureFixture[str], *asked: str) -> str:
    """The help that is asked for."""
    assert commands.status(asked[0], asked[1:]) == ExitStatus.MET
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


@pytest.mark.parametrize("word", ["help", "--help", "-h"])
def test_help_lists_commands_and_exit_statuses(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, word)
    assert all(f"\n    {name} " in text for name in COMMANDS)
    assert all(f"\n  {status:d} " in text for status in ExitStatus)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_examples_that_it_takes_and_fits_the_terminal(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(capsys, name, "--help")
    assert text.startswith(f"usage: ./run {name}") and text == shown(capsys, "help", name)
    examples = re.findall(r"^  (\./run .*)$", text, re.MULTILINE)
    assert examples
    for example in examples:
        assert arguments.parse(shlex.split(example)[1:]).command == name
    statuses = {int(number) for number in re.findall(r"^  (\d+)  ", text.partition("exit status")[2], re.MULTILINE)}
    assert {0} <= statuses <= set(map(int, ExitStatus)) - OF_ALL
    assert all(len(line) < 80 for line in text.splitlines() if "./run" not in line)


def test_no_command_at_all_is_status_2_and_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitStatus.USAGE
    assert capsys.readouterr().err.startswith("usage: ./run COMMAND")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["bogus"], 'there is no command "bogus". Try `./run --help`.'),
        (["slaa"], 'there is no command "slaa". Did you mean "sla"? Try `./run --help`.'),
        (["help", "bogus"], 'there is no command "bogus". Try `./run --help`.'),
        (["setup", "now"], "now is one argument too many. Try `./run setup --help`."),
        (["doctor", "--hepl=x"], 'there is no option --hepl. Did you mean "--help"? Try `./run doctor --help`.'),
        (["doctor", "--nope\x1b", "x"], "there is no option --nope\\x1b. Try `./run doctor --help`."),
        (["report", "--outputdir"], "argument --outputdir/-d: expected one argument. Try `./run report --help`."),
        (["calibrate", "a", "b"], "b is one argument too many. Try `./run calibrate --help`."),
        (["sla", "--testbeds"], "argument --testbeds: expected one argument. Try `./run sla --help`."),
        (["sla", "--nope"], "option --nope not recognized. Try `./run sla --help`."),
        (["sla", "--include"], "option --include requires argument. Try `./run sla --help`."),
        (["sla", "x", "-i", "y"], "options go before the suites: -i comes after x. Try `./run sla --help`."),
        (["check"], "the following arguments are required: NAME. Try `./run check --help`."),
        (["check", "lint", "x"], "check lint takes no arguments, and x is one. Try `./run check --help`."),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_2(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked) == ExitStatus.USAGE
    assert capsys.readouterr() == ("", f"run: {said}\n")


def test_what_goes_on_to_other_programs_is_kept_in_its_order() -> None:
    given = ["--testbeds", "a,b", "--nope", "-v", "X:y", "--include", "nat", "suites/a"]
    assert arguments.parse(["sla", *given]).rest == given[2:]
    assert arguments.parse(["tests", "-x", "-k", "x"]).rest == ["-x", "-k", "x"]
    assert arguments.parse(["check", "unit", "--help"]).arguments == ["--help"]
    assert arguments.parse(["check", "types", "-x", "--", "y"]).arguments == ["-x", "--", "y"]


LISTS = sorted((ROOT / "test_lists").glob("*.args"))


def command(name: str) -> sla.CommandLine:
    return sla.parse(["--argumentfile", str(ROOT / "test_lists" / f"{name}.args")], SUITES)


def selected(name: str) -> list[str]:
    """Long names of the tests that a list selects."""
    return [test.full_name for test in selected_suite(command(name).arguments).all_tests]


TEXTS = [path.read_text() for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *LISTS)]
OPTIONS = sorted({found for text in TEXTS for found in re.findall(r"--(include|exclude) ([A-Za-z0-9-]+)", text)})


@cache
def stock() -> TestSuite:
    """All suites that ship."""
    return TestSuiteBuilder().build(SUITES)


@pytest.mark.parametrize("option", OPTIONS, ids=" ".join)
def test_tags_that_docs_and_lists_name_select_some_rows_and_not_all(option: tuple[str, str]) -> None:
    chosen = [test for test in stock().all_tests if test.tags.match(option[1])]
    assert 0 < len(chosen) < stock().test_count


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_list_names_a_campaign_and_an_sla_that_exist_and_each_choice_has_a_comment(path: Path) -> None:
    chosen = chosen_files(command(path.stem).assignments)
    assert {"campaign", "sla"} <= set(chosen)
    RunSettings.load(**chosen)
    blocks = path.read_text().strip().split("\n\n")
    assert all(block.startswith("#") for block in blocks if "--metadata" not in block)


@pytest.mark.parametrize("name", ["gate", "nightly"])
def test_the_gate_and_the_night_leave_nothing_out(name: str) -> None:
    assert selected(name) == [test.full_name for test in stock().all_tests]


def test_published_is_tables_2_to_17() -> None:
    floors = load("sla", "published-2022", Floors).floors
    promised = {
        row.test.full_name
        for row in rows(stock())
        if row.promise.about == "rate" and row.profile.name in floors.get(row.topology.key, {})
    }
    # What else the list selects, such as a row of one's own, that SLA leaves out.
    names = [name for name in selected("published") if name in promised]
    assert len(names) == 16
    assert all(".OVS-DPDK." in name for name in names)
    assert sum("No Conntrack" in name for name in names) == 2


def test_the_campaign_of_the_acceptance_list_skips_none_of_its_forty_rows() -> None:
    campaign = load("campaigns", chosen_files(command("acceptance").assignments)["campaign"], Campaign)
    named = [{str(tag) for tag in test.tags} for test in stock().all_tests if test.tags.match("acceptance")]
    assert len(named) == 40
    assert not [tags for tags in named if set(campaign.skips) & tags - asked_for(sorted(tags), ["acceptance"])]


def test_what_is_said_after_the_list_wins() -> None:
    given = sla.parse(["--argumentfile", str(LISTS[0]), "-v", "SLA:mine", "-v", "CAMPAIGN:quick"], SUITES)
    assert chosen_files(given.assignments) == {"campaign": "quick", "sla": "mine"}
