"""What a testbed file says of TRex, and the trex_cfg.yaml that follows from it (TRex manual, "Platform YAML")."""

import re
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.network import MOST_CPU, MOST_PORT_PAIRS, HostKey, Ipv4, Mac, PathText, ProgramWord, check_options
from ctbench.base.yaml_files import YamlModel
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.traffic.kind import SourceSettings
from ctbench.traffic.profiles import ConnectionProfile

#: TRex' default ports; two TRex on one host need others, and a name of their own (DPDK's --file-prefix).
DEFAULT_SYNC_PORT, DEFAULT_ASYNC_PORT = 4501, 4500
#: Threads of TRex besides those of the data plane: the master's and the latency thread.
OTHER_THREADS = 2


#: Options of t-rex-64 that follow from other keys, or that a run needs.
OPTIONS = ("--cfg", "-i", "--astf", "-c", "--software", "--no-scapy-server", "--no-key", "--iom")


class TrexPort(YamlModel):
    """One port of TRex, as trex_cfg.yaml describes it. Empty keys: found out, or not needed."""

    #: What TRex calls it: a PCI address, the name of a Linux interface, or a DPDK device such as `--vdev=…`.
    interface: Annotated[PathText, Field(max_length=256)] = ""
    #: MAC address that the port sends from; empty: the card's own.
    mac: Mac = ""
    #: Where its frames go: the MAC address of the DUT's port, or of the other TRex port where the DUT bridges.
    #: Empty: taken from the DUT where that routes, else from the other port's `mac`.
    dest_mac: Mac = ""
    #: Instead of `dest_mac`: the port's own address, and the gateway that it resolves with ARP.
    ip: Ipv4 = ""
    gateway: Ipv4 = ""


class TrexPair(YamlModel):
    """A pair of ports: towards the clients, towards the servers."""

    client: TrexPort = TrexPort()
    server_port: TrexPort = TrexPort()


class TrexGeneratorConfig(SourceSettings):
    """TRex: ASTF for connections, STL for packets."""

    type: Literal["trex"]
    #: Where the TRex server runs: an entry of `hosts`, `local`, or `sandbox` (next to a DUT that is in one, over veth).
    host: HostKey
    #: `running`: one that runs already; `start`: started here, over SSH where `host` is another machine, once for
    #: each mode; `daemon`: through trex_daemon_server, which has to run on `host`.
    server: Literal["running", "start", "daemon"]
    #: Folder of TRex on `host` (where t-rex-64 is), to start it there. The client is taken from here too. Empty: what
    #: the environment variable TREX_HOME says.
    trex_home: PathText = ""
    #: The two ports: towards the clients, towards the servers.
    client: TrexPort = TrexPort()
    server_port: TrexPort = TrexPort()
    #: Further pairs of ports.
    more_pairs: list[TrexPair] = Field(default_factory=list, max_length=MOST_PORT_PAIRS - 1)
    #: TRex' numbers of these ports, client side first, pair by pair.
    ports: list[Annotated[int, Field(ge=0, le=31)]] = Field(
        default_factory=lambda known: list(range(2 + 2 * len(known.get("more_pairs", []))))
    )
    #: TRex' `-c`: data plane threads per pair of ports.
    cores: int = Field(1, ge=1, le=64)
    #: CPUs of the TRex host: master thread, latency thread, then data plane threads. Empty: TRex chooses.
    cpus: list[Annotated[int, Field(ge=0, le=MOST_CPU)]] = Field(default_factory=list)
    #: NUMA node of the cards.
    socket: int = Field(0, ge=0, le=15)
    #: Descriptors of the cards' rings; None: TRex' default.
    rx_descriptors: int | None = Field(None, ge=64, le=16384)
    tx_descriptors: int | None = Field(None, ge=64, le=16384)
    #: TRex' pools of memory buffers and flows, `memory` of trex_cfg.yaml, besides what the profile needs.
    memory: dict[str, Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(default_factory=dict)
    #: true: cards without hardware filters (`--software`): virtual ones, af_packet, AF_XDP.
    software: bool = False
    #: true: a machine with few CPUs (`low_end` of trex_cfg.yaml).
    low_end: bool = False
    #: Further options of t-rex-64, a word each: [--no-ofed-check], or [--mbuf-factor, "2"].
    options: list[ProgramWord] = Field(default_factory=list, max_length=64)
    #: Load that is never exceeded, connections and packets per second, where TRex is slower than the campaigns' ranges
    #: reach: a search does not waste trials there. None: no limit.
    max_cps: float | None = Field(None, ge=1, le=1e9)
    max_pps: float | None = Field(None, ge=1, le=1e9)
    #: Connections per second at which it opens those that it holds, at most: TRex does not wait for a slow DUT. None:
    #: the campaign's `table.opened_per_s`.
    max_held_cps: float | None = Field(None, ge=1, le=1e9)
    #: Connections that it holds, at most: it looks at each open one ten times a second. None: as many as memory has
    #: room for.
    max_held: int | None = Field(None, ge=1, le=10**9)
    #: Seconds that TRex gets to start.
    start_timeout_s: float = Field(60, ge=1, le=600)
    #: TCP ports of the server, and of its daemon.
    sync_port: int = Field(DEFAULT_SYNC_PORT, ge=1, le=65535)
    async_port: int = Field(DEFAULT_ASYNC_PORT, ge=1, le=65535)
    daemon_port: int = Field(8090, ge=1, le=65535)

    @property
    def cpus_needed(self) -> int:
        return 1 if self.low_end else len(self.cpus) or self.cores * len(self.pairs) + OTHER_THREADS

    @property
    def pairs(self) -> list[tuple[TrexPort, TrexPort]]:
        return [(self.client, self.server_port), *((each.client, each.server_port) for each in self.more_pairs)]

    @property
    def named_ports(self) -> list[tuple[str, TrexPort]]:
        """By their keys in the testbed file."""
        keys = ("", *(f"more_pairs[{number}]." for number in range(len(self.more_pairs))))
        return [
            (f"{key}{side}", port)
            for key, pair in zip(keys, self.pairs, strict=True)
            for side, port in zip(("client", "server_port"), pair, strict=True)
        ]

    @property
    def most(self) -> dict[str, float]:
        known = (self.max_cps, self.max_pps, self.max_held_cps, self.max_held)
        kinds = ("connections", "packets", "opened", "held")
        return {kind: most for kind, most in zip(kinds, known, strict=True) if most is not None}

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        interfaces = [port.interface for _, port in self.named_ports]
        if self.server != "running" and self.host != SANDBOX and not all(interfaces):
            raise ValueError(
                f"{next(key for key, port in self.named_ports if not port.interface)}.interface is needed to start "
                "TRex.\n"
                "  Expected the PCI address, or the name of the interface, of each port."
            )
        check_options("options", self.options, OPTIONS)
        if self.options and self.server == "running":
            raise ValueError(
                "options do not go with server: running.\n  Expected server: start, or one that was started with them."
            )
        if len(set(self.ports)) != 2 * len(self.pairs) or len(self.ports) != 2 * len(self.pairs):
            expected = list(range(2 * len(self.pairs)))
            raise ValueError(f"ports: {self.ports} are not {len(expected)} ports.\n  Expected such as {expected}.")
        if self.host == SANDBOX and self.server != "start":
            raise ValueError(f"server: {self.server} does not go with host: sandbox.\n  Expected start.")
        if self.host == LOCAL and self.server == "start" and len(set(interfaces)) < len(interfaces):
            raise ValueError(f"interfaces of ports are the same: {interfaces}.\n  Expected each once.")
        return self


#: Flow objects that every server gets; what the manual calls TRex' default, v3.08 makes half of that.
LEAST_FLOWS = 1 << 20
#: The largest table of a data plane thread: above 20 million flow objects TRex aborts (bp_sim.cpp).
LARGEST_TABLE = 1 << 23
#: Seconds that TRex keeps a flow beyond its data, seen, and what set-up and a full DUT may add.
FLOW_LINGER_S = 1.0


def concurrent_flows(profile: ConnectionProfile, load: float) -> int:
    """Connections of `profile` that are open at the same time when `load` begin each second."""
    return round(load * (profile.mean_lifetime_s + FLOW_LINGER_S))


def dp_flows(flows: int, cores: int) -> int:
    """`dp_flows` that hold `flows` connections on `cores` data plane threads, half of them to spare.

    A thread gets its share of `dp_flows`, half of it for the client ends and half for the server ends of connections;
    TRex makes each table as large as the next power of two (bp_sim_tcp.cpp, closehash.h), and opens no more connections
    when one is full. `MissingResource` when so many threads cannot hold them.
    """
    per_core = -(-flows * 3 // (2 * cores))
    table = 1 << max(per_core - 1, 0).bit_length()
    if table > LARGEST_TABLE:
        raise MissingResource(
            f"TRex holds {LARGEST_TABLE * 2 // 3} connections for each of its cores, and {flows} on {cores} are asked "
            "for: give the generator more cores."
        )
    return max(LEAST_FLOWS, 2 * table * cores)


def is_kernel_interface(interface: str) -> bool:
    """Whether it is the name of an interface of the kernel, which TRex reaches through af_packet."""
    return "--vdev" not in interface and ":" not in interface


def kernel_interface(interface: str) -> str:
    """The interface of the kernel that TRex receives from, also where DPDK's device for it is written out
    (`--vdev=net_af_packet0,iface=eth1`); empty where there is none."""
    if is_kernel_interface(interface):
        return interface
    found = re.search(r"\biface=([^,\s]+)", interface)
    return found[1] if found else ""


def is_virtual(port: TrexPort) -> bool:
    """Whether TRex reaches the port through the kernel or a virtual DPDK device, not as a card of its own."""
    return "--vdev" in port.interface or is_kernel_interface(port.interface)


def instance_name(config: TrexGeneratorConfig) -> str:
    """A name of its own for a TRex that is not the only one: virtual devices, which share no memory anyway, and
    servers on other ports. With a name, TRex takes 1 GB for cards, not all the hugepages (main_dpdk.cpp)."""
    if config.sync_port == DEFAULT_SYNC_PORT and not is_virtual(config.client):
        return ""
    return f"ctbench-{config.sync_port}"


def trex_cfg(config: TrexGeneratorConfig, flows: int = 0) -> str:
    """The content of trex_cfg.yaml for `config`, whose ports are complete by now, with `flows` flow objects at least.

    0 is for STL, which has no connections and would make as many stream nodes of them, from memory that it does not
    have on virtual ports. `ConfigError` when the testbed file says too little of a port, or gives too few CPUs.
    """
    ports = config.named_ports
    if config.ports != (expected := list(range(len(ports)))):
        raise ConfigError(
            f"generator.ports: {config.ports} does not go with server: {config.server}.\n  Expected {expected}."
        )
    for key, port in ports:
        if not port.interface:
            raise ConfigError(f"generator.{key}.interface: is missing.\n  Expected a PCI address or an interface.")
        if not port.dest_mac and not (port.ip and port.gateway):
            raise ConfigError(
                f"generator.{key}: says not where its frames go, and the DUT does not either.\n"
                "  Expected dest_mac, ip and gateway, or `mac` of the other port."
            )
    memory = {**config.memory, "dp_flows": max(flows, config.memory.get("dp_flows", 0))}
    if not flows:
        del memory["dp_flows"]
    content: dict[str, Any] = {
        "version": 2,
        "interfaces": [port.interface for _, port in ports],
        "zmq_pub_port": config.async_port,
        "zmq_rpc_port": config.sync_port,
        "prefix": instance_name(config),
        "rx_desc": config.rx_descriptors,
        "tx_desc": config.tx_descriptors,
        "port_info": [_port_info(port) for _, port in ports],
        "c": config.cores,
        "memory": memory,
        **_threads(config),
    }
    known = {key: value for key, value in content.items() if value not in (None, "", {})}
    return str(yaml.safe_dump([known], sort_keys=False))


def _port_info(port: TrexPort) -> dict[str, str]:
    gateway = "" if port.dest_mac else port.gateway
    info = {"dest_mac": port.dest_mac, "src_mac": port.mac, "ip": port.ip, "default_gw": gateway}
    return {name: value for name, value in info.items() if value}


def _threads(config: TrexGeneratorConfig) -> dict[str, Any]:
    """Which CPUs TRex' threads run on: master, latency, then data plane; `low_end` puts all of them on one."""
    if config.low_end:
        return {"low_end": True, **({"low_end_core": config.cpus[0]} if config.cpus else {})}
    if not config.cpus:
        return {}
    pairs = len(config.pairs)
    needed, of_each = config.cores * pairs + OTHER_THREADS, f" of each of {pairs} pairs" * (pairs > 1)
    if len(config.cpus) < needed:
        raise ConfigError(
            f"generator.cpus: {config.cpus} are too few for cores: {config.cores}{of_each}.\n"
            f"  Expected {needed}: master thread, latency thread, data plane threads; or low_end: true."
        )
    master, latency, *threads = config.cpus
    each = len(threads) // pairs
    dual_if = [{"socket": config.socket, "threads": threads[pair * each : (pair + 1) * each]} for pair in range(pairs)]
    return {"platform": {"master_thread_id": master, "latency_thread_id": latency, "dual_if": dual_if}}
