"""Instructions that are counted in emulated machines: what a packet costs in a topology."""

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.paths import RULESETS
from ctbench.dut.abilities import ByFunction, Counted, Counter, Workload
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.by_function import count_functions
from ctbench.dut.emulated.image import PROGRAMS, Image, keep, make_image, open_kept, unpack
from ctbench.dut.emulated.machine import Log, States, Told, read_log
from ctbench.dut.kernel import Kernel, find_kernel, unpack_package
from ctbench.dut.rulesets import find_ruleset
from ctbench.dut.topology import PortSetup, Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Machine

if TYPE_CHECKING:
    from ctbench.dut.emulated.kind import EmulatedConfig

FAMILIES = ("emulated",)
#: Of rulesets whose packets a program forwards.
WAITED_FOR = "ovs-user-"
_PACKAGES = ("libc6", "openvswitch-switch", "qemu-system-x86", "tcc", *dict.fromkeys(PROGRAMS.values()))


class EmulatedCounter(Counter):
    """Machines of one testbed. Each starts from the same state, and one that went wrong has no figures: its console is
    in the reason."""

    kind = "emulated"

    def __init__(
        self, config: "EmulatedConfig", host: Host, here: Machine, rulesets: Path = RULESETS,
        longest_s: float = machine.LONGEST_S,
    ) -> None:  # fmt: skip
        """Nothing is made before it is asked for. `rulesets`: the catalogue; `longest_s`: of a machine, seconds."""
        self._config = config
        self._host = host
        self._at_once = max(1, len(here.usable_cpus))
        self._rulesets = rulesets
        self._longest_s = longest_s
        #: What was counted, by topology, workloads of the machine, and seed; with the seconds that it took.
        self._known: dict[tuple[str, str, int], tuple[Log, float]] = {}
        #: Where the instructions are, by topology, workloads of the machine, and workload.
        self._functions: dict[tuple[str, str], dict[Workload, ByFunction]] = {}

    @cached_property
    def _qemu(self) -> str:
        return machine.version(self._host)

    @cached_property
    def _image(self) -> Image:
        """What the machines boot. `MissingResource` names what is not installed."""
        _ = self._qemu
        config = self._config
        if config.image:
            return open_kept(Path(config.image), config.ovs.prefix)
        argv = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *_PACKAGES]
        said = self._host.run(argv, check=False).stdout
        packages = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
        return make_image(self._kernel(), config.ovs.prefix, self._rulesets, packages)

    @cached_property
    def _states(self) -> States:
        return States(self._host, self._image, self._longest_s)

    def _kernel(self) -> Kernel:
        """The kernel. A package of one is unpacked in the sandbox's own memory, with which it goes."""
        if self._config.kernel == "distribution":
            return find_kernel()
        kernel = Path(self._config.kernel)
        try:
            if kernel.suffix != ".deb":
                return find_kernel(kernel)
            folder = tempfile.mkdtemp(prefix="ctbench-kernel-", dir=self._host.local_path(machine.PRIVATE))
            return find_kernel(unpack_package(kernel, Path(folder)))
        except MissingResource as error:
            raise ConfigError(f"{error}\n  Expected one there: the testbed file names it.") from None

    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[Counted]]:
        seeds, workloads = range(1, self._config.seeds + 1), _workloads(topologies, workload)
        given = {topology: self._given(topology, workloads) for topology in topologies}
        missing = [(each, seed) for seed in seeds for each in given if (each.key, workloads, seed) not in self._known]
        while missing:
            ready = self._states.ready(list(dict.fromkeys(seed for _, seed in missing)), self._at_once)
            now, missing = ([each for each in missing if (each[1] in ready) is fits] for fits in (True, False))
            asked = [replace(ready[seed], given=given[topology]) for topology, seed in now]
            at_once = min(self._at_once, machine.fitting(self._host))
            every = machine.run_all(self._host, asked, at_once, self._longest_s)
            for (topology, seed), ended in zip(now, every, strict=True):
                log = read_log(ended.said)
                if trouble := ended.trouble or log.trouble:
                    raise TestbedError(f"The emulated machine did not measure {topology.key} (seed {seed}): {trouble}.")
                self._known[topology.key, workloads, seed] = log, ended.wall_s
        return [[self._counted(each.key, workloads, seed, workload) for seed in seeds] for each in topologies]

    def _counted(self, key: str, workloads: str, seed: int, workload: Workload) -> Counted:
        log, wall_s = self._known[key, workloads, seed]
        told = log.workloads.get(workload) or Told()
        return Counted(key, seed, tuple(told.rounds), told.doubt, wall_s)

    def keep_image(self, target: Path) -> str:
        keep(self._image, target)
        return self.identity

    def count_functions(self, topologies: Sequence[Topology], workload: Workload) -> dict[str, ByFunction]:
        workloads = _workloads(topologies, workload)
        missing = [each for each in topologies if (each.key, workloads) not in self._functions]
        if missing:
            (ready,) = self._states.ready([1], self._at_once).values()
            given = {each.key: self._given(each, workloads) for each in missing}
            at_once = min(self._at_once, machine.fitting(self._host))
            found = count_functions(self._host, unpack(self._image.whole), ready, given, at_once)
            self._functions |= {(key, workloads): functions for key, functions in found.items()}
        known = {each.key: self._functions[each.key, workloads] for each in topologies}
        return {key: functions[workload] for key, functions in known.items() if workload in functions}

    def baseline(self, topology: Topology) -> Topology:
        """With the same frames, which carry a tag where the ports are trunks of a VLAN."""
        tagged: PortSetup = "vlan" if topology.ports.endswith("vlan") else "plain"
        return Topology(datapath=self.kind, ruleset="baseline", ports=tagged)

    def _given(self, topology: Topology, workloads: str) -> bytes:
        """What a machine that is ready is given (guest/init.sh)."""
        if topology.timeout_s is not None or topology.max_connections is not None:
            raise MissingResource(f"{topology.key} sets the connection table up, and an emulated machine has its own.")
        if topology.cpus > 1 or topology.rx_queues > 1:
            raise MissingResource(
                f"{topology.key} needs several CPUs or queues, and an emulated machine has one of each."
            )
        name = find_ruleset(FAMILIES, topology.ruleset, "an emulated machine", self._rulesets).name
        return f"PORTS={topology.ports}\nWORKLOADS={workloads}\n".encode() + self._image.topology(name)

    @property
    def identity(self) -> str:
        """Tells the machine from any other: a hash of the image, QEMU and its settings."""
        text = f"{self._image.identity} {self._qemu} {machine.SETTINGS}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def snapshot(self) -> dict[str, Any]:
        config, image = self._config, self._image
        facts = {"kind": self.kind, "kernel": image.release, "qemu": self._qemu, "image": self.identity}
        return facts | {"ovs": config.ovs.prefix, "seeds": config.seeds, "packages": dict(image.packages)}


def _workloads(topologies: Sequence[Topology], workload: Workload) -> str:
    """What machines measure, as guest/library.sh calls it: the usual workloads in their order, or many flows alone. All
    that are compared send in the same way; a program that forwards is waited for."""
    if any(topology.ruleset.startswith(WAITED_FOR) for topology in topologies):
        return "waits"
    return workload if workload.startswith("stream-") else "usual"
