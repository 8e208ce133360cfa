"""What a run was asked for, kept in its folder from its beginning, so that it can go on when it was stopped.

It holds what was on the command line, and what the testbed, the campaign and the SLA said: figures of one run are
measured in one way.
"""

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ctbench import __version__
from ctbench.base.errors import ConfigError
from ctbench.base.units import quoted

#: In the output folder of a run, next to `records/`.
ASKED_FOR_FILE = "asked-for.json"


class AskedFor(BaseModel):
    """What a run was asked for. Nothing secret is in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    tool_version: str = __version__
    run_id: str
    begun: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    #: The current folder: options may name files relative to it.
    folder: str
    #: Robot Framework's options by their long names, without the output folder and without secret variables.
    options: dict[str, bool | str | list[str]]
    #: Absolute paths; empty: all suites.
    suites: list[str]
    #: Of a pool: the names of its testbeds.
    testbeds: list[str]
    #: What has to be the same when the run goes on, by what it is (`The campaign`).
    inputs: dict[str, Any]
    #: Names of the records that lay in the folder before: they are of another run.
    earlier: list[str]

    def write(self, output: Path) -> None:
        """Write it into the folder of a run, whole or not at all. `ConfigError` where that cannot be written."""
        part = output / f".{ASKED_FOR_FILE}.part"
        try:
            with part.open("w", encoding="utf-8") as file:
                file.write(self.model_dump_json(indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            part.replace(output / ASKED_FOR_FILE)
        except OSError as error:
            raise ConfigError(
                f"The results cannot be written to {output} ({error.strerror}): choose a folder with --outputdir."
            ) from None


def read(output: Path) -> AskedFor:
    """What the run of a folder was asked for; `ConfigError` where the folder does not say it."""
    path = output / ASKED_FOR_FILE
    expected = "Expected the folder of a run that ./run sla began, such as results/latest."
    try:
        return AskedFor.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"--resume {output}: has no {ASKED_FOR_FILE}, which says what was asked for.\n  {expected}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--resume: {path}: cannot be read ({error}).\n  {expected}") from None
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"--resume: {path}: {where}: {first['msg']}.\n  {expected}") from None


def find(results: Path, name: str) -> Path:
    """The folder of the run that `--resume` names: one of `results`, `latest` among them, or a path."""
    # pathlib raises where there is no such user, and where a name is too long.
    places = [str(results / name), os.path.expanduser(name)] if name else []  # noqa: PTH111
    found = [place for place in places if os.path.isdir(place)]  # noqa: PTH112
    if not found:
        known = sorted(path.parent.name for path in results.glob(f"*/{ASKED_FOR_FILE}") if not path.parent.is_symlink())
        newest = f" The newest one is {known[-1]}." if known else ""
        raise ConfigError(
            f"--resume {quoted(name)}: no such run.\n  Expected latest, a folder of {results}, or the path of one."
            f"{newest}"
        )
    return Path(found[0]).resolve()


def stop_sentence(output: Path, here: Path) -> str:
    """How the run of a folder goes on, for a user who is `here`; empty where it cannot."""
    if not (output / ASKED_FOR_FILE).is_file():
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
