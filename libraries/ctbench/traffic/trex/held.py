"""Connections that TRex holds. Each opening is a profile of its own in TRex, to a server port of its own, so that no
two openings use the same addresses and ports.

An ASTF program takes no input once it runs, so the times of its messages are set beforehand, counted from the opening.
Nothing is sent between these times. TRex retransmits lost packets; a connection that needed that has failed, as in
counters.py.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.traffic.generator import Answered, Holding, Opened, Trial
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.trex.astf import ANSWER_S, LEAST_CPS, LOAD_S, START_S, STOP_S, Command, Spec, addresses, repeated
from ctbench.traffic.trex.client import TrexWorker
from ctbench.traffic.trex.counters import SIDES, Reading, generator_fault, readings_cannot_be, unexpected

#: Seconds that TRex goes on with the SYN of a connection: after one retransmission, it was refused.
HANDSHAKE_S = 2
#: TRex asks an idle TCP connection by itself whether it is there, after 5 s by default: never, here. Seconds.
_NEVER_S = 65_000
#: And it closes one whose program has ended: none ends by itself, microseconds.
_FOR_EVER_US = 3_600_000_000


def cannot_hold(profile: ConnectionProfile, load: Hold) -> str:
    """Return what of the load TRex cannot hold; empty where it can hold all of it."""
    if profile.udp_percent:
        return "connections without TCP to be held"
    if load.asks is None:
        return "connections that are held and asked at any time, which TRex has to know before it opens them"
    return ""


def hold_spec(profile: ConnectionProfile, load: Hold, number: int, connections: int, gap_s: float) -> Spec:
    """Return the description of opening `number` (0, 1 ...) of `connections` connections. Each sends a message `gap_s`
    seconds after it was opened, and as often again as `load` says."""
    assert load.asks is not None, "see cannot_hold"
    port = profile.tcp_port + number
    if port > 65_535:
        raise MissingResource(f"Profile {profile.name} has no port of the server for the open number {number + 1}.")
    request, reply = profile.request_bytes, profile.reply_bytes
    ask: list[Command] = [["delay", round(gap_s * 1e6)], ["send", request, "x"], ["recv", reply, True]]
    answer: list[Command] = [["recv", request, True], ["send", reply, "y"]]
    return {
        "addresses": addresses(profile),
        "templates": [
            {
                "stream": True,
                "port": port,
                "cps": max(load.opened_per_s, LEAST_CPS),
                "limit": connections,
                "client": [["connect"], *repeated(ask, load.asks), ["delay", _FOR_EVER_US]],
                "server": [["accept"], *repeated(answer, load.asks), ["wait_for_peer_close"]],
            }
        ],
        "tcp": {"keepinit": HANDSHAKE_S, "keepidle": _NEVER_S},
    }


@dataclass
class Opening:
    """The connections of one call of `open`."""

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
        """Take a reading. The time at which the first connection began follows from TRex' steady rate, as the time that
        TRex took to start is not known."""
        before, self.last = self.established, seen
        if self.begun and (self.began_s is None or self.begun < self.wanted):
            began_s = seen.at_s - self.begun / self.per_s
            self.began_s = began_s if self.began_s is None else min(began_s, self.began_s)
        if self.established > before:
            self.first_s = self.first_s or seen.at_s
            self.last_s = seen.at_s

    @property
    def span(self) -> Reading:
        return self.last - self.zero

    @property
    def begun(self) -> int:
        return self.span.begun

    @property
    def established(self) -> int:
        return self.span.traffic("client", "tcps_connects")

    @property
    def refused(self) -> int:
        """Connections that TRex gave up before they were open."""
        return self.span.traffic("client", "tcps_conndrops")

    @property
    def requests(self) -> int:
        """Requests sent, each counted once."""
        return self.span.traffic("client", "tcps_sndbyte") // self.request_bytes

    @property
    def replies(self) -> int:
        return self.span.traffic("client", "tcps_rcvbyte") // self.reply_bytes

    @property
    def sent_again(self) -> int:
        """Retransmitted packets of open connections."""
        again = sum(self.span.traffic(side, "tcps_sndrexmitpack") for side in SIDES)
        return again if self.refused else again + self.span.traffic("client", "tcps_rexmttimeo_syn")

    @property
    def held(self) -> int:
        """Connections that are open."""
        return max(0, self.established - self.span.traffic("client", "tcps_closed") + self.refused)


#: Seconds between two looks at its counters.
LOOK_S = 0.02
#: Seconds after which nothing comes any more: one retransmission, and TRex' own slowness.
PATIENCE_S = 2.0
#: Seconds without another connection that opens or is given up, after which none does: one retransmission of a SYN, and
#: a first start of TRex.
_SILENT_S = HANDSHAKE_S + PATIENCE_S


class HeldByTrex(Holding):
    """Connections that TRex holds. At the end, TRex cuts open ones off without a packet, and forgets them."""

    def __init__(
        self, worker: TrexWorker, ports: Sequence[int], profile: ConnectionProfile, load: Hold,
        let_go: Callable[[BaseException], None], sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        """`ports`: TRex' numbers, client side first; `let_go`: closes the client, given the error."""
        self._worker, self._ports, self._profile, self._load = worker, tuple(ports), profile, load
        self._let_go, self._sleep = let_go, sleep
        self._openings: list[Opening] = []
        self._opened: list[Opened] = []
        self._answered: Answered | None = None
        #: Times that a connection was not asked although it was due.
        self._unasked = 0
        self._started = time.perf_counter()

    def open(self, connections: int) -> Opened:
        if sum(each.wanted for each in self._openings) + connections > self._load.connections:
            raise GeneratorError(f"No more than {self._load.connections} connections were to be held.")
        called = time.monotonic()
        opening = self._begin(connections)
        idle_since = time.monotonic()
        while (
            known := opening.established + opening.refused
        ) < connections and time.monotonic() < idle_since + _SILENT_S:
            self._sleep(LOOK_S)
            opening.look(self._read(opening.name))
            if opening.established + opening.refused > known:
                idle_since = opening.last.at_s
        began_s = called if opening.began_s is None else opening.began_s
        first, last = (None if at is None else at - began_s for at in (opening.first_s, opening.last_s))
        found = Opened(
            begun=opening.begun, established=opening.established, first_s=first, last_s=last,
            waited_s=max(0.0, began_s - called),
        )  # fmt: skip
        self._opened.append(found)
        self._answered = None
        return found

    def ask(self) -> Answered:
        """Count the answers to the next messages. Raise `GeneratorError` where TRex has sent these before this call."""
        before = []
        for opening in self._openings:
            opening.asked += 1
            opening.look(self._read(opening.name))
            before.append((opening.requests, opening.replies))
            late_s = opening.last.at_s - (opening.began_s or 0.0) - opening.asked * opening.gap_s
            if opening.established and late_s > 0:
                raise GeneratorError(
                    f"TRex asked the connections {late_s:.1f} s too soon: what goes on between their opening and that "
                    f"took longer than {self._load.asked_after_s:g} s."
                )
        answered = 0
        for opening, (requests, replies) in zip(self._openings, before, strict=True):
            self._wait_for_replies(opening, replies)
            answered += opening.replies - replies
            self._unasked += max(0, opening.established - (opening.requests - requests))
        self._answered = Answered(asked=sum(each.established for each in self._openings), answered=answered)
        return self._answered

    def reconnect(self) -> None:
        """Do nothing: no link of TRex is lost with the DUT."""

    def held(self) -> int:
        return sum(opening.held for opening in self._openings)

    def trial(self) -> Trial:
        said = (readings_cannot_be((each.zero, each.last), self._ports) for each in self._openings)
        if why := next(filter(None, said), ""):
            wanted, wall_s = sum(each.wanted for each in self._openings), time.perf_counter() - self._started
            return Trial.uncounted(f"TRex: {why}", load=wanted, duration_s=1.0, ramp_up_s=0.0, wall_s=wall_s)
        begun = sum(each.begun for each in self._openings)
        established = sum(each.established for each in self._openings)
        answered = self._answered.answered if self._answered else self.held()
        again = min(answered, sum(each.sent_again for each in self._openings))
        lost = self._answered.lost if self._answered else 0
        failed = {"no_syn_ack": begun - established, "no_reply": lost, "retransmitted": again}
        seconds = max(sum(each.last_s or 0.0 for each in self._opened), 1e-3)
        whole = self._openings[-1].last - self._openings[0].zero
        return Trial.of(
            whole.by_port(self._ports),
            load=begun / seconds,
            duration_s=seconds,
            ramp_up_s=0.0,
            wall_s=time.perf_counter() - self._started,
            intended=sum(each.wanted for each in self._openings),
            attempted=begun,
            established=established,
            completed=answered - again,
            failed={cause: count for cause, count in failed.items() if count},
            unexpected=dict(sum((Counter(unexpected(each.span)) for each in self._openings), Counter())),
            active_mean=float(self.held()),
            active_max=self.held(),
            generator_limited=self._limited(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for opening in self._openings if error is None else []:
                self._worker.call("astf_remove", STOP_S, profile=opening.name)
        except BaseException as trouble:
            error = trouble
            raise
        finally:
            if error is not None:
                self._let_go(error)

    def _begin(self, connections: int) -> Opening:
        number = len(self._openings)
        name = f"held-{number}"
        gap_s = connections / self._load.opened_per_s + self._load.asked_after_s
        spec = hold_spec(self._profile, self._load, number, connections, gap_s)
        self._worker.call("astf_load", LOAD_S, spec=spec, profile=name)
        zero = self._read(name)
        profile = self._profile
        opening = Opening(
            name, connections, gap_s, zero, zero, self._load.opened_per_s, profile.request_bytes, profile.reply_bytes
        )
        self._openings.append(opening)
        self._worker.call("astf_start", START_S, mult=1, duration_s=-1, profile=name)
        return opening

    def _wait_for_replies(self, opening: Opening, replies: int) -> None:
        """Wait until the connections of an opening have answered: beyond the expected time while more replies come.
        `replies`: their number before."""
        until = opening.last_s + opening.asked * opening.gap_s + PATIENCE_S if opening.last_s else 0.0
        while (found := opening.replies) - replies < opening.established and opening.last.at_s < until:
            self._sleep(LOOK_S)
            opening.look(self._read(opening.name))
            if opening.replies > found:
                until = max(until, opening.last.at_s + PATIENCE_S)

    def _read(self, name: str) -> Reading:
        return Reading(**self._worker.call("stats", ANSWER_S, profile=name))

    def _limited(self) -> str:
        faults = [generator_fault(each.span, self._ports) for each in self._openings]
        fault = next(filter(None, faults), "")
        short = next((each for each in self._openings if each.begun < each.wanted), None)
        if short:
            said = f"TRex began only {short.begun} of {short.wanted} connections"
        elif self._unasked:
            said = f"TRex did not ask {self._unasked} of the connections that it holds in time"
        else:
            return f"TRex: {fault}" if fault else ""
        return f"{said}: {fault}" if fault else said
