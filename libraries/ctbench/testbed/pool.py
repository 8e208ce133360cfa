"""A pool of testbeds that measure at the same time: its members, and the CPUs of this machine that each of them has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import quoted
from ctbench.dut.registry import KINDS
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.hosts.connections import machine_of
from ctbench.testbed.config import TestbedConfig

#: Testbeds that a pool has at least, and at most.
_LEAST, _MOST = 2, 64


@dataclass(frozen=True)
class Member:
    """A testbed of a pool. A testbed in sandboxes can be in it more than once."""

    #: `lab-a`; `local#1` and `local#2` where the same name is given twice.
    name: str
    #: As the user named it: a name below variables/testbeds/, or a path.
    testbed: str
    #: CPUs of this machine that it has for itself; empty where it uses none of them.
    cpus: tuple[int, ...] = ()


def split_names(text: str) -> list[str]:
    """Return the testbeds of `--testbeds a,b`. Raise `ConfigError` where there are fewer than two, or too many."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not _LEAST <= len(names) <= _MOST:
        raise ConfigError(
            f"--testbeds: {quoted(text)} is not a pool.\n  Expected at least two testbeds, at most {_MOST}, with "
            "commas between them; of a single one, -v TESTBED:NAME."
        )
    return names


def make_pool(testbeds: Sequence[tuple[str, TestbedConfig]], cores: Sequence[Sequence[int]]) -> list[Member]:
    """Return the members of a pool. `testbeds`: each name that the user gave, with the settings of its file.

    `cores`: the usable CPUs of this machine, a group for each core. Members on this machine share these CPUs: each gets
    the CPUs that its testbed file names, then whole cores where there are enough. Raise `ConfigError` where two members
    would share a host, a network, a CPU or a name, `MissingResource` where one would have too few CPUs.
    """
    for (one, config), (other, other_config) in combinations(testbeds, 2):
        if shared := _places(config) & _places(other_config):
            raise ConfigError(
                f"--testbeds: {one} and {other} would share {sorted(shared)[0]}.\n  Expected testbeds that have nothing"
                " in common; only what is in sandboxes of this machine can be in a pool twice."
            )
    shares = _share_out([config for _, config in testbeds], cores)
    times = Counter(name for name, _ in testbeds)
    seen: Counter[str] = Counter()
    members = []
    for (name, config), cpus in zip(testbeds, shares, strict=True):
        seen[name] += 1
        label = f"{config.name}#{seen[name]}" if times[name] > 1 else config.name
        members.append(Member(label, name, cpus))
    twice = [label for label, count in Counter(member.name for member in members).items() if count > 1]
    if twice:
        raise ConfigError(
            f"--testbeds: two files have the name {twice[0]}.\n  Expected a name of its own in each, or records could "
            "not be told apart."
        )
    return members


def least_cpus(config: TestbedConfig) -> int:
    """Return how many CPUs of this machine a testbed's smallest topology needs; 0 where it uses other machines only."""
    if machine_of(config.generator.host) != LOCAL:
        return 2 * _has_dut_here(config)  # a PMD thread's, and one for the DUT's other threads
    return config.generator.cpus_needed + _has_dut_here(config)


def cpus_for_itself(config: TestbedConfig, usable: Sequence[int]) -> Sequence[int]:
    """Return those of the `usable` CPUs of this machine that no other run may measure on at the same time. Empty for a
    testbed that uses other machines only, that measures nothing (`oversubscribe`), or whose DUTs count instructions."""
    counts = all("instructions" in KINDS[dut.type].abilities for dut in config.duts)
    if not least_cpus(config) or config.oversubscribe or counts:
        return ()
    return usable if "auto" in _given_cpus(config) else sorted(_named(config) & set(usable))


def _has_dut_here(config: TestbedConfig) -> bool:
    return any(machine_of(dut.host) == LOCAL for dut in config.duts)


def hosts_for_itself(config: TestbedConfig) -> set[str]:
    """Return the names of the hosts that no other run may use at the same time. A sandbox shares its machine."""
    used = {dut.host for dut in config.duts}
    if config.generator.is_alone:
        used.add(config.generator.host)
    return used - {SANDBOX}


def _places(config: TestbedConfig) -> set[str]:
    """Return what a testbed cannot share: its hosts over SSH, and this machine's own network."""
    used = hosts_for_itself(config)
    places = {f"host {config.hosts[name].address}" for name in used if name in config.hosts}
    return places | ({"this machine's own network"} if LOCAL in used else set())


def _share_out(configs: Sequence[TestbedConfig], cores: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    usable = {cpu for core in cores for cpu in core}
    named = [_named(config) for config in configs]
    taken = Counter(cpu for cpus in named for cpu in cpus)
    if twice := sorted(cpu for cpu, count in taken.items() if count > 1):
        raise ConfigError(
            f"--testbeds: CPU {twice[0]} is named by two testbeds of the pool.\n  Expected other CPUs in one of them, "
            "or auto."
        )
    free = [[cpu for cpu in core if cpu not in taken] for core in cores]
    asking = [index for index, config in enumerate(configs) if "auto" in _given_cpus(config)]
    parts = dict(zip(asking, _divide([core for core in free if core], len(asking)), strict=True))
    shares = [tuple(sorted((cpus & usable) | set(parts.get(index, ())))) for index, cpus in enumerate(named)]
    for config, share in zip(configs, shares, strict=True):
        need = min(1, least_cpus(config)) if config.oversubscribe else least_cpus(config)
        if len(share) < need:
            raise MissingResource(
                f"--testbeds: {config.name} would have {len(share)} of this machine's {len(usable)} CPU(s) and needs "
                f"{need}: use a smaller pool, or a machine with more CPUs."
            )
    return shares


def _given_cpus(config: TestbedConfig) -> list[object]:
    """Return the testbed file's values for CPUs of this machine. The CPUs of a DUT on another host are left out."""
    plan = config.cpus
    ours = [config.generator_cpus or "auto"] if machine_of(config.generator.host) == LOCAL else []
    return [*ours, plan.pmd, plan.housekeeping] if _has_dut_here(config) else [*ours]


def _named(config: TestbedConfig) -> set[int]:
    pmd = config.cpus.pmd_named if _has_dut_here(config) else set()
    return pmd.union(*(cpus for cpus in _given_cpus(config) if isinstance(cpus, list)))


def _divide(cores: Sequence[Sequence[int]], parts: int) -> list[tuple[int, ...]]:
    """Divide the cores among `parts`, neighbours together; divide single CPUs where there are too few cores."""
    units = list(cores) if len(cores) >= parts else [[cpu] for core in cores for cpu in core]
    cuts = [len(units) * number // parts for number in range(parts + 1)] if parts else []
    return [tuple(cpu for unit in units[first:last] for cpu in unit) for first, last in pairwise(cuts)]
