"""Promises, their floors and their tags fit together; what does not is said."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from robot.running import TestSuiteBuilder

from ConntrackSLA.check_promises import problems
from ConntrackSLA.rows import rows
from ConntrackSLA.tags import tags
from ctbench.base.errors import ConfigError
from ctbench.base.paths import ROOT
from ctbench.cli import sla
from ctbench.cli.robot import selection
from ctbench.run.tags import tags_of

pytestmark = pytest.mark.unit

CONNTRACK = "suites/02__ovs_dpdk/02__conntrack.robot"


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[str, str, str], list[str]]:
    """What is wrong with the suites once a text in one of their files was replaced."""

    def change(file: str, before: str, after: str) -> list[str]:
        for folder in ("suites", "resources"):
            shutil.copytree(ROOT / folder, tmp_path / folder)
        path = tmp_path / file
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after, 1))
        return problems(tmp_path / "suites")

    return change


def test_promises_floors_profiles_and_rulesets_fit_together() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        (CONNTRACK, "2 CPUs, 2 Queues, Short", "4 CPUs, 2 Queues, Short", "the title says '4 CPUs'"),
        (CONNTRACK, "1 CPU, 2 Queues, Short-Lived", "1 CPU, 2 Queues, Long-Lived", "the title says 'Long-Lived'"),
        (CONNTRACK, "2 CPUs, 2 Queues, Short", "Two CPUs, 2 Queues, Short", "the row has 2 CPUs"),
        (CONNTRACK, "8       8            short-lived", "8       7            short-lived", "has no floor"),
        (CONNTRACK, "8       8            short-lived", "8       7            short-lived", "no row of the suites"),
        ("suites/03__linux_router/03__nat.robot", "iptables-dnat ", "iptables-snat ", "the title says 'DNAT'"),
        ("suites/without-a-row.yaml", "  udp-512-10k: As udp-256-10k.\n", "", "profiles: udp-512-10k: no row uses it."),
        ("suites/without-a-row.yaml", "  udp-512-10k:", "  udp-9018: why\n  udp-512-10k:", "a row uses it now"),
        ("suites/without-a-row.yaml", "  udp-512-10k:", "  udp-9: why\n  udp-512-10k:", "profiles.udp-9: is not there"),
    ],
)
def test_what_does_not_fit_is_said(
    changed: Callable[[str, str, str], list[str]], file: str, before: str, after: str, said: str
) -> None:
    assert any(said in problem for problem in changed(file, before, after))


def test_a_promise_that_the_profile_cannot_have_is_said(tmp_path: Path) -> None:
    local, mine = (ROOT / "variables" / "sla" / "local.yaml").read_text(), tmp_path / "mine.yaml"
    entry = "  short-lived:\n    cps:"
    assert entry in local
    mine.write_text(local.replace(entry, entry.replace("cps", 'bps: ">= 1G"\n    cps'), 1))
    (said,) = problems(sla=str(mine))
    assert said.endswith("cable/none/1cpu-1rxq.short-lived.bps: cannot be promised of a profile of connections.")


def test_a_row_whose_floor_is_taken_out_of_the_stock_sla_is_said(tmp_path: Path) -> None:
    local, mine = (ROOT / "variables" / "sla" / "local.yaml").read_text(), tmp_path / "mine.yaml"
    entry = local.index("  udp-imix-10k:")
    mine.write_text(local[:entry] + local[local.index("  udp-1518-10k:", entry) :])
    (said,) = problems(sla=str(mine))
    assert (
        "Forwarding, IMIX: has no floor" in said and "linux-router/forward/1cpu-1rxq.udp-imix-10k: is missing" in said
    )


def test_a_row_is_tagged_where_a_ratio_is_promised_of_it(tmp_path: Path) -> None:
    def tagged(sla: str) -> set[str]:
        suite = TestSuiteBuilder().build(ROOT / "suites")
        suite.visit(tags(sla))
        return {test.name for test in suite.all_tests if "ratio" in test.tags}

    assert len(tagged("local")) == 141
    assert "Generator Ceiling, Short-Lived Connections" not in tagged("local")
    assert tagged("published-2022") == set()
    assert tagged(str(tmp_path / "nowhere.yaml")) == set()  # the run says it


def test_tags_follow_from_the_arguments_of_a_row() -> None:
    suite = TestSuiteBuilder().build(ROOT / "suites")
    found = {row.test.name: set(tags_of(row.topology, row.profile)) for row in rows(suite)}

    assert found["2 CPUs, 1 Queue, Long-Lived Connections"] == {
        "ovs-dpdk", "conntrack", "cps", "2cpu", "1rxq", "long-lived",
    }  # fmt: skip
    assert found["SNAT With nftables, 10k Flows, Both Ways"] == {
        "linux", "router", "nat", "snat", "conntrack", "nftables", "pps", "1cpu", "1rxq", "10kflows", "both-ways",
    }  # fmt: skip
    assert found["Bonds And VLAN, 64 Bytes, 10k Flows"] == {
        "linux", "bridge", "bond", "vlan", "pps", "1cpu", "1rxq", "10kflows", "one-way",
    }  # fmt: skip
    assert found["Generator Ceiling, Short-Lived Connections"] == {"cps", "short-lived"}


def test_tests_are_selected_by_tags_that_no_row_writes() -> None:
    suite = TestSuiteBuilder().build(ROOT / "suites")
    suite.visit(tags())
    suite.filter(included_tags=["1cpuANDconntrackANDovs-dpdkNOTcontrol-plane"])

    assert suite.test_count == 67
    table = {"Table Capacity", "Table Steady State", "Table Drain", "Full Table", "Reaping"}
    others = {"Match Fields", "Match Fields, No EMC", "Mobile Traffic", "Connection Kinds", "IPv6"}
    assert {test.parent.name for test in suite.all_tests} == {"Conntrack", "SNAT", *table, *others}


def test_a_ruleset_without_its_entry_is_said_and_not_that_no_test_has_the_tag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise ConfigError("mine.flows: is not in the catalogue.")

    monkeypatch.setattr(selection, "catalogue", refuse)

    assert sla.main(["--dryrun", "--include", "conntrack"]) == 4
    assert capsys.readouterr().err == "run: mine.flows: is not in the catalogue.\n"
