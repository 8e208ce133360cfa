"""The life of a TRex server: one that somebody runs, or one that is started on its host and ended again."""

import itertools
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.hosts.base import Host, Process
from ctbench.traffic.trex import probe as probe_program
from ctbench.traffic.trex.config import TrexGeneratorConfig
from ctbench.traffic.trex.footprint import Footprint
from ctbench.traffic.trex.server_config import dp_flows, instance_name, is_kernel_interface, is_virtual, trex_cfg

Mode = Literal["astf", "stl"]

#: Seconds that a server gets for each step of an answer.
ANSWER_TIMEOUT_S = 3.0
#: Seconds between two looks at a server that starts.
POLL_S = 0.1
#: Lines of the log that an excerpt has.
EXCERPT_LINES = 6
#: What TRex colours its words with, lines that say nothing, and lines that say what went wrong.
COLOURS, IDLE_LINE = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"[\s\-*=]*")
COMPLAINT = re.compile(r"\b(error|cannot|can't|could not|unable|fail\w*|abort\w*|assert\w*|signal|killed)\b", re.I)


@dataclass(frozen=True)
class Endpoint:
    """Where TRex' client reaches the server."""

    address: str
    sync_port: int
    async_port: int


class ServerProbe:
    """The server as it is seen from where TRex' client runs: this machine, or a network namespace on it."""

    def __init__(self, host: Host, prefix: Sequence[str], endpoint: Endpoint) -> None:
        """`prefix` carries a command of `host` to where the server can be reached, as in TrexWorker."""
        self._host = host
        self._prefix = tuple(prefix)
        self.endpoint = endpoint

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.endpoint.address}:{self.endpoint.sync_port}"

    def look(self) -> dict[str, str]:
        """Who listens there; see `probe.ask`."""
        address, port = self.endpoint.address, str(self.endpoint.sync_port)
        argv = [sys.executable, "-I", "-S", probe_program.__file__, address, port, str(ANSWER_TIMEOUT_S)]
        said = self._host.run([*self._prefix, *argv], timeout=20 * ANSWER_TIMEOUT_S).stdout
        return {str(key): str(value) for key, value in json.loads(said).items()}


class RunningServer:
    """A server that somebody else started, and whose life is theirs."""

    def __init__(self, probe: ServerProbe) -> None:
        self._probe = probe
        self._seen: Mapping[str, str] = {}

    def start(self, mode: Mode, flows: int = 0) -> Endpoint:
        """Where it is, when it runs in `mode`; its memory is what it is, so `flows` changes nothing."""
        del flows
        where, self._seen = self._probe.where, self._probe.look()
        command = "./t-rex-64 -i" + " --astf" * (mode == "astf")
        if self._seen["found"] == "nobody":
            raise GeneratorError(
                f"No TRex server listens on {where} ({self._seen['text']}): start it there with `{command}`, or say "
                "server: start in the testbed file."
            )
        if self._seen["found"] != "trex":
            raise GeneratorError(f"What listens on {where} is no TRex server: {self._seen['text']}.")
        if self._seen["mode"].lower() != mode:
            raise GeneratorError(
                f"The TRex server on {where} runs in {self._seen['mode']} mode, and {mode.upper()} is needed: start it "
                f"again with `{command}`, or say server: start, which changes the mode by itself."
            )
        return self._probe.endpoint

    def is_running(self) -> bool:
        """Whether it answers."""
        return self._probe.look()["found"] == "trex"

    def log_excerpt(self) -> str:
        """Nothing: its log is somebody else's."""
        return ""

    def snapshot(self) -> dict[str, object]:
        """What the record says of it."""
        said = {key: value for key, value in self._seen.items() if key in ("version", "mode")}
        return {"server": "running", "address": self._probe.where, **said}

    def stop(self) -> None:
        """It goes on running."""


class StartedServer:
    """A server that is started on `host` in the mode that is needed, and ended with the run."""

    def __init__(
        self, host: Host, config: TrexGeneratorConfig, probe: ServerProbe, log_folder: Path, prefix: Sequence[str] = ()
    ) -> None:
        """`config` is complete: the ports know where their frames go. `prefix` carries it into a network namespace.
        Its logs are kept in `log_folder` of this machine. Nothing is started yet."""
        self._host = host
        self._config = config
        self._probe = probe
        self._log_folder = log_folder
        self._prefix = tuple(prefix)
        self._footprint = Footprint(host, str(config.sync_port), instance_name(config))
        self._home = config.trex_home or os.environ.get("TREX_HOME", "")
        self._process: Process | None = None
        self._log: Path | None = None
        self._flows = 0
        self._snapshot: dict[str, object] = {}

    def start(self, mode: Mode, flows: int = 0) -> Endpoint:
        """Have it run in `mode` with memory for `flows` connections at a time; started (again) where it does not.

        Raises `GeneratorError` when the ports are taken, when TRex ends, or is not ready in time: with what it said.
        """
        objects = dp_flows(flows, self._config.cores) if mode == "astf" else 0
        if self.is_running() and self._snapshot.get("mode") == mode.upper() and objects <= self._flows:
            return self._probe.endpoint
        self.stop()
        self._footprint.end_abandoned()
        self._check_host()
        text = trex_cfg(self._config, objects)
        command = self._command(mode)
        self._log = new_log(self._log_folder, mode)
        try:
            self._footprint.claim(text)
            change_folder = ["sh", "-c", 'cd "$0" && exec "$@"', self._home]
            environment = {"LD_LIBRARY_PATH": self._home}
            self._process = self._host.start([*self._prefix, *change_folder, *command], env=environment, log=self._log)
            seen = self._wait_until_ready(mode)
            self._check_gateways()
        except BaseException:
            self.stop()
            raise
        self._flows = objects
        self._snapshot = {
            "server": "started", "host": self._host.name, "version": seen["version"], "mode": seen["mode"],
            "command": " ".join(command), "trex_cfg.yaml": text,
        }  # fmt: skip
        return self._probe.endpoint

    def is_running(self) -> bool:
        """Whether it has been started and has not ended since."""
        return self._process is not None and self._process.is_running()

    def log_excerpt(self) -> str:
        """The last lines of its log in one."""
        return excerpt(self._read_log())

    def snapshot(self) -> dict[str, object]:
        """What the record says of it: version, mode, command, configuration."""
        return dict(self._snapshot)

    def stop(self) -> None:
        """End it, and remove its files. May be called twice."""
        if self._process is None:
            return
        self._footprint.end()
        self._process.stop()
        self._process = None

    def _command(self, mode: Mode) -> list[str]:
        """What starts TRex. Cards need the script t-rex-64, which binds them and reserves hugepages; for virtual ports
        it would only write to the host (/tmp/trex-bird), so the program itself is run, which needs its libraries."""
        config = self._config
        program = "./_t-rex-64" if is_virtual(config.client) else "./t-rex-64"
        options = ["--cfg", self._footprint.config, "-i", *["--astf"] * (mode == "astf"), "-c", str(config.cores)]
        software = ["--software"] * config.software
        return [program, *options, *software, "--no-scapy-server", "--no-key", "--iom", "0"]

    def _check_host(self) -> None:
        """Raise when TRex cannot be started there: not root, no TRex, no such interface, its port taken."""
        if self._host.run(["id", "-u"]).stdout.strip() != "0":
            raise MissingResource(
                f"{self._host.name}: TRex needs root: run as root, or take a testbed with `host: sandbox`."
            )
        if self._host.run(["test", "-x", f"{self._home}/_t-rex-64"], check=False).exit_status != 0:
            raise MissingResource(
                f"{self._host.name}: there is no TRex in {self._home or 'trex_home'}: give the folder of t-rex-64 as "
                "trex_home in the testbed file or as the environment variable TREX_HOME."
            )
        for interface in (self._config.client.interface, self._config.server_port.interface):
            exists = [*self._prefix, "test", "-e", f"/sys/class/net/{interface}"]
            if is_kernel_interface(interface) and self._host.run(exists, check=False).exit_status != 0:
                raise GeneratorError(f"{self._host.name}: there is no interface {interface} for TRex.")
        seen, where = self._probe.look(), self._probe.where
        if seen["found"] == "trex":
            raise GeneratorError(
                f"A TRex server ({seen['version']}, {seen['mode']}) runs on {where} already: stop it, say "
                "server: running, or give this one other ports."
            )
        if seen["found"] == "other":
            raise GeneratorError(f"{where}, where TRex is to listen, is taken: {seen['text']}. Give TRex other ports.")

    def _wait_until_ready(self, mode: Mode) -> dict[str, str]:
        deadline = time.monotonic() + self._config.start_timeout_s
        while True:
            seen = self._probe.look()
            if not self.is_running():
                raise GeneratorError(f"{self._host.name}: TRex ended while it started: {self._last_words()}.")
            if seen["found"] == "trex" and seen["mode"].lower() == mode:
                return seen
            if time.monotonic() > deadline:
                raise GeneratorError(
                    f"{self._host.name}: TRex is not ready after {self._config.start_timeout_s:g} s: "
                    f"{self._last_words()}."
                )
            time.sleep(POLL_S)

    def _check_gateways(self) -> None:
        """Raise when a port found no gateway: TRex says so in its log, and goes on without."""
        unresolved = re.findall(r"Failed resolving dest MAC for default gateway:(\S+) on port (\d+)", self._read_log())
        if unresolved:
            which = " and ".join(f"{gateway} of port {port}" for gateway, port in unresolved)
            raise GeneratorError(f"{self._host.name}: TRex got no answer to ARP from gateway {which}: is the DUT up?")

    def _read_log(self) -> str:
        return self._log.read_text(errors="replace") if self._log and self._log.exists() else ""

    def _last_words(self) -> str:
        if self._process is not None and not self._process.is_running():
            self._process.stop()  # a host across the network brings the log when the process is let go
        return self.log_excerpt().rstrip(".") or "it said nothing"


def new_log(folder: Path, mode: Mode) -> Path:
    """A file of its own for each start of TRex, all of which are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"trex-{number}-{mode}.log" for number in itertools.count(1))
    return next(path for path in paths if not path.exists())


def excerpt(log: str) -> str:
    """What TRex' output says of what went wrong, else its last lines, in one."""
    lines = [" ".join(COLOURS.sub("", line).replace("\0", " ").split()) for line in log.splitlines()]
    spoken = [line for line in lines if not IDLE_LINE.fullmatch(line)]
    return " | ".join([line for line in spoken if COMPLAINT.search(line)][-EXCERPT_LINES:] or spoken[-EXCERPT_LINES:])
