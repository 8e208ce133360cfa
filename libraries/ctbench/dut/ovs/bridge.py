"""The bridge with its two ports: sets up what a topology asks for, and changes only what differs."""

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ctbench.dut.base import Topology
from ctbench.dut.ovs.control import BRIDGE, OvsControl
from ctbench.dut.ovs.settings import PACKAGES, ConntrackSettings
from ctbench.errors import ConfigError, TestbedError
from ctbench.hosts.machine import Placement

#: Ports by name and OpenFlow number: client side first.
PORTS = {"port0": 1, "port1": 2}


class Bridge:
    """One bridge of the userspace datapath, with the ports `port0` (clients) and `port1` (servers)."""

    def __init__(
        self, control: OvsControl, datapath_type: str, conntrack: ConntrackSettings, pci: Sequence[str] = ()
    ) -> None:
        """`datapath_type` is `netdev`, or `dummy` (the same datapath with a LOCAL port that needs no tap device);
        `pci` are the two ports' PCI addresses, empty for memif."""
        self._control = control
        self.datapath_type = datapath_type
        self._conntrack = conntrack
        self._pci = tuple(pci)
        self._descriptors = 0
        self._vdevs = 0
        self._devargs: dict[str, str] = {}
        self.memif_sockets: dict[str, str] = {}

    @property
    def flows(self) -> str:
        """Path on the host of the ruleset that is loaded, with port numbers for names."""
        return f"{self._control.folder}/ruleset.flows"

    def create(self) -> None:
        """Make the bridge and the timeout policy of zone 0."""
        kind = self.datapath_type
        # fail_mode=secure: without rules nothing passes, so that no packet is handled before the ruleset is there.
        bridge = ["set", "Bridge", BRIDGE, f"datapath_type={kind}", "fail_mode=secure"]
        self._control.vsctl("add-br", BRIDGE, "--", *bridge)
        # A zone's policy hangs on the record of its datapath, which ovs-vswitchd does not make for userspace.
        datapath = ["--id=@m", "create", "Datapath", "datapath_version=0"]
        self._control.vsctl("--", *datapath, "--", "set", "Open_vSwitch", ".", f"datapaths:{kind}=@m")
        timeouts = [f"{name}={seconds}" for name, seconds in self._conntrack.timeouts.items()]
        self._control.vsctl("add-zone-tp", kind, "zone=0", *timeouts)

    def configure(self, topology: Topology, placement: Placement, ruleset: str) -> None:
        """Bring the running instance to `topology`; `ruleset` is the text of its file."""
        self._control.vsctl("set", "Open_vSwitch", ".", f"other_config:pmd-cpu-mask={placement.pmd_mask}")
        self._set_option("emc-insert-inv-prob", topology.emc_insert_inv_prob)
        self._set_option("smc-enable", None if topology.smc is None else str(topology.smc).lower())
        self._set_ports(topology)
        self._control.appctl("dpctl/ct-set-maxconns", str(self._conntrack.max_connections))
        self._load(ruleset)

    def _set_option(self, key: str, value: object) -> None:
        if value is None:
            self._control.vsctl("remove", "Open_vSwitch", ".", "other_config", key)
        else:
            self._control.vsctl("set", "Open_vSwitch", ".", f"other_config:{key}={value}")

    def _set_ports(self, topology: Topology) -> None:
        queues = [
            f"options:n_rxq={topology.rx_queues}",
            f"options:n_rxq_desc={topology.rx_descriptors}",
            f"options:n_txq_desc={topology.rx_descriptors}",
        ]
        # A memif device has the size of its rings in its name, and a live port whose devargs change leaves the old
        # socket busy. So the port is made anew, under a name that was not used before.
        anew = not self._devargs or (not self._pci and self._descriptors != topology.rx_descriptors)
        for index, (port, number) in enumerate(PORTS.items()):
            settings = ["set", "Interface", port, *queues]
            if anew:
                self._devargs[port] = self._new_device(port, index, topology.rx_descriptors)
                device = ["type=dpdk", f'options:dpdk-devargs="{self._devargs[port]}"', f"ofport_request={number}"]
                remove = ["--if-exists", "del-port", BRIDGE, port]
                self._control.vsctl(*remove)
                self._control.vsctl("add-port", BRIDGE, port, "--", *settings, *device)
            else:
                self._control.vsctl(*settings)
            self._check_port(port)
        self._descriptors = topology.rx_descriptors

    def _new_device(self, port: str, index: int, descriptors: int) -> str:
        """Device arguments of a port; DPDK guide, memif poll mode driver. Its `rsize` is log2 of the ring's size.
        A socket that is a file crosses network namespaces, an abstract one does not."""
        if self._pci:
            return self._pci[index]
        self._vdevs += 1
        self.memif_sockets[port] = f"{self._control.folder}/{port}.{self._vdevs}.sock"
        ring = descriptors.bit_length() - 1
        socket = f"socket={self.memif_sockets[port]},socket-abstract=no"
        return f"net_memif{self._vdevs},role=server,{socket},id=0,rsize={ring}"

    def _check_port(self, port: str) -> None:
        error = self._control.columns("Interface", port, "error")["error"]
        if error:
            raise TestbedError(f"OVS cannot open {port}: {error}. Is a package missing ({PACKAGES})?")

    def _load(self, ruleset: str) -> None:
        with TemporaryDirectory() as folder:
            numbered = Path(folder, "ruleset.flows")
            numbered.write_text(number_ports(ruleset))
            self._control.host.put(numbered, self.flows)
        self._control.ofctl("del-flows", BRIDGE)
        self._control.ofctl("add-flows", BRIDGE, self.flows)


def read_ruleset(path: Path) -> str:
    """Text of a ruleset file; `ConfigError` names the rulesets that there are."""
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.flows")))
        raise ConfigError(f"{path.stem} is not a ruleset of Open vSwitch. Expected one of: {known} (in {path.parent}).")
    return path.read_text()


def number_ports(ruleset: str) -> str:
    """The ruleset with the ports' numbers for their names: `ovs-ofctl diff-flows` takes no names in a file."""
    return re.sub(r"\b(" + "|".join(PORTS) + r")\b", lambda match: str(PORTS[match[1]]), ruleset)
