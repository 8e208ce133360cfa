"""The SLA file: floors per topology and profile. Read from variables/sla/*.yaml."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import PlainSerializer, PlainValidator, create_model, model_validator

from ctbench.base.bounds import MOST
from ctbench.base.errors import ConfigError
from ctbench.base.spelling import did_you_mean
from ctbench.base.units import quoted
from ctbench.base.yaml_files import Name, YamlModel, load
from ctbench.dut.topology import Topology
from ctbench.results.metrics import METRICS, RATE_OF, RATES, RENAMED, Metric, promised_metrics
from ctbench.results.record import Reference
from ctbench.sla.floor import Floor, derive
from ctbench.sla.threshold import Threshold, parse
from ctbench.traffic.profiles import ConnectionProfile, Profile

_AS_WRITTEN = PlainSerializer(str, return_type=str)
RatioThreshold = Annotated[Threshold, PlainValidator(partial(parse, metric=METRICS["ratio"])), _AS_WRITTEN]
LossThreshold = Annotated[Threshold, PlainValidator(partial(parse, metric=METRICS["loss_ratio"])), _AS_WRITTEN]


class RatioEntry(YamlModel):
    """A promise that compares with another topology, measured with the same profile in the same run."""

    #: Key of that topology.
    to: str
    #: Share of its rate; more than 100% promises to be faster.
    rate: RatioThreshold
    #: `cpu`: the share is of the rate per CPU, so 100% of one CPU's is eight times as much with eight.
    per: Literal["cpu"] | None = None

    @model_validator(mode="after")
    def _is_a_topology(self) -> Self:
        try:
            Topology.parse(self.to)
        except ValueError as error:
            raise ValueError(f"to: {error}") from None
        return self


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


#: What can be promised, but for `ratio`, and what can be published.
_Promises: Any = _keys(
    "_Promises",
    **{
        each.name: Annotated[Threshold, PlainValidator(partial(parse, metric=each)), _AS_WRITTEN]
        for each in promised_metrics()
        if each.name != "ratio"
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

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The thresholds that there are by metric, but for `ratio`."""
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


class Floors(YamlModel):
    """An SLA file: floors by topology key (`ovs-dpdk/conntrack/1cpu-1rxq`), then by profile."""

    name: Name
    description: str
    #: Where the figures come from, in words for the report.
    source: str
    #: Holds for every floor that has no `loss_ratio` of its own.
    loss_ratio: LossThreshold | None = None
    #: Share of what a reference run measured (`-v REFERENCE:`), promised by every floor besides its own figure.
    of_reference: RatioThreshold | None = None
    #: In the file these keys stand at the top, next to `name`.
    floors: dict[str, dict[str, FloorEntry]]

    @model_validator(mode="before")
    @classmethod
    def _gather_floors(cls, data: Any) -> Any:
        """Move the keys that look like a topology into `floors`; a misspelt `descripton` stays an unknown key."""
        if not isinstance(data, dict) or "floors" in data:
            return data
        floors = {key: value for key, value in data.items() if "/" in str(key)}
        return {key: value for key, value in data.items() if key not in floors} | {"floors": floors}

    @model_validator(mode="after")
    def _keys_are_topologies(self) -> Self:
        for key, entries in self.floors.items():
            Topology.parse(key)
            for profile, entry in entries.items():
                if entry.ratio and entry.ratio.to == key:
                    raise ValueError(
                        f"{key}.{profile}.ratio.to: is this very topology.\n  Expected another one to compare with."
                    )
        return self

    def find(
        self,
        topology: Topology,
        profile: Profile,
        metric: Metric | None = None,
        found_out: Collection[str] = RATES,
        *,
        load_profile: Callable[[str], ConnectionProfile] | None = None,
    ) -> Floor:
        """The floor of a test that looks for `metric` (else for the profile's rate) and finds `found_out` out; metrics
        that the same entry promises of other tests are not of it. A profile that is derived from another takes its
        floor by the packet rate when the file has none of its own; `load_profile` finds that other profile
        (variables/profiles).

        Raises `ConfigError` that names the file and the key to add when there is none, or one that does not suit
        the kind of profile.
        """
        key = topology.key
        test = _Test(metric or RATE_OF[profile.kind], found_out)
        line = f"Expected a line such as {profile.name}: {{{test.example}}} below this topology."
        if key not in self.floors:
            meant = did_you_mean(key, list(self.floors))
            raise ConfigError(f"{self._source}: {key}.{profile.name}: is missing.\n  {line}{meant}")
        profiles = self.floors[key]
        if profile.name in profiles:
            return self._complete(key, profile, test)
        is_rate = test.metric is RATE_OF[profile.kind]
        if is_rate and isinstance(profile, ConnectionProfile) and profile.derived_from in profiles:
            base = (load_profile or _load_profile)(profile.derived_from)
            return derive(self._complete(key, base, test), base, profile)
        meant = did_you_mean(profile.name, list(profiles))
        raise ConfigError(f"{self._source}: {key}.{profile.name}: is missing.\n  {line}{meant}")

    @property
    def _source(self) -> str:
        return self.file or f"SLA {self.name}"

    def _complete(self, key: str, profile: Profile, test: "_Test") -> Floor:
        """The entry with its names, and the loss ratio of the whole file where it has none."""
        entry = self.floors[key][profile.name]
        thresholds = dict(entry.thresholds)
        if entry.ratio:
            thresholds["ratio"] = _ratio(key, entry.ratio)
        test.check(f"{self._source}: {key}.{profile.name}", thresholds, profile)
        if self.loss_ratio:
            thresholds.setdefault("loss_ratio", self.loss_ratio)
        return Floor(
            key=key,
            profile=profile,
            source=entry.source or self.source,
            metric=test.metric,
            # As the registry has them, the rate first: nothing depends on the order of the file.
            thresholds={name: thresholds[name] for name in METRICS if name in thresholds and test.has(name)},
            relative_to=entry.ratio.to if entry.ratio and test.has("ratio") else "",
            reference=entry.published,
        )


@dataclass(frozen=True)
class _Test:
    """What a test looks for, and what it finds out."""

    metric: Metric
    found_out: Collection[str]

    @property
    def example(self) -> str:
        """What has to be promised, as an SLA file has it."""
        return f'{self.metric.name}: "{self.metric.operator} {self.metric.unit.example}"'

    def has(self, name: str) -> bool:
        """Whether a metric is of this test: it finds it out, or it is a condition of every trial."""
        return name == self.metric.name or name in self.found_out or METRICS[name].role == "condition"

    def check(self, where: str, thresholds: Mapping[str, Threshold], profile: Profile) -> None:
        """Refuse what this kind of profile does not have, then an entry without what the test looks for."""
        for name, threshold in thresholds.items():
            if profile.kind not in threshold.metric.profiles:
                raise ConfigError(
                    f"{where}.{name}: is not for a profile of {profile.kind}.\n"
                    f"  Expected {self.example}, without {name}."
                )
        if self.metric.name not in thresholds:
            raise ConfigError(
                f"{where}.{self.metric.name}: is missing.\n  Expected a promise, for example {self.example}."
            )


def _ratio(key: str, entry: RatioEntry) -> Threshold:
    """A promise per CPU becomes one of the whole rate, by the CPUs of both topologies."""
    if entry.per is None:
        return entry.rate
    share = entry.rate.limit * Topology.parse(key).cpus / Topology.parse(entry.to).cpus
    return replace(entry.rate, limit=share, text=f"{entry.rate.text} per CPU")


def _load_profile(name: str) -> ConnectionProfile:
    return load("profiles", name, ConnectionProfile)
