"""A made-up kind of DUT, registered and nothing else: a testbed with it is read, planned, set up, judged and
examined."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import create_model

from ctbench.base.errors import MissingResource
from ctbench.base.yaml_files import YamlModel, load, settings_of
from ctbench.doctor.examine import checks_of
from ctbench.doctor.site import Site, plan_hosts
from ctbench.dut import registry as duts
from ctbench.dut.base import Dut
from ctbench.dut.cable import CABLE, CableDut
from ctbench.dut.kind import ConnectionTable, DutKind, RingPorts, Surroundings
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Examined, Finding, ok
from ctbench.run import feasibility
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.profiles import ConnectionProfile

from .doctor_facts import ReplayedHost, xeon_facts
from .test_feasibility import case

TOY = Topology(datapath="toy-switch", ruleset="conntrack", cpus=2)
SHORT = ConnectionProfile(name="short")

pytestmark = pytest.mark.usefixtures("registered")


class ToySwitchConfig(YamlModel):
    type: Literal["toy-switch"]
    host: str
    ports: RingPorts


class ToySwitchKind(DutKind):
    """What differs from the default."""

    name, title, families, tags, settings = "toy-switch", "Toy switch", ("ovs",), ("toy",), ToySwitchConfig
    bridges, polls = True, True

    def require(self, config: ToySwitchConfig) -> None:
        raise MissingResource(f"A toy switch on {config.host} needs batteries.")

    def program(self, config: ToySwitchConfig, host: Host) -> str:
        return "toy 1"

    def build(self, config: ToySwitchConfig, around: Surroundings) -> Dut:
        return CableDut()

    def table(self, config: ToySwitchConfig) -> ConnectionTable | None:
        return ConnectionTable("The toy's table", 7, 1, 1, " Buy a larger toy for {entries}.")

    def hugepages_mb(self, config: ToySwitchConfig) -> int:
        return 100

    def examine(self, config: ToySwitchConfig, on: Examined) -> Iterator[Finding]:
        yield ok("toy switch", f"on {on.host.name}")

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        return "Toy switch 1"


#: A machine with eight CPUs.
EIGHT = xeon_facts({"usable_cpus": tuple(range(8)), "cores": tuple((cpu,) for cpu in range(8))})


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(duts.KINDS, "toy-switch", ToySwitchKind())
    monkeypatch.setattr(HostPool, "machine", lambda _, name: EIGHT.machine)
    monkeypatch.setattr(HostPool, "host", lambda _, name: ReplayedHost())


def toy_testbed() -> TestbedConfig:
    """A testbed file with it; its model is made from the registry, as that of the shipped files is."""
    model = create_model("ToyTestbed", __base__=TestbedConfig, duts=(list[settings_of(duts.KINDS)], ...))
    switch = {"type": "toy-switch", "host": "sandbox", "ports": {"kind": "veth", "ring_size": 64}}
    return model.model_validate(load("testbeds", "local", TestbedConfig).model_dump() | {"duts": [switch]})


def test_a_testbed_file_can_name_it_and_this_machine_lacks_what_it_says(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match="needs batteries"):
        toy_testbed().check_machine()
    testbed = Testbed(toy_testbed(), tmp_path)
    testbed.apply(TOY)
    assert isinstance(testbed.dut, CableDut)
    assert (testbed.program(TOY), testbed.program(CABLE)) == ("toy 1", "")
    testbed.close()


def test_its_table_bounds_a_test() -> None:
    with pytest.raises(MissingResource, match=r"The toy's table holds 7 entries.* Buy a larger toy for"):
        feasibility.check(*case(SHORT, topology=TOY, testbed=toy_testbed()))


def test_the_doctor_shows_its_rows_and_a_report_names_the_kind() -> None:
    (plan,) = plan_hosts(toy_testbed())
    site = Site(ReplayedHost(), plan.ssh, EIGHT, plan)
    rows = [finding.what for title, check in checks_of(plan) if title.startswith("Toy") for finding in check(site)]
    assert (rows, plan.hugepages_mb) == (["toy switch"], 100)
    assert (duts.title("toy-switch"), duts.describe("toy-switch", {})) == ("Toy switch", "Toy switch 1")
