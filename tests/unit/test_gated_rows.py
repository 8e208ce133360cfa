"""The rows of a run that compare two builds share its error: how many they are is known before the first one begins."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from robot import run
from robot.api import TestSuite

from ConntrackSLA import library
from ConntrackSLA.rows import _rows_in, all_rows, asked_for, gated_rows, given_to_open
from ctbench.base.errors import MissingResource
from ctbench.base.paths import ROOT, SUITES
from ctbench.cli.robot.command_line import selected_suite
from ctbench.dut.topology import Topology
from ctbench.run.run_folder import POOL_VARIABLE, PoolMember, PoolRun
from ctbench.run.settings import RunSettings
from ctbench.testbed.config import TestbedConfig

SUITE = """
*** Settings ***
Library           ConntrackSLA
Suite Setup       Use The Testbed
Test Template     Connection Rate Should Meet SLA

*** Test Cases ***
Of The Candidate             ovs-dpdk        conntrack    1           1    short-lived
Of Another DUT               linux-router    forward      1           1    short-lived
More CPUs Than There Are     ovs-dpdk        conntrack    4           4    short-lived
Known When It Runs           ovs-dpdk        conntrack    ${CPUS}     1    short-lived
Not Said Before It Runs
    [Template]    NONE
    No Operation
Two Measurements
    [Template]    NONE
    Use Topology    ovs-dpdk    conntrack
    Measure    connection rate    short-lived
    Measure    connection rate    long-lived
Lines Of A Template
    ovs-dpdk        conntrack    1    1    short-lived
    ovs-dpdk        conntrack    2    1    short-lived
    linux-router    forward      1    1    short-lived
    ovs-dpdk        conntrack    4    4    short-lived
In Loops
    [Template]    NONE
    FOR    ${ruleset}    ${queues}    IN    conntrack    1    forward    2
        FOR    ${cpus}    IN RANGE    1    4
            Run Keyword And Continue On Failure    Both Kinds    ${cpus}    ${queues}    ${ruleset}
        END
    END

*** Keywords ***
Both Kinds
    [Arguments]    ${cpus}    ${queues}    ${ruleset}
    IF    ${queues} < 3
        Connection Rate Should Meet SLA    ovs-dpdk    ${ruleset}    ${cpus}    ${queues}    short-lived
    END
    Packet Rate Should Meet SLA    ovs-dpdk    ${ruleset}    ${cpus}    ${queues}    udp-64-10k

*** Variables ***
${CPUS}    1
"""


def place(cpus: int) -> Any:
    """A testbed that has so many CPUs for its DUT."""

    def placed(topology: Topology) -> None:
        if topology.cpus > cpus:
            raise MissingResource(f"{topology.cpus} CPUs are needed.")

    return placed


def test_of_the_suites_that_ship_those_count_that_are_measured(installed: None) -> None:
    def count(campaign: str, cpus: int, *arguments: str, candidate: str = "/opt/ovs-3.3") -> int:
        settings = RunSettings.load(campaign=campaign, candidate=candidate)
        return gated_rows(selected_suite([*arguments, str(SUITES)]), lambda _: settings, place(cpus))

    gate, night = (["--argumentfile", str(ROOT / "test_lists" / f"{name}.args")] for name in ("gate", "nightly"))
    small, large, whole = count("gate", 1, *gate), count("gate", 8, *gate), count("night", 8, *night)
    assert 1 < small < large < whole
    assert count("gate", 1, "--test", "1 CPU, 1 Queue, Short-Lived Connections") == 1
    assert count("gate", 8, *gate, candidate="") == 0


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A run that measures nothing: how many rows share its error."""
    found: list[int] = []

    nothing = Mock(side_effect=MissingResource("Nothing is measured here."))
    made = SimpleNamespace(
        testbed=SimpleNamespace(placement=place(2)), run_id="", records=[], begin=lambda: None,
        share_error=found.append, judge_by=lambda _: None, profile=nothing, note_end=lambda *_: [],
        measured=[], close=lambda: None,
    )  # fmt: skip
    monkeypatch.setattr(library, "AcceptanceRun", lambda *_: made)
    monkeypatch.setattr(TestbedConfig, "check_machine", lambda _: None)
    return found


@pytest.mark.parametrize(("of_others", "rows"), [(0, 19), (7, 26)])
def test_a_run_knows_them_when_its_first_suite_has_opened_its_testbed(
    of_others: int, rows: int, installed: None, shared: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if of_others:
        member = PoolMember(name="one", cpus=[], suite=1)
        pool = PoolRun(run_id="run", output=tmp_path, member=member, other_tests=of_others)
        monkeypatch.setenv(POOL_VARIABLE, pool.model_dump_json())
    (tmp_path / "own.robot").write_text(SUITE)
    run(tmp_path / "own.robot", outputdir=tmp_path, variable=["CANDIDATE:/opt/ovs-3.3"], console="none")
    assert shared == [rows]


def test_each_suite_is_read_with_its_own_variables_and_checked_when_it_opens(
    installed: None, shared: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    monkeypatch.setattr(library, "check_references", lambda floors, *_, **__: checked.append(floors.name))
    for name in ("local", "published-2022"):
        text = SUITE.replace("Use The Testbed", "Use The Testbed    sla=${OUR}") + f"${{OUR}}    {name}\n"
        (tmp_path / f"{name}.robot").write_text(text)
    run(tmp_path, outputdir=tmp_path / "output", variable=["CANDIDATE:/opt/ovs-3.3"], console="none")
    assert checked == ["local", "published-2022"]
    # By the SLA of 2022 the row without conntrack is compared too, and no other one of its suite.
    assert len(shared) == 1 and shared[0] > 5


def test_a_run_has_one_testbed_and_hears_of_each_test_once_in_whatever_ways_suites_import_the_library(
    installed: None, shared: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    made = library.AcceptanceRun()  # type: ignore[call-arg]  # the one of this test
    monkeypatch.setattr(made, "note_end", lambda _suite, test, *_: ended.append(test) or [])
    by_name, by_path = (f"Library    {named}\n" for named in ("ConntrackSLA", ROOT / "libraries" / "ConntrackSLA"))
    for number, ways in enumerate((by_name, by_path, by_name + by_path)):
        opens = "Suite Setup    ConntrackSLA.Use The Testbed"
        text = f"*** Settings ***\n{ways}{opens}\n*** Test Cases ***\nTest {number}\n    No Operation\n"
        (tmp_path / f"{number}.robot").write_text(text)
    assert run(tmp_path, outputdir=tmp_path / "output", variable=["CANDIDATE:/opt/ovs-3.3"], console="none") == 0
    assert (len(shared), ended) == (1, ["Test 0", "Test 1", "Test 2"])


MEASURES = "Packet Rate Should Meet SLA    linux-router    forward    1    1    udp-64-10k"


@pytest.mark.parametrize(
    ("loop", "rounds", "all_of_it"),
    [
        ("FOR    ${i}    IN    1    2    3", 3, 0),
        ("FOR    ${i}    ${j}    IN    1    2    3    4", 2, 0),
        ("FOR    ${i}    ${j}    IN ENUMERATE    1    2    4    8", 4, 0),
        ("FOR    ${i}    IN RANGE    3", 3, 0),
        ("FOR    ${i}    IN RANGE    0    10    0", 1, 0),
        ("FOR    ${i}    IN RANGE    1    2    3    4", 1, 0),
        ("FOR    ${i}    IN    @{ALL}", 1, 0),
        ("", 1, 1),
    ],
)
def test_a_loop_counts_as_often_as_it_is_run_and_a_malformed_one_once(loop: str, rounds: int, all_of_it: int) -> None:
    steps = [loop, f"    {MEASURES}", "END"] if loop else [MEASURES, "Log    done"]
    lines = "".join(f"    {step}\n" for step in steps)
    (test,) = TestSuite.from_string(f"*** Test Cases ***\nA\n{lines}").tests
    assert (_rows_in(test.body, test.parent.resource), all_rows(test)) == (rounds, all_of_it)


def test_a_keyword_of_theirs_may_open_another_testbed_than_that_of_the_folder() -> None:
    folder = TestSuite.from_string("*** Settings ***\nSuite Setup    Use The Testbed    sla=a")
    for setup, opened in (("Prepare", None), ("Log    here", {"SLA": "a"}), ("Use The Testbed    sla=b", {"SLA": "b"})):
        suite = TestSuite.from_string(
            f"*** Settings ***\nSuite Setup    {setup}\n*** Test Cases ***\nA\n    No Operation"
        )
        folder.suites = [suite]
        assert given_to_open(folder.suites[0], str) == opened


def test_what_follows_not_is_not_asked_for() -> None:
    assert asked_for(("nightly", "nat"), ["connsNOTnightly", "natANDipv4"]) == {"nat"}
    assert asked_for(("nightly", "nat"), ["connsORnightly"]) == {"nightly"}
