"""Trials with held connections: opened, kept open, sent a message each, and counted by the DUT at every step.

RFC 9693 validates that the connections of its first phase exist before the second phase begins. Here the DUT's count
has to equal the generator's, to the connection, before, between and after.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ctbench.base.units import format_count
from ctbench.dut.base import Problem
from ctbench.measure.observation import Observation
from ctbench.measure.probe import Samples
from ctbench.measure.procedure import Bench, Outcome, figures_by_name
from ctbench.measure.trial import Trials
from ctbench.results.evidence import TableCount
from ctbench.results.metrics import Metric
from ctbench.results.record import LimitedBy
from ctbench.results.verdict import by_figure
from ctbench.traffic.generator import Holding, Opened, Trial
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile, load_profile

#: Connections that a large table holds under a load, where a floor promises no other number.
LARGE_TABLE = 1_000_000


@dataclass
class TableTrial:
    """One trial with held connections, and what it found."""

    bench: Bench
    load: Hold
    #: Its number in the test.
    number: int
    #: What the DUT counted at its moments.
    counts: list[TableCount] = field(default_factory=list)
    #: What went wrong, a clause each.
    faults: list[str] = field(default_factory=list)
    #: What the DUT had, and what was sampled, besides what every trial notes.
    problems: list[Problem] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    #: What it found, by metric, and in words.
    values: dict[str, float | None] = field(default_factory=dict)
    said: str = ""

    @contextmanager
    def hold(self, profile: ConnectionProfile | None = None) -> Iterator[Holding]:
        """Hold connections of the bench's profile, or of another one, in a table that has to be empty."""
        self.count("before", 0)
        with self.bench.generator.hold(profile or self.bench.connections, self.load) as held:
            yield held

    def count(self, moment: str, expected: int) -> int:
        """Ask the DUT for its number of entries, and record it. Return that number."""
        found = self.bench.dut.connections()
        self.counts.append(TableCount(trial=self.number, moment=moment, expected=expected, found=found))
        return found

    def expect(self, what: str, found: int, expected: int) -> None:
        """Add a fault where a number is not the expected one."""
        if found != expected:
            self.faults.append(f"{found} of {expected} {what}")

    def compare(self) -> None:
        """Add a fault for the first count that is not the generator's."""
        if self.miscounted:
            self.faults.append(self.miscounted)

    @property
    def miscounted(self) -> str:
        """The first count that is not the generator's, in words; empty without one."""
        apart = next((each for each in self.counts if each.found != each.expected), None)
        if apart is None:
            return ""
        return f"{apart.moment}: the DUT counted {apart.found} entries where {apart.expected} connections were open"

    @property
    def wrong(self) -> str:
        """All faults, in words; empty without one."""
        return "; ".join(self.faults)


def table_trial(
    bench: Bench, trials: Trials, load: Hold, offer: Callable[[TableTrial], Trial], *, may_lose: float = 0.0
) -> tuple[Observation, TableTrial]:
    """Make a trial with `offer`, and repeat it where it is invalid. Return the last one with its findings. The DUT's
    counts of each trial are kept as evidence. `may_lose`: the highest loss ratio of a good trial."""
    found: list[TableTrial] = []

    def one(number: int) -> Observation:
        made = TableTrial(bench, load, number)
        found.append(made)
        seen = bench.runner_for({"loss_ratio": may_lose}).watch(lambda: offer(made))
        trials.keep(table=made.counts)
        return replace(
            seen, wrong=made.wrong, problems=(*seen.problems, *made.problems), samples=(*seen.samples, *made.samples)
        )

    return trials.make("hold", one, load.opened_per_s), found[-1]


#: Of connections that are opened again where the DUT refused some, as many more may be begun; and how often.
SPARE, _AGAIN = 0.2, 2


def with_spare(connections: int) -> int:
    """Return the number of connections that a load needs for `open_all` to open so many."""
    return connections + math.ceil(SPARE * connections)


def open_all(held: Holding, connections: int) -> int:
    """Open so many connections, and open again those that were refused, if they are few: a DUT stalls while it grows a
    large table, and a busy machine loses some. Return the number that opened."""
    spare = math.ceil(SPARE * connections)
    opened = held.open(connections).established
    for _ in range(_AGAIN):
        missing = connections - opened
        if 0 < missing <= spare:
            spare -= missing
            opened += held.open(missing).established
    return opened


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
    """Return the outcome of a measurement by its last trial: the figures, and a verdict on each of these metrics that
    is promised. An invalid trial has no figures and decides nothing. The first metric is the one looked for. `right`:
    everything else went as it has to; otherwise no promise is kept. `held`: whether the conditions were kept, where
    that differs from `right`."""
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


def others(*, udp: bool = False) -> ConnectionProfile:
    """Return a profile of connections that are held in addition to a load's, with client addresses of their own."""
    profile = load_profile("held-udp" if udp else "held")
    assert isinstance(profile, ConnectionProfile), "those of these names are of connections"
    return profile.model_copy(update={"client_ip": "16.128.0.0"})


def refused(opened: Opened) -> str:
    """Return the number of refused connections, in words; empty where all opened."""
    if not opened.refused:
        return ""
    more = ", and no more were begun" if opened.gave_up else ""
    return f"{format_count(opened.refused)} of {format_count(opened.begun)} were refused{more}"
