"""The two daemons of a private OVS instance: ovsdb-server and ovs-vswitchd, from an empty folder to their end."""

import itertools
import time
from collections.abc import Collection
from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs.control import COMMAND_TIMEOUT_S, OvsControl
from ctbench.dut.ovs.instance import (
    POLL_S,
    ProcessIdentity,
    VswitchdLog,
    dpdk_is_up,
    identify,
    other_config_settings,
    read_stat,
)
from ctbench.dut.ovs.pause import Pause
from ctbench.dut.ovs.trouble import STOPPED, find_trouble
from ctbench.hosts.machine import format_cpu_list

#: Seconds that a daemon gets to end after each way of asking.
END_TIMEOUT_S = 5.0
#: Numbers of the instances that this process starts: the logs of several, in sandboxes of their own, are kept together.
_generations = itertools.count(1)


class OvsDaemons:
    """Implements `Instance`. All state of the daemons is in `control.folder` of the host, emptied at each start."""

    def __init__(self, control: OvsControl) -> None:
        self.control = control
        self._host = control.host
        self._generation = 0
        #: What `start` started; it is ours even where somebody removed the file with its ID.
        self._processes: dict[str, ProcessIdentity] = {}
        self._pause = Pause(self._host)

    def keeps_dpdk(self) -> bool:
        """See `Instance.keeps_dpdk`: it is started again each time."""
        return False

    @property
    def binary(self) -> str:
        """See `Instance.binary`."""
        return self.control.installation.vswitchd_path

    @property
    def log_name(self) -> str:
        """File name of ovs-vswitchd's log; each start has one of its own."""
        return f"ovs-vswitchd.{self._generation}.log"

    @property
    def log(self) -> str:
        """See `Instance.log`."""
        return f"{self.control.folder}/{self.log_name}"

    def start(self, other_config: dict[str, str], vswitchd_options: list[str], cpus: tuple[int, ...]) -> None:
        """See `Instance.start`."""
        self.stop()
        self._generation = next(_generations)
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
        settings = other_config_settings(other_config)
        control.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *settings)
        vswitchd = [control.installation.vswitchd_path, f"unix:{control.database_socket}", *vswitchd_options]
        self._daemon(vswitchd, "ovs-vswitchd", self.log, cpus)
        if not dpdk_is_up(control):
            excerpt = VswitchdLog(self._host, self).excerpt()
            raise TestbedError(f"{self._host.name}: ovs-vswitchd could not initialise DPDK: {excerpt}")

    def stop(self) -> None:
        """End the daemons, also those that a crashed run left in this folder, and remove the folder."""
        self._pause.forget()
        for name in ("ovs-vswitchd", "ovsdb-server"):
            for identity in {self._identity(name), self._processes.pop(name, None)}:
                if identity:
                    self._end(name, identity)
        folder = self.control.folder
        self._host.run(["rm", "-rf", folder])
        # The folder above goes with the last of its kind.
        self._host.run(["rmdir", folder.rpartition("/")[0]], check=False)

    def vswitchd(self) -> ProcessIdentity | None:
        """See `Instance.vswitchd`."""
        return self._identity("ovs-vswitchd")

    def pause(self) -> None:
        """See `Instance.pause`."""
        if process := self._processes.get("ovs-vswitchd"):
            self._pause.begin(process.pid)

    def resume(self) -> None:
        """See `Instance.resume`."""
        self._pause.end()

    @property
    def paused(self) -> bool:
        """See `Instance.paused`."""
        return self._pause.lasts

    @property
    def paused_s(self) -> float:
        """See `Instance.paused_s`."""
        return self._pause.seconds

    def trouble(self, files: Collection[str] = ()) -> str:
        """See `Instance.trouble`. Files are looked for once both daemons run. That we paused it is no trouble."""
        if "ovs-vswitchd" not in self._processes:
            return find_trouble(self._host, self._processes, [])
        paused = {"ovs-vswitchd"} if self.paused else set()
        ids = [f"{self.control.folder}/{name}.pid" for name in self._processes]
        own = [self.control.database_socket, self.control.vswitchd, *ids]
        return find_trouble(self._host, self._processes, [*own, *files], paused)

    def save_log(self, folder: Path) -> None:
        """See `Instance.save_log`."""
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
        if identity := self._identity(name):
            self._processes[name] = identity

    def _identity(self, name: str) -> ProcessIdentity | None:
        return identify(self._host, f"{self.control.folder}/{name}.pid", self.control.folder)

    def _end(self, name: str, identity: ProcessIdentity) -> None:
        # `exit --cleanup` removes the bridge's tap devices, which survive ovs-vswitchd otherwise; ovs-vswitchd(8).
        exit_ = [self.control.installation.tool("ovs-appctl"), "-T", "5", "-t", f"{self.control.folder}/{name}.ctl"]
        polite = ["exit", "--cleanup"] if name == "ovs-vswitchd" else ["exit"]
        pid = str(identity.pid)
        # One that is stopped hears nothing else.
        stat = read_stat(self._host, identity.pid)
        asked = [] if stat and stat.state in STOPPED else [[*exit_, *polite], ["kill", "-TERM", pid]]
        for argv in (*asked, ["kill", "-KILL", pid]):
            heard = self._host.run(argv, check=False).exit_status == 0
            deadline = time.monotonic() + (END_TIMEOUT_S if heard else 0.0)
            while not (ended := self._has_ended(identity)) and time.monotonic() < deadline:
                time.sleep(POLL_S)
            if ended:
                return
        raise TestbedError(f"{self._host.name}: {name} (process {identity.pid}) does not end.")

    def _has_ended(self, identity: ProcessIdentity) -> bool:
        stat = read_stat(self._host, identity.pid)
        # A zombie with threads still gives its memory back.
        return stat is None or stat.start_ticks != identity.start_ticks or (stat.state == "Z" and stat.threads < 2)
