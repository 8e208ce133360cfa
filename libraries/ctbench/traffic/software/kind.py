"""The software generator as a kind of traffic source. Imports nothing that would compile its kernel."""

import platform
from collections.abc import Iterator, Mapping

from ctbench.base.errors import MissingResource
from ctbench.base.ethernet import CLIENT_MAC, SERVER_MAC
from ctbench.hosts.examination.facts import Card, Examined
from ctbench.hosts.examination.finding import Finding, bad, ok
from ctbench.traffic.kind import OpenLimit, OwnCpus
from ctbench.traffic.software.config import SoftwareGeneratorConfig

#: The record of a connection (`connection.RECORD_BYTES`, which would compile).
RECORD_BYTES = 64


class SoftwareKind:
    """Implements `ctbench.traffic.kind.TrafficSourceKind`."""

    name = "software"
    title = "software generator"
    settings = SoftwareGeneratorConfig
    unmeasured: frozenset[str] = frozenset()

    def require(self, config: SoftwareGeneratorConfig) -> None:
        """See `TrafficSourceKind.require`."""
        require_x86_64()

    def out_of_reach(self, config: SoftwareGeneratorConfig, host: str, ports: str) -> str:
        """See `TrafficSourceKind.out_of_reach`."""
        return ""

    def hosts_for_itself(self, config: SoftwareGeneratorConfig) -> tuple[str, ...]:
        """See `TrafficSourceKind.hosts_for_itself`: it is this process, and has no network of its own."""
        return ()

    def has_cards(self, config: SoftwareGeneratorConfig) -> bool:
        """See `TrafficSourceKind.has_cards`."""
        return False

    def own_cpus(self, config: SoftwareGeneratorConfig) -> OwnCpus:
        """See `TrafficSourceKind.own_cpus`."""
        return OwnCpus()

    def open_limit(self, config: SoftwareGeneratorConfig) -> OpenLimit | None:
        """See `TrafficSourceKind.open_limit`: a trial that needs more than eight million says so."""
        return None

    def held_bytes(self, config: SoftwareGeneratorConfig, connections: int) -> int:
        """See `TrafficSourceKind.held_bytes`."""
        return connections * RECORD_BYTES

    def port_macs(self, config: SoftwareGeneratorConfig) -> tuple[str, str]:
        """See `TrafficSourceKind.port_macs`."""
        return CLIENT_MAC, SERVER_MAC

    def cards(self, config: SoftwareGeneratorConfig) -> list[Card]:
        """See `TrafficSourceKind.cards`."""
        return []

    def numa_node(self, config: SoftwareGeneratorConfig) -> int | None:
        """See `TrafficSourceKind.numa_node`."""
        return None

    def hugepages_mb(self, config: SoftwareGeneratorConfig) -> int:
        """See `TrafficSourceKind.hugepages_mb`."""
        return 0

    def examine(self, config: SoftwareGeneratorConfig, on: Examined) -> Iterator[Finding]:
        """See `TrafficSourceKind.examine`."""
        try:
            require_x86_64()
        except MissingResource as error:
            yield bad("processor", str(error), "measure on an x86-64 machine")
        else:
            yield ok("processor", "x86-64")

    def examine_wiring(
        self, config: SoftwareGeneratorConfig, macs: Mapping[Card, str], *, bridges: bool
    ) -> Iterator[Finding]:
        """See `TrafficSourceKind.examine_wiring`."""
        yield from ()


def require_x86_64(machine: str | None = None) -> None:
    """The memif code relies on x86-64's ordering of stores."""
    machine = machine or platform.machine()
    if machine not in ("x86_64", "AMD64"):
        raise MissingResource(
            f"This is a {machine} machine, and the software traffic generator works on x86-64 only:"
            " measure on an x86-64 machine."
        )
