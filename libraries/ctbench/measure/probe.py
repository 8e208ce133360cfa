"""Probes: what is sampled while a load is offered."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic as _now
from types import TracebackType
from typing import Protocol, Self

from ctbench.base.errors import TestbedError


class Probe(Protocol):
    """Something that can be asked again and again while a load is offered."""

    @property
    def name(self) -> str:
        """What it samples: `table_entries`."""

    @property
    def unit(self) -> str:
        """Of its values: `entries`."""

    @property
    def every_s(self) -> float:
        """Time between two samples, seconds."""

    def before(self) -> None:
        """Get ready; the load begins next."""

    def sample(self) -> float:
        """The value now. `TestbedError` where it cannot be had; the sample is missing then."""

    def after(self) -> None:
        """The load has ended."""


@dataclass(frozen=True)
class TableEntries:
    """Entries in the DUT's connection table."""

    #: `Dut.connections`.
    count: Callable[[], int]
    every_s: float = 0.1
    name: str = "table_entries"
    unit: str = "entries"

    def before(self) -> None:
        """See `Probe.before`: nothing has to be made ready."""

    def sample(self) -> float:
        """See `Probe.sample`."""
        return float(self.count())

    def after(self) -> None:
        """See `Probe.after`: nothing has to be put back."""


@dataclass
class Samples:
    """What a probe saw: a value each `every_s`, None where it could not tell in time."""

    name: str
    unit: str
    every_s: float
    values: list[float | None] = field(default_factory=list)


class Sampling:
    """Samples each of some probes in a thread of its own, for as long as it is entered."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._done = threading.Event()
        self._threads: list[threading.Thread] = []
        self.samples = tuple(Samples(probe.name, probe.unit, probe.every_s) for probe in probes)

    def __enter__(self) -> Self:
        for probe, samples in zip(self._probes, self.samples, strict=True):
            probe.before()
            thread = threading.Thread(target=self._sample, args=(probe, samples.values), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()
        for probe in self._probes:
            probe.after()

    def _sample(self, probe: Probe, values: list[float | None]) -> None:
        due = _now()
        while not self._done.is_set():
            try:
                values.append(probe.sample())
            except (TestbedError, ValueError):  # broken, or an answer that is no number
                values.append(None)
            missed, due = after_sample(due, _now(), probe.every_s)
            values += [None] * missed
            self._done.wait(due - _now())


def after_sample(due: float, now: float, every_s: float) -> tuple[int, float]:
    """How many samples were missed while the one that was `due` was taken, and when the next one is due."""
    missed = int(max(0.0, now - due - every_s) / every_s)
    return missed, due + (missed + 1) * every_s
