"""The system's Open vSwitch is left alone.

It is pretended: a real one, started by ovs-ctl in a sandbox whose /etc/openvswitch, /var/lib and /var/log are its own.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.dut import TUN, OvsDpdkDut
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.ovs.threads import read_threads
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.cpus import AUTO, plan_cpus

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

OVS_CTL = "/usr/share/openvswitch/scripts/ovs-ctl"
#: What a distribution's start-up scripts run by its usual name.
USUAL = "/usr/sbin/ovs-vswitchd"
RUNDIR = "/var/run/openvswitch"
#: Tables of the database whose content is somebody else's business.
TABLES = ("Open_vSwitch", "Bridge", "Port", "Interface", "Datapath", "CT_Zone", "CT_Timeout_Policy")


class PretendedSystem:
    """The system's Open vSwitch in a sandbox, with a bridge that is somebody's."""

    def __init__(self, host: Sandbox) -> None:
        self.host = host
        self.control = OvsControl(host, OvsInstallation(), RUNDIR)
        for folder in ("/etc/openvswitch", "/var/lib", "/var/log"):
            host.run(["mount", "-t", "tmpfs", "tmpfs", folder])
        host.run(["mkdir", "/var/log/openvswitch"])
        host.run(["mount", "--bind", OvsInstallation().vswitchd_path, USUAL])
        done = host.run([OVS_CTL, "--system-id=pretended", "--no-monitor", "start"], 60, check=False)
        if done.exit_status != 0:
            pytest.skip(f"ovs-ctl cannot start Open vSwitch in a sandbox here: {done.stdout}")
        # `dummy` is a datapath that this one does not know: a bridge in the database is all that is needed.
        self.control.vsctl(
            "--no-wait", "add-br", "somebodys", "--", "set", "Bridge", "somebodys", "datapath_type=dummy"
        )
        self.control.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:somebodys=value")

    @property
    def pid(self) -> str:
        return self.host.run(["cat", f"{RUNDIR}/ovs-vswitchd.pid"]).stdout.strip()

    def content(self) -> str:
        """What the database says, without what changes by itself."""
        columns = {
            "Open_vSwitch": "other_config,external_ids,bridges,datapaths,dpdk_initialized",
            "Bridge": "name,datapath_type,other_config,ports",
            "Port": "name,interfaces",
            "Interface": "name,type,options",
            "CT_Timeout_Policy": "timeouts",
        }
        return "".join(
            self.control.vsctl("--no-wait", f"--columns={columns.get(table, '_uuid')}", "list", table)
            for table in TABLES
        )

    def affinities(self) -> set[tuple[str, tuple[int, ...]]]:
        return {(thread.name, thread.cpus) for thread in read_threads(self.host, int(self.pid))}


@pytest.fixture
def system() -> Iterator[PretendedSystem]:
    try:
        host = Sandbox()
    except MissingResource as error:
        pytest.skip(str(error))
    with host:
        if not Path(OVS_CTL).exists():
            pytest.skip(f"There is no {OVS_CTL}.")
        if host.run(["dd", f"if={TUN}", f"of={TUN}", "count=0", "conv=notrunc,nocreat"], check=False).exit_status:
            pytest.skip(f"{TUN} cannot be opened, which the system's Open vSwitch can: run as root.")
        yield PretendedSystem(host)


def test_the_systems_is_never_touched(system: PretendedSystem) -> None:
    before, pid, affinities = system.content(), system.pid, system.affinities()
    machine = read_machine(system.host)
    try:
        plan_cpus(AUTO, machine, 1)
    except MissingResource as error:
        pytest.skip(str(error))
    dut = OvsDpdkDut(system.host, machine, lambda topology: plan_cpus(AUTO, machine, topology.cpus), memory_mb=512)

    dut.apply(Topology())
    assert dut.snapshot()["pid"] != int(pid)
    dut.flush_state()
    dut.restore()

    assert (system.content(), system.pid, system.affinities()) == (before, pid, affinities)
