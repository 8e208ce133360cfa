"""Promises, their floors and their tags fit together; what does not is said."""

import re
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from robot.running import TestSuiteBuilder

from ConntrackSLA import ConntrackSLA
from ConntrackSLA.check_promises import main, problems_of_own
from ConntrackSLA.promising import FORMS
from ConntrackSLA.rows import Row, rows
from ctbench.base.errors import NoFloorYet
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load
from ctbench.dut.rulesets import catalogue
from ctbench.measure.promises import PROMISES, Promise, procedures
from ctbench.results.metrics import METRICS
from ctbench.sla.floors import Floors
from tools.promises import problems, where_promised
from tools.tags import TABLE, meaning, rewritten, tags_of

CONNTRACK = "suites/02__ovs_dpdk/02__conntrack.robot"
LEFT_OUT = "suites/without-a-row.yaml"
BASELINE = "  emulated/baseline: What the figures of the others are net of.\n"


#: A file, a text in it, what it is replaced by, and what is then said.
CHANGES = [
    (CONNTRACK, "2 CPUs, 2 Queues, Short", "4 CPUs, 2 Queues, Short", "the title says '4 CPUs'"),
    (CONNTRACK, "1 CPU, 2 Queues, Short-Lived", "1 CPU, 2 Queues, Long-Lived", "the title says 'Long-Lived'"),
    (CONNTRACK, "4 CPUs, 4 Queues, Short", "Four CPUs, 4 Queues, Short", "the row has 4 CPUs"),
    (CONNTRACK, "8       8            short-lived", "8       7            short-lived", "has no floor"),
    (CONNTRACK, "8       8            short-lived", "8       7            short-lived", "no row of the suites"),
    (CONNTRACK, "[Tags]    2cpu    2rxq", "[Tags]    2cpu", "[Tags] lacks 2rxq"),
    (CONNTRACK, "[Tags]    2cpu    2rxq", "[Tags]    2cpu    2rxq    nat", "has nat, which it is not"),
    (CONNTRACK, "short-lived    ratio", "short-lived", "[Tags] lacks ratio"),
    ("suites/03__linux_router/03__nat.robot", "iptables-dnat ", "iptables-snat ", "the title says 'DNAT'"),
    (CONNTRACK, "Floors: variables/sla/local.yaml.", "Floors:", "02__conntrack.robot: the documentation does"),
    ("suites/06__table/03__full.robot", "sla/local.yaml.", "sla/mine.yaml.", "it names variables/sla/mine.yaml."),
    ("suites/05__emulated/04__dump.robot", "TESTBED:emulated", "TESTBED:x", "Expected TESTBED:emulated, "),
    ("suites/08__match_fields/03__more_cpus.robot", "of_build", "rates", "Expected of_build, "),
    ("suites/02__ovs_dpdk/05__ipv6.robot", "nightly.args", "gate.args", "Expected of_build, test_lists/nightly"),
    (LEFT_OUT, BASELINE, "", "rulesets: emulated/baseline: no row uses it."),
    (LEFT_OUT, "  udp-64-1m:", "  udp-9018: why\n  udp-64-1m:", "a row uses it now"),
    (LEFT_OUT, "  udp-64-1m:", "  udp-9: why\n  udp-64-1m:", "profiles.udp-9: is not there"),
]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of the suites with all of these changes; of those without, nothing is."""
    copy = tmp_path_factory.mktemp("promises")
    for folder in ("suites", "resources"):
        shutil.copytree(ROOT / folder, copy / folder)
    for file, before, after in dict.fromkeys(change[:3] for change in CHANGES):
        text = (copy / file).read_text()
        assert before in text
        (copy / file).write_text(text.replace(before, after, 1))
    return "\n".join(problems(copy / "suites"))


def test_promises_floors_profiles_and_rulesets_fit_together() -> None:
    assert problems() == []


@pytest.mark.parametrize("said", [said for *_, said in CHANGES])
def test_what_does_not_fit_is_said(wrong: str, said: str) -> None:
    assert said in wrong


def test_a_promise_or_a_row_that_the_sla_cannot_have_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local, mine = (ROOT / "variables" / "sla" / "local.yaml").read_text(), tmp_path / "mine.yaml"
    entry = "  short-lived:\n    cps:"
    assert entry in local
    mine.write_text(local.replace(entry, entry.replace("cps", 'bps: ">= 1G"\n    cps'), 1))
    assert main(["--sla", str(mine)]) == 1
    said = capsys.readouterr().out
    assert "cable/none/1cpu-1rxq.short-lived.bps: is not for a profile of connections" in said
    assert said.endswith("\n1 problem\n") and "has no floor" not in said
    entry = local.index("  udp-imix-10k:")
    mine.write_text(local[:entry] + local[local.index("  udp-1518-10k:", entry) :])
    assert main(["--sla", str(mine)]) == 1
    said = capsys.readouterr().out
    assert "Forwarding, IMIX: has no floor" in said
    assert "linux-router/forward/1cpu-1rxq.udp-imix-10k: is missing" in said


def test_a_row_of_which_nothing_that_ships_promises_anything_is_said(tmp_path: Path) -> None:
    """A build of Linux cannot be compared, as one of Open vSwitch can."""
    mine = tmp_path / "mine.yaml"
    local = (ROOT / "variables" / "sla" / "local.yaml").read_text()
    for datapath, without in (("linux-router", 1), ("ovs-dpdk", 0)):
        at = local.index(f"\n{datapath}/nat" if datapath == "ovs-dpdk" else f"\n{datapath}/forward/1cpu-2rxq")
        mine.write_text(local[:at] + re.sub(', rate: "[^"]*"', "", local[at:], count=1))
        said = list(where_promised(stock_rows(), load("sla", str(mine), Floors), {}))
        assert sum("nothing that ships" in each for each in said) == without, datapath


OWN = Path(__file__).parents[1] / "data" / "own_suites"


def test_suites_of_ones_own_are_judged_by_the_sla_that_their_set_up_names() -> None:
    assert problems_of_own([OWN / "elsewhere"]) == []
    # In three steps as in a row; a floor that no row measures is one too many only next to the suites.
    assert problems_of_own([OWN / "elsewhere"], sla="local") != []
    (said,) = problems_of_own([OWN / "two_slas"])
    assert "forwarding.yaml: linux-router/iptables-snat/1cpu-1rxq.udp-64-10k: no row" in said
    assert problems_of_own([OWN / "no_floor.robot"], sla="published-2019") == []


def test_the_sla_that_a_set_up_names_may_be_a_variable_of_its_file(tmp_path: Path) -> None:
    text = (OWN / "no_floor.robot").read_text().replace("${CURDIR}/no_floor.yaml", "${OUR}")
    (tmp_path / "mine.robot").write_text(f"{text}\n*** Variables ***\n${{OUR}}    published-2019\n")
    assert problems_of_own([tmp_path / "mine.robot"]) == []
    (tmp_path / "mine.robot").write_text(text)
    assert any("${OUR}" in each for each in problems_of_own([tmp_path / "mine.robot"]))


def test_each_mistake_in_rows_of_ones_own_is_said(tmp_path: Path) -> None:
    said = "\n".join(problems_of_own([OWN / "wrong_rows.robot"]))
    # One is right; a column too few or too many, and a promise of a step, are found by the dry run.
    rows_of_it = TestSuiteBuilder().build(OWN / "wrong_rows.robot").tests
    assert said.count("wrong_rows.robot: ") == len(rows_of_it) - 4
    mine = tmp_path / "mine.robot"
    rows_of_mine = """*** Settings ***
Library    ConntrackSLA
Suite Setup    Use The Testbed
*** Variables ***
${MIX}    short-lived
*** Test Cases ***
Ours
    Connection Rate Should Be At Least    50k    ovs-dpdk    conntrack    2    2    ${MIX}
Known When It Runs
    Connection Rate Should Be At Least    50k    ovs-dpdk    conntrack    2    2    ${PROFILE OF A RUN}
"""
    mine.write_text(rows_of_mine)
    (later,) = problems_of_own([mine])
    assert "${PROFILE OF A RUN}" in later


@pytest.mark.parametrize(
    ("arguments", "status"),
    [([], 0), ([str(OWN / "elsewhere")], 0), ([str(OWN / "wrong_rows.robot")], 1), (["--sla", "nix"], 4),
     ([str(OWN / "nowhere.robot")], 4)],
)  # fmt: skip
def test_the_command_judges_by_an_sla_and_suites_that_are_given(
    arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    assert "Traceback" not in "".join(capsys.readouterr())


def test_the_file_of_the_page_on_own_suites_says_whose_each_floor_is() -> None:
    ours = load("sla", str(OWN / "elsewhere" / "our-sla.yaml"), Floors)
    sources = {each.source or ours.source for entries in ours.floors.values() for each in entries.values()}
    office = ours.floors["linux-router/nftables-office/1cpu-1rxq"]["our-mix"]
    assert office.source is None and ours.source == "our contracts"
    assert {"our contracts", stock_floors().source} <= sources


@cache
def stock_rows() -> list[Row]:
    return list(rows(TestSuiteBuilder().build(ROOT / "suites")))


@cache
def stock_floors() -> Floors:
    return load("sla", "local", Floors)


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_every_promise_has_a_keyword_a_row_a_floor_tags_and_a_sentence(promise: Promise) -> None:
    keywords = {name: call for call in vars(ConntrackSLA).values() if (name := getattr(call, "robot_name", None))}
    found = [row for row in stock_rows() if row.promise is promise]
    floors = stock_floors()

    forms = [form.name(promise) for form in FORMS if form.is_of(promise)]
    assert forms
    assert all(promise.says in str(keywords[form].__doc__) for form in forms)
    assert found
    with_floor = 0
    for row in found:
        with suppress(NoFloorYet):
            assert floors.find(row.topology, row.profile, promise.procedure).thresholds
            with_floor += 1
    assert with_floor
    assert all(set(promise.tags) <= tags_of(row) <= set(map(str, row.test.tags)) for row in found)
    assert all(row.profile.kind in promise.profiles for row in found)
    assert promise.says


def test_every_test_is_a_row_whose_procedure_has_a_sentence_and_looks_for_a_metric_that_can_be_promised() -> None:
    said = procedures()
    assert len(said) == len(set(said.values()))
    assert len(stock_rows()) == TestSuiteBuilder().build(ROOT / "suites").test_count
    for row in stock_rows():
        if row.promise.procedure:
            assert METRICS[row.promise.procedure.metric(row.profile).name].role == "promise"
            assert row.promise.procedure.name in said


def test_every_tag_of_the_suites_has_a_meaning_and_the_page_has_all_of_them() -> None:
    of_rulesets = {tag for entry in catalogue().values() for tag in entry.tags}
    told = {str(tag) for row in stock_rows() for tag in row.test.tags}
    assert [tag for tag in told if not meaning(tag) and tag not in of_rulesets] == []
    shipped = {"stateful", "conntrack", "forward", "nat", "snat", "ovs"}
    assert shipped <= of_rulesets and all(map(meaning, shipped))
    text = TABLE.read_text()
    assert rewritten(text) == text, "run python -m tools.promises --write (docs/tags.md)"


def test_the_acceptance_suite_has_conntrack_nat_baselines_and_all_cpus_of_both_datapaths() -> None:
    chosen = [row for row in stock_rows() if row.test.tags.match("acceptance")]
    assert len(chosen) == 40
    for datapath in ("ovs-dpdk", "linux-router"):
        found = [row for row in chosen if row.topology.datapath == datapath]
        assert {row.topology.cpus for row in found} == {1, 2, 4, 8}
        assert {"baseline", "conntrack", "snat", "table"} <= {str(tag) for row in found for tag in row.test.tags}
    # Of these a person can name what is promised: nothing that takes a night, and no emulated machine.
    assert not [row for row in chosen if row.test.tags.match("nightlyORlongORscaleORextendedORemulated")]
