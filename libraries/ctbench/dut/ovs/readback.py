"""Reads back what OVS says of its set-up and names every difference from what was asked."""

from collections.abc import Mapping, Sequence
from typing import Any

from ctbench.dut.ovs.bridge import Bridge
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.parse import parse_port_options, parse_rxq_map, parse_zone_timeouts
from ctbench.dut.ovs.ruleset import LINKS, NUMBERS, BridgePort, BridgeRules
from ctbench.dut.ovs.settings import OvsConntrackSettings
from ctbench.dut.ovs.threads import misplaced, read_threads
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement

#: Receive queues of each PMD CPU, as (port, queue).
RxqMap = Mapping[int, Sequence[tuple[str, int]]]


def differences(
    control: OvsControl,
    bridge: Bridge,
    topology: Topology,
    rules: BridgeRules,
    placement: Placement,
    conntrack: OvsConntrackSettings,
) -> list[str]:
    """One clause per difference, `what: asked …, found …`; empty when OVS is set up as asked."""
    found: list[str] = []
    found += differing_options(
        control.columns("Open_vSwitch", ".", "other_config")["other_config"], topology, placement
    )
    interfaces = rules.interfaces
    queues = parse_rxq_map(control.appctl("dpif-netdev/pmd-rxq-show"))
    found += differing_queues(queues, topology, placement, interfaces)
    transmit = bridge.devices.transmit_queues(topology)
    found += differing_devices(parse_port_options(control.appctl("dpif/show")), topology, transmit, interfaces)
    for interface in interfaces:
        columns = control.columns("Interface", interface, "ofport", "mtu")
        _compare(found, f"OpenFlow number of {interface}", NUMBERS[interface], columns["ofport"])
        _compare(found, f"MTU of {interface}", topology.mtu, columns["mtu"])
    for port in rules.ports:
        found += _differing_columns(control, port)
    _compare(found, "conntrack limit", conntrack.max_connections, int(control.appctl("dpctl/ct-get-maxconns")))
    zones = parse_zone_timeouts(control.vsctl("list-zone-tp", bridge.datapath_type))
    _compare(found, "conntrack timeouts of zone 0", conntrack.timeouts, zones.get(0, {}))
    flows = control.flow_differences(bridge.flows)
    if flows:
        found.append(f"flows of {control.bridge}: `-` asked, `+` found: {'; '.join(flows)}")
    return found


def differing_options(other_config: Mapping[str, str], topology: Topology, placement: Placement) -> list[str]:
    """Differences in the options of the Open_vSwitch table; ovs-vswitchd.conf.db(5)."""
    found: list[str] = []
    smc = None if topology.smc is None else str(topology.smc).lower()
    emc = None if topology.emc_insert_inv_prob is None else str(topology.emc_insert_inv_prob)
    _compare(found, "pmd-cpu-mask", placement.pmd_mask, other_config.get("pmd-cpu-mask"))
    _compare(found, "emc-insert-inv-prob", emc, other_config.get("emc-insert-inv-prob"))
    revalidators = None if topology.revalidators is None else str(topology.revalidators)
    _compare(found, "n-revalidator-threads", revalidators, other_config.get("n-revalidator-threads"))
    handlers = None if topology.handlers is None else str(topology.handlers)
    _compare(found, "n-handler-threads", handlers, other_config.get("n-handler-threads"))
    _compare(found, "smc-enable", smc, other_config.get("smc-enable"))
    return found


def differing_queues(
    queues: RxqMap, topology: Topology, placement: Placement, interfaces: Sequence[str] = LINKS[0]
) -> list[str]:
    """Differences in the PMD threads and the queues that they poll. OVS chooses which thread polls which queue; asked
    is that every queue has one, and that none idles while another has two."""
    found: list[str] = []
    _compare(found, "CPUs of the PMD threads", sorted(placement.pmd), sorted(queues))
    wanted = sorted((port, queue) for port in interfaces for queue in range(topology.rx_queues))
    _compare(found, "receive queues polled", wanted, sorted(queue for polled in queues.values() for queue in polled))
    counts = {cpu: len(polled) for cpu, polled in queues.items()}
    if counts and min(counts.values()) == 0 and max(counts.values()) > 1:
        found.append(f"queues per PMD CPU: asked none idle while another polls several, found {counts}")
    return found


def differing_devices(
    options: Mapping[str, Mapping[str, str]], topology: Topology, transmit: int, interfaces: Sequence[str] = LINKS[0]
) -> list[str]:
    """Differences in what the interfaces' devices are configured to; `transmit`: queues that they send on."""
    wanted = {
        "configured_rx_queues": topology.rx_queues,
        "configured_rxq_descriptors": topology.rx_descriptors,
        "configured_txq_descriptors": topology.rx_descriptors,
        "configured_tx_queues": transmit,
    }
    found: list[str] = []
    for interface in interfaces:
        for name, value in wanted.items():
            _compare(found, f"{name} of {interface}", str(value), options.get(interface, {}).get(name))
    return found


def differing_threads(control: OvsControl, pid: int, placement: Placement) -> list[str]:
    """Threads of ovs-vswitchd on CPUs that are not theirs."""
    return [
        f"CPUs of thread {thread.name}: asked "
        f"{thread.pmd_cpu if thread.pmd_cpu is not None else placement.housekeeping}, found {thread.cpus}"
        for thread in misplaced(read_threads(control.host, pid), placement)
    ]


def _differing_columns(control: OvsControl, port: BridgePort) -> list[str]:
    """Differences in what the bridge does with a port: its VLANs, the mode of a bond."""
    found: list[str] = []
    for column, value in port.columns.items():
        # A set of one comes in brackets, a string of digits in quotes; ovs-vsctl(8), section Database Values.
        got = control.vsctl("--if-exists", "get", "Port", port.name, column).strip().strip('"[]').replace(" ", "")
        _compare(found, f"{column} of {port.name}", value, got or None)
    return found


def _compare(found: list[str], what: str, asked: Any, got: Any) -> None:
    if asked != got:
        found.append(f"{what}: asked {asked}, found {got}")
