"""Whether the timeout that a DUT was given is the one that its entries have: the DUT tells how long each still stays.

What is told takes a second, where a table that drains takes the timeout and a sweep (`table_expiry`).
"""

from dataclasses import dataclass

from ctbench.measure.held import TableTrial, conclude
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Holding
from ctbench.traffic.loads import Hold

LONGEST = METRICS["longest_timeout"]
#: Enough for each thread of a DUT to have some.
_CONNECTIONS = 100


@dataclass
class _Told(TableTrial):
    """Connections are opened and asked, and the DUT is asked for the longest time that an entry has left."""

    longest_s: float | None = None

    def work(self, held: Holding) -> None:
        held.open(self.load.connections)
        answered = held.ask().answered
        self.longest_s = self.dut.longest_timeout_s()
        self.counts.take("answered", answered)


def _timeout_policy(bench: Bench, trials: Trials) -> Outcome:
    seen, made = _Told.make(bench, trials, Hold(_CONNECTIONS, bench.campaign.table.opened_per_s))
    longest_s = made.longest_s
    told = f"{_CONNECTIONS} connections answered, and the DUT told of an entry that stays for "
    told += "no time" if longest_s is None else f"{longest_s:g} s more, where {bench.timeout_s:g} s were asked for"
    values = {LONGEST.name: longest_s}
    return conclude(
        bench, seen, (LONGEST,), values, seen.reason or told, right=longest_s is not None and not seen.wrong
    )


TIMEOUT_POLICY = Scripted(
    name="timeout-policy",
    says="opens connections, asks each, and asks the DUT how long their entries still stay",
    found_out=(LONGEST.name,),
    script=_timeout_policy,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections", "timeouts"}),
    promised=Promise("timeout", "table", "timeout-policy", CONNECTIONS),
)
