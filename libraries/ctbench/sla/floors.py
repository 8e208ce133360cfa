"""The SLA file: floors per topology and profile. Read from variables/sla/*.yaml."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import model_validator

from ctbench.base.errors import ConfigError
from ctbench.base.quantities import Number
from ctbench.base.spelling import did_you_mean
from ctbench.base.yaml_files import Name, YamlModel, load
from ctbench.dut.topology import Topology
from ctbench.results.record import Reference
from ctbench.sla.floor import Floor, Relative, derive
from ctbench.sla.threshold import AtLeastBits, AtLeastRate, AtLeastShare, AtMostRatio, AtMostTime
from ctbench.traffic.profiles import ConnectionProfile, Profile

#: What only one kind of profile has, and the rate that it has to have.
_FOR_CONNECTIONS, _FOR_PACKETS = ("cps", "setup_time_p99"), ("bps", "latency_p99")
_EXAMPLES = {"connections": 'cps: ">= 48.2k"', "packets": 'pps: ">= 300k"'}


class ReferenceFigure(YamlModel):
    """A published figure beside the floor. It is no promise."""

    cps: Number | None = None
    pps: Number | None = None
    source: str


class RelativeEntry(YamlModel):
    """A promise that compares with another topology, measured with the same profile in the same run."""

    #: Key of that topology.
    to: str
    #: Share of its rate; more than 100% promises to be faster.
    rate: AtLeastShare
    #: `cpu`: the share is of the rate per CPU, so 100% of one CPU's is eight times as much with eight.
    per: Literal["cpu"] | None = None

    @model_validator(mode="after")
    def _is_a_topology(self) -> Self:
        try:
            Topology.parse(self.to)
        except ValueError as error:
            raise ValueError(f"to: {error}") from None
        return self


class FloorEntry(YamlModel):
    """What an SLA file has for one topology and one profile."""

    #: Connections per second: required with a connection profile.
    cps: AtLeastRate | None = None
    #: Packets per second in both directions: required with a packet profile.
    pps: AtLeastRate | None = None
    #: Throughput in bits per second, frames without FCS, both directions.
    bps: AtLeastBits | None = None
    relative: RelativeEntry | None = None
    loss_ratio: AtMostRatio | None = None
    #: Of TCP: from SYN to SYN-ACK; one connection in a hundred may take longer.
    setup_time_p99: AtMostTime | None = None
    #: Of packets, one way; one in a hundred may take longer.
    latency_p99: AtMostTime | None = None
    #: Where this promise comes from, when not from the source of the whole file.
    source: str | None = None
    reference: ReferenceFigure | None = None


class Floors(YamlModel):
    """An SLA file: floors by topology key (`ovs-dpdk/conntrack/1cpu-1rxq`), then by profile."""

    name: Name
    description: str
    #: Where the figures come from, in words for the report.
    source: str
    #: Holds for every floor that has no `loss_ratio` of its own.
    loss_ratio: AtMostRatio | None = None
    #: Share of what a reference run measured (`-v REFERENCE:`), promised by every floor beside its own figure.
    of_reference: AtLeastShare | None = None
    #: In the file these keys stand at the top, beside `name`.
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
                if entry.relative and entry.relative.to == key:
                    raise ValueError(
                        f"{key}.{profile}.relative.to: is this very topology.\n  Expected another one to compare with."
                    )
        return self

    def find(
        self,
        topology: Topology,
        profile: Profile,
        load_profile: Callable[[str], ConnectionProfile] | None = None,
    ) -> Floor:
        """The floor of a test. A profile that is derived from another takes its floor by the packet rate
        when the file has none of its own; `load_profile` finds that other profile (variables/profiles).

        Raises `ConfigError` that names the file and the key to add when there is none, or one that does not suit
        the kind of profile.
        """
        key = topology.key
        line = f"Expected a line such as {profile.name}: {{{_EXAMPLES[profile.kind]}}} below this topology."
        if key not in self.floors:
            meant = did_you_mean(key, list(self.floors))
            raise ConfigError(f"{self._source}: {key}.{profile.name}: is missing.\n  {line}{meant}")
        profiles = self.floors[key]
        if profile.name in profiles:
            return self._complete(key, profile)
        if isinstance(profile, ConnectionProfile) and profile.derived_from in profiles:
            base = (load_profile or _load_profile)(profile.derived_from)
            return derive(self._complete(key, base), base, profile)
        meant = did_you_mean(profile.name, list(profiles))
        raise ConfigError(f"{self._source}: {key}.{profile.name}: is missing.\n  {line}{meant}")

    @property
    def _source(self) -> str:
        return self.file or f"SLA {self.name}"

    def _complete(self, key: str, profile: Profile) -> Floor:
        """The entry with its names, and the loss ratio of the whole file where it has none."""
        entry = self.floors[key][profile.name]
        self._check_kind(f"{self._source}: {key}.{profile.name}", entry, profile)
        return Floor(
            key=key,
            profile=profile.name,
            source=entry.source or self.source,
            cps=entry.cps,
            pps=entry.pps,
            bps=entry.bps,
            relative=_relative(key, entry.relative) if entry.relative else None,
            loss_ratio=entry.loss_ratio or self.loss_ratio,
            setup_time_p99=entry.setup_time_p99,
            latency_p99=entry.latency_p99,
            reference=Reference(**entry.reference.model_dump()) if entry.reference else None,
        )

    @staticmethod
    def _check_kind(where: str, entry: FloorEntry, profile: Profile) -> None:
        """Refuse what this kind of profile does not have, then an entry without its rate."""
        example = _EXAMPLES[profile.kind]
        foreign = _FOR_PACKETS if profile.kind == "connections" else _FOR_CONNECTIONS
        for key in foreign:
            if getattr(entry, key) is not None:
                raise ConfigError(
                    f"{where}.{key}: is not for a profile of {profile.kind}.\n  Expected {example}, without {key}."
                )
        rate = example.partition(":")[0]
        if getattr(entry, rate) is None:
            raise ConfigError(f"{where}.{rate}: is missing.\n  Expected a promised rate, for example {example}.")


def _relative(key: str, entry: RelativeEntry) -> Relative:
    """A promise per CPU becomes one of the whole rate, by the CPUs of both topologies."""
    if entry.per is None:
        return Relative(entry.to, entry.rate)
    share = entry.rate.limit * Topology.parse(key).cpus / Topology.parse(entry.to).cpus
    return Relative(entry.to, replace(entry.rate, limit=share, text=f"{entry.rate.text} per CPU"))


def _load_profile(name: str) -> ConnectionProfile:
    return load("profiles", name, ConnectionProfile)
