"""The YAML model of a testbed: its DUTs, its traffic generator, their CPUs and their hosts."""

from collections import Counter
from collections.abc import Collection
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.base.network import HostKey
from ctbench.base.units import quoted
from ctbench.base.yaml_files import Name, YamlModel
from ctbench.dut.registry import KINDS, DutConfig
from ctbench.hosts.config import LOCAL, SANDBOX, SshConfig
from ctbench.hosts.connections import machine_of
from ctbench.hosts.limits import LEAST_MB, LEAST_TASKS, limits_here
from ctbench.hosts.local import LocalHost
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.cpus import CpuPlan
from ctbench.traffic.registry import GeneratorConfig


def _check_duts(duts: list[DutConfig]) -> list[DutConfig]:
    if not duts:
        raise ValueError("there is no DUT.\n  Expected at least one.")
    twice = [kind for kind, count in Counter(dut.type for dut in duts).items() if count > 1]
    if twice:
        raise ValueError(f"duplicate type {quoted(twice[0])}.\n  Expected each type of DUT once.")
    return duts


class Rates(YamlModel):
    """The state of the rates of a testbed, and of what follows from them: judged, or only shown."""

    judged: bool = True
    #: Why they are not, as a part of a sentence.
    because: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.judged == bool(self.because.strip()):
            raise ValueError(
                f"judged: {str(self.judged).lower()} {'with' if self.judged else 'without'} a reason.\n"
                '  Expected {judged: false, because: "..."}, or no such key.'
            )
        return self


class TestbedConfig(YamlModel):
    """A testbed: a traffic generator and one or more DUTs. The generator is linked to one of them at a time or to a
    pair."""

    #: Hosts over SSH, by the name that `host` of a DUT or of the generator uses.
    hosts: dict[HostKey, SshConfig] = Field(default_factory=dict)
    name: Name
    #: One sentence for the report.
    description: str = ""
    #: A topology's datapath says which it is for: its `type`.
    duts: Annotated[list[DutConfig], AfterValidator(_check_duts)]
    generator: GeneratorConfig
    cpus: CpuPlan
    #: Let CPUs be shared, to try a topology out that the machine is too small for. Nothing is measured then.
    oversubscribe: bool
    #: Whether rates, and what follows from them, are judged; else they are shown.
    rates: Rates = Rates()
    #: Seconds to wait for the end of another run that has one of the hosts; 0: say who has it, and end.
    wait_for_hosts_s: int = Field(0, ge=0, le=86400)
    #: Tags of tests that are not measured here: they are skipped.
    skips: list[Name] = Field(default_factory=list)

    def require_wanted(self, tags: Collection[str]) -> None:
        """Raise `MissingResource` where one of a test's `tags` is in `skips`."""
        if skipped := next((tag for tag in self.skips if tag in tags), ""):
            raise MissingResource(
                f"This testbed skips tests tagged {skipped} (skips): `--include {skipped}` measures them, as does a "
                "testbed without that."
            )

    def check_machine(self) -> None:
        """Raise `MissingResource` with the first requirement of this testbed that this machine does not meet, in the
        order in which to fix them. The requirements of other hosts are checked when they are set up (earlier by `./run
        doctor`)."""
        self.generator.require()
        here = [dut for dut in self.duts if dut.host == SANDBOX]
        limits = limits_here()
        if here and ((limits.memory_mb or LEAST_MB) < LEAST_MB or (limits.tasks or LEAST_TASKS) < LEAST_TASKS):
            raise MissingResource(
                f"The control group of this process has {limits}; {LEAST_MB} MiB besides the DUT's memory and "
                f"{LEAST_TASKS} processes and threads are needed: start the container or service without these limits."
            )
        for dut in here:
            KINDS[dut.type].require(dut)
        if here:
            check_namespaces()

    @property
    def generator_cpus(self) -> list[int]:
        """CPUs that the file gives to the generator, by the generator's keys or by `cpus`; empty where the testbed
        chooses."""
        generating, others = self.generator.own_cpus
        return [*others, *generating] or ([] if self.cpus.generator == "auto" else self.cpus.generator)

    def dut(self, datapath: str, build: str = "") -> DutConfig:
        """Return the settings of the DUT with this datapath, with the installation `build` where one is named. Raise
        `MissingResource` where the testbed has no such DUT, or where a build is named of a kind without builds."""
        known = next((config for config in self.duts if config.type == datapath), None)
        if known is None:
            names = ", ".join(config.type for config in self.duts)
            raise MissingResource(f"A DUT with datapath {datapath} is needed; testbed {self.name} has {names}.")
        if not build:
            return known
        kind = KINDS[datapath]
        if not kind.builds:
            raise MissingResource(f"The build in {build} is asked for, and of a {kind.title} there is but one.")
        model: Any = kind.settings
        other: DutConfig = model.model_validate(kind.with_prefix(known.model_dump(), build))
        return other

    def with_build(self, prefix: str) -> Self:
        """Return this testbed with the installation at `prefix` for every DUT that has builds. Raise `ConfigError`
        where no DUT has, and what `check_build` raises."""
        if not any(KINDS[dut.type].builds for dut in self.duts):
            kinds = " or ".join(name for name, kind in KINDS.items() if kind.builds)
            raise ConfigError(f"{self.file}: duts: has none of which there are several builds.\n  Expected {kinds}.")
        self.check_build(prefix)
        duts = [self.dut(dut.type, prefix) if KINDS[dut.type].builds else dut for dut in self.duts]
        return self.model_copy(update={"duts": duts})

    def check_build(self, prefix: str) -> None:
        """Raise `ConfigError` or `MissingResource` where `prefix` is not a complete installation on this machine, or
        holds packages for a DUT outside a sandbox. An installation on another host is checked when it is set up."""
        for dut in self.duts:
            kind = KINDS[dut.type]
            if kind.builds and dut.host != SANDBOX and kind.is_packaged(prefix):
                raise ConfigError(
                    f"{prefix}: packages are tested in a sandbox, and {dut.type} of {self.file} is on {dut.host}.\n"
                    "  Expected the --prefix of a build that is installed there."
                )
            if kind.builds and dut.ports and dut.host == SANDBOX and prefix != "distribution":
                try:
                    kind.check_build(LocalHost(), prefix, dut.ports.kind)
                except CtbenchError as error:
                    raise type(error)(f"{prefix}: {error}") from None

    @model_validator(mode="after")
    def _names_are_free(self) -> Self:
        for name in self.hosts:
            if name in (SANDBOX, LOCAL):
                raise ValueError(f"hosts.{name}: {quoted(name)} has a meaning of its own.\n  Expected another name.")
        return self

    def check_host(self, where: str, name: str) -> None:
        """Raise `ValueError` when `name` is neither a host of this file, nor `sandbox` or `local`."""
        if name not in (SANDBOX, LOCAL, *self.hosts):
            known = ", ".join((SANDBOX, LOCAL, *self.hosts))
            raise ValueError(f"{where}: there is no host {quoted(name)}.\n  Expected one of: {known}.")

    @model_validator(mode="after")
    def _generator_has_its_own_cpus(self) -> Self:
        is_apart = machine_of(self.generator.host) not in {machine_of(dut.host) for dut in self.duts}
        shared = sorted(self.cpus.pmd_named.intersection(self.generator_cpus))
        if shared and not (is_apart or self.oversubscribe):
            raise ValueError(
                f"{'generator.cpus' if any(self.generator.own_cpus) else 'cpus'}: CPU "
                f"{', '.join(str(cpu) for cpu in shared)} is given to the generator and to a PMD thread.\n"
                "  Expected CPUs of their own, or oversubscribe: true, with which nothing is measured."
            )
        return self

    @model_validator(mode="after")
    def _hosts_are_known(self) -> Self:
        for index, dut in enumerate(self.duts):
            self.check_host(f"duts.{index}.host", dut.host)
        self.check_host("generator.host", self.generator.host)
        pairs = self.generator.port_pairs
        for index, dut in enumerate(self.duts):
            if dut.ports and pairs and dut.ports.pairs != pairs:
                raise ValueError(
                    f"duts.{index}.ports: pairs of ports: {dut.ports.pairs}, and of the generator: {pairs}.\n"
                    "  Expected as many of both (more_pairs)."
                )
            if dut.ports and (why := self.generator.out_of_reach(dut.host, dut.ports.kind)):
                raise ValueError(f"duts.{index}: {why}")
        return self


def check_namespaces() -> None:
    """Make a sandbox and end it. Where this machine refuses one, the error names the remedy."""
    Sandbox().close()
