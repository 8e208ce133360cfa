"""Testbeds of a pool are taken by one process each, and are free when it has ended, whatever ended it."""

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.testbed.share import Share, Shares

pytestmark = pytest.mark.unit

LIBRARIES = Path(__file__).parents[2] / "libraries"
#: Takes a testbed, says which, and keeps it until its standard input ends.
TAKER = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from ctbench.testbed.share import Shares
share = Shares(Path(sys.argv[2])).take()
print(share and share.name, flush=True)
sys.stdin.read()
"""
PAIR = [Share(f"local#{number}", "local", (number, number + 4), "run-1", "/results") for number in (1, 2)]


@pytest.fixture
def shares(tmp_path: Path) -> Shares:
    offered = Shares(tmp_path / "shares")
    offered.offer(PAIR)
    return offered


def taker(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-S", "-c", TAKER, str(LIBRARIES), str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_no_two_processes_have_one_testbed_and_a_killed_one_gives_its_own_back(shares: Shares, tmp_path: Path) -> None:
    processes = [taker(tmp_path / "shares") for _ in PAIR]
    try:
        assert sorted(said(process) for process in processes) == ["local#1", "local#2"]
        assert set(shares.holders()) == {process.pid for process in processes}

        processes.append(taker(tmp_path / "shares"))  # it waits
        freed = next(process for process in processes if process.pid == shares.holders()[1])
        freed.kill()

        assert said(processes[2]) == "local#2"
        assert set(shares.holders()) == {process.pid for process in processes if process is not freed}
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert shares.holders() == []


def test_a_share_is_what_was_offered(shares: Shares) -> None:
    assert shares.take() == PAIR[0]
    assert Share.from_json(PAIR[1].to_json()) == PAIR[1]


def test_nobody_gets_a_testbed_once_the_run_was_stopped_nor_waits_for_one(shares: Shares, tmp_path: Path) -> None:
    for name in ("local#1", "local#2"):
        share = shares.take()
        assert share and share.name == name
    waiting = taker(tmp_path / "shares")
    shares.stop()

    assert said(waiting) == "None"
    assert shares.take() is None
    waiting.communicate()


def test_a_run_whose_folder_is_gone_has_no_testbeds(tmp_path: Path) -> None:
    gone = Shares(tmp_path / "gone")
    assert gone.take() is None
    assert gone.holders() == []


def test_a_file_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_descriptor: int, _kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(ConfigError, match=r"cannot be locked \(No locks available\)\.\n  Expected .* --outputdir\."):
        Shares(tmp_path / "shares").offer(PAIR)
