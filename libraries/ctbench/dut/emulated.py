"""The emulated machine as a kind of DUT: its settings in a testbed file, its counter, and the doctor's rows. This is
the suite's side of the package `icount`, which knows nothing of the suite."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

import icount
from ctbench.base.errors import ConfigError, CtbenchError, MissingResource, TestbedError
from ctbench.base.network import valid
from ctbench.base.paths import RULESETS
from ctbench.base.units import quoted
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.abilities import CountedRound, Counter, InstructionCounts, Workload
from ctbench.dut.kind import Ability, DutKind, OvsPrefix, Surroundings
from ctbench.dut.rulesets import find_ruleset
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.machine import Examined, Finding, bad, ok, unknown

NAME, FAMILIES = "emulated", ("emulated",)
WHAT, KERNEL, IMAGE = "emulated machine", "emulated machine, kernel", "emulated machine, image"
_NAME_KERNEL = "name a package (.deb), a folder as one has it or a bzImage in kernel:, or write kernel: distribution"
_KEEP_IMAGE = "keep one (docs/emulated.md), or take image: out of the testbed file"


_KERNEL = valid(
    "distribution|/.*", "a kernel",
    '"distribution", or the absolute path of a package (.deb), of a folder with boot/vmlinuz-RELEASE and '
    "lib/modules/RELEASE, or of a bzImage with its modules next to it",
)  # fmt: skip
_IMAGE = valid(
    "/.*", "an image",
    'the absolute path of a file that icount --keep-image wrote, for example "/srv/images/mine.image"',
    or_empty=True,
)  # fmt: skip


class OvsSettings(YamlModel):
    """The Open vSwitch of the topologies that have one."""

    #: `distribution`: the package; or the absolute path that a build was configured with (--prefix).
    prefix: OvsPrefix = "distribution"


class EmulatedConfig(YamlModel):
    """An emulated machine that has DUT and traffic in it."""

    type: Literal["emulated"]
    host: Literal["sandbox"] = "sandbox"
    #: `distribution`: the package that `./run setup` unpacked; or another one (.deb), a folder as a package has it, or
    #: a bzImage with its modules next to it.
    kernel: Annotated[str, _KERNEL]
    #: Machines for each topology, each with its own seed of the kernel's hash functions: their range is the
    #: uncertainty.
    seeds: int = Field(ge=2, le=100)

    #: An image that was kept (docs/emulated.md), in the place of the kernel and the tools that are installed. Optional.
    image: Annotated[str, _IMAGE] = ""
    #: Of topologies with Open vSwitch. Optional.
    ovs: OvsSettings = OvsSettings()

    @model_validator(mode="after")
    def _an_image_has_a_kernel(self) -> Self:
        if self.image and self.kernel != "distribution":
            raise ValueError(
                f"kernel: {quoted(self.kernel)} and image: the image that was kept has a kernel.\n"
                "  Expected one of them: kernel: distribution with image."
            )
        return self

    @property
    def ports(self) -> None:
        return None


_ERRORS: dict[type[icount.IcountError], type[CtbenchError]] = {
    icount.IcountError: TestbedError, icount.Invalid: ConfigError, icount.Missing: MissingResource,
}  # fmt: skip


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Turn errors of `icount` into those of the suite."""
    try:
        yield
    except icount.IcountError as error:
        raise _ERRORS[type(error)](str(error)) from None


check_kernel = _in_our_words()(icount.check_kernel)
read_release = _in_our_words()(icount.read_release)
_check_image = _in_our_words()(icount.check_image)


def _counter(config: EmulatedConfig, memory: Path) -> icount.Counter:
    """Return a counter that makes nothing in `memory` before it is asked to."""
    return icount.Counter(
        memory, RULESETS, kernel=None if config.kernel == "distribution" else Path(config.kernel),
        ovs=config.ovs.prefix, image=Path(config.image) if config.image else None, seeds=config.seeds,
    )  # fmt: skip


class EmulatedCounter(Counter):
    """The instruction counter of one testbed's machines. Their states are in the sandbox's own memory, and end with
    it."""

    def __init__(self, config: EmulatedConfig, host: Host) -> None:
        memory = host.local_path("/run")
        assert memory, "it is in a sandbox"
        self._config = config
        self.counter = _counter(config, memory)

    def count(self, topologies: Sequence[Topology], workload: Workload) -> list[list[InstructionCounts]]:
        setups = [self._setup(topology) for topology in topologies]
        with _in_our_words():
            found = self.counter.count(setups, workload)
        return [
            [
                InstructionCounts(
                    topology.key, one.seed, tuple(CountedRound(*each) for each in one.rounds), one.doubt, one.wall_s
                )
                for one in counted
            ]
            for topology, counted in zip(topologies, found, strict=True)
        ]

    def baseline(self, topology: Topology, workload: Workload) -> Topology | None:
        if (found := self._setup(topology).baseline(workload)) is None:
            return None
        return Topology(datapath=NAME, ruleset=found.topology, ports=found.ports)

    def snapshot(self) -> dict[str, Any]:
        counter, config = self.counter, self._config
        with _in_our_words():
            facts = {"kind": NAME, "kernel": counter.release, "qemu": counter.qemu, "image": counter.identity}
            facts["program"] = counter.identity
            return facts | {"ovs": config.ovs.prefix, "seeds": config.seeds, "packages": dict(counter.packages)}

    def _setup(self, topology: Topology) -> icount.Setup:
        """Return the set-up. Raise `MissingResource` for what an emulated machine lacks."""
        if topology.timeout_s is not None or topology.max_connections is not None:
            raise MissingResource(f"{topology.key} sets the connection table up, and an emulated machine has its own.")
        if topology.cpus > 1 or topology.rx_queues > 1:
            raise MissingResource(
                f"{topology.key} needs several CPUs or queues, and an emulated machine has one of each."
            )
        ruleset = find_ruleset(FAMILIES, topology.ruleset, "an emulated machine")
        return icount.Setup(ruleset.name, topology.ports)


class EmulatedKind(DutKind):
    """The emulated machine as a kind of DUT. Traffic and DUT are both in it, and it opens as many connections as
    fit."""

    name = NAME
    title = "Emulated machine"
    settings = EmulatedConfig
    abilities: frozenset[Ability] = frozenset({"instructions"})
    options = frozenset({"ports"})
    families = FAMILIES
    tags = ("emulated",)

    def require(self, config: EmulatedConfig) -> None:
        """Raise `ConfigError` for a kernel, an Open vSwitch or an image that the testbed file names and that is not
        there. A missing program only skips the tests of this kind."""
        for key, named in (("kernel", config.kernel), ("ovs.prefix", config.ovs.prefix), ("image", config.image)):
            if named not in ("", "distribution") and not Path(named).exists():
                raise ConfigError(
                    f"{key} of the emulated machine is {named}, which does not exist.\n"
                    '  Expected "distribution", or a path that is there.'
                )

    def program(self, config: EmulatedConfig, host: Host) -> str:
        with _in_our_words(), TemporaryDirectory(prefix="icount-") as folder:  # of a package that is unpacked
            return _counter(config, Path(folder)).identity

    def build(self, config: EmulatedConfig, around: Surroundings) -> EmulatedCounter:
        return EmulatedCounter(config, around.host)

    def examine(self, config: EmulatedConfig, on: Examined) -> Iterator[Finding]:
        """Yield the doctor's rows. A missing program skips the tests of this kind; a file that the testbed file names
        has to be valid."""
        if missing := icount.missing_programs():
            yield unknown(WHAT, f"{', '.join(missing)} not found: its tests are skipped (./run setup)")
        seeds = f"{config.seeds} machines for each topology"
        try:
            if config.image:
                yield ok(IMAGE, f"Linux {_check_image(Path(config.image))}, {seeds}")
            elif config.kernel != "distribution":
                yield ok(KERNEL, f"Linux {check_kernel(Path(config.kernel))}, {seeds}")
            else:
                yield ok(WHAT, f"Linux {check_kernel(icount.UNPACKED)}, {seeds}")
        except (ConfigError, MissingResource) as error:
            said = str(error).split("\n")[0].rstrip(".")
            if config.image:
                yield bad(IMAGE, said, _KEEP_IMAGE)
            elif config.kernel != "distribution":
                yield bad(KERNEL, said, _NAME_KERNEL)
            else:
                yield unknown(WHAT, f"its tests are skipped: {error}")

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        if not facts.get("kernel"):
            return ""
        return f"Linux {facts['kernel']} in QEMU {str(facts.get('qemu', '')).partition(' ')[0]}".strip()
