"""How fast the connection table drains: connections are opened and left, and the DUT is asked until it knows none.

The tear-down rate of RFC 9693 is that of a command; here entries go by timeout, which is what a table in use lives by.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ctbench.dut.kind import Ability
from ctbench.dut.table import TableDut
from ctbench.measure.campaign import Campaign
from ctbench.measure.expected import Expected
from ctbench.measure.held import Counts
from ctbench.measure.observation import Observation
from ctbench.measure.probe import Samples
from ctbench.measure.procedure import Bench, Decision, Outcome, figures_by_name
from ctbench.measure.table_settings import TableSettings
from ctbench.measure.table_trials import TableTrials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import HoldingGenerator
from ctbench.traffic.loads import Hold, Load
from ctbench.traffic.profiles import ConnectionProfile, Profile

METRIC = METRICS["drain_time"]
#: Between two looks at the table, seconds: asking takes the DUT's time too.
EVERY_S = 0.2
#: How long after the last sweep that is due somebody waits for entries that stayed, seconds.
PATIENCE_S = 30.0
#: What a sweep itself may take, and a look at the table, seconds.
_LATER_S = 2.0
#: Entries that go sooner than this before their timeout were not forgotten by it, seconds: a look's time, and clocks
#: that tick slowly.
_SOONER_S = 1.0
#: The rate of reaping is that between the first and the last of these shares that went.
_FIRST, _LAST = 0.05, 0.95


@dataclass
class Drained:
    """What was seen of a table that drains: entries at times since the last packet."""

    counts: Counts
    #: When the first connection was asked for the last time, relative to the last packet (negative), seconds.
    first_asked_s: float = 0.0
    seen: list[tuple[float, int]] = field(default_factory=list)

    @property
    def empty_s(self) -> float | None:
        """When none was left; None where some stayed."""
        return next((at for at, entries in self.seen if not entries), None)

    @property
    def falls_s(self) -> float | None:
        """When entries were first seen to be fewer than before."""
        return self._below(1.0)

    @property
    def reaped_per_s(self) -> float | None:
        """Entries per second, between the first and the last twentieth that went."""
        begin, end = self._below(1 - _FIRST), self._below(1 - _LAST)
        whole = self.seen[0][1] if self.seen else 0
        if begin is None or end is None:
            return None
        return (_LAST - _FIRST) * whole / max(end - begin, EVERY_S)

    def _below(self, share: float) -> float | None:
        whole = self.seen[0][1] if self.seen else 0
        return next((at for at, entries in self.seen if entries < whole * share), None)


@dataclass(frozen=True)
class TableDrain:
    """Implements `Procedure`."""

    how: TableSettings
    name: str = "table-drain"
    loads: frozenset[type[Load]] = frozenset((Hold,))
    abilities: frozenset[Ability] = frozenset({"connections"})
    found_out: Collection[str] = (METRIC.name,)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: the timeout is the topology's, which is not known here."""
        return Expected(1, 2 * self.how.drained / self.how.opened_per_s)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        dut = bench.dut
        assert isinstance(dut, TableDut), "its ability was required"
        self.how.require_time(timeout_of(bench) + dut.sweep_s + _LATER_S, "Waiting for the table to drain")
        most = bench.most_held if bench.most_held is not None else self.how.drained
        # Each is opened and asked before the first is forgotten.
        most = min(most, self.how.drained, timeout_of(bench) / 2 * self.how.opened_per_s)
        load = Hold(max(1, int(most)), self.how.opened_per_s)
        trials: TableTrials[Drained] = TableTrials(bench, METRIC)

        def one(number: int) -> tuple[Observation, Drained, Sequence[TableCount]]:
            seen, made = drain(bench, number, load)
            return seen, made, made.counts.made

        return trials.run(load.opened_per_s, one) or _outcome(bench, load, trials)


def drain(bench: Bench, number: int, load: Hold) -> tuple[Observation, Drained]:
    """Open connections, ask each, and look at the table until it is empty. `number`: of the trial in its test."""
    dut, generator, profile = bench.dut, bench.generator, bench.profile
    assert isinstance(dut, TableDut) and isinstance(generator, HoldingGenerator), "both were required"
    assert isinstance(profile, ConnectionProfile), "the metric is of connections"
    made = Drained(Counts(dut, number))

    def offer() -> Trial:
        made.counts.take("before", 0)
        with generator.hold(profile, load) as held:
            opened = held.open(load.connections)
            made.counts.take("opened", opened.established)
            asking = time.monotonic()
            answered = held.ask()
            last = time.monotonic()
            made.first_asked_s = asking - last
            made.counts.take("answered", answered.answered)
            _look(dut, made, last, timeout_of(bench) + dut.sweep_s + PATIENCE_S)
            made.counts.take("in the end", 0)
            return held.trial()

    runner = replace(bench, conditions={"loss_ratio": 0.0}, probes=()).runner
    seen = runner.watch(offer)
    series = Samples("entries_after_the_last_packet", "entries", EVERY_S, [float(entries) for _, entries in made.seen])
    return replace(seen, wrong=made.counts.wrong or _too_soon(made, timeout_of(bench)), samples=(series,)), made


def timeout_of(bench: Bench) -> int:
    """Seconds after its last packet that an open connection is remembered."""
    own = bench.topology.timeout_s if bench.topology else None
    return own or 30


def _look(dut: TableDut, made: Drained, last: float, most_s: float) -> None:
    """Look at the table until it is empty, or for `most_s` seconds after `last`."""
    due = time.monotonic()
    while True:
        entries = dut.connections()
        at = time.monotonic() - last
        made.seen.append((at, entries))
        if not entries or at > most_s:
            return
        due += EVERY_S
        time.sleep(max(0.0, due - time.monotonic()))


def _too_soon(made: Drained, timeout_s: float) -> str:
    """How entries went before their timeout; empty where none did."""
    falls, earliest = made.falls_s, timeout_s + made.first_asked_s
    if falls is None or falls >= earliest - _SOONER_S:
        return ""
    return f"entries went {earliest - falls:.1f} s before their timeout of {timeout_s:g} s"


def _outcome(bench: Bench, load: Hold, trials: TableTrials[Drained]) -> Outcome:
    seen, made, timeout_s = trials.last, trials.made[-1], timeout_of(bench)
    invalid, empty_s, wrong = seen.state == "invalid", made.empty_s, trials.last.wrong
    limited_by: LimitedBy = "generator" if invalid else "dut"
    left, sweep_s = made.seen[-1][1], bench.dut.sweep_s if isinstance(bench.dut, TableDut) else 0.0
    if invalid:
        reason = seen.reason
    elif wrong and empty_s is not None:
        reason = wrong
    elif empty_s is None:
        reason = f"{left} of {load.connections} entries were left {made.seen[-1][0]:.0f} s after the last packet"
    else:
        reason = (
            f"{load.connections} entries were gone {empty_s:.1f} s after the last packet, "
            f"{empty_s - timeout_s:.1f} s after the last one's timeout of {timeout_s} s, of which the DUT's sweep "
            f"explains {sweep_s:g} s"
        )
    figures = figures_by_name({
        METRIC.name: empty_s,
        "drain_lag": None if empty_s is None else max(0.0, empty_s - timeout_s),
        "reaped_rate": made.reaped_per_s,
    })  # fmt: skip
    limit = bench.limits.get(METRIC.name)
    held = empty_s is not None and not wrong
    decisions = {}
    if limit is not None:
        kept = None if invalid else held and empty_s is not None and empty_s <= limit
        decisions[METRIC.name] = Decision(kept, reason)
    return Outcome(
        METRIC, {} if invalid else figures, limited_by, reason, held=held and not invalid, steps=tuple(trials.steps),
        table=tuple(trials.counts), decisions=decisions,
    )  # fmt: skip
