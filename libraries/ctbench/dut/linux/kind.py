"""The Linux kernel as two kinds of DUT, a router and a bridge, and the doctor's rows of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.errors import TestbedError
from ctbench.base.network import HostKey
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.base import Dut
from ctbench.dut.kind import Ability, ConnectionTable, DutKind, InterfacePorts, RingPorts, Surroundings
from ctbench.dut.linux.dut import PROGRAMS, LinuxDut, kernel_build
from ctbench.dut.linux.forwarding import LinuxBridgeDut, LinuxRouterDut
from ctbench.dut.linux.netfilter import TABLE_SETTINGS, LinuxConntrackKeys, Netfilter, few_buckets, least_buckets
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.machine import (
    NF_CONNTRACK_BUCKETS,
    NF_CONNTRACK_MAX,
    Examined,
    Finding,
    HostFacts,
    bad,
    install,
    ok,
    refused,
    unknown,
)


class LinuxConfig(YamlModel):
    """The Linux kernel as the DUT: as a router or as a bridge."""

    type: Literal["linux-router", "linux-bridge"]
    #: `sandbox`: namespaces of the run's own on this machine; `local`: this machine itself, as root; or an entry of
    #: `hosts`.
    host: HostKey
    ports: Annotated[RingPorts | InterfacePorts, Field(discriminator="kind")]
    #: Of a router: a bridge tracks nothing.
    conntrack: LinuxConntrackKeys = LinuxConntrackKeys()

    @model_validator(mode="after")
    def _ports_are_on_the_host(self) -> Self:
        if (self.host == SANDBOX) != (self.ports.kind == "veth"):
            raise ValueError(
                f"host: {self.host} does not go with ports.kind: {self.ports.kind}.\n"
                "  Expected sandbox with veth, or a lab's host with interfaces."
            )
        if self.conntrack != LinuxConntrackKeys() and self.type != LinuxRouterDut.kind:
            raise ValueError(
                f"conntrack does not go with type: {self.type}, which tracks nothing.\n  Expected it of a linux-router."
            )
        return self


class LinuxKind(DutKind):
    """A DUT in the Linux kernel, which forwards on the CPUs that handle its interrupts. `apply` finds out what the
    kernel lacks."""

    settings = LinuxConfig
    abilities: frozenset[Ability] = frozenset({"connections", "dump", "removal", "fragments", "accounting"})

    def __init__(self, new: type[LinuxDut], title: str, tags: tuple[str, ...], *, bridges: bool) -> None:
        self.new, self.name, self.families = new, new.kind, new.families
        self.title, self.tags, self.bridges = title, tags, bridges
        if not bridges:  # which track nothing
            self.options = DutKind.options | {"timeout_s", "max_connections"}

    def build(self, config: LinuxConfig, around: Surroundings) -> Dut:
        host, machine, placement, ports = around.host, around.machine, around.placement, config.ports
        if isinstance(ports, RingPorts):
            steer = not around.generator_carries
            return self.new(
                host, machine, placement, frames=ports.ring_size, pairs=ports.pairs, steer=steer,
                conntrack=config.conntrack,
            )  # fmt: skip
        cards, offloads = tuple(card for _, card in ports.cards), ports.offloads is None
        return self.new(
            host, machine, placement, interfaces=cards, card_ring=ports.ring_size, macs=around.generator_macs(),
            card_offloads=offloads, conntrack=config.conntrack,
        )  # fmt: skip

    def program(self, config: LinuxConfig, host: Host) -> str:
        return kernel_build(host)

    def table(self, config: LinuxConfig) -> ConnectionTable | None:
        """Return the connection table. A sandbox shares this machine's limit; elsewhere the run is root and sets it."""
        entries, remedy = TABLE_SETTINGS.max_connections, " Shorter trials need fewer."
        if config.host == SANDBOX:
            remedy = " An administrator makes it larger: sysctl net.netfilter.nf_conntrack_max={entries}"
            try:
                entries = int(Path(NF_CONNTRACK_MAX).read_text())
            except (OSError, ValueError):
                return None
        timeouts = TABLE_SETTINGS.timeouts
        closed, answered = timeouts["tcp_timeout_time_wait"], timeouts["udp_timeout_stream"]
        of_host = config.host == SANDBOX
        return ConnectionTable("The kernel's connection table", entries, closed, answered, remedy, of_host=of_host)

    def examine(self, config: LinuxConfig, on: Examined) -> Iterator[Finding]:
        missing = sorted(name for name in PROGRAMS if name not in on.facts.programs)
        if missing:
            remedy = "./run setup" if on.ssh is None else install(on.facts, [PROGRAMS[name] for name in missing])
            yield bad("Linux tools", f"{', '.join(missing)} not found", remedy)
        else:
            yield ok("Linux tools", f"Linux {on.facts.machine.kernel}: {', '.join(sorted(PROGRAMS))}")
        yield _table(on.facts, settable=config.host != SANDBOX)
        if "nft" in on.facts.programs and config.host != SANDBOX:
            try:
                Netfilter(on.host).require_none()
                yield ok("netfilter rules", "none of its own")
            except TestbedError as error:
                yield refused("netfilter rules", error)

    def describe(self, facts: Mapping[str, Any], *, whole: bool = False) -> str:
        if not facts.get("kernel"):
            return ""
        tools = [f"{tool} {facts[tool]}" for tool in ("iptables", "nftables") if whole and facts.get(tool)]
        return ", ".join([f"Linux {facts['kernel']}", *tools])


def _table(facts: HostFacts, *, settable: bool) -> Finding:
    """Return the doctor's row of the kernel's table. `settable`: the run, which is root of a lab's host, sets it."""
    what = "connection table"
    found = [facts.files.get(path, "").strip() for path in (NF_CONNTRACK_MAX, NF_CONNTRACK_BUCKETS)]
    if not all(found):
        return unknown(what, "not there before a rule asks for it")
    entries, buckets = map(int, found)
    if settable or not (few := few_buckets(entries, buckets)):
        return unknown(what, f"{entries} entries (nf_conntrack_max), {buckets} buckets (nf_conntrack_buckets)")
    return unknown(what, few, f"sysctl net.netfilter.nf_conntrack_buckets={least_buckets(entries)}")


ROUTER = LinuxKind(LinuxRouterDut, "Linux router", ("linux", "router"), bridges=False)
BRIDGE = LinuxKind(LinuxBridgeDut, "Linux bridge", ("linux", "bridge"), bridges=True)
