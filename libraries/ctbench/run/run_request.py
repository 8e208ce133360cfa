"""What a run was asked for, kept in its folder from its beginning, so that it can go on when it was stopped."""

import fcntl
import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from ctbench.base.errors import ConfigError
from ctbench.base.files import write_whole
from ctbench.base.units import quoted
from ctbench.results.record import PoolMember
from ctbench.results.record_model import RecordModel, first_mistake

#: In the output folder of a run, next to `records/`.
REQUEST_FILE = "asked-for.json"
_EXPECTED = "Expected the folder of a run that ./run sla began, such as results/latest."
#: In the environment of a process of a pool: its `PoolRun`, as JSON.
POOL_VARIABLE = "CTBENCH_POOL"
#: Suite and test, by their full names.
TestKey = tuple[str, str]


class PoolRun(BaseModel):
    """What a process of a pool has in common with the others, and what it is given for itself."""

    run_id: str
    #: Where the records of all go.
    output: Path
    member: PoolMember
    #: Tests that are given to others. What they measure is not known here.
    other_tests: int = 0


def new_run_id() -> str:
    """A name for a run: when it began, and what tells it from another that began in the same second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


class RunRequest(RecordModel):
    """What a run was asked for. Nothing secret is in it."""

    schema_version: Literal[4] = 4
    run_id: str
    #: The current folder: options may name files relative to it.
    folder: str
    #: Options as a command line has them, without the output folder and without secret variables.
    options: list[str]
    #: Absolute paths; empty: all suites.
    suites: list[str]

    def write(self, output: Path) -> None:
        """Write it into the folder of a run, whole or not at all."""
        write_whole(output / REQUEST_FILE, self.model_dump_json(indent=1) + "\n")

    @classmethod
    def read(cls, output: Path) -> "RunRequest":
        """What the run of a folder was asked for; `ConfigError` where the folder does not say it."""
        path = output / REQUEST_FILE
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except ValidationError as errors:
            why = first_mistake(errors)
        except FileNotFoundError:
            why = "does not exist"
        except (OSError, UnicodeDecodeError) as error:
            why = f"cannot be read ({error})"
        raise ConfigError(f"--resume: {path}: {why}.\n  {_EXPECTED}")


def find(results: Path, name: str) -> Path:
    """The folder of the run that `--resume` names: one of `results`, `latest` among them, or a path."""
    # pathlib raises where there is no such user, and where a name is too long.
    places = [str(results / name), os.path.expanduser(name)] if name else []  # noqa: PTH111
    if name == "latest":  # and not the link alone: it leads to the newest run that has a result
        begun = sorted(results.glob(f"*/{REQUEST_FILE}"), key=lambda path: path.stat().st_mtime_ns)
        places[:0] = [str(path.parent) for path in begun[-1:]]
    found = [place for place in places if os.path.isdir(place)]  # noqa: PTH112
    if not found:
        known = sorted(path.parent.name for path in results.glob(f"*/{REQUEST_FILE}") if not path.parent.is_symlink())
        newest = f" The newest one is {known[-1]}." if known else ""
        raise ConfigError(
            f"--resume {quoted(name)}: no such run.\n  Expected latest, a folder of {results}, or the path of one."
            f"{newest}"
        )
    return Path(found[0]).resolve()


def stop_sentence(output: Path, here: Path) -> str:
    """How the run of a folder goes on, for a user who is `here`; empty where it cannot."""
    if not (output / REQUEST_FILE).is_file():
        return ""
    shown = output.relative_to(here) if output.is_relative_to(here) and output != here else output
    return f"To go on: ./run sla --resume {shlex.quote(str(shown))}"


@contextmanager
def claimed(output: Path) -> Iterator[None]:
    """Keep the folder of a run for this process; the kernel gives it back however this process ends. `ConfigError`
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
