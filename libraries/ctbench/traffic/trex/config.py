"""The trex_cfg.yaml that follows from the TRex settings of a testbed file (TRex manual, "Platform YAML")."""

import re
from typing import Any

import yaml

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.trex.source import DEFAULT_SYNC_PORT, OTHER_THREADS, TrexGeneratorConfig, TrexPort

#: Flow objects that every server gets; what the manual calls TRex' default, v3.08 makes half of that.
LEAST_FLOWS = 1 << 20
#: The largest table of a data plane thread: above 20 million flow objects TRex aborts (bp_sim.cpp).
LARGEST_TABLE = 1 << 23
#: Seconds that TRex keeps a flow beyond its data, seen, and what set-up and a full DUT may add.
FLOW_LINGER_S = 1.0
#: Seconds that TRex keeps a connection whose SYN is lost (tcp_timer.h, TCPTV_KEEP_INIT), and half a second after that.
#: One that loses data is kept longer: with half as many to spare, a DUT that loses all can fill the table only in a
#: trial of more than 8 s with its ramp-up, which is invalid then. A place in a table takes 16 bytes and a connection
#: about 1 kB of TRex' ordinary memory: ASTF takes no hugepages for them (closehash.h, flow_table.cpp).
LOST_LINGER_S = 5.5


def concurrent_flows(profile: ConnectionProfile, load: float) -> int:
    """Return how many connections of `profile` are open at the same time when `load` begin each second."""
    return round(load * (profile.mean_lifetime_s + FLOW_LINGER_S))


def lost_flows(load: float) -> int:
    """Return how many more TRex keeps at the same time when all of `load` connections per second are lost."""
    return round(load * (LOST_LINGER_S - FLOW_LINGER_S))


def dp_flows(flows: int, cores: int, lost: int = 0) -> int:
    """Return the `dp_flows` that hold `flows` connections on `cores` data plane threads, and as many of the `lost` ones
    as TRex can, with half as many to spare.

    A thread gets its share of `dp_flows`, half of it for the client ends and half for the server ends of connections;
    TRex makes each table as large as the next power of two (bp_sim_tcp.cpp, closehash.h), and opens no more connections
    when one is full. Raise `MissingResource` where so many threads cannot hold `flows`.
    """
    if _table(flows, cores) > LARGEST_TABLE:
        raise MissingResource(
            f"TRex holds {LARGEST_TABLE * 2 // 3} connections for each of its cores, and {flows} on {cores} are asked "
            "for: give the generator more cores."
        )
    return max(LEAST_FLOWS, 2 * min(_table(flows + lost, cores), LARGEST_TABLE) * cores)


def _table(flows: int, cores: int) -> int:
    """Return the size of the table of each thread."""
    per_core = -(-flows * 3 // (2 * cores))
    return 1 << max(per_core - 1, 0).bit_length()


def is_kernel_interface(interface: str) -> bool:
    """True for the name of a kernel interface, which TRex reaches through af_packet."""
    return "--vdev" not in interface and ":" not in interface


def kernel_interface(interface: str) -> str:
    """Return the kernel interface that TRex receives from, also where DPDK's device for it is written out
    (`--vdev=net_af_packet0,iface=eth1`); empty where there is none."""
    if is_kernel_interface(interface):
        return interface
    found = re.search(r"\biface=([^,\s]+)", interface)
    return found[1] if found else ""


def is_virtual(port: TrexPort) -> bool:
    """True where TRex reaches the port through the kernel or a virtual DPDK device, not as a card of its own."""
    return "--vdev" in port.interface or is_kernel_interface(port.interface)


def instance_name(config: TrexGeneratorConfig) -> str:
    """Return a name for a TRex that may not be the only one on its host: on virtual devices, which share no memory
    anyway, or on other ports. Empty otherwise. With a name, TRex takes 1 GB for cards, not all hugepages
    (main_dpdk.cpp)."""
    if config.sync_port == DEFAULT_SYNC_PORT and not is_virtual(config.client):
        return ""
    return f"ctbench-{config.sync_port}"


def trex_cfg(config: TrexGeneratorConfig, flows: int = 0) -> str:
    """Return the content of trex_cfg.yaml for `config`, whose ports are complete, with at least `flows` flow objects.

    `flows` is 0 for STL, which has no connections and would make as many stream nodes, from memory that it lacks on
    virtual ports. Raise `ConfigError` where the testbed file describes a port incompletely, or gives too few CPUs.
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
    """Return the CPUs of TRex' threads: master, latency, then data plane; with `low_end`, one CPU for all of them."""
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
