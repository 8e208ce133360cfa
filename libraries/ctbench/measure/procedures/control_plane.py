"""Times of the control plane's actions under a load, and the load's loss meanwhile."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from time import monotonic as _now

import numpy as np

from ctbench.base.errors import TestbedError
from ctbench.base.units import format_count
from ctbench.dut.abilities import COMES, FLOWS_ALLOWED, ControlPlane, Done
from ctbench.dut.base import CLOSED_S, Dut
from ctbench.dut.kind import Ability
from ctbench.dut.registry import ruleset_of
from ctbench.measure.observation import Observation
from ctbench.measure.probe import MainThreadWatch, Probe
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted, figures_by_name
from ctbench.measure.trial import Trials, ignore
from ctbench.results.evidence import ControlRecord
from ctbench.results.metrics import BLOCKED, MAIN_THREAD, MEANWHILE, METRICS, PACKETS, Metric
from ctbench.results.record_model import Estimate
from ctbench.results.statistics import median_interval, within
from ctbench.results.verdict import Code, Verdict, by_figure, by_interval, by_loss, weakest
from ctbench.traffic.loads import Load, Rate
from ctbench.traffic.profiles import PacketProfile

#: Share of what there should be: what was done with less came while the load still filled the DUT.
LEAST_SIZE = 0.8


class NothingLeft(TestbedError):
    """Nothing is there that an action could be done with: it did not fail."""


@dataclass(kw_only=True)
class Action(Probe):
    """A probe that makes the control plane work again and again, and records the times."""

    unit = "s"
    #: What the series of its times is called, and the time between two of them, seconds.
    name: str
    every_s: float
    #: What is done, for a sentence: `dump`; what `Done.size` counts: `entries`.
    title: str
    sizes: str
    #: Does it once, by `did`; gets ready before the load; puts things back after it.
    do: "Callable[[Action], float]"
    begin: "Callable[[Action], None]" = ignore
    end: "Callable[[Action], None]" = ignore
    #: How large `Done.size` should be while the load lasts; 0 where that is not known.
    expected: float = 0.0
    #: What it did that nothing may do, a sentence; and what is to be said besides its times. Empty where nothing.
    wrong: str = ""
    remark: str = ""
    #: All that was done so far, by the metric of its time; how many tries worked, and why each that failed did.
    done: dict[str, list[Done]] = field(default_factory=lambda: defaultdict(list))
    worked: int = 0
    errors: list[str] = field(default_factory=list)

    def before(self) -> None:
        self.begin(self)

    def sample(self) -> float:
        try:
            value = self.do(self)
        except NothingLeft:
            raise
        except (TestbedError, ValueError) as error:  # as `Sampling` has it
            self.errors.append(str(error))
            raise
        self.worked += 1
        return value

    def after(self) -> None:
        self.end(self)

    def did(self, metric: str, done: Done) -> float:
        """Record one action. Return its seconds."""
        self.done[metric].append(done)
        return done.seconds

    def full(self, metric: str) -> list[Done]:
        """Return what was done with enough to count."""
        return [each for each in self.done[metric] if each.size >= LEAST_SIZE * self.expected]

    @property
    def failed(self) -> str:
        """How many tries failed, and why the first of them did; empty where none did."""
        tried = len(self.errors) + self.worked
        return f"{len(self.errors)} of {tried} tries failed: {self.errors[0].rstrip('.')}" if self.errors else ""


def table_dump(dut: Dut, expected: float, every_s: float = 0.4, *, fills: bool = False) -> Action:
    """Return an action that dumps the connection table. `fills`: only the load fills it, which begins later and ends
    sooner: an empty table is not dumped then, as a dump that prints nothing is one that failed."""
    name = "dump_time"

    def do(action: Action) -> float:
        if fills and not dut.connections():
            raise NothingLeft("The load has no entry in the table.")
        return action.did(name, dut.dump_connections())

    return Action(name=name, every_s=every_s, title="dump", sizes="entries", expected=expected, do=do)


def port_churn(plane: ControlPlane) -> Action:
    """Return an action that adds ports one after the other, then deletes them, and so on, in addition to those that
    stay. A sample is one change: ten a second, as a cluster adds and deletes some six containers in that time (2024,
    `ovs-vswitchd-many-cpus`)."""
    names = [f"{COMES}{number}" for number in range(10)]
    turns = cycle([("port_add_time", plane.add_port), ("port_delete_time", plane.delete_port)])
    changes = ((metric, change, name) for metric, change in turns for name in names)

    def begin(_action: Action) -> None:
        plane.add_port(names[0])
        plane.check_port(names[0])
        plane.delete_port(names[0])

    def do(action: Action) -> float:
        metric, change, name = next(changes)
        return action.did(metric, change(name))

    return Action(
        name="port_time", every_s=0.1, title="port", sizes="ports that stay",
        begin=begin, do=do, end=lambda _action: plane.delete_ports(names),
    )  # fmt: skip


def revalidation(
    plane: ControlPlane,
    metric: str = "revalidation_time",
    every_s: float = 0.7,
    *,
    forced: bool = False,
    expected: float = 0.0,
) -> Action:
    """Return an action that asks how long the last revalidation round took; with `forced`, it forces a round before
    each time. By itself a round begins half a second after the last one ended, so each is seen once at most."""
    flows, least = math.inf, FLOWS_ALLOWED

    def do(action: Action) -> float:
        nonlocal flows, least
        if forced:
            plane.revalidate_all()
        found = plane.revalidation()
        least = min(least, found.limit)
        lowered = f"was lowered from {FLOWS_ALLOWED} to {least}"
        action.remark = f"the flow limit {lowered if least < FLOWS_ALLOWED else f'stayed at {FLOWS_ALLOWED}'}"
        # The last round began before now, when there may have been fewer: as many as there were before.
        size, flows = min(flows, found.flows), found.flows
        return action.did(metric, Done(found.seconds, size))

    return Action(
        name=metric, every_s=every_s, title="round", sizes="flows", expected=expected,
        begin=lambda _action: plane.allow_flows(FLOWS_ALLOWED), do=do,  # as many as in 2024
    )  # fmt: skip


#: Open vSwitch collects the statistics of all interfaces each 5 s, and no setting makes it do so more often
#: (`stats-update-interval`, ovs-vswitchd.conf.db(5)).
STATISTICS_PERIOD_S = 5.0
#: Length of the stretch in which a collection is looked for, seconds: a thousand ports take some 20 ms.
_STRETCH_S = 0.06


def statistics_of(plane: ControlPlane, ports: int) -> Action:
    """Return an action that only samples the main thread's CPU time: each collection of the interfaces' statistics is a
    burst in it. `ports`: those of the bridge in addition to the load's."""
    # When the thread was looked at, and its CPU time so far.
    seen: list[tuple[float, float]] = []

    def do(_action: Action) -> float:
        look = plane.main_thread()
        if look is None:
            raise TestbedError("The main thread cannot be seen from this machine.")
        seen.append((_now(), look.ran_s))
        return look.ran_s - seen[-2:][0][1]

    def end(action: Action) -> None:
        """Record the largest burst of each whole period as a collection."""
        action.done["statistics_time"] = [Done(burst, ports) for burst in bursts(seen)]

    return Action(name="main_thread_ran", every_s=0.02, title="collection", sizes="ports that stay", do=do, end=end)


def bursts(seen: Sequence[tuple[float, float]]) -> list[float]:
    """Return the largest CPU time of any stretch that began in each whole period. What comes once in a period, and
    takes longer than all else, is seen once in each."""
    if not seen:
        return []
    begun, last = seen[0][0], 0
    found = [0.0] * int((seen[-1][0] - begun) / STATISTICS_PERIOD_S)
    for first, (at, ran) in enumerate(seen):
        last = max(last, first)
        while last + 1 < len(seen) and seen[last + 1][0] <= at + _STRETCH_S:
            last += 1
        period = int((at - begun) / STATISTICS_PERIOD_S)
        if period < len(found):
            found[period] = max(found[period], seen[last][1] - ran)
    return found


#: Times that say something.
LEAST_DONE = 3
#: What the load loses under the action is a figure: it does not end the trial.
_WHATEVER_IS_LOST = {"loss_ratio": 1.0}


def timed(
    name: str,
    says: str,
    times: tuple[str, ...],
    action: Callable[[Bench], Action],
    *,
    least_s: float = 0.0,
    rounds: int = 1,
    loads: tuple[type[Load], ...] = (Rate,),
    abilities: tuple[Ability, ...] = ("control plane",),
    promised: Promise,
) -> Scripted:
    """Return a procedure that offers the load alone once, then `rounds` times with an action. `times`: the metrics of
    its times, the one looked for first. `least_s`: seconds of a trial with the action, at least."""
    return Scripted(
        name=name,
        says=says,
        # What became of main thread and load meanwhile, too.
        found_out=(*times, MAIN_THREAD, *MEANWHILE),
        script=partial(_measure, times, action, least_s, rounds=rounds),
        loads=frozenset(loads),
        abilities=frozenset(abilities),
        promised=promised,
    )


def _measure(
    times: Sequence[str],
    action_of: Callable[[Bench], Action],
    least_s: float,
    bench: Bench,
    trials: Trials,
    rounds: int = 1,
) -> Outcome:
    """Offer the load alone, then with the action. Return no figures where the load is not held alone, or too few
    actions were large enough."""
    settings, metric = bench.campaign.control_plane, METRICS[times[0]]
    load = Rate(settings.rate(bench.profile))
    alone = trials.offer(bench.runner, load, settings.alone_duration, "alone")
    if not alone.good:
        return Outcome.not_held(metric, alone)
    action, watches = action_of(bench), list[MainThreadWatch]()

    def act(_number: int) -> Observation:
        watches.append(watch_of(bench))
        runner = bench.runner_for(_WHATEVER_IS_LOST, action, watches[-1])
        seen = runner.offer(load, max(settings.trial_duration, least_s))
        return replace(seen, conditions=_limits(bench))

    # Once: what the action took does not depend on who else lost packets, and is decided apart from them.
    made = [trials.make("beside", act, load.per_s, most=1) for _ in range(rounds)]
    if action.wrong:
        broken = {metric.name: by_figure(metric, None, 0.0, action.wrong)}
        return Outcome(metric, {}, "dut", action.wrong, False, verdicts=broken)
    full = {name: action.full(name) for name in times}
    if few := next((name for name, done in full.items() if len(done) < LEAST_DONE), ""):
        return Outcome.nothing(metric, "dut", _too_few(action, few, len(full[few])))
    records = [control_record(action, name, done) for name, done in full.items()]
    figures = {each.metric: each.figure for each in records}
    trials.keep(control=records)
    verdicts: dict[str, Verdict] = {}
    for each in records:
        verdicts |= decide_time(bench, action, each)
    # One round may lose the most of the load, and another one let it wait the longest.
    by_round = [(seen, main_thread(*watches) | _meanwhile(seen)) for seen in made]
    for name in (MAIN_THREAD, *MEANWHILE):
        if known := [found[name] for _, found in by_round if name in found]:
            figures[name] = max(known, key=lambda figure: figure.value)
        if (limit := bench.floor.limit(name)) is not None:
            judged = [meanwhile_kept(seen, METRICS[name], found.get(name), limit) for seen, found in by_round]
            kept = weakest(verdict.kept for verdict in judged)
            verdicts[name] = next(verdict for verdict in judged if verdict.kept is kept)
    said = "; ".join(filter(None, [*(each.text for each in records), action.failed]))
    return Outcome(metric, figures, "dut", said, True, verdicts=verdicts)


def _limits(bench: Bench) -> Mapping[str, float]:
    """Return the loss limit for the trial with the action: the one that the SLA allows meanwhile, else the one for any
    trial, of the SLA or the campaign."""
    promised = bench.floor.limit("loss_meanwhile")
    known = bench.conditions
    return {"loss_ratio": known.get("loss_ratio", bench.campaign.loss_ratio) if promised is None else promised}


def plane_of(bench: Bench) -> ControlPlane:
    """Return the control plane of a DUT that was required to have one."""
    plane = bench.dut.control_plane
    assert plane is not None, "its ability was required"
    return plane


def watch_of(bench: Bench) -> MainThreadWatch:
    """Return a watch of the control plane's main thread. It sees nothing on a DUT without one."""
    plane = bench.dut.control_plane
    return MainThreadWatch(plane.main_thread if plane else lambda: None)


def main_thread(*watches: MainThreadWatch) -> dict[str, Estimate]:
    """Return the longest stall of the main thread as a figure; empty where it is on another machine."""
    stalls = [stall for watch in watches if (stall := watch.longest_s) is not None]
    return figures_by_name({MAIN_THREAD: max(stalls, default=None)})


def _too_few(action: Action, metric: str, number: int) -> str:
    every = action.done[metric]
    most = format_count(max((each.size for each in every), default=0.0))
    least = format_count(LEAST_SIZE * action.expected)
    return (
        f"{METRICS[metric].title}: {number} of {len(every)} times with {least} "
        f"{action.sizes} or more ({most} at most), which says nothing: at least {LEAST_DONE} are needed"
    )


def decide_time(bench: Bench, action: Action, record: ControlRecord) -> dict[str, Verdict]:
    """Return the verdict on a time by the interval of its median; none where nothing is promised. What failed has no
    time, which may be longer than all others: with it the promise may be missed, and is not met."""
    limit, what = bench.floor.limit(record.metric), f"median of {record.number}"
    found = by_interval(METRICS[record.metric], record.figure, limit, what)
    if action.failed:
        why = f"{METRICS[record.metric].title}: {action.failed}"
        found |= {name: Verdict(None, Code.FAULT, why) for name, each in found.items() if each.kept}
    return found


def control_record(action: Action, metric: str, done: Sequence[Done]) -> ControlRecord:
    """Return the record of an action's times that count."""
    times = [each.seconds for each in done]
    low, high = median_interval(times)
    return ControlRecord(
        action=action.title, metric=metric, number=len(times), mean=statistics.fmean(times),
        sd=statistics.stdev(times) if len(times) > 1 else 0.0, median=statistics.median(times), low=low, high=high,
        p99=float(np.quantile(times, 0.99, method="inverted_cdf")), most=max(times),
        size=statistics.median(each.size for each in done), sizes=action.sizes, remark=action.remark,
    )  # fmt: skip


def _meanwhile(seen: Observation) -> dict[str, Estimate]:
    """Return the load's figures during the action; empty where the losses may be the generator's."""
    if seen.generator_fault and not within(*seen.lost["loss_ratio"], seen.conditions["loss_ratio"]):
        return {}
    values = seen.values
    found = {name: max(0.0, values[source]) for name, source in MEANWHILE.items() if source in values}
    found[BLOCKED] *= seen.trial.counted_s
    return figures_by_name(found)


def meanwhile_kept(seen: Observation, metric: Metric, figure: Estimate | None, limit: float) -> Verdict:
    """Return the verdict on a promise about main thread or load during the action. It is "not measured" where the
    generator explains that the promise is broken."""
    if figure is None and metric.name == MAIN_THREAD:
        return Verdict(None, Code.NOTHING, f"{metric.title}: the thread cannot be seen from this machine")
    if figure is None:
        why = f"what the load lost meanwhile may be the generator's own: {seen.generator_fault}"
        return Verdict(None, Code.INVALID, why if seen.generator_fault else f"{metric.title} was not measured")
    late_s = seen.trial.late_max_ms / 1000
    if metric.name in ("loss_meanwhile", BLOCKED):
        most = limit / seen.trial.counted_s if metric.name == BLOCKED else limit
        return by_loss(*seen.lost["loss_ratio"], most)
    found = by_figure(metric, figure.value, limit)
    if metric.name != MAIN_THREAD and not found.kept and late_s >= limit:
        late = f"{metric.title}: the generator itself was up to {metric.format(late_s)} late"
        return Verdict(None, Code.GENERATOR, late)
    return found


def entries_of(bench: Bench) -> float:
    """Return the load's entries in a connection table: one for each recurring flow, or for each connection until it is
    forgotten."""
    profile = bench.profile
    if isinstance(profile, PacketProfile):
        return profile.flows
    return bench.campaign.control_plane.rate(profile) * (profile.lifetime_s + CLOSED_S)


def flows_of(bench: Bench) -> float:
    """Return the flows that the load keeps in a datapath that has one for each client, or two with connection tracking
    (before and after the connection is looked up). Return 0 for connections, which come and go."""
    if not isinstance(bench.profile, PacketProfile):
        return 0.0
    ruleset = ruleset_of(bench.topology)
    return bench.profile.flows * (2 if ruleset and ruleset.tracks else 1)


TABLE_DUMP = timed(
    "table-dump",
    "prints the connection table under a load that the device under test holds alone",
    ("dump_time",),
    lambda bench: table_dump(bench.dut, entries_of(bench), fills=True),
    abilities=("control plane", "dump"),
    promised=Promise("table dump time", "control plane", "dump"),
)
PORT_CHURN = timed(
    "port-churn",
    "adds and deletes ports of the bridge under a load that the device under test holds alone",
    ("port_add_time", "port_delete_time"),
    lambda bench: port_churn(plane_of(bench)),
    promised=Promise("port churn time", "control plane", "churn"),
)
REVALIDATION = timed(
    "revalidation",
    "asks how long it took to look at all datapath flows, under the load that keeps them alive",
    ("revalidation_time",),
    lambda bench: revalidation(plane_of(bench), expected=flows_of(bench)),
    promised=Promise("revalidation time", "control plane", "revalidation", PACKETS, long=True),
)
SWEEP = timed(
    "revalidation-sweep",
    "asks how long it took to look at all datapath flows where that is forced ten times a second",
    ("sweep_time",),
    lambda bench: revalidation(plane_of(bench), "sweep_time", 0.1, forced=True, expected=flows_of(bench)),
    promised=Promise("forced revalidation time", "control plane", "revalidation", PACKETS),
)
#: Three collections, and a second for what of the trial is not a whole period.
STATISTICS = timed(
    "interface-statistics",
    "looks for the collections of statistics in the main thread's CPU time, under a load",
    ("statistics_time",),
    lambda bench: statistics_of(plane_of(bench), bench.topology.idle_ports),
    least_s=3 * STATISTICS_PERIOD_S + 1,
    promised=Promise("statistics time", "control plane", "statistics", long=True),
)
