"""`./run compare --installations` that is stopped in a start: nothing goes on, and what there is is kept."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from integration.small_testbed import write_small
from integration.whole_run import (
    HEADING,
    HERE,
    LONG_LIVED_TEST,
    SUITE,
    TEST,
    Run,
    assert_nothing_is_left,
    traces,
)


@pytest.fixture
def comparison(able_machine: None, tmp_path: Path) -> Iterator[Run]:
    """A comparison of the distribution's Open vSwitch with itself, of two tests."""
    testbed = tmp_path / "mine.yaml"
    write_small(testbed)
    where = ["--outputdir", str(tmp_path / "output"), "--testbed", str(testbed)]
    what = ["--installations", "base=distribution", "candidate=distribution", "--starts", "5"]
    what += ["--no-instructions"]
    what += ["--campaign", str(HERE / "builds.yaml")]
    tests = ["--test", TEST, "--test", LONG_LIVED_TEST, str(SUITE)]
    run = Run(commands.command("compare", *where, *what, *tests), tmp_path)
    yield run
    run.end()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["kill -INT", "kill -9"],
)
def test_a_comparison_that_is_ended_leaves_no_process_and_names_what_is_kept(
    comparison: Run, number: signal.Signals, status: int
) -> None:
    before = traces()
    comparison.wait_until(lambda: comparison.said.count(HEADING) == 2)
    namespaces = comparison.namespaces()

    os.kill(comparison.popen.pid, number)

    assert comparison.wait() == status, comparison.said
    assert_nothing_is_left(comparison, before, namespaces)
    assert len(list((comparison.output / "base-against-itself" / "01" / "records").glob("*.json"))) == 1
    if number != signal.SIGKILL:
        assert f"0 of 5 starts (base against itself) are complete, in {comparison.output}. To go on" in comparison.said
        assert "Traceback" not in comparison.said
