"""The configured timeout, compared with the one that the DUT's entries have: the DUT reports how long each still stays.

Its answer takes a second, where a table that drains takes the timeout and a sweep (`table_expiry`).
"""

from ctbench.measure.held import TableTrial, conclude, table_trial
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, METRICS
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold

LONGEST = METRICS["longest_timeout"]
#: Enough for each thread of a DUT to have some.
_CONNECTIONS = 100


def _timeout_policy(bench: Bench, trials: Trials) -> Outcome:
    """Open connections, ask each, and ask the DUT for the longest time that an entry has left."""

    def offer(made: TableTrial) -> Trial:
        with made.hold() as held:
            held.open(_CONNECTIONS)
            answered = held.ask().answered
            made.values[LONGEST.name] = bench.dut.longest_timeout_s()
            made.count("answered", answered)
            made.compare()
            return held.trial()

    seen, made = table_trial(bench, trials, Hold(_CONNECTIONS, bench.campaign.table.opened_per_s), offer)
    longest_s = made.values[LONGEST.name]
    told = f"{_CONNECTIONS} connections answered, and the DUT told of an entry that stays for "
    told += "no time" if longest_s is None else f"{longest_s:g} s more, where {bench.timeout_s:g} s were asked for"
    right = longest_s is not None and not seen.wrong
    return conclude(bench, seen, (LONGEST,), made.values, seen.reason or told, right=right)


TIMEOUT_POLICY = Scripted(
    name="timeout-policy",
    says="opens connections, asks each, and asks the DUT how long their entries still stay",
    found_out=(LONGEST.name,),
    script=_timeout_policy,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections", "timeouts"}),
    promised=Promise("timeout", "table", "timeout-policy", CONNECTIONS),
)
