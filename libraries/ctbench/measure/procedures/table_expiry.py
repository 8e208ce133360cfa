"""Expiry of connection-table entries: the drain time, the steady level where as many entries come as go, and the load's
loss while very many go.

The tear-down rate of RFC 9693 is that of a command. Here entries go by timeout, as in a table in use.
"""

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ctbench.base.errors import MissingResource
from ctbench.base.units import format_count, format_rate, format_ratio
from ctbench.dut.base import CLOSED_S, Dut, wait_until
from ctbench.measure.held import LARGE_TABLE, TableTrial, conclude, open_all, others, table_trial, with_spare
from ctbench.measure.observation import Observation
from ctbench.measure.probe import Samples, TableEntries
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted, figures_by_name
from ctbench.measure.procedures.control_plane import meanwhile_kept, watch_of
from ctbench.measure.trial import Trials
from ctbench.results.evidence import TableCount
from ctbench.results.floor import Floor
from ctbench.results.metrics import BLOCKED, CONNECTIONS, MAIN_THREAD, METRICS
from ctbench.results.verdict import Code, Verdict, by_figure, by_loss
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold, Rate, Saturation, saturating

DRAIN = METRICS["drain_time"]
#: Between two looks at the table, seconds: asking takes the DUT's time too.
EVERY_S = 0.2
#: How long after the last sweep that is due entries that stayed are waited for, seconds.
PATIENCE_S = 30.0
#: Entries that go sooner than this before their timeout were not forgotten by it, seconds: a look's time, and clocks
#: that tick slowly.
_SOONER_S = 1.0
#: The rate of reaping is that between the first and the last of these shares that went.
_FIRST, _LAST = 0.05, 0.95
#: Entries of a table, each time with seconds since the last packet.
Looks = list[tuple[float, int]]


def _drain(bench: Bench, trials: Trials) -> Outcome:
    """Open connections, ask each, and look at the table until it is empty."""
    dut, how, timeout_s = bench.dut, bench.campaign.table, bench.timeout_s
    most = bench.most_held if bench.most_held is not None else how.drained
    # Each is opened and asked before the first is forgotten.
    most = min(most, how.drained, timeout_s / 2 * how.opened_per_s)
    load = Hold(max(1, int(most)), how.opened_per_s)

    def offer(made: TableTrial) -> Trial:
        with made.hold() as held:
            made.count("opened", held.open(load.connections).established)
            asking = time.monotonic()
            answered = held.ask().answered
            last = time.monotonic()
            made.count("answered", answered)
            looks = _looks(dut, last, timeout_s + dut.sweep_s + PATIENCE_S)
            made.count("in the end", 0)
            trial = held.trial()
        entries: list[float | None] = [float(entries) for _, entries in looks]
        made.samples.append(Samples("entries_after_the_last_packet", "entries", EVERY_S, entries))
        # Entries go by their timeout, not sooner.
        falls, earliest = _below(looks, 1.0), timeout_s + asking - last
        made.compare()
        if not made.faults and falls is not None and falls < earliest - _SOONER_S:
            made.faults.append(f"entries went {earliest - falls:.1f} s before their timeout of {timeout_s:g} s")
        empty_s = next((at for at, entries in looks if not entries), None)
        if empty_s is None:
            at, left = looks[-1]
            made.said = f"{left} of {load.connections} entries were left {at:.0f} s after the last packet"
        else:
            made.said = made.wrong or (
                f"{load.connections} entries were gone {empty_s:.1f} s after the last packet, "
                f"{empty_s - timeout_s:.1f} s after the last one's timeout of {timeout_s} s, of which the DUT's sweep "
                f"explains {dut.sweep_s:g} s"
            )
        made.values = {
            DRAIN.name: empty_s,
            "drain_lag": None if empty_s is None else max(0.0, empty_s - timeout_s),
            "reaped_rate": _reaped_per_s(looks),
        }
        return trial

    seen, made = table_trial(bench, trials, load, offer)
    reason = seen.reason if seen.state == "invalid" else made.said
    right = made.values[DRAIN.name] is not None and not seen.wrong
    return conclude(bench, seen, (DRAIN,), made.values, reason, right=right)


def _looks(dut: Dut, last: float, most_s: float) -> Looks:
    """Look at the table until it is empty, or for `most_s` seconds after the `last` packet."""
    looks, due = [], time.monotonic()
    while True:
        entries = dut.connections()
        at = time.monotonic() - last
        looks.append((at, entries))
        if not entries or at > most_s:
            return looks
        due += EVERY_S
        time.sleep(max(0.0, due - time.monotonic()))


def _below(looks: Looks, share: float) -> float | None:
    """Return the seconds from the last packet to the first look at less than this share; None without one."""
    whole = looks[0][1]
    return next((at for at, entries in looks if entries < whole * share), None)


def _reaped_per_s(looks: Looks) -> float | None:
    """Return the entries reaped per second, between the first and the last twentieth that went; None where these were
    not seen to go."""
    begin, end = _below(looks, 1 - _FIRST), _below(looks, 1 - _LAST)
    if begin is None or end is None:
        return None
    return (_LAST - _FIRST) * looks[0][1] / max(end - begin, EVERY_S)


TABLE_DRAIN = Scripted(
    name="table-drain",
    says="opens connections, leaves them, and asks the DUT until it counts none",
    found_out=(DRAIN.name,),
    script=_drain,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections"}),
    promised=Promise("drain time", "table", "drain", CONNECTIONS),
)


LEAST, MOST, SWEEP = (METRICS[name] for name in ("table_least", "table_most", "sweep_per_million"))
#: Between two looks at the table, seconds.
STEADY_EVERY_S = 0.2
#: Seconds beyond the longest time between two sweeps of an empty table; of the room in the table, the share that is
#: filled until then.
_NOTICED_S, _LEAD_SHARE = 1.0, 0.25
#: Room for more than what is expected.
_SPARE = 1.1


@dataclass
class SettledLevel:
    """The steady level of the table at one rate, over two sweeps, in entries. It is a saw-tooth: expired entries stay
    until the next sweep. None where the DUT could not tell, or no sweep was seen."""

    per_s: float
    #: Rate x (lifetime + timeout), which a sweep leaves; and with the time between two sweeps, when the next one comes.
    left: float
    full: float
    #: Right after a sweep; before one; in the mean; and by how much that grew per second, from one sweep to the next.
    least: float | None
    most: float | None
    mean: float | None
    slope: float
    #: Seconds from the most to the least that followed it.
    swept_s: float | None

    @property
    def values(self) -> dict[str, float | None]:
        """Figures that can be promised, by metric."""
        if self.least is None or self.most is None:
            return dict.fromkeys((LEAST.name, MOST.name, SWEEP.name))
        took = 1e6 * self.swept_s / self.most if self.swept_s else None
        return {LEAST.name: self.least / self.left, MOST.name: self.most / self.full, SWEEP.name: took}

    def __str__(self) -> str:
        if self.least is None or self.most is None:
            return f"at {format_rate(self.per_s)} the DUT did not tell"
        took = f"in {self.swept_s:.1f} s" if self.swept_s else "although no sweep was seen"
        return (
            f"at {format_rate(self.per_s)} a sweep found {format_count(self.most)} entries, where rate x (lifetime + "
            f"timeout + time between two sweeps) is {format_count(self.full)}, and left {format_count(self.least)}, "
            f"where it is {format_count(self.left)} without that time, {took}"
        )


def _wanted(bench: Bench) -> list[float]:
    """Return the profile's own rate, else those of the campaign."""
    own = bench.connections.new_per_s
    return [own] if own else bench.campaign.table.steady


def _fitting(bench: Bench) -> list[float]:
    """Return the wanted rates that the generator and the table can take. Raise `MissingResource` without one."""
    wanted, offered = _wanted(bench), bench.campaign.most.get(bench.profile.kind, math.inf)
    if min(wanted) > offered:
        raise MissingResource(
            f"The table settles at {format_rate(min(wanted))}, and the traffic generator offers "
            f"{format_rate(offered)} at most (max_cps of the testbed file): use a testbed with a faster one."
        )
    remembered_s = bench.connections.lifetime_s + bench.timeout_s + bench.dut.sweeps_within(bench.timeout_s)
    room = math.inf if bench.most_held is None else bench.most_held
    fitting = [per_s for per_s in wanted if per_s <= offered and per_s * remembered_s * _SPARE <= room]
    if not fitting:
        raise MissingResource(
            f"Connections of {remembered_s:g} s at {format_rate(min(wanted))} are more than the "
            f"{format_count(room)} that there is room for: choose a lower rate (table.steady of the campaign)."
        )
    return fitting


def _steady(bench: Bench, trials: Trials) -> Outcome:
    """Make a trial at each rate, until one does not hold."""
    fitting = _fitting(bench)
    found: dict[float, SettledLevel] = {}

    def one(per_s: float, number: int) -> Observation:
        seen, level = settle(bench, per_s)
        found[per_s] = level
        at = format_rate(per_s)
        ends = (("most", level.full, level.most), ("least", level.left, level.least))
        trials.keep(
            table=[
                TableCount(trial=number, moment=f"{end} at {at}", expected=round(due), found=round(there))
                for end, due, there in ends
                if there is not None
            ]
        )
        return seen

    for per_s in fitting:
        seen = trials.make("hold", partial(one, per_s), per_s)
        if not seen.good:
            break
    levels = list(found.values())
    left_out = ", ".join(format_rate(per_s) for per_s in _wanted(bench) if per_s not in fitting)
    room = [f"not tried, because the table or the generator is too small for that: {left_out}"] if left_out else []
    reason = seen.reason if not seen.good else "; ".join([*map(str, levels), *room])
    told = [level for level in levels if level.most is not None]
    known = told or levels
    values: dict[str, float | None] = {"table_level": known[-1].mean, "table_slope": known[-1].slope}
    outcome = conclude(bench, seen, (MOST, LEAST, SWEEP), values | _worst(known), reason, right=seen.good)
    if not seen.good or len(told) == len(levels):
        return outcome
    # A level that is not told may break a promise that the others keep.
    verdicts = {
        name: Verdict(None, Code.NOTHING, each.reason) if each.kept else each for name, each in outcome.verdicts.items()
    }
    if not told or all(each.kept is None for each in verdicts.values()):
        return Outcome.nothing(MOST, "dut", reason)
    return replace(outcome, verdicts=verdicts)


#: Connections of a lifetime at a rate, for longer than they are remembered. As many are in the table then as begin in a
#: lifetime and a timeout (the steady connections of the conference of 2017).
TABLE_STEADY = Scripted(
    name="table-steady",
    says="offers a rate for longer than connections are remembered, and compares the table's level before and after "
    "its sweeps with what rate, lifetime and timeout leave",
    found_out=(MOST.name, LEAST.name, SWEEP.name),
    script=_steady,
    loads=frozenset((Rate,)),
    abilities=frozenset({"connections"}),
    promised=Promise("table level", "table", "steady", CONNECTIONS),
)


def _worst(levels: Sequence[SettledLevel]) -> dict[str, float | None]:
    """Return the worst figure of all rates, by metric; None where one rate has none."""
    worst: dict[str, float | None] = {}
    for metric in (LEAST, MOST, SWEEP):
        known = [value for level in levels if (value := level.values[metric.name]) is not None]
        pick = min if metric.better == "higher" else max
        worst[metric.name] = pick(known) if len(known) == len(levels) else None
    return worst


def settle(bench: Bench, per_s: float) -> tuple[Observation, SettledLevel]:
    """Offer a rate until the table has settled, then for two sweeps, over which its level is taken."""
    dut, profile = bench.dut, bench.connections
    remembered_s, sweep_s = profile.lifetime_s + bench.timeout_s, dut.sweeps_within(bench.timeout_s)
    runner = bench.runner_for(bench.conditions, TableEntries(dut.connections, every_s=STEADY_EVERY_S))
    before_s = 0.0

    def offer() -> Trial:
        nonlocal before_s
        begun = time.monotonic()
        offer_little(bench, dut, per_s, remembered_s, sweep_s)
        before_s = time.monotonic() - begun
        return bench.generator.run_trial(profile, Rate(per_s), remembered_s + 3 * sweep_s)

    seen = runner.watch(offer, whole=False)
    samples = seen.samples[0]
    end = int((before_s + seen.trial.ramp_up_s + seen.trial.counted_s) / samples.every_s)
    sweep = int(sweep_s / samples.every_s)
    counted = samples.values[max(0, end - 2 * sweep) : end]
    halves = [[value for value in half if value is not None] for half in (counted[:sweep], counted[sweep:])]
    means = [statistics.fmean(each) for each in halves if each]
    known = [*halves[0], *halves[1]]
    return seen, SettledLevel(
        per_s, per_s * remembered_s, per_s * (remembered_s + sweep_s), min(known, default=None),
        max(known, default=None), statistics.fmean(means) if means else None,
        (means[1] - means[0]) / sweep_s if len(means) > 1 else 0.0, _swept_s(counted, sweep // 2, samples.every_s),
    )  # fmt: skip


def _swept_s(values: Sequence[float | None], longest: int, every_s: float) -> float | None:
    """Return the seconds of the largest fall within so many samples; None without one. It errs by half a sample at
    either end."""
    known = [(at, value) for at, value in enumerate(values) if value is not None]
    largest, took = 0.0, None
    for place, (at, value) in enumerate(known):
        after = [each for each in known[place + 1 :] if each[0] <= at + longest]
        if after and value - (low := min(after, key=lambda each: each[1]))[1] > largest:
            largest, took = value - low[1], (low[0] - at) * every_s
    return took


def offer_little(bench: Bench, dut: Dut, per_s: float, remembered_s: float, sweep_s: float) -> None:
    """Offer a light load, `per_s` at most, to a DUT that sweeps a table of short-lived entries more often than an empty
    one, until it does so. `remembered_s`: seconds that an entry stays without the sweep; `sweep_s`: seconds between two
    sweeps then."""
    if sweep_s < dut.sweep_s:
        lead = dut.sweep_s + _NOTICED_S
        few = _LEAD_SHARE * (bench.most_held or per_s * lead) / (lead + remembered_s)
        bench.generator.run_trial(bench.profile, Rate(min(few, per_s)), lead)


LOSS, HELD = METRICS["loss_while_reaping"], METRICS["held_connections"]
_WAITED = METRICS["connect_time_while_reaping"]
#: Of what a closed loop shows; seconds of that, and of the load alone.
_SHARE, _LOOP_S, _ALONE_S = 0.5, 1.0, 3.0
#: Seconds beyond the last sweep that is due.
_LATER_S = 3.0
#: Share of the table that the load's own entries may take besides.
_OWN_SHARE = 0.9
#: Entries over time are looked at so often, seconds.
_EVERY_S = 0.5
#: Fewer than this share of those that were left: they have gone.
_GONE = 0.1


def _reaping(bench: Bench, trials: Trials) -> Outcome:
    """Run a closed loop, offer half of its rate alone, then offer the same while entries expire. Return no figures
    where the load does not hold alone. Raise `MissingResource` where the table has no room for a load."""
    dut, how, promised = bench.dut, bench.campaign.table, bench.floor.limit(HELD.name)
    most = bench.most_held if bench.most_held is not None else LARGE_TABLE
    connections = int(promised or min(LARGE_TABLE, most))
    loop = trials.offer(bench.runner, saturating(bench.profile), _LOOP_S, "saturation")
    if not loop.served or loop.state == "invalid":
        why = f"a closed loop shows no rate: {loop.reason or 'nothing came back'}"
        return Outcome.nothing(LOSS, "generator", why)
    load = Rate(min(_SHARE * loop.served, _most_beside(bench, connections)))
    alone = trials.offer(bench.runner, load, _ALONE_S, "alone")
    if not alone.good:
        return Outcome.not_held(LOSS, alone)
    watch, opened, took_s = watch_of(bench), 0, 0.0

    def while_expiring(number: int) -> Observation:
        """Open connections and leave them, and offer the load for their timeout and a sweep of the table."""
        made = TableTrial(bench, Hold(with_spare(connections), how.opened_per_s), number)

        def offer() -> Trial:
            nonlocal opened, took_s
            try:
                with made.hold(others(udp=bench.connections.udp_percent == 100)) as held:
                    begun = time.monotonic()
                    opened = open_all(held, connections)
                    took_s = time.monotonic() - begun
                    made.count("opened", opened)
            finally:
                trials.keep(table=made.counts)
            return bench.generator.run_trial(bench.profile, load, bench.timeout_s + dut.sweep_s + _LATER_S)

        runner = bench.runner_for({"loss_ratio": 1.0}, TableEntries(dut.connections, every_s=_EVERY_S), watch)
        seen = runner.watch(offer, whole=False)
        limit = bench.floor.limit(LOSS.name)
        may_lose = bench.campaign.loss_ratio if limit is None else limit
        wrong = made.miscounted or _still_there(bench, connections)
        return replace(seen, conditions={"loss_ratio": may_lose}, wrong=wrong)

    # Once: what is left to expire is a million connections, which take minutes.
    seen = trials.make("beside", while_expiring, load.per_s, most=1)
    if took_s > bench.timeout_s:
        why = f"{connections} connections took {took_s:.0f} s to open: the first were forgotten meanwhile"
        return Outcome.nothing(LOSS, "dut", why)
    if promised and opened < promised:
        return Outcome.nothing(LOSS, "dut", f"{opened} of {connections} connections opened that were to expire")
    lost = max(0.0, seen.values["loss_ratio"])
    waited, before = (each.values.get("connect_time_p99") for each in (seen, alone))
    reason = (
        seen.generator_fault
        or seen.wrong
        or (
            f"{format_count(connections)} entries expired while {format_rate(load.per_s)} were offered: "
            f"{format_ratio(lost)} of it lost, {_in_seconds(waited)} connect time (p99), {_in_seconds(before)} alone"
        )
    )
    invalid = seen.state == "invalid"
    blocked_s = lost * seen.trial.counted_s
    figures = figures_by_name({
        LOSS.name: lost, _WAITED.name: waited, BLOCKED: blocked_s, HELD.name: opened,
        MAIN_THREAD: watch.longest_s,
    })  # fmt: skip
    return Outcome(
        LOSS,
        {} if invalid else figures,
        "generator" if invalid else "dut",
        reason,
        not seen.wrong,
        verdicts=_decide(bench.floor, waited, seen, reason)
        | {
            name: Verdict(None, Code.INVALID, reason)
            if invalid
            else meanwhile_kept(seen, METRICS[name], figures.get(name), limit)
            for name in (HELD.name, MAIN_THREAD)
            if (limit := bench.floor.limit(name)) is not None
        },
    )


def _most_beside(bench: Bench, connections: int) -> float:
    """Return the highest rate at which the load's own entries, which stay until a sweep, neither fill the table nor
    outnumber those that expire. Raise `MissingResource` without room."""
    limit, most = bench.dut.limit_now(), float(connections)
    if limit is not None:
        most = min(most, _OWN_SHARE * (limit - connections))
    if most <= 0:
        raise MissingResource(f"A table of {limit} entries has no room for a load besides {connections}.")
    return most / (_own_stay_s(bench) + bench.dut.sweep_s)


def _own_stay_s(bench: Bench) -> float:
    """Return the seconds that an entry of the load stays after its last packet."""
    return bench.topology.timeout_s or CLOSED_S


def _still_there(bench: Bench, connections: int) -> str:
    """Wait until the entries that were left, and those of the load, have gone, all but `_GONE`. Return the fault in
    words; empty where they have."""
    dut = bench.dut
    few = int(_GONE * connections)
    if wait_until(lambda: dut.connections() <= few, _own_stay_s(bench) + dut.sweep_s + _LATER_S, _EVERY_S):
        return ""
    return f"{dut.connections()} entries were left in the end"


def _decide(floor: Floor, waited: float | None, seen: Observation, reason: str) -> dict[str, Verdict]:
    """Return the verdicts on loss and connect time. A loss is judged by the number that may be lost. A connect time
    above its limit decides nothing where the generator was as late."""
    found: dict[str, Verdict] = {}
    right, valid = not seen.wrong, not seen.generator_fault
    if (limit := floor.limit(LOSS.name)) is not None:
        found[LOSS.name] = by_loss(*seen.lost["loss_ratio"], limit, reason, right=right, valid=valid)
    if (limit := floor.limit(_WAITED.name)) is not None:
        found[_WAITED.name] = by_figure(_WAITED, waited, limit, reason, right=right, valid=valid)
        if valid and not by_figure(_WAITED, waited, limit).kept and seen.trial.late_max_ms / 1000 >= limit:
            found[_WAITED.name] = Verdict(None, Code.GENERATOR, reason)
    return found


def _in_seconds(seconds: float | None) -> str:
    return "no" if seconds is None else _WAITED.format(seconds)


#: What it does to a load when many entries of the table expire meanwhile: connections are opened and left, and while
#: they are forgotten the DUT serves others at half of the rate at which it can.
TABLE_REAPING = Scripted(
    name="table-reaping",
    says="opens and leaves connections, and offers half of what the DUT serves while they expire",
    found_out=(LOSS.name, _WAITED.name, BLOCKED, HELD.name, MAIN_THREAD),
    script=_reaping,
    loads=frozenset((Hold, Rate, Saturation)),
    abilities=frozenset({"connections"}),
    promised=Promise("load during expiry", "table", "reaping", CONNECTIONS),
)
