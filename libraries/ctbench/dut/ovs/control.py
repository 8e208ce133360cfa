"""The command-line tools of an OVS instance, each pointed at its files and no other's."""

import json
from typing import Any

from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.base import Host

#: The bridge with the two ports, in an instance of our own.
BRIDGE = "br0"
#: Seconds for a command. The first port makes DPDK touch all of its memory, which takes seconds without hugepages.
COMMAND_TIMEOUT_S = 60.0


class OvsControl:
    """Runs ovs-vsctl, ovs-ofctl and ovs-appctl against one instance of the host."""

    def __init__(
        self, host: Host, installation: OvsInstallation, folder: str, *, rundir: str = "", bridge: str = BRIDGE
    ) -> None:
        """`folder` is ours, and all of an instance of our own is in it; `rundir` is where one that runs already has its
        sockets."""
        self.host = host
        self.installation = installation
        self.folder = folder
        self.bridge = bridge
        self._rundir = rundir or folder
        #: Keeps every OVS program in `folder` (the manuals' ENVIRONMENT and FILES sections), and DPDK's runtime
        #: files as well (RUNTIME_DIRECTORY, eal_filesystem.c).
        self.environment = dict.fromkeys(
            ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY"), folder
        )
        if rundir:
            self.environment = {"OVS_RUNDIR": rundir}

    @property
    def database_socket(self) -> str:
        """Where ovsdb-server listens."""
        return f"{self._rundir}/db.sock"

    @property
    def pidfile(self) -> str:
        """Where ovs-vswitchd has its process ID."""
        return f"{self._rundir}/ovs-vswitchd.pid"

    @property
    def vswitchd(self) -> str:
        """What ovs-appctl(8) calls ovs-vswitchd: our own one's socket, or the name of the one in its rundir."""
        return f"{self.folder}/ovs-vswitchd.ctl" if self._rundir == self.folder else "ovs-vswitchd"

    def vsctl(self, *arguments: str) -> str:
        """ovs-vsctl(8); returns once ovs-vswitchd has taken the change over, unless told `--no-wait`."""
        return self._run("ovs-vsctl", f"--db=unix:{self.database_socket}", *arguments)

    def appctl(self, *arguments: str) -> str:
        """ovs-appctl(8) to ovs-vswitchd."""
        return self._run("ovs-appctl", "-t", self.vswitchd, *arguments)

    def ofctl(self, *arguments: str) -> str:
        """ovs-ofctl(8)."""
        return self._run("ovs-ofctl", *arguments)

    def flow_differences(self, flows: str) -> list[str]:
        """Lines of `ovs-ofctl diff-flows`: `-` is in the host's file `flows` only, `+` in the switch only."""
        argv = [self.installation.tool("ovs-ofctl"), "diff-flows", flows, self.bridge]
        done = self.host.run(argv, COMMAND_TIMEOUT_S, check=False, env=self.environment)
        # Status 2 says that there are differences, other than 0 that they could not be compared.
        return [] if done.exit_status == 0 else (done.stdout or done.stderr).strip().splitlines()

    def columns(self, table: str, record: str, *names: str) -> dict[str, Any]:
        """Columns of one database record: sets as lists, maps as dicts, RFC 7047 section 5.1."""
        text = self.vsctl("--format=json", f"--columns={','.join(names)}", "list", table, record)
        table_json = json.loads(text)
        return {
            heading: _plain(value) for heading, value in zip(table_json["headings"], table_json["data"][0], strict=True)
        }

    def _run(self, tool: str, *arguments: str) -> str:
        argv = [self.installation.tool(tool), *arguments]
        return self.host.run(argv, COMMAND_TIMEOUT_S, env=self.environment).stdout


def _plain(value: Any) -> Any:
    """A value of the database protocol as Python has it."""
    match value:
        case ["map", pairs]:
            return {key: _plain(item) for key, item in pairs}
        case ["set", items]:
            return [_plain(item) for item in items]
        case _:
            return value
