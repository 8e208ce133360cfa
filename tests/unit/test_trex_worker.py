"""The process that holds TRex' client: what happens when there is no client, no server, or no process any more.

TRex itself is not needed: a folder without it, or with one that hangs, is all that these ask for.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import CtbenchError, GeneratorError
from ctbench.hosts.local import LocalHost
from ctbench.traffic.trex.worker import TrexRefused, TrexWorker

#: Seconds within which processes come and go; it only matters when a test fails.
PATIENCE_S = 20.0
CONNECT = {"mode": "astf", "server": "127.0.0.1", "sync_port": 1, "async_port": 2, "ports": [0, 1], "user": "test"}
#: A client of TRex that finds no server.
NOBODY_THERE = """
class ASTFClient:
    def __init__(self, **_):
        pass
    def probe_server(self):
        raise RuntimeError("Connection refused")
"""


def until(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


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
    worker = TrexWorker(LocalHost(), str(tmp_path), tmp_path / "log")
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


def test_a_folder_without_the_client_is_named(worker: TrexWorker, tmp_path: Path) -> None:
    with pytest.raises(TrexRefused, match=str(tmp_path)):
        worker.call("connect", PATIENCE_S, **CONNECT)
    assert worker.call("disconnect", PATIENCE_S) is None


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("raise RuntimeError('external_libs\\n are missing')", r"cannot be loaded: external_libs are missing\.$"),
        ("print('{\"id\": 1}')\nraise RuntimeError('no')", "no"),  # what it prints does not get into the answers
        ("import pydantic", "there is no module pydantic"),  # it does not see our libraries
        (NOBODY_THERE, r"at 127\.0\.0\.1:1 \(Connection refused\)\.$"),
    ],
)
def test_a_client_that_cannot_be_loaded_or_finds_no_server_says_why(
    worker: TrexWorker, tmp_path: Path, does: str, said: str
) -> None:
    client_that(tmp_path, does)
    with pytest.raises(TrexRefused, match=said):
        worker.call("connect", PATIENCE_S, **CONNECT)


def test_who_is_not_connected_is_told_so(worker: TrexWorker) -> None:
    with pytest.raises(TrexRefused, match="not connected"):
        worker.call("stats", PATIENCE_S)


def test_a_client_that_hangs_ends_with_its_time(worker: TrexWorker, tmp_path: Path) -> None:
    client_that(tmp_path, "import time; time.sleep(3600)")
    with pytest.raises(GeneratorError, match=r"did not answer to connect within 0\.5 s"):
        worker.call("connect", 0.5, **CONNECT)
    assert not worker.is_running
    until(lambda: not workers_of(tmp_path), "it is still there")
    worker.start()
    assert worker.call("disconnect", PATIENCE_S) is None


def test_a_client_that_ends_the_process_is_an_error_with_its_last_words(worker: TrexWorker, tmp_path: Path) -> None:
    client_that(tmp_path, "import os, sys; print('thread has crashed', file=sys.stderr, flush=True); os._exit(3)")
    with pytest.raises(GeneratorError, match="ended in the middle of connect: thread has crashed"):
        worker.call("connect", PATIENCE_S, **CONNECT)
    assert not worker.is_running


def test_a_worker_that_was_killed_is_an_error_and_can_be_started_again(worker: TrexWorker, tmp_path: Path) -> None:
    for pid in workers_of(tmp_path):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(GeneratorError, match="ended in the middle of disconnect"):
        worker.call("disconnect", PATIENCE_S)
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
        TrexWorker(LocalHost(), str(tmp_path), tmp_path / "log", prefix).start()


def test_close_leaves_nothing_and_may_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the folder for temporary files may be too long for a socket."""
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    worker = TrexWorker(LocalHost(), str(tmp_path), tmp_path / "log")
    worker.start()
    assert workers_of(tmp_path) and list(long.iterdir()) == []
    worker.close()
    worker.close()
    assert not workers_of(tmp_path)


def test_it_ends_with_a_parent_that_was_killed_even_while_it_hangs(tmp_path: Path) -> None:
    client_that(tmp_path, "import time; time.sleep(3600)")
    script = (
        "from pathlib import Path; from ctbench.hosts.local import LocalHost\n"
        "from ctbench.traffic.trex.worker import TrexWorker\n"
        f"worker = TrexWorker(LocalHost(), {str(tmp_path)!r}, Path({str(tmp_path / 'log')!r}))\n"
        "worker.start(); print('up', flush=True)\n"
        f"worker.call('connect', 3600, **{CONNECT!r})"
    )
    libraries = str(Path(__file__).parents[2] / "libraries")
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": libraries}, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"up\n"
        assert workers_of(tmp_path)
        parent.kill()
    until(lambda: not workers_of(tmp_path), "it has outlived its parent")
