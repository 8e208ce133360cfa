"""Where the time of a DUT's forwarding threads goes: what passes between a DUT with the ability `samples` and a
procedure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class ThreadSamples:
    """Samples of one thread that forwards."""

    #: CPU that it runs on.
    cpu: int
    #: How it was sampled: `perf, CPU clock, without the kernel`, `stack samples`.
    how: str
    #: Samples per second that were asked for, and seconds that it took.
    hz: int
    seconds: float
    #: Seconds in which the thread ran, and in which it was ready and something else had its CPU.
    ran_s: float
    waited_s: float
    #: By function, how many samples; a function without a name is where it begins in its file.
    functions: Mapping[str, int]
    #: The functions among them that acquire, or release, a lock.
    locks: frozenset[str]
    #: Share of the time in which it had packets to work on, by its own count (ratio).
    busy: float = 1.0
    #: Samples that the kernel had no room for.
    lost: int = 0

    @property
    def samples(self) -> int:
        """All of them."""
        return sum(self.functions.values())

    @property
    def of_locks(self) -> int:
        """Those in functions of locks."""
        return sum(self.functions[name] for name in self.locks)


@runtime_checkable
class SampledDut(Protocol):
    """A DUT with the ability `samples`."""

    def sample_thread(self, seconds: float) -> ThreadSamples:
        """Sample the first of its forwarding threads for so long, while a load lasts. `TestbedError` where nothing can
        sample it."""
