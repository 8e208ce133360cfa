"""What ctbench.cli.checks.whole_suite needs: which tests run beside others, and what became of each."""

import json
import signal
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("whole suite", "what ./run tests passes to pytest")
    group.addoption(
        "--lane", choices=["beside", "alone"], help="only tests that may run beside others, or that may not"
    )
    group.addoption("--only", type=Path, metavar="FILE", help="only tests whose names are lines of this file")
    group.addoption("--outcomes", type=Path, metavar="FILE", help="append a line of JSON for each report of a test")


def pytest_configure(config: pytest.Config) -> None:
    # A worker of pytest-xdist sends its reports to the process that started it, which writes them.
    if (path := config.getoption("outcomes")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(path))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if not runs_beside_others(item):
            item.add_marker("alone")

    chosen = items[:]
    if lane := config.getoption("lane"):
        chosen = [item for item in chosen if (item.get_closest_marker("alone") is not None) == (lane == "alone")]
        # The longest files first: the last ones are to end together on all CPUs.
        chosen.sort(key=lambda item: item.path.parent.name != "integration")
    if only := config.getoption("only"):
        names = set(only.read_text().splitlines())
        chosen = [item for item in chosen if item.nodeid in names]
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests of a file run in one process, one by one, and so do all about hosts: they look for processes and folders by
    name. (Groups of pytest-xdist 3.8 do nothing under pytest 9.2.)"""
    from xdist.scheduler import LoadFileScheduling

    class InGroups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return "hosts" if Path(file).name.startswith("test_hosts") and "integration" in file else file

    return InGroups(config, log)


def runs_beside_others(item: pytest.Item) -> bool:
    """Unit tests do, but for those that drive the traffic generator; these and integration tests where they say so: on
    a machine with two CPUs most of them need both."""
    if item.get_closest_marker("beside_others"):
        return True
    return item.path.parent.name != "integration" and "compiled_generator" not in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """A shell script starts what it leaves in the background deaf to Ctrl-C, and `nohup` whatever it starts to the end
    of a terminal; what that starts is deaf as well: TRex, and the programs of these tests, which they send signals. A
    handler is not inherited, and the one for SIGHUP lets the tests go on, as asked for."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


class Outcomes:
    """Writes what pytest reports, as it comes: a process that dies leaves what it has done."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(
            report.nodeid, report.when or "", outcome_of(report), "root_too" in report.keywords, report.duration
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid, "collect", "error")

    def _write(self, test: str, when: str, outcome: str, root_too: bool = False, seconds: float = 0) -> None:
        line = {"test": test, "when": when, "outcome": outcome, "root_too": root_too, "seconds": round(seconds, 3)}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def outcome_of(report: pytest.TestReport) -> str:
    """In the words of pytest's closing line."""
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.passed else "xfailed"
    if report.failed and report.when != "call":
        return "error"
    return report.outcome
