"""Floors: the least that an SLA promises per topology and profile. Read from variables/sla/*.yaml."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import model_validator

from ctbench.config import Name, Number, Settings, did_you_mean, load
from ctbench.dut.base import Topology
from ctbench.errors import ConfigError
from ctbench.measure.trial import Limits
from ctbench.results.record import FloorRecord, Reference
from ctbench.sla.threshold import AtLeastRate, AtMostRatio, AtMostTime, Threshold, parse
from ctbench.traffic.profiles import ConnectionProfile
from ctbench.units import format_rate, quoted, write_number

_KEY = re.compile(r"[a-z0-9-]+/[a-z0-9-]+/[0-9]+cpu-[0-9]+rxq")


class ReferenceFigure(Settings):
    """A published figure beside the floor. It is no promise."""

    cps: Number | None = None
    pps: Number | None = None
    source: str


class FloorEntry(Settings):
    """What an SLA file has for one topology and one profile."""

    cps: AtLeastRate
    pps: AtLeastRate | None = None
    loss_ratio: AtMostRatio | None = None
    #: Of TCP: from SYN to SYN-ACK; one connection in a hundred may take longer.
    setup_time_p99: AtMostTime | None = None
    #: Where this promise comes from, when not from the source of the whole file.
    source: str | None = None
    reference: ReferenceFigure | None = None


@dataclass(frozen=True)
class Floor:
    """What is promised of one topology with one profile, complete."""

    #: `ovs-dpdk/conntrack/1cpu-1rxq`, and the name of the profile.
    key: str
    profile: str
    #: Where the promise comes from: the SLA file's own words.
    source: str
    cps: Threshold
    pps: Threshold | None = None
    loss_ratio: Threshold | None = None
    setup_time_p99: Threshold | None = None
    reference: ReferenceFigure | None = None
    #: How it follows from the floor of another profile; empty when the file has it.
    derivation: str = ""

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The thresholds that there are, by metric."""
        metrics = {"cps": self.cps, "pps": self.pps, "loss_ratio": self.loss_ratio,
                   "setup_time_p99": self.setup_time_p99}  # fmt: skip
        return {metric: threshold for metric, threshold in metrics.items() if threshold is not None}

    def limits(self, loss_ratio: float) -> Limits:
        """What a trial has to keep: the floor's own limits, else the campaign's `loss_ratio`."""
        return Limits(
            loss_ratio=self.loss_ratio.limit if self.loss_ratio else loss_ratio,
            setup_time_p99_s=self.setup_time_p99.limit if self.setup_time_p99 else None,
        )

    def gate_load(self, profile: ConnectionProfile, headroom: float) -> float:
        """Connections per second at which a gate tries both rates, with the campaign's headroom on top."""
        packets = packets_per_connection(profile)
        return max(self.cps.limit, self.pps.limit / packets if self.pps else 0.0) * (1 + headroom)

    def as_record(self) -> FloorRecord:
        """The floor for the record."""
        return FloorRecord(
            key=self.key,
            profile=self.profile,
            source=self.source,
            derivation=self.derivation,
            reference=Reference(**self.reference.model_dump()) if self.reference else None,
            **{metric: threshold.text for metric, threshold in self.thresholds.items()},
        )


class Floors(Settings):
    """An SLA file: floors by topology key (`ovs-dpdk/conntrack/1cpu-1rxq`), then by profile."""

    name: Name
    description: str
    #: Where the figures come from, in words for the report.
    source: str
    #: Holds for every floor that has no `loss_ratio` of its own.
    loss_ratio: AtMostRatio | None = None
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
    def _keys_are_topologies(self) -> "Floors":
        for key in self.floors:
            if not _KEY.fullmatch(key):
                raise ValueError(
                    f"{key}: is not a topology.\n  Expected DATAPATH/RULESET/CPUS-QUEUES, for example "
                    "ovs-dpdk/conntrack/1cpu-1rxq."
                )
        return self

    def find(
        self,
        topology: Topology,
        profile: ConnectionProfile,
        load_profile: Callable[[str], ConnectionProfile] | None = None,
    ) -> Floor:
        """The floor of a test. A profile that is derived from another takes its floor by the packet rate
        when the file has none of its own; `load_profile` finds that other profile (variables/profiles).

        Raises `ConfigError` that names the file and the key to add when there is none.
        """
        key = topology_key(topology)
        file = self.file or f"SLA {self.name}"
        line = f'Expected a line such as {profile.name}: {{cps: ">= 48.2k", pps: ">= 334.9k"}} below this topology.'
        if key not in self.floors:
            meant = did_you_mean(key, list(self.floors))
            raise ConfigError(f"{file}: {key}.{profile.name}: is missing.\n  {line}{meant}")
        profiles = self.floors[key]
        if profile.name in profiles:
            return self._complete(key, profile.name)
        if profile.derived_from in profiles:
            base = (load_profile or _load_profile)(profile.derived_from)
            return derive(self._complete(key, base.name), base, profile)
        meant = did_you_mean(profile.name, list(profiles))
        raise ConfigError(f"{file}: {key}.{profile.name}: is missing.\n  {line}{meant}")

    def _complete(self, key: str, profile: str) -> Floor:
        """The entry with its names, and the loss ratio of the whole file where it has none."""
        entry = self.floors[key][profile]
        return Floor(
            key=key,
            profile=profile,
            source=entry.source or self.source,
            cps=entry.cps,
            pps=entry.pps,
            loss_ratio=entry.loss_ratio or self.loss_ratio,
            setup_time_p99=entry.setup_time_p99,
            reference=entry.reference,
        )


def topology_key(topology: Topology) -> str:
    """Key of the SLA files: `ovs-dpdk/conntrack/1cpu-1rxq`."""
    return f"{topology.datapath}/{topology.ruleset}/{topology.label}"


def packets_per_connection(profile: ConnectionProfile) -> float:
    """Packets of one connection in both directions, in the mean over TCP and UDP.

    TCP with n messages: 2n+5 (research/trex.md, "Rates seen"), 3n+5 when the server acknowledges each request
    on its own; UDP: 2n. The published 1.2k CPS and 1.8M pps of 500 messages are 1500 packets per
    connection, so that server did. Packets that a DUT lost are not in it.
    """
    n = profile.messages
    tcp = (3 if profile.ack_before_reply else 2) * n + 5
    udp_share = profile.udp_percent / 100
    return (1 - udp_share) * tcp + udp_share * 2 * n


def derive(floor: Floor, base: ConnectionProfile, profile: ConnectionProfile) -> Floor:
    """The floor of a profile with fewer messages, from the same packet rate: pps stays, cps grows.

    The whole connection per second is rounded up, so that nothing is promised less. Reference figures belong to
    the original and are left out. Raises `ConfigError` when the profiles differ in more than their messages.
    """
    apart = {"name", "description", "derived_from", "messages"}
    ours, theirs = profile.model_dump(exclude=apart), base.model_dump(exclude=apart)
    differing = sorted(key for key in ours if ours[key] != theirs[key])
    if differing or profile.derived_from != base.name:
        raise ConfigError(
            f"profile {profile.name}: derived_from: {quoted(base.name)} differs in {', '.join(differing) or 'name'}.\n"
            "  Expected profiles that differ in messages only, or a floor of its own in the SLA file."
        )
    packets, base_packets = packets_per_connection(profile), packets_per_connection(base)
    # Rounding first: a factor of exactly 1 must not add a connection.
    cps = math.ceil(round(floor.cps.limit * base_packets / packets, 6))
    words = (
        f"from {base.name}'s {format_rate(floor.cps.limit)} at the same packet rate: "
        f"{base_packets:.2f} packets per connection there, {packets:.2f} here"
    )
    return replace(
        floor, profile=profile.name, cps=parse(f">= {write_number(cps)}", "rate"), reference=None, derivation=words
    )


def _load_profile(name: str) -> ConnectionProfile:
    return load("profiles", name, ConnectionProfile)
