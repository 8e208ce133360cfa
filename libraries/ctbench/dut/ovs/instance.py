"""A running Open vSwitch: the run's own, from an empty folder to its end, or the system's; and its log."""

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.dut.base import wait_until
from ctbench.dut.ovs.control import COMMAND_TIMEOUT_S, OvsControl
from ctbench.dut.ovs.processes import STOPPED, Pause, ProcessIdentity, find_trouble, identify, read_stat
from ctbench.hosts.machine import format_cpu_list


class Instance(ABC):
    """An Open vSwitch that a DUT works with."""

    def __init__(self, control: OvsControl) -> None:
        self.control = control
        self._host = control.host
        #: Stops ovs-vswitchd (SIGSTOP), and lets it go on.
        self.paused = Pause(self._host)

    @property
    @abstractmethod
    def binary(self) -> str:
        """Path of ovs-vswitchd on the host."""

    @property
    @abstractmethod
    def log(self) -> str:
        """Path of ovs-vswitchd's log on the host."""

    @abstractmethod
    def keeps_dpdk(self) -> bool:
        """Whether it has DPDK up already, with memory of its own, and will keep it so."""

    @abstractmethod
    def start(self, other_config: dict[str, str], vswitchd_options: list[str], cpus: tuple[int, ...]) -> None:
        """Bring it up with `other_config` of the Open_vSwitch table, its threads on `cpus` (PMD threads choose
        theirs)."""

    @abstractmethod
    def stop(self) -> None:
        """Leave the host as it was found. May be called twice."""

    @abstractmethod
    def vswitchd(self) -> ProcessIdentity | None:
        """The running ovs-vswitchd; None when it is dead, or a zombie."""

    @abstractmethod
    def pause(self) -> None:
        """Stop ovs-vswitchd with all its threads (SIGSTOP). `MissingResource` where it is not ours to stop, or on
        another machine; nothing happens where it has died."""

    @abstractmethod
    def trouble(self, files: Collection[str] = ()) -> str:
        """What of it is dead, stopped or gone, `files` among it, as one sentence; empty where nothing is."""

    @abstractmethod
    def save_log(self, folder: Path) -> None:
        """Copy what this run has of ovs-vswitchd's log to `folder` of this machine, as evidence."""

    def log_size(self) -> int:
        return int(self._host.run(["stat", "-c", "%s", self.log]).stdout)

    def logged_since(self, offset: int = 0) -> list[str]:
        """Lines of the log from this byte on; none when it went with its process."""
        return self._host.run(["tail", "-c", f"+{offset + 1}", self.log], check=False).stdout.splitlines()

    def last_errors(self) -> str:
        lines = [line for line in self.logged_since() if re.search(r"\|(ERR|EMER|WARN)\|", line)]
        return " | ".join(line.split("|", 2)[-1] for line in lines[-3:]) or "its log holds no error"

    def dpdk_is_up(self) -> bool:
        return bool(self.control.column("Open_vSwitch", ".", "dpdk_initialized"))

    def require_dpdk(self) -> None:
        """`TestbedError` with the last errors of the log where DPDK did not come up."""
        if not self.dpdk_is_up():
            raise TestbedError(f"{self._host.name}: ovs-vswitchd could not initialise DPDK: {self.last_errors()}")


def other_config_settings(values: dict[str, str]) -> list[str]:
    """Columns of the Open_vSwitch table as ovs-vsctl(8) takes them whatever they hold, section Database Values."""
    escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in values.items()}
    return [f'other_config:{key}="{value}"' for key, value in escaped.items()]


#: Seconds that a daemon gets to end after each way of asking.
END_TIMEOUT_S = 5.0
#: Numbers of the instances that this process starts: the logs of several, in sandboxes of their own, are kept together.
_generations = itertools.count(1)


class OvsDaemons(Instance):
    """The daemons of an instance of our own. All of their state is in `control.folder` of the host, emptied at each
    start."""

    def __init__(self, control: OvsControl) -> None:
        super().__init__(control)
        self._generation = 0
        #: What `start` started; it is ours even where the file with its ID was removed.
        self._processes: dict[str, ProcessIdentity] = {}

    def keeps_dpdk(self) -> bool:
        return False

    @property
    def binary(self) -> str:
        return self.control.installation.vswitchd_path

    @property
    def log_name(self) -> str:
        return f"ovs-vswitchd.{self._generation}.log"

    @property
    def log(self) -> str:
        return f"{self.control.folder}/{self.log_name}"

    def start(self, other_config: dict[str, str], vswitchd_options: list[str], cpus: tuple[int, ...]) -> None:
        self.stop()
        self._generation = next(_generations)
        control, folder = self.control, self.control.folder
        self._host.run(["mkdir", "-p", folder])
        database, installed = f"{folder}/conf.db", control.installation
        self._host.run([installed.tool("ovsdb-tool"), "create", database, installed.database_schema])
        server = [installed.ovsdb_server, database, f"--remote=punix:{control.database_socket}"]
        self._daemon(server, "ovsdb-server", f"{folder}/ovsdb-server.log", cpus)
        settings = other_config_settings(other_config)
        control.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *settings)
        vswitchd = [installed.vswitchd_path, f"unix:{control.database_socket}", *vswitchd_options]
        self._daemon(vswitchd, "ovs-vswitchd", self.log, cpus)
        self.require_dpdk()

    def stop(self) -> None:
        """End the daemons, also those that a crashed run left in this folder, and remove the folder."""
        self.paused.forget()
        for name in ("ovs-vswitchd", "ovsdb-server"):
            for identity in {self._identity(name), self._processes.pop(name, None)}:
                if identity:
                    self._end(name, identity)
        folder = self.control.folder
        self._host.run(["rm", "-rf", folder])
        # The folder above goes with the last of its kind.
        self._host.run(["rmdir", folder.rpartition("/")[0]], check=False)

    def vswitchd(self) -> ProcessIdentity | None:
        return self._identity("ovs-vswitchd")

    def pause(self) -> None:
        if process := self._processes.get("ovs-vswitchd"):
            self.paused.begin(process.pid)

    def trouble(self, files: Collection[str] = ()) -> str:
        """Files are looked for once both daemons run. A pause of ours is not trouble."""
        if "ovs-vswitchd" not in self._processes:
            return find_trouble(self._host, self._processes, [])
        paused = {"ovs-vswitchd"} if self.paused.lasts else set()
        ids = [f"{self.control.folder}/{name}.pid" for name in self._processes]
        own = [self.control.database_socket, self.control.vswitchd, *ids]
        return find_trouble(self._host, self._processes, [*own, *files], paused)

    def save_log(self, folder: Path) -> None:
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
            if wait_until(lambda: self._has_ended(identity), END_TIMEOUT_S if heard else 0.0):
                return
        raise TestbedError(f"{self._host.name}: {name} (process {identity.pid}) does not end.")

    def _has_ended(self, identity: ProcessIdentity) -> bool:
        stat = read_stat(self._host, identity.pid)
        # A zombie with threads still gives its memory back.
        return stat is None or stat.start_ticks != identity.start_ticks or (stat.state == "Z" and stat.threads < 2)
