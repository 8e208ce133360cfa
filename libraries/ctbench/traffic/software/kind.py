"""The software generator as a kind of traffic source. Imports nothing that would compile its kernel."""

import ctypes
import platform
import shutil
from collections.abc import Iterator
from typing import Literal

from ctbench.base.errors import MissingResource
from ctbench.base.network import CLIENT_MAC, SERVER_MAC, Interface
from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.config import LOCAL
from ctbench.hosts.machine import GENERATOR, Card, Examined, Finding, bad, ok
from ctbench.traffic.kind import SourceSettings, TrafficSourceKind
from ctbench.traffic.software.layout import MOST_THREADS, Connection


class Ends(YamlModel):
    """Two network interfaces of this machine."""

    client: Interface
    server: Interface


class SoftwareGeneratorConfig(SourceSettings):
    """The software traffic generator of this repository, on this machine: each of its threads drives both ports."""

    type: Literal["software"]
    #: Those that lead to the DUT's network cards; None where the DUT is in a sandbox, and its ports come with it.
    interfaces: Ends | None = None

    @property
    def host(self) -> str:
        return LOCAL

    @property
    def cpus_of_use(self) -> int:
        return MOST_THREADS

    @property
    def carries(self) -> bool:
        return True  # over veth


#: The record of a connection.
RECORD_BYTES = ctypes.sizeof(Connection)


class SoftwareKind(TrafficSourceKind):
    """It is this process, and has no network of its own. A trial that needs more than eight million connections open
    says so."""

    name = "software"
    title = "software generator"
    settings = SoftwareGeneratorConfig

    def require(self, config: SoftwareGeneratorConfig) -> None:
        require_x86_64()
        require_compiler()

    def held_bytes(self, config: SoftwareGeneratorConfig, connections: int) -> int:
        return connections * RECORD_BYTES

    def port_macs(self, config: SoftwareGeneratorConfig) -> tuple[str, str]:
        return CLIENT_MAC, SERVER_MAC

    def cards(self, config: SoftwareGeneratorConfig) -> list[Card]:
        ends = config.interfaces
        return [Card(GENERATOR, "client", ends.client), Card(GENERATOR, "server", ends.server)] if ends else []

    def examine(self, config: SoftwareGeneratorConfig, on: Examined) -> Iterator[Finding]:
        try:
            require_x86_64()
        except MissingResource as error:
            yield bad("processor", str(error), "measure on an x86-64 machine")
        else:
            yield ok("processor", "x86-64")
        try:
            yield ok("compiler", require_compiler())
        except MissingResource as error:
            yield bad("compiler", str(error), "./run setup")


def require_x86_64(machine: str | None = None) -> None:
    """The memif code relies on x86-64's ordering of stores."""
    machine = machine or platform.machine()
    if machine not in ("x86_64", "AMD64"):
        raise MissingResource(
            f"This is a {machine} machine, and the software traffic generator works on x86-64 only:"
            " measure on an x86-64 machine."
        )


COMPILER = "cc"


def require_compiler() -> str:
    """The path of the compiler, for the kernel."""
    found = shutil.which(COMPILER)
    if found is None:
        raise MissingResource(
            f"The software traffic generator is written in C, and there is no C compiler ({COMPILER}): type ./run"
            " setup, or install the packages gcc and libc6-dev."
        )
    return found
