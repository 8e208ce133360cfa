"""How ./run tests runs them: on all CPUs, those that need the machine for themselves at the end and one by one. One
that fails while the machine is busy is run once more, which the end of the output says (`rerun`)."""

import fcntl
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TextIO

import pytest
from busy import Machine
from hypothesis import settings

#: How long an example takes is the machine's business.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
#: In the order in which they run: what takes long first, so that all CPUs end together.
ROOMS = ("checks", "integration", "unit")
#: Whether the machine was busy while a test ran.
_MACHINE = pytest.StashKey[Machine]()
#: A folder of locks, where root's tests run next to those of an ordinary user (tools/all_tests.py).
LOCKS = os.environ.get("CTBENCH_TESTS_LOCKS")


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


@cache
def waits(file: Path) -> bool:
    """Whether tests of a file run next to others at first, and wait to be alone then (`alone`): they come late."""
    return "alone: None" in file.read_text()


def is_of_hosts(file: Path) -> bool:
    """Whether the tests of a file look for processes and folders by name."""
    return file.name.startswith("test_hosts") and file.parent.name == "integration"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For root a tenth of the files is enough: to read all of them takes each process 9 s."""
    is_test = collection_path.name.startswith("test_") and collection_path.is_file()
    return (is_test and config.getoption("root_too") and "root_too" not in collection_path.read_text()) or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After the user's own options have chosen."""
    if config.getoption("root_too"):
        config.hook.pytest_deselected(items=[item for item in items if not item.get_closest_marker("root_too")])
        items[:] = [item for item in items if item.get_closest_marker("root_too")]
    items.sort(key=_place)
    machine = Machine()
    config.stash[_MACHINE] = machine
    for item in items:
        item.add_marker(pytest.mark.flaky(reruns=1, condition=machine))


def _place(item: pytest.Item) -> tuple[bool, bool, int]:
    return is_alone(item.path), waits(item.path), ROOMS.index(item.path.parent.name)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A process that has no more tests lets the others have the machine. A run in which none passed has not passed."""
    if hasattr(session.config, "workerinput"):
        fcntl.flock(_lock("alone"), fcntl.LOCK_UN)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    nothing = reporter and not reporter.stats.get("passed") and not session.config.option.collectonly
    if nothing and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Tests of a file run in one process, one by one; so do all about hosts, which look for processes and folders by
    name, and all that run alone, which come last. (Groups of pytest-xdist 3.8 do nothing under pytest 9.2.)"""
    from xdist.scheduler import LoadFileScheduling

    class InGroups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = config.rootpath / nodeid.partition("::")[0]
            if is_alone(file):
                return "alone"
            return "hosts" if is_of_hosts(file) else str(file)

    config.option.loadscopereorder = False
    return InGroups(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Of a test that is run again, the second time counts by itself."""
    item.config.stash[_MACHINE].begin()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Of several processes, the one with the tests that run alone begins them when the others have ended: until then
    each holds a lock. Tests about hosts take turns with those of another user."""
    if hasattr(item.config, "workerinput"):
        fcntl.flock(_lock("alone"), fcntl.LOCK_EX if is_alone(item.path) else fcntl.LOCK_SH)
    if LOCKS is None or not is_of_hosts(item.path):
        return (yield)
    fcntl.flock(_lock("hosts"), fcntl.LOCK_EX)
    try:
        return (yield)
    finally:
        fcntl.flock(_lock("hosts"), fcntl.LOCK_UN)


@cache
def _lock(name: str) -> TextIO:
    return (Path(LOCKS) / name if LOCKS else Path(__file__)).open()


@pytest.fixture(scope="module")
def alone() -> None:
    """From here on, until its end, a test has the machine for itself: one that ran next to others until then."""
    fcntl.flock(_lock("alone"), fcntl.LOCK_EX)


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """A shell script starts what it leaves in the background deaf to Ctrl-C, and `nohup` whatever it starts to the end
    of a terminal; what that starts is deaf as well: TRex, and the programs of these tests, which they send signals. A
    handler is not inherited, and the one for SIGHUP lets the tests go on, as asked for."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
