"""What an SLA promised of a test, in its record: each threshold with what was measured, and where they are from."""

from pydantic import Field

from ctbench.base.quantities import Real
from ctbench.base.units import format_interval, format_share
from ctbench.results.metrics import METRICS, Kind, Operator, kind_of
from ctbench.results.record_model import MetricName, RecordModel, Values


class ThresholdRecord(RecordModel):
    """A promise of the SLA, compared with what was measured."""

    metric: MetricName
    #: `ratio`: to another topology; `of_build`: to another build of the same one; `absolute`: a figure of its own.
    kind: Kind = Field(default_factory=lambda known: kind_of(known.get("metric", "")))
    operator: Operator
    #: In the metric's unit: per second, a ratio, or seconds.
    limit: Real
    #: As the SLA file has it: `>= 48.2k`.
    written: str
    #: Of a `ratio`: key of the topology that it is relative to; of an `of_build`: the other build.
    to: str | None = None
    #: The machine that it was made on, where that is the only one that it is a promise for; empty: it is one anywhere.
    bound_to: str = ""
    #: Whether the DUT's machine is another one than that.
    elsewhere: bool = False
    #: Whether it is so far from what is usual that a build 30 % slower would pass.
    smoke: bool = False
    #: In the same unit; None where it was not measured.
    measured: Real | None = None
    #: Of what is relative to something: the 99 % interval of `measured`.
    low: Real | None = None
    high: Real | None = None
    #: How much better than the limit, in percent of it; None without a measurement or with a limit of 0.
    margin_pct: Real | None = None
    met: bool = False
    #: Whether nothing decided it: it is neither met nor missed then.
    undecided: bool = False
    #: One sentence: what decided it besides its figure, or why nothing did; empty where the figure says it.
    reason: str = ""

    @property
    def is_promise(self) -> bool:
        """Whether it is a promise, and no condition of every trial."""
        return METRICS[self.metric].role == "promise"

    @property
    def other(self) -> str:
        """What a rate is compared with, in words."""
        if self.kind == "of_build":
            return "the packaged build" if self.to == "distribution" else f"the build in {self.to}"
        return self.to or "another topology"

    @property
    def relation(self) -> str:
        """How a rate compares: `64.2 % ± 1.1 % of linux-router/forward/1cpu-1rxq, at least 60 % promised`; empty where
        nothing was compared."""
        if self.measured is None or self.kind == "absolute":
            return ""
        bound = METRICS[self.metric].bound
        value = " ".join(part for part in (format_share(self.measured), self.width) if part)
        return f"{value} of {self.other}, {bound} {self.limit * 100:g} % promised"

    @property
    def width(self) -> str:
        """How sure what was measured is, in words; empty without an interval."""
        if self.measured is None or self.low is None or self.high is None:
            return ""
        return format_interval(self.measured, self.low, self.high)


class Reference(RecordModel):
    """Figures published elsewhere, shown next to the floor. They are not a promise."""

    #: By metric.
    figures: Values
    source: str


class FloorRecord(RecordModel):
    """Where the thresholds of a test are from."""

    #: Of the floor in the SLA file: topology, for example `ovs-dpdk/conntrack/1cpu-1rxq`, and profile.
    key: str
    profile: str
    #: Where the promise comes from: the SLA file's own words.
    source: str
    #: How the floor follows from another one; empty when the SLA file has it.
    derivation: str = ""
    reference: Reference | None = None
