"""An emulated machine as a DUT: a topology is a boot of it, and its answer is what packets cost in it."""

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.paths import RULESETS
from ctbench.dut.base import CpuUse, DutCounters, Ports, Problem
from ctbench.dut.counting import Counted, Workload
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.archive import file, pack
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.image import PROGRAMS, Image
from ctbench.dut.emulated.kernel import UNPACKED, find_kernel, unpack
from ctbench.dut.emulated.log import Log, read_log
from ctbench.dut.rulesets import find_ruleset
from ctbench.dut.topology import PortSetup, Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Machine

FAMILIES = ("emulated",)
_PACKAGES = ("libc6", "openvswitch-switch", "qemu-system-x86", "tcc", *dict.fromkeys(PROGRAMS.values()))


class EmulatedDut:
    """Implements `ctbench.dut.base.Dut` and `ctbench.dut.counting.CountingDut`."""

    kind = "emulated"

    def __init__(
        self, config: EmulatedConfig, host: Host, here: Machine, rulesets: Path = RULESETS,
        longest_s: float = machine.LONGEST_S,
    ) -> None:  # fmt: skip
        """Nothing is made before the first `apply`. `rulesets`: the catalogue; `longest_s`: of a boot, seconds."""
        self._config = config
        self._host = host
        self._at_once = max(1, len(here.usable_cpus))
        self._rulesets = rulesets
        self._longest_s = longest_s
        self._image: Image | None = None
        self._qemu = ""
        #: Of a kernel's package.
        self._unpacked: tempfile.TemporaryDirectory[str] | None = None
        #: What was counted, by topology and seed.
        self._known: dict[tuple[str, int], tuple[Log, float]] = {}

    def apply(self, topology: Topology) -> Ports:
        """See `Dut.apply`: makes the image. `MissingResource` names what is not installed."""
        _require_one_cpu(topology)
        self._script(topology)
        if self._image is None:
            self._qemu = machine.version(self._host)
            image = Image(find_kernel(self._kernel_folder()), self._config.ovs.prefix)
            _ = image.identity
            self._image = image
        return Ports("inner", "", "", 1, 1)

    def _kernel_folder(self) -> Path:
        kernel = Path(self._config.kernel)
        if self._config.kernel == "distribution":
            return UNPACKED
        if kernel.suffix != ".deb":
            return kernel
        self._unpacked = tempfile.TemporaryDirectory(prefix="ctbench-kernel-")
        return unpack(kernel, Path(self._unpacked.name))

    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[Counted]]:
        """See `CountingDut.count`."""
        image, seeds = self._image, range(1, self._config.seeds + 1)
        if image is None:
            raise TestbedError("No topology is applied yet.")
        missing = [
            (topology, seed)
            for seed in seeds
            for topology in dict.fromkeys(topologies)
            if (topology.key, seed) not in self._known
        ]
        archives = {topology: self._archive(image, topology) for topology, _ in missing}
        boots = [machine.Boot(image.kernel.image, archives[topology], seed) for topology, seed in missing]
        at_once = min(self._at_once, machine.fitting(self._host)) if boots else 1
        every = machine.boot_all(self._host, boots, at_once, self._longest_s)
        for (topology, seed), ended in zip(missing, every, strict=True):
            log = read_log(ended.said)
            if trouble := ended.trouble or log.trouble:
                raise TestbedError(f"The emulated machine did not measure {topology.key} (seed {seed}): {trouble}.")
            self._known[topology.key, seed] = log, ended.wall_s
        return [[self._counted(topology, seed, workload) for seed in seeds] for topology in topologies]

    def baseline(self, topology: Topology) -> Topology:
        """See `CountingDut.baseline`: with the same frames, which carry a tag where the ports are trunks of a VLAN."""
        tagged: PortSetup = "vlan" if topology.ports.endswith("vlan") else "plain"
        return Topology(datapath=self.kind, ruleset="baseline", ports=tagged)

    def _counted(self, topology: Topology, seed: int, workload: Workload) -> Counted:
        log, wall_s = self._known[topology.key, seed]
        told = log.workloads[workload]
        return Counted(topology.key, seed, tuple(told.rounds), told.doubt, wall_s)

    def _script(self, topology: Topology) -> Path:
        found = find_ruleset(FAMILIES, topology.ruleset, "an emulated machine", self._rulesets).file
        assert found is not None, "the family has an ending"
        return found

    def _archive(self, image: Image, topology: Topology) -> bytes:
        settings = file(f"PORTS={topology.ports}\n".encode())
        return image.for_topology(self._script(topology)) + pack({"guest/settings": settings})

    @property
    def identity(self) -> str:
        """Tells the machine from any other: a hash of the image, QEMU and its settings."""
        if self._image is None:
            return ""
        text = f"{self._image.identity} {self._qemu} {machine.SETTINGS}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def snapshot(self) -> dict[str, Any]:
        """See `Dut.snapshot`."""
        if self._image is None:
            return {"kind": self.kind}
        said = self._host.run(
            ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *_PACKAGES], check=False
        ).stdout
        return {
            "kind": self.kind,
            "kernel": self._image.kernel.release,
            "qemu": self._qemu,
            "image": self.identity,
            "ovs": self._config.ovs.prefix,
            "seeds": self._config.seeds,
            "packages": dict(line.split(" ", 1) for line in said.splitlines() if " " in line),
        }

    def flush_state(self) -> None:
        """Each boot begins without any."""

    def connections(self) -> int:
        """Between two boots there are none."""
        return 0

    def begin_trial(self) -> None:
        """There are no trials."""

    def health(self) -> list[Problem]:
        """A boot that went wrong has no figures."""
        return []

    def trouble(self) -> str:
        """Nothing runs between two boots."""
        return ""

    def counters(self) -> DutCounters:
        """Each boot counts for itself."""
        return DutCounters()

    def cpu_use(self) -> CpuUse | None:
        """A clock of instructions knows none."""
        return None

    def pause(self) -> None:
        """Nothing runs between two boots."""

    def resume(self) -> None:
        """Nothing runs between two boots."""

    def restore(self) -> None:
        """Nothing is left of a boot."""


def _require_one_cpu(topology: Topology) -> None:
    if topology.cpus > 1 or topology.rx_queues > 1:
        raise MissingResource(f"{topology.key} needs several CPUs or queues, and an emulated machine has one of each.")
