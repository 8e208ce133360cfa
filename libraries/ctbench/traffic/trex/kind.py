"""TRex as a kind of traffic source."""

from collections.abc import Iterator, Mapping

from ctbench.hosts.config import SANDBOX
from ctbench.hosts.machine import GENERATOR, Card, Examined, Finding
from ctbench.traffic.kind import OpenLimit, OwnCpus, TrafficSourceKind
from ctbench.traffic.trex import doctor
from ctbench.traffic.trex.config import FLOW_LINGER_S, LARGEST_TABLE, TrexGeneratorConfig

#: Seconds that TRex keeps a flow longer than its data.
_LINGER_S = 0.5
#: What t-rex-64 reserves for cards where no other program has, MiB (2048 pages of 2 MiB, dpdk_setup_ports.py).
_HUGEPAGES_MB = 4096


class TrexKind(TrafficSourceKind):
    """What its host lacks, is said when it is started."""

    name = "trex"
    title = "TRex"
    settings = TrexGeneratorConfig
    #: ASTF measures no handshake (astf_trial.py).
    unmeasured = frozenset({"connect_time_p99"})

    def out_of_reach(self, config: TrexGeneratorConfig, host: str, ports: str) -> str:
        if (host == SANDBOX) == (config.host == SANDBOX) and ports != "memif":
            return ""
        return (
            f"ports of kind {ports} on host {host} are out of reach of TRex on host {config.host}.\n"
            "  Expected both in the sandbox with veth, or neither."
        )

    def hosts_for_itself(self, config: TrexGeneratorConfig) -> tuple[str, ...]:
        return (config.host,)

    def has_cards(self, config: TrexGeneratorConfig) -> bool:
        return config.host != SANDBOX

    def own_cpus(self, config: TrexGeneratorConfig) -> OwnCpus:
        """Master thread, latency thread, data plane threads."""
        return OwnCpus(generating=tuple(config.cpus[2:]), others=tuple(config.cpus[:2]))

    def open_limit(self, config: TrexGeneratorConfig) -> OpenLimit | None:
        """What its largest tables hold where the run starts it, what the testbed
        file says of one that runs already."""
        objects = config.memory.get("dp_flows")
        if config.server != "running":
            held = LARGEST_TABLE * 2 // 3 * config.cores
            return OpenLimit(held, FLOW_LINGER_S, f"TRex on {config.cores} core(s)", False, " Give it more cores.")
        if not objects:
            return None
        what, remedy = f"generator.memory.dp_flows: {objects}", "\n  Expected a TRex that was started with more."
        return OpenLimit(objects // 2, _LINGER_S, what, True, remedy)  # an object for either end

    def port_macs(self, config: TrexGeneratorConfig) -> tuple[str, str]:
        return config.client.mac, config.server_port.mac

    def cards(self, config: TrexGeneratorConfig) -> list[Card]:
        found = []
        for side, port in (("client", config.client), ("server", config.server_port)):
            name = port.interface
            if name and "--vdev" not in name and config.host != SANDBOX:
                # TRex takes `18:00.2` as well as a PCI address in full.
                found.append(Card(GENERATOR, side, f"0000:{name}" if name.count(":") == 1 else name))
        return found

    def numa_node(self, config: TrexGeneratorConfig) -> int | None:
        return config.socket

    def hugepages_mb(self, config: TrexGeneratorConfig) -> int:
        """On virtual ports it needs none."""
        return _HUGEPAGES_MB if any(card.is_pci for card in self.cards(config)) else 0

    def examine(self, config: TrexGeneratorConfig, on: Examined) -> Iterator[Finding]:
        return doctor.examine(config, on)

    def examine_wiring(
        self, config: TrexGeneratorConfig, macs: Mapping[Card, str], *, bridges: bool
    ) -> Iterator[Finding]:
        """Of one that runs already, the file does not say where frames go."""
        if config.server != "running":
            yield from doctor.examine_wiring(config, macs, bridges=bridges)
