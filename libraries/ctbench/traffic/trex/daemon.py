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
from ctbench.hosts.local import Owner
from ctbench.traffic.trex.config import TrexGeneratorConfig
from ctbench.traffic.trex.server import Endpoint, Mode, OwnServer, excerpt

#: Seconds that the daemon gets to answer what takes it no time.
CALL_TIMEOUT_S = 10.0
#: Seconds that TRex gets to end, and between two looks.
STOP_TIMEOUT_S, POLL_S = 15.0, 0.2
#: Answers of `get_running_status`.
IDLE, RUNNING = 1, 3
#: What the daemon's faults mean. Before TRex' output stands its guess, which is the same whatever happened.
FAULTS = {
    -11: "TRex ended while it started: {excerpt}.",
    -12: "TRex was not ready in time: give it longer with start_timeout_s, or see its log on the host.",
    -13: "TRex runs for another user already: wait until that ends, or say server: running.",
    -33: "the request was denied: {said}",
}


class DaemonFault(GeneratorError):
    """The daemon said no: `said` in its own words."""

    def __init__(self, where: str, code: int, said: str) -> None:
        output = excerpt(said.partition("Run output:")[2] or said).rstrip(".")
        sentence = FAULTS.get(code, "fault {code}: {excerpt}").format(code=code, said=said, excerpt=output)
        super().__init__(f"trex_daemon_server at {where}: {sentence}")
        self.said = said


class DaemonServer(OwnServer):
    """A server that the daemon starts, reserved for this run until it ends. The daemon is called with the HTTP client
    of robotframework-requests, so that the log of the run shows what was asked and answered."""

    def __init__(self, config: TrexGeneratorConfig, endpoint: Endpoint, log_folder: Path) -> None:
        super().__init__(config, endpoint, log_folder)
        self._where = f"{endpoint.address}:{config.daemon_port}"
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
        seconds, block, interactive = self._config.start_timeout_s, True, True
        timeout = seconds + CALL_TIMEOUT_S
        self._call("start_trex", options, self._user, block, seconds, interactive, timeout=timeout)
        seen = self._endpoint.look()
        if seen["found"] != "trex":
            raise GeneratorError(
                f"trex_daemon_server at {self._where} says that TRex runs, and {self._endpoint.where} does not "
                f"answer: {seen['text']}."
            )
        return {"server": "daemon", "daemon": self._where, "version": seen["version"], "mode": seen["mode"]}

    def _call(self, method: str, *arguments: Any, timeout: float = CALL_TIMEOUT_S) -> Any:
        """What `method` returns. `DaemonFault` when the daemon refuses, `GeneratorError` when it does not answer."""
        request = {"jsonrpc": "2.0", "id": "ctbench", "method": method, "params": arguments}
        try:
            reply = self._http.post_on_session("trex", "/", json=request, timeout=timeout).json()
        except (RequestException, ValueError) as error:
            # The innermost reason: requests wraps urllib3, which wraps the operating system's.
            cause = re.split(r"\] |: ", str(error))[-1].strip(" '\")>") or type(error).__name__
            raise GeneratorError(
                f"No trex_daemon_server answers at {self._where} ({cause}): start it on the host, in TRex' folder, "
                "with `./trex_daemon_server start`."
            ) from error
        if fault := reply.get("error"):
            raise DaemonFault(self._where, int(fault["code"]), str(fault["message"]))
        return reply.get("result")

    def _reserve(self) -> None:
        """Reserve TRex for this run; end what a run left behind that was killed."""
        try:
            self._call("reserve_trex", self._user)
        except DaemonFault as fault:
            holder = re.search(r"another user \((.*)\)\.", fault.said)
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
        """Empty where the daemon has none."""
        try:
            return base64.b64decode(self._call("get_trex_log"))
        except DaemonFault:
            return b""

    def _kill(self) -> None:
        """End TRex if it runs. Asked to end one that has failed, the daemon would only tell of the failure."""
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
