"""Whether the entries of a connection table count what passed, where packets take the short cut of a flowtable, and
whether connections that were idle, and are handed back for that, still answer.

Three things that users report of flowtables: they break connections that live long, they lose counters, and they bring
nothing, because no connection gets there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ctbench.base.network import HEADER_BYTES, VLAN_TAG_BYTES
from ctbench.dut.abilities import Accounts
from ctbench.dut.base import wait_until
from ctbench.measure.held import TableTrial, conclude
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Answered, Holding, Trial
from ctbench.traffic.loads import Hold

UNCOUNTED, OFFLOADED, FORGOTTEN = (METRICS[name] for name in ("uncounted", "offloaded", "forgotten_when_idle"))
#: A table of few, whose entries are printed and read.
OPEN = 1000
#: Seconds that connections are idle at most: the kernel's own time in a flowtable is 30 s, and it looks each second.
IDLE_S = 40.0
#: For a generator that has to know before when to ask them.
_ASKED_AFTER_S = IDLE_S + 5.0
_OTHER = {"client": "server", "server": "client"}
_UNCOUNTED, _NONE = Accounts(0, 0, {}, {}), Answered(asked=0, answered=0)


@dataclass
class _Idle(TableTrial):
    """Connections are opened, asked, left alone until none of them is in a flowtable any more, and asked again."""

    #: What the entries said right after the first question, when the connections had been idle, and in the end.
    busy: Accounts = _UNCOUNTED
    idle: Accounts = _UNCOUNTED
    end: Accounts = _UNCOUNTED
    first: Answered = _NONE
    last: Answered = _NONE
    # What does not answer is a figure.
    may_lose = 1.0

    def work(self, held: Holding) -> None:
        self.counts.take("opened", held.open(OPEN).established)
        self.first = held.ask()
        self.busy = self.dut.accounts()
        wait_until(self._are_handed_back, IDLE_S if self.busy.offloaded else 0.0, 0.5)
        self.counts.take("idle", OPEN)
        self.last = held.ask()
        self.end = self.dut.accounts()

    def _are_handed_back(self) -> bool:
        self.idle = self.dut.accounts()
        return not self.idle.offloaded

    @property
    def wrong(self) -> str:
        if self.first.answered < OPEN:
            return f"{self.first.answered} of {OPEN} connections answered before they were idle"
        stay = f"{self.idle.offloaded} connections stayed in the flowtable for {IDLE_S:g} s without a packet"
        return self.counts.wrong or (stay if self.idle.offloaded else "")


def apart(trial: Trial, found: Accounts, header_bytes: int = HEADER_BYTES) -> float:
    """The largest share by which what a table counted lies outside of what the generator sent and what came out, in
    packets or bytes, of either side; 1 where it counted nothing. `header_bytes`: of a frame that comes out."""
    return max((_outside(*each) for each in _compared(trial, found, header_bytes)), default=1.0)


def _compared(trial: Trial, found: Accounts, header_bytes: int) -> Iterator[tuple[float, float, float]]:
    """By side, in packets and in bytes of IP: what was counted, the least that it can be, and the most. Frames may be
    padded on their way, so bytes have no upper end; what came out and was not of these connections is in neither."""
    foreign = trial.unexpected.get("foreign", 0)
    for side, packets in found.packets.items():
        received = trial.total_rx_packets[_OTHER[side]] - foreign
        yield packets, received, trial.total_tx_packets[side]
        if not foreign:
            yield found.bytes[side], trial.rx_bytes[_OTHER[side]] - header_bytes * received, float("inf")


def _outside(counted: float, least: float, most: float) -> float:
    return max(least - counted, counted - most, 0.0) / max(least, 1.0)


def _said(trial: Trial, made: _Idle) -> str:
    def both(of: Mapping[str, int]) -> str:
        return " and ".join(f"{of.get(side, 0)}" for side in _OTHER)

    return (
        f"{made.busy.offloaded} of {OPEN} connections took the flowtable; {made.last.answered} answered after they had "
        f"been idle; clients and servers sent {both(trial.total_tx_packets)} packets, and the entries counted "
        f"{both(made.end.packets)} ({both(made.end.bytes)} bytes)"
    )


def _accounting(bench: Bench, trials: Trials) -> Outcome:
    load = Hold(OPEN, bench.campaign.table.opened_per_s, asks=2, asked_after_s=_ASKED_AFTER_S)
    seen, made = _Idle.make(bench, trials, load)
    header_bytes = HEADER_BYTES + VLAN_TAG_BYTES * (
        bench.topology is not None and bench.topology.ports.endswith("vlan")
    )
    values = {
        UNCOUNTED.name: apart(seen.trial, made.end, header_bytes),
        OFFLOADED.name: made.busy.offloaded / OPEN,
        FORGOTTEN.name: made.last.lost / OPEN,
    }
    said = "; ".join(filter(None, (seen.reason, _said(seen.trial, made))))
    metrics = (UNCOUNTED, OFFLOADED, FORGOTTEN)
    return conclude(bench, seen, metrics, values, said, right=not seen.reason)


ACCOUNTING = Scripted(
    name="accounting",
    says="opens connections, asks each, leaves them idle until none is in a flowtable, asks them again, and compares "
    "what their entries counted with what was sent",
    found_out=(UNCOUNTED.name, OFFLOADED.name, FORGOTTEN.name),
    script=_accounting,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections", "accounting"}),
    promised=Promise("accounting", "table", "accounting", CONNECTIONS),
)
