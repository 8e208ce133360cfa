"""The two daemons of a private OVS instance: ovsdb-server and ovs-vswitchd, from an empty folder to their end."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from ctbench.dut.ovs.control import COMMAND_TIMEOUT_S, OvsControl
from ctbench.errors import TestbedError
from ctbench.hosts.machine import format_cpu_list

#: Seconds that a daemon gets to end after each way of asking.
END_TIMEOUT_S = 5.0
#: Seconds between two looks at something that changes by itself.
POLL_S = 0.05


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that cannot be mistaken for another one that got its ID later."""

    pid: int
    #: When it started, clock ticks since boot; proc(5), field 22 of /proc/PID/stat.
    start_ticks: int


class OvsDaemons:
    """Starts and ends the daemons. All of their state is in `control.folder` of the host, emptied at each start."""

    def __init__(self, control: OvsControl) -> None:
        self.control = control
        self._host = control.host
        self._generation = 0

    @property
    def log_name(self) -> str:
        """File name of ovs-vswitchd's log; each start has one of its own."""
        return f"ovs-vswitchd.{self._generation}.log"

    @property
    def log(self) -> str:
        """Path of ovs-vswitchd's log on the host."""
        return f"{self.control.folder}/{self.log_name}"

    def start(self, other_config: dict[str, str], vswitchd_options: list[str], cpus: tuple[int, ...]) -> None:
        """Start both daemons on `cpus` (PMD threads choose theirs) with `other_config` of the Open_vSwitch table."""
        self.stop()
        self._generation += 1
        control, folder = self.control, self.control.folder
        self._host.run(["mkdir", "-p", folder])
        database = f"{folder}/conf.db"
        self._host.run(
            [control.installation.tool("ovsdb-tool"), "create", database, control.installation.database_schema]
        )
        self._daemon(
            [control.installation.ovsdb_server, database, f"--remote=punix:{control.database_socket}"],
            "ovsdb-server",
            f"{folder}/ovsdb-server.log",
            cpus,
        )
        settings = [f"other_config:{key}={_quoted(value)}" for key, value in other_config.items()]
        control.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *settings)
        vswitchd = [control.installation.vswitchd_path, f"unix:{control.database_socket}", *vswitchd_options]
        self._daemon(vswitchd, "ovs-vswitchd", self.log, cpus)
        if not self.dpdk_is_up():
            raise TestbedError(f"{self._host.name}: ovs-vswitchd could not initialise DPDK: {self.log_excerpt()}")

    def stop(self) -> None:
        """End the daemons, also those that a crashed run left in this folder, and remove the folder."""
        for name in ("ovs-vswitchd", "ovsdb-server"):
            identity = self._identity(name)
            if identity:
                self._end(name, identity)
        folder = self.control.folder
        self._host.run(["rm", "-rf", folder])
        # The folder above goes with the last of its kind.
        self._host.run(["rmdir", folder.rpartition("/")[0]], check=False)

    def vswitchd(self) -> ProcessIdentity | None:
        """The running ovs-vswitchd; None when it is dead, or a zombie."""
        return self._identity("ovs-vswitchd")

    def dpdk_is_up(self) -> bool:
        """Whether ovs-vswitchd reports that DPDK is up."""
        return bool(self.control.columns("Open_vSwitch", ".", "dpdk_initialized")["dpdk_initialized"])

    def log_size(self) -> int:
        """Bytes in ovs-vswitchd's log."""
        return int(self._host.run(["stat", "-c", "%s", self.log]).stdout)

    def log_since(self, offset: int) -> list[str]:
        """Lines of ovs-vswitchd's log from byte `offset` on; none when the log went with its process."""
        return self._host.run(["tail", "-c", f"+{offset + 1}", self.log], check=False).stdout.splitlines()

    def log_excerpt(self) -> str:
        """The last errors of the log, for a message."""
        lines = [line for line in self.log_since(0) if re.search(r"\|(ERR|EMER|WARN)\|", line)]
        return " | ".join(line.split("|", 2)[-1] for line in lines[-3:]) or "its log holds no error"

    def save_log(self, folder: Path) -> None:
        """Copy ovs-vswitchd's log to `folder` of this machine, as evidence."""
        if self._generation and self._host.run(["test", "-e", self.log], check=False).exit_status == 0:
            folder.mkdir(parents=True, exist_ok=True)
            self._host.get(self.log, folder / self.log_name)

    def _daemon(self, argv: list[str], name: str, log: str, cpus: tuple[int, ...]) -> None:
        """Start a daemon, ovs-vswitchd(8): it returns, detached, once it is ready."""
        folder = self.control.folder
        options = ["--detach", "--no-chdir", f"--pidfile={folder}/{name}.pid", f"--unixctl={folder}/{name}.ctl"]
        logging = [f"--log-file={log}", "-vconsole:off", "-vsyslog:off"]
        on_cpus = ["taskset", "-c", format_cpu_list(cpus)]
        self._host.run([*on_cpus, *argv, *options, *logging], COMMAND_TIMEOUT_S, env=self.control.environment)

    def _identity(self, name: str) -> ProcessIdentity | None:
        pid = self._host.run(["cat", f"{self.control.folder}/{name}.pid"], check=False).stdout.strip()
        if not pid:
            return None
        stat = self._stat(int(pid))
        command = self._host.run(["cat", f"/proc/{pid}/cmdline"], check=False).stdout
        # The folder in its command line: the ID of a daemon that a crash left behind may be another's by now.
        if stat is None or stat.state in "ZX" or self.control.folder not in command:
            return None
        return ProcessIdentity(int(pid), stat.start_ticks)

    def _stat(self, pid: int) -> "_Stat | None":
        text = self._host.run(["cat", f"/proc/{pid}/stat"], check=False).stdout
        fields = text.rpartition(")")[2].split()  # from the third field on; the name before may hold spaces
        return _Stat(fields[0], int(fields[17]), int(fields[19])) if fields else None

    def _end(self, name: str, identity: ProcessIdentity) -> None:
        # `exit --cleanup` removes the bridge's tap devices, which survive ovs-vswitchd otherwise; ovs-vswitchd(8).
        exit_ = [self.control.installation.tool("ovs-appctl"), "-T", "5", "-t", f"{self.control.folder}/{name}.ctl"]
        polite = ["exit", "--cleanup"] if name == "ovs-vswitchd" else ["exit"]
        pid = str(identity.pid)
        for argv in ([*exit_, *polite], ["kill", "-TERM", pid], ["kill", "-KILL", pid]):
            self._host.run(argv, check=False)
            deadline = time.monotonic() + END_TIMEOUT_S
            while time.monotonic() < deadline:
                stat = self._stat(identity.pid)
                # A zombie with threads still gives its memory back.
                if stat is None or stat.start_ticks != identity.start_ticks or (stat.state == "Z" and stat.threads < 2):
                    return
                time.sleep(POLL_S)
        raise TestbedError(f"{self._host.name}: {name} (process {identity.pid}) does not end.")


@dataclass(frozen=True)
class _Stat:
    """Fields 3, 20 and 22 of /proc/PID/stat, proc(5)."""

    state: str
    threads: int
    start_ticks: int


def _quoted(value: str) -> str:
    """A string as ovs-vsctl(8) takes it whatever it holds, section Database Values."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
