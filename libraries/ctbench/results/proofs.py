"""How often the gate found faults that were planted on purpose, by `./run prove`: a record of its own, of which the
last one of a machine is kept where the page of every gate finds it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ctbench.base.errors import ConfigError
from ctbench.base.files import UnreadableFile, read_regular, write_whole
from ctbench.base.paths import cache_folder
from ctbench.base.quantities import MOST_RECORD_BYTES, Amount, Count, Real
from ctbench.results.environment import MachineFacts
from ctbench.results.record_model import RecordModel, Utc

FILE = "proof.json"
#: What a gate ends with that found something: an SLA is missed.
_FOUND = 1


class Try(RecordModel):
    """One gate, of a candidate with the fault against the same build without it."""

    #: Of its run, relative to that of the proof.
    folder: str
    #: What it ended with, and how long its tests took by the wall clock, seconds.
    status: Count
    seconds: Amount
    #: The verdict of each row.
    said: list[str]
    #: Of the row that lost most, the candidate against the base, percent, with its interval; None where no ratio came
    #: of it.
    difference_pct: Real | None
    low_pct: Real | None
    high_pct: Real | None
    #: What the fault did, by its own count: `sleeps`, `connections`, `lost`.
    did: dict[str, Count]
    #: Whether that was anything. A gate that had nothing to find proves nothing.
    took_effect: bool


class Planted(RecordModel):
    """A fault, and what came of each try."""

    #: As `--faults` names it, and in words.
    fault: str
    title: str
    tries: list[Try]

    @property
    def counted(self) -> list[Try]:
        """Those in which there was something to find."""
        return [each for each in self.tries if each.took_effect]

    @property
    def found(self) -> int:
        """How many gates were red."""
        return sum(each.status == _FOUND for each in self.counted)

    @property
    def sentence(self) -> str:
        """`10 % slower 3 of 3`."""
        return f"{self.title} {self.found} of {len(self.counted)}"


class Proof(RecordModel):
    """What `./run prove` found out."""

    schema_version: Literal[1] = 1
    tool_version: str
    made: Utc
    machine: MachineFacts
    #: What the faults were planted in: `Open vSwitch 3.1.0`.
    product: str
    #: Topology and profile of each row of the gates.
    rows: Annotated[list[str], Field(min_length=1)]
    planted: list[Planted]

    def is_of(self, machine: MachineFacts) -> bool:
        """Whether it was made on such a machine: its CPUs' model and number are what a gate depends on most."""
        ours, theirs = ((each.cpu_model, len(each.usable_cpus)) for each in (self.machine, machine))
        return ours == theirs

    def write(self, output: Path) -> None:
        """Write it to the folder of the proof, and keep it for the pages of later gates."""
        text = self.model_dump_json(indent=1) + "\n"
        for folder in (output, cache_folder("proofs")):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(folder / FILE, text)
            except OSError as error:
                raise ConfigError(f"{folder}: cannot be written ({error.strerror}).\n  Expected --outputdir.") from None


def read(folder: Path) -> Proof | None:
    """The proof of a folder; None where there is none that this version reads."""
    try:
        return Proof.model_validate_json(read_regular(folder / FILE, MOST_RECORD_BYTES))
    except (FileNotFoundError, UnreadableFile, ValidationError):
        return None


def last() -> Proof | None:
    """The last one that was made here; None where there is none."""
    return read(cache_folder("proofs"))
