"""The counter of instructions in emulated machines: the cost of a packet in a topology."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from icount import machine
from icount.by_function import count_functions
from icount.errors import IcountError, Invalid, Missing
from icount.image import PROGRAMS, Image, keep, make_image, open_kept, unpack
from icount.kernel import Kernel, find_kernel, open_kernel
from icount.machine import Counted, Log, States, Workload

#: Those whose figures are net as they are counted: of the same with an empty table.
_NET: tuple[Workload, ...] = ("removal", "dump")
#: Of topologies whose packets a program forwards.
_WAITED_FOR = "ovs-user-"
_PACKAGES = ("libc6", "openvswitch-switch", "qemu-system-x86", "tcc", *dict.fromkeys(PROGRAMS.values()))


@dataclass(frozen=True)
class Setup:
    """A set-up to measure: a topology, by the name of its script, and the kind of its ports: `plain`, `vlan`, `bond` or
    `bond-vlan`."""

    topology: str
    ports: str = "plain"

    def __str__(self) -> str:
        return self.topology if self.ports == "plain" else f"{self.topology} ({self.ports})"

    def baseline(self, workload: Workload) -> "Setup | None":
        """Return the set-up to subtract: the wires and the traffic alone, with the same frames, which carry a tag where
        the ports are trunks of a VLAN. None for a workload whose figures are net already."""
        if workload in _NET:
            return None
        return Setup("baseline", "vlan" if self.ports.endswith("vlan") else "plain")


class Counter:
    """A counter of instructions in emulated machines, each of which contains DUT and traffic. Each starts from the same
    state. A machine that failed has no figures; the reason includes its console.

    Nothing is made before it is needed. Methods raise `Missing` where something is not installed, `Invalid` where a
    kernel, an image or a topology is not one, and `IcountError` where a machine does not work.
    """

    def __init__(
        self, folder: Path, rulesets: Path, *, kernel: Path | None = None, ovs: str = "distribution",
        image: Path | None = None, seeds: int = 1, longest_s: float = machine.LONGEST_S,
    ) -> None:  # fmt: skip
        """Set up the counter, by default with the distribution's kernel and Open vSwitch.

        `folder`: for states, 160 MB a seed, best in memory; the caller removes it. `rulesets`: the catalogue, with the
        topologies in `emulated`. `kernel`: a package (.deb), a folder with the layout of a package, or a bzImage with
        its modules next to it. `ovs`: the prefix of a build. `image`: a kept image, which replaces the kernel and the
        installed programs. `seeds`: the number of seeds of the kernel's hash functions, with a machine for each.
        `longest_s`: the time limit of a machine, seconds.
        """
        self._folder = folder
        self._rulesets = rulesets
        self._given_kernel = kernel
        self._ovs = ovs
        self._kept = image
        self._seeds = range(1, seeds + 1)
        self._longest_s = longest_s
        self._at_once = len(os.sched_getaffinity(0))
        #: What was counted, by topology, workloads of the machine, and seed.
        self._known: dict[tuple[Setup, str, int], Log] = {}

    def count(self, setups: Sequence[Setup], workload: Workload) -> list[list[Counted]]:
        """Return the counts of the machines of each topology: one for each seed, in the same order for all. A known
        count is not repeated: it would be the same."""
        workloads = _workloads(setups, workload)
        given = {setup: self._given(setup, workloads) for setup in setups}
        missing = [(each, seed) for seed in self._seeds for each in given if (each, workloads, seed) not in self._known]
        while missing:
            ready = self._states.ready(list(dict.fromkeys(seed for _, seed in missing)), self._at_once)
            now = [each for each in missing if each[1] in ready]
            missing = [each for each in missing if each[1] not in ready]
            asked = [replace(ready[seed], given=given[setup]) for setup, seed in now]
            at_once = min(self._at_once, machine.fitting())
            every = machine.run_all(self._folder, asked, at_once, self._longest_s)
            for (setup, seed), log in zip(now, every, strict=True):
                if log.trouble:
                    raise IcountError(f"The emulated machine did not measure {setup} (seed {seed}): {log.trouble}.")
                self._known[setup, workloads, seed] = log
        return [[self._counted(each, workloads, seed, workload) for seed in self._seeds] for each in setups]

    def functions(self, setups: Sequence[Setup], workload: Workload) -> dict[Setup, dict[str, float]]:
        """Return the functions in which the instructions of one packet (connection) are spent, wires and traffic
        included, the dearest first. Each topology takes a machine with one seed, several times as long as a count.
        Topologies whose functions do not add up to the count of the machine's clock are left out."""
        workloads = _workloads(setups, workload)
        given = {str(setup): self._given(setup, workloads) for setup in setups}
        (ready,) = self._states.ready([1], self._at_once).values()
        at_once = min(self._at_once, machine.fitting())
        found = count_functions(self._folder, unpack(self._image.whole), ready, given, at_once)
        return {setup: found[str(setup)][workload] for setup in setups if workload in found[str(setup)]}

    def keep_image(self, target: Path) -> str:
        """Write what the machine boots to a file, which `image` can name later, and return `identity`. Raise `OSError`
        where the file cannot be written."""
        keep(self._image, target)
        return self.identity

    @property
    def identity(self) -> str:
        """The identity of the machine: a hash of the image, QEMU and its settings."""
        text = f"{self._image.identity} {self.qemu} {machine.SETTINGS}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def release(self) -> str:
        """The release of the kernel: `6.1.0-56-cloud-amd64`."""
        return self._image.release

    @property
    def packages(self) -> Mapping[str, str]:
        """The versions of the packages that the machine's programs come from."""
        return self._image.packages

    @cached_property
    def qemu(self) -> str:
        """The version of QEMU: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`."""
        return machine.version()

    @cached_property
    def _image(self) -> Image:
        """The image that the machines boot. Raises `Missing`, which names what is not installed."""
        _ = self.qemu
        if self._kept:
            return open_kept(self._kept, self._ovs)
        return make_image(self._kernel(), self._rulesets, self._ovs, _versions())

    @cached_property
    def _states(self) -> States:
        return States(self._folder, self._image, self._longest_s)

    def _kernel(self) -> Kernel:
        """Return the kernel. A package of one is unpacked in the counter's folder, and removed with it."""
        if self._given_kernel is None:
            return find_kernel()
        try:
            kernel = open_kernel(self._given_kernel, Path(tempfile.mkdtemp(prefix="kernel-", dir=self._folder)))
            _ = kernel.needed
        except Missing as error:
            raise Invalid(str(error)) from None
        return kernel

    def _given(self, setup: Setup, workloads: str) -> bytes:
        """Return the input of a ready machine (guest/init.sh)."""
        return f"PORTS={setup.ports}\nWORKLOADS={workloads}\n".encode() + self._image.topology(setup.topology)

    def _counted(self, setup: Setup, workloads: str, seed: int, workload: Workload) -> Counted:
        log = self._known[setup, workloads, seed]
        return replace(log.workloads.get(workload, Counted()), seed=seed, wall_s=log.wall_s)


def _versions() -> dict[str, str]:
    """Return the versions of packages; empty on a distribution without dpkg(1)."""
    argv = ["dpkg-query", "--show", "--showformat", "${Package} ${Version}\n", *_PACKAGES]
    said = ""
    with suppress(FileNotFoundError):
        said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    return dict(line.split(" ", 1) for line in said.splitlines() if " " in line)


def _workloads(setups: Sequence[Setup], workload: Workload) -> str:
    """Return what the machines measure, in the words of guest/library.sh: the usual workloads in their order, or many
    flows alone. All set-ups that are compared send in the same way: each batch is waited for where a program forwards
    one of them."""
    if any(setup.topology.startswith(_WAITED_FOR) for setup in setups):
        return "waits"
    return workload if workload.startswith("stream-") else "usual"
