"""Makes the DUTs of a testbed, and finds out before any test whether this machine can measure with it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.base import Dut
from ctbench.dut.cable import CABLE
from ctbench.dut.kind import Surroundings
from ctbench.dut.registry import KINDS, DutConfig
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Placement
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connectors.registry import CONNECTORS
from ctbench.traffic.registry import SOURCES


@dataclass(frozen=True)
class Place:
    """Which of a testbed's DUTs one is."""

    datapath: str
    #: Prefix of its installation, where it is another one than the testbed file says.
    build: str = ""
    #: Whether it is the second one of the same installation.
    beside: bool = False


class DutMaker:
    def __init__(
        self, config: TestbedConfig, hosts: HostPool, placement: Callable[[Topology], Placement], log_folder: Path
    ) -> None:
        self._config = config
        self._hosts = hosts
        self._placement = placement
        self._log_folder = log_folder

    def place(self, datapath: str, build: str = "") -> Place:
        """Where the DUT of a datapath, of another installation than the testbed's with `build`, is found."""
        if build and self.config_of(datapath, build) == self.config_of(datapath):
            build = ""
        return Place(datapath, build)

    def make(self, place: Place) -> tuple[Dut, Host]:
        """A new DUT and the host that it is on. Nothing is started before its first `apply`."""
        if place.datapath == CABLE.datapath:
            generator = self._config.generator
            return CONNECTORS[generator.type].cable(generator, self._hosts)
        config = self.config_of(place.datapath, place.build)
        host = self._hosts.host(config.host)
        around = Surroundings(
            host, self._hosts.machine(config.host), self._placement, self._log_folder, self._macs,
            generator_carries=self._config.generator.carries,
        )  # fmt: skip
        return KINDS[place.datapath].build(config, around), host

    def config_of(self, datapath: str, build: str = "") -> DutConfig:
        """What the testbed file says of a DUT, with another installation where `build` names one. `MissingResource`
        where it has none, or one that is installed only once."""
        known = next((config for config in self._config.duts if config.type == datapath), None)
        if known is None:
            names = ", ".join(config.type for config in self._config.duts)
            raise MissingResource(f"A DUT with datapath {datapath} is needed; testbed {self._config.name} has {names}.")
        if not build:
            return known
        kind = KINDS[datapath]
        if kind.builds is None:
            raise MissingResource(f"The build in {build} is asked for, and of a {kind.title} there is but one.")
        model: Any = kind.settings
        other: DutConfig = model.model_validate(kind.builds.with_prefix(known.model_dump(), build))
        return other

    def _macs(self) -> tuple[str, str]:
        """Ethernet addresses of the generator's ports in a lab: a Linux DUT does not ask for them."""
        kind = SOURCES[self._config.generator.type]
        macs = kind.port_macs(self._config.generator)
        if not all(macs):
            raise ConfigError(
                f"testbed {self._config.name}: generator.client.mac and generator.server_port.mac are needed for a "
                f"Linux DUT.\n  Expected the MAC addresses that the ports of {kind.title} send from."
            )
        return macs


def check_machine(testbed: TestbedConfig) -> None:
    """Raise MissingResource with the first thing that this machine lacks of what `testbed` needs of it, in the order in
    which to fix it. What other hosts lack, they say when they are set up (and `./run doctor` before)."""
    SOURCES[testbed.generator.type].require(testbed.generator)
    here = [dut for dut in testbed.duts if dut.host == SANDBOX]
    for dut in here:
        KINDS[dut.type].require(dut)
    if here:
        check_namespaces()


def check_namespaces() -> None:
    """Make a sandbox and end it; a refusal says what to do."""
    Sandbox().close()
