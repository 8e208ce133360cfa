"""Whole runs on a pool of testbeds: two local ones, oversubscribed, so that two CPUs are enough for both."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import commands
import pages
import pytest
from integration.small_testbed import write_small
from integration.whole_run import Run
from robot.api import ExecutionResult

from ctbench.results.record import Record

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

    def start(*options: str, testbeds: int = 2) -> Run:
        place = folder / str(len(runs))
        place.mkdir()
        chosen = ["--testbeds", ",".join([str(testbed)] * testbeds)] if testbeds else ["-v", f"TESTBED:{testbed}"]
        where = ["--outputdir", str(place / "output"), "-v", f"SLA:{HERE / 'floors.yaml'}", *chosen]
        runs.append(Run(commands.command("sla", *where, *options, SUITES), place))
        return runs[-1]

    return start, runs


@pytest.fixture(scope="module")
def both(able_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, Run]]:
    """A run on one testbed, and the same on two."""
    begin, runs = starter(tmp_path_factory.mktemp("pool"))
    alone = begin(*GATE, testbeds=0)
    alone.wait()
    pool = begin(*GATE)
    pool.wait()
    yield alone, pool
    for run in runs:
        run.end()


def test_the_exit_status_is_that_of_a_run_on_one_testbed(both: tuple[Run, Run]) -> None:
    alone, pool = both
    assert (alone.wait(), pool.wait()) == (3, 3), alone.said + pool.said


def test_the_records_are_those_of_one_testbed_but_for_what_was_measured(both: tuple[Run, Run]) -> None:
    alone, pool = (list(map(promised, run.records())) for run in both)
    assert len(alone) == 3
    assert sorted(alone, key=str) == sorted(pool, key=str)
    assert names(both[0].output / "records") == names(both[1].output / "records")
    assert len({record.run_id for record in both[1].records()}) == 1


def promised(record: Record) -> dict[str, Any]:
    """What a record says beside what was measured, when, and on which CPUs."""
    kept = {"suite", "test", "tags", "topology", "profile", "campaign", "floors", "verdict"}
    return record.model_dump(include=kept) | {"testbed": record.environment.testbed}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_reports_are_those_of_one_testbed_but_for_what_was_measured(both: tuple[Run, Run]) -> None:
    alone, pool = (reported(run.output) for run in both)
    assert [each["test"] for each in alone["rows"]] == [
        "1 CPU, 1 Queue, Short-Lived Connections",
        "1 CPU, 1 Queue, Once More",
        "Stateful iptables, Short-Lived",
    ]
    assert alone == pool


def reported(output: Path) -> dict[str, Any]:
    """The pages and files of a run without what was measured: figures, times, reasons, and a floor where it decides."""
    page = pages.read_page((output / "sla.html").read_text())
    rows = pages.rows_of(page)
    summary = json.loads((output / "summary.json").read_text())
    fixed = ("suite", "test", "verdict", "topology", "profile", "record")
    cases = [
        (case.get("classname"), case.get("name"), [child.tag for child in case])
        for case in ET.parse(output / "junit.xml").iter("testcase")
    ]
    return {
        "title": page.one("title").text,
        "headings": [heading.text for heading in page.all("h1")],
        "links": sorted({link.attributes["href"] for link in page.all("a")} - anchors(page)),
        "rows": [{key: row[key] for key in ("test", "topology", "profile", "record", "id")} for row in rows],
        "sentence": summary["sentence"],
        "counts": summary["counts"],
        "tests": [{key: test.get(key) for key in fixed} for test in summary["tests"]],
        "without record": summary["without_record"],
        "cases": cases,
        "files": [name for name in names(output) if name != "console"],
        "robot": [(test.full_name, test.status, sorted(test.metadata)) for test in result(output).all_tests],
        "markdown": (output / "sla.md").read_text().splitlines()[0],
    }


def anchors(page: pages.Element) -> set[str]:
    """Links within the page."""
    return {link.attributes["href"] for link in page.all("a") if link.attributes["href"].startswith("#")}


def result(output: Path) -> Any:
    return ExecutionResult(str(output / "output.xml")).suite


def test_no_testbed_is_used_by_two_processes_at_once(both: tuple[Run, Run]) -> None:
    records = both[1].records()
    members = {record.pool.name: record.pool.cpus for record in records if record.pool}
    assert len(records) == 3 and set(members) == {"local#1", "local#2"}
    assert not set(members["local#1"]) & set(members["local#2"])
    for name, cpus in members.items():
        own = [record for record in records if record.pool and record.pool.name == name]
        assert all(list(record.environment.machine.usable_cpus) == cpus for record in own)
        assert all(one.ended <= other.started for one, other in pairwise(own))


def test_a_line_tells_of_each_record_as_it_comes_and_the_rest_is_in_files(both: tuple[Run, Run]) -> None:
    _, pool = both
    for record in pool.records():
        assert record.pool
        begins = rf"{record.pool.name} +{re.escape(record.test[:20])}"  # a name is cut where the figures are long
        assert re.search(rf"^{begins}.* NOT MEASURED$", pool.said, re.MULTILINE)
    assert "3 not measured" in pool.said
    console = [path.read_text() for path in sorted((pool.output / "console").iterdir())]
    assert [name in text for name, text in zip(("Zebra", "Bee", "Ant"), console, strict=True)] == [True] * 3
    assert len(list((pool.output / "dut").glob("*/ovs-vswitchd*.log"))) == 2


def test_a_pool_leaves_nothing_in_the_current_folder(both: tuple[Run, Run]) -> None:
    _, pool = both
    assert names(pool.folder) == ["complaints", "console", "output", "results", "temporary"]
    assert names(pool.temporary) == []
    assert not any(name.startswith((".", "pabot")) for name in names(pool.output))
