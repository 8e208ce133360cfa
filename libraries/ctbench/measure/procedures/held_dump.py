"""How long the connection table takes to be printed when it holds very many connections, and how many do not answer
meanwhile. No rate fills a table so far: connections are opened, held, and asked something again and again."""

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from ctbench.base.units import format_count
from ctbench.dut.control_plane import ControlPlaneDut, Done, DumpingDut, ThreadLook
from ctbench.dut.kind import Ability
from ctbench.dut.table import TableDut
from ctbench.measure.beside import LEAST_DONE, by_interval, control_record, figure_of, sentence
from ctbench.measure.campaign import Campaign
from ctbench.measure.control_actions import TableDump
from ctbench.measure.expected import Expected
from ctbench.measure.held import Counts, refused
from ctbench.measure.main_thread import MainThreadWatch
from ctbench.measure.observation import Observation
from ctbench.measure.probe import Sampling
from ctbench.measure.procedure import Bench, Decision, Outcome
from ctbench.measure.table_settings import TableSettings
from ctbench.measure.table_trials import TableTrials
from ctbench.results.evidence import TableCount
from ctbench.results.figure import Figure
from ctbench.results.metrics import MAIN_THREAD, METRICS, Metric
from ctbench.results.record import LimitedBy
from ctbench.traffic.generator import Trial
from ctbench.traffic.holding import HoldingGenerator, Opened
from ctbench.traffic.loads import Hold, Load
from ctbench.traffic.profiles import ConnectionProfile, Profile

METRIC, HELD, LOST = METRICS["dump_time"], METRICS["held_connections"], METRICS["loss_meanwhile"]
#: Dumps that are made: as few as have a 99 % interval of their median, or fewer where they take long; at least three.
DUMPS, LONG_DUMPS, LONG_S = 9, LEAST_DONE, 20.0
#: Seconds after which no more are waited for: something keeps them from coming.
MOST_S = 300.0


@dataclass
class _Dumped:
    """What one trial came to."""

    counts: Counts
    dumps: TableDump
    opened: Opened | None = None
    #: Connections that were asked something while the table was printed, each time, and that did not answer.
    asked: int = 0
    lost: int = 0
    #: Those that did not answer before any dump.
    lost_before: int = 0
    longest_s: float | None = None


@dataclass(frozen=True)
class HeldDump:
    """Implements `Procedure`."""

    how: TableSettings = field(default_factory=TableSettings)
    name: str = "held-dump"
    times: tuple[str, ...] = (METRIC.name,)
    loads: frozenset[type[Load]] = frozenset((Hold,))
    abilities: frozenset[Ability] = frozenset({"connections", "dump"})
    found_out: Collection[str] = (METRIC.name, HELD.name, MAIN_THREAD, LOST.name)
    headroom: float = 0.0

    def metric(self, profile: Profile) -> Metric:
        """See `Procedure.metric`."""
        return METRIC

    def expected(self, profile: Profile, campaign: Campaign) -> Expected:
        """See `Procedure.expected`: how long follows from the floor, which is not known here."""
        return Expected(1, LONG_S)

    def run(self, bench: Bench) -> Outcome:
        """See `Procedure.run`."""
        load = Hold(int(bench.limits.get(HELD.name) or self.how.drained), self.how.opened_per_s, asks=None)
        trials: TableTrials[_Dumped] = TableTrials(bench, METRIC)

        def one(number: int) -> tuple[Observation, _Dumped, list[TableCount]]:
            seen, made = _dump(bench, number, load)
            return seen, made, made.counts.made

        return trials.run(load.opened_per_s, one) or _outcome(bench, load, trials)


def _dump(bench: Bench, number: int, load: Hold) -> tuple[Observation, _Dumped]:
    dut, generator, profile = bench.dut, bench.generator, bench.profile
    assert isinstance(dut, TableDut) and isinstance(dut, DumpingDut), "both abilities were required"
    assert isinstance(generator, HoldingGenerator) and isinstance(profile, ConnectionProfile), "they were required"
    made = _Dumped(Counts(dut, number), TableDump(dut, expected=load.connections, every_s=0.1))
    done, counts = made.dumps.done[METRIC.name], made.counts

    def offer() -> Trial:
        counts.take("before", 0)
        with generator.hold(profile, load) as held:
            made.opened = opened = held.open(load.connections)
            counts.take("opened", opened.established)
            made.lost_before = held.ask().lost
            with _watch(bench) as watch, Sampling([made.dumps]):
                end = time.monotonic() + MOST_S
                while not _enough(done) and not bench.dut.trouble() and time.monotonic() < end:
                    answered = held.ask()
                    made.asked, made.lost = made.asked + answered.asked, made.lost + answered.lost
            made.longest_s = watch.longest_s if watch else None
            counts.take("dumped", opened.established)
            return held.trial()

    runner = replace(bench, conditions={"loss_ratio": 1.0}).runner
    seen = runner.watch(offer)
    return replace(seen, wrong=counts.wrong), made


def _watch(bench: Bench) -> "MainThreadWatch | nullcontext[None]":
    if not isinstance(bench.dut, ControlPlaneDut):
        return nullcontext()
    look: Callable[[], ThreadLook | None] = bench.dut.control_plane.main_thread
    return MainThreadWatch(look)


def _enough(done: Sequence[Done]) -> bool:
    long = sum(each.seconds for each in done) >= LONG_S
    return len(done) >= (LONG_DUMPS if long else DUMPS)


def _outcome(bench: Bench, load: Hold, trials: TableTrials[_Dumped]) -> Outcome:
    """What the last trial says."""
    seen, made = trials.last, trials.made[-1]
    assert made.opened is not None
    steps, counts = tuple(trials.steps), tuple(trials.counts)

    def nothing(why: str, limited_by: LimitedBy) -> Outcome:
        return Outcome(METRIC, {}, limited_by, why, held=False, steps=steps, table=counts)

    if seen.state == "invalid":
        return nothing(seen.reason, "generator")
    if why := refused(made.opened) or made.counts.wrong:
        return nothing(f"the connections were not held: {why}", "dut")
    if made.lost_before:
        return nothing(f"{made.lost_before} connections did not answer before any dump", "dut")
    full = [each for each in made.dumps.done[METRIC.name] if each.size >= 0.8 * load.connections]
    if len(full) < LEAST_DONE:
        return nothing(f"{len(full)} dumps of all entries say nothing: at least {LEAST_DONE} are needed", "dut")
    record = control_record(made.dumps, METRIC.name, full)
    loss = made.lost / made.asked if made.asked else 0.0
    figures = {
        METRIC.name: figure_of(record),
        HELD.name: Figure(value=made.opened.established, unit=HELD.unit.name),
        LOST.name: Figure(value=loss, unit=LOST.unit.name),
    }
    if made.longest_s is not None:
        figures[MAIN_THREAD] = Figure(value=made.longest_s, unit=METRICS[MAIN_THREAD].unit.name)
    said = f"{sentence(record)}; {made.lost} of {format_count(made.asked)} messages were not answered meanwhile"
    decisions = {
        name: by_interval(METRIC, record, limit)
        if name == METRIC.name
        else Decision(METRICS[name].keeps(figures[name].value, limit), said)
        for name, limit in bench.limits.items()
        if name in figures
    }
    return Outcome(
        METRIC, figures, "dut", said, held=True, steps=steps, table=counts, control=(record,), decisions=decisions
    )
