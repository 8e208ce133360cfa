"""The system's Open vSwitch: set up for a run and put back, and left alone where the testbed file does not name it.

It is pretended: a real one, started by ovs-ctl in a sandbox whose /etc/openvswitch, /var/lib and /var/log are its own.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.ovs import OvsDpdkDut
from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.dpdk import MemifDevices
from ctbench.dut.ovs.dut import BESIDE_SYSTEM, TUN
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.dut.ovs.system import BRIDGE, STATE, system_control
from ctbench.dut.ovs.threads import read_threads
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import place, read_machine
from ctbench.hosts.sandbox import Sandbox

pytestmark = [pytest.mark.beside_others, pytest.mark.root_too]

OVS_CTL = "/usr/share/openvswitch/scripts/ovs-ctl"
#: What a distribution's start-up scripts run by its usual name.
USUAL = "/usr/sbin/ovs-vswitchd"
#: Tables of the database whose content is somebody else's business.
TABLES = ("Open_vSwitch", "Bridge", "Port", "Interface", "Datapath", "CT_Zone", "CT_Timeout_Policy")


class PretendedSystem:
    """The system's Open vSwitch in a sandbox, with a bridge that is somebody's."""

    def __init__(self, host: Sandbox) -> None:
        self.host = host
        self.control: OvsControl = system_control(host, OvsInstallation(), BESIDE_SYSTEM)
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
        return self.host.run(["cat", self.control.pidfile]).stdout.strip()

    def content(self) -> str:
        """What the database says, without what changes by itself."""
        columns = {"Open_vSwitch": "other_config,external_ids,bridges,datapaths,dpdk_initialized",
                   "Bridge": "name,datapath_type,other_config,ports", "Port": "name,interfaces",
                   "Interface": "name,type,options", "CT_Timeout_Policy": "timeouts"}  # fmt: skip
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


def new_dut(system: PretendedSystem, *, manage: bool = True, log_folder: Path | None = None) -> OvsDpdkDut:
    machine = read_machine(system.host)
    try:
        place(machine, 1)
    except MissingResource as error:
        pytest.skip(str(error))
    return OvsDpdkDut(
        system.host, machine, lambda topology: place(machine, topology.cpus), system=manage, memory_mb=512,
        devices=MemifDevices(system.host, BESIDE_SYSTEM) if manage else None, log_folder=log_folder,
    )  # fmt: skip


def test_the_systems_is_set_up_and_put_back_as_it_was(system: PretendedSystem, tmp_path: Path) -> None:
    before, pid = system.content(), system.pid
    dut = new_dut(system, log_folder=tmp_path)

    dut.apply(Topology())
    dut.verify()
    dut.begin_trial()
    dut.flush_state()
    snapshot = dut.snapshot()
    assert BRIDGE in system.control.vsctl("list-br").split()
    assert (snapshot["system"], snapshot["pid"]) == (True, int(pid))  # DPDK comes up without a restart
    assert {problem.severity for problem in dut.health()} <= {"disturbed"}  # these tests may have run on its CPU
    dut.apply(Topology(rx_queues=2, ruleset="nat"))
    dut.restore()
    dut.restore()

    assert system.content() == before
    assert system.host.run(["find", "/var/lib", "/run", "-name", "*ctbench*"]).stdout == ""
    assert "PMD" in (tmp_path / "ovs-vswitchd.system.log").read_text()


def test_what_dpdk_had_stays_and_nothing_is_restarted(system: PretendedSystem) -> None:
    system.control.vsctl(
        "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
        "other_config:dpdk-extra=--no-pci --no-huge --legacy-mem -m 1024", "other_config:pmd-cpu-mask=0x1",
    )  # fmt: skip
    before, pid, affinities = system.content(), system.pid, system.affinities()
    dut = new_dut(system)

    dut.apply(Topology())
    assert dut.snapshot()["memory"] == {"kind": "as OVS had it"}
    assert dut.snapshot()["other_config"]["somebodys"] == "value"
    dut.restore()

    assert (system.content(), system.pid) == (before, pid)
    assert system.affinities() == affinities


def test_timeouts_of_somebody_are_put_back(system: PretendedSystem) -> None:
    system.control.vsctl(
        "--id=@m", "create", "Datapath", "datapath_version=0", "--", "set", "Open_vSwitch", ".", "datapaths:netdev=@m"
    )
    system.control.vsctl("add-zone-tp", "netdev", "zone=0", "udp_first=77")
    system.control.vsctl("add-zone-tp", "netdev", "zone=5", "udp_first=55")
    before = system.control.vsctl("list-zone-tp", "netdev")
    dut = new_dut(system)

    dut.apply(Topology())
    assert "udp_first=77" not in system.control.vsctl("list-zone-tp", "netdev")
    dut.restore()

    assert system.control.vsctl("list-zone-tp", "netdev") == before


def test_what_a_killed_run_left_is_put_back_by_the_next(system: PretendedSystem) -> None:
    before = system.content()
    new_dut(system).apply(Topology())  # and never restored
    assert "somebodys" in system.host.read(STATE)

    following = new_dut(system)
    following.apply(Topology(ruleset="forward"))
    assert '"br-ctbench"' not in system.host.read(STATE)
    following.restore()

    assert system.content() == before


def test_one_that_died_in_the_run_is_started_again(system: PretendedSystem) -> None:
    before = system.content()
    dut = new_dut(system)
    dut.apply(Topology())
    dut.begin_trial()
    system.host.run(["kill", "-KILL", system.pid])

    assert [problem.severity for problem in dut.health()] == ["fatal"]
    dut.restore()

    assert system.content() == before


def test_a_bridge_that_shares_the_connection_table_is_in_the_way(system: PretendedSystem) -> None:
    system.control.vsctl("--no-wait", "add-br", "br-other", "--", "set", "Bridge", "br-other", "datapath_type=netdev")
    before = system.content()

    with pytest.raises(TestbedError, match=r"bridge br-other has the userspace datapath too"):
        new_dut(system).apply(Topology())

    assert system.content() == before


def test_one_that_does_not_run_is_a_missing_resource(system: PretendedSystem) -> None:
    system.host.run([OVS_CTL, "stop"], 60)

    with pytest.raises(MissingResource, match=r"no Open vSwitch runs there .*ovs.manage: true"):
        new_dut(system).apply(Topology())


def test_the_systems_is_never_touched_where_the_testbed_file_does_not_say_so(system: PretendedSystem) -> None:
    before, pid, affinities = system.content(), system.pid, system.affinities()
    dut = new_dut(system, manage=False)

    dut.apply(Topology())
    assert dut.snapshot()["pid"] != int(pid)
    dut.flush_state()
    dut.restore()

    assert (system.content(), system.pid, system.affinities()) == (before, pid, affinities)
