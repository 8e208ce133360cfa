"""docs/adding.md, followed to the letter in a copy of the checkout on one machine: what it says is enough, and the
tests of what ships stay green."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ctbench.base.paths import ROOT
from tools.all_tests import copy_checkout

GUIDE = (ROOT / "docs" / "adding.md").read_text()
SUITE = """*** Settings ***
Documentation    Our firewall, with a profile of ours: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/gate.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    mine    1cpu    1rxq    cps    ipv6    ratio

Name             Our Firewall


*** Test Cases ***    DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
My Firewall, IPv6     ovs-dpdk    mine       1       1            tiny
    [Tags]    tiny
"""
FLOOR = """ovs-dpdk/mine/1cpu-1rxq:
  tiny:
    ratio: {to: ovs-dpdk/conntrack-ipv6/1cpu-1rxq}
"""
PROFILE = """name: tiny
like: short-lived
description: A request of 100 bytes.
request_bytes: 100
ip_version: 6
client_ip: "2001:2:0:16::"
server_ip: "2001:2:0:48::"
"""
MEASURED = """*** Settings ***
Library          ConntrackSLA

Suite Setup      Use The Testbed    sla=${CURDIR}/flush.yaml
Test Template    Flush Time Should Meet SLA


*** Test Cases ***
Is Emptied        linux-router    forward    1    1    short-lived
"""
FLUSH = """extends: local
name: flush
description: The metric of the guide.
linux-router/forward/1cpu-1rxq:
  short-lived: {flush_time: "<= 1s"}
"""
#: What the recipes could break besides: tests, and those in them that read what ships.
CONCERNED = ("tests/unit/test_promises.py", "tests/unit/test_rulesets.py")
SHIPPED = "every or columns or acceptance_suite"


def blocks(section: str) -> list[str]:
    """What a recipe shows to be written, in its order."""
    text = GUIDE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [textwrap.dedent(each) for each in re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)]


def append(file: Path, text: str) -> None:
    file.write_text(f"{file.read_text().rstrip()}\n{text}")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout to which a promise, a ruleset and a profile were added."""
    checkout = tmp_path_factory.mktemp("adding") / "checkout"
    copy_checkout(checkout)
    row, floor = blocks("A promise")
    append(checkout / "suites" / "02__ovs_dpdk" / "02__conntrack.robot", row)
    append(checkout / "variables" / "sla" / "local.yaml", floor + FLOOR)
    (entry,) = blocks("A ruleset")
    rulesets = checkout / "resources" / "rulesets" / "ovs"
    (rulesets / "mine.flows").write_text((rulesets / "conntrack-ipv6.flows").read_text())
    (rulesets / "mine.yaml").write_text(entry)
    (checkout / "variables" / "profiles" / "tiny.yaml").write_text(PROFILE)
    (checkout / "suites" / "02__ovs_dpdk" / "08__mine.robot").write_text(SUITE)
    return checkout


@pytest.fixture(scope="module")
def with_metric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout to which a metric was added, with a suite that asks for it."""
    checkout = tmp_path_factory.mktemp("metric") / "checkout"
    copy_checkout(checkout)
    metric, procedure = blocks("A metric")
    package = checkout / "libraries" / "ctbench"
    insert(package / "results" / "metrics.py", '_table("drain_time"', metric)
    (package / "measure" / "procedures" / "flush.py").write_text(procedure)
    (checkout / "flush.robot").write_text(MEASURED)
    (checkout / "flush.yaml").write_text(FLUSH)
    return checkout


def insert(file: Path, before: str, text: str) -> None:
    """Add a line, in front of one that has `before`."""
    lines = file.read_text().splitlines()
    (place,) = [number for number, line in enumerate(lines) if before in line]
    file.write_text("\n".join([*lines[:place], text.strip(), *lines[place:]]) + "\n")


def test_a_metric_that_is_added_as_the_guide_says_is_measured_and_judged(with_metric: Path) -> None:
    paths = {"PYTHONPATH": f"{with_metric / 'libraries'}:{with_metric / 'tests'}", "PATH": "/usr/bin:/bin"}
    program = str(with_metric / "tests" / "acceptance" / "simulated_sla.py")
    results = str(with_metric / "results" / "flush")
    commands = [["-m", "ctbench.results.record"], [program, "--outputdir", results, str(with_metric / "flush.robot")]]
    for command in commands:
        done = subprocess.run(
            [sys.executable, *command], cwd=with_metric, env=paths, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
    assert "(1 met, 0 missed, 0 not measured)" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "tools.promises"],
        ["-m", "tools.floors"],
        ["-m", "robocop", "check", "suites", "resources"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", SHIPPED, *CONCERNED],
    ],
    ids=["promises", "floors", "robocop", "tests"],
)
def test_the_checks_are_green_with_what_a_team_adds_on_one_machine(copy: Path, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env={"PYTHONPATH": str(copy / "libraries"), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
