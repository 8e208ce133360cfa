"""How long the connection table takes to be printed when it holds very many connections, and how many do not answer
meanwhile. No rate fills a table so far: connections are opened, held, and asked something again and again."""

import time
from dataclasses import dataclass, field

from ctbench.base.units import format_count
from ctbench.measure.held import TableTrial, refused
from ctbench.measure.probe import Sampling
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted, figures_by_name
from ctbench.measure.procedures import control_plane
from ctbench.measure.trial import Trials
from ctbench.results.metrics import CONNECTIONS, MAIN_THREAD, METRICS
from ctbench.results.record_model import Estimate
from ctbench.results.verdict import by_figure, by_interval
from ctbench.traffic.generator import Holding, Opened
from ctbench.traffic.loads import Hold

METRIC, HELD, LOST = METRICS["dump_time"], METRICS["held_connections"], METRICS["loss_meanwhile"]
#: Dumps that are made: as few as have a 99 % interval of their median, or fewer where they take long; at least three.
DUMPS, LONG_DUMPS, LONG_S = 9, control_plane.LEAST_DONE, 20.0
#: Seconds after which no more are waited for: something keeps them from coming.
MOST_S = 300.0


@dataclass
class _Dumped(TableTrial):
    """Connections are opened, and asked again and again while the table is printed."""

    may_lose = 1.0
    opened: Opened | None = None
    #: Connections that were asked something while the table was printed, each time, and that did not answer.
    asked: int = 0
    lost: int = 0
    #: Those that did not answer before any dump.
    lost_before: int = 0
    #: The longest stall of the main thread, where it can be seen.
    stall: dict[str, Estimate] = field(default_factory=dict)

    def begin(self) -> None:
        self.dumps = control_plane.TableDump(self.dut, expected=self.load.connections, every_s=0.1)

    def work(self, held: Holding) -> None:
        self.opened = opened = held.open(self.load.connections)
        self.counts.take("opened", opened.established)
        self.lost_before = held.ask().lost
        watch = control_plane.watch_of(self.bench)
        with Sampling([self.dumps, watch]):
            end = time.monotonic() + MOST_S
            done = self.dumps.done[METRIC.name]
            while not self.bench.dut.trouble() and time.monotonic() < end:
                if len(done) >= (LONG_DUMPS if sum(each.seconds for each in done) >= LONG_S else DUMPS):
                    break
                answered = held.ask()
                self.asked, self.lost = self.asked + answered.asked, self.lost + answered.lost
        self.stall = control_plane.main_thread(watch)
        self.counts.take("dumped", opened.established)


def _measure(bench: Bench, trials: Trials) -> Outcome:
    """As many connections as are promised are opened and held, and asked while the table is printed. Nothing where they
    were not all held, or too few dumps had all of them."""
    how = bench.campaign.table
    load = Hold(int(bench.floor.limit(HELD.name) or how.drained), how.opened_per_s, asks=None)
    seen, made = _Dumped.make(bench, trials, load)
    assert made.opened is not None
    if seen.state == "invalid":
        return Outcome.nothing(METRIC, "generator", seen.reason)
    full = [each for each in made.dumps.done[METRIC.name] if each.size >= control_plane.LEAST_SIZE * load.connections]
    why = ""
    if wrong := refused(made.opened) or made.counts.wrong:
        why = f"the connections were not held: {wrong}"
    elif made.lost_before:
        why = f"{made.lost_before} connections did not answer before any dump"
    elif len(full) < control_plane.LEAST_DONE:
        why = f"{len(full)} dumps of all entries say nothing: at least {control_plane.LEAST_DONE} are needed"
    if why:
        return Outcome.nothing(METRIC, "dut", why)
    record = control_plane.control_record(made.dumps, METRIC.name, full)
    loss = made.lost / made.asked if made.asked else 0.0
    held = figures_by_name({HELD.name: made.opened.established, LOST.name: loss})
    figures = {METRIC.name: control_plane.figure_of(record)} | held | made.stall
    unanswered = f"{made.lost} of {format_count(made.asked)} messages were not answered meanwhile"
    said = f"{control_plane.sentence(record)}; {unanswered}"
    verdicts = by_interval(
        METRIC, figures[METRIC.name], bench.floor.limit(METRIC.name), f"median of {record.number}"
    ) | {
        name: by_figure(METRICS[name], figures[name].value, each.limit, said)
        for name, each in bench.floor.thresholds.items()
        if name in figures and name != METRIC.name
    }
    trials.keep(control=[record])
    return Outcome(METRIC, figures, "dut", said, True, verdicts=verdicts)


HELD_DUMP = Scripted(
    name="held-dump",
    says="holds connections, prints the connection table again and again, and counts the messages that are not "
    "answered meanwhile",
    found_out=(METRIC.name, HELD.name, MAIN_THREAD, LOST.name),
    script=_measure,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections", "dump"}),
    promised=Promise("held dump time", "control plane", "dump", CONNECTIONS, long=True),
)
