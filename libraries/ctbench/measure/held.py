"""One trial in which connections are held: opened, kept, asked; and counted by the DUT at every step.

RFC 9693 validates that the connections of its first phase are there before the second one begins; here the DUT's own
count has to be the generator's, to the connection, before, between and after.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from ctbench.base.units import format_count
from ctbench.dut.base import Dut
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, Outcome, figures_by_name
from ctbench.measure.trial import Trials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import Metric
from ctbench.results.record import LimitedBy
from ctbench.results.verdict import by_figure
from ctbench.traffic.generator import Holding, Opened, TrafficGenerator, Trial
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile, load_profile


def tools(bench: Bench) -> tuple[Dut, TrafficGenerator, ConnectionProfile]:
    """DUT, generator and profile as a measurement of the table needs them; `require` has seen that they are."""
    dut, generator, profile = bench.dut, bench.generator, bench.profile
    assert isinstance(profile, ConnectionProfile), "the metric is of connections"
    return dut, generator, profile


@dataclass
class Counts:
    """What the DUT counted at the moments of a trial."""

    dut: Dut
    #: Number of the trial in its test.
    trial: int
    made: list[TableCount] = field(default_factory=list)

    def take(self, moment: str, expected: int) -> int:
        """Ask the DUT. Returns what it counted."""
        found = self.dut.connections()
        self.made.append(TableCount(trial=self.trial, moment=moment, expected=expected, found=found))
        return found

    @property
    def wrong(self) -> str:
        """The first count that is not the generator's, in words; empty where all are."""
        apart = next((each for each in self.made if each.found != each.expected), None)
        if apart is None:
            return ""
        return f"{apart.moment}: the DUT counted {apart.found} entries where {apart.expected} connections were open"


@dataclass
class TableTrial(ABC):
    """One trial in which connections are held, and what came of it: a subclass says what is done."""

    bench: Bench
    load: Hold
    dut: Dut
    counts: Counts
    #: What it may lose (ratio).
    may_lose: ClassVar[float] = 0.0

    @classmethod
    def make(cls, bench: Bench, trials: Trials, load: Hold) -> tuple[Observation, Self]:
        """Make it, again where it was invalid; and what came of the last one. What the DUT counted in each is
        evidence."""
        found: list[Self] = []

        def one(number: int) -> Observation:
            dut = tools(bench)[0]
            made = cls(bench, load, dut, Counts(dut, number))
            found.append(made)
            seen = bench.runner_for({"loss_ratio": cls.may_lose}).watch(made._offer)
            trials.keep(table=made.counts.made)
            return made.judged(seen)

        return trials.make("hold", one, load.opened_per_s), found[-1]

    def _offer(self) -> Trial:
        _, generator, profile = tools(self.bench)
        self.begin()
        self.counts.take("before", 0)
        with generator.hold(profile, self.load) as held:
            self.work(held)
            return held.trial()

    def begin(self) -> None:  # most have nothing to do
        """Get ready, before the first count."""

    @abstractmethod
    def work(self, held: Holding) -> None:
        """What is done while connections are held."""

    @property
    def wrong(self) -> str:
        """What went wrong, in words; empty where all is as it has to be."""
        return self.counts.wrong

    def judged(self, seen: Observation) -> Observation:
        """The trial, with what went wrong in it."""
        return replace(seen, wrong=self.wrong)


def conclude(
    bench: Bench,
    seen: Observation,
    metrics: Sequence[Metric],
    values: Mapping[str, float | None],
    reason: str,
    *,
    right: bool,
    limited_by: LimitedBy = "dut",
    held: bool | None = None,
) -> Outcome:
    """What the last trial says: figures, and a verdict on each of these metrics that is promised, where it was valid;
    the first one is what was looked for. `right`: whether all else went as it has to; no promise is kept without.
    `held`: where that differs."""
    invalid = seen.state == "invalid"
    verdicts = {
        metric.name: by_figure(metric, values[metric.name], limit, reason, right=right, valid=not invalid)
        for metric in metrics
        if (limit := bench.floor.limit(metric.name)) is not None
    }
    return Outcome(
        metrics[0],
        {} if invalid else figures_by_name(values),
        "generator" if invalid else limited_by,
        reason,
        not invalid and (right if held is None else held),
        verdicts=verdicts,
    )


def others() -> ConnectionProfile:
    """Connections that are held beside those of a profile: of addresses of their own."""
    profile = load_profile("held")
    assert isinstance(profile, ConnectionProfile), "that of this name is of connections"
    return profile.model_copy(update={"client_ip": "16.128.0.0"})


def refused(opened: Opened) -> str:
    """What became of connections that did not open, for a sentence; empty where all did."""
    if not opened.refused:
        return ""
    more = ", and no more were begun" if opened.gave_up else ""
    return f"{format_count(opened.refused)} of {format_count(opened.begun)} were refused{more}"
