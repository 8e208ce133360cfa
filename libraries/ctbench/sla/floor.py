"""One floor: the least that is promised of one topology with one profile, and what follows from it."""

import math
from dataclasses import dataclass, replace

from ctbench.base.errors import ConfigError
from ctbench.base.ethernet import FCS_BYTES
from ctbench.base.units import format_rate, quoted, write_number
from ctbench.measure.trial import Limits
from ctbench.results.record import FloorRecord, Reference
from ctbench.sla.threshold import Threshold, parse
from ctbench.traffic.generator import LoadUnit
from ctbench.traffic.profiles import IMIX, ConnectionProfile, PacketProfile, Profile


@dataclass(frozen=True)
class Relative:
    """A promise that compares: at least this share of another topology's rate with the same profile."""

    #: For example `linux-router/forward/1cpu-1rxq`.
    to: str
    rate: Threshold


@dataclass(frozen=True)
class Floor:
    """What is promised of one topology with one profile, complete. It has `cps` for connections, else `pps`."""

    #: `ovs-dpdk/conntrack/1cpu-1rxq`, and the name of the profile.
    key: str
    profile: str
    #: Where the promise comes from: the SLA file's own words.
    source: str
    cps: Threshold | None = None
    pps: Threshold | None = None
    bps: Threshold | None = None
    relative: Relative | None = None
    loss_ratio: Threshold | None = None
    setup_time_p99: Threshold | None = None
    latency_p99: Threshold | None = None
    reference: Reference | None = None
    #: How it follows from the floor of another profile; empty when the file has it.
    derivation: str = ""

    @property
    def unit(self) -> LoadUnit:
        """What the rate counts."""
        return "connections" if self.cps else "packets"

    @property
    def rate(self) -> Threshold:
        """The main promise: connections or packets per second."""
        rate = self.cps or self.pps
        assert rate is not None, "Floors.find lets no floor without a rate pass"
        return rate

    @property
    def thresholds(self) -> dict[str, Threshold]:
        """The thresholds that there are, by metric; the main rate comes first."""
        metrics = {"cps": self.cps, "pps": self.pps, "bps": self.bps,
                   "relative": self.relative.rate if self.relative else None, "loss_ratio": self.loss_ratio,
                   "setup_time_p99": self.setup_time_p99, "latency_p99": self.latency_p99}  # fmt: skip
        return {metric: threshold for metric, threshold in metrics.items() if threshold is not None}

    def limits(self, loss_ratio: float) -> Limits:
        """What a trial has to keep: the floor's own limits, else the campaign's `loss_ratio`."""
        return Limits(
            loss_ratio=self.loss_ratio.limit if self.loss_ratio else loss_ratio,
            setup_time_p99_s=self.setup_time_p99.limit if self.setup_time_p99 else None,
            latency_p99_s=self.latency_p99.limit if self.latency_p99 else None,
        )

    def needed(self, baseline: float | None = None) -> float:
        """The rate that keeps both promises: the floor's own, and the share of the `baseline` rate if it is known."""
        share = self.relative.rate.limit * baseline if self.relative and baseline else 0.0
        return max(self.rate.limit, share)

    def gate_load(self, profile: Profile, headroom: float, baseline: float | None = None) -> float:
        """The load, in the profile's unit per second, that tries every rate promised, with the campaign's headroom on
        top. `baseline` is the rate that a relative promise compares with."""
        rates = [self.needed(baseline)]
        if isinstance(profile, ConnectionProfile) and self.pps:
            rates.append(self.pps.limit / packets_per_connection(profile))
        if isinstance(profile, PacketProfile) and self.bps:
            rates.append(self.bps.limit / bits_per_packet(profile))
        return max(rates) * (1 + headroom)

    def as_record(self) -> FloorRecord:
        """The floor for the record."""
        return FloorRecord(
            key=self.key,
            profile=self.profile,
            source=self.source,
            derivation=self.derivation,
            relative_to=self.relative.to if self.relative else None,
            reference=self.reference,
            **{metric: threshold.text for metric, threshold in self.thresholds.items()},
        )


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


def bits_per_packet(profile: PacketProfile) -> float:
    """Bits of a frame without FCS, in the mean over the sizes of the mix."""
    sizes = IMIX if profile.frame_bytes == "imix" else ((profile.frame_bytes, 1),)
    mean = sum(size * share for size, share in sizes) / sum(share for _, share in sizes)
    return (mean - FCS_BYTES) * 8


def derive(floor: Floor, base: ConnectionProfile, profile: ConnectionProfile) -> Floor:
    """The floor of a profile with fewer messages, from the same packet rate: pps stays, cps grows.

    The whole connection per second is rounded up, so that nothing is promised less. What is promised relative to
    another topology stays: there the profile is the same. Reference figures belong to the original and are left out.
    Raises `ConfigError` when the profiles differ in more than their messages.
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
    cps = math.ceil(round(floor.rate.limit * base_packets / packets, 6))
    words = (
        f"from {base.name}'s {format_rate(floor.rate.limit)} at the same packet rate: "
        f"{base_packets:.2f} packets per connection there, {packets:.2f} here"
    )
    return replace(
        floor, profile=profile.name, cps=parse(f">= {write_number(cps)}", "rate"), reference=None, derivation=words
    )
