"""Feasibility: whether a testbed can measure a test at all, by the files and this machine's memory, before its first
trial.

A limit that makes the floor impossible is an error. One that only ends the range of the search early is a bound: the
record notes it where it may have affected the figure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.base.network import FCS_BYTES, GAP_BYTES, LEAST_FRAME
from ctbench.base.units import format_count, format_duration, format_rate
from ctbench.dut.base import CLOSED_S
from ctbench.dut.registry import KINDS, DutConfig, ruleset_of, tracks
from ctbench.dut.rulesets import catalogue
from ctbench.dut.topology import Topology
from ctbench.hosts.config import LOCAL
from ctbench.hosts.connections import machine_of
from ctbench.measure.campaign import Campaign, TableTrials
from ctbench.results.floor import Floor, bits_per_packet
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import PacketProfile, Profile

#: A frame of TCP without options, and one of UDP, both without data; bytes with FCS.
TCP_FRAME, UDP_FRAME = 58, 46
_MORE_CLIENTS = "\n  Expected more client_ips, or a wider range of client ports."


@dataclass(frozen=True)
class LoadLimit:
    """A load above which something other than the DUT's speed decides."""

    #: In the profile's unit per second.
    rate: float
    #: One sentence without its full stop.
    text: str
    #: Raised when the floor is higher than `impossible`.
    error: type[CtbenchError]
    remedy: str = ""
    #: Where it is higher than `rate`.
    impossible: float | None = None
    #: Whether it is that of memory, of which each fill of a table takes as much again where the DUT frees none.
    of_memory: bool = False


def _dut_of(testbed: TestbedConfig, topology: Topology) -> DutConfig | None:
    """Return the testbed's DUT for a topology."""
    return next((config for config in testbed.duts if config.type == topology.datapath), None)


def check(testbed: TestbedConfig, campaign: Campaign, topology: Topology, floor: Floor) -> list[LoadLimit]:
    """Return the bounds of a test's search that lie below the end of its range, the lowest first.

    Raises `ConfigError` where files contradict each other, `MissingResource` where a machine falls short of the floor.
    """
    dut, profile = _dut_of(testbed, topology), floor.profile
    if dut is None:
        return []  # that is the testbed's to say
    end = campaign.load_range(profile).max
    table = _connection_table(campaign, topology, floor, dut)
    found = [*_line_rate(testbed, profile, dut), *_endpoints(profile), *table]
    needed = floor.load(0.0)
    return [bound for bound in _possible(found, needed, format_rate(needed)) if bound.rate < end]


def _possible(bounds: Sequence[LoadLimit], promised: float, said: str) -> list[LoadLimit]:
    """Return the bounds, the lowest first. Raises the error of one that makes what is promised impossible."""
    for bound in bounds:
        if promised > (bound.impossible or bound.rate):
            raise bound.error(f"{bound.text}, and the floor is {said}.{bound.remedy}")
    return sorted(bounds, key=lambda bound: bound.rate)


def notes(bounds: Sequence[LoadLimit], measured: float | None) -> list[str]:
    """Return the bounds that may have affected what was measured: those at most twice as high."""
    return [f"{bound.text}." for bound in bounds if measured and bound.rate <= 2 * measured]


def _line_rate(testbed: TestbedConfig, profile: Profile, dut: DutConfig) -> Iterator[LoadLimit]:
    """Yield what the links carry one way, where the testbed file has the speed of the cards."""
    speed, pairs = (dut.ports.speed_gbit, dut.ports.pairs) if dut.ports else (None, 1)
    if speed is None:
        return
    rate = pairs * speed * 1e9 / 8 / wire_bytes(profile)
    links = f"{pairs} pairs of links" if pairs > 1 else "links"
    yield LoadLimit(
        rate,
        f"{_file(testbed)}: {links} of {speed:g} Gbit/s carry at most {format_count(rate)} {profile.kind}/s "
        f"of profile {profile.name}",
        ConfigError,
        "\n  Expected a lower floor, or faster cards (ports.speed_gbit).",
    )


def wire_bytes(profile: Profile) -> float:
    """Return the bytes on the wire, at least, for one connection, or for one packet of the load, in the busier
    direction."""
    if isinstance(profile, PacketProfile):
        frame = bits_per_packet(profile) / 8 / profile.fragments + FCS_BYTES
        return profile.fragments * (frame + GAP_BYTES) / profile.ways
    n, udp = profile.mean_messages, profile.udp_percent / 100
    acknowledgements = n if profile.ack_before_reply else 0
    ways = []
    for empty, payload in ((3, profile.request_bytes), (2 + acknowledgements, profile.reply_bytes)):
        tcp = empty * _wire(TCP_FRAME) + n * _wire(TCP_FRAME + payload)
        ways.append((1 - udp) * tcp + udp * n * _wire(UDP_FRAME + payload))
    return max(ways)


def _wire(frame: int) -> int:
    return max(LEAST_FRAME, frame) + GAP_BYTES


def _endpoints(profile: Profile) -> Iterator[LoadLimit]:
    """Yield the bound of the client addresses and ports, which are used again when all have been used: their last
    connection has to be over by then, and should be forgotten as well."""
    if isinstance(profile, PacketProfile):
        return
    rate = profile.client_endpoints / (profile.lifetime_s + CLOSED_S)
    yield LoadLimit(
        rate,
        f"The {format_count(profile.client_endpoints)} client addresses and ports of profile {profile.name} suffice for"
        f" {format_rate(rate)}: a connection takes {profile.lifetime_s:g} s and is remembered for {CLOSED_S:g} s",
        ConfigError,
        _MORE_CLIENTS,
        impossible=profile.client_endpoints / profile.lifetime_s if profile.lifetime_s else float("inf"),
    )


def _connection_table(campaign: Campaign, topology: Topology, floor: Floor, dut: DutConfig) -> Iterator[LoadLimit]:
    """Yield the bound of the connection table: entries stay until their timeout, or to the end of the trial."""
    known, profile = KINDS[dut.type].table(dut), floor.profile
    if known is None or not tracks(topology):
        return
    if isinstance(profile, PacketProfile):
        if profile.flows > known.entries:
            raise MissingResource(
                f"{known.name} holds {known.entries} entries, and profile {profile.name} has {profile.flows} flows."
                f"{known.remedy.format(entries=profile.flows)}"
            )
        return
    own, entries = topology.timeout_s, topology.max_connections or known.entries
    known = replace(known, entries=entries, tcp_s=own or known.tcp_s, udp_s=own or known.udp_s)
    search, gate = campaign.search_for(profile), campaign.floor_trials(profile)
    sustained_s = max(search.trial_duration, search.final_duration, gate.trial_duration)
    trial_s, udp = sustained_s + profile.lifetime_s, profile.udp_percent / 100
    lingers = ((1 - udp, known.tcp_s), (udp, known.udp_s))
    stay_s = sum(share * min(profile.lifetime_s + linger, trial_s) for share, linger in lingers)
    rate = max(1, known.entries - profile.known) / stay_s
    yield LoadLimit(
        rate,
        f"{known.name} holds {known.entries} entries, enough for {format_rate(rate)} of profile {profile.name}, which "
        f"stay in it for {stay_s:.3g} s of a trial in the mean",
        MissingResource,
        known.remedy.format(entries=round(floor.load(0.0) * stay_s * 1.1)),
    )


def _file(settings: TestbedConfig) -> str:
    return settings.file or f"testbed {settings.name}"


def require_ip_version(topology: Topology, profile: Profile) -> None:
    """Raise `ConfigError` where the ruleset of the topology does not forward the profile's IP version. The text names
    rulesets that do."""
    ruleset = ruleset_of(topology)
    if ruleset is None or ruleset.ip_version in (profile.ip_version, "any"):
        return
    families = KINDS[topology.datapath].families
    others = sorted(
        entry.name
        for (family, _), entry in catalogue().items()
        if family in families and entry.ip_version in (profile.ip_version, "any")
    )
    expected = f"one of: {', '.join(others)}" if others else f"a profile of IPv{ruleset.ip_version}"
    raise ConfigError(
        f"Profile {profile.name} is of IPv{profile.ip_version}, and ruleset {ruleset.name} forwards "
        f"IPv{ruleset.ip_version}.\n  Expected {expected}."
    )


MEMINFO = Path("/proc/meminfo")
#: Seconds that an established connection is remembered where the topology says nothing else.
_REMEMBERED_S = 30


def check_table(
    testbed: TestbedConfig, campaign: Campaign, topology: Topology, floor: Floor, *, held: bool = True
) -> list[LoadLimit]:
    """Return the bounds of the connections that can be in the table, the lowest first: the host's limit, the profile's
    clients, memory, and for those that are `held` the timeout of the topology and the testbed's generator. The
    measurement finds the DUT's own limit.

    Raises `ConfigError` where the files promise more than that, `MissingResource` where a machine falls short of the
    promise.
    """
    promised, clients = floor.limit("held_connections") or 0.0, floor.profile.client_endpoints
    text = f"Profile {floor.profile.name} has {format_count(clients)} client addresses and ports, one for each"
    bounds = [LoadLimit(clients, f"{text} connection", ConfigError, _MORE_CLIENTS)]
    dut = _dut_of(testbed, topology)
    known = KINDS[dut.type].table(dut) if dut else None
    if known and known.of_host:
        text = f"{known.name} holds {known.entries} entries, a limit of the host's"
        bounds.append(LoadLimit(known.entries, text, MissingResource, known.remedy.format(entries=known.entries * 2)))
    bounds += _memory(testbed, dut)
    if held:
        bounds += _held(testbed, campaign, topology)
    return _possible(bounds, promised, format_count(promised))


def _held(testbed: TestbedConfig, campaign: Campaign, topology: Topology) -> Iterator[LoadLimit]:
    """Yield the bounds of connections that are held: all are opened and asked, at a rate, before the first one expires,
    and the generator holds each."""
    how: TableTrials = campaign.table
    timeout_s = topology.timeout_s or _REMEMBERED_S
    most = max(0.0, (timeout_s - how.hold) / 2 * how.opened_per_s * 0.9)
    yield LoadLimit(
        most,
        f"At {format_count(how.opened_per_s)}/s {format_count(most)} connections are opened, held for "
        f"{format_duration(how.hold)} and asked before the first is forgotten after {timeout_s} s",
        ConfigError,
        "\n  Expected a topology with a longer timeout_s.",
    )
    if (limit := testbed.generator.most.get("held")) is not None:
        text = f"The traffic generator of testbed {testbed.name} holds {format_count(limit)} connections"
        yield LoadLimit(
            limit, f"{text} (max_held)", MissingResource, " Promise fewer, or give the generator more CPUs."
        )


def _memory(testbed: TestbedConfig, dut: DutConfig | None) -> Iterator[LoadLimit]:
    """Yield the bound of this machine's free memory, by what generator and DUT take of it where they are on it."""
    generator = testbed.generator
    known = KINDS[dut.type].table(dut) if dut else None
    takes = {}
    if machine_of(generator.host) == LOCAL:
        takes["the traffic generator"] = generator.bytes_held
    if dut and known and machine_of(dut.host) == LOCAL:
        takes["the DUT"] = 512  # bytes of an entry, roughly
    free = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMINFO.read_text(), re.MULTILINE) if MEMINFO.exists() else None
    if free is None or not sum(takes.values()):
        return
    most = int(free[1]) * 1024 / sum(takes.values()) * 0.9
    shares = " and ".join(f"{size} bytes for {whose}" for whose, size in takes.items())
    text = f"This machine has {int(free[1]) >> 10} MiB of free memory, enough for {format_count(most)} connections"
    remedy = " End other programs, or promise fewer."
    yield LoadLimit(most, f"{text} ({shares})", MissingResource, remedy, of_memory=True)
