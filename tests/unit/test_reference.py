"""A floor as a share of what a reference run measured on the same testbed."""

from dataclasses import replace
from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.dut.topology import Topology
from ctbench.results import store
from ctbench.results.environment import DutFacts, Environment, GeneratorFacts, MachineFacts, TestbedFacts
from ctbench.results.metrics import METRICS
from ctbench.run.settings import RunSettings
from ctbench.sla.floor import parse
from ctbench.sla.reference import ReferenceRun, read_reference
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import found, made_up_floor, made_up_record

SHARE = parse(">= 95%", METRICS["ratio"])
SHORT = ConnectionProfile(name="short-lived", udp_percent=1)
MACHINE = MachineFacts(cpu_model="Xeon", usable_cpus=[0, 1], kernel="6.1")


@pytest.fixture
def reference(tmp_path: Path) -> ReferenceRun:
    environment = Environment(
        testbed=TestbedFacts(name="local"), dut=DutFacts(), generator=GeneratorFacts(), machine=MACHINE
    )
    for rates in ((200_000.0,), (210_000.0, 190_000.0)):
        result = replace(found(200_000.0), capacities=rates)
        store.write(made_up_record(result, environment=environment), tmp_path)
    return read_reference(str(tmp_path))


def test_the_floor_is_raised_to_the_share_of_the_reference(reference: ReferenceRun) -> None:
    floor = reference.applied_to(made_up_floor(">= 48.2k"), Topology(), SHORT, SHARE)
    assert floor.main.limit == 190_000
    assert floor.main.text == ">= 190k"
    assert "95.0 % of 200.0 k/s" in floor.derivation


def test_a_floor_that_promises_more_stays_and_so_does_one_without_a_reference(reference: ReferenceRun) -> None:
    harder = made_up_floor(">= 195k")
    assert reference.applied_to(harder, Topology(), SHORT, SHARE) == harder
    assert reference.applied_to(harder, Topology(ruleset="nat"), SHORT, SHARE) == harder


def test_another_testbed_is_refused(reference: ReferenceRun) -> None:
    reference.check("local", MACHINE.model_copy(update={"governor": "performance"}))
    with pytest.raises(ConfigError, match=r"kernel of .* is 6\.1, and here 6\.2"):
        reference.check("local", MACHINE.model_copy(update={"kernel": "6.2"}))
    with pytest.raises(ConfigError, match=r"testbed of .* is local, and here lab"):
        reference.check("lab", MACHINE)


def test_a_folder_without_capacities_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no record with a capacity"):
        read_reference(str(tmp_path))


def test_a_reference_without_a_promise_of_it_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="of_reference and -v REFERENCE:FOLDER go together"):
        RunSettings.load(reference="somewhere")
