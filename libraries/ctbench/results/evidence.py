"""The evidence behind the figures of a record: trials, pairs, probe series, and the report of an MLRsearch."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from ctbench.base.quantities import MOST, Amount, Count, Real
from ctbench.base.units import format_count, format_rate, format_ratio
from ctbench.dut.abilities import InstructionCounts
from ctbench.dut.base import CpuUse, DutCounts, LookUps, Problem
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import SLIM, Estimate, MetricName, RecordModel
from ctbench.traffic.generator import Latency, Side, Times, Trial


class TrialRecord(RecordModel):
    """One trial: its counts, and its state with the reason."""

    #: Why it was made: `saturation`, `warm-up`, `search`, `final`, `gate` or `hold`; a candidate's `in turn` with its
    #: `base`; `below` what is held; of the load
    #: under which the control plane works, `alone` and `beside`.
    phase: str
    state: Literal["good", "bad", "invalid"]
    #: One sentence; empty for a good trial.
    reason: str
    problems: list[Problem]
    #: Of the direction where it is the worse one.
    latency_us: Latency | None = None
    cpu: CpuUse | None = None
    #: Of Open vSwitch.
    look_ups: LookUps | None = None
    #: What the DUT's own counters say of it, to compare with the generator's; None where they say nothing.
    counts: DutCounts | None = None
    trial: Trial

    @property
    def offers_a_load(self) -> bool:
        """True for a trial at an offered load, False for a closed loop, which offers what the DUT takes."""
        return not self.trial.under_way

    def held(self, rate: float) -> bool:
        """True for a good open-loop trial at an offered load of `rate` or more, within 1e-6 for rounding."""
        return self.state == "good" and self.offers_a_load and self.trial.load >= rate * (1 - 1e-6)

    @property
    def waited_p99_s(self) -> float | None:
        """The 99th percentile in seconds of the TCP connect time (connections) or of the latency (packets); None where
        it is not known."""
        times = self.trial.connect_time_us if self.trial.unit == "connections" else self.latency_us
        return times.p99 / 1e6 if times and times.p99 is not None else None


def held_for(trials: Iterable[TrialRecord], rate: float) -> float:
    """Return the seconds of the longest trial in which the DUT held this rate; 0 where no trial held it."""
    return max((made.trial.counted_s for made in trials if made.held(rate)), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True, config=SLIM)
class LookRecord(Estimate):
    """One look at a pair's ratio, tested side to other side: the middle of its rounds, and in `whole` the ratio over
    all of their time. 1.02 is 2 % better."""

    #: Rounds (a slice of each side), starts of both, or blocks of searches, that it stands on.
    rounds: Count
    #: Ratio of what both completed per second over all of their time: one that stands still now and then is as slow as
    #: that, whatever its middle. None where a turn is a search.
    whole: Estimate | None = None

    @property
    def both(self) -> tuple[Estimate, ...]:
        """The estimates that have to keep a promise; either can break it."""
        return (self, self.whole) if self.whole else (self,)

    def speaks(self, promised: float | None) -> Estimate:
        """Return the estimate to show: `whole` where an end of it breaks the promise that the same end of the middle
        keeps, else the middle."""
        if self.whole is None or promised is None:
            return self
        pairs = zip(self.ends, self.whole.ends, strict=True)
        return self.whole if any(whole < promised <= middle for middle, whole in pairs) else self


class SideRecord(RecordModel):
    """One side of a pair."""

    #: Key of its topology: `linux-router/forward/1cpu-1rxq`.
    key: str
    #: The installation it came from; empty for the testbed's own.
    build: str = ""
    #: What it was: `Open vSwitch 3.1.0`; empty where that is not known.
    product: str = ""
    #: Tells its program, with the libraries that it had loaded, from any other build; empty where that is not known.
    program: str = ""
    #: What was offered to it, where that is not the test's profile.
    profile: str = ""
    #: What makes the ratio, in the profile's unit per second: what it completed over all time of its slices, or the
    #: median of its searches; None where none counts.
    rate: Amount | None = None
    #: The median of its slices, which leaves stalls out; None where a turn is a search.
    middle: Amount | None = None
    #: What it completed per second over all time of its slices, stalls included; None where a turn is a search.
    serves: Estimate | None = None
    #: Share of that time in slices in which next to nothing came through.
    stalled: Amount = 0.0
    #: Share that was lost of what was begun in its slices.
    lost: Amount = 0.0
    #: Share of its slices in which most of what was under way waited for the generator, and not for the DUT.
    held: Amount = 0.0
    #: Of a comparison of scale: entries of its table before its turns, at least.
    entries: Count | None = None
    #: Of Open vSwitch, since its table was emptied last.
    look_ups: LookUps | None = None


class StartRecord(RecordModel):
    """One start of both sides: set up again, with new processes and memory. Where the two cannot stand side by side,
    one block of four searches, two of each side."""

    #: Which of the two was wired to the generator first, and had the first slice; or had the first search.
    first: Side
    #: Its rounds: the robust middle of their ratios, tested to other, with its 99 % interval; None for too few. Of a
    #: block the ratio alone; None where a search did not tell what a side holds.
    found: LookRecord | None
    #: What each side completed per second over all time of its slices, or holds in the mean of its searches; share of
    #: that time in which it stood still; share that was lost of what was begun.
    tested: Amount
    other: Amount
    stalled: Amount = 0.0
    lost: Amount = 0.0
    #: Rounds that had to be dropped.
    dropped: Count = 0


class PairRecord(RecordModel):
    """Two set-ups that were measured in turn, and the ratio of the first to the second."""

    tested: SideRecord
    other: SideRecord
    #: Both stood there and had turns of `slice_s` seconds; or the DUT was set up again for each turn, a search.
    how: Literal["side by side", "reconfigured"]
    #: Of two that stand side by side. From backlogs: the rings towards a DUT are filled, and only the time counts in
    #: which it works that off.
    served: Literal["in a closed loop", "from backlogs"] = "in a closed loop"
    slice_s: Amount = 0.0
    #: Ratio of each round (start, block of four searches) that counts, and how many others were dropped: the generator
    #: stood still, or nothing came through either side.
    ratios: list[Amount]
    dropped: Count = 0
    looks: list[LookRecord]
    #: Of a candidate and its base: the samples, starts side by side or blocks.
    starts: list[StartRecord] = Field(default_factory=list)
    #: Of these, the rows of the run that share its error of 1 %: a like build would be called slower in one of them.
    #: None in records of older versions, which assumed 24.
    gated_rows: Count | None = None
    #: Looks of the row at them, which share its errors; those of earlier gates among them.
    shared_looks: Count | None = None
    #: How many of them an earlier gate of the row has made. What is said of the sides is of the others.
    before: Count = 0
    #: Of these, the loss (ratio) that nine of ten such rows would have been missed by; None where it is not known.
    sees: Amount | None = None
    #: What was noticed of either DUT, one sentence each, and why they did not stand side by side where they did not.
    notes: list[str] = Field(default_factory=list)

    @property
    def sides(self) -> dict[Side, SideRecord]:
        """Both sides by name."""
        return {"tested": self.tested, "other": self.other}

    def goes_on_with(self, sides: Mapping[Side, SideRecord]) -> bool:
        """Return True where starts of `sides` may be added to those of this record: some count, something came through
        the tested side in each of these, and build and program of both sides are known and unchanged."""
        counted = [each for each in self.starts if each.found]
        alike = all(
            each.program and (each.build, each.program) == (sides[side].build, sides[side].program)
            for side, each in self.sides.items()
        )
        return alike and bool(counted) and all(each.tested for each in counted)

    @property
    def result(self) -> LookRecord | None:
        """The last look; None where there were too few rounds for any."""
        return self.looks[-1] if self.looks else None


class Series(RecordModel):
    """The samples of a probe: a value each `every_s` from the beginning of a trial on; None where the probe had no
    value."""

    #: What was sampled, for example `table_entries`, and its unit.
    name: str
    unit: str
    #: Number of the trial, from 1 on.
    trial: Annotated[int, Field(ge=1, le=MOST)]
    every_s: Annotated[float, Field(gt=0, le=MOST)]
    values: list[Real | None]


class TableCount(RecordModel):
    """The entries of the DUT's connection table at one moment of a trial: expected by the generator, counted by the
    DUT."""

    #: Number of the trial, from 1 on.
    trial: Annotated[int, Field(ge=1, le=MOST)]
    #: For example `opened`: when the last connection was open.
    moment: str
    #: Entries that the generator knows of, and those that the DUT counted.
    expected: Count
    found: Count
    #: Bytes of the DUT's memory then; None where it was not asked for.
    memory: Count | None = None


class TimesBelow(RecordModel):
    """Latency, connect and response times of one trial below the held rate (NDR), where no queue is full."""

    #: Number of the trial, from 1 on; its load, per second, and as a share of what is held.
    trial: Annotated[int, Field(ge=1, le=MOST)]
    load: Amount
    share: Amount
    #: Why nothing is known of it: it lost too much, or was invalid. Empty where something is.
    reason: str = ""
    #: `latency` or `ICMP latency`, of the worse direction; of connections `connect time`, `first byte` and `last byte`.
    times_us: dict[str, Times] = Field(default_factory=dict)


class GoalRecord(RecordModel):
    """The goal of an MLRsearch and its report: RFC 9971, sections 4.6 and 4.8."""

    #: The goal: the largest loss ratio of a low-loss trial; the length of a full-length trial, and of the full-length
    #: trials that classify a load, seconds; the share of those that may be high-loss; how near the bounds have to be.
    loss_ratio: Amount
    final_duration_s: Amount
    duration_sum_s: Amount
    exceed_ratio: Amount
    relative_width: Amount
    #: Over all trials of the search, in the profile's unit per second; None where there is no such load.
    relevant_lower_bound: Amount | None
    relevant_upper_bound: Amount | None
    #: What was forwarded of the relevant lower bound in full-length trials, in the same unit.
    conditional_throughput: Amount | None


class ControlRecord(RecordModel):
    """One action of the control plane, repeated under a load (trials `beside`; with held connections, trial `hold`),
    with statistics of its duration."""

    #: For example `dump`, and the metric of its time.
    action: str
    metric: MetricName
    #: How often it was done, and the times in seconds: `low` to `high` is the 99 % interval of the
    #: median, or from the least to the most where there are too few.
    number: Count
    mean: Amount
    sd: Amount
    median: Amount
    low: Amount
    high: Amount
    p99: Amount
    most: Amount
    #: How much of it there was in the median, and what that counts: `entries`, `ports`.
    size: Amount
    sizes: str
    #: A remark on it; empty where there is none.
    remark: str = ""

    @property
    def figure(self) -> Estimate:
        """The median, with its interval."""
        return Estimate(value=self.median, unit=METRICS[self.metric].unit.name, low=self.low, high=self.high)

    @property
    def text(self) -> str:
        """`time of a dump, 10.0 k entries: 9 times, mean 99 ms, SD 7.4 ms, median 99.6 ms, p99 108 ms, longest 108
        ms`."""
        metric, remark = METRICS[self.metric], f"; {self.remark}" if self.remark else ""
        known = {"mean": self.mean, "SD": self.sd, "median": self.median, "p99": self.p99, "longest": self.most}
        times = ", ".join(f"{name} {metric.format(seconds)}" for name, seconds in known.items())
        often = "once" if self.number == 1 else f"{self.number} times"
        return f"{metric.title}, {format_count(self.size)} {self.sizes}{remark}: {often}, {times}"


class FunctionSamples(RecordModel):
    """A function that samples of a thread fell into."""

    #: With its program: `pthread_mutex_lock [libc.so.6]`; where it begins, where it has no name.
    name: str
    samples: Count
    #: Whether it acquires, releases or awaits a lock.
    lock: bool


class ProfileRecord(RecordModel):
    """The time profile of a forwarding thread at the highest load, sampled in a trial of its own: only the share of
    locks is judged by it."""

    #: Older records also say how it was sampled, and how many samples were lost: never another way, and none.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    #: Number of the trial, from 1 on; the thread's CPU; how often per second it was sampled.
    trial: Annotated[int, Field(ge=1, le=MOST)]
    cpu: Count
    hz: Count
    #: Seconds that this took; in which the thread ran; in which it was ready and something else had its CPU.
    seconds: Amount
    ran_s: Amount
    waited_s: Amount
    #: Share of that in which it had packets to work on, by its own count.
    busy: Amount
    #: All samples; those in locks.
    samples: Count
    locks: Count
    #: What was served per second in this trial, and in the one before without samples; None where that is not known.
    rate: Amount
    rate_before: Amount | None
    #: Those with the most samples, and all that are about locks.
    functions: list[FunctionSamples]


class Evidence(RecordModel):
    """Evidence of a record's figures."""

    trials: list[TrialRecord]
    series: list[Series] = Field(default_factory=list)
    #: The lowest load that did not hold, where one was found.
    upper_bound: Amount | None = None
    #: The generator's capacity over the cable with the same profile; None when it is unknown.
    ceiling: Amount | None = None
    #: What ratios stand on.
    pairs: list[PairRecord] = Field(default_factory=list)
    #: Of a candidate's base: trials at the loads that the candidate was offered in turn with it.
    base_trials: list[TrialRecord] = Field(default_factory=list)
    #: What boots of an emulated machine counted: of the topology, of the baseline that its figure is net of, and of
    #: what it is compared with.
    counts: list[InstructionCounts] = Field(default_factory=list)
    #: What the control plane did under a load.
    control: list[ControlRecord] = Field(default_factory=list)
    #: Where the time of threads that forward went.
    profiles: list[ProfileRecord] = Field(default_factory=list)
    #: Where connections were held: the generator's count against the DUT's.
    table: list[TableCount] = Field(default_factory=list)
    #: Below what is held.
    below: list[TimesBelow] = Field(default_factory=list)
    #: Of the NDR, or the only one; of the PDR. None where the search is not one of RFC 9971, or there was none.
    goal: GoalRecord | None = None
    partial_goal: GoalRecord | None = None


def thrown_away(trials: Sequence[TrialRecord]) -> int:
    """Return the number of invalid trials, which say nothing about the DUT."""
    return sum(made.state == "invalid" for made in trials)


def conntrack_of(trials: Sequence[TrialRecord]) -> dict[str, int]:
    """Return a Linux kernel's connection tracking counters, summed over all trials, by their names in conntrack(8).
    Zeros are left out."""
    counted = Counter[str]()
    for made in trials:
        counted.update(made.counts.conntrack if made.counts else {})
    return {name: count for name, count in counted.items() if count}


def of_port_pairs(trials: Sequence[TrialRecord]) -> tuple[str, ...]:
    """Return a line for each of several port pairs, `2: 95.2 k connections/s, lost 0.000 %`, of the good trial at the
    highest load; where none is good, of the bad trial at the lowest load."""
    known = [made for made in trials if made.trial.port_pairs and made.state != "invalid"]
    if not known:
        return ()
    shown = max(known, key=lambda made: made.trial.load if made.state == "good" else -made.trial.load).trial
    said = []
    for number, pair in enumerate(shown.port_pairs, 1):
        # Packets of connections are those of the whole trial, and say nothing of a rate.
        rate = f"{format_count(pair.completed / shown.counted_s)} {pair.unit}/s, " if pair.unit == shown.unit else ""
        said.append(f"{number}: {rate}lost {format_ratio(pair.loss_ratio)}")
    return tuple(said)


def thrown_away_note(trials: Sequence[TrialRecord]) -> str:
    """Return a sentence with the number of invalid trials and the first cause; empty where none is invalid."""
    causes = [made.reason.rstrip(".") for made in trials if made.state == "invalid"]
    if not causes:
        return ""
    more = ", and the like" if len(set(causes)) > 1 else ""
    were = "was" if len(causes) == 1 else "were"
    return f"{thrown_away(trials)} of {len(trials)} trials {were} thrown away: {causes[0]}{more}."


def lossy_loop_note(trials: Sequence[TrialRecord]) -> str:
    """Return a note on the rate of the last closed loop that lost too much; empty where none did."""
    lossy = [made for made in trials if made.phase == "saturation" and made.state == "bad"]
    if not lossy:
        return ""
    last = lossy[-1]
    served = format_rate(last.trial.service_rate or last.trial.rate)
    return (
        f"A closed loop was served at {served}, and {last.reason}: a DUT that refuses, as a NAT without a free port "
        "does, may hold more at a load that stays below that."
    )
