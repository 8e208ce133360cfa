"""What the processes of a run have in common where several testbeds measure side by side."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ctbench.results.record import PoolMember


@dataclass(frozen=True)
class PoolRun:
    """What a process of a pool has in common with the others, and what it is given for itself."""

    run_id: str
    #: Where the records of all go.
    output: Path
    member: PoolMember


def new_run_id() -> str:
    """A name for a run: when it began, and what tells it from another that began in the same second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
