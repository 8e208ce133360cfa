"""The bridge with its two ports: sets up what a topology asks for, and changes only what differs."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.idle_ports import IdlePorts
from ctbench.dut.ovs.ports import Devices
from ctbench.dut.ovs.ruleset import NUMBERS, BridgePort, BridgeRules, number_ports
from ctbench.dut.ovs.settings import PACKAGES, OvsConntrackSettings
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement


class Bridge:
    """One bridge of the userspace datapath, with a port towards the clients and one towards the servers."""

    def __init__(
        self, control: OvsControl, datapath_type: str, conntrack: OvsConntrackSettings, devices: Devices
    ) -> None:
        """`datapath_type` is `netdev`, or `dummy` (the same datapath with a LOCAL port that needs no tap device)."""
        self._control = control
        self.datapath_type = datapath_type
        self._conntrack = conntrack
        self.devices = devices
        self.idle_ports = IdlePorts(control)
        self._ports: tuple[BridgePort, ...] = ()
        #: The timeout policy that zone 0 has.
        self._timeouts: dict[str, int] | None = None
        #: What the ports were made for.
        self._shape: object = None

    @property
    def flows(self) -> str:
        """Path on the host of the ruleset that is loaded, with port numbers for names."""
        return f"{self._control.folder}/rules.flows"

    def create(self) -> None:
        """Make the bridge."""
        kind = self.datapath_type
        # fail_mode=secure: without rules nothing passes, so that no packet is handled before the ruleset is there.
        name = self._control.bridge
        bridge = ["set", "Bridge", name, f"datapath_type={kind}", "fail_mode=secure"]
        self._control.vsctl("add-br", name, "--", *bridge)
        # A zone's policy hangs on the record of its datapath, which ovs-vswitchd does not make for userspace.
        if kind not in self._control.columns("Open_vSwitch", ".", "datapaths")["datapaths"]:
            datapath = ["--id=@m", "create", "Datapath", "datapath_version=0"]
            self._control.vsctl("--", *datapath, "--", "set", "Open_vSwitch", ".", f"datapaths:{kind}=@m")

    def configure(self, topology: Topology, placement: Placement, rules: BridgeRules) -> None:
        """Bring the running instance to `topology`."""
        self._control.vsctl("set", "Open_vSwitch", ".", f"other_config:pmd-cpu-mask={placement.pmd_mask}")
        self._set_option("emc-insert-inv-prob", topology.emc_insert_inv_prob)
        self._set_option("smc-enable", None if topology.smc is None else str(topology.smc).lower())
        self._set_option("n-revalidator-threads", topology.revalidators)
        self._set_option("n-handler-threads", topology.handlers)
        self._set_ports(topology, placement, rules.ports)
        self.idle_ports.keep(topology.idle_ports)
        self._set_table(self._conntrack.of(topology))
        self._load(rules.flows)

    def _set_table(self, conntrack: OvsConntrackSettings) -> None:
        """The limit of the connection table, and the timeout policy of zone 0, which every connection is in."""
        self._control.appctl("dpctl/ct-set-maxconns", str(conntrack.max_connections))
        if conntrack.timeouts == self._timeouts:
            return
        self._timeouts = None
        timeouts = [f"{name}={seconds}" for name, seconds in conntrack.timeouts.items()]
        self._control.vsctl("--if-exists", "del-zone-tp", self.datapath_type, "zone=0")
        self._control.vsctl("add-zone-tp", self.datapath_type, "zone=0", *timeouts)
        self._timeouts = conntrack.timeouts

    def _set_option(self, key: str, value: object) -> None:
        if value is None:
            self._control.vsctl("remove", "Open_vSwitch", ".", "other_config", key)
        else:
            self._control.vsctl("set", "Open_vSwitch", ".", f"other_config:{key}={value}")

    def _set_ports(self, topology: Topology, placement: Placement, ports: tuple[BridgePort, BridgePort]) -> None:
        settings = [
            f"options:n_rxq={topology.rx_queues}",
            f"options:n_rxq_desc={topology.rx_descriptors}",
            f"options:n_txq_desc={topology.rx_descriptors}",
            f"mtu_request={topology.mtu}",
        ]
        # Some of a device is in its name and cannot change while it is there: such ports are created again, and all
        # of them where the ruleset wants other ones.
        shape = (ports, self.devices.shape(topology, placement))
        again = shape != self._shape
        if again:
            self._shape = None
            for old in self._ports:
                self._control.vsctl("del-port", self._control.bridge, old.name)
            self.devices.make(topology, placement)
        for port in ports:
            command = self._port_command(port, add=again)
            for interface in port.interfaces:
                command += ["--", "set", "Interface", interface, *settings]
                if again:
                    devargs = self.devices.devargs(interface, topology)
                    number = f"ofport_request={NUMBERS[interface]}"
                    command += ["type=dpdk", f'options:dpdk-devargs="{devargs}"', number]
            self._control.vsctl(*command)
            for interface in port.interfaces:
                self._check_interface(interface)
        self._ports, self._shape = ports, shape

    def _port_command(self, port: BridgePort, *, add: bool) -> list[str]:
        """The ovs-vsctl command that adds a port to the bridge, or sets the columns of one that is there."""
        columns = [f"{column}={value}" for column, value in port.columns.items()]
        if not add:
            return ["--", "set", "Port", port.name, *columns] if columns else []
        if port.is_bond:
            return ["--", "add-bond", self._control.bridge, port.name, *port.interfaces, *columns]
        return ["--", "add-port", self._control.bridge, port.name, *columns]

    def _check_interface(self, interface: str) -> None:
        error = self._control.columns("Interface", interface, "error")["error"]
        if error:
            raise TestbedError(f"OVS cannot open {interface}: {error}. Is a package missing ({PACKAGES})?")

    def _load(self, flows: str) -> None:
        with TemporaryDirectory() as folder:
            numbered = Path(folder, "rules.flows")
            numbered.write_text(number_ports(flows))
            self._control.host.put(numbered, self.flows)
        self._control.ofctl("del-flows", self._control.bridge)
        self._control.ofctl("add-flows", self._control.bridge, self.flows)
