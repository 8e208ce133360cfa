"""TRex servers: one that runs already, or one that the suite starts on its host and ends again, by itself or through
trex_daemon_server, which has to run there: HTTP with JSON-RPC (TRex manual, "Stateful API";
automation/trex_control_plane/server/trex_server.py)."""

import base64
import itertools
import os
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from ctbench.base.errors import GeneratorError, MissingResource, TestbedError
from ctbench.hosts.base import Host, Process
from ctbench.hosts.local import Owner
from ctbench.hosts.offloads import merging, switch_off
from ctbench.traffic.trex.config import (
    dp_flows,
    instance_name,
    is_kernel_interface,
    is_virtual,
    kernel_interface,
    trex_cfg,
)
from ctbench.traffic.trex.source import TrexGeneratorConfig

#: Seconds that TRex gets to end by itself; it gives back its memory first.
END_TIMEOUT_S = 10.0
#: Seconds between two looks at whether it has ended.
END_POLL_S = 0.05
#: Below /run, which is a sandbox's own; TRex needs root anyway.
PARENT = "/run"
#: Files of a server's folder: whose it is, and what TRex is started with.
OWNER, CONFIG = "owner", "trex_cfg.yaml"


Mode = Literal["astf", "stl"]

#: Seconds between two looks at a server that starts.
POLL_S = 0.1
#: Lines of the log that an excerpt has.
EXCERPT_LINES = 6
#: What TRex colours its words with, lines that say nothing, and lines that say what went wrong.
COLOURS, IDLE_LINE = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"[\s\-*=]*")
COMPLAINT = re.compile(r"\b(error|cannot|can't|could not|unable|fail\w*|abort\w*|assert\w*|signal|killed)\b", re.I)


#: What TRex' client has to know of a server to connect: its address and its ports, by the names of client_worker.py.
Place = dict[str, Any]


class TrexServer:
    """A server that another user started, and whose life, log and memory that user controls."""

    def __init__(self, host: Host, config: TrexGeneratorConfig, address: str, prefix: Sequence[str] = ()) -> None:
        """`host`: the server's, in the namespace that `prefix` enters; `address`: the server's, as its client reaches
        it."""
        self._host = host
        self._config = config
        self._prefix = prefix
        self._place: Place = {"server": address, "sync_port": config.sync_port, "async_port": config.async_port}
        self._snapshot: dict[str, object] = {"server": "running", "address": f"{address}:{config.sync_port}"}

    def start(self, mode: Mode, flows: int = 0, lost: int = 0) -> Place:
        """Start the server in `mode`, with memory for `flows` connections at a time, and as many `lost` ones as it can
        hold, unless it runs so, and return its place. Raise `GeneratorError` with TRex' output where it does not start.
        The mode of a server that is not ours is checked by its client."""
        return self._place

    def is_running(self) -> bool:
        """True where a program listens on the server's port."""
        listening = [*self._prefix, "ss", "-Htln", f"sport = :{self._config.sync_port}"]
        return bool(self._host.run(listening, check=False).stdout.strip())

    def log_excerpt(self) -> str:
        """Return the last of the server's output, on one line; empty where it is not known."""
        return ""

    def snapshot(self) -> dict[str, object]:
        """Return the server's facts for the record: version, mode, configuration."""
        return dict(self._snapshot)

    def stop(self) -> None:
        """End the server where it is ours, and remove its files. May be called twice."""


class OwnServer(TrexServer, ABC):
    """A server that the suite starts in the mode that is needed, and ends with the run."""

    def __init__(
        self, host: Host, config: TrexGeneratorConfig, address: str, log_folder: Path, prefix: Sequence[str] = ()
    ) -> None:
        """`config`: complete, with the destinations of all ports; `log_folder`: a folder of this machine for TRex'
        logs."""
        super().__init__(host, config, address, prefix)
        self._log_folder = log_folder
        self._log: Path | None = None
        self._flows = 0

    def start(self, mode: Mode, flows: int = 0, lost: int = 0) -> Place:
        objects = dp_flows(flows, self._config.cores * len(self._config.pairs), lost) if mode == "astf" else 0
        if self._snapshot.get("mode") == mode.upper() and objects <= self._flows and self.is_running():
            return self._place
        self.stop()
        text = trex_cfg(self._config, objects)
        self._log_folder.mkdir(parents=True, exist_ok=True)
        # Each start has a log of its own, and all are kept.
        paths = (self._log_folder / f"trex-{number}-{mode}.log" for number in itertools.count(1))
        self._log = next(path for path in paths if not path.exists())
        try:
            facts = self._start(mode, text)
        except BaseException:
            self.stop()
            raise
        self._flows = objects
        self._snapshot = {**facts, "mode": mode.upper(), "trex_cfg.yaml": text}
        return self._place

    @abstractmethod
    def _start(self, mode: Mode, text: str) -> dict[str, object]:
        """Start TRex with the configuration `text`, wait until it is ready, and return its facts for the record."""


class StartedServer(OwnServer):
    """A server that the suite starts on `host`."""

    def __init__(
        self, host: Host, config: TrexGeneratorConfig, address: str, log_folder: Path, prefix: Sequence[str] = ()
    ) -> None:
        super().__init__(host, config, address, log_folder, prefix)
        #: Its name stands in the command line of all the server's processes, and in no other: root sees the
        #: processes of sandboxes too, so it is new for each.
        self._folder = f"{PARENT}/ctbench-trex-{config.sync_port}-{secrets.token_hex(4)}"
        self._home = config.trex_home or os.environ.get("TREX_HOME", "")
        self._process: Process | None = None

    def _start(self, mode: Mode, text: str) -> dict[str, object]:
        self._end_abandoned()
        self._check_host()
        command = self._command(mode)
        change_folder = ["sh", "-c", 'cd "$0" && exec "$@"', self._home]
        environment = {"LD_LIBRARY_PATH": self._home}
        try:
            self._host.run(["mkdir", "-p", self._folder])
            self._host.run(["tee", f"{self._folder}/{OWNER}"], stdin=str(Owner.myself()))
            self._host.run(["tee", f"{self._folder}/{CONFIG}"], stdin=text)
            self._process = self._host.start([*self._prefix, *change_folder, *command], env=environment, log=self._log)
        except BaseException:
            with suppress(TestbedError):  # what went wrong first says more
                self._host.run(["rm", "-rf", self._folder], check=False)
            raise
        self._wait_until_ready()
        self._check_gateways()
        return {"server": "started", "host": self._host.name, "command": " ".join(command)}

    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running()

    def log_excerpt(self) -> str:
        return excerpt(self._read_log())

    def stop(self) -> None:
        if self._process is None:
            return
        self._end(self._folder)
        self._process.stop()
        self._process = None

    def _end_abandoned(self) -> None:
        """End the servers on this port that killed runs left behind. Raise `GeneratorError` where such a run is
        alive."""
        named = ["-maxdepth", "1", "-name", f"ctbench-trex-{self._config.sync_port}-*"]
        for folder in self._host.run(["find", PARENT, *named], check=False).stdout.split():
            owner = Owner.parse(self._host.run(["cat", f"{folder}/{OWNER}"], check=False).stdout)
            if owner and not owner.is_gone() and (pids := self._pids(folder)):
                raise GeneratorError(
                    f"{self._host.name}: a TRex server runs there (process {' '.join(pids)}) for another run, process "
                    f"{owner.pid} of {owner.machine}: wait until that ends, or end it."
                )
            self._end(folder)

    def _end(self, folder: str) -> None:
        """Interrupt the server of a folder, kill it where that is not enough, and remove its files and those of DPDK,
        which it leaves behind in either case."""
        for signal in ("-INT", "-KILL"):
            deadline = time.monotonic() + END_TIMEOUT_S
            if pids := self._pids(folder):
                self._host.run(["kill", signal, *pids], check=False)  # one may have ended meanwhile
            while (pids := self._pids(folder)) and time.monotonic() < deadline:
                time.sleep(END_POLL_S)
            if not pids:
                break
        else:
            raise GeneratorError(f"{self._host.name}: the TRex server (process {' '.join(pids)}) does not end.")
        name = instance_name(self._config)
        self._host.run(["rm", "-rf", folder, *[f"/var/run/dpdk/{name}"] * bool(name)])

    def _pids(self, folder: str) -> list[str]:
        # From the beginning of the command line: what carries TRex to a host across SSH has it as arguments.
        pattern = rf"^([^ ]*bash )?[^ ]*t-rex-64 .*{re.escape(f'{folder}/{CONFIG}')}"
        return self._host.run(["pgrep", "-f", pattern], check=False).stdout.split()

    def _command(self, mode: Mode) -> list[str]:
        """Return the command that starts TRex. Cards need the script t-rex-64, which binds them and reserves hugepages.
        On virtual ports that would only write to the host (/tmp/trex-bird), so the program itself is run, which needs
        its libraries."""
        config = self._config
        program = "./_t-rex-64" if is_virtual(config.client) else "./t-rex-64"
        options = ["--cfg", f"{self._folder}/{CONFIG}", "-i", *["--astf"] * (mode == "astf"), "-c", str(config.cores)]
        software = ["--software"] * config.software
        return [program, *options, *software, "--no-scapy-server", "--no-key", "--iom", "0", *config.options]

    def _check_host(self) -> None:
        """Raise where TRex cannot be started on the host: not root, no TRex, no such interface, its port in use."""
        if self._host.run(["id", "-u"]).stdout.strip() != "0":
            raise MissingResource(
                f"{self._host.name}: TRex needs root: run as root, or take a testbed with `host: sandbox`."
            )
        if self._host.run(["test", "-x", f"{self._home}/_t-rex-64"], check=False).exit_status != 0:
            raise MissingResource(
                f"{self._host.name}: there is no TRex in {self._home or 'trex_home'}: give the folder of t-rex-64 as "
                "trex_home in the testbed file or as the environment variable TREX_HOME."
            )
        for interface in (port.interface for _, port in self._config.named_ports):
            exists = [*self._prefix, "test", "-e", f"/sys/class/net/{interface}"]
            if is_kernel_interface(interface) and self._host.run(exists, check=False).exit_status != 0:
                raise GeneratorError(f"{self._host.name}: there is no interface {interface} for TRex.")
            if received := kernel_interface(interface):
                self._require_single_frames(received)
        if super().is_running():
            raise GeneratorError(
                f"{self._host.name}: port {self._config.sync_port}, where TRex is to listen, is taken: stop what "
                "listens there, say server: running if that is TRex, or give this one other ports."
            )

    def _require_single_frames(self, interface: str) -> None:
        """Raise `GeneratorError` where the kernel merges received frames: TRex would miss some, as if the DUT had lost
        them."""
        said = self._host.run([*self._prefix, "ethtool", "-k", interface], check=False).stdout
        if found := merging(said):
            raise GeneratorError(
                f"{self._host.name}: {', '.join(found)} of {interface} is on: TRex would receive one frame for several "
                f"that the DUT forwarded. Switch it off: {switch_off(interface, found)}"
            )

    def _wait_until_ready(self) -> None:
        """Wait until TRex listens, which it does when it is ready."""
        deadline = time.monotonic() + self._config.start_timeout_s
        while not ((runs := self.is_running()) and super().is_running()):
            if not runs or time.monotonic() > deadline:
                what = f"is not ready after {self._config.start_timeout_s:g} s" if runs else "ended while it started"
                said = self.log_excerpt().rstrip(".") or "it said nothing"
                raise GeneratorError(f"{self._host.name}: TRex {what}: {said}.")
            time.sleep(POLL_S)

    def _check_gateways(self) -> None:
        """Raise `GeneratorError` where a port found no gateway: TRex only notes that in its log."""
        unresolved = re.findall(r"Failed resolving dest MAC for default gateway:(\S+) on port (\d+)", self._read_log())
        if unresolved:
            which = " and ".join(f"{gateway} of port {port}" for gateway, port in unresolved)
            raise GeneratorError(f"{self._host.name}: TRex got no answer to ARP from gateway {which}: is the DUT up?")

    def _read_log(self) -> str:
        return self._log.read_text(errors="replace") if self._log and self._log.exists() else ""


#: Seconds that the daemon gets to answer what takes it no time.
CALL_TIMEOUT_S = 10.0
#: Seconds that the daemon's TRex gets to end.
STOP_TIMEOUT_S = 15.0
#: Answers of `get_running_status`.
IDLE, RUNNING = 1, 3


class DaemonServer(OwnServer):
    """A server that the daemon starts, reserved for this run. The daemon is called with the HTTP client of
    robotframework-requests, so that the run's log shows requests and replies."""

    def __init__(
        self, host: Host, config: TrexGeneratorConfig, address: str, log_folder: Path, prefix: Sequence[str] = ()
    ) -> None:
        super().__init__(host, config, address, log_folder, prefix)
        self._where = f"{address}:{config.daemon_port}"
        from RequestsLibrary import RequestsLibrary  # noqa: PLC0415 - every run would wait for it

        self._http = RequestsLibrary()
        # The lab is on no proxy's other side, whatever the environment says of the web.
        self._http.create_session("trex", f"http://{self._where}", max_retries=0).trust_env = False
        self._user = str(Owner.myself())
        #: Whether TRex is reserved for us, and so whatever the daemon starts is ours.
        self._reserved = False

    def is_running(self) -> bool:
        return self._reserved and self._state() == RUNNING

    def log_excerpt(self) -> str:
        return excerpt(self._trex_log().decode(errors="replace"))

    def stop(self) -> None:
        # What the daemon says of the end does not count: a run that it stopped itself within 5 s is a failed one to it.
        if not self._reserved:
            return
        self._kill()
        if self._log:
            self._log.write_bytes(self._trex_log())
        self._call("cancel_reservation", self._user)
        self._log, self._reserved = None, False

    def _start(self, mode: Mode, text: str) -> dict[str, object]:
        self._reserve()
        folder, name = self._call("get_files_path"), f"ctbench_trex_{self._config.sync_port}"
        # The daemon cannot remove files; the next run overwrites these.
        if not self._call("push_file", f"{name}.yaml", base64.b64encode(text.encode()).decode()):
            raise GeneratorError(f"trex_daemon_server at {self._where} cannot write to {folder}: see its log.")
        options: dict[str, Any] = {"cfg": f"{folder}/{name}.yaml", "results_file_path": f"{folder}/{name}.log"}
        options |= {"astf": mode == "astf", "c": self._config.cores, "software": self._config.software}
        options["no-scapy-server"] = True
        options |= by_name(self._config.options)
        seconds, block, interactive = self._config.start_timeout_s, True, True
        timeout = seconds + CALL_TIMEOUT_S
        self._call("start_trex", options, self._user, block, seconds, interactive, timeout=timeout)
        facts: dict[str, object] = {"server": "daemon", "daemon": self._where}
        return {**facts, **({"options": list(self._config.options)} if self._config.options else {})}

    def _call(self, method: str, *arguments: Any, timeout: float = CALL_TIMEOUT_S) -> Any:
        """Return the result of `method`. Raise `GeneratorError` where the daemon refuses or does not answer."""
        request = {"jsonrpc": "2.0", "id": "ctbench", "method": method, "params": arguments}
        try:
            reply = self._http.post_on_session("trex", "/", json=request, timeout=timeout).json()
        except (OSError, ValueError) as error:  # RequestException is one of the former
            # The innermost reason: requests wraps urllib3, which wraps the operating system's.
            cause = re.split(r"\] |: ", str(error))[-1].strip(" '\")>") or type(error).__name__
            raise GeneratorError(
                f"No trex_daemon_server answers at {self._where} ({cause}): start it on the host, in TRex' folder, "
                "with `./trex_daemon_server start`."
            ) from error
        if fault := reply.get("error"):
            # Before TRex' output stands the daemon's guess, which is the same whatever happened.
            said = excerpt(fault["message"].rpartition("Run output:")[2]).rstrip(".")
            raise GeneratorError(f"trex_daemon_server at {self._where}: {said}.")
        return reply.get("result")

    def _reserve(self) -> None:
        """Reserve TRex for this run; end what a killed run left behind."""
        try:
            self._call("reserve_trex", self._user)
        except GeneratorError as error:
            holder = re.search(r"another user \((.*)\)\.", str(error))
            owner = Owner.parse(holder[1]) if holder else None
            if owner is None or not owner.is_gone():
                raise
            self._kill()
            self._call("cancel_reservation", str(owner))
            self._call("reserve_trex", self._user)
        self._reserved = True

    def _state(self) -> int:
        return int(self._call("get_running_status")["state"])

    def _trex_log(self) -> bytes:
        """Return TRex' log; empty where the daemon has none."""
        try:
            return base64.b64decode(self._call("get_trex_log"))
        except GeneratorError:
            return b""

    def _kill(self) -> None:
        """Kill TRex where it runs. The daemon's regular stop of a TRex that has failed only reports the failure."""
        if self._state() == IDLE:
            return
        self._call("force_trex_kill")
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self._state() != IDLE:
            if time.monotonic() > deadline:
                raise GeneratorError(
                    f"trex_daemon_server at {self._where}: TRex does not end within {STOP_TIMEOUT_S:g} s."
                )
            time.sleep(POLL_S)


def by_name(words: Sequence[str]) -> dict[str, Any]:
    """Return command-line options as the daemon takes them: `no-ofed-check` is true, `mbuf-factor` is "2"."""
    found: dict[str, Any] = {}
    for word in words:
        if word.startswith("-"):
            name, _, value = word.lstrip("-").partition("=")
            found[name] = value or True
        else:
            found[next(reversed(found))] = word
    return found


def excerpt(log: str) -> str:
    """Return the error lines of TRex' output, else its last lines, joined to one."""
    lines = [" ".join(COLOURS.sub("", line).replace("\0", " ").split()) for line in log.splitlines()]
    spoken = [line for line in lines if not IDLE_LINE.fullmatch(line)]
    return " | ".join([line for line in spoken if COMPLAINT.search(line)][-EXCERPT_LINES:] or spoken[-EXCERPT_LINES:])
