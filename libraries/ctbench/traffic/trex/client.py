"""TRex' client: its folder (it is on no registry), its version, and the Python that can run it; and the process that
holds it (client_worker.py), which this module starts, calls and ends."""

import contextlib
import importlib.util
import json
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ctbench.base.errors import ConfigError, CtbenchError, GeneratorError, MissingResource, TestbedError
from ctbench.base.paths import users_own
from ctbench.base.text import brief
from ctbench.hosts.base import Host, Process
from ctbench.hosts.local import LocalHost
from ctbench.traffic.trex import client_worker

#: Folders of TRex that the client consists of, the first of which holds the package `trex`.
CLIENT, EXTERNAL = "automation/trex_control_plane/interactive", "external_libs"
#: A file that TRex' package has; other packages are called `trex` too.
MARK = "trex/astf/trex_astf_client.py"
#: The first Python without `cgi`, which the client's scapy imports; the first that clients up to v3.06 fail on.
PYTHON_WITHOUT_CGI, PYTHON_OF_NEW_CLIENTS, OLD_CLIENT = (3, 13), (3, 12), (3, 6)
#: Seconds that packing and fetching the client (25 MB) may take.
COPY_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class TrexClient:
    """A folder on this machine that holds the package `trex`."""

    folder: Path
    #: Where it was found, for the record.
    origin: str
    #: As TRex writes it, `v3.08`; empty when its folder does not say.
    version: str = ""


def find_client(
    trex_home: str = "", host: Host | None = None, *, environment: Mapping[str, str] = os.environ
) -> TrexClient:
    """Find the TRex client: in `trex_home` where that is on this machine, in TREX_HOME, among installed packages, or on
    `host` (the generator's), from where it is copied into the user's cache.

    Raise `ConfigError` where a folder that was named has none, `MissingResource` where there is none at all.
    """
    here = host is None or host.local_path("/") is not None
    for name, home in (("trex_home", trex_home if here else ""), ("TREX_HOME", environment.get("TREX_HOME", ""))):
        if home:
            try:
                there = (Path(home) / CLIENT / MARK).is_file()
            except OSError as error:  # no permission, or a name that is too long
                raise ConfigError(
                    f"{name}: {brief(str(error.filename), 300)} may not be read ({error.strerror}).\n"
                    "  Expected a folder of TRex that this user may read."
                ) from None
            if not there:
                raise ConfigError(
                    f"{name}: {brief(home, 300)} holds no TRex client.\n  Expected {CLIENT}/{MARK} in it."
                )
            return TrexClient(Path(home) / CLIENT, name, tree_version(LocalHost(), home))
    if installed := _installed():
        return TrexClient(installed, "installed", tree_version(LocalHost(), str(installed.parents[2])))
    if not here and host is not None and (home := trex_home or _home_of_running(host)):
        return _copied(host, home, users_own("XDG_CACHE_HOME", ".cache", environment) / "conntrack-sla" / "trex")
    raise MissingResource(
        "There is no TRex client: none in trex_home of the testbed file, in the environment variable TREX_HOME, among "
        "Python's packages (trex), or on the generator's host. Set one of the first two to the folder of t-rex-64."
    )


def check_python(client: TrexClient) -> None:
    """Raise `MissingResource` where this Python cannot run `client`."""
    version = sys.version_info[:2]
    shown = ".".join(map(str, version))
    if version >= PYTHON_WITHOUT_CGI and importlib.util.find_spec("cgi") is None:
        raise MissingResource(
            f"Python {shown} has no module cgi, which the TRex client needs: `pip install legacy-cgi`, or use "
            "Python 3.12 or older."
        )
    numbers = tuple(int(number) for number in re.findall(r"\d+", client.version)[:2])
    if version >= PYTHON_OF_NEW_CLIENTS and client.version and numbers <= OLD_CLIENT:
        raise MissingResource(
            f"The TRex client {client.version} does not work with Python {shown}: use Python 3.11 or older, or a newer "
            "client (TREX_HOME)."
        )


def tree_version(host: Host, home: str) -> str:
    """Return the version of TRex in folder `home` of `host`; empty where it is not known. A source tree has a file
    VERSION above `home`; of a release, only the program reports it."""
    with contextlib.suppress(TestbedError):
        if said := re.match(r"v\d+\.\d+\S*", host.read(f"{home}/../VERSION").strip()):
            return said[0]
    argv = ["sh", "-c", 'cd "$0" && ./_t-rex-64 --help', home]  # it finds its libraries from there only
    with contextlib.suppress(TestbedError):
        if said := re.search(r"^\s*Version\s*:\s*(\S+)", host.run(argv, check=False).stdout, re.MULTILINE):
            return said[1]
    return ""


def _installed() -> Path | None:
    """Return the folder of an importable `trex`. It is not imported, as it would put its old libraries first."""
    spec = importlib.util.find_spec("trex")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place).parent / MARK).is_file():
            return Path(place).parent
    return None


def _home_of_running(host: Host) -> str:
    """Return the working folder of the TRex that runs on `host`, which is its home; empty where none runs."""
    pid = host.run(["pgrep", "-o", "_t-rex-64"], check=False).stdout.strip()
    return host.run(["readlink", f"/proc/{pid}/cwd"], check=False).stdout.strip() if pid else ""


def _copied(host: Host, home: str, cache: Path) -> TrexClient:
    """Return the client of `home` on `host`; copy it into `cache` unless that version is there already."""
    version = tree_version(host, home)
    if not version:
        raise MissingResource(
            f"{host.name}: cannot tell which version of TRex {home} holds; is it the folder of t-rex-64?"
        )
    target = cache / version
    if not (target / CLIENT / MARK).is_file():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=cache) as new:
                _copy(host, home, Path(new))
                if not target.exists():  # another run may have been faster
                    Path(new, "tree").rename(target)
        except OSError as error:
            raise TestbedError(
                f"The TRex client cannot be kept in {cache}: {error.strerror or error}; "
                "set XDG_CACHE_HOME to a folder that can be written."
            ) from error
    return TrexClient(target / CLIENT, f"copied from {host.name}", version)


def _copy(host: Host, home: str, new: Path) -> None:
    """Copy the client's folders to `new`/tree."""
    remote = host.run(["mktemp", "/tmp/ctbench-trex-XXXXXXXX.tar.gz"]).stdout.strip()
    try:
        host.run(["tar", "-C", home, "-chzf", remote, CLIENT, EXTERNAL], COPY_TIMEOUT_S)
        host.get(remote, new / "client.tar.gz")
        (new / "tree").mkdir()
        LocalHost().run(["tar", "-C", str(new / "tree"), "-xzf", str(new / "client.tar.gz")], COPY_TIMEOUT_S)
    finally:
        with contextlib.suppress(CtbenchError):
            host.run(["rm", "-f", remote])


#: Seconds that the process gets to start, and to end.
WORKER_START_S = 20.0
WORKER_STOP_S = client_worker.FAREWELL_S + 2.0
#: Seconds between two looks at whether it has ended while it starts.
WORKER_POLL_S = 0.2


class TrexRefused(GeneratorError):
    """TRex or its client refused a command. `owners`: who holds the ports of a busy server."""

    def __init__(self, sentence: str, owners: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.owners = tuple(owners)


class TrexWorker:
    """TRex' client in a process of its own. Every failure is a `GeneratorError` of one sentence, in bounded time."""

    def __init__(self, host: Host, client: TrexClient, log: Path, prefix: Sequence[str] = ()) -> None:
        """`host`: this machine or a sandbox on it; `log`: the file of the worker's output; `prefix`: the command that
        starts the worker elsewhere, such as `ip netns exec NAME`."""
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
        """True while the worker can be called."""
        return self._socket is not None

    def start(self) -> None:
        """Start the process, unless it runs. It loads TRex' client on the command `connect`."""
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
            listening.settimeout(WORKER_POLL_S)
            try:
                self._process = self._host.start([*self._prefix, *script, "--socket", str(path)], log=self._log)
                self._socket = self._accept(listening)
                self._answers = self._socket.makefile("rb")
            except BaseException:
                self.close()
                raise

    def call(self, do: str, timeout: float, **arguments: Any) -> Any:
        """Return the worker's answer to the command `do`. Raise `TrexRefused` where TRex refuses it, and
        `GeneratorError` where the worker ended or did not answer in `timeout` seconds: it is closed then, and has to be
        started again."""
        if self._socket is None or self._answers is None:
            raise GeneratorError("TRex' client is not running.")
        request = {"do": do, **arguments}
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            reply = json.loads(self._answers.readline())
        except TimeoutError:
            self.close()
            raise GeneratorError(f"TRex' client did not answer to {do} within {timeout:g} s.") from None
        except (OSError, ValueError):
            said = self._complaint()
            self.close()
            raise GeneratorError(f"TRex' client ended in the middle of {do}{said}.") from None
        except BaseException:  # Ctrl-C: what is under way would be taken for the answer to the next question
            self.close()
            raise
        if "error" in reply:
            raise TrexRefused(reply["error"], reply["owners"])
        return reply["result"]

    def close(self) -> None:
        """End the process, which stops the traffic and releases TRex' ports, also where its answer was late; kill it
        after `WORKER_STOP_S` seconds. May be called twice."""
        if self._socket is not None and self._answers is not None:
            self._answers.close()
            self._socket.close()
            self._socket = self._answers = None
        if self._process is not None:
            deadline = time.monotonic() + WORKER_STOP_S
            while self._process.is_running() and time.monotonic() < deadline:
                time.sleep(0.01)
            self._process.stop(timeout=1.0)
            self._process = None

    def _accept(self, listening: socket.socket) -> socket.socket:
        deadline = time.monotonic() + WORKER_START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                return listening.accept()[0]
            if self._process is not None and not self._process.is_running():
                raise GeneratorError(f"TRex' client cannot be started with {sys.executable}{self._complaint()}.")
        raise GeneratorError(f"TRex' client did not start within {WORKER_START_S:g} s.")

    def _complaint(self) -> str:
        """Return the last line that the worker printed, as the end of a sentence; empty where it printed nothing."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1].strip().rstrip('.')}" if lines else ""


def _where_cgi_is() -> str:
    """Return the folder of the module cgi, which Python 3.13 no longer has and legacy-cgi brings; empty without it."""
    spec = importlib.util.find_spec("cgi")
    return str(Path(spec.origin).parent) if spec and spec.origin else ""
