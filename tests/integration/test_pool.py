"""Whole runs on a pool of testbeds: two local ones, oversubscribed, so that two CPUs are enough for both."""

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import commands
import pytest
from integration.small_testbed import write_small
from integration.whole_run import Run
from robot.api import ExecutionResult

#: Threads share CPUs, so nothing is measured: others may use the machine as well.
pytestmark = pytest.mark.beside_others

HERE = Path(__file__).parent
SUITES = HERE / "pool_suites"
GATE = ("-v", f"CAMPAIGN:{SUITES / 'once.yaml'}", "--exclude", "endless")
Start = Callable[..., Run]


def starter(folder: Path) -> tuple[Start, list[Run]]:
    """Starts `./run sla` on the suites of the pool, in a folder of its own for each run."""
    runs: list[Run] = []
    testbed = folder / "local.yaml"
    write_small(testbed, oversubscribe=True)

    def start(*options: str) -> Run:
        place = folder / str(len(runs))
        place.mkdir()
        where = ["--outputdir", str(place / "output"), "-v", f"SLA:{HERE / 'floors.yaml'}"]
        where += ["--testbeds", f"{testbed},{testbed}"]
        runs.append(Run(commands.command("sla", *where, *options, SUITES), place))
        return runs[-1]

    return start, runs


@pytest.fixture(scope="module")
def pool(able_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run on two testbeds, which has ended."""
    begin, _ = starter(tmp_path_factory.mktemp("pool"))
    run = begin(*GATE)
    run.wait()
    yield run
    run.end()


def test_each_row_has_a_record_and_the_report_has_the_order_of_the_suites(pool: Run) -> None:
    assert pool.wait() == 3, pool.said
    rows = [test["test"] for test in json.loads((pool.output / "summary.json").read_text())["tests"]]
    assert rows == [
        "1 CPU, 1 Queue, Short-Lived Connections",
        "1 CPU, 1 Queue, Once More",
        "Stateful iptables, Short-Lived",
    ]
    assert {record.test for record in pool.records()} == set(rows)
    assert len({record.run_id for record in pool.records()}) == 1
    assert [test.full_name.split(".")[1] for test in result(pool.output).all_tests] == ["Zebra", "Bee", "Bee", "Ant"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def result(output: Path) -> Any:
    return ExecutionResult(str(output / "output.xml")).suite


def test_no_testbed_is_used_by_two_processes_at_once(pool: Run) -> None:
    records = pool.records()
    members = {record.pool.name: record.pool.cpus for record in records if record.pool}
    assert len(records) == 3 and set(members) == {"local#1", "local#2"}
    assert not set(members["local#1"]) & set(members["local#2"])
    for name, cpus in members.items():
        own = [record for record in records if record.pool and record.pool.name == name]
        assert all(list(record.environment.machine.usable_cpus) == cpus for record in own)
        assert all(one.ended <= other.started for one, other in pairwise(own))


def test_a_line_tells_of_each_record_as_it_comes_and_the_rest_is_in_files(pool: Run) -> None:
    for record in pool.records():
        begins = rf"{record.pool.name} +{re.escape(record.test[:20])}"  # a name is cut where the figures are long
        assert re.search(rf"^{begins}.* NOT MEASURED$", pool.said, re.MULTILINE)
    assert "3 not measured" in pool.said
    console = [path.read_text() for path in sorted((pool.output / "console").iterdir())]
    assert [name in text for name, text in zip(("Zebra", "Bee", "Ant"), console, strict=True)] == [True] * 3
    assert len(list((pool.output / "dut").glob("*/ovs-vswitchd*.log"))) == 2


def test_a_pool_leaves_nothing_in_the_current_folder(pool: Run) -> None:
    assert names(pool.folder) == ["complaints", "console", "output", "results", "temporary"]
    assert names(pool.temporary) == []
    assert not any(name.startswith((".", "pabot")) for name in names(pool.output))
