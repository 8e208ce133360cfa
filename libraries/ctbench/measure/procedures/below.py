"""Latency, connect time and time to first and last byte below the rate that the DUT holds, where no queue is full. RFC
9411 has the times to first and last byte at half of the highest rate (section 7.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from ctbench.base.units import format_rate
from ctbench.measure.campaign import Campaign
from ctbench.measure.observation import Observation
from ctbench.measure.procedure import Bench, BenchProcedure, Outcome, figures_by_name
from ctbench.measure.trial import Trials
from ctbench.results.evidence import TimesBelow
from ctbench.results.metrics import AT_HALF, METRICS, Metric
from ctbench.results.verdict import Code, Verdict, by_values
from ctbench.traffic.generator import Times
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import Profile

HALF = 0.5
#: At half, where something is promised: what all of them say is decided.
TRIALS = 3


@dataclass(frozen=True)
class Below(BenchProcedure):
    """Trials at shares of the held rate that an earlier procedure found."""

    #: Half is added where something is promised there.
    shares: Sequence[float]
    #: Length of a trial, seconds.
    duration_s: float
    name = "below"
    found_out = tuple(AT_HALF)
    says = "offers shares of what is held, and times packets, connections and their replies there"
    loads = frozenset((Rate,))

    def expected_s(self, profile: Profile, campaign: Campaign) -> float:
        return len(self.shares) * self.duration_s

    def measure(self, bench: Bench, trials: Trials) -> Outcome:
        """Measure times at the shares. Decide nothing where the held rate is not known."""
        metric = self.metric(bench.profile)
        promised = [METRICS[name] for name in AT_HALF if name in bench.floor.thresholds]
        held = bench.earlier.figure(bench.rate_metric) if bench.earlier and bench.earlier.kept_conditions else None
        if not held:
            why = "what is held is not known, so nothing was offered below it"
            undecided = {each.name: Verdict(None, Code.NOTHING, why) for each in promised}
            return Outcome.nothing(metric, "dut", why, undecided)
        at_half: list[Observation] = []
        for share in sorted({*self.shares, *([HALF] if promised else [])}):
            made = self._offer(bench, trials, share, share * held, TRIALS if promised and share == HALF else 1)
            at_half = made if share == HALF else at_half
        figures = {name: median(some) for name, what in AT_HALF.items() if (some := _p99s(what, at_half))}
        verdicts = {each.name: _decided(each, bench.floor.thresholds[each.name].limit, at_half) for each in promised}
        said = f"times were measured below the {format_rate(held)} that are held"
        return Outcome(metric, figures_by_name(figures), "dut", said, True, verdicts=verdicts)

    def _offer(self, bench: Bench, trials: Trials, share: float, load: float, number: int) -> list[Observation]:
        """Make so many trials, up to the first invalid one. Another process delays a trial's packets whether or not any
        is lost, so it voids good trials too."""
        made: list[Observation] = []
        while len(made) < number and not (made and made[-1].state == "invalid"):
            seen = trials.offer(bench.runner, Rate(load), self.duration_s, "below", strict=True)
            made.append(seen)
            times = times_of(seen)
            reason = seen.reason or ("" if times else "nothing was timed in it")
            at = trials.before + len(trials.made)
            trials.keep(below=[TimesBelow(trial=at, load=load, share=share, reason=reason, times_us=times)])
        return made


def times_of(seen: Observation) -> dict[str, Times]:
    """Return the times that a good trial measured, by name in `TimesBelow`. A trial that lost too much has none."""
    trial = seen.trial
    known: dict[str, Times | None] = {
        "connect time": trial.connect_time_us,
        "first byte": trial.first_byte_us,
        "last byte": trial.last_byte_us,
        "latency": seen.latency,
        "ICMP latency": seen.icmp_latency,
    }
    return {name: times for name, times in known.items() if times and seen.good}


def _p99s(what: str, made: Sequence[Observation]) -> list[float]:
    """Return the 99th percentiles, seconds, of the good trials that have one."""
    told = filter(None, (times_of(seen).get(what) for seen in made))
    return [times.p99 / 1e6 for times in told if times.p99 is not None]


def _decided(metric: Metric, limit: float, made: Sequence[Observation]) -> Verdict:
    """Decide a promise where all trials agree. A bad trial counts against it: one among trials that keep it leaves it
    undecided."""
    if spoilt := next((seen.reason for seen in made if seen.state == "invalid"), ""):
        return Verdict(None, Code.INVALID, spoilt)
    found, bad = _p99s(AT_HALF[metric.name], made), [seen.reason for seen in made if not seen.good]
    if len(found) + len(bad) < len(made):
        return Verdict(None, Code.NOTHING, f"no trial tells {metric.title}")
    said = f"{metric.title} of {len(made)} trials: {', '.join([*map(metric.format, found), *bad])}"
    return by_values(metric, [*found, *([inf] * len(bad))], limit, said)
