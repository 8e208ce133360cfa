"""Each list of test_lists/ is understood by ./run sla, names files that exist, and selects what it promises. Tags
select the same tests in ./run sla and in plain Robot Framework."""

import re
from pathlib import Path

import pytest
from robot.running import TestSuiteBuilder

from ctbench.cli import sla
from ctbench.cli.robot.command_line import selected_suite
from ctbench.run.settings import RunSettings

ROOT = Path(__file__).parents[2]
LISTS = sorted((ROOT / "test_lists").glob("*.args"))
SUITES = ROOT / "suites"


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
    names = selected("published")
    assert len(names) == 16
    assert all(".OVS-DPDK." in name for name in names)
    assert sum("No Conntrack" in name for name in names) == 2


def test_what_is_said_after_the_list_wins() -> None:
    given = sla.parse(["--argumentfile", str(LISTS[0]), "-v", "SLA:mine", "-v", "CAMPAIGN:quick"], SUITES)
    assert sla.chosen_files(given.assignments) == {"campaign": "quick", "sla": "mine"}
