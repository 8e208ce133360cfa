"""Memory of the DUT per connection, and the memory that stays when the connection is gone.

An allocator keeps freed memory, so an emptied table shows nothing. A refilled table does: a sound DUT takes no more
than before, and one that does not free its entries grows with every fill.
"""

import math
import time
from functools import partial
from itertools import pairwise

from ctbench.base.errors import MissingResource
from ctbench.base.units import format_count
from ctbench.dut.base import wait_until
from ctbench.measure.held import SPARE, TableTrial, conclude, open_all, table_trial, with_spare
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.procedures.table_expiry import EVERY_S, PATIENCE_S
from ctbench.measure.trial import Trials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold

MEMORY, KEPT, SHARE = (METRICS[name] for name in ("memory_per_connection", "memory_kept", "memory_of_build"))
#: Connections of a fill, where the topology does not say how many entries the table has; and the share of them that is
#: looked at first. The same in every campaign: part of an entry's memory comes in steps, as hash tables double.
FILLED, FEW = 50_000, 0.1
#: How often the table is emptied and filled again; at least, of a table so large that memory has no room for more of
#: them, if the DUT frees none: hash tables that are made again need one to settle.
REFILLS, FEWEST_REFILLS = 3, 2
#: Of the connections of a fill, the share that has to be in the table: a busy machine loses some.
LEAST = 0.9
#: Seconds until all that was deleted is free: Open vSwitch leaves that to a thread of its own (lib/ovs-rcu.c).
FREED_S = 0.5
#: A table whose entries time out so soon is left to empty itself, seconds; any other one is flushed.
SOON_S = 10.0


def _fill(connections: int, made: TableTrial) -> Trial:
    """Fill the table. Read the DUT's memory where a few connections are open, and where all are."""
    dut, timeout_s = made.bench.dut, made.bench.timeout_s
    time.sleep(FREED_S)
    with made.hold() as held:
        few = round(FEW * connections)
        for moment, number in (("few", few), ("all", connections - few)):
            open_all(held, number)
            found, memory = dut.connections(), dut.table_memory()
            look = TableCount(trial=made.number, moment=moment, expected=held.held(), found=found, memory=memory)
            made.counts.append(look)
        if found < LEAST * connections:
            text = f"{found} of {connections} connections were in the table, which say too little of its memory"
            made.faults.append(text)
        if timeout_s <= SOON_S:
            wait_until(lambda: not dut.connections(), timeout_s + dut.sweep_s + PATIENCE_S, EVERY_S)
        return held.trial()


def _memory(bench: Bench, trials: Trials) -> Outcome:
    """Measure memory per connection. Raise `MissingResource` where memory cannot be read, or has no room for the fills,
    or where the connections of one fill cannot be held."""
    if bench.dut.table_memory() is None:
        raise MissingResource("The memory of this DUT cannot be read here.")
    room = math.inf if bench.most_held is None else bench.most_held
    memory = math.inf if bench.most_filled is None else bench.most_filled
    asked = bench.topology.max_connections
    fits = min(1 + REFILLS, memory / asked) if asked else 1 + REFILLS
    if asked and (with_spare(asked) > room or fits < 1 + FEWEST_REFILLS):
        raise MissingResource(
            f"{format_count(asked)} connections are filled in {1 + FEWEST_REFILLS} times, and a DUT may free none: "
            f"there is room for {format_count(room)} at once, and in memory for {format_count(memory)} in all."
        )
    connections = int(asked or min(FILLED, room / (1 + SPARE)))
    load = Hold(with_spare(connections), bench.campaign.table.opened_per_s, asks=0)
    fills: list[tuple[TableCount, TableCount]] = []
    for _ in range(int(fits)):
        # Memory is asked for, and not what became of the connections.
        seen, made = table_trial(bench, trials, load, partial(_fill, connections), may_lose=1.0)
        if not seen.good:
            return Outcome.nothing(MEMORY, "generator" if seen.state == "invalid" else "dut", seen.reason)
        few, full = made.counts[-2:]
        fills.append((few, full))
    few, full = fills[0]
    each = _grown(few, full) / (full.found - few.found)
    if each <= 0:
        return Outcome.nothing(MEMORY, "dut", "the memory of the DUT does not grow with its table")
    again = [_grown(before, now) / now.found for (_, before), (_, now) in pairwise(fills)]
    shown = [f"{grown:+z,.1f}" for grown in again]
    reason = (
        f"{format_count(full.found - few.found)} connections took {_grown(few, full) / 2**20:.1f} MiB; each time that "
        f"the table was emptied and filled again, memory grew by {', '.join(shown[:-1])} and {shown[-1]} bytes a "
        "connection"
    )
    # Hash tables that are made again grow once; a leak grows with every fill.
    values = {MEMORY.name: each, KEPT.name: max(0.0, min(again))}
    return conclude(bench, seen, (MEMORY, KEPT), values, reason, right=True)


def _grown(before: TableCount, now: TableCount) -> int:
    """Return the bytes by which the DUT's memory grew from one count to another."""
    assert before.memory is not None and now.memory is not None, "it could be read before"
    return now.memory - before.memory


TABLE_MEMORY = Scripted(
    name="table-memory",
    says="fills the table, empties and fills it again, three times (twice where memory has no room for more), and "
    "compares the DUT's memory where a tenth and where all of the connections are open, and from fill to fill",
    found_out=(MEMORY.name, KEPT.name, SHARE.name),
    script=_memory,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections"}),
    promised=Promise("memory", "table", "memory", CONNECTIONS, fresh=True),
)
