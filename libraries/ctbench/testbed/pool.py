"""A pool of testbeds that measure side by side: which ones, which CPUs of this machine each of them has, and which
process has which of them: the one that has locked the testbed's file.
"""

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.units import quoted
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.registry import SOURCES

#: In the environment of the processes of a pool: the folder of its shares, and of one its own share, as JSON.
SHARES_VARIABLE, SHARE_VARIABLE = "CTBENCH_POOL_SHARES", "CTBENCH_POOL_SHARE"
#: What a process says, in the folder of its suite's results. It is there as soon as the process has a testbed.
CONSOLE_FILE = "console.txt"
#: Seconds between two attempts to take a testbed.
_POLL_S = 0.05
#: Testbeds that a pool has at least, and at most.
_LEAST, _MOST = 2, 64


@dataclass(frozen=True)
class Member:
    """A testbed of a pool. A testbed in sandboxes can be in it more than once."""

    #: `lab-a`; `local#1` and `local#2` where the same name is given twice.
    name: str
    #: As the user named it: a name below variables/testbeds/, or a path.
    testbed: str
    config: TestbedConfig
    #: CPUs of this machine that it has for itself; empty where it uses none of them.
    cpus: tuple[int, ...] = ()


def split_names(text: str) -> list[str]:
    """The testbeds of `--testbeds a,b`. `ConfigError` where there are fewer than two."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not _LEAST <= len(names) <= _MOST:
        raise ConfigError(
            f"--testbeds: {quoted(text)} is no pool.\n  Expected at least two testbeds, at most {_MOST}, with commas "
            "between them; of a single one, -v TESTBED:NAME."
        )
    return names


def make_pool(testbeds: Sequence[tuple[str, TestbedConfig]], cores: Sequence[Sequence[int]]) -> list[Member]:
    """The members of a pool from what the user named and what was read there.

    `cores`: the CPUs of this machine that may be used, a group for each core. Members that use this machine share them
    out: what their testbed files name first, then whole cores as far as there are enough. `ConfigError` where two would
    share a host, a network or a CPU, `MissingResource` where one would have too few CPUs.
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
        members.append(Member(label, name, config, cpus))
    twice = [label for label, count in Counter(member.name for member in members).items() if count > 1]
    if twice:
        raise ConfigError(
            f"--testbeds: two files have the name {twice[0]}.\n  Expected a name of its own in each, or records could "
            "not be told apart."
        )
    return members


def least_cpus(config: TestbedConfig) -> int:
    """CPUs of this machine that a testbed needs for its smallest topology; 0 where it uses other machines only."""
    duts_here = any(dut.host in (SANDBOX, LOCAL) for dut in config.duts)
    generator = config.generator
    generator_here = generator.host in (SANDBOX, LOCAL)
    if not generator_here:
        return 2 * duts_here  # a PMD thread's, and one for the DUT's other threads
    return generator.cpus_needed + duts_here


def _places(config: TestbedConfig) -> set[str]:
    """What a testbed has for itself and cannot share: hosts over SSH, and this machine's own network."""
    generator = config.generator
    used = {dut.host for dut in config.duts} | set(SOURCES[generator.type].hosts_for_itself(generator))
    places = {f"host {config.hosts[name].address}" for name in used if name in config.hosts}
    return places | ({"this machine's own network"} if LOCAL in used else set())


def _share_out(configs: Sequence[TestbedConfig], cores: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """CPUs of this machine for each testbed."""
    usable = {cpu for core in cores for cpu in core}
    named = [_named(config) for config in configs]
    taken = Counter(cpu for cpus in named for cpu in cpus)
    if twice := sorted(cpu for cpu, count in taken.items() if count > 1):
        raise ConfigError(
            f"--testbeds: CPU {twice[0]} is named by two testbeds of the pool.\n  Expected other CPUs in one of them, "
            "or auto."
        )
    free = [[cpu for cpu in core if cpu not in taken] for core in cores]
    asking = [index for index, config in enumerate(configs) if _asks(config)]
    parts = dict(zip(asking, _divide([core for core in free if core], len(asking)), strict=True))
    shares = [tuple(sorted((cpus & usable) | set(parts.get(index, ())))) for index, cpus in enumerate(named)]
    for config, share in zip(configs, shares, strict=True):
        need = least_cpus(config) if not config.oversubscribe else min(1, least_cpus(config))
        if len(share) < need:
            raise MissingResource(
                f"--testbeds: {config.name} would have {len(share)} of this machine's {len(usable)} CPU(s) and needs "
                f"{need}: use a smaller pool, or a machine with more CPUs."
            )
    return shares


def _named(config: TestbedConfig) -> set[int]:
    """CPUs of this machine that a testbed file names."""
    if not least_cpus(config):
        return set()
    plan = config.cpus
    pmd = [cpu for cpus in plan.pmd.values() for cpu in cpus] if isinstance(plan.pmd, dict) else plan.pmd
    lists = [cpus for cpus in (plan.generator, pmd, plan.housekeeping) if not isinstance(cpus, str)]
    return {cpu for cpus in lists for cpu in cpus}


def _asks(config: TestbedConfig) -> bool:
    """Whether a testbed leaves a choice of CPUs to us."""
    plan = config.cpus
    return least_cpus(config) > 0 and "auto" in (plan.generator, plan.pmd, plan.housekeeping)


def _divide(cores: Sequence[Sequence[int]], parts: int) -> list[tuple[int, ...]]:
    """Neighbouring cores for each of `parts`; single CPUs where there are fewer cores than parts."""
    units = list(cores) if len(cores) >= parts else [[cpu] for core in cores for cpu in core]
    cuts = [len(units) * number // parts for number in range(parts + 1)] if parts else []
    return [tuple(cpu for unit in units[first:last] for cpu in unit) for first, last in pairwise(cuts)]


@dataclass(frozen=True)
class Share:
    """A testbed of a pool, one process' own until it ends."""

    #: `lab-a`; `local#1` and `local#2` where a testbed is in the pool more than once.
    name: str
    #: As the user named it: a name below variables/testbeds/, or a path.
    testbed: str
    #: CPUs of this machine that it has for itself; empty where it uses none of them.
    cpus: tuple[int, ...]
    run_id: str
    #: Where the records of all processes go.
    output: str

    def to_json(self) -> str:
        """For `from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Share":
        """What `to_json` wrote."""
        values = json.loads(text)
        return cls(**values | {"cpus": tuple(values["cpus"])})


class Shares:
    """The shares of a pool, a file each in a folder of the run. One process offers them, others take one each. The
    kernel lets go of a lock when the process that holds it has ended, whatever ended it: pabot's own value sets stay
    taken then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def offer(self, shares: Sequence[Share]) -> None:
        """Put the shares into the folder, which is made here. `ConfigError` where files cannot be locked there."""
        self._folder.mkdir()
        for number, share in enumerate(shares):
            with (self._folder / f"{number}.json").open("w", encoding="utf-8") as file:
                file.write(share.to_json() + "\n")
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise ConfigError(
                        f"--testbeds: files in {self._folder} cannot be locked ({error.strerror}).\n  Expected results"
                        " on a file system with locks: choose another folder with --outputdir."
                    ) from None

    def take(self) -> Share | None:
        """Wait for a testbed that is free, and keep it until this process has ended. None once the run was told to end.

        Children that this process forks without starting another program keep it as well.
        """
        while not self._stopped.exists() and self._folder.exists():  # without its folder the run is over
            for path in self._files():
                file = os.open(path, os.O_RDWR)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(file)
                    continue
                line = path.read_text(encoding="utf-8").splitlines()[0]
                os.pwrite(file, f"{line}\n{os.getpid():10}\n".encode(), 0)
                # Looked at once more: the process that stops the run knows of us, or we know of the stop.
                return None if self._stopped.exists() else Share.from_json(line)
            time.sleep(_POLL_S)
        return None

    def stop(self) -> None:
        """No process gets a testbed from now on."""
        with suppress(OSError):  # the run is over
            self._stopped.touch()

    def holders(self) -> list[int]:
        """The process IDs of those that have a testbed now."""
        found = []
        for path in self._files():
            with path.open(encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    found += [int(line) for line in file.read().splitlines()[1:]]
        return found

    @property
    def _stopped(self) -> Path:
        return self._folder / "stopped"

    def _files(self) -> list[Path]:
        """In the order in which they were offered."""
        return sorted(self._folder.glob("*.json"), key=lambda path: int(path.stem))
