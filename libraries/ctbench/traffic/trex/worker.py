"""The process that holds TRex' client (client_worker.py): started, asked, and ended from here."""

import contextlib
import importlib.util
import json
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from ctbench.base.errors import GeneratorError
from ctbench.hosts.base import Host, Process
from ctbench.traffic.trex import client_worker
from ctbench.traffic.trex.locate import TrexClient

#: Seconds that the process gets to start, and to end.
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = client_worker.FAREWELL_S + 2.0
#: Seconds between two looks at whether it has ended while it starts.
POLL_S = 0.2


class TrexRefused(GeneratorError):
    """TRex or its client said no, in one sentence. `owners`: who holds the ports of a busy server."""

    def __init__(self, sentence: str, owners: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.owners = tuple(owners)


class TrexWorker:
    """TRex' client at arm's length. Every failure is a `GeneratorError` of one sentence, in bounded time."""

    def __init__(self, host: Host, client: TrexClient, log: Path, prefix: Sequence[str] = ()) -> None:
        """`host`: this machine or a sandbox on it; `log`: where its complaints are kept; `prefix`: what carries it
        elsewhere, such as `ip netns exec NAME`."""
        self._host = host
        self.client = client
        self._prefix = tuple(prefix)
        self._log = log
        self._process: Process | None = None
        self._socket: socket.socket | None = None
        #: What it answers.
        self._answers: IO[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return self._socket is not None

    def start(self) -> None:
        """Start the process, unless it runs. It loads TRex' client when it is asked to connect."""
        if self._socket is not None:
            return
        script = [sys.executable, "-I", "-S", client_worker.__file__]
        script += ["--client", str(self.client.folder), "--also", _where_cgi_is()]
        # The folder goes as soon as both ends hold what is in it: nothing is left however this process ends. In /tmp,
        # because the address of a socket has room for 107 bytes.
        with (
            tempfile.TemporaryDirectory(prefix="ctbench-trex-", dir="/tmp") as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening,
        ):
            path = Path(folder, "socket")
            listening.bind(str(path))
            listening.listen(1)
            listening.settimeout(POLL_S)
            try:
                self._process = self._host.start([*self._prefix, *script, "--socket", str(path)], log=self._log)
                self._socket = self._accept(listening)
                self._answers = self._socket.makefile("rb")
            except BaseException:
                self.close()
                raise

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        """What the worker answers to the command. `TrexRefused` when it says no; after any other `GeneratorError`,
        or when it did not answer in `timeout` seconds, the worker has ended: `start` it again."""
        if self._socket is None or self._answers is None:
            raise GeneratorError("TRex' client is not running.")
        request = {"do": do, **arguments}
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            reply = json.loads(self._answers.readline())
        except TimeoutError:
            self.close(0.0)
            raise GeneratorError(f"TRex' client did not answer to {do} within {timeout:g} s.") from None
        except (OSError, ValueError):
            said = self._complaint()
            self.close(0.0)
            raise GeneratorError(f"TRex' client ended in the middle of {do}{said}.") from None
        except BaseException:  # Ctrl-C: what is under way would be taken for the answer to the next question
            self.close(0.0)
            raise
        if "error" in reply:
            raise TrexRefused(reply["error"], reply["owners"])
        return reply["result"]

    def close(self, patience_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the traffic, let go of TRex' ports, end: within `patience_s` seconds, else it is killed. May be called
        twice."""
        if self._socket is not None and self._answers is not None:
            self._answers.close()
            self._socket.close()
            self._socket = self._answers = None
        if self._process is not None:
            deadline = time.monotonic() + patience_s
            while self._process.is_running() and time.monotonic() < deadline:
                time.sleep(0.01)
            self._process.stop(timeout=1.0)
            self._process = None

    def _accept(self, listening: socket.socket) -> socket.socket:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                return listening.accept()[0]
            if self._process is not None and not self._process.is_running():
                raise GeneratorError(f"TRex' client cannot be started with {sys.executable}{self._complaint()}.")
        raise GeneratorError(f"TRex' client did not start within {START_TIMEOUT_S:g} s.")

    def _complaint(self) -> str:
        """The last line of what it printed, as the end of a sentence; empty when it printed nothing."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1].strip().rstrip('.')}" if lines else ""


def _where_cgi_is() -> str:
    """Folder of the module cgi, which Python 3.13 no longer has and legacy-cgi brings; empty when there is none."""
    spec = importlib.util.find_spec("cgi")
    return str(Path(spec.origin).parent) if spec and spec.origin else ""
