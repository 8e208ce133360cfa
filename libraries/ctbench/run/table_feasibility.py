"""How many connections can be held on a testbed at all, found out before the first one is opened."""

import re
from collections.abc import Iterator
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import format_count, format_duration
from ctbench.dut.kind import NF_CONNTRACK_MAX
from ctbench.dut.registry import KINDS
from ctbench.hosts.config import LOCAL
from ctbench.hosts.connections import machine_of
from ctbench.measure.table_settings import TableSettings
from ctbench.run.feasibility import Bound, Case
from ctbench.traffic.registry import SOURCES

MEMINFO = Path("/proc/meminfo")
#: Seconds that an established connection is remembered where the topology says nothing else.
_REMEMBERED_S = 30


def check(
    case: Case, promised: float, *, held: bool = True, table: Path = NF_CONNTRACK_MAX, meminfo: Path = MEMINFO
) -> list[Bound]:
    """What bounds the connections that can be in the table, the lowest first: the host's limit, the profile's clients,
    memory, and for those that are `held` the timeout of the topology and the testbed's generator. A DUT's own limit is
    for the measurement to find.

    Raises `ConfigError` where the files promise more than that, `MissingResource` where a machine falls short of the
    promise. `table`, `meminfo`: files with the limit of this machine's connection table and with its memory.
    """
    bounds = [*_clients(case), *_limit_of_host(case, table), *_memory(case, meminfo)]
    bounds += [*_remembered(case), *_generator(case)] if held else []
    for bound in bounds:
        if bound.error and promised > bound.rate:
            raise bound.error(f"{bound.text}, and the floor is {format_count(promised)}.{bound.remedy}")
    return sorted(bounds, key=lambda bound: bound.rate)


def _clients(case: Case) -> Iterator[Bound]:
    clients = case.profile.client_endpoints
    text = (
        f"Profile {case.profile.name} has {format_count(clients)} client addresses and ports, one for each connection"
    )
    yield Bound(clients, text, ConfigError, "\n  Expected more client_ips, or a wider range of client ports.")


def _remembered(case: Case) -> Iterator[Bound]:
    """They are opened and then asked at a rate: no first one may be forgotten meanwhile."""
    how: TableSettings = case.campaign.table
    timeout_s = case.topology.timeout_s or _REMEMBERED_S
    most = max(0.0, (timeout_s - how.hold) / 2 * how.opened_per_s * 0.9)
    yield Bound(
        most,
        f"At {format_count(how.opened_per_s)}/s {format_count(most)} connections are opened, held for "
        f"{format_duration(how.hold)} and asked before the first is forgotten after {timeout_s} s",
        ConfigError,
        "\n  Expected a topology with a longer timeout_s.",
    )


def _generator(case: Case) -> Iterator[Bound]:
    most = case.testbed.generator.most.get("held")
    if most is not None:
        text = f"The traffic generator of testbed {case.testbed.name} holds {format_count(most)} connections (max_held)"
        yield Bound(most, text, MissingResource, " Promise fewer, or give the generator more CPUs.")


def _limit_of_host(case: Case, table: Path) -> Iterator[Bound]:
    known = KINDS[case.dut.type].table(case.dut, table) if case.dut else None
    if known and known.of_host:
        text = f"{known.name} holds {known.entries} entries, a limit of the host's"
        yield Bound(known.entries, text, MissingResource, known.remedy.format(entries=known.entries * 2))


def _memory(case: Case, meminfo: Path) -> Iterator[Bound]:
    """What generator and DUT take of this machine's memory, where they are on it."""
    generator, dut = case.testbed.generator, case.dut
    known = KINDS[dut.type].table(dut) if dut else None
    takes = {}
    if machine_of(generator.host) == LOCAL:
        takes["the traffic generator"] = SOURCES[generator.type].held_bytes(generator, 1)
    if dut and known and machine_of(dut.host) == LOCAL:
        takes["the DUT"] = known.entry_bytes
    free = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE) if meminfo.exists() else None
    if free is None or not sum(takes.values()):
        return
    most = int(free[1]) * 1024 / sum(takes.values()) * 0.9
    shares = " and ".join(f"{size} bytes for {whose}" for whose, size in takes.items())
    text = f"This machine has {int(free[1]) >> 10} MiB of free memory, enough for {format_count(most)} connections"
    yield Bound(most, f"{text} ({shares})", MissingResource, " End other programs, or promise fewer.")
