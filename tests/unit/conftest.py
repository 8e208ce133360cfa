"""What unit tests share: their mark, and the compiled traffic generator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder is a unit test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("unit")


@pytest.fixture(scope="session")
def compiled_generator() -> None:
    """The generator's kernel, compiled before anything is timed."""
    from ctgen.library import kernel

    kernel()


@pytest.fixture
def status_of() -> Callable[..., int]:
    """What `./run NAME ARGUMENTS` ends with, run here."""
    return lambda name, *arguments: commands.status(name, arguments)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a metric that no other test knows, of which lower is better."""
    from ctbench.results.metrics import METRICS, SECONDS, Metric

    monkeypatch.setitem(METRICS, "wait", Metric("wait", "time to wait", SECONDS, "lower", "promise"))
    return "wait"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Puts a stand-in in the place of ./run sla, where a command starts it."""
    from ctbench.cli import child_runs

    def by(sla: Any) -> Any:
        monkeypatch.setattr(child_runs, "run_child", sla)
        return sla

    return by


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A simulated testbed in the place of one that is set up."""
    from ctbench.run import acceptance

    from .simulated_run import FORWARDING, OVS, SNAT_KEY, SimulatedTestbed

    testbed = SimulatedTestbed({FORWARDING: 400_000.0, SNAT_KEY: 280_000.0, OVS.key: 250_000.0}, output=tmp_path)
    monkeypatch.setattr(acceptance, "Testbed", lambda *_: testbed)
    return testbed


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder is an installation of Open vSwitch."""
    from ctbench.testbed.config import TestbedConfig

    monkeypatch.setattr(TestbedConfig, "check_build", lambda *_: None)
