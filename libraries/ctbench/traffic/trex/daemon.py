"""A TRex server by way of trex_daemon_server, which has to run on its host: HTTP with JSON-RPC (TRex manual, "Stateful
API"; automation/trex_control_plane/server/trex_server.py)."""

import base64
import re
import time
from pathlib import Path
from typing import Any

from requests import RequestException
from RequestsLibrary import RequestsLibrary

from ctbench.base.errors import GeneratorError
from ctbench.traffic.trex.config import TrexGeneratorConfig
from ctbench.traffic.trex.server import Mode, Owner, OwnServer, ServerProbe, excerpt, new_log

#: Seconds that the daemon gets to answer what takes it no time.
CALL_TIMEOUT_S = 10.0
#: Seconds that TRex gets to end, and between two looks.
STOP_TIMEOUT_S, POLL_S = 15.0, 0.2
#: Answers of `get_running_status`.
IDLE, RUNNING = 1, 3
#: The daemon's faults: TRex failed to start, is still starting, is in use; or the request was denied.
FAILED, LATE, IN_USE, DENIED = -11, -12, -13, -33


class DaemonFault(GeneratorError):
    """The daemon said no: its code, and what it says in a sentence."""

    def __init__(self, code: int, sentence: str, said: str) -> None:
        super().__init__(sentence)
        self.code = code
        #: In the daemon's own words.
        self.said = said


class Daemon:
    """The daemon's methods, called with the HTTP client of robotframework-requests, so that the log of the run shows
    what was asked and answered."""

    def __init__(self, address: str, port: int) -> None:
        self.where = f"{address}:{port}"
        self._url = f"http://{self.where}"
        self._session: Any = None

    def call(self, method: str, *arguments: Any, timeout: float = CALL_TIMEOUT_S) -> Any:
        """What `method` returns. `DaemonFault` when the daemon refuses, `GeneratorError` when it does not answer."""
        if self._session is None:
            self._session = RequestsLibrary()
            # The lab is on no proxy's other side, whatever the environment says of the web.
            self._session.create_session("trex", self._url, max_retries=0).trust_env = False
        request = {"jsonrpc": "2.0", "id": "ctbench", "method": method, "params": arguments}
        try:
            response = self._session.post_on_session("trex", "/", json=request, timeout=timeout)
            reply = response.json()
        except (RequestException, ValueError) as error:
            raise GeneratorError(
                f"No trex_daemon_server answers at {self.where} ({_cause(error)}): start it on the host, in TRex' "
                "folder, with `./trex_daemon_server start`."
            ) from error
        if reply.get("error"):
            code, said = int(reply["error"]["code"]), str(reply["error"]["message"])
            raise DaemonFault(code, f"trex_daemon_server at {self.where}: {_in_a_sentence(code, said)}", said)
        return reply.get("result")


class DaemonServer(OwnServer):
    """A server that the daemon starts, reserved for this run until it ends."""

    def __init__(self, config: TrexGeneratorConfig, probe: ServerProbe, log_folder: Path) -> None:
        super().__init__(config, probe, log_folder)
        self._daemon = Daemon(probe.endpoint.address, config.daemon_port)
        self._user = str(Owner.myself())
        #: Whether TRex is reserved for us, and so whatever the daemon starts is ours.
        self._reserved = False

    def is_running(self) -> bool:
        return self._reserved and self._state() == RUNNING

    def log_excerpt(self) -> str:
        try:
            return excerpt(base64.b64decode(self._daemon.call("get_trex_log")).decode(errors="replace"))
        except DaemonFault:
            return ""

    def stop(self) -> None:
        # What the daemon says of the end does not count: a run that it stopped itself within 5 s is a failed one to it.
        if not self._reserved:
            return
        self._kill()
        if self._log:
            self._log.write_bytes(base64.b64decode(self._daemon.call("get_trex_log")))
        self._daemon.call("cancel_reservation", self._user)
        self._log, self._reserved = None, False

    def _start(self, mode: Mode, text: str) -> dict[str, object]:
        self._reserve()
        folder, name = self._daemon.call("get_files_path"), f"ctbench_trex_{self._config.sync_port}"
        # The daemon cannot remove files; the next run overwrites these.
        if not self._daemon.call("push_file", f"{name}.yaml", base64.b64encode(text.encode()).decode()):
            raise GeneratorError(f"trex_daemon_server at {self._daemon.where} cannot write to {folder}: see its log.")
        options: dict[str, Any] = {"cfg": f"{folder}/{name}.yaml", "results_file_path": f"{folder}/{name}.log"}
        options |= {"astf": mode == "astf", "c": self._config.cores, "software": self._config.software}
        options["no-scapy-server"] = True
        self._log = new_log(self._log_folder, mode)
        seconds, block, interactive = self._config.start_timeout_s, True, True
        timeout = seconds + CALL_TIMEOUT_S
        self._daemon.call("start_trex", options, self._user, block, seconds, interactive, timeout=timeout)
        seen = self._probe.look()
        if seen["found"] != "trex":
            raise GeneratorError(
                f"trex_daemon_server at {self._daemon.where} says that TRex runs, and {self._probe.where} does not "
                f"answer: {seen['text']}."
            )
        return {
            "server": "daemon", "daemon": self._daemon.where, "version": seen["version"], "mode": seen["mode"]
        }  # fmt: skip

    def _reserve(self) -> None:
        """Reserve TRex for this run; end what a run left behind that was killed."""
        try:
            self._daemon.call("reserve_trex", self._user)
        except DaemonFault as fault:
            holder = re.search(r"another user \((.*)\)\.", fault.said)
            owner = Owner.parse(holder[1]) if holder else None
            if owner is None or not owner.is_gone():
                raise
            self._kill()
            self._daemon.call("cancel_reservation", str(owner))
            self._daemon.call("reserve_trex", self._user)
        self._reserved = True

    def _state(self) -> int:
        return int(self._daemon.call("get_running_status")["state"])

    def _kill(self) -> None:
        """End TRex if it runs. Asked to end one that has failed, the daemon would only tell of the failure."""
        if self._state() == IDLE:
            return
        self._daemon.call("force_trex_kill")
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self._state() != IDLE:
            if time.monotonic() > deadline:
                raise GeneratorError(
                    f"trex_daemon_server at {self._daemon.where}: TRex does not end within {STOP_TIMEOUT_S:g} s."
                )
            time.sleep(POLL_S)


def _in_a_sentence(code: int, said: str) -> str:
    if code == FAILED:
        # Before the output stands the daemon's guess, which is the same whatever happened.
        return f"TRex ended while it started: {excerpt(said.partition('Run output:')[2] or said).rstrip('.')}."
    if code == LATE:
        return "TRex was not ready in time: give it longer with start_timeout_s, or see its log on the host."
    if code == IN_USE:
        return "TRex runs for somebody else already: wait until that ends, or say server: running."
    if code == DENIED:
        return f"the request was denied: {said}"
    return f"fault {code}: {excerpt(said)}"


def _cause(error: Exception) -> str:
    """The innermost reason: requests wraps urllib3, which wraps the operating system's."""
    return re.split(r"\] |: ", str(error))[-1].strip(" '\")>") or type(error).__name__
