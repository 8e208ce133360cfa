"""The Open vSwitch under test: its settings in a testbed file, and the paths of its files."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from ctbench.base.network import HostKey, ProgramWord, check_options
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.base import CLOSED_S
from ctbench.dut.kind import OvsPrefix, PciPorts, RingPorts
from ctbench.dut.ovs.packages import ELSEWHERE, Packages
from ctbench.dut.table import TableSettings
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.sandbox import Sandbox

#: Where Debian and Ubuntu put the DPDK build (package openvswitch-switch-dpdk).
DISTRIBUTION_VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
AnyHost = TypeVar("AnyHost", bound=Host)
#: What Debian and Ubuntu users install when a binary is missing.
PACKAGES = (
    "openvswitch-switch-dpdk, and librte-net-memif* (for veth: librte-net-af-packet*) with librte-mempool-ring* of the"
    " same DPDK"
)


@dataclass(frozen=True)
class OvsInstallation:
    """An installed Open vSwitch: the distribution's, a build of one's own (`./configure --prefix=/opt/x`), or unpacked
    packages, whose paths hold in a sandbox that shows them."""

    #: What `make install` was given; tools and database schema are found below it.
    prefix: str = "/usr"
    packages: Packages | None = None

    @classmethod
    def at(cls, prefix: str) -> "OvsInstallation":
        """Return the installation that `ovs.prefix` of a testbed file names: `distribution`, the prefix of a build, or
        the folder of unpacked packages."""
        packages = None if prefix == "distribution" else Packages.read(prefix)
        if packages:
            return cls(packages.prefix, packages)
        return cls() if prefix == "distribution" else cls(prefix=prefix)

    @contextmanager
    def shown(self, host: AnyHost) -> Iterator[AnyHost | Sandbox]:
        """Yield a host where the installation's paths hold: the host itself, or for packages a sandbox that shows
        them."""
        with Sandbox() if self.packages else nullcontext(host) as there:
            if self.packages:
                self.packages.lay_over(there)
            yield there

    @property
    def vswitchd_path(self) -> str:
        """Path of the daemon under test."""
        if self.packages:
            return self.packages.vswitchd
        return DISTRIBUTION_VSWITCHD if self.prefix == "/usr" else f"{self.prefix}/sbin/ovs-vswitchd"

    @property
    def ovsdb_server(self) -> str:
        return f"{self.prefix}/sbin/ovsdb-server"

    @property
    def database_schema(self) -> str:
        return f"{self.prefix}/share/openvswitch/vswitch.ovsschema"

    def tool(self, name: str) -> str:
        return f"{self.prefix}/bin/{name}"

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that a run starts, ovs-vswitchd first."""
        tools = (self.tool(name) for name in ("ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-tool"))
        return (self.vswitchd_path, self.ovsdb_server, *tools)

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.programs, self.database_schema)

    @property
    def title(self) -> str:
        """Name of the installation in a message about a fault."""
        return self.packages.names[0] if self.packages else self.vswitchd_path

    @property
    def remedy(self) -> str:
        """Remedy for an installation that lacks something or does not start."""
        if self.packages:
            return f"put all packages of that Open vSwitch, and what they depend on, into the folder, {ELSEWHERE}"
        if self.prefix == "/usr":
            return f"run `./run setup`, or install {PACKAGES}"
        return "build it on this system, with DPDK and its drivers (docs/gate.md), and `make install` the whole of it"


#: The connection table as in the measurements published in 2022 (OVS 2.17.2 and 3.0.0): entries at most
#: (`dpctl/ct-set-maxconns`), and the timeout policy of zone 0 by names of the CT_Timeout_Policy table,
#: ovs-vswitchd.conf.db(5).
TABLE = TableSettings(
    max_connections=5_000_000,
    timeouts={
        "udp_first": 1,
        "udp_single": 1,
        "udp_multiple": 30,
        "tcp_syn_sent": 1,
        "tcp_syn_recv": 1,
        "tcp_fin_wait": 1,
        "tcp_time_wait": CLOSED_S,
        "tcp_close": 1,
        "tcp_established": 30,
    },
)


#: Options of ovs-vswitchd, and of DPDK in it, that a run sets itself.
VSWITCHD_OPTIONS = (
    "--detach", "--no-chdir", "--pidfile", "--unixctl", "--log-file", "--enable-dummy", "--dummy-numa", "--monitor",
)  # fmt: skip
DPDK_OPTIONS = ("--in-memory", "--no-huge", "--legacy-mem", "-m", "--no-pci", "--socket-mem", "-l", "-c", "--lcores")


class OvsInstall(YamlModel):
    #: `distribution`: the package openvswitch-switch-dpdk; else the prefix of a build from source.
    prefix: OvsPrefix
    #: Further options of ovs-vswitchd, a word each: [--mlockall]; and of DPDK, `dpdk-extra` of ovs-vswitchd.conf.db(5):
    #: [-a, "0000:18:00.2,dv_flow_en=0"].
    options: list[ProgramWord] = Field(default_factory=list, max_length=64)
    dpdk_extra: list[ProgramWord] = Field(default_factory=list, max_length=64)

    @model_validator(mode="after")
    def _options_are_not_ours(self) -> Self:
        check_options("options", self.options, VSWITCHD_OPTIONS)
        check_options("dpdk_extra", self.dpdk_extra, DPDK_OPTIONS)
        return self


class OvsDpdkConfig(YamlModel):
    """Open vSwitch with DPDK as the DUT."""

    type: Literal["ovs-dpdk"]
    #: `sandbox`: namespaces of the run's own on this machine; `local`: this machine itself; or an entry of `hosts`.
    host: HostKey
    ovs: OvsInstall
    ports: Annotated[RingPorts | PciPorts, Field(discriminator="kind")]
    #: Memory of DPDK, MiB.
    memory_mb: int = Field(ge=256, le=65536)
    #: `auto`: hugepages that are free, else ordinary pages; `never`: ordinary pages.
    hugepages: Literal["auto", "never"]

    @model_validator(mode="after")
    def _ports_are_on_the_host(self) -> Self:
        if (self.host == SANDBOX) == (self.ports.kind == "pci"):
            raise ValueError(
                f"host: {self.host} does not go with ports.kind: {self.ports.kind}.\n"
                "  Expected sandbox with memif or veth, or a lab's host with pci."
            )
        return self
