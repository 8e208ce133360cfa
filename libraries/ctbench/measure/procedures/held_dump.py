"""The dump time of a connection table that holds very many connections, and the share that does not answer meanwhile.
No offered rate fills a table so much: connections are opened, held, and asked again and again."""

import time

from ctbench.base.units import format_count
from ctbench.dut.abilities import Done
from ctbench.measure.held import TableTrial, refused, table_trial
from ctbench.measure.probe import Sampling
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted, figures_by_name
from ctbench.measure.procedures import control_plane
from ctbench.measure.trial import Trials
from ctbench.results.metrics import BLOCKED, CONNECTIONS, MAIN_THREAD, METRICS
from ctbench.results.verdict import by_figure
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Hold

METRIC, HELD, LOST = METRICS["dump_time"], METRICS["held_connections"], METRICS["loss_meanwhile"]
#: Dumps that are made: as few as have a 99 % interval of their median, or fewer where they take long; at least three.
DUMPS, LONG_DUMPS, LONG_S = 9, control_plane.LEAST_DONE, 20.0
#: Seconds after which no more are waited for: something keeps them from coming.
MOST_S = 300.0


def _measure(bench: Bench, trials: Trials) -> Outcome:
    """Hold the promised number of connections, and ask them repeatedly while the table is dumped. Return no figures
    where not all were held, or where too few dumps were large enough."""
    how = bench.campaign.table
    load = Hold(int(bench.floor.limit(HELD.name) or how.drained), how.opened_per_s, asks=None)
    dumps = control_plane.table_dump(bench.dut, load.connections, every_s=0.1)
    full: list[Done] = []
    why = ""

    def offer(made: TableTrial) -> Trial:
        nonlocal dumps, full, why
        dumps = control_plane.table_dump(bench.dut, load.connections, every_s=0.1)
        done, watch = dumps.done[METRIC.name], control_plane.watch_of(bench)
        with made.hold() as held:
            opened = held.open(load.connections)
            made.count("opened", opened.established)
            lost_before, asked, lost = held.ask().lost, 0, 0
            with Sampling([dumps, watch]):
                begun = time.monotonic()
                end = begun + MOST_S
                while not bench.dut.trouble() and time.monotonic() < end:
                    if len(done) >= (LONG_DUMPS if sum(each.seconds for each in done) >= LONG_S else DUMPS):
                        break
                    answered = held.ask()
                    asked, lost = asked + answered.asked, lost + answered.lost
                lasted_s = time.monotonic() - begun
            made.count("dumped", opened.established)
            made.compare()
            trial = held.trial()
        full = dumps.full(METRIC.name)
        why = ""
        if wrong := refused(opened) or made.miscounted:
            why = f"the connections were not held: {wrong}"
        elif lost_before:
            why = f"{lost_before} connections did not answer before any dump"
        elif len(full) < control_plane.LEAST_DONE:
            why = f"{len(full)} dumps of all entries say nothing: at least {control_plane.LEAST_DONE} are needed"
        loss = lost / asked if asked else 0.0
        made.values = {
            HELD.name: opened.established, LOST.name: loss, BLOCKED: loss * lasted_s, MAIN_THREAD: watch.longest_s,
        }  # fmt: skip
        made.said = f"{lost} of {format_count(asked)} messages were not answered meanwhile"
        return trial

    seen, made = table_trial(bench, trials, load, offer, may_lose=1.0)
    if seen.state == "invalid":
        return Outcome.nothing(METRIC, "generator", seen.reason)
    if why:
        return Outcome.nothing(METRIC, "dut", why)
    record = control_plane.control_record(dumps, METRIC.name, full)
    figures = {METRIC.name: record.figure} | figures_by_name(made.values)
    said = "; ".join(filter(None, (record.text, made.said, dumps.failed)))
    verdicts = control_plane.decide_time(bench, dumps, record) | {
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
    found_out=(METRIC.name, HELD.name, MAIN_THREAD, LOST.name, BLOCKED),
    script=_measure,
    loads=frozenset((Hold,)),
    abilities=frozenset({"connections", "dump"}),
    promised=Promise("held dump time", "control plane", "dump", CONNECTIONS, long=True),
)
