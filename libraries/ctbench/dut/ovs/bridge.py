"""The bridge and its ports: set up as a topology asks, by changes of what differs, and read back."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.text import one_line
from ctbench.dut.base import differing, wait_until
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.control import COMMAND_TIMEOUT_S, OvsControl
from ctbench.dut.ovs.control_plane import OvsControlPlane
from ctbench.dut.ovs.dpdk import DESCRIPTORS, Devices
from ctbench.dut.ovs.ruleset import (
    LINKS,
    NUMBERS,
    BridgePort,
    BridgeRules,
    all_flows,
    without_comments,
)
from ctbench.dut.ovs.settings import PACKAGES, TABLE
from ctbench.dut.ovs.threads import misplaced, read_threads
from ctbench.dut.ovs.zone_policies import ZonePolicies
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement


class Bridge:
    """One bridge of the userspace datapath, with a port towards the clients and one towards the servers."""

    def __init__(self, control: OvsControl, datapath_type: str, devices: Devices) -> None:
        """`datapath_type` is `netdev`, or `dummy` (the same datapath with a LOCAL port that needs no tap device)."""
        self._control = control
        self.datapath_type = datapath_type
        self.devices = devices
        self.control_plane = OvsControlPlane(control)
        self.policies = ZonePolicies(control, datapath_type)
        #: Whether it was created: before the first topology it is not.
        self._created = False
        self._ports: tuple[BridgePort, ...] = ()
        #: What the ports were made for.
        self._shape: object = None
        #: What the switch made of the ruleset, in its own words.
        self._flows: list[str] = []

    @property
    def flows(self) -> str:
        """Path on the host of the loaded ruleset, with port numbers for names."""
        return f"{self._control.folder}/rules.flows"

    def _creation(self) -> list[str]:
        """Return the commands of ovs-vsctl that create the bridge, and the record of its datapath that zone policies
        need: ovs-vswitchd does not make one for userspace."""
        kind, name = self.datapath_type, self._control.bridge
        # fail_mode=secure: without rules nothing passes, so that no packet is handled before the ruleset is there.
        commands = ["--", "add-br", name, "--", "set", "Bridge", name, f"datapath_type={kind}", "fail_mode=secure"]
        commands += ["--", "--id=@m", "create", "Datapath", "datapath_version=0"]
        return [*commands, "--", "set", "Open_vSwitch", ".", f"datapaths:{kind}=@m"]

    def configure(self, topology: Topology, placement: Placement, rules: BridgeRules) -> None:
        """Set up a topology, in one transaction unless ports have to go first: ovs-vswitchd takes over each transaction
        by itself."""
        changes = [] if self._created else self._creation()
        for key, value in options_of(topology, placement).items():
            if value is None:
                changes += ["--", "remove", "Open_vSwitch", ".", "other_config", key]
            else:
                changes += ["--", "set", "Open_vSwitch", ".", f"other_config:{key}={value}"]
        # Some of a device is in its name and cannot change while it is there: such ports are created again, and all
        # of them where the ruleset wants other ones.
        shape = (rules.ports, self.devices.shape(topology, placement))
        again = shape != self._shape
        old = [part for port in self._ports if again for part in ("--", "del-port", self._control.bridge, port.name)]
        if old:
            self._control.vsctl(*changes, *old)
            changes = []
        if again:
            self._shape = None
            self.devices.make(topology, placement)
        changes += self._port_changes(topology, rules.ports, again=again)
        failed, closed = "", ""
        try:
            self._control.vsctl(*changes)
        except TestbedError as error:  # since 3.6 ovs-vsctl fails where a port could not be opened
            failed = str(error)
        with suppress(TestbedError) if failed else nullcontext():
            closed = self._not_open(rules.interfaces)
        if closed or failed:
            raise TestbedError(closed or failed)
        self._created = True
        self._ports, self._shape = rules.ports, shape
        conntrack = TABLE.of(topology)
        self.policies.set(rules.zones, conntrack.timeouts, once=topology.zone_policy == "first")
        self.policies.limit(rules.zone_limits)
        self.control_plane.keep_ports(topology.idle_ports)
        self._control.ask(answers.SET_TABLE_LIMIT, str(conntrack.max_connections))
        self._load(rules)

    def _not_open(self, interfaces: Sequence[str]) -> str:
        """Return which interface could not be opened, and why; empty where all could."""
        for name, columns in self._control.rows("Interface", interfaces, "error").items():
            if error := columns["error"]:
                return f"OVS cannot open {name}: {error}. Is a package missing ({PACKAGES})?"
        return ""

    def _port_changes(self, topology: Topology, ports: Sequence[BridgePort], *, again: bool) -> list[str]:
        settings = [
            f"options:n_rxq={topology.rx_queues}",
            f"options:n_rxq_desc={DESCRIPTORS}",
            f"options:n_txq_desc={DESCRIPTORS}",
            f"mtu_request={topology.mtu}",
        ]
        commands = []
        for port in ports:
            commands += self._port_command(port, add=again)
            for interface in port.interfaces:
                commands += ["--", "set", "Interface", interface, *settings]
                if again:
                    devargs = self.devices.devargs(interface, topology)
                    number = f"ofport_request={NUMBERS[interface]}"
                    commands += ["type=dpdk", f'options:dpdk-devargs="{devargs}"', number]
        return commands

    def _port_command(self, port: BridgePort, *, add: bool) -> list[str]:
        """Return the ovs-vsctl command that adds a port to the bridge, or sets the columns of one that exists."""
        columns = [f"{column}={value}" for column, value in port.columns.items()]
        if not add:
            return ["--", "set", "Port", port.name, *columns] if columns else []
        if port.is_bond:
            return ["--", "add-bond", self._control.bridge, port.name, *port.interfaces, *columns]
        return ["--", "add-port", self._control.bridge, port.name, *columns]

    def _load(self, rules: BridgeRules) -> None:
        """Load the flows of a ruleset. The layout of its file does not matter: `differences` compares with the flows
        that the switch lists afterwards. Raise `TestbedError` where Open vSwitch does not take a flow, or not all of
        it, or a later flow takes its place."""
        control = self._control
        text = all_flows(rules.flows)
        control.host.run(["tee", self.flows], stdin=text)
        control.ofctl("del-flows", control.bridge)
        # In one transaction, all or nothing: 200 000 flows take seconds, and minutes one by one.
        argv = [control.installation.tool("ovs-ofctl"), "--bundle", "add-flows", control.bridge, self.flows]
        done = control.host.run(argv, COMMAND_TIMEOUT_S, check=False, env=control.environment)
        refused = refusal(done.stderr, failed=done.exit_status != 0)
        if not refused:
            self._flows = control.ask(answers.FLOWS, control.bridge)
            zones = BridgeRules("\n".join(self._flows)).zones
            if (asked := len(without_comments(text).splitlines())) != len(self._flows):
                refused = self._replaced(asked)
            if not refused and zones != rules.zones:
                refused = f"tracks in zones {_listed(zones)}, and those that are known are {_listed(rules.zones)}."
        if refused:
            raise TestbedError(f"{control.host.name}: {rules.source}: {refused}")

    def _replaced(self, asked: int) -> str:
        """Return which flow of the file is not there as it is written; empty where the file has the same flow twice."""
        control, found = self._control, dict[str, str]()
        argv = [control.installation.tool("ovs-ofctl"), "parse-flows", self.flows]
        said = control.host.run(argv, COMMAND_TIMEOUT_S, check=False, env=control.environment).stdout.splitlines()
        for flow in (line.partition(": ADD ")[2] for line in said if ": ADD " in line):
            match, _, actions = flow.rpartition("actions=")
            if actions != found.setdefault(match, actions):
                return (
                    f"the bridge has no flow `{match}actions={found[match]}`: a later one with the same match and the "
                    f"same priority takes its place (actions={actions})."
                )
        if found and len(found) == len(self._flows):
            return ""
        return f"of its {asked} flows the bridge has {len(self._flows)}."

    def differences(self, topology: Topology, placement: Placement, rules: BridgeRules) -> list[str]:
        """Return one clause per difference, `what: asked …, found …`; empty when OVS is set up as asked. Raise
        `MissingResource` as `differing_devices`."""
        control, conntrack = self._control, TABLE.of(topology)
        clauses = differing(options_of(topology, placement), control.other_config())
        clauses += differing_queues(control.ask(answers.QUEUES), topology, placement, rules.interfaces)
        devices, transmit = control.devices(rules.interfaces), self.devices.transmit_queues(topology)
        for interface, columns in control.rows("Interface", rules.interfaces, "ofport", "mtu", "status").items():
            clauses += differing_devices(interface, devices.get(interface), topology, transmit, columns["status"])
            found = {"OpenFlow number": columns["ofport"], "MTU": columns["mtu"]}
            clauses += differing({"OpenFlow number": NUMBERS[interface], "MTU": topology.mtu}, found, of=interface)
        for port in rules.ports:
            clauses += self._differing_columns(port)
        limit = "conntrack limit"
        clauses += differing({limit: conntrack.max_connections}, {limit: control.ask(answers.TABLE_LIMIT)})
        clauses += self.policies.differences()
        if flows := differing_flows(self._flows, control.ask(answers.FLOWS, control.bridge)):
            clauses.append(f"flows of {control.bridge}: `-` asked, `+` found: {'; '.join(flows)}")
        return clauses

    def _differing_columns(self, port: BridgePort) -> list[str]:
        """Return the differences in a port's VLANs and in the mode of a bond."""
        # A set of one comes in brackets, a string of digits in quotes; ovs-vsctl(8), section Database Values.
        found = {
            column: self._control.vsctl("--if-exists", "get", "Port", port.name, column)
            .strip().strip('"[]').replace(" ", "") or None
            for column in port.columns
        }  # fmt: skip
        return differing(port.columns, found, of=port.name)


#: Flows that a message shows.
_SHOWN = 8
#: What ovs-ofctl says of a flow that the switch does not take: a code of OpenFlow, and the flow.
_NOT_TAKEN = re.compile(r"^Error (\w+) for: .*: ADD (.*)$", re.MULTILINE)
#: What it says of a match of which it leaves something out, and what is left.
_LEFT_OUT = re.compile(r"pre: *(.*)\n.*post: *(.*)")


def refusal(said: str, *, failed: bool) -> str:
    """Return why flows were not taken as they are, by the output of `ovs-ofctl add-flows`; empty where they were."""
    if left_out := _LEFT_OUT.search(said):
        match, left = (text.strip() for text in left_out.groups())
        return (
            f"Open vSwitch takes the match `{match}` for `{left or 'every packet'}`. Expected its protocol in front, "
            "for example ip, ipv6, tcp or udp."
        )
    if not failed:
        return ""
    if not_taken := _NOT_TAKEN.search(said):
        code, flow = not_taken.groups()
        return f"Open vSwitch does not take `{one_line(flow)}` ({code})."
    return f"ovs-ofctl does not take it: {one_line((said.strip().splitlines() or ['no reason given'])[-1])}."


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def differing_flows(asked: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return the flows that differ: `-` asked only, `+` found only. Their order does not matter."""

    def only(here: Iterable[str], there: Iterable[str]) -> list[str]:
        return sorted((Counter(here) - Counter(there)).elements())

    lines = [f"-{flow}" for flow in only(asked, found)] + [f"+{flow}" for flow in only(found, asked)]
    return [*lines[:_SHOWN], *([f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])]


def await_bonds(control: OvsControl, bonds: Sequence[str], timeout_s: float) -> None:
    """Wait until all links of these bonds are in use. Raise `TestbedError` with the unused ones when the time is up."""

    def idle() -> list[str]:
        members = [control.ask(answers.BOND, bond) for bond in bonds]
        return sorted(name for bond in members for name, used in bond.items() if not used)

    if not wait_until(lambda: not idle(), timeout_s):
        raise TestbedError(f"Links of bonds are down: {', '.join(idle())}. Is the generator at their other end?")


#: Receive queues of each PMD CPU, as (port, queue).
RxqMap = Mapping[int, Sequence[tuple[str, int]]]


#: How long a PMD thread without packets may sleep, microseconds: until Open vSwitch 3.1, and since 3.2.
_MOST_SLEEP, _SLEEP_US = ("pmd-maxsleep", "pmd-sleep-max"), 100


def options_of(topology: Topology, placement: Placement) -> dict[str, str | None]:
    """Return options of the Open_vSwitch table, ovs-vswitchd.conf.db(5); None: OVS' default."""
    asked = {
        "pmd-cpu-mask": placement.pmd_mask,
        "emc-insert-inv-prob": topology.emc_insert_inv_prob,
        "n-revalidator-threads": topology.revalidators,
        "n-handler-threads": topology.handlers,
    }
    if placement.oversubscribed:  # nothing is measured: threads without packets leave the CPUs to the others
        asked |= dict.fromkeys(_MOST_SLEEP, _SLEEP_US)
    return {key: None if value is None else str(value).lower() for key, value in asked.items()}


def differing_queues(
    queues: RxqMap, topology: Topology, placement: Placement, interfaces: Sequence[str] = LINKS[0]
) -> list[str]:
    """Return the differences in the PMD threads and the queues that they poll. OVS chooses which thread polls which
    queue. Every queue has to have a thread, and no thread may idle while another has two queues."""
    cpus, receive = "CPUs of the PMD threads", "receive queues polled"
    wanted = sorted((port, queue) for port in interfaces for queue in range(topology.rx_queues))
    polled_now = sorted(queue for polled in queues.values() for queue in polled)
    found = differing({cpus: sorted(placement.pmd), receive: wanted}, {cpus: sorted(queues), receive: polled_now})
    counts = {cpu: len(polled) for cpu, polled in queues.items()}
    if counts and min(counts.values()) == 0 and max(counts.values()) > 1:
        found.append(f"queues per PMD CPU: asked none idle while another polls several, found {counts}")
    return found


def differing_devices(
    interface: str, found: Mapping[str, int] | None, topology: Topology, transmit: int, status: Mapping[str, str]
) -> list[str]:
    """Return the differences in the configuration of an interface's device. `found`: None where Open vSwitch does not
    show it. `transmit`: queues that it sends on; PMD threads share them where the device has fewer, by its `status` in
    the database. Raise `MissingResource` for a device with fewer receive queues than the topology asks for."""
    if found is None:
        return [f"{interface}: asked a port, found none"]
    queues = {"rx_queues": topology.rx_queues, "tx_queues": transmit}
    most = {name: int(status.get(f"max_{name}", asked)) for name, asked in queues.items()}
    if most["rx_queues"] < topology.rx_queues:
        raise MissingResource(
            f"{interface}: {topology.rx_queues} receive queues are needed, and its device has {most['rx_queues']} at "
            "most."
        )
    queues["tx_queues"] = min(transmit, most["tx_queues"])
    return differing(queues | {"rx_descriptors": DESCRIPTORS, "tx_descriptors": DESCRIPTORS}, found, of=interface)


def differing_threads(control: OvsControl, pid: int, placement: Placement) -> list[str]:
    return [
        f"CPUs of thread {thread.name}: asked {thread.wanted(placement)}, found {thread.cpus}"
        for thread in misplaced(read_threads(control.host, pid), placement)
    ]
