"""What the control plane does beside a load: how long it takes, and what the load loses meanwhile.

Two trials of the same load. Alone it has to hold, or nothing is said about what follows; then the control plane works.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ctbench.base.errors import TestbedError
from ctbench.base.units import format_count
from ctbench.dut.control_plane import Done, ThreadLook
from ctbench.measure.control_actions import Action
from ctbench.measure.loss import within
from ctbench.measure.main_thread import MainThreadWatch
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Decision, Outcome
from ctbench.measure.sequential import MOST_INVALID
from ctbench.measure.trial import Phase, Step, broken_trial
from ctbench.results.evidence import ControlRecord
from ctbench.results.figure import Figure
from ctbench.results.metrics import MAIN_THREAD, MEANWHILE, METRICS, Metric
from ctbench.results.quantiles import median_interval, quantile
from ctbench.results.record import LimitedBy
from ctbench.traffic.loads import Rate

#: Share of what there should be: what was done with less came while the load still filled the DUT.
LEAST_SIZE = 0.8
#: Times that say something.
LEAST_DONE = 3
#: What the load loses beside the control plane is a figure: it does not end the trial.
_WHATEVER_IS_LOST = {"loss_ratio": 1.0}


@dataclass
class BesideLoad:
    """One measurement: the load alone, then with an action."""

    bench: Bench
    metric: Metric
    action: Action
    #: A look at the main thread of the control plane.
    look: Callable[[], ThreadLook | None]
    #: Seconds that the trial beside it takes at least.
    least_s: float = 0.0
    steps: list[Step] = field(default_factory=list)
    _watch: MainThreadWatch | None = None

    def run(self) -> Outcome:
        """Measure. What breaks is an outcome (`limited_by: fault`)."""
        settings = self.bench.campaign.control_plane
        rate, beside_s = settings.rate(self.bench.profile), max(settings.trial_duration, self.least_s)
        try:
            for _ in range(MOST_INVALID):
                alone = self._trial("alone", rate, settings.alone_duration, beside_s)
                if alone.state != "invalid":
                    break
            if alone.fault:
                return self._fault(alone.fault, rate)
            if not alone.good:
                limited_by: LimitedBy = "generator" if alone.state == "invalid" else "dut"
                return self._nothing(f"the load alone is not held here: {alone.reason}", limited_by)
            beside = self._trial("beside", rate, beside_s, 0.0)
        except TestbedError as error:
            return self._fault(str(error), rate, more=1)
        if beside.fault:
            return self._fault(beside.fault, rate)
        return self._found(beside)

    def _trial(self, phase: Phase, rate: float, duration_s: float, left_s: float) -> Observation:
        bench = self.bench
        if phase == "beside":
            bench = replace(bench, conditions=_WHATEVER_IS_LOST, probes=(*bench.probes, self.action))
            with MainThreadWatch(self.look) as self._watch:
                seen = bench.runner.offer(Rate(rate), duration_s)
            seen = replace(seen, conditions=self._limits)
        else:
            seen = bench.runner.offer(Rate(rate), duration_s)
        step = Step(bench.made + len(self.steps) + 1, phase, seen, left_s)
        self.steps.append(step)
        bench.on_trial(step)
        return seen

    @property
    def _limits(self) -> Mapping[str, float]:
        """What the trial beside is said to have kept or not: the loss that the SLA allows meanwhile, else what it, or
        the campaign, allows of any trial."""
        promised = self.bench.limits.get("loss_meanwhile")
        known = self.bench.conditions
        return {"loss_ratio": known.get("loss_ratio", self.bench.campaign.loss_ratio) if promised is None else promised}

    def _found(self, beside: Observation) -> Outcome:
        full = {name: self._full(done) for name, done in self.action.done.items()}
        if few := [name for name, done in full.items() if len(done) < LEAST_DONE]:
            return self._nothing(self._too_few(few[0], len(full[few[0]])), "dut")
        records = tuple(control_record(self.action, name, done) for name, done in full.items())
        figures = {each.metric: figure_of(each) for each in records} | self._main_thread() | _meanwhile(beside)
        return Outcome(
            self.metric, figures, "dut", "; ".join(map(sentence, records)), held=True, steps=tuple(self.steps),
            control=records, decisions=self._decide(figures, records, beside),
        )  # fmt: skip

    def _main_thread(self) -> dict[str, Figure]:
        """How long it answered nobody at most; nothing where it is on another machine."""
        longest = self._watch.longest_s if self._watch else None
        unit = METRICS[MAIN_THREAD].unit.name
        return {} if longest is None else {MAIN_THREAD: Figure(value=longest, unit=unit)}

    def _full(self, done: Sequence[Done]) -> list[Done]:
        return [each for each in done if each.size >= LEAST_SIZE * self.action.expected]

    def _too_few(self, metric: str, number: int) -> str:
        every, action = self.action.done[metric], self.action
        most = format_count(max((each.size for each in every), default=0.0))
        least = format_count(LEAST_SIZE * action.expected)
        return (
            f"{METRICS[metric].title}: {number} of {len(every)} times with {least} "
            f"{action.sizes} or more ({most} at most), which says nothing: at least {LEAST_DONE} are needed"
        )

    def _decide(
        self, figures: Mapping[str, Figure], records: Sequence[ControlRecord], beside: Observation
    ) -> dict[str, Decision]:
        """Each promise by evidence of its own: a time by the interval of its median, what became of the load by its
        trial, unless the generator was the limit there."""
        by_metric = {each.metric: each for each in records}
        found = {}
        for name, limit in self.bench.limits.items():
            metric = METRICS[name]
            if name in by_metric:
                found[name] = by_interval(metric, by_metric[name], limit)
            elif name == MAIN_THREAD:
                found[name] = self._by_longest(metric, figures.get(name), limit)
            elif name in MEANWHILE:
                found[name] = _of_load(metric, figures.get(name), limit, beside)
        return found

    def _by_longest(self, metric: Metric, figure: Figure | None, limit: float) -> Decision:
        if figure is None:
            return Decision(None, f"{metric.title}: the thread cannot be seen from this machine")
        return Decision(metric.keeps(figure.value, limit), "")

    def _fault(self, why: str, rate: float, *, more: int = 0) -> Outcome:
        reason = broken_trial(self.bench.made + len(self.steps) + more, rate, why)
        return Outcome(self.metric, {}, "fault", reason, held=False, steps=tuple(self.steps))

    def _nothing(self, why: str, limited_by: LimitedBy) -> Outcome:
        return Outcome(self.metric, {}, limited_by, why, held=False, steps=tuple(self.steps))


def control_record(action: Action, metric: str, done: Sequence[Done]) -> ControlRecord:
    """What an action came to, of the times that count."""
    times = [each.seconds for each in done]
    low, high = median_interval(times)
    return ControlRecord(
        action=action.title,
        metric=metric,
        number=len(times),
        mean=statistics.fmean(times),
        sd=statistics.stdev(times) if len(times) > 1 else 0.0,
        median=statistics.median(times),
        low=low,
        high=high,
        p99=quantile(times, 0.99),
        most=max(times),
        size=statistics.median(each.size for each in done),
        sizes=action.sizes,
        remark=action.remark,
    )


def figure_of(record: ControlRecord) -> Figure:
    """The median, with its interval."""
    return Figure(value=record.median, unit=METRICS[record.metric].unit.name, low=record.low, high=record.high)


def _meanwhile(beside: Observation) -> dict[str, Figure]:
    """What became of the load; nothing where the generator may have lost it, which is no figure of the DUT."""
    trial, limit = beside.trial, beside.conditions["loss_ratio"]
    if beside.generator_fault and not within(trial.intended - trial.completed, trial.intended, limit):
        return {}
    values = beside.values
    return {
        name: Figure(value=max(0.0, values[source]), unit=METRICS[name].unit.name)
        for name, source in MEANWHILE.items()
        if source in values
    }


def sentence(record: ControlRecord) -> str:
    """`9 times with 10.0 k entries: mean 99 ms, sd 7.4 ms, median 99.6 ms, p99 108 ms, most 108 ms`."""
    metric = METRICS[record.metric]
    parts = {"mean": record.mean, "sd": record.sd, "median": record.median, "p99": record.p99, "most": record.most}
    times = ", ".join(f"{name} {metric.format(value)}" for name, value in parts.items())
    return f"{metric.title}, {record.number} times with {format_count(record.size)} {record.sizes}: {times}"


def by_interval(metric: Metric, record: ControlRecord, limit: float) -> Decision:
    """Whether a promise is kept: the whole interval of the median has to be on one side of it."""
    kept = {metric.keeps(end, limit) for end in (record.low, record.high)}
    interval = f"median of {record.number}, between {metric.format(record.low)} and {metric.format(record.high)}"
    if len(kept) == 1:
        return Decision(kept.pop(), interval)
    return Decision(None, f"too close to call: {metric.title}, {interval}, at most {metric.format(limit)} promised")


def _of_load(metric: Metric, figure: Figure | None, limit: float, beside: Observation) -> Decision:
    """What is decided of the load: a broken promise says nothing about the DUT where the generator explains it."""
    if figure is None:
        why = f"what the load lost meanwhile may be the generator's own: {beside.generator_fault}"
        return Decision(None, why if beside.generator_fault else f"{metric.title} was not measured")
    trial, late_s = beside.trial, beside.trial.late_max_ms / 1000
    if metric.name == "loss_meanwhile":
        return Decision(within(trial.intended - trial.completed, trial.intended, limit), "")
    kept = metric.keeps(figure.value, limit)
    if not kept and late_s >= limit:
        return Decision(None, f"{metric.title}: the generator itself was up to {metric.format(late_s)} late")
    return Decision(kept, "")
