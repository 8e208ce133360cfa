"""The parts of a record's models: their base class, figures by metric, and estimates."""

from datetime import UTC
from statistics import median
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.dataclasses import dataclass

from ctbench.base.quantities import Real
from ctbench.base.units import format_interval, format_share, quoted
from ctbench.results.metrics import METRICS

Utc = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class RecordModel(BaseModel):
    """Base of the record's models: frozen, unknown keys forbidden, no infinities (JSON has none)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def first_mistake(errors: ValidationError) -> str:
    """Return the first mistake in a file: its place, and what is wrong there."""
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
    """A value with its bounds and samples."""

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
        """The lower and the upper bound; the value itself in place of a missing one."""
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
        """The samples; the value alone where there are none."""
        return self.samples or (self.value,)

    # A ratio in words.

    def as_share(self, limit: float | None = None, *, tenths: bool = False) -> str:
        """Return a ratio in words, `64.2 % ± 1.1 %`. Where a limit decides and the interval is wide, the deciding end
        comes first: `at least 53.4 % (86.5 % (53.4 to 96.1 %))`. `tenths`: write tenths above 100 % too, where they
        decide."""
        said = f"{self.value * 100:.1f} %" if tenths else format_share(self.value)
        if self.low is not None and self.high is not None:
            said = f"{said} {format_interval(self.value, self.low, self.high)}"
        end = "" if limit is None else self.deciding_end(limit)
        return f"{end} ({said})" if end else said

    def deciding_end(self, limit: float) -> str:
        """Return `at least 86.0 %` or `at most 86.0 %` where all of a wide interval is on one side of a limit; else an
        empty text."""
        low, high = self.ends
        if self.reach <= WORTH_SHOWING * self.value or low < limit <= high:
            return ""
        return f"at least {format_share(low)}" if low >= limit else f"at most {format_share(high)}"

    @property
    def lost(self) -> "Estimate":
        """The share that a ratio lacks to 1, with its interval: for 0.94, 0.06."""
        low, high = self.ends
        return Estimate(1 - self.value, self.unit, 1 - high, 1 - low)

    @property
    def difference(self) -> str:
        """The difference from a ratio of 1: `-1.2 % ± 1.4 %`."""
        return f"{(self.value - 1) * 100:+z.1f} % ± {self.reach * 100:.1f} %"


def in_order(low: float | None, high: float | None) -> None:
    """Raise `ValueError` where the lower end of an interval is above the upper end."""
    if low is not None and high is not None and low > high:
        raise ValueError(f"low is {low:g}, which is above high, {high:g}")


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
