"""What the models of a record are made of: their base, metrics by name, and figures."""

from datetime import UTC
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
)
from pydantic.dataclasses import dataclass
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ctbench.base.quantities import Real
from ctbench.base.units import quoted
from ctbench.results.metrics import METRICS, Metric
from ctbench.results.statistics import spread

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


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Figure:
    """What was found out of one metric. A dataclass: a record has many, and a year of records has to fit in memory."""

    value: Real
    #: That of the metric: `connections/s`, `ratio`, `s`.
    unit: str
    #: What the value lies between: of a search, the highest load that held and the lowest that did not; of
    #: repetitions, the least and the most of them. None where nothing bounds it on that side, or that is not known.
    low: Real | None = None
    high: Real | None = None
    #: The value of each repetition, where there were several.
    samples: tuple[Real, ...] = ()

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low is {self.low:g}, which is above high, {self.high:g}")

    @property
    def spread(self) -> float | None:
        """(largest - smallest sample) / median; None for fewer than two samples, or a median of 0."""
        return spread(self.samples) if len(self.samples) > 1 else None

    @property
    def repetitions(self) -> tuple[float, ...]:
        """The samples; the value itself where there was one."""
        return self.samples or (self.value,)


class _ByMetric:
    """Of values by metric, the JSON Schema: which keys there are."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(core) | {"propertyNames": {"enum": list(METRICS)}}


#: Published figures by metric.
Values = Annotated[dict[MetricName, Real], _ByMetric()]


class _OfMetrics:
    """Of figures by metric, the JSON Schema: which metrics there are, and what `_fit_their_metrics` asks of each."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        figure = handler(core)["additionalProperties"]
        figures = {name: {"allOf": [figure, {"properties": _of_metric(metric)}]} for name, metric in METRICS.items()}
        return {"type": "object", "properties": figures, "additionalProperties": False}


def _of_metric(metric: Metric) -> JsonSchemaValue:
    unit = {"unit": {"const": metric.unit.name}}
    if metric.role != "promise":
        return unit
    return unit | {"value": {"minimum": 0}, "low": {"minimum": 0}, "samples": {"items": {"minimum": 0}}}


def _fit_their_metrics(figures: dict[str, Figure]) -> dict[str, Figure]:
    for name, figure in figures.items():
        metric = METRICS[name]
        if figure.unit != metric.unit.name:
            raise ValueError(f"the unit of {name} is {quoted(figure.unit)} and not {quoted(metric.unit.name)}")
        if metric.role == "promise" and min(figure.value, figure.low or 0, *figure.samples) < 0:
            raise ValueError(f"{name} is negative")
    return figures


Figures = Annotated[dict[MetricName, Figure], AfterValidator(_fit_their_metrics), _OfMetrics()]
