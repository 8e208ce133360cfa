"""The parts of an SLA file: what it may promise of one topology with one profile, and of builds."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import PlainSerializer, PlainValidator, create_model, model_validator

from ctbench.base.bounds import MOST
from ctbench.base.units import quoted
from ctbench.base.yaml_files import Name, YamlModel
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.results.metrics import METRICS, RELATIVE, RENAMED, Metric, promised_metrics
from ctbench.results.promised import Reference
from ctbench.sla.threshold import Threshold, parse

_AS_WRITTEN = PlainSerializer(str, return_type=str)
CostThreshold = Annotated[Threshold, PlainValidator(partial(parse, metric=METRICS["relative_cost"])), _AS_WRITTEN]
RatioThreshold = Annotated[Threshold, PlainValidator(partial(parse, metric=METRICS["ratio"])), _AS_WRITTEN]
LossThreshold = Annotated[Threshold, PlainValidator(partial(parse, metric=METRICS["loss_ratio"])), _AS_WRITTEN]


ConnectThreshold = Annotated[Threshold, PlainValidator(partial(parse, metric=METRICS["connect_time_p99"])), _AS_WRITTEN]
BuildThreshold = Annotated[Threshold, PlainValidator(partial(parse, metric=METRICS["of_build"])), _AS_WRITTEN]


class OfBuild(YamlModel):
    """A promise that compares the build under test with another one, both side by side in one pair."""

    #: `distribution`, the package; or the folder that the other build was configured with (--prefix).
    base: str
    rate: BuildThreshold

    @model_validator(mode="after")
    def _is_a_build(self) -> Self:
        if self.base != "distribution" and not self.base.startswith("/"):
            raise ValueError(
                f'base: {quoted(self.base)} is no build.\n  Expected "distribution" or the absolute path that it was '
                'configured with (--prefix), for example "/opt/ovs-3.3".'
            )
        return self

    def holds_for(self, topology: Topology, build: str | None) -> bool:
        """Whether it is promised of a topology in a build: of what comes in several builds, and not of the base."""
        return self.is_of(topology) and build is not None and build != self.base

    def notes(self, topology: Topology, build: str | None) -> tuple[str, ...]:
        """What has to be said where it is the base itself that is tested."""
        if build != self.base or not self.is_of(topology):
            return ()
        which = "the packaged build" if self.base == "distribution" else f"the build in {self.base}"
        return (f"This is {which}, which the SLA compares other builds with: of_build promises nothing of it.",)

    def is_of(self, topology: Topology) -> bool:
        """Whether what is set up comes in several builds."""
        return topology.datapath in KINDS and KINDS[topology.datapath].builds is not None


class RatioEntry(YamlModel):
    """A promise that compares with another topology side by side, with the same profile or with another one there."""

    #: Key of that topology.
    to: str
    #: Profile that is offered there; None: the same.
    profile: Name | None = None
    #: Share of its rate; more than 100% promises to be faster.
    rate: RatioThreshold
    #: `cpu`: the share is of the rate per CPU, so 100% of one CPU's is eight times as much with eight.
    per: Literal["cpu"] | None = None
    #: true: so far from what is usual that a build 30 % slower would pass; reports call it a smoke test.
    smoke: bool = False

    def threshold(self, key: str) -> Threshold:
        """What is promised of a topology; a promise per CPU becomes one of the whole rate, by the CPUs of both."""
        if self.per is None:
            return self.rate
        share = self.rate.limit * Topology.parse(key).cpus / Topology.parse(self.to).cpus
        return replace(self.rate, limit=share, text=f"{self.rate.text} per CPU")

    @model_validator(mode="after")
    def _is_a_topology(self) -> Self:
        _require_topology(self.to)
        return self


class CostEntry(YamlModel):
    """A promise that compares with another topology's instructions, with the same profile and in the same machine."""

    #: Key of that topology.
    to: str
    #: Share of its instructions; less than 100% promises to be cheaper.
    instructions: CostThreshold

    @model_validator(mode="after")
    def _is_a_topology(self) -> Self:
        _require_topology(self.to)
        return self


def _require_topology(to: str) -> None:
    try:
        Topology.parse(to)
    except ValueError as error:
        raise ValueError(f"to: {error}") from None


def _published(value: object, metric: Metric) -> float:
    """A figure of others; it may be beyond what an SLA can promise, and has to be a number that a record can hold."""
    figure = metric.unit.parse(value)
    if figure > MOST:
        raise ValueError(f"{quoted(value)} is not a valid figure.\n  Expected at most {MOST:.0e}: nothing is faster.")
    return figure


def _keys(name: str, **types: Any) -> Any:
    """A model with a key for each metric, which may be missing."""
    fields: dict[str, Any] = {key: (found | None, None) for key, found in types.items()}
    return create_model(name, __base__=YamlModel, **fields)


#: What an entry can promise by a figure of its own, and what can be published.
_Promises: Any = _keys(
    "_Promises",
    **{
        each.name: Annotated[Threshold, PlainValidator(partial(parse, metric=each)), _AS_WRITTEN]
        for each in promised_metrics()
        if each.name not in RELATIVE
    },
)
_Published: Any = _keys(
    "_Published",
    **{each.name: Annotated[float, PlainValidator(partial(_published, metric=each))] for each in METRICS.values()},
)


class ReferenceEntry(_Published):  # type: ignore[misc]  # made from the registry
    """Published figures next to the floor, by metric. They are no promise."""

    source: str


class FloorEntry(_Promises):  # type: ignore[misc]
    """What an SLA file has for one topology and one profile: thresholds by metric, and where they are from."""

    ratio: RatioEntry | None = None
    cost: CostEntry | None = None
    #: true: its rates are so far from what is usual that a build 30 % slower would pass; reports call it a smoke test.
    smoke: bool = False
    #: Where this promise comes from, when not from the source of the whole file.
    source: str | None = None
    reference: ReferenceEntry | None = None

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, data: Any) -> Any:
        for old, new in RENAMED.items():
            if isinstance(data, dict) and old in data:
                raise ValueError(f"{old}: is called {new} now.\n  Expected {new}, with the same value.")
        return data

    @model_validator(mode="after")
    def _smoke_is_about_something(self) -> Self:
        if self.smoke and not self.rates:
            raise ValueError(
                "smoke: is about the entry's own rates, and it has none.\n"
                "  Expected cps or pps beside it, or smoke: true within ratio."
            )
        return self

    def compares_with(self, key: str, profile: str) -> str | None:
        """The promise that compares with a topology and a profile, `ratio` or `cost`; None where none does."""
        if self.ratio and (self.ratio.to, self.ratio.profile or profile) == (key, profile):
            return "ratio"
        return "cost" if self.cost and self.cost.to == key else None

    @property
    def rates(self) -> frozenset[str]:
        """Metrics of its own promises that are no conditions of every trial."""
        return frozenset(name for name in self.thresholds if METRICS[name].role == "promise")

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The thresholds that there are by metric, but for those relative to something."""
        found = {name: getattr(self, name) for name in _Promises.model_fields}
        return {name: threshold for name, threshold in found.items() if threshold is not None}

    @property
    def published(self) -> Reference | None:
        """The published figures, for the record."""
        if self.reference is None:
            return None
        figures = {name: getattr(self.reference, name) for name in _Published.model_fields}
        known = {name: figure for name, figure in figures.items() if figure is not None}
        return Reference(figures=known, source=self.reference.source)
