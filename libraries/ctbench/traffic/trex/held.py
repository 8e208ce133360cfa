"""Connections that TRex holds, an opening after the other, each a profile of its own in TRex (see hold_spec.py).

TRex asks them at times of its own, which are known: nothing is sent between these. It sends again what gets lost, so a
connection that needed that has failed, as in losses.py.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ctbench.base.errors import GeneratorError
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import Answered, Opened
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.traffic.trex import hold_spec
from ctbench.traffic.trex.astf_trial import ANSWER_S, START_S, STOP_S, Worker
from ctbench.traffic.trex.counters import SIDES, Reading, Span
from ctbench.traffic.trex.faults import generator_fault, unexpected
from ctbench.traffic.trex.opening import Opening

#: Seconds that TRex gets to take a profile; between two looks at its counters.
LOAD_S, LOOK_S = 30.0, 0.02
#: Seconds after which nothing comes any more: one retransmission, and TRex' own slowness.
PATIENCE_S = 2.0
#: Seconds without another connection that opens or is given up, after which none does: one retransmission of a SYN, and
#: a first start of TRex.
_SILENT_S = hold_spec.HANDSHAKE_S + PATIENCE_S


class HeldByTrex:
    """Implements `ctbench.traffic.holding.Holding`."""

    def __init__(
        self, worker: Worker, ports: Sequence[int], profile: ConnectionProfile, load: Hold,
        let_go: Callable[[BaseException], None], sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        """`ports`: TRex' numbers, client side first; `let_go`: is told what went wrong, and closes the client."""
        self._worker, self._ports, self._profile, self._load = worker, tuple(ports), profile, load
        self._let_go, self._sleep = let_go, sleep
        self._openings: list[Opening] = []
        self._opened: list[Opened] = []
        self._answered: Answered | None = None
        #: Times that a connection was not asked although it was due.
        self._unasked = 0
        self._started = time.perf_counter()

    def open(self, connections: int) -> Opened:
        """See `Holding.open`."""
        if sum(each.wanted for each in self._openings) + connections > self._load.connections:
            raise GeneratorError(f"No more than {self._load.connections} connections were to be held.")
        called = time.monotonic()
        opening = self._begin(connections)
        idle_since = time.monotonic()
        while (known := opening.known) < connections and time.monotonic() < idle_since + _SILENT_S:
            self._sleep(LOOK_S)
            self._look(opening)
            idle_since = opening.last.at_s if opening.known > known else idle_since
        began_s = called if opening.began_s is None else opening.began_s
        first, last = (None if at is None else at - began_s for at in (opening.first_s, opening.last_s))
        found = Opened(
            intended=connections, begun=opening.begun, established=opening.established, first_s=first, last_s=last,
            waited_s=max(0.0, began_s - called),
        )  # fmt: skip
        self._opened.append(found)
        self._answered = None
        return found

    def ask(self) -> Answered:
        """See `Holding.ask`. `GeneratorError` where it is later than TRex was told."""
        before = []
        for opening in self._openings:
            opening.asked += 1
            self._look(opening)
            before.append((opening.requests, opening.replies))
            if opening.established and (late_s := opening.last.at_s - opening.asked_from(opening.asked)) > 0:
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

    def held(self) -> int:
        """See `Holding.held`."""
        return sum(opening.held for opening in self._openings)

    def trial(self) -> Trial:
        """See `Holding.trial`."""
        begun = sum(each.begun for each in self._openings)
        established = sum(each.established for each in self._openings)
        answered = self._answered.answered if self._answered else self.held()
        again = min(answered, sum(each.sent_again for each in self._openings))
        lost = self._answered.lost if self._answered else 0
        failed = {"no_syn_ack": begun - established, "no_reply": lost, "retransmitted": again}
        seconds = max(sum(each.last_s or 0.0 for each in self._opened), 1e-3)
        whole = Span(self._openings[0].zero, self._openings[-1].last)
        pair = tuple(zip(SIDES, self._ports, strict=True))
        traffic = {
            name: {side: whole.port(port, counter) for side, port in pair}
            for name, counter in (
                ("tx_packets", "opackets"), ("rx_packets", "ipackets"), ("tx_bytes", "obytes"), ("rx_bytes", "ibytes"),
            )
        }  # fmt: skip
        return Trial(
            load=begun / seconds,
            duration_s=seconds,
            ramp_up_s=0.0,
            wall_s=time.perf_counter() - self._started,
            intended=sum(each.wanted for each in self._openings),
            attempted=begun,
            established=established,
            completed=answered - again,
            failed={cause: count for cause, count in failed.items() if count},
            **traffic,
            total_tx_packets=traffic["tx_packets"],
            total_rx_packets=traffic["rx_packets"],
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
        """What is open is cut off, without a packet, and TRex forgets it."""
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
        name = hold_spec.name_of(number)
        gap_s = connections / self._load.opened_per_s + self._load.asked_after_s
        spec = hold_spec.hold_spec(self._profile, self._load, number, connections, gap_s)
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
        """Wait until the connections of an opening have answered: longer than it should take, while more do. `replies`:
        so many there were before."""
        until = opening.asked_to(opening.asked) + PATIENCE_S if opening.established else 0.0
        while (found := opening.replies) - replies < opening.established and opening.last.at_s < until:
            self._sleep(LOOK_S)
            self._look(opening)
            if opening.replies > found:
                until = max(until, opening.last.at_s + PATIENCE_S)

    def _look(self, opening: Opening) -> None:
        opening.look(self._read(opening.name))

    def _read(self, name: str) -> Reading:
        return Reading.of(self._worker.call("stats", ANSWER_S, profile=name))

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
