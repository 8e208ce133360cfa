"""The SLA file: its entries, and the floors per topology and profile. Read from variables/sla/*.yaml."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PlainValidator, create_model, model_validator

from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet, NoPromise
from ctbench.base.quantities import MOST
from ctbench.base.units import did_you_mean, quoted
from ctbench.base.yaml_files import Name, YamlModel, load, make
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Procedure
from ctbench.results.floor import (
    Accepted,
    BoundMachine,
    Floor,
    Reference,
    Threshold,
    build_in_words,
    derive,
    parse,
    with_packets,
)
from ctbench.results.metrics import (
    AT_HALF,
    COSTS,
    FORWARDED,
    HELD,
    METRICS,
    RATE_OF,
    RATES,
    RELATIVE,
    SERVED,
    Metric,
    kind_of,
)
from ctbench.traffic.profiles import ConnectionProfile, Profile

#: Where the promise of a row with a floor of its own comes from.
OF_THE_ROW = "the row of the suite"
#: So far ahead a miss can be accepted.
_LONGEST = timedelta(days=366)
#: What every trial has to keep.
_CONDITIONS = frozenset(metric.name for metric in METRICS.values() if metric.role == "condition")


def _reads(metric: Metric) -> PlainValidator:
    return PlainValidator(partial(parse, metric=metric))


class OfBuild(YamlModel):
    """A promise that compares the build under test with another one, by several starts of both (in a lab, blocks of
    searches)."""

    #: `distribution`, the package; or the folder that the other build was configured with (--prefix).
    base: str
    rate: Annotated[Threshold, _reads(METRICS["of_build"])]

    @model_validator(mode="after")
    def _is_a_build(self) -> Self:
        if self.base != "distribution" and not self.base.startswith("/"):
            raise ValueError(
                f'base: {quoted(self.base)} is not a build.\n  Expected "distribution" or the absolute path that it '
                'was configured with (--prefix), for example "/opt/ovs-3.7.1".'
            )
        return self

    def holds_for(self, topology: Topology, build: str | None) -> bool:
        """Return True where the topology's DUT comes in several builds, and the `build` under test is not the base."""
        return self.is_of(topology) and build is not None and build != self.base

    def notes(self, topology: Topology, build: str | None) -> tuple[str, ...]:
        """Return the note on a test of the base itself; empty for others."""
        if build != self.base or not self.is_of(topology):
            return ()
        which = build_in_words(self.base)
        return (f"This is {which}, which the SLA compares other builds with: of_build promises nothing of it.",)

    def is_of(self, topology: Topology) -> bool:
        """Return True where the DUT of a topology comes in several builds."""
        return topology.datapath in KINDS and bool(KINDS[topology.datapath].builds)


def _topology(key: str) -> str:
    Topology.parse(key)
    return key


#: Key of the topology that a promise compares with.
OtherTopology = Annotated[str, AfterValidator(_topology)]


class RatioEntry(YamlModel):
    """A promise of the rate relative to another topology's, both measured as a pair, with the same profile or another
    one there."""

    #: Key of that topology.
    to: OtherTopology
    #: Profile that is offered there; None: the same.
    profile: Name | None = None
    #: Share of its rate; more than 100% promises to be faster. None: no floor yet, too few machines have measured it.
    rate: Annotated[Threshold, _reads(METRICS["ratio"])] | None = None
    #: `cpu`: the share is of the rate per CPU, so 100% of one CPU's is eight times as much with eight.
    per: Literal["cpu"] | None = None
    #: true: so far from what is usual that a build 30 % slower would pass; reports call it a smoke test.
    smoke: bool = False

    def threshold(self, key: str) -> Threshold | None:
        """Return the promise for a topology, if any; one per CPU becomes one of the whole rate, by the CPUs of both."""
        if self.rate is None:
            return None
        limit, written = self.rate.limit, self.rate.written
        if self.per:
            limit, written = limit * Topology.parse(key).cpus / Topology.parse(self.to).cpus, f"{written} per CPU"
        to = f"{self.to} with {self.profile}" if self.profile else self.to
        return replace(self.rate, limit=limit, written=written, to=to, smoke=self.smoke)


class CostEntry(YamlModel):
    """A promise of the instructions relative to another topology's, with the same profile and in the same machine."""

    #: Key of that topology.
    to: OtherTopology
    #: Share of its instructions; less than 100% promises to be cheaper.
    instructions: Annotated[Threshold, _reads(METRICS["relative_cost"])] | None = None
    #: What it takes more than that, as a share of that: of conntrack less forwarding it is what conntrack costs.
    added: Annotated[Threshold, _reads(METRICS["added_cost"])] | None = None

    @model_validator(mode="after")
    def _is_one_promise(self) -> Self:
        if (self.instructions is None) == (self.added is None):
            raise ValueError('promises the whole or what is added.\n  Expected either instructions: "<= 290%" or '
                             'added: "<= 12%".')  # fmt: skip
        return self

    def threshold(self, _key: str) -> Threshold | None:
        """Return the entry's one promise."""
        found = self.instructions or self.added
        return replace(found, to=self.to) if found else None


def _published(value: object, metric: Metric) -> float:
    """Parse a published figure. It may be beyond what an SLA can promise, but has to fit into a record."""
    figure = metric.unit.parse(value)
    if figure > MOST:
        raise ValueError(f"{quoted(value)} is not a valid figure.\n  Expected at most {MOST:.0e}: nothing is faster.")
    return figure


def _keys(name: str, types: dict[str, Any]) -> Any:
    """Return a model with a key for each metric; any of them may be missing."""
    fields: dict[str, Any] = {key: (found | None, None) for key, found in types.items()}
    return create_model(name, __base__=YamlModel, **fields)


def _given(entry: YamlModel, keys: Any) -> dict[str, Any]:
    """Return those of these keys that an entry has."""
    return {name: found for name in keys.model_fields if (found := getattr(entry, name)) is not None}


#: What an entry can promise by a figure of its own, and what can be published.
_Promises: Any = _keys(
    "_Promises",
    {
        each.name: Annotated[Threshold, _reads(each)]
        for each in METRICS.values()
        if each.role != "detail" and each.name not in RELATIVE
    },
)
_Published: Any = _keys(
    "_Published",
    {name: Annotated[float, PlainValidator(partial(_published, metric=each))] for name, each in METRICS.items()},
)


class ReferenceEntry(_Published):  # type: ignore[misc]  # made from the registry
    """Published figures next to the floor, by metric. They are not a promise."""

    source: str
    #: false: the source does not say of how many CPUs they are.
    cpus_given: bool = True


def _within_a_year(accepted: Accepted) -> Accepted:
    latest = datetime.now(UTC).date() + _LONGEST
    if accepted.until > latest:
        raise ValueError(
            f"until: {accepted.until} is more than a year ahead.\n  Expected a day up to {latest}, to look at it again."
        )
    return accepted


class FloorEntry(_Promises):  # type: ignore[misc]
    """The entry of an SLA file for one topology and one profile: thresholds by metric, and their source."""

    ratio: RatioEntry | None = None
    cost: CostEntry | None = None
    #: true: its rates are so far from what is usual that a build 30 % slower would pass; reports call it a smoke test.
    smoke: bool = False
    #: Where this floor comes from, when not from the source of the whole file.
    source: str | None = None
    reference: ReferenceEntry | None = None
    #: That its tests may miss it for a while: by whom, until when, why, and where that is followed up.
    accepted: Annotated[Accepted, AfterValidator(_within_a_year)] | None = None

    @model_validator(mode="after")
    def _accepts_what_it_promises(self) -> Self:
        if self.accepted is None:
            return self
        promised = {"of_build", *self.rates}  # a gate promises the former of each entry
        if self.ratio:
            promised.add("ratio")
        if self.cost and (cost := self.cost.threshold("")):
            promised.add(cost.metric)
        named = set(self.accepted.metrics) or promised & FORWARDED
        if named and named <= promised:
            return self
        unknown = ", ".join(sorted(named - promised))
        found = f"{unknown} is not promised here" if unknown else "is missing, and no rate is promised here"
        raise ValueError(
            f"accepted.metrics: {found}.\n  Expected what may be missed, some of: {', '.join(sorted(promised))}."
        )

    @model_validator(mode="after")
    def _smoke_is_about_something(self) -> Self:
        if self.smoke and not self.rates:
            raise ValueError(
                "smoke: is about the entry's own rates, and it has none.\n"
                "  Expected cps or pps next to it, or smoke: true within ratio."
            )
        return self

    def compares_with(self, key: str, profile: str) -> str | None:
        """Return which promise compares with this topology and profile, `ratio` or `cost`; None where none does."""
        if self.ratio and (self.ratio.to, self.ratio.profile or profile) == (key, profile):
            return "ratio"
        return "cost" if self.cost and self.cost.to == key else None

    @property
    def rates(self) -> frozenset[str]:
        """The metrics that the entry promises by a figure of their own; conditions of every trial are left out."""
        return frozenset(filter(_is_promise, self.thresholds))

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The thresholds of the entry by metric, without those relative to something else."""
        return {
            name: replace(each, smoke=self.smoke and each.is_promise) for name, each in _given(self, _Promises).items()
        }

    @property
    def published(self) -> Reference | None:
        """The published figures for the record; None without any."""
        if self.reference is None:
            return None
        figures = _given(self.reference, _Published)
        return Reference(figures=figures, source=self.reference.source, cpus_given=self.reference.cpus_given)


def _cpu_kind(kind: str) -> str:
    if not re.fullmatch(r"\S+ family \d+ model \d+", kind):
        raise ValueError(
            f"{quoted(kind)} is not a kind of CPU.\n  Expected vendor, family and model as lscpu has them, for example "
            "AuthenticAMD family 26 model 2."
        )
    return kind


#: A kind of CPU, as records name it.
CpuKind = Annotated[str, AfterValidator(_cpu_kind)]


class Floors(YamlModel):
    """An SLA file: floors by topology key (`ovs-dpdk/conntrack/1cpu-1rxq`), then by profile."""

    name: Name
    description: str
    #: Where the figures come from, in words for the report.
    source: str
    #: Holds for every floor that has no `loss_ratio` of its own.
    loss_ratio: Annotated[Threshold, _reads(METRICS["loss_ratio"])] | None = None
    #: Holds for every floor of connections with TCP that has no `connect_time_p99` of its own.
    connect_time_p99: Annotated[Threshold, _reads(METRICS["connect_time_p99"])] | None = None
    #: The machine that the rates of this file were made on: elsewhere they are shown, and a miss is not measured.
    machine: BoundMachine | None = None
    #: The kinds of CPU that ratios and smoke tests of this file were measured on, as records name them (`cpu_kind`): a
    #: first miss on another kind is not measured, one of a second run is missed.
    known_kinds: list[CpuKind] = Field(default_factory=list)
    #: The emulated machine that instructions of this file were counted in, as records name it (`image`): another one is
    #: not judged by them.
    image: str = ""
    #: Share of another build's rate, promised by every floor of what comes in several builds.
    of_build: OfBuild | None = None
    #: What becomes of tests of which the file promises nothing.
    others: Literal["refused", "skipped"] = "refused"
    #: In the file these keys stand at the top, next to `name`.
    floors: dict[str, dict[str, FloorEntry]]

    @staticmethod
    def extended(whole: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a file that extends another one (`whole`). Its own keys replace those of the other file;
        entries are merged promise by promise. An entry of the other file keeps the source of its figures."""
        source = {"source": whole["source"]} if "source" in whole and "source" in own else {}
        merged = {**whole, **own}
        for key in (key for key in merged if "/" in str(key)):
            theirs, ours = whole.get(key) or {}, own.get(key) or {}
            if not isinstance(theirs, dict) or not isinstance(ours, dict):
                continue  # not an SLA file, which is said where it is read
            merged[key] = {**theirs, **ours}
            for profile, entry in theirs.items():
                if isinstance(entry, dict):
                    merged[key][profile] = _extended_entry({**source, **entry}, ours.get(profile, {}))
        return merged

    @model_validator(mode="before")
    @classmethod
    def _gather_floors(cls, data: Any) -> Any:
        """Move the keys that look like a topology into `floors`; a misspelt `descripton` stays an unknown key."""
        if not isinstance(data, dict) or "floors" in data:
            return data
        floors = {key: value for key, value in data.items() if "/" in str(key)}
        return {key: value for key, value in data.items() if key not in floors} | {"floors": floors}

    @model_validator(mode="after")
    def _check_entries(self) -> Self:
        for key, entries in self.floors.items():
            Topology.parse(key)
            for profile, entry in entries.items():
                where = f"{key}.{profile}"
                if (name := entry.compares_with(key, profile)) is not None:
                    raise ValueError(
                        f"{where}.{name}.to: is this very topology.\n  Expected another one to compare with."
                    )
                if not self.image and (counts := COSTS & entry.thresholds.keys()):
                    raise ValueError(
                        f"{where}.{min(counts)}: holds for one emulated machine only.\n  Expected image: at the top of "
                        "the file, as a record of that machine names it (environment.dut.image)."
                    )
        return self

    def find(
        self, topology: Topology, profile: Profile, procedure: Procedure | None = None, *, build: str | None = None
    ) -> Floor:
        """Return the floor of a test with a procedure, else of the profile's rate, without what the same entry promises
        of other tests. A profile that is derived from another one (variables/profiles) takes its floor at the same
        packet rate where the file has none of its own. `build`: the installation under test, `distribution` or a
        folder; None where there are no builds.

        Raises `NoPromise`, which names the file and the key to add, where there is no floor; `ConfigError` for one that
        does not suit the kind of profile; `NoFloorYet` for nothing but a ratio without a rate; `MissingResource` where
        the file only compares other builds with the one under test.
        """
        key = topology.key
        metric = procedure.metric(profile) if procedure else RATE_OF[profile.kind]
        own = {metric.name, *(procedure.found_out if procedure else RATES), *_CONDITIONS}
        profiles = self.floors.get(key, {})
        if profile.name in profiles:
            return with_packets(self._complete(topology, profile, metric, own, build))
        if isinstance(profile, ConnectionProfile) and profile.derived_from in profiles:
            base = load("profiles", profile.derived_from, ConnectionProfile)
            return with_packets(derive(self._complete(topology, base, metric, own, build), base, profile))
        meant = did_you_mean(profile.name, list(profiles)) if profiles else did_you_mean(key, list(self.floors))
        raise NoPromise(
            f"{self._source}: {key}.{profile.name}: is missing.\n  Expected a line such as {profile.name}: "
            f"{{{_example(metric)}}} below this topology.{meant}"
        )

    def without_promise(self, topology: Topology, profile: Profile, metric: Metric) -> Floor:
        """Return the floor of a test that has none yet: the file's conditions of every trial alone."""
        return Floor(topology.key, profile, self.source, metric, self._of_all(profile))

    def compared_with(self, base: str) -> Self:
        """Return these floors with a promise relative to another build: the file's own, else 97 %. `base`: the other
        build; empty: the base of the file, else the package."""
        own = self.of_build or OfBuild.model_validate({"base": "distribution", "rate": ">= 97%"})
        return self.model_copy(update={"of_build": own.model_copy(update={"base": base or own.base})})

    def promised_by_row(self, topology: Topology, profile: Profile, promised: Mapping[str, Any]) -> Self:
        """Return these floors with the row's own entry (as an SLA file has it) as the only one. What the file promises
        of all floors holds here too. Raises `ConfigError` for what cannot be promised."""
        made = make(promised, f"the row ({topology.key}, {profile.name})", FloorEntry)
        if made.compares_with(topology.key, profile.name):
            raise ConfigError(f"the row compares {topology.key} with itself.\n  Expected another topology.")
        own = {topology.key: {profile.name: made}}
        return self.model_copy(update={"floors": own, "source": OF_THE_ROW, "machine": None, "known_kinds": []})

    @property
    def _source(self) -> str:
        return self.file or f"SLA {self.name}"

    def _complete(
        self, topology: Topology, profile: Profile, metric: Metric, own: Collection[str], build: str | None
    ) -> Floor:
        """Return the floor of an entry, with what the whole file promises. `own`: the metrics that the test finds out,
        and the conditions of every trial."""
        key = topology.key
        entry = self.floors[key][profile.name]
        compared = [(found, each.to) for each in (entry.ratio, entry.cost) if each and (found := each.threshold(key))]
        thresholds = entry.thresholds | {found.metric: found for found, _ in compared}
        if self.of_build and self.of_build.holds_for(topology, build):
            thresholds["of_build"] = replace(self.of_build.rate, to=self.of_build.base)
            if not self.machine:  # what any machine is promised says of the base what it says of a like candidate
                thresholds.pop("ratio", None)
        else:
            thresholds.pop("memory_of_build", None)
        where, is_rate = f"{self._source}: {key}.{profile.name}", metric is RATE_OF[profile.kind]
        for name in thresholds:
            if profile.kind not in METRICS[name].profiles:
                raise ConfigError(
                    f"{where}.{name}: is not for a profile of {profile.kind}.\n"
                    f"  Expected {_example(metric)}, without {name}."
                )
        promised = [name for name in thresholds if name in own]
        if entry.ratio and not entry.ratio.rate and not any(map(_is_promise, promised)):
            raise NoFloorYet(
                f"No floor yet: too few machines have measured {key} with {profile.name}, so the SLA {self.name} "
                "promises nothing of it."
            )
        relative = any(kind_of(name) != "absolute" for name in promised)
        besides = is_rate and (SERVED | AT_HALF.keys()) & thresholds.keys()
        if metric.name not in thresholds and not relative and not besides:
            if is_rate and self.of_build and self.of_build.is_of(topology) and not any(map(_is_promise, thresholds)):
                raise MissingResource(
                    f"Nothing is promised of this build itself: the SLA {self.name} compares other builds with it "
                    f"(of_build) and has no other floor for {key}."
                )
            raise NoPromise(
                f"{where}.{metric.name}: is missing.\n  Expected a promise, for example {_example(metric)}."
            )
        for name, threshold in self._of_all(profile).items():
            thresholds.setdefault(name, threshold)
        return Floor(
            key=key,
            profile=profile,
            source=entry.source or self.source,
            metric=metric,
            # As the registry has them, the rate first: nothing depends on the order of the file.
            thresholds={
                name: replace(thresholds[name], bound_to=self._bound_to(name))
                for name in METRICS
                if name in thresholds and name in own
            },
            relative_to=next((to for found, to in compared if found.metric in promised), ""),
            relative_profile=entry.ratio.profile or "" if entry.ratio and "ratio" in promised else "",
            base_build=self.of_build.base if self.of_build and self.of_build.holds_for(topology, build) else "",
            machine=self.machine,
            known_kinds=tuple(self.known_kinds),
            image=self.image,
            of_all=frozenset(self._of_all(profile)) - frozenset(entry.thresholds),
            reference=entry.published,
            accepted=entry.accepted,
            notes=self.of_build.notes(topology, build) if self.of_build else (),
        )

    def _bound_to(self, metric: str) -> str:
        """Return the machine, or the image, that a metric's promise is bound to, in words; empty where it is promised
        on any."""
        if metric in COSTS:
            return f"image {self.image}"
        binds = kind_of(metric) == "absolute" and _is_promise(metric)
        return str(self.machine) if self.machine and binds else ""

    def _of_all(self, profile: Profile) -> dict[str, Threshold]:
        """Return the conditions that the file has for every floor and that apply to this profile."""
        timed = isinstance(profile, ConnectionProfile) and profile.udp_percent < 100
        found = {"loss_ratio": self.loss_ratio, "connect_time_p99": self.connect_time_p99 if timed else None}
        return {name: each for name, each in found.items() if each}


def _is_promise(metric: str) -> bool:
    return METRICS[metric].role == "promise"


def _example(metric: Metric) -> str:
    """Return a promise of the metric, as an SLA file has it."""
    return f'{metric.name}: "{metric.operator} {metric.unit.example}"'


def _extended_entry(theirs: Mapping[str, Any], ours: Any) -> Any:
    """Return an entry of a file that extends another one. Its own held rates replace all held rates of the other entry;
    own held or served rates drop the other's `source` and `smoke`."""
    if not isinstance(ours, dict):
        return ours
    replaced = {"source", "smoke"} if ours.keys() & (HELD | SERVED) else set()
    replaced |= HELD if ours.keys() & HELD else set()
    return {name: said for name, said in theirs.items() if name not in replaced} | ours
