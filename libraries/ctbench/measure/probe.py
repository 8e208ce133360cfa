"""Probes: samplers that run while a load is offered."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from time import monotonic as _now
from typing import Self

from ctbench.base.errors import TestbedError
from ctbench.dut.abilities import ThreadLook


class Probe(ABC):
    """A sampler that is asked at intervals while a load is offered."""

    #: What it samples: `table_entries`; of its values: `entries`; time between two samples, seconds.
    name: str
    unit: str
    every_s: float
    #: Whether its samples are a part of the record.
    kept: bool = True

    def before(self) -> None:  # most have nothing to do
        """Get ready; the load begins next."""

    @abstractmethod
    def sample(self) -> float:
        """Return the current value. Raise `TestbedError` where there is none: the sample is missing then."""

    def after(self) -> None:
        """Finish; the load has ended."""


@dataclass
class TableEntries(Probe):
    """Entries in the DUT's connection table."""

    #: `Dut.connections`.
    count: Callable[[], int]
    every_s: float = 0.1
    name = "table_entries"
    unit = "entries"

    def sample(self) -> float:
        return float(self.count())


@dataclass
class Samples:
    """The samples of a probe: a value each `every_s`, None for a missing one, and the last error."""

    name: str
    unit: str
    every_s: float
    values: list[float | None] = field(default_factory=list)
    error: str = ""


class Sampling(ExitStack[None]):
    """A context manager that samples each probe in a thread of its own."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        super().__init__()
        self._done = threading.Event()
        self._each = [(probe, Samples(probe.name, probe.unit, probe.every_s)) for probe in probes]

    @property
    def samples(self) -> tuple[Samples, ...]:
        """Samples of the probes whose samples are kept."""
        return tuple(samples for probe, samples in self._each if probe.kept)

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:  # nothing samples on, and what was prepared is undone
            with suppress(TestbedError):  # what went wrong first says more
                self.close()
            raise
        return self

    def _begin(self) -> None:
        for probe, _ in self._each:
            self.callback(probe.after)
        for probe, samples in self._each:
            probe.before()
            thread = threading.Thread(target=self._sample, args=(probe, samples), daemon=True)
            thread.start()
            self.callback(thread.join)
            self.callback(self._done.set)  # what comes last is called first

    def _sample(self, probe: Probe, samples: Samples) -> None:
        due, values = _now(), samples.values
        while not self._done.is_set():
            try:
                values.append(probe.sample())
            except (TestbedError, ValueError) as error:  # broken, or an answer that is not a number
                samples.error = str(error)
                values.append(None)
            missed, due = after_sample(due, _now(), probe.every_s)
            values += [None] * missed
            self._done.wait(due - _now())


def after_sample(due: float, now: float, every_s: float) -> tuple[int, float]:
    """Return the samples missed while the one that was `due` was taken, and the time when the next is due."""
    missed = int(max(0.0, now - due - every_s) / every_s)
    return missed, due + (missed + 1) * every_s


@dataclass
class MainThreadWatch(Probe):
    """A probe of the longest time for which the control plane's main thread did not wait for an event, and so answered
    no request."""

    look: Callable[[], ThreadLook | None]
    #: When it was looked at, and what was seen.
    seen: list[tuple[float, ThreadLook]] = field(default_factory=list)
    name = "main_thread"
    unit = "waits"
    #: What it does for less than that is not seen, nor a shorter wait.
    every_s: float = 0.003
    kept = False

    def sample(self) -> float:
        found = self.look()
        if found is None:
            raise TestbedError("The main thread cannot be seen from this machine.")
        self.seen.append((_now(), found))
        return float(found.waits)

    @property
    def longest_s(self) -> float | None:
        """Seconds from first to last look of the longest series without a wait; None where the thread was not seen."""
        return longest_busy(self.seen) if len(self.seen) > 1 else None


def longest_busy(seen: list[tuple[float, ThreadLook]]) -> float:
    """Return the seconds of the longest series of looks at which the thread did not wait."""
    longest, since = 0.0, None
    for at, look in seen:
        if look.waits:
            since = None
        else:
            since = at if since is None else since
            longest = max(longest, at - since)
    return longest
