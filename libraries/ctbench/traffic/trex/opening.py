"""Connections that TRex opened together, by its counters: when they were begun, how many are open, what they said."""

from dataclasses import dataclass

from ctbench.traffic.trex.counters import SIDES, Reading, Span


@dataclass
class Opening:
    """Connections of one `open`."""

    name: str
    wanted: int
    #: Seconds from its opening until a connection is asked, and from one asking to the next.
    gap_s: float
    zero: Reading
    last: Reading
    #: Connections begun per second.
    per_s: float
    request_bytes: int
    reply_bytes: int
    #: When the first was begun, was open, and the last was, on the monotonic clock; None where none was.
    began_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    #: Times that they were asked.
    asked: int = 0

    def look(self, seen: Reading) -> None:
        """Take counters in. They tell when the first connection was begun: TRex keeps its rate, and how long it took to
        start nobody knows."""
        before, self.last = self.established, seen
        if self.begun and (self.began_s is None or self.begun < self.wanted):
            began_s = seen.at_s - self.begun / self.per_s
            self.began_s = began_s if self.began_s is None else min(began_s, self.began_s)
        if self.established > before:
            self.first_s = self.first_s or seen.at_s
            self.last_s = seen.at_s

    def asked_from(self, number: int) -> float:
        """When the first of them is asked for the time `number` (1, 2 ...)."""
        assert self.began_s is not None, "somebody looks at those that were begun"
        return self.began_s + number * self.gap_s

    def asked_to(self, number: int) -> float:
        """When the last of them is."""
        assert self.began_s is not None and self.last_s is not None, "some were opened"
        return self.last_s + number * self.gap_s

    @property
    def span(self) -> Span:
        """All of it."""
        return Span(self.zero, self.last)

    @property
    def begun(self) -> int:
        """Connections begun."""
        return self.span.begun

    @property
    def established(self) -> int:
        """Connections that were opened."""
        return self.span.traffic("client", "tcps_connects")

    @property
    def refused(self) -> int:
        """Those that TRex gave up before they were open."""
        return self.span.traffic("client", "tcps_conndrops")

    @property
    def known(self) -> int:
        """Those of which it is known what became of them."""
        return self.established + self.refused

    @property
    def requests(self) -> int:
        """Requests that were sent, each once."""
        return self.span.traffic("client", "tcps_sndbyte") // self.request_bytes

    @property
    def replies(self) -> int:
        """Replies that came."""
        return self.span.traffic("client", "tcps_rcvbyte") // self.reply_bytes

    @property
    def sent_again(self) -> int:
        """Packets of connections that are open."""
        again = sum(self.span.traffic(side, "tcps_sndrexmitpack") for side in SIDES)
        return again if self.refused else again + self.span.traffic("client", "tcps_rexmttimeo_syn")

    @property
    def held(self) -> int:
        """Connections that are open."""
        return max(0, self.established - self.span.traffic("client", "tcps_closed") + self.refused)
