"""TRex as a kind of traffic source."""

from collections.abc import Iterator, Mapping

from ctbench.hosts.config import SANDBOX
from ctbench.hosts.examination.facts import GENERATOR, Card, Examined
from ctbench.hosts.examination.finding import Finding
from ctbench.traffic.kind import OpenLimit, OwnCpus
from ctbench.traffic.trex import doctor
from ctbench.traffic.trex.config import TrexGeneratorConfig, TrexPort
from ctbench.traffic.trex.server_config import FLOW_LINGER_S, LARGEST_TABLE

#: Seconds that TRex keeps a flow longer than its data.
_LINGER_S = 0.5
#: What t-rex-64 reserves for cards where nobody else has, MiB (2048 pages of 2 MiB, dpdk_setup_ports.py).
_HUGEPAGES_MB = 4096


class TrexKind:
    """Implements `ctbench.traffic.kind.TrafficSourceKind`."""

    name = "trex"
    title = "TRex"
    settings = TrexGeneratorConfig
    #: ASTF measures no handshake (astf_trial.py).
    unmeasured = frozenset({"connect_time_p99"})

    def require(self, config: TrexGeneratorConfig) -> None:
        """See `TrafficSourceKind.require`: what its host lacks, is said when it is started."""

    def out_of_reach(self, config: TrexGeneratorConfig, host: str, ports: str) -> str:
        """See `TrafficSourceKind.out_of_reach`."""
        if (host == SANDBOX) == (config.host == SANDBOX) and ports != "memif":
            return ""
        return (
            f"ports of kind {ports} on host {host} are out of reach of TRex on host {config.host}.\n"
            "  Expected both in the sandbox with veth, or neither."
        )

    def hosts_for_itself(self, config: TrexGeneratorConfig) -> tuple[str, ...]:
        """See `TrafficSourceKind.hosts_for_itself`."""
        return (config.host,)

    def has_cards(self, config: TrexGeneratorConfig) -> bool:
        """See `TrafficSourceKind.has_cards`."""
        return config.host != SANDBOX

    def own_cpus(self, config: TrexGeneratorConfig) -> OwnCpus:
        """See `TrafficSourceKind.own_cpus`: master thread, latency thread, data plane threads."""
        return OwnCpus(generating=tuple(config.cpus[2:]), others=tuple(config.cpus[:2]))

    def open_limit(self, config: TrexGeneratorConfig) -> OpenLimit | None:
        """See `TrafficSourceKind.open_limit`: what its largest tables hold where the run starts it, what the testbed
        file says of one that runs already."""
        objects = config.memory.get("dp_flows")
        if config.server != "running":
            held = LARGEST_TABLE * 2 // 3 * config.cores
            return OpenLimit(held, FLOW_LINGER_S, f"TRex on {config.cores} core(s)", False, " Give it more cores.")
        if not objects:
            return None
        what, remedy = f"generator.memory.dp_flows: {objects}", "\n  Expected a TRex that was started with more."
        return OpenLimit(objects // 2, _LINGER_S, what, True, remedy)  # an object for either end

    def held_bytes(self, config: TrexGeneratorConfig, connections: int) -> int:
        """See `TrafficSourceKind.held_bytes`."""
        return 0

    def port_macs(self, config: TrexGeneratorConfig) -> tuple[str, str]:
        """See `TrafficSourceKind.port_macs`."""
        return config.client.mac, config.server_port.mac

    def cards(self, config: TrexGeneratorConfig) -> list[Card]:
        """See `TrafficSourceKind.cards`."""
        return [
            Card(GENERATOR, side, _pci_address(port.interface) if ":" in port.interface else port.interface)
            for side, port in (("client", config.client), ("server", config.server_port))
            if _is_card(port) and config.host != SANDBOX
        ]

    def numa_node(self, config: TrexGeneratorConfig) -> int | None:
        """See `TrafficSourceKind.numa_node`."""
        return config.socket

    def hugepages_mb(self, config: TrexGeneratorConfig) -> int:
        """See `TrafficSourceKind.hugepages_mb`: on virtual ports it needs none."""
        return _HUGEPAGES_MB if any(card.is_pci for card in self.cards(config)) else 0

    def examine(self, config: TrexGeneratorConfig, on: Examined) -> Iterator[Finding]:
        """See `TrafficSourceKind.examine`."""
        return doctor.examine(config, on)

    def examine_wiring(
        self, config: TrexGeneratorConfig, macs: Mapping[Card, str], *, bridges: bool
    ) -> Iterator[Finding]:
        """See `TrafficSourceKind.examine_wiring`: of one that runs already, the file does not say where frames go."""
        if config.server != "running":
            yield from doctor.examine_wiring(config, macs, bridges=bridges)


def _pci_address(text: str) -> str:
    """A PCI address in full; TRex takes `18:00.2` as well."""
    return text if text.count(":") == 2 else f"0000:{text}"


def _is_card(port: TrexPort) -> bool:
    return bool(port.interface) and "--vdev" not in port.interface
