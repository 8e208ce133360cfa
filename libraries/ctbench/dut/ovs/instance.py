"""A private Open vSwitch from its start to its end: its processes, with their identity, their state and their pause;
and its log."""

import contextlib
import itertools
import os
import re
import signal
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.abilities import COMES, STAYS
from ctbench.dut.base import wait_until
from ctbench.dut.ovs.control import COMMAND_TIMEOUT_S, OvsControl
from ctbench.hosts.base import Host
from ctbench.hosts.local import fate, is_own_fault
from ctbench.hosts.machine import Placement, cpu_ranges
from ctbench.hosts.sandbox import Sandbox

#: Seconds between two looks at something that changes by itself.
POLL_S = 0.05


#: Flag of a process that is about to end, linux/sched.h: its memory is freed while it still looks alive.
PF_EXITING = 0x4


@dataclass(frozen=True)
class ProcessIdentity:
    """The identity of a process, which a later process with the same ID does not share, and its state when it was read;
    /proc/PID/stat, proc(5)."""

    pid: int
    #: When it started, clock ticks since boot (field 22).
    start_ticks: int
    #: Its state (field 3), its threads (field 20), and whether it is about to end (a flag of field 9).
    state: str = field(default="S", compare=False)
    threads: int = field(default=1, compare=False)
    is_ending: bool = field(default=False, compare=False)

    @classmethod
    def parse(cls, stat: str) -> "ProcessIdentity":
        fields = stat.rpartition(")")[2].split()  # from the third field on; the name before may hold spaces
        ending = bool(int(fields[6]) & PF_EXITING)
        return cls(int(stat.split(maxsplit=1)[0]), int(fields[19]), fields[0], int(fields[17]), ending)


#: Prints /proc/PID/stat and the command line of the process that a file names.
_IDENTIFY = 'read -r pid <"$1"; [ "$pid" ] && cat "/proc/$pid/stat" "/proc/$pid/cmdline"'


def identify(host: Host, pidfile: str, mark: str) -> ProcessIdentity | None:
    """Return the process that `pidfile` names; None when it is gone, or is another one: `mark` has to be in its command
    line, as the ID of a daemon that a crash left behind may be another's by now."""
    stat_line, _, command = host.run(["sh", "-c", _IDENTIFY, "sh", pidfile], check=False).stdout.partition("\n")
    if not stat_line or mark not in command:
        return None
    process = ProcessIdentity.parse(stat_line)
    return None if process.state in "ZX" else process


#: Seconds that a stopped process gets to go on: so long, and the trial that it stood still in tells of it.
GO_ON_TIMEOUT_S = 10.0
#: States of proc(5) in which a process was stopped: by a signal, by a debugger.
STOPPED = "Tt"
#: Prints /proc/PID/stat of those processes in its first argument that are there, and `gone FILE` for each file that is
#: not.
_LOOK = """
for pid in $1; do cat "/proc/$pid/stat" 2>/dev/null; done
shift
for file; do [ -e "$file" ] || echo "gone $file"; done
"""


def find_trouble(
    host: Host, processes: Mapping[str, ProcessIdentity], files: Collection[str], paused: Collection[str] = ()
) -> str:
    """Return one sentence on the first fault: the host cannot be asked, a process (by its program's name) is dead, one
    is stopped and does not go on although it is not `paused`, some of these files are gone. Empty where all is well."""
    deadline = time.monotonic() + GO_ON_TIMEOUT_S
    while True:
        try:
            stats, gone = _look(host, processes.values(), files)
        except TestbedError as error:
            return str(error)
        for name, process in processes.items():
            now = stats.get(process.pid)
            if now is None or now != process or now.state in "ZX" or now.is_ending:
                ended = host.ended_with(process.pid)
                return f"{name} (process {process.pid}) {'died' if ended is None else fate(ended)}."
        running = {name: each for name, each in processes.items() if name not in paused}
        stopped = [(name, each) for name, each in running.items() if stats[each.pid].state in STOPPED]
        if not stopped:
            more = f" and {len(gone) - 1} more of its files are" if len(gone) > 1 else " is"
            return f"Open vSwitch cannot be reached any more: {gone[0]}{more} gone." if gone else ""
        if time.monotonic() > deadline:
            name, process = stopped[0]
            state = f"is stopped (state {stats[process.pid].state})"
            return f"{name} (process {process.pid}) {state} and did not go on within {GO_ON_TIMEOUT_S:g} s."
        time.sleep(POLL_S)


def _look(
    host: Host, processes: Collection[ProcessIdentity], files: Collection[str]
) -> tuple[dict[int, ProcessIdentity], list[str]]:
    """Return the states of those processes that exist, by ID, and those of the files that do not."""
    pids = " ".join(str(process.pid) for process in processes)
    lines = host.run(["sh", "-c", _LOOK, "sh", pids, *files], check=False).stdout.splitlines()
    gone = [line.removeprefix("gone ") for line in lines if line.startswith("gone ")]
    stats = {each.pid: each for each in (ProcessIdentity.parse(line) for line in lines if not line.startswith("gone "))}
    return stats, gone


class Pause:
    """A pause of one process of a host. A signal is sent by the process' descriptor: in some microseconds, and never to
    another process that got its ID."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._process: tuple[int, int] | None = None
        self._since = 0.0
        #: Seconds that it was stopped for in all, up to its last `end`.
        self.seconds = 0.0
        #: Whether it is stopped now.
        self.lasts = False

    def begin(self, pid: int) -> None:
        """Stop a process. Do nothing where it has died, or is stopped already. Raise `MissingResource` where it is on
        another machine."""
        if self.lasts:
            return
        if self._process is None or self._process[0] != pid:
            self.forget()
            with contextlib.suppress(TestbedError, ProcessLookupError):  # `trouble` finds what has died
                here = self._host.local_pid(pid)
                if here is None:
                    raise MissingResource(
                        f"{self._host.name}: a process there cannot be paused for another one within microseconds: two"
                        " DUTs stand side by side only on this machine."
                    )
                self._process = pid, os.pidfd_open(here)
        if self._process and self._send(signal.SIGSTOP):
            self.lasts, self._since = True, time.monotonic()

    def end(self) -> None:
        if self.lasts:
            self._send(signal.SIGCONT)
            self.lasts = False
            self.seconds += time.monotonic() - self._since

    def forget(self) -> None:
        self.end()
        if self._process:
            os.close(self._process[1])
        self._process, self.seconds = None, 0.0

    def _send(self, number: signal.Signals) -> bool:
        assert self._process
        try:
            signal.pidfd_send_signal(self._process[1], number)
        except ProcessLookupError:
            return False
        return True


def other_config_settings(values: dict[str, str]) -> list[str]:
    """Return options of the Open_vSwitch table as ovs-vsctl(8) takes them whatever they hold, section Database
    Values."""
    escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in values.items()}
    return [f'other_config:{key}="{value}"' for key, value in escaped.items()]


#: Folder on the host of the instance.
FOLDER = "/run/ctbench/ovs"
#: The tap that the userspace datapath has for itself (`ovs-%s` in ofproto-dpif.c).
OWN_TAP = "ovs-netdev"
#: Seconds that a daemon gets to end after each way of asking.
END_TIMEOUT_S = 5.0
#: Numbers of the instances that this process starts: the logs of several, in sandboxes of their own, are kept together.
_generations = itertools.count(1)


class OvsDaemons:
    """The daemons of a private instance. All of their state is in `control.folder` of the host, emptied at each
    start."""

    def __init__(self, control: OvsControl, log_folder: Path | None = None) -> None:
        """`log_folder`: folder of this machine for copies of the log."""
        self.control = control
        self._host = control.host
        self._log_folder = log_folder
        #: Name of ovs-vswitchd's log, and of its copy; empty before `start`.
        self.log_name = ""
        #: Stops ovs-vswitchd (SIGSTOP), and lets it go on.
        self.paused = Pause(self._host)
        #: What `start` started as ovs-vswitchd, and where.
        self._vswitchd: list[str] = []
        self._cpus: tuple[int, ...] = ()
        #: What `start` started; it is ours even where the file with its ID was removed.
        self._processes: dict[str, ProcessIdentity] = {}

    @property
    def log(self) -> str:
        """Path of ovs-vswitchd's log on the host."""
        return f"{self.control.folder}/{self.log_name}"

    def start(self, other_config: dict[str, str], vswitchd_options: list[str], placement: Placement) -> None:
        """Start the daemons with `other_config` of the Open_vSwitch table. Until the first topology is set up, the
        threads may use the generator's CPUs as well, which are idle: setting up keeps a CPU busy."""
        self.stop()
        self.log_name = f"ovs-vswitchd.{next(_generations)}.log"
        control, folder = self.control, self.control.folder
        self._host.run(["mkdir", "-p", folder])
        database, installed = f"{folder}/conf.db", control.installation
        self._host.run([installed.tool("ovsdb-tool"), "create", database, installed.database_schema])
        server = [installed.ovsdb_server, database, f"--remote=punix:{control.database_socket}"]
        self._daemon(server, "ovsdb-server", f"{folder}/ovsdb-server.log", placement.housekeeping)
        settings = other_config_settings(other_config)
        control.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *settings)
        if isinstance(self._host, Sandbox):
            self._copy_program(installed.vswitchd_path)
        self._vswitchd = [installed.vswitchd_path, f"unix:{control.database_socket}", *vswitchd_options]
        self._cpus = (*placement.housekeeping, *placement.generator)
        self._run_vswitchd()

    def restart(self) -> None:
        """End ovs-vswitchd as its service does, and start it again with the same database and log."""
        if running := self.vswitchd():
            self._end("ovs-vswitchd", running, cleanup=False)
        self._run_vswitchd()

    def stop(self) -> None:
        """End the daemons, also those that a crashed run left in this folder, and remove their taps and the folder. May
        be called twice."""
        self.paused.forget()
        for name in ("ovs-vswitchd", "ovsdb-server"):
            for identity in {self._identity(name), self._processes.pop(name, None)}:
                if identity:
                    self._end(name, identity)
        folder = self.control.folder
        if not isinstance(self._host, Sandbox):  # what is there goes with it
            self._remove_taps()
        self._host.run(["rm", "-rf", folder])
        # The folder above goes with the last of its kind.
        self._host.run(["rmdir", folder.rpartition("/")[0]], check=False)

    def vswitchd(self) -> ProcessIdentity | None:
        """Return the running ovs-vswitchd; None when it is dead, or a zombie."""
        return self._identity("ovs-vswitchd")

    def pause(self) -> None:
        """Stop ovs-vswitchd with all its threads (SIGSTOP). Do nothing where it has died. Raise `MissingResource` where
        it is on another machine."""
        if process := self._processes.get("ovs-vswitchd"):
            self.paused.begin(process.pid)

    def crashed(self) -> bool:
        """True where ovs-vswitchd, which has ended, is known to have ended by a fault of its own."""
        process = self._processes.get("ovs-vswitchd")
        return process is not None and is_own_fault(self._host.ended_with(process.pid))

    def trouble(self, files: Collection[str] = ()) -> str:
        """Return one sentence on what is dead, stopped or gone, `files` included; empty where nothing is. Files are
        checked once both daemons run. A pause by the suite does not count."""
        if "ovs-vswitchd" not in self._processes:
            return find_trouble(self._host, self._processes, [])
        paused = {"ovs-vswitchd"} if self.paused.lasts else set()
        ids = [f"{self.control.folder}/{name}.pid" for name in self._processes]
        own = [self.control.database_socket, self.control.vswitchd, *ids]
        return find_trouble(self._host, self._processes, [*own, *files], paused)

    def save_log(self) -> None:
        """Copy ovs-vswitchd's log to this machine, as evidence."""
        if self._log_folder and self.log_name and (lines := self.logged_since()):
            self._log_folder.mkdir(parents=True, exist_ok=True)
            (self._log_folder / self.log_name).write_text("\n".join(lines) + "\n")

    def log_size(self) -> int:
        return int(self._host.run(["stat", "-c", "%s", self.log]).stdout)

    def logged_since(self, offset: int = 0) -> list[str]:
        """Return the lines of the log from this byte on; none when it went with its process."""
        return self._host.run(["tail", "-c", f"+{offset + 1}", self.log], check=False).stdout.splitlines()

    def last_errors(self) -> str:
        lines = [line for line in self.logged_since() if re.search(r"\|(ERR|EMER|WARN)\|", line)]
        return " | ".join(line.split("|", 2)[-1] for line in lines[-3:]) or "its log holds no error"

    def _remove_taps(self) -> None:
        """Remove the tap devices of a daemon that ended without `exit --cleanup`: OVS makes them persistent
        (TUNSETPERSIST in netdev-linux.c). One that is in use is another daemon's, and the kernel keeps it."""
        if self._host.run(["test", "-d", self.control.folder], check=False).exit_status != 0:
            return
        ours = rf"^({OWN_TAP}|{re.escape(self.control.bridge)}|(?:{STAYS}|{COMES})\d+): tap"
        names = re.findall(ours, self._host.run(["ip", "tuntap", "show"], check=False).stdout, re.MULTILINE)
        if names:
            commands = "".join(f"tuntap del dev {name} mode tap\n" for name in names)
            self._host.run(["ip", "-force", "-batch", "-"], check=False, stdin=commands)

    def _copy_program(self, path: str) -> None:
        """Mount a fresh copy of a program at its place, in this sandbox only. All processes of a file share its pages
        in memory, so all starts of a build would share the effect of the pages' places on the rates. The copy has the
        times of the installed file, which tell builds apart."""
        copy = f"{self.control.folder}/program"
        self._host.run(["umount", "-n", path], check=False)
        self._host.run(["cp", "--preserve=mode,timestamps", path, copy])
        self._host.run(["mount", "-n", "--bind", copy, path])

    def _run_vswitchd(self) -> None:
        """Start ovs-vswitchd. Raise `TestbedError` with the last errors of the log where DPDK did not start."""
        self._daemon(self._vswitchd, "ovs-vswitchd", self.log, self._cpus)
        if not self.control.column("Open_vSwitch", ".", "dpdk_initialized"):
            raise TestbedError(f"{self._host.name}: ovs-vswitchd could not initialise DPDK: {self.last_errors()}")

    def _daemon(self, argv: list[str], name: str, log: str, cpus: tuple[int, ...]) -> None:
        """Start a daemon, ovs-vswitchd(8): the command returns once the daemon, detached, is ready."""
        folder = self.control.folder
        options = ["--detach", "--no-chdir", f"--pidfile={folder}/{name}.pid", f"--unixctl={folder}/{name}.ctl"]
        logging = [f"--log-file={log}", "-vconsole:off", "-vsyslog:off"]
        on_cpus = ["taskset", "-c", cpu_ranges(cpus)]
        self._host.run([*on_cpus, *argv, *options, *logging], COMMAND_TIMEOUT_S, env=self.control.environment)
        if identity := self._identity(name):
            self._processes[name] = identity

    def _identity(self, name: str) -> ProcessIdentity | None:
        return identify(self._host, f"{self.control.folder}/{name}.pid", self.control.folder)

    def _end(self, name: str, identity: ProcessIdentity, *, cleanup: bool = True) -> None:
        # `exit --cleanup` removes the bridge's tap devices, which survive ovs-vswitchd otherwise; ovs-vswitchd(8).
        tool, socket = self.control.installation.tool("ovs-appctl"), f"{self.control.folder}/{name}.ctl"
        exit_ = ["env", tool, "-T", "5", "-t", socket]  # env(1): the tool of another installation's may be missing
        polite = ["exit", "--cleanup"] if name == "ovs-vswitchd" and cleanup else ["exit"]
        pid = str(identity.pid)
        # One that is stopped hears nothing else.
        now = self._now(identity)
        asked = [] if now and now.state in STOPPED else [[*exit_, *polite], ["kill", "-TERM", pid]]
        for argv in (*asked, ["kill", "-KILL", pid]):
            heard = self._host.run(argv, check=False).exit_status == 0
            if wait_until(lambda: self._has_ended(identity), END_TIMEOUT_S if heard else 0.0):
                return
        raise TestbedError(f"{self._host.name}: {name} (process {identity.pid}) does not end.")

    def _now(self, process: ProcessIdentity) -> ProcessIdentity | None:
        return _look(self._host, [process], [])[0].get(process.pid)

    def _has_ended(self, identity: ProcessIdentity) -> bool:
        now = self._now(identity)
        # A zombie with threads still gives its memory back.
        return now is None or now != identity or (now.state == "Z" and now.threads < 2)
