"""The folder of a run: the run's name, the lock of the process that measures into it, and what a pool's processes
share."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel

from ctbench.base.errors import ConfigError
from ctbench.results.record import PoolMember

#: In the environment of a process of a pool: its `PoolRun`, as JSON.
POOL_VARIABLE = "CTBENCH_POOL"
#: Suite and test, by their full names.
TestKey = tuple[str, str]


class PoolRun(BaseModel):
    """The settings of one process of a pool: those that all share, and its own."""

    run_id: str
    #: Where the records of all go.
    output: Path
    member: PoolMember
    #: Tests that are given to others. What they measure is not known here.
    other_tests: int = 0


def new_run_id() -> str:
    """Return a name for a run: the time when it began, and a random part for runs that begin in the same second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


@contextmanager
def claimed(output: Path) -> Iterator[None]:
    """Lock the folder of a run for this process; the kernel unlocks it however this process ends. Raises `ConfigError`
    where another process measures into it."""
    try:
        descriptor = os.open(output, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror}.\n  Expected a folder that you may read and write.") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{output}: another ./run sla measures into it.\n  Expected its end first, or another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)
