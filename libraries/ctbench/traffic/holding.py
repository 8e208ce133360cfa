"""What a traffic generator does that holds connections: it opens many, keeps them open, and asks each something."""

from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from ctbench.base.quantities import Amount, Count
from ctbench.traffic.generator import Counts, Trial
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile


class Opened(Counts):
    """What came of opening connections. Counts, never opinions."""

    #: Connections that were asked for; those begun: fewer where many in a row were refused; those that are open now.
    intended: Count
    begun: Count
    established: Count
    #: Seconds from the first SYN to the first that was answered, and to the last; None where none was.
    first_s: Amount | None
    last_s: Amount | None
    #: Seconds from the call to the first SYN, of a generator that needs a while to begin.
    waited_s: Amount = 0.0
    #: Whether no more were begun because so many in a row were not answered.
    gave_up: bool = False

    @property
    def refused(self) -> int:
        """Those begun that did not open."""
        return self.begun - self.established


class Answered(Counts):
    """What came of one message on each connection that was open."""

    asked: Count
    answered: Count

    @property
    def lost(self) -> int:
        """Those that were asked and did not answer."""
        return self.asked - self.answered


class Holding(Protocol):
    """Connections that one generator holds. Between two calls nothing is sent."""

    def open(self, connections: int) -> Opened:
        """Open so many more, at the load's rate at most. `GeneratorError` when the generator or a link broke."""

    def ask(self) -> Answered:
        """Send a message on each that is open, and wait for its reply."""

    def held(self) -> int:
        """Connections that are open now, as the generator knows."""

    def trial(self) -> Trial:
        """All of it as a trial: `intended` and `attempted` were begun, `completed` are those that answered last (those
        that are open where none was asked), and the sustain phase is the time in which they were opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what is open, where that takes anything."""
        return


@runtime_checkable
class HoldingGenerator(Protocol):
    """A traffic generator that offers `Hold`."""

    def hold(self, profile: ConnectionProfile, load: Hold) -> Holding:
        """Get ready to hold connections of a profile, `load.connections` at most at once; none is opened yet."""
