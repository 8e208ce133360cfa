"""Accounting: whether the table's entries count the packets that take the short cut of a flowtable, and whether
connections that were idle, and so left the flowtable, still answer.

Users report three faults of flowtables: they break long-lived connections, they lose counters, and they bring nothing,
because no connection gets there.
"""

from collections.abc import Iterator, Mapping

from ctbench.base.network import HEADER_BYTES, VLAN_TAG_BYTES
from ctbench.dut.abilities import Accounts
from ctbench.dut.base import wait_until
from ctbench.measure.held import TableTrial, conclude, table_trial
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold

UNCOUNTED, OFFLOADED, FORGOTTEN = (METRICS[name] for name in ("uncounted", "offloaded", "forgotten_when_idle"))
#: A table of few, whose entries are printed and read.
OPEN = 1000
#: Seconds that connections are idle at most: the kernel's own time in a flowtable is 30 s, and it looks each second.
IDLE_S = 40.0
#: For a generator that has to know before when to ask them.
_ASKED_AFTER_S = IDLE_S + 5.0
_OTHER = {"client": "server", "server": "client"}


def largest_deviation(trial: Trial, found: Accounts, header_bytes: int = HEADER_BYTES) -> float:
    """Return the largest share by which the table's counts lie outside of what came out and what the generator sent, in
    packets or bytes, of either side; 1 where the table counted nothing. `header_bytes`: of a frame that comes out."""
    return max((_outside(*each) for each in _compared(trial, found, header_bytes)), default=1.0)


def _compared(trial: Trial, found: Accounts, header_bytes: int) -> Iterator[tuple[float, float, float]]:
    """Yield the count, its lower limit and its upper limit, by side, in packets and in bytes of IP. Bytes have no upper
    limit, as frames may be padded on their way. Foreign packets are left out; with any, so are the bytes."""
    foreign = trial.unexpected.get("foreign", 0)
    for side, packets in found.packets.items():
        received = trial.total_rx_packets[_OTHER[side]] - foreign
        yield packets, received, trial.total_tx_packets[side]
        if not foreign:
            yield found.bytes[side], trial.rx_bytes[_OTHER[side]] - header_bytes * received, float("inf")


def _outside(counted: float, least: float, most: float) -> float:
    return max(least - counted, counted - most, 0.0) / max(least, 1.0)


def _accounting(bench: Bench, trials: Trials) -> Outcome:
    """Open connections, ask them, leave them alone until none is in a flowtable, and ask them again."""
    header_bytes = HEADER_BYTES + VLAN_TAG_BYTES * bench.topology.ports.endswith("vlan")

    def offer(made: TableTrial) -> Trial:
        with made.hold() as held:
            made.count("opened", held.open(OPEN).established)
            first = held.ask().answered
            looks = [bench.dut.accounts()]

            def handed_back() -> bool:
                looks.append(bench.dut.accounts())
                return not looks[-1].offloaded

            wait_until(handed_back, IDLE_S if looks[0].offloaded else 0.0, 0.5)
            made.count("idle", OPEN)
            last = held.ask()
            end = bench.dut.accounts()
            trial = held.trial()
        taken, stay = looks[0].offloaded, looks[-1].offloaded
        if first < OPEN:
            made.faults.append(f"{first} of {OPEN} connections answered before they were idle")
        elif made.miscounted:
            made.compare()
        elif stay:
            made.faults.append(f"{stay} connections stayed in the flowtable for {IDLE_S:g} s without a packet")
        made.values = {
            UNCOUNTED.name: largest_deviation(trial, end, header_bytes),
            OFFLOADED.name: taken / OPEN,
            FORGOTTEN.name: last.lost / OPEN,
        }
        made.said = (
            f"{taken} of {OPEN} connections took the flowtable; {last.answered} answered after they had been idle; "
            f"clients and servers sent {_both(trial.total_tx_packets)} packets, and the entries counted "
            f"{_both(end.packets)} ({_both(end.bytes)} bytes)"
        )
        return trial

    load = Hold(OPEN, bench.campaign.table.opened_per_s, asks=2, asked_after_s=_ASKED_AFTER_S)
    # What does not answer is a figure.
    seen, made = table_trial(bench, trials, load, offer, may_lose=1.0)
    said = "; ".join(filter(None, (seen.reason, made.said)))
    return conclude(bench, seen, (UNCOUNTED, OFFLOADED, FORGOTTEN), made.values, said, right=not seen.reason)


def _both(of: Mapping[str, int]) -> str:
    return " and ".join(f"{of.get(side, 0)}" for side in _OTHER)


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
