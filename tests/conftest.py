"""How ./run tests runs them: those that need the machine for themselves one by one; meanwhile those that only compute,
on what these leave of the CPUs; then the others, on all CPUs.

A process of pytest-xdist has one kind: the first one begins with the tests that run alone, some run at idle priority
(sched(7), SCHED_IDLE) from their begin to their end, the rest wait until no test runs alone.
"""

import os
import signal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

#: How long an example takes is the machine's business, of a process at idle priority even more.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
#: In the order in which they run: what takes long first, so that all CPUs end together.
ROOMS = ("checks", "integration", "unit")
#: Name of the group of tests that run alone.
ALONE = "alone"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--root-too", action="store_true", help="only tests that are marked root_too")


@cache
def is_alone(file: Path) -> bool:
    """Whether the tests of a file mind what else the machine does: on two CPUs, those of real DUTs and those that drive
    the traffic generator do, unless the file says `beside_others`. By file, as pytest-xdist hands out files."""
    if not file.is_file():
        return False
    text = file.read_text()
    return (file.parent.name == "integration" or "compiled_generator" in text) and "beside_others" not in text


def only_computes(file: Path) -> bool:
    """Whether the tests of a file measure nothing: no test minds them at idle priority, nor do they mind that."""
    return file.parent.name != "integration" and not is_alone(file)


def is_idle(worker: str, of: int) -> bool:
    """Whether a process, `gw1`, runs at idle priority: with three or more about half do, and never the first one."""
    return of > 2 and 1 <= int(worker.removeprefix("gw")) <= of // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than CPUs, as one waits while tests run alone."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure(config: pytest.Config) -> None:
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if worker and is_idle(worker["workerid"], worker["workercount"]):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After the user's own options have chosen."""
    if config.getoption("root_too"):
        config.hook.pytest_deselected(items=[item for item in items if not item.get_closest_marker("root_too")])
        items[:] = [item for item in items if item.get_closest_marker("root_too")]
    items.sort(key=lambda item: (not is_alone(item.path), ROOMS.index(item.path.parent.name)))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run in which no test passed has not passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    nothing = reporter and not reporter.stats.get("passed") and not session.config.option.collectonly
    if nothing and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests of a file run in one process, one by one; so do all about hosts, which look for processes and folders by
    name, and all that run alone, which come first. (Groups of pytest-xdist 3.8 do nothing under pytest 9.2.)"""
    from xdist.scheduler import LoadFileScheduling

    class InGroups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = config.rootpath / nodeid.partition("::")[0]
            if is_alone(file):
                return ALONE
            return "hosts" if file.name.startswith("test_hosts") and file.parent.name == "integration" else str(file)

        def _assign_work_unit(self, node: Any) -> None:
            """The first group that this process may run now; one that waits is asked again when no test runs alone."""
            fitting = next((scope for scope in self.workqueue if self._fits(scope, node)), None)
            if fitting:
                self.workqueue.move_to_end(fitting, last=False)
                super()._assign_work_unit(node)
            elif self._is_idle(node):
                node.shutdown()

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            before = self._runs_alone()
            super().mark_test_complete(node, item_index, duration)
            if before and not self._runs_alone():
                for each in self.nodes:
                    self._reschedule(each)

        def _fits(self, scope: str, node: Any) -> bool:
            if self._is_idle(node):
                return scope != ALONE and only_computes(Path(scope))
            return scope == ALONE or ALONE in self.assigned_work[node] or not self._runs_alone()

        def _runs_alone(self) -> bool:
            """Whether tests that run alone are left."""
            return ALONE in self.workqueue or any(
                not all(units.get(ALONE, {}).values()) for units in self.assigned_work.values()
            )

        def _is_idle(self, node: Any) -> bool:
            return is_idle(node.gateway.id, node.workerinput["workercount"])

    config.option.loadscopereorder = False
    return InGroups(config, log)


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """A shell script starts what it leaves in the background deaf to Ctrl-C, and `nohup` whatever it starts to the end
    of a terminal; what that starts is deaf as well: TRex, and the programs of these tests, which they send signals. A
    handler is not inherited, and the one for SIGHUP lets the tests go on, as asked for."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
