"""A made-up kind of DUT and of traffic source, registered and nothing else: a testbed with them is read, planned, set
up, judged and examined. Nothing asks which kind it has: a scan of the sources."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import Field, create_model

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.yaml_files import YamlModel, load, settings_of
from ctbench.doctor.examine import checks_of
from ctbench.doctor.site import Site, plan_hosts
from ctbench.dut import registry as duts
from ctbench.dut.base import Dut, Ports
from ctbench.dut.cable import CABLE, Cable
from ctbench.dut.kind import ConnectionTable, DutKind, RingPorts, Surroundings
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Examined, Finding, Placement, ok
from ctbench.run import feasibility
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connectors.connector import Connector
from ctbench.testbed.connectors.registry import CONNECTORS
from ctbench.testbed.testbed import Testbed
from ctbench.traffic import registry as sources
from ctbench.traffic.generator import Trial
from ctbench.traffic.kind import OpenLimit, OwnCpus, SourceSettings, TrafficSourceKind
from ctbench.traffic.loads import Load, Rate, require
from ctbench.traffic.profiles import ConnectionProfile, Profile

from .doctor_facts import ReplayedHost, xeon_facts
from .test_feasibility import case

TOY = Topology(datapath="toy-switch", ruleset="conntrack", cpus=2)
UNTRACKED = TOY.model_copy(update={"ruleset": "normal"})
SHORT = ConnectionProfile(name="short")

pytestmark = pytest.mark.usefixtures("connector")


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

    def build(self, config: ToySwitchConfig, around: Surroundings) -> Dut:
        assert around.generator_macs() == ("02:00:00:00:00:07", "02:00:00:00:00:08")
        return Cable()

    def table(self, config: ToySwitchConfig) -> ConnectionTable | None:
        return ConnectionTable("The toy's table", 7, 1, 1, " Buy a larger toy for {entries}.")

    def hugepages_mb(self, config: ToySwitchConfig) -> int:
        return 100

    def examine(self, config: ToySwitchConfig, on: Examined) -> Iterator[Finding]:
        yield ok("toy switch", f"on {on.host.name}")

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        return "Toy switch 1"


class ToyTrafficConfig(SourceSettings):
    """What a testbed file says of the toy."""

    type: Literal["toy-traffic"]
    host: Literal["local"] = "local"
    cpus: list[int] = Field(default_factory=list)

    @property
    def cpus_needed(self) -> int:
        return 3


class ToyTrafficKind(TrafficSourceKind):
    """What differs from the default."""

    name, title, settings = "toy-traffic", "Toy traffic", ToyTrafficConfig

    def out_of_reach(self, config: ToyTrafficConfig, host: str, ports: str) -> str:
        return "" if host == "sandbox" else "is too far away.\n  Expected sandbox."

    def hosts_for_itself(self, config: ToyTrafficConfig) -> tuple[str, ...]:
        return ("local",)

    def own_cpus(self, config: ToyTrafficConfig) -> OwnCpus:
        return OwnCpus(generating=tuple(config.cpus))

    def open_limit(self, config: ToyTrafficConfig) -> OpenLimit | None:
        return OpenLimit(5, 1.0, "A toy", False, " Take two.")

    def port_macs(self, config: ToyTrafficConfig) -> tuple[str, str]:
        return "02:00:00:00:00:07", "02:00:00:00:00:08"

    def hugepages_mb(self, config: ToyTrafficConfig) -> int:
        return 28

    def examine(self, config: ToyTrafficConfig, on: Examined) -> Iterator[Finding]:
        yield ok("toy traffic", "ready")


class ToyConnector(Connector):
    """A connector and its `TrafficGenerator`."""

    offers: frozenset[type[Load]] = frozenset({Rate})

    #: Of all of them.
    connected: ClassVar[list[Ports]] = []

    def cable(self) -> tuple[Dut, Host]:
        raise MissingResource("A toy has no cable.")

    @property
    def generator(self) -> "ToyConnector":
        return self

    def connect(self, ports: Ports, host: Host, placement: Placement, frame_bytes: int) -> None:
        self.connected.append(ports)

    def run_trial(self, profile: Profile, load: Load, duration_s: float) -> Trial:
        require(self.offers, load, "a toy")
        raise AssertionError("not asked for")

    def snapshot(self) -> dict[str, object]:
        return {"type": "toy-traffic"}

    def facts(self) -> dict[str, Any]:
        return {"type": "toy-traffic"}

    def close(self) -> None: ...


#: A machine with eight CPUs.
EIGHT = xeon_facts({"usable_cpus": tuple(range(8)), "cores": tuple((cpu,) for cpu in range(8))})


@pytest.fixture
def connector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds, registered."""
    ToyConnector.connected.clear()
    monkeypatch.setitem(duts.KINDS, "toy-switch", ToySwitchKind())
    monkeypatch.setitem(sources.SOURCES, "toy-traffic", ToyTrafficKind())
    monkeypatch.setitem(CONNECTORS, "toy-traffic", ToyConnector)
    monkeypatch.setattr(HostPool, "machine", lambda _, name: EIGHT.machine)
    monkeypatch.setattr(HostPool, "host", lambda _, name: ReplayedHost())


def toy_testbed(host: str = "sandbox", **generator: Any) -> TestbedConfig:
    """A testbed file with both; its model is made from the registries, as that of the shipped files is."""
    model = create_model(
        "ToyTestbed",
        __base__=TestbedConfig,
        duts=(list[settings_of(duts.KINDS)], ...),
        generator=(settings_of(sources.SOURCES), ...),
    )
    local = load("testbeds", "local", TestbedConfig).model_dump()
    switch = {"type": "toy-switch", "host": host, "ports": {"kind": "veth", "ring_size": 64}}
    return model.model_validate(local | {"duts": [switch], "generator": {"type": "toy-traffic", **generator}})


def test_a_testbed_file_can_name_them_and_the_source_says_what_it_can_reach() -> None:
    assert toy_testbed().generator.type == "toy-traffic"
    with pytest.raises(ValueError, match=r"duts\.0: is too far away"):
        toy_testbed(host="local")
    # This machine lacks what the kind says.
    with pytest.raises(MissingResource, match="needs batteries"):
        toy_testbed().check_machine()


def test_a_testbed_places_builds_and_connects_them(tmp_path: Path) -> None:
    testbed = Testbed(toy_testbed(), tmp_path)
    assert len(testbed.placement(TOY).generator) == 3
    testbed.apply(TOY, SHORT)
    assert [ports.kind for ports in ToyConnector.connected] == ["cable"]
    assert testbed.facts()["generator"] == {"type": "toy-traffic"}
    with pytest.raises(MissingResource, match="A toy has no cable"):
        testbed.apply(CABLE, SHORT)
    testbed.close()


def test_their_limits_are_bounds_of_a_test() -> None:
    placement = Placement((0, 1, 2), (3, 4), (5,))
    with pytest.raises(MissingResource, match=r"The toy's table holds 7 entries.* Buy a larger toy for"):
        feasibility.check(case(SHORT, topology=TOY, testbed=toy_testbed()), placement)
    with pytest.raises(MissingResource, match=r"A toy holds 5 open connections.* Take two\."):
        feasibility.check(case(SHORT, topology=UNTRACKED, testbed=toy_testbed()), placement)
    with pytest.raises(ConfigError, match=r"generator\.cpus: CPU 4 is the generator's"):
        feasibility.check(case(SHORT, topology=TOY, testbed=toy_testbed(cpus=[4])), placement)


def test_the_doctor_shows_their_rows_and_a_report_names_the_kind() -> None:
    (plan,) = plan_hosts(toy_testbed(cpus=[1, 2]))
    assert (plan.roles, plan.hugepages_mb, plan.generating) == ("toy-switch, Toy traffic", 128, (1, 2))
    site = Site(ReplayedHost(), plan.ssh, EIGHT, plan)
    rows = [finding.what for title, check in checks_of(plan) if title.startswith("Toy") for finding in check(site)]
    assert rows == ["toy switch", "toy traffic"]
    assert (duts.title("toy-switch"), duts.describe("toy-switch", {})) == ("Toy switch", "Toy switch 1")
