"""A run says what cannot be before it sets anything up, and notes what may have bounded a result."""

from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.base.yaml_files import load
from ctbench.run import acceptance
from ctbench.run.acceptance import AcceptanceRun
from ctbench.run.measurement import TestName
from ctbench.run.settings import RunSettings
from ctbench.testbed.config import TestbedConfig

from .simulated_run import rate_of
from .test_acceptance import FORWARD, SimulatedTestbed, campaign, floors


def run_with_cards(speed_gbit: float, output: Path) -> AcceptanceRun:
    """A run on a lab's router, between links of so many Gbit/s."""
    cards = {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1", "speed_gbit": speed_gbit}
    router = {"type": "linux-router", "host": "local", "ports": cards}
    local = load("testbeds", "local", TestbedConfig).model_dump() | {"duts": [router]}
    return AcceptanceRun(RunSettings(TestbedConfig.model_validate(local), campaign(), floors()), output, lambda _: None)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> SimulatedTestbed:
    testbed = SimulatedTestbed({FORWARD.key: 400_000.0})
    monkeypatch.setattr(acceptance, "Testbed", lambda *_: testbed)
    return testbed


def test_what_cannot_be_is_said_before_anything_is_set_up(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    run = run_with_cards(0.05, tmp_path)
    with pytest.raises(ConfigError, match=r"links of 0\.05 Gbit/s carry at most 74\.4 k packets/s"):
        run.measure(TestName("Suite", "Test"), FORWARD, "udp-64-10k", rate_of("udp-64-10k"))
    assert (simulated.applied, simulated.loads) == ([], [])
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(("speed_gbit", "noted"), [(0.5, True), (1.0, False)])
def test_a_bound_that_may_have_had_a_say_is_a_note_of_the_record(
    simulated: SimulatedTestbed, tmp_path: Path, speed_gbit: float, noted: bool
) -> None:
    # The capacity is 400 k packets/s: 744 k are less than twice that, 1.49 M are not.
    record = run_with_cards(speed_gbit, tmp_path).measure(
        TestName("Suite", "Test"), FORWARD, "udp-64-10k", rate_of("udp-64-10k")
    )
    assert any("744.0 k packets/s" in note for note in record.notes) == noted
    assert bool(record.notes) == noted
