"""The TRex client: where it is found, and the process that holds it: what happens when there is no client, no server,
or no process any more. TRex itself is not needed: a folder without it, or with one that hangs, is all that these ask
for."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest

from ctbench.base.errors import ConfigError, CtbenchError, GeneratorError, MissingResource, TestbedError
from ctbench.dut.base import wait_until
from ctbench.hosts.local import LocalHost
from ctbench.traffic.trex import client as found_client
from ctbench.traffic.trex import client_worker
from ctbench.traffic.trex.client import (
    CLIENT,
    EXTERNAL,
    MARK,
    TrexClient,
    TrexRefused,
    TrexWorker,
    check_python,
    find_client,
)

#: Seconds within which processes come and go; it only matters when a test fails.
PATIENCE_S = 20.0
CONNECT = {"mode": "astf", "server": "127.0.0.1", "sync_port": 1, "async_port": 2, "ports": [0, 1], "user": "test"}
#: A client of TRex that finds no server.
NOTHING_THERE = """
class ASTFClient:
    def __init__(self, **_):
        pass
    def probe_server(self):
        raise RuntimeError("Connection refused")
"""
#: One whose server runs in the other mode.
OTHER_MODE = NOTHING_THERE.replace('raise RuntimeError("Connection refused")', 'return {"mode": "STL"}')
#: One that is newer than its server.
TOO_NEW = f"""{OTHER_MODE.replace("STL", "ASTF")}
    def connect(self):
        raise RuntimeError("*** [RPC] - Version mismatch: your client version is too new")
"""
#: And one whose server's ports somebody holds.
HELD = f"""{OTHER_MODE.replace("STL", "ASTF")}
    @property
    def ports(self):
        return {{0: self, 1: self}}
    def connect(self):
        pass
    def get_all_ports(self):
        return [0, 1]
    def acquire(self, force):
        raise RuntimeError("it is owned")
    def get_owner(self):
        return "somebody"
    def disconnect(self, stop_traffic):
        pass
"""
#: One that takes a second for its answer, and says in the file `said` of its folder what it is told in the end.
LATE = f"""{HELD}
    def acquire(self, force):
        pass
    def reset(self):
        pass
    def is_connected(self):
        return True
    def get_global_cfg(self):
        return {{"sched_max_stretch": 0.5}}
    def set_global_cfg(self, settings):
        print(settings["sched_max_stretch"], file=said)
    def get_server_system_info(self):
        return {{"ports": [{{"index": 0}}, {{"index": 1}}]}}
    def get_formatted_info(self, sync):
        return {{}}
    def stop(self, pid_input):
        time.sleep(1)
    def disconnect(self, stop_traffic, release_ports):
        print("released" * release_ports, file=said)
import pathlib, time
said = pathlib.Path(__file__).parents[2].joinpath("said").open("w", buffering=1)
"""


def workers_of(folder: Path) -> list[int]:
    """Processes that were given this client folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if bytes(folder) in argv and b"--socket" in argv:
            found.append(int(entry.name))
    return found


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[TrexWorker]:
    """A worker with a folder in which there is no client."""
    worker = TrexWorker(LocalHost(), TrexClient(tmp_path, "tests"), tmp_path / "log")
    worker.start()
    yield worker
    worker.close()


def client_that(tmp_path: Path, does: str) -> None:
    """Put a module where the client would be that does this when it is loaded."""
    package = tmp_path / "trex" / "astf"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "api.py").write_text(does)


def test_who_is_not_connected_and_a_folder_without_the_client_are_told_so(worker: TrexWorker, tmp_path: Path) -> None:
    with pytest.raises(TrexRefused, match=str(tmp_path)):
        worker.call("connect", PATIENCE_S, **CONNECT)
    assert worker.call("disconnect", PATIENCE_S) is None
    with pytest.raises(TrexRefused, match="not connected"):
        worker.call("stats", PATIENCE_S)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("raise RuntimeError('external_libs\\n are missing')", r"cannot be loaded: external_libs are missing\.$"),
        ("print('{\"id\": 1}')\nraise RuntimeError('no')", "no"),  # what it prints does not get into the answers
        ("import pydantic", "there is no module pydantic"),  # it does not see our libraries
        (NOTHING_THERE, r"at 127\.0\.0\.1:1 \(Connection refused\): start it there with `./t-rex-64 -i --astf`"),
        (OTHER_MODE, "runs in STL mode, and ASTF is needed: start it again with `./t-rex-64 -i --astf`"),
        (TOO_NEW, r"does not suit the server at 127\.0\.0\.1:1: Version mismatch: your client version is too new\.$"),
        (HELD, "are held by somebody: end that first"),
    ],
)
def test_a_client_without_library_or_server_or_that_is_refused_says_why(
    worker: TrexWorker, tmp_path: Path, does: str, said: str
) -> None:
    client_that(tmp_path, does)
    with pytest.raises(TrexRefused, match=said) as error:
        worker.call("connect", PATIENCE_S, **CONNECT)
    assert error.value.owners == (("somebody",) if does == HELD else ())


@pytest.mark.parametrize(("timeout", "ended"), [(0.1, GeneratorError), (PATIENCE_S, KeyboardInterrupt)])
def test_a_client_that_answers_late_or_after_ctrl_c_still_sets_back_and_releases(
    worker: TrexWorker, tmp_path: Path, timeout: float, ended: type[BaseException]
) -> None:
    client_that(tmp_path, LATE)
    worker.call("connect", PATIENCE_S, **CONNECT)
    pressed = threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    if ended is KeyboardInterrupt:
        pressed.start()
    with pytest.raises(ended):
        worker.call("stop", timeout)
    assert not worker.is_running and not workers_of(tmp_path)
    assert (tmp_path / "said").read_text().split() == ["0.002", "0.5", "released"]


def test_a_client_that_hangs_ends_with_its_time(
    worker: TrexWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_client, "WORKER_STOP_S", 0.1)
    client_that(tmp_path, "import time; time.sleep(3600)")
    with pytest.raises(GeneratorError, match=r"did not answer to connect within 0\.5 s"):
        worker.call("connect", 0.5, **CONNECT)
    assert not worker.is_running
    assert wait_until(lambda: not workers_of(tmp_path), PATIENCE_S), "it is still there"
    worker.start()
    assert worker.call("disconnect", PATIENCE_S) is None


def test_a_client_that_ends_the_process_is_an_error_with_its_last_words(worker: TrexWorker, tmp_path: Path) -> None:
    client_that(tmp_path, "import os, sys; print('thread has crashed', file=sys.stderr, flush=True); os._exit(3)")
    with pytest.raises(GeneratorError, match="ended in the middle of connect: thread has crashed"):
        worker.call("connect", PATIENCE_S, **CONNECT)
    assert not worker.is_running
    with pytest.raises(GeneratorError, match="is not running"):
        worker.call("disconnect", PATIENCE_S)
    worker.start()
    assert worker.call("disconnect", PATIENCE_S) is None


@pytest.mark.parametrize(
    ("prefix", "python", "said"),
    [
        (["sh", "-c", "echo no such namespace >&2; exit 1"], sys.executable, "no such namespace"),
        ([], "/nowhere/python", ""),
    ],
)
def test_a_client_that_cannot_be_started_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: list[str], python: str, said: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(CtbenchError, match=f"{python}.*{said}"):
        TrexWorker(LocalHost(), TrexClient(tmp_path, "tests"), tmp_path / "log", prefix).start()


def test_close_leaves_nothing_and_may_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the folder for temporary files may be too long for a socket."""
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    worker = TrexWorker(LocalHost(), TrexClient(tmp_path, "tests"), tmp_path / "log")
    worker.start()
    assert workers_of(tmp_path) and list(long.iterdir()) == []
    worker.close()
    worker.close()
    assert not workers_of(tmp_path)


def test_it_ends_with_a_parent_that_was_killed_even_while_it_hangs(tmp_path: Path) -> None:
    client_that(tmp_path, "import time; time.sleep(3600)")
    script = (
        "from pathlib import Path; from ctbench.hosts.local import LocalHost\n"
        "from ctbench.traffic.trex.client import TrexClient, TrexWorker\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "worker = TrexWorker(LocalHost(), TrexClient(folder, 'tests'), folder / 'log')\n"
        "worker.start(); print('up', flush=True)\n"
        f"worker.call('connect', 3600, **{CONNECT!r})"
    )
    libraries = str(Path(__file__).parents[2] / "libraries")
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": libraries}, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout.readline() == b"up\n"
        assert workers_of(tmp_path)
        parent.kill()
    assert wait_until(lambda: not workers_of(tmp_path), PATIENCE_S), "it has outlived its parent"


class OtherMachine(LocalHost):
    """This machine, behaving as if it were across the network."""

    @property
    def name(self) -> str:
        return "trex.lab"

    def local_path(self, remote: str) -> None:
        return None


def make_home(parent: Path, version: str) -> Path:
    """Folders as TRex has them; importing the package would fail."""
    home = parent / "scripts"
    (home / CLIENT / MARK).parent.mkdir(parents=True)
    (home / CLIENT / MARK).touch()
    (home / CLIENT / "trex/__init__.py").write_text("raise ImportError('must not be imported')\n")
    (home / EXTERNAL).mkdir()
    (home / EXTERNAL / "some.py").touch()
    (parent / "VERSION").write_text(f"{version}\n\n\n")
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "tree", "v3.08")


@pytest.mark.parametrize(
    ("host", "expected"),
    [(LocalHost(), ("tree", "trex_home", "v3.08")), (OtherMachine(), ("other", "TREX_HOME", "v3.06"))],
)
def test_the_testbed_file_comes_first_where_it_speaks_of_this_machine(
    home: Path, tmp_path: Path, host: LocalHost, expected: tuple[str, str, str]
) -> None:
    other = make_home(tmp_path / "other", "v3.06")

    client = find_client(str(home), host, environment={"TREX_HOME": str(other)})

    tree, *found = expected
    assert (client.folder, client.origin, client.version) == (tmp_path / tree / "scripts" / CLIENT, *found)


def test_an_installed_client_is_found_and_not_imported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(home / CLIENT))

    client = find_client(environment={})

    assert (client.folder, client.origin) == (home / CLIENT, "installed")
    assert "trex" not in sys.modules


def test_where_there_is_none_the_four_places_are_named_and_another_package_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trex").mkdir()
    (tmp_path / "trex/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(MissingResource, match=r"trex_home .* TREX_HOME, .* packages \(trex\), .* the generator's host"):
        find_client("", LocalHost(), environment={})


@pytest.mark.parametrize("name", ["trex_home", "TREX_HOME"])
def test_a_named_folder_without_a_client_is_an_error(tmp_path: Path, name: str) -> None:
    home, environment = (str(tmp_path), {}) if name == "trex_home" else ("", {name: str(tmp_path)})
    with pytest.raises(ConfigError, match=f"{name}: {tmp_path} holds no TRex client"):
        find_client(home, LocalHost(), environment=environment)


def test_it_is_copied_from_its_host_once_a_version(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    host = OtherMachine()

    client = find_client(str(home), host, environment=cache)
    (home / CLIENT / MARK).unlink()
    again = find_client(str(home), host, environment=cache)

    assert client.folder == tmp_path / "cache/conntrack-sla/trex/v3.08" / CLIENT
    assert (client.origin, client.version) == ("copied from trex.lab", "v3.08")
    assert (client.folder.parents[2] / EXTERNAL / "some.py").exists()
    assert again == client
    assert [path.name for path in (tmp_path / "cache/conntrack-sla/trex").iterdir()] == ["v3.08"]


def test_a_copy_that_breaks_off_is_not_the_client(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks_off(remote: str, local: Path) -> None:
        local.write_bytes(Path(remote).read_bytes()[:100])

    host = OtherMachine()
    monkeypatch.setattr(host, "get", breaks_off)

    with pytest.raises(TestbedError, match=r"client\.tar\.gz` failed"):
        find_client(str(home), host, environment={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert list((tmp_path / "cache/conntrack-sla/trex").iterdir()) == []


@pytest.mark.parametrize(
    ("python", "has_cgi", "client", "said"),
    [
        ((3, 11), True, "v3.06", ""),
        ((3, 12), True, "v3.08", ""),
        ((3, 12), True, "v3.06", "TRex client v3.06 does not work with Python 3.12: use Python 3.11 or older"),
        ((3, 13), False, "v3.08", "Python 3.13 has no module cgi, .*: `pip install legacy-cgi`"),
        ((3, 13), True, "v3.08", ""),
    ],
)
def test_a_python_that_cannot_run_the_client_is_named(
    monkeypatch: pytest.MonkeyPatch, python: tuple[int, int], has_cgi: bool, client: str, said: str
) -> None:
    monkeypatch.setattr(found_client.sys, "version_info", (*python, 0))
    monkeypatch.setattr(found_client.importlib.util, "find_spec", lambda name: object() if has_cgi else None)

    with pytest.raises(MissingResource, match=said) if said else nullcontext():
        check_python(TrexClient(Path("/opt/trex"), "TREX_HOME", client))


@pytest.mark.parametrize("knows", [True, False])
def test_messages_are_timed_by_clients_that_know_add_ons_and_end_with_the_session(
    monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    """Older ones are asked for nothing. TRex' own disconnect() stops the profile without a name alone."""
    client, session = Mock(), client_worker.Session("nowhere", "")
    session.client = client
    program = (lambda stream=True, addon=None: None) if knows else (lambda stream=True: None)
    session.api["astf"] = SimpleNamespace(ASTFProgram=program)  # type: ignore[assignment]
    monkeypatch.setattr(client_worker, "_profile", lambda _api, spec: spec)
    client_worker.astf_timed(session, {"templates": []}, 7.0)
    session.disconnect()
    assert client.start.called is knows
    assert (call(pid_input="*") in client.stop.mock_calls) is knows
