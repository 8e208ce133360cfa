"""The Open vSwitch that runs on the host already, the system's: set up for a run, and put back as it was.

What it had is written to a file on the host before anything is changed. A run that was killed leaves that file behind,
and the next one puts everything back from it before it begins.
"""

import json
import re
from collections.abc import Collection
from typing import Any

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.base import wait_until
from ctbench.dut.ovs.answers import ZONE_POLICIES
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.instance import Instance, ProcessIdentity, find_trouble, identify, other_config_settings
from ctbench.dut.ovs.ruleset import NUMBERS
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.ovs.threads import read_threads
from ctbench.dut.ovs.zone_policies import ZonePolicies
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Placement, format_cpu_list

#: The bridge that is ours; all others stay as they are.
BRIDGE = "br-ctbench"
#: The datapath that our bridge has; its connection table and its PMD threads are those of all bridges that have it.
DATAPATH = "netdev"
#: Folder on the host of what the system's had; it is there after a restart of the host, as its database is.
STATE_FOLDER = "/var/lib/ctbench"
STATE = f"{STATE_FOLDER}/ovs-before.json"
#: Seconds that a restart takes at most, and that DPDK gets to come up.
RESTART_TIMEOUT_S = 120.0
DPDK_TIMEOUT_S = 30.0
#: Settings that DPDK reads once, when it comes up.
ONCE = ("dpdk-init", "dpdk-extra", "dpdk-socket-mem", "dpdk-lcore-mask", "dpdk-hugepage-dir")


class SystemOvs(Instance):
    """Restarts ovs-vswitchd only where DPDK has to come up or go in another way."""

    log_name = "ovs-vswitchd.system.log"

    def __init__(self, control: OvsControl, *, cards: bool = True) -> None:
        """`control` is that of the system's sockets, with the bridge `BRIDGE`. `cards`: whether ports are network
        cards, which DPDK has to look for."""
        super().__init__(control)
        self._cards = cards

    @property
    def binary(self) -> str:
        process = self.vswitchd()
        if process is None:
            return self.control.installation.vswitchd_path
        return self._host.run(["readlink", f"/proc/{process.pid}/exe"]).stdout.strip().removesuffix(" (deleted)")

    @property
    def log(self) -> str:
        return f"{self.control.installation.state_prefix}/var/log/openvswitch/ovs-vswitchd.log"

    def keeps_dpdk(self) -> bool:
        """A DPDK that was told not to look for cards is of no use to them."""
        self._recover()
        self._require_running()
        extra = self.control.other_config().get("dpdk-extra", "")
        return self.dpdk_is_up() and not (self._cards and "--no-pci" in extra)

    def start(self, other_config: dict[str, str], vswitchd_options: list[str], placement: Placement) -> None:
        """`vswitchd_options` are for one that we start, its threads are placed later."""
        self._recover()
        self._require_running()
        self._require_no_other()
        self._save()
        self._log_begins = self.log_size()
        self._host.run(["mkdir", "-p", self.control.folder])
        before = self.control.other_config()
        self.control.vsctl("--no-wait", "set", "Open_vSwitch", ".", *other_config_settings(other_config))
        again = any(other_config[key] != before.get(key) for key in ONCE if key in other_config)
        if again and self.dpdk_is_up():
            self._restart()
        wait_until(lambda: self.dpdk_is_up() or not self.vswitchd(), DPDK_TIMEOUT_S)
        self.require_dpdk()

    def stop(self) -> None:
        self._recover()

    def vswitchd(self) -> ProcessIdentity | None:
        return identify(self._host, self.control.pidfile, "ovs-vswitchd")

    def pause(self) -> None:
        raise MissingResource(
            f"{self._host.name}: the system's Open vSwitch is not paused for another one (ovs.manage: true): two of "
            "them stand side by side only in sandboxes."
        )

    def trouble(self, files: Collection[str] = ()) -> str:
        """What was found before the run is asked for by its file of process IDs alone."""
        try:
            process = self.vswitchd()
        except TestbedError as error:
            return str(error)
        if process is None:
            return f"{self._host.name}: no Open vSwitch runs there any more ({self.control.pidfile})."
        return find_trouble(self._host, {"ovs-vswitchd": process}, files)

    def _require_running(self) -> None:
        if self.vswitchd() is None:
            raise MissingResource(
                f"{self._host.name}: no Open vSwitch runs there ({self.control.pidfile}), and the testbed file says"
                " ovs.manage: true. Start it, or say manage: false for an instance of the run's own."
            )

    def _require_no_other(self) -> None:
        """Our bridge is not there, and no other one shares what we flush and measure."""
        bridges = self.control.vsctl("list-br").split()
        if BRIDGE in bridges:
            raise TestbedError(
                f"{self._host.name} has a bridge {BRIDGE}, and nothing is known of the run that made it: remove it"
                f" (ovs-vsctl del-br {BRIDGE})."
            )
        kinds = {name: self.control.column("Bridge", name, "datapath_type") for name in bridges}
        shared = sorted(name for name, kind in kinds.items() if kind == DATAPATH)
        if shared:
            raise TestbedError(
                f"{self._host.name}: bridge {', '.join(shared)} has the userspace datapath too, with one connection"
                " table and the same PMD threads for all: remove it for the run, or say ovs.manage: false."
            )
        names = json.loads(self.control.vsctl("--format=json", "--columns=name", "list", "Interface"))["data"]
        taken = sorted({name for (name,) in names} & set(NUMBERS))
        if taken:
            raise TestbedError(f"{self._host.name}: OVS has an interface {', '.join(taken)} already: rename it.")

    def _save(self) -> None:
        """Write down what there is. A file that is there already would say more than we know now."""
        process = self.vswitchd()
        datapaths = self.control.column("Open_vSwitch", ".", "datapaths")
        zones = self.control.ask(ZONE_POLICIES, DATAPATH) if DATAPATH in datapaths else {}
        threads = read_threads(self._host, process.pid) if process else []
        state = {
            "other_config": self.control.other_config(),
            "dpdk_up": self.dpdk_is_up(),
            "datapath": DATAPATH in datapaths,
            "policies": {str(zone): policy for zone, policy in zones.items() if policy},
            "pid": process.pid if process else 0,
            "start_ticks": process.start_ticks if process else 0,
            "threads": {str(thread.tid): format_cpu_list(thread.cpus) for thread in threads},
        }
        self._host.run(["mkdir", "-p", STATE_FOLDER])
        self._host.run(["tee", f"{STATE}.new"], stdin=json.dumps(state, indent=1) + "\n")
        self._host.run(["mv", f"{STATE}.new", STATE])

    def _recover(self) -> None:
        """Put back what was written down, and forget it; nothing where nothing is."""
        text = self._host.run(["cat", STATE], check=False).stdout
        if not text:
            return
        state: dict[str, Any] = json.loads(text)
        if self.vswitchd() is None:  # it ran when the run began
            self._restart()
        self.control.vsctl("--if-exists", "del-br", BRIDGE)
        self._put_back_timeouts(state)
        was: dict[str, str] = state["other_config"]
        now = self.control.other_config()
        if now != was:
            settings = ["--", "set", "Open_vSwitch", ".", *other_config_settings(was)] if was else []
            self.control.vsctl("clear", "Open_vSwitch", ".", "other_config", *settings)
        # DPDK does not go down again by itself, and reads its settings once.
        other = self.dpdk_is_up() and any(now.get(key) != was.get(key) for key in ONCE)
        if self.dpdk_is_up() != state["dpdk_up"] or other:
            self._restart()
        self._put_back_threads(state)
        folder = self.control.folder
        self._host.run(["rm", "-rf", folder])
        self._host.run(["rm", "-f", STATE])
        # The folders above go with the last of their kind.
        self._host.run(["rmdir", folder.rpartition("/")[0], STATE_FOLDER], check=False)

    def _put_back_timeouts(self, state: dict[str, Any]) -> None:
        """The zones' timeout policies, and the record of the datapath that they hang on."""
        if DATAPATH not in self.control.column("Open_vSwitch", ".", "datapaths"):
            return
        policies = ZonePolicies(self.control, DATAPATH)
        policies.forget(sorted(self.control.ask(ZONE_POLICIES, DATAPATH)))
        if not state["datapath"]:
            self.control.vsctl("remove", "Open_vSwitch", ".", "datapaths", DATAPATH)
            return
        for zone, timeouts in state["policies"].items():
            policies.put_back(int(zone), timeouts)

    def _put_back_threads(self, state: dict[str, Any]) -> None:
        """The CPUs of the threads that were there; those of a process that was started since have theirs."""
        process = self.vswitchd()
        if process is None or (process.pid, process.start_ticks) != (state["pid"], state["start_ticks"]):
            return
        main = state["threads"].get(str(process.pid))
        for thread in read_threads(self._host, process.pid):
            cpus = state["threads"].get(str(thread.tid), main)
            if cpus and format_cpu_list(thread.cpus) != cpus:
                self._host.run(["taskset", "-p", "-c", cpus, str(thread.tid)], check=False)

    def _restart(self) -> None:
        """Restart ovs-vswitchd, and it alone, as the one that started it does: its unit of systemd, else ovs-ctl(8),
        which keeps the flows of all bridges."""
        process = self.vswitchd()
        group = self._host.run(["cat", f"/proc/{process.pid}/cgroup"], check=False).stdout if process else ""
        unit = re.search(r"/([\w@.-]*(?:ovs-vswitchd|openvswitch)[\w@.-]*\.service)", group)
        if unit:
            argv = ["systemctl", "restart", unit[1]]
        else:
            script = f"{self.control.installation.prefix}/share/openvswitch/scripts/ovs-ctl"
            argv = [script, "--no-ovsdb-server", "restart"]
        self._host.run(argv, RESTART_TIMEOUT_S, env=self.control.environment)
        self._require_running()


def system_control(host: Host, installation: OvsInstallation, folder: str) -> OvsControl:
    """Tools for the system's Open vSwitch of an installation; `folder` is ours."""
    rundir = f"{installation.state_prefix}/var/run/openvswitch"
    return OvsControl(host, installation, folder, rundir=rundir, bridge=BRIDGE)
