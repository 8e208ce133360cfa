"""A connection table, and a generator that holds connections in it, for the unit tests. Nothing here measures
anything."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from ctbench.base.errors import GeneratorError
from ctbench.dut.abilities import FullSaid
from ctbench.dut.base import Problem
from ctbench.measure.campaign import TableTrials
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench
from ctbench.measure.trial import Repetitions
from ctbench.traffic.generator import Answered, Opened, Trial
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import HealthyDut, campaign, floor_of, made_up_trial

HELD = ConnectionProfile(name="held")
WITHOUT_PAUSES = partial(Repetitions, sleep=lambda _seconds: None)


@dataclass
class TableDouble(HealthyDut):
    """A DUT with a table of `limit` entries, and the generator that fills it. Memory that is free is used
    again."""

    limit: int = 1000
    #: What somebody lowers it to while connections are open; whether one that is given then does nothing.
    lowered: int = 0
    deaf: bool = False
    #: Added to what it counts once connections are open.
    miscount: int = 0
    #: Connections that do not answer in the end.
    mute: int = 0
    #: Bytes of an entry; those of each that are never freed, and all of those.
    entry: int = 400
    leaks: int = 0
    leaked: int = 0
    #: Of its process, at most so far; whether that can be read.
    memory: int = 10_000_000
    reads: bool = True
    #: What is wrong with the DUT after each trial, one after the other.
    problems: list[list[Problem]] = field(default_factory=list)
    #: Raised when connections are opened.
    error: Exception | None = None
    sweep_s: float = 20.0
    entries: int = 0
    flushed: int = 0
    #: Connections that found it full; whether it counts them, and logs each.
    refused: int = 0
    says: bool = True
    chatty: bool = False
    #: Whether it makes room for new connections by forgetting old ones.
    evicts: bool = False
    opened: list[int] = field(default_factory=list)

    def flush_state(self) -> None:
        self.leaked += self.leaks * self.entries
        self.entries, self.flushed = 0, self.flushed + 1

    def health(self) -> list[Problem]:
        return self.problems.pop(0) if self.problems else []

    def connections(self) -> int:
        return self.entries + (self.miscount if self.entries else 0)

    def table_memory(self) -> int | None:
        self.memory = max(self.memory, 10_000_000 + self.leaked + self.entry * self.entries)
        return self.memory if self.reads else None

    def sweeps_within(self, timeout_s: float) -> float:
        return self.sweep_s

    def limit_now(self) -> int | None:
        return self.limit

    def full_said(self) -> FullSaid:
        self.limit = self.lowered or self.limit
        return FullSaid(self.refused if self.says else 0, self.refused if self.chatty else min(self.refused, 1))

    def limit_table(self, entries: int) -> None:
        self.limit = self.limit if self.deaf and self.entries else entries

    def hold(self, profile: ConnectionProfile, load: Hold) -> "HoldingDouble":
        return HoldingDouble(self, load)


@dataclass
class HoldingDouble:
    """Implements `Holding`."""

    dut: TableDouble
    load: Hold
    begun: int = 0
    established: int = 0
    #: None: none was asked.
    answered: int | None = None

    def open(self, connections: int) -> Opened:
        if self.dut.error:
            raise self.dut.error
        if self.begun + connections > self.load.connections:  # as both generators have it
            raise GeneratorError(f"No more than {self.load.connections} connections were to be held.")
        self.dut.opened.append(connections)
        room = connections if self.dut.evicts else min(connections, max(0, self.dut.limit - self.dut.entries))
        self.dut.entries = min(self.dut.limit, self.dut.entries + room)
        self.dut.refused += connections - room
        self.begun, self.established = self.begun + connections, self.established + room
        times = (0.001, 0.5) if room else (None, None)
        return Opened(begun=connections, established=room, first_s=times[0], last_s=times[1], gave_up=False)

    def ask(self) -> Answered:
        self.answered = answered = self.established - self.dut.mute
        return Answered(asked=self.established, answered=answered)

    def reconnect(self) -> None: ...

    def held(self) -> int:
        return self.established

    def trial(self) -> Trial:
        completed = self.established if self.answered is None else self.answered
        lost = 1 - completed / self.begun
        return made_up_trial(self.begun, 1.0, loss=lost)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def table_bench(dut: TableDouble, told: list[Observation] | None = None, **more: Any) -> Bench:
    """A bench with this table."""
    tell = told.append if told is not None else lambda _step: None
    table, floor = more.pop("how", TableTrials()), floor_of(more.pop("profile", HELD), **more.pop("limits", {}))
    return Bench(
        dut, dut, floor, campaign().model_copy(update={"table": table}), on_trial=tell,
        repetitions=WITHOUT_PAUSES(), **more,  # type: ignore[arg-type]
    )  # fmt: skip
