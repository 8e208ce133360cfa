"""Which process of a run has which testbed of its pool: the one that has locked the testbed's file.

The kernel lets go of a lock when the process that holds it has ended, whatever ended it.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ctbench.base.errors import ConfigError

#: In the environment of a process that has a testbed of a pool: its share, as JSON.
SHARE_VARIABLE = "CTBENCH_POOL_SHARE"
#: What a process says, in the folder of its suite's results. It is there as soon as the process has a testbed.
CONSOLE_FILE = "console.txt"
#: In the folder of the shares once the run was told to end.
_STOPPED = "stopped"
#: Seconds between two attempts to take a testbed.
_POLL_S = 0.05


@dataclass(frozen=True)
class Share:
    """A testbed of a pool, one process' own until it ends."""

    #: `lab-a`; `local#1` and `local#2` where a testbed is in the pool more than once.
    name: str
    #: As the user named it: a name below variables/testbeds/, or a path.
    testbed: str
    #: CPUs of this machine that it has for itself; empty where it uses none of them.
    cpus: tuple[int, ...]
    run_id: str
    #: Where the records of all processes go.
    output: str

    def to_json(self) -> str:
        """For `from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Share":
        """What `to_json` wrote."""
        values = json.loads(text)
        return cls(**values | {"cpus": tuple(values["cpus"])})


class Shares:
    """The shares of a pool, in a folder of the run. One process offers them, others take one each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def offer(self, shares: Sequence[Share]) -> None:
        """Put the shares into the folder, which is made here. `ConfigError` where files cannot be locked there."""
        self._folder.mkdir()
        for number, share in enumerate(shares):
            try:
                with self._lock_file(number).open("w", encoding="ascii") as lock:
                    _locked(lock.fileno(), fcntl.LOCK_EX)
            except OSError as error:
                raise ConfigError(
                    f"--testbeds: files in {self._folder} cannot be locked ({error.strerror}).\n  Expected results "
                    "on a file system with locks: choose another folder with --outputdir."
                ) from None
            (self._folder / f"{number}.json").write_text(share.to_json(), encoding="utf-8")

    def take(self) -> Share | None:
        """Wait for a testbed that is free, and keep it until this process has ended. None once the run was told to end.

        Children that this process forks without starting another program keep it as well.
        """
        while not self._stopped():
            for number, path in self._files():
                lock = os.open(self._lock_file(number), os.O_RDWR)
                if not _locked(lock, fcntl.LOCK_EX):
                    os.close(lock)
                    continue
                os.ftruncate(lock, 0)
                os.write(lock, str(os.getpid()).encode())
                # Looked at once more: the process that stops the run knows of us, or we know of the stop.
                return None if self._stopped() else Share.from_json(path.read_text(encoding="utf-8"))
            time.sleep(_POLL_S)
        return None

    def stop(self) -> None:
        """No process gets a testbed from now on."""
        (self._folder / _STOPPED).touch()

    def holders(self) -> list[int]:
        """The process IDs of those that have a testbed now."""
        found = []
        for number, _ in self._files():
            with self._lock_file(number).open(encoding="ascii") as lock:
                if not _locked(lock.fileno(), fcntl.LOCK_SH) and (text := lock.read()):
                    found.append(int(text))
        return found

    def _stopped(self) -> bool:
        # Without its folder the run is over.
        return (self._folder / _STOPPED).exists() or not self._folder.exists()

    def _files(self) -> Iterator[tuple[int, Path]]:
        """In the order in which they were offered."""
        for path in sorted(self._folder.glob("*.json"), key=lambda path: int(path.stem)):
            yield int(path.stem), path

    def _lock_file(self, number: int) -> Path:
        return self._folder / f"{number}.lock"


def _locked(descriptor: int, kind: int) -> bool:
    """Whether the file was free, and is locked now."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
