"""A floor as a share of what a reference run measured on the same testbed."""

from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.dut.topology import Topology
from ctbench.results import store
from ctbench.results.record import Environment
from ctbench.run.settings import RunSettings
from ctbench.sla.reference import ReferenceRun, read_reference
from ctbench.sla.threshold import parse
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import found, made_up_floor, made_up_record

pytestmark = pytest.mark.unit

SHARE = parse(">= 95%", "share")
SHORT = ConnectionProfile(name="short-lived", udp_percent=1)
MACHINE = {"cpu_model": "Xeon", "usable_cpus": [0, 1], "kernel": "6.1"}


@pytest.fixture
def reference(tmp_path: Path) -> ReferenceRun:
    environment = Environment(testbed={"name": "local"}, dut={}, generator={}, machine=MACHINE)
    for rates in ([200_000.0], [210_000.0, 190_000.0]):
        store.write(made_up_record(found(200_000.0), capacities=rates, environment=environment), tmp_path)
    return read_reference(str(tmp_path))


def test_the_floor_is_raised_to_the_share_of_the_reference(reference: ReferenceRun) -> None:
    floor = reference.applied_to(made_up_floor(">= 48.2k"), Topology(), SHORT, SHARE)
    assert floor.rate.limit == 190_000
    assert floor.as_record().cps == ">= 190k"
    assert "95.0 % of 200.0 k/s" in floor.derivation


def test_a_floor_that_promises_more_stays_and_so_does_one_without_a_reference(reference: ReferenceRun) -> None:
    harder = made_up_floor(">= 195k")
    assert reference.applied_to(harder, Topology(), SHORT, SHARE) == harder
    assert reference.applied_to(harder, Topology(ruleset="nat"), SHORT, SHARE) == harder


def test_another_testbed_is_refused(reference: ReferenceRun) -> None:
    reference.check("local", MACHINE | {"usable_cpus": (0, 1)})
    with pytest.raises(ConfigError, match=r"kernel of .* is 6\.1, and here 6\.2"):
        reference.check("local", MACHINE | {"kernel": "6.2"})
    with pytest.raises(ConfigError, match=r"testbed of .* is local, and here lab"):
        reference.check("lab", MACHINE)


def test_a_folder_without_capacities_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no record with a capacity"):
        read_reference(str(tmp_path))


def test_a_reference_without_a_promise_of_it_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="of_reference and -v REFERENCE:FOLDER go together"):
        RunSettings.load(reference="somewhere")
