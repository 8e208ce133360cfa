"""What the models of a record are made of: their base, metrics by name, estimates, and what was promised of them."""

from datetime import UTC, date
from statistics import median
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)
from pydantic.dataclasses import dataclass

from ctbench.base.quantities import Real
from ctbench.base.units import format_interval, format_share, quoted
from ctbench.results.metrics import METRICS, Kind, Operator, kind_of

Utc = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class RecordModel(BaseModel):
    """Base of the record's models: frozen, unknown keys forbidden, no infinities (JSON has none)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def first_mistake(errors: ValidationError) -> str:
    """The first mistake that was found in a file: its place, and what is wrong there."""
    first = errors.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"] if part != "[key]")[:200] or "the file"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def _known(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"{quoted(name)} is not a metric of this version")
    return name


#: Name of a metric in the registry.
MetricName = Annotated[str, AfterValidator(_known), WithJsonSchema({"enum": list(METRICS)})]


#: Of what a record has many: as a dataclass with slots it takes a fifth of a model's memory, so that a year fits.
SLIM = ConfigDict(extra="forbid", allow_inf_nan=False)
#: A ratio that is known to less than this (half of its interval, relative) is shown by the end of it that decided.
WORTH_SHOWING = 0.1


@dataclass(frozen=True, slots=True, config=SLIM)
class Estimate:
    """A value, and what it lies between."""

    value: Real
    #: That of its metric: `connections/s`, `ratio`, `s`. Empty of turns in older records.
    unit: str = ""
    #: What the value lies between: of a search, the highest load that held and the lowest that did not; of
    #: repetitions, the least and the most of them, or the 99 % interval of their middle; of turns that is a 99 %
    #: interval, too, and of several starts, or blocks of a candidate, between two bounds of 95 % each. None where
    #: nothing bounds it on that side, or that is not known.
    low: Real | None = None
    high: Real | None = None
    #: The value of each repetition, where there were several.
    samples: tuple[Real, ...] = ()

    def __post_init__(self) -> None:
        in_order(self.low, self.high)

    @property
    def ends(self) -> tuple[float, float]:
        """What it lies between; the value itself where nothing bounds it."""
        return self.value if self.low is None else self.low, self.value if self.high is None else self.high

    @property
    def reach(self) -> float:
        """Half of the interval."""
        low, high = self.ends
        return (high - low) / 2

    @property
    def spread(self) -> float | None:
        """(largest - smallest sample) / median; None for fewer than two samples, or a median of 0."""
        middle = median(self.samples) if len(self.samples) > 1 else 0.0
        return (max(self.samples) - min(self.samples)) / middle if middle > 0 else None

    @property
    def repetitions(self) -> tuple[float, ...]:
        """The samples; the value itself where there was one."""
        return self.samples or (self.value,)

    # A ratio in words.

    def as_share(self, limit: float | None = None, *, tenths: bool = False) -> str:
        """`64.2 % ± 1.1 %`; of one that a limit decides and that is hardly known, first the end that decided: `at least
        53.4 % (86.5 % (53.4 to 96.1 %))`. `tenths`: also of a hundred percent and more, where they decide."""
        said = f"{self.value * 100:.1f} %" if tenths else format_share(self.value)
        if self.low is not None and self.high is not None:
            said = f"{said} {format_interval(self.value, self.low, self.high)}"
        end = "" if limit is None else self.deciding_end(limit)
        return f"{end} ({said})" if end else said

    def deciding_end(self, limit: float) -> str:
        """`at least 86.0 %` or `at most 86.0 %`, where all of a wide interval is on one side of a limit; else empty."""
        low, high = self.ends
        if self.reach <= WORTH_SHOWING * self.value or low < limit <= high:
            return ""
        return f"at least {format_share(low)}" if low >= limit else f"at most {format_share(high)}"

    @property
    def difference(self) -> str:
        """How far it is from one: `-1.2 % ± 1.4`."""
        return f"{(self.value - 1) * 100:+.1f} % ± {self.reach * 100:.1f}"


def in_order(low: float | None, high: float | None) -> None:
    """`ValueError` for the ends of an interval that are exchanged."""
    if low is not None and high is not None and low > high:
        raise ValueError(f"low is {low:g}, which is above high, {high:g}")


#: Said of a published figure whose source does not tell of how many CPUs it is.
CPUS_NOT_GIVEN = "number of CPUs not given"


def _fit_their_metrics(figures: dict[str, Estimate]) -> dict[str, Estimate]:
    for name, figure in figures.items():
        metric = METRICS[name]
        if figure.unit != metric.unit.name:
            raise ValueError(f"the unit of {name} is {quoted(figure.unit)} and not {quoted(metric.unit.name)}")
        if metric.role == "promise" and min(figure.value, figure.low or 0, *figure.samples) < 0:
            raise ValueError(f"{name} is negative")
    return figures


Figures = Annotated[
    dict[MetricName, Estimate],
    AfterValidator(_fit_their_metrics),
    Field(json_schema_extra={"propertyNames": {"enum": list(METRICS)}}),
]


def build_in_words(build: str) -> str:
    """`distribution`, or the folder that it is in."""
    return "the packaged build" if build == "distribution" else f"the build in {build}"


@dataclass(frozen=True, slots=True, kw_only=True, config=SLIM)
class Threshold:
    """A promise of the SLA, from its file to the page: first what was promised, then what was measured of it."""

    metric: MetricName
    #: That of the metric. `ratio`: to another topology; `of_build`: to another build of the same one; `absolute`: a
    #: figure of its own.
    kind: Annotated[Kind, Field(json_schema_extra=lambda schema: schema.pop("default", None))] = "absolute"
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
    #: Whether the DUT's kind of CPU is none of those that it was measured on, so that a first miss does not count.
    new_kind: bool = False
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.metric))
        in_order(self.low, self.high)

    @property
    def found(self) -> Estimate | None:
        """What was measured, with its interval; None where it was not measured."""
        if self.measured is None:
            return None
        return Estimate(self.measured, METRICS[self.metric].unit.name, self.low, self.high)

    @property
    def is_promise(self) -> bool:
        """Whether it is a promise, and no condition of every trial."""
        return METRICS[self.metric].role == "promise"

    @property
    def catches(self) -> float | None:
        """The smallest slowdown of what was tested that breaks the promise, from what was measured here: 0.1 is a tenth
        of its speed. The whole interval has to be beyond the limit then: 99 % ± 2 % against at least 90 % is 11 %.
        None where nothing decided it, and of what is counted, not timed."""
        metric, found = METRICS[self.metric], self.found
        if found is None or self.undecided or not self.is_promise or metric.of_table:
            return None
        low, high = found.ends
        part, whole = (self.limit, high) if metric.better == "higher" else (low, self.limit)
        return max(0.0, 1 - part / whole) if whole > 0 else None

    @property
    def other(self) -> str:
        """What a rate is compared with, in words."""
        if self.kind == "of_build":
            return build_in_words(self.to or "")
        return self.to or "another topology"

    @property
    def relation(self) -> str:
        """How a rate compares: `64.2 % ± 1.1 % of linux-router/forward/1cpu-1rxq, at least 60 % promised`; empty where
        nothing was compared."""
        found, bound = self.found, METRICS[self.metric].bound
        if found is None or self.kind == "absolute":
            return ""
        of = "more than" if self.metric == "added_cost" else "of"
        return f"{found.as_share(self.limit)} {of} {self.other}, {bound} {self.limit * 100:g} % promised"


class Reference(RecordModel):
    """Figures published elsewhere, shown next to the floor. They are not a promise."""

    #: By metric.
    figures: dict[MetricName, Real] = Field(json_schema_extra={"propertyNames": {"enum": list(METRICS)}})
    source: str
    #: Whether the source says of how many CPUs they are: those of the test that they are next to.
    cpus_given: bool = True

    @property
    def label(self) -> str:
        """The source, and that it gives no number of CPUs where it does not."""
        return self.source if self.cpus_given else f"{self.source}, {CPUS_NOT_GIVEN}"


_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Accepted(RecordModel):
    """That a test may miss its SLA for a while, as the SLA file says. The verdict stays `missed`, and no run fails for
    it. The first screen of the report shows it."""

    #: The root cause, and who decided that it is accepted.
    because: _Words
    by: _Words
    #: The last day (UTC) on which it holds: year, month and day.
    until: date
    #: Where that is followed up: a URL, or an identifier such as `OVS-1234`. A known miss that is not shown again is
    #: never repaired.
    ticket: _Words

    @property
    def signed(self) -> str:
        """Who accepted it, with the ticket: `R. Manager, OVS-1234`."""
        return f"{self.by}, {self.ticket}"


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
    accepted: Accepted | None = None
