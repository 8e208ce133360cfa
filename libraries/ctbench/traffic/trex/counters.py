"""TRex' counters as they were read, and what they grew by between two readings.

Only counters that TRex keeps exactly: its rates (`tx_cps`, `tx_pps`, `active_flows` …) are low-pass filtered and need
ten seconds to follow. A counter of the traffic that is zero is absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

Side = Literal["client", "server"]
SIDES: tuple[Side, ...] = ("client", "server")


@dataclass(frozen=True)
class Reading:
    """What `stats` of client_worker.py answered."""

    #: When the counters of the traffic were read, seconds, and how uncertain that is, seconds either way.
    at_s: float
    within_s: float
    #: `get_stats()` of TRex' client; the ports go by their numbers as text.
    stats: Mapping[str, Any]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """From the worker's answer."""
        return cls(answer["at_s"], answer["within_s"], answer["stats"])

    def traffic(self, side: Side, name: str) -> int:
        """A counter of the traffic of one side: `tcps_…`, `udps_…`, `err_…`."""
        return int(self.stats["traffic"][side].get(name, 0))

    def port(self, number: int, name: str) -> int:
        """A counter of a port: `opackets`, `ibytes`, `ierrors` …"""
        return int(self.stats[str(number)].get(name, 0))

    def overall(self, name: str) -> int:
        """A counter of TRex as a whole: `queue_full`, `total_alloc_error`."""
        return int(self.stats["global"].get(name, 0))

    @property
    def begun(self) -> int:
        """Connections begun since the start of the traffic."""
        return self.traffic("client", "tcps_connattempt") + self.traffic("client", "udps_connects")

    def closed(self, side: Side) -> int:
        """Connections that one side has forgotten, completed or not."""
        return self.traffic(side, "tcps_closed") + self.traffic(side, "udps_closed")

    def open(self, side: Side) -> int:
        """Connections that one side has not forgotten yet. It remembers those of TCP for half a second after their
        end."""
        accepted = self.traffic("server", "tcps_accepts") + self.traffic("server", "udps_accepts")
        return max(0, (self.begun if side == "client" else accepted) - self.closed(side))


@dataclass(frozen=True)
class Span:
    """What the counters grew by from one reading to another."""

    first: Reading
    last: Reading

    @property
    def seconds(self) -> float:
        """Time between them."""
        return self.last.at_s - self.first.at_s

    @property
    def within_s(self) -> float:
        """How far from the truth `seconds` may be."""
        return self.first.within_s + self.last.within_s

    def traffic(self, side: Side, *names: str) -> int:
        """Growth of counters of one side, added up."""
        return sum(self.last.traffic(side, name) - self.first.traffic(side, name) for name in names)

    def port(self, number: int, name: str) -> int:
        """Growth of a counter of a port."""
        return self.last.port(number, name) - self.first.port(number, name)

    def overall(self, name: str) -> int:
        """Growth of a counter of TRex as a whole."""
        return self.last.overall(name) - self.first.overall(name)

    @property
    def begun(self) -> int:
        """Connections begun."""
        return self.last.begun - self.first.begun
