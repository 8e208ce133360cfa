"""A floor: the thresholds promised of one topology with one profile, the machine that they were made on, and what
follows from them. One `Threshold` goes from the SLA file to the page; the measured value is added to it."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated

from pydantic import Field, StringConstraints
from pydantic.dataclasses import dataclass as pydantic_dataclass

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.network import FCS_BYTES, VLAN_TAG_BYTES
from ctbench.base.quantities import Real
from ctbench.base.text import one_line
from ctbench.base.units import parse_number, quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import FORWARDED, HELD, LOSS_OF, METRICS, RATE_OF, Kind, Metric, Operator, kind_of
from ctbench.results.record_model import SLIM, Estimate, MetricName, RecordModel, in_order
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import IMIX, ConnectionProfile, PacketProfile, Profile


def build_in_words(build: str) -> str:
    """Return a build in words: the packaged one (`distribution`), or the one in a folder."""
    return "the packaged build" if build == "distribution" else f"the build in {build}"


@pydantic_dataclass(frozen=True, slots=True, kw_only=True, config=SLIM)
class Threshold:
    """A threshold of the SLA, from its file to the page: first the limit, then the measured value and the verdict."""

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
        """The measured value with its interval; None where it was not measured."""
        if self.measured is None:
            return None
        return Estimate(self.measured, METRICS[self.metric].unit.name, self.low, self.high)

    @property
    def is_promise(self) -> bool:
        """True for a promise, False for a condition of every trial."""
        return METRICS[self.metric].role == "promise"

    @property
    def catches(self) -> float | None:
        """The smallest slowdown (ratio) of what was tested that breaks the promise, by this measurement: 0.1 is a tenth
        of its speed. The whole interval has to be beyond the limit then: 99 % ± 2 % against at least 90 % is 11 %. None
        for a condition, for a threshold that is undecided or not measured, and for a metric of the connection table."""
        metric, found = METRICS[self.metric], self.found
        if found is None or self.undecided or not self.is_promise or metric.of_table:
            return None
        low, high = found.ends
        part, whole = (self.limit, high) if metric.better == "higher" else (low, self.limit)
        return max(0.0, 1 - part / whole) if whole > 0 else None

    @property
    def other(self) -> str:
        """The topology or build that a rate is compared with."""
        if self.kind == "of_build":
            return build_in_words(self.to or "")
        return self.to or "another topology"

    @property
    def relation(self) -> str:
        """The comparison in words: `64.2 % ± 1.1 % of linux-router/forward/1cpu-1rxq, at least 60 % promised`; empty
        where nothing was compared."""
        found, bound = self.found, METRICS[self.metric].bound
        if found is None or self.kind == "absolute":
            return ""
        of = "more than" if self.metric == "added_cost" else "of"
        return f"{found.as_share(self.limit)} {of} {self.other}, {bound} {self.limit * 100:g} % promised"


_EXAMPLE = 'Expected a comparison and a number, for example ">= 48.2k" or "<= 0.02%".'


def promise(metric: Metric, limit: float, written: str = "") -> Threshold:
    """Return a threshold without a measurement. Without `written`, its text is made as a file would have it."""
    written = written or f"{metric.operator} {metric.unit.write(limit)}"
    return Threshold(metric=metric.name, operator=metric.operator, limit=limit, written=written)


def parse(value: object, metric: Metric) -> Threshold:
    """Parse a threshold of a file. Its limit has to be one that can be kept and can be broken.

    Raises `ValueError` with what was found and what was expected.
    """
    match = re.fullmatch(r"(>=|<=)\s*(\S.*)", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{quoted(value)} is not a threshold.\n  {_EXAMPLE}")
    unit, expected = (
        metric.unit,
        f'Expected {metric.bound} a value, for example "{metric.operator} {metric.unit.example}"',
    )
    try:
        limit = unit.parse(match[2])
    except ValueError:
        # A plain number has the general example; of others it is the unit that is most likely missing.
        hint = _EXAMPLE if unit.parse is parse_number else f"{expected}."
        raise ValueError(f"{quoted(value)} is not a threshold.\n  {hint}") from None
    if match[1] != metric.operator:
        why = f"{metric.better} is better"
        raise ValueError(f"{quoted(value)} points the wrong way: {why}.\n  {expected}.")
    if not unit.parse(unit.least) <= limit <= unit.parse(unit.most):
        raise ValueError(
            f"{quoted(value)} is outside the allowed range.\n  {expected}, from {unit.least} to {unit.most}."
        )
    return promise(metric, limit, str(value).strip())


_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class BoundMachine(YamlModel):
    """The DUT's machine that rates of an SLA file are promised on. A key that is not given matches any machine."""

    #: A text that the name of the CPU contains: `Xeon(R) Gold 5118`.
    cpu_model: _Text
    #: CPUs that may be used there.
    cpus: int | None = Field(None, ge=1)
    #: Release of the kernel, and the hypervisor (`none` on bare metal), as records have them.
    kernel: _Text | None = None
    hypervisor: _Text | None = None

    def __str__(self) -> str:
        parts = [
            self.cpu_model,
            f"{self.cpus} CPUs" if self.cpus else "",
            f"kernel {self.kernel}" if self.kernel else "",
            f"hypervisor {self.hypervisor}" if self.hypervisor else "",
        ]
        return ", ".join(part for part in parts if part)

    def differs_from(self, found: MachineFacts | None) -> str:
        """Return how the DUT's machine differs, `the DUT's machine has 2 CPUs`, or that it is not known; empty where it
        matches."""
        if found is None or not found.cpu_model:
            return "the DUT's machine is not known"
        kept = {
            found.cpu_model: self.cpu_model in found.cpu_model,
            f"{len(found.usable_cpus)} CPUs": self.cpus in (None, len(found.usable_cpus)),
            f"kernel {found.kernel}": self.kernel in (None, found.kernel),
            f"hypervisor {found.virtualisation}": self.hypervisor in (None, found.virtualisation),
        }
        others = [one_line(fact) for fact, same in kept.items() if not same]
        return f"the DUT's machine has {', '.join(others)}" if others else ""


#: Said of a published figure whose source does not tell of how many CPUs it is.
CPUS_NOT_GIVEN = "number of CPUs not given"


class Reference(RecordModel):
    """Figures published elsewhere, shown next to the floor. They are not a promise."""

    #: By metric.
    figures: dict[MetricName, Real] = Field(json_schema_extra={"propertyNames": {"enum": list(METRICS)}})
    source: str
    #: Whether the source says of how many CPUs they are: those of the test that they are next to.
    cpus_given: bool = True

    @property
    def label(self) -> str:
        """The source, marked where it does not give the number of CPUs."""
        return self.source if self.cpus_given else f"{self.source}, {CPUS_NOT_GIVEN}"


_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Accepted(RecordModel):
    """A miss that the SLA file accepts until a given day, by figures that are worse than promised. The verdict stays
    `missed`, and no run fails for it. The first screen of the report shows it."""

    #: The root cause, and who decided that it is accepted.
    because: _Words
    by: _Words
    #: The last day (UTC) on which it holds: year, month and day.
    until: date
    #: Where that is followed up: a URL, or an identifier such as `OVS-1234`. A known miss that is not shown again is
    #: never repaired.
    ticket: _Words
    #: What may be missed; empty: rates (`cps`, `pps`, `bps`, `sustained_cps`, of a closed loop) and `ratio`.
    metrics: list[str] = Field(default_factory=list)

    @property
    def covers(self) -> frozenset[str]:
        """The metrics that may be missed."""
        return frozenset(self.metrics) or FORWARDED

    @property
    def signed(self) -> str:
        """The person who accepted the miss, with the ticket: `R. Manager, OVS-1234`."""
        return f"{self.by}, {self.ticket}"


class FloorRecord(RecordModel):
    """The origin of a test's thresholds."""

    #: Of the floor in the SLA file: topology, for example `ovs-dpdk/conntrack/1cpu-1rxq`, and profile.
    key: str
    profile: str
    #: Where the promise comes from: the SLA file's own words.
    source: str
    #: How the floor follows from another one; empty when the SLA file has it.
    derivation: str = ""
    #: What every trial had to keep, by metric, as the SLA file has it, also where no trial of this record tells of it.
    conditions: dict[MetricName, str] = Field(
        default_factory=dict, json_schema_extra={"propertyNames": {"enum": list(METRICS)}}
    )
    reference: Reference | None = None
    accepted: Accepted | None = None


#: What a trial that counts as good may forward less than it was offered besides what it lost, as a share of the load:
#: packets on their way at its end, and a backlog too slow to be told from them (`ctbench.measure.observation`).
KEEPS_UP = 0.005


@dataclass(frozen=True)
class Floor:
    """The complete promise of one topology with one profile."""

    #: `ovs-dpdk/conntrack/1cpu-1rxq`, and the profile.
    key: str
    profile: Profile
    #: Where the promise comes from: the SLA file's own words.
    source: str
    #: What a test looks for, and every threshold by metric. That of `metric` is among them unless nothing but ratios is
    #: promised.
    metric: Metric
    thresholds: Mapping[str, Threshold]
    #: Key of the topology that a promised `ratio` is relative to; empty without such a promise.
    relative_to: str = ""
    #: Profile that is offered there; empty: the same.
    relative_profile: str = ""
    #: The build that a candidate is compared with: `distribution`, or a folder; empty where there is no candidate.
    base_build: str = ""
    #: The machine that absolute rates were made on; None: they are promised on any.
    machine: BoundMachine | None = None
    #: The kinds of CPU that a promised `ratio` was measured on; empty: a miss counts at once on any.
    known_kinds: tuple[str, ...] = ()
    #: The emulated machine that instructions were counted in; empty: none is promised by a figure of its own.
    image: str = ""
    #: Those that the file promises of every floor.
    of_all: frozenset[str] = frozenset()
    reference: Reference | None = None
    #: What a reader has to know of what is promised, one sentence each.
    notes: tuple[str, ...] = ()
    #: How it follows from the floor of another profile; empty when the file has it.
    derivation: str = ""
    #: That it may be missed for a while.
    accepted: Accepted | None = None

    def __str__(self) -> str:
        """Return the thresholds in words: `new connections at least 48.2 k CPS, lost at most 0.02 %`."""
        return ", ".join(self._in_words(each) for each in self.thresholds.values())

    def _in_words(self, promised: Threshold) -> str:
        metric = METRICS[promised.metric]
        said = f"{metric.title} {metric.bound} {metric.format(promised.limit)}"
        return f"{said} (of {promised.to})" if metric.name in ("ratio", "of_build") else said

    @property
    def main(self) -> Threshold | None:
        """The threshold of the metric that the test looks for; None where the floor has none."""
        return self.thresholds.get(self.metric.name)

    def limit(self, metric: str) -> float | None:
        """Return the limit of a metric; None where the floor has none."""
        threshold = self.thresholds.get(metric)
        return threshold.limit if threshold else None

    @property
    def smoke_rates(self) -> frozenset[str]:
        """The promised rates that the DUT has to hold, where all of them are smoke floors; else empty."""
        rates = HELD & self.thresholds.keys()
        return rates if all(self.thresholds[name].smoke for name in rates) else frozenset()

    @property
    def has_conditions(self) -> bool:
        """True where the floor sets conditions for every trial, such as a limit on the loss ratio."""
        return any(not each.is_promise for each in self.thresholds.values())

    def conditions(self, limits: Mapping[str, float]) -> dict[str, float]:
        """Return what a trial has to keep, by metric: the floor's own limits, else the campaign's `limits`."""
        return dict(limits) | {name: each.limit for name, each in self.of_trials.thresholds.items()}

    @property
    def of_trials(self) -> "Floor":
        """This floor with its conditions of every trial alone, no promises."""
        return replace(self, thresholds={name: each for name, each in self.thresholds.items() if not each.is_promise})

    def as_far_as_told(self, unmeasured: Collection[str], generator: str) -> "Floor":
        """Return this floor without the metrics that the traffic generator (its name: `generator`) does not measure
        (`unmeasured`). A note names each threshold that is left out. Raises `MissingResource` where the floor's own
        entry, not the whole file, has such a threshold."""
        silent = [each for name, each in self.thresholds.items() if name in unmeasured]
        own = next((each for each in silent if each.metric not in self.of_all), None)
        if own:
            raise MissingResource(
                f"{self.key} promises {METRICS[own.metric].title} {own.written}, which the generator ({generator}) "
                "does not measure: use a testbed with another one."
            )
        why = f"is not judged: the generator ({generator}) does not measure it."
        return replace(
            self,
            thresholds={name: each for name, each in self.thresholds.items() if each not in silent},
            notes=(*self.notes, *(f"{METRICS[each.metric].title} {each.written} {why}" for each in silent)),
        )

    def counted_in(self, unit: LoadUnit, most: float = 1.0) -> "Floor":
        """Return this floor with the loss limit of a connection profile counted in `unit` (see `Campaign.loss_unit`). A
        loss limit that the file sets for every floor is lowered to `most` (a ratio)."""
        mine, theirs = LOSS_OF["connections"], LOSS_OF[unit]
        promised = self.thresholds.get(mine.name)
        if promised and mine.name in self.of_all and most < promised.limit:
            return replace(self, thresholds={**self.thresholds, mine.name: promise(mine, most)}).counted_in(unit)
        if promised is None or mine is theirs or self.profile.kind == "packets":
            return self
        thresholds = {name: each for name, each in self.thresholds.items() if name != mine.name}
        thresholds.setdefault(theirs.name, replace(promised, metric=theirs.name))
        return replace(self, thresholds=thresholds)

    def load(self, headroom: float) -> float:
        """Return the load, in the profile's unit per second, that tries every promised rate, with `headroom` (a ratio)
        on top; 0 where no rate is promised."""
        is_rate = self.main is not None and self.metric is RATE_OF[self.profile.kind]
        rates = [self.main.limit if self.main and is_rate else 0.0]
        if isinstance(self.profile, ConnectionProfile):
            rates.append((self.limit("pps") or 0.0) / self.profile.packets_each)
        else:
            rates.append((self.limit("bps") or 0.0) / bits_per_packet(self.profile))
        return max(rates) * (1 + headroom)

    def as_record(self) -> FloorRecord:
        """Return the origin of the thresholds, for the record."""
        return FloorRecord(
            key=self.key,
            profile=self.profile.name,
            source=self.source,
            derivation=self.derivation,
            conditions={name: each.written for name, each in self.of_trials.thresholds.items()},
            reference=self.reference,
            accepted=self.accepted,
        )


def bits_per_packet(profile: PacketProfile) -> float:
    """Return the bits of the frames of a packet without FCS, with their VLAN tags: the mean over the sizes of the
    mix."""
    sizes = IMIX if profile.frame_bytes == "imix" else ((profile.frame_bytes, 1),)
    mean = sum(size * share for size, share in sizes) / sum(share for _, share in sizes)
    tag = VLAN_TAG_BYTES if profile.vlan else 0
    return profile.fragments * (mean - FCS_BYTES + tag) * 8


def derive(floor: Floor, base: ConnectionProfile, profile: ConnectionProfile) -> Floor:
    """Return the floor of a profile with fewer messages, at the same packet rate: pps stays, cps grows.

    The limit is rounded up to a whole connection per second, so that nothing is promised less. A promise relative to
    another topology stays, as the profile is the same there; so does a promise that is not a rate. Reference figures
    belong to the original profile and are left out. Raises `ConfigError` where the profiles differ in more than
    messages.
    """
    apart = {"name", "description", "derived_from", "messages"}
    ours, theirs = profile.model_dump(exclude=apart), base.model_dump(exclude=apart)
    differing = sorted(key for key in ours if ours[key] != theirs[key])
    if differing or profile.derived_from != base.name:
        raise ConfigError(
            f"profile {profile.name}: derived_from: {quoted(base.name)} differs in {', '.join(differing) or 'name'}.\n"
            "  Expected profiles that differ in messages only, or a floor of its own in the SLA file."
        )
    rates = [each for name, each in floor.thresholds.items() if name in ("cps", "saturation_cps")]
    if not rates or floor.metric is not RATE_OF[profile.kind]:
        return replace(floor, profile=profile, reference=None)
    packets, base_packets = profile.packets_each, base.packets_each
    words = (
        f"from {base.name}'s {floor.metric.format(rates[0].limit)} at the same packet rate: "
        f"{base_packets:.2f} packets per connection there, {packets:.2f} here"
    )
    thresholds = dict(floor.thresholds)
    for each in rates:  # Rounding first: a factor of exactly 1 must not add a connection.
        limit = math.ceil(round(each.limit * base_packets / packets, 6))
        thresholds[each.metric] = _like(each, METRICS[each.metric], limit)
    return replace(floor, profile=profile, thresholds=thresholds, reference=None, derivation=words)


def with_packets(floor: Floor) -> Floor:
    """Return a floor of connections with a promise of packets, where the file has none. It catches a DUT that takes
    connections faster than it forwards their packets.

    The limit follows from the connections. It allows what a good trial at their floor may lose or forward late, so it
    is never missed where they are kept: `cps x packets per connection x (1 - loss) x (1 - KEEPS_UP)`, rounded down.
    """
    if floor.main is None or floor.metric.name != "cps" or "pps" in floor.thresholds:
        return floor
    assert isinstance(floor.profile, ConnectionProfile)
    lost = max((floor.limit(name) or 0.0 for name in ("loss_ratio", "packet_loss_ratio")), default=0.0)
    pps = floor.main.limit * floor.profile.packets_each * (1 - lost) * (1 - KEEPS_UP)
    thresholds = dict(floor.thresholds) | {"pps": _like(floor.main, METRICS["pps"], max(1, math.floor(pps)))}
    return replace(floor, thresholds={name: thresholds[name] for name in METRICS if name in thresholds})


def _like(promised: Threshold, metric: Metric, limit: float) -> Threshold:
    """Return a threshold that follows from another one."""
    return replace(promised, metric=metric.name, limit=limit, written=f"{metric.operator} {metric.unit.write(limit)}")
