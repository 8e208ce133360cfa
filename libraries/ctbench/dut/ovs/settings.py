"""Which Open vSwitch is measured: what a testbed file says of it, whether it is complete, and builds to compare."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.network import HostKey, ProgramWord, check_options
from ctbench.base.yaml_files import YamlModel
from ctbench.dut.abilities import TableSettings
from ctbench.dut.base import CLOSED_S
from ctbench.dut.kind import Builds, MemifPorts, OvsPrefix, PciPorts, VethPorts
from ctbench.dut.ovs.fit import Programs, loaded_from_elsewhere
from ctbench.dut.ovs.packages import ELSEWHERE, Packages, unpack
from ctbench.hosts.base import Host
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.sandbox import Sandbox

#: Where Debian and Ubuntu put the DPDK build (package openvswitch-switch-dpdk).
DISTRIBUTION_VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
AnyHost = TypeVar("AnyHost", bound=Host)
#: And the build without DPDK (openvswitch-switch).
DISTRIBUTION_PLAIN = "/usr/lib/openvswitch-switch/ovs-vswitchd"
#: What Debian and Ubuntu users install when a binary is missing.
PACKAGES = (
    "openvswitch-switch-dpdk, and librte-net-memif* (for veth: librte-net-af-packet*) with librte-mempool-ring* of the"
    " same DPDK"
)


@dataclass(frozen=True)
class OvsInstallation:
    """Where the binaries are: the distribution's, a build of one's own (`./configure --prefix=/opt/x`), or packages
    that are unpacked, whose paths hold in a sandbox that shows them."""

    #: What `make install` was given; tools and database schema are found below it.
    prefix: str = "/usr"
    packages: Packages | None = None

    @classmethod
    def at(cls, prefix: str) -> "OvsInstallation":
        """What `ovs.prefix` of a testbed file names: `distribution`, the prefix of a build, or where packages are
        unpacked."""
        packages = None if prefix == "distribution" else Packages.read(prefix)
        if packages:
            return cls(packages.prefix, packages)
        return cls() if prefix == "distribution" else cls(prefix=prefix)

    @contextmanager
    def shown(self, host: AnyHost) -> Iterator[AnyHost | Sandbox]:
        """Where its paths hold, for a look at it: the host itself, or of packages a sandbox that shows them."""
        with Sandbox() if self.packages else nullcontext(host) as there:
            if self.packages:
                self.packages.lay_over(there)
            yield there

    @property
    def vswitchd_path(self) -> str:
        """The daemon under test."""
        if self.packages:
            return self.packages.vswitchd
        return DISTRIBUTION_VSWITCHD if self.prefix == "/usr" else f"{self.prefix}/sbin/ovs-vswitchd"

    @property
    def without_dpdk(self) -> str:
        """An ovs-vswitchd for the kernel's datapath alone, which Debian and Ubuntu have in a package of its own."""
        has = self.packages.has(DISTRIBUTION_PLAIN) if self.packages else self.prefix == "/usr"
        return DISTRIBUTION_PLAIN if has else self.vswitchd_path

    @property
    def ovsdb_server(self) -> str:
        return f"{self.prefix}/sbin/ovsdb-server"

    @property
    def database_schema(self) -> str:
        return f"{self.prefix}/share/openvswitch/vswitch.ovsschema"

    def tool(self, name: str) -> str:
        return f"{self.prefix}/bin/{name}"

    @property
    def files(self) -> tuple[str, ...]:
        tools = (self.tool(name) for name in ("ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-tool"))
        return (self.vswitchd_path, self.ovsdb_server, self.database_schema, *tools)


class OvsConntrackSettings(TableSettings):
    """The connection table. Defaults are those of the measurements published in 2022 (OVS 2.17.2 and 3.0.0)."""

    #: Entries at most (`dpctl/ct-set-maxconns`).
    max_connections: int = Field(5_000_000, ge=1)
    #: Timeout policy of zone 0, seconds; names of the CT_Timeout_Policy table, ovs-vswitchd.conf.db(5).
    timeouts: dict[str, int] = Field({
        "udp_first": 1,
        "udp_single": 1,
        "udp_multiple": 30,
        "tcp_syn_sent": 1,
        "tcp_syn_recv": 1,
        "tcp_fin_wait": 1,
        "tcp_time_wait": CLOSED_S,
        "tcp_close": 1,
        "tcp_established": 30,
    })  # fmt: skip


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

    @model_validator(mode="before")
    @classmethod
    def _is_private(cls, data: Any) -> Any:
        if isinstance(data, dict) and "manage" in data:
            raise ValueError(
                "manage is no option any more: a run starts an instance of its own, which ends with it, and touches no "
                "other.\n  Expected no such line; cards have to be free of the host's own Open vSwitch."
            )
        return data

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
    ports: Annotated[MemifPorts | VethPorts | PciPorts, Field(discriminator="kind")]
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


def require_installation(host: Host, installation: OvsInstallation) -> None:
    done = host.run(["ls", "-d", *installation.files], check=False)
    missing = [path for path in installation.files if path not in done.stdout.splitlines()]
    if missing:
        remedy = f"Install {PACKAGES}"
        if installation.packages:
            remedy = "Put the packages with them into the folder"
        elif installation.prefix != "/usr":
            remedy = "Install the whole build there (make install)"
        raise MissingResource(f"OVS-DPDK is not on {host.name}: {', '.join(missing)} not found. {remedy}.")


def read_versions(host: Host, binary: str) -> dict[str, str]:
    """`version` of Open vSwitch and `dpdk_version`, `none` for a build without DPDK, of an ovs-vswitchd."""
    lines = host.run([binary, "--version"]).stdout.splitlines()
    dpdk = [line.split()[-1] for line in lines if line.startswith("DPDK ")]
    return {"version": lines[0].split()[-1], "dpdk_version": dpdk[0] if dpdk else "none"}


#: Where distributions keep DPDK's drivers, one folder per DPDK ABI.
PMD_FOLDERS = ("/usr/lib/x86_64-linux-gnu/dpdk/pmds-*", "/usr/lib64/dpdk/pmds-*", "/usr/local/lib/dpdk/pmds-*")

#: Both or nothing: without the mempool driver OVS says "Failed to create mempool: Invalid argument".
PMD_LIBRARIES = {"librte_net_memif": "librte-net-memif*", "librte_mempool_ring": "librte-mempool-ring*"}


def check_ovs(ovs: Path = Path(DISTRIBUTION_VSWITCHD)) -> None:
    """The distribution's OVS with DPDK, which the sandbox starts as a private instance."""
    if not os.access(ovs, os.X_OK):
        raise MissingResource(
            f"OVS-DPDK is not installed ({ovs} is not there): run `./run setup`,"
            " or install the package openvswitch-switch-dpdk."
        )


def check_drivers(folders: Iterable[str] = PMD_FOLDERS) -> None:
    """DPDK's memif and mempool-ring drivers, both in one folder: OVS loads all of its own DPDK's and no others."""
    found = [path for pattern in folders for path in Path("/").glob(pattern.lstrip("/"))]
    if any(not _missing_drivers(folder) for folder in found):
        return
    missing = _missing_drivers(found[-1]) if found else list(PMD_LIBRARIES)
    packages = " and ".join(PMD_LIBRARIES[library] for library in missing)
    raise MissingResource(
        f"DPDK's drivers {' and '.join(missing)} are not installed: run `./run setup`,"
        f" or install {packages} of the same DPDK as OVS."
    )


def _missing_drivers(folder: Path) -> list[str]:
    return [library for library in PMD_LIBRARIES if not any(folder.glob(f"{library}.so*"))]


def _check(host: Host, prefix: str, ports: str) -> None:
    if prefix != "distribution" and host.run(["test", "-d", prefix], check=False).exit_status != 0:
        raise ConfigError(
            f"there is no such folder on {host.name}.\n  Expected what the build was configured with (--prefix) "
            "and installed to, or a folder of packages (.deb, .rpm)."
        )
    installation = OvsInstallation.at(prefix)
    with installation.shown(host) as there:
        require_installation(there, installation)
        replace(_programs(installation), ports=ports).require(there)


def _programs(installation: OvsInstallation) -> Programs:
    vswitchd, packages = installation.vswitchd_path, installation.packages
    tools = [path for path in installation.files if path not in (vswitchd, installation.database_schema)]
    if packages:
        missing = "put the packages with them into the folder"
        return Programs(
            vswitchd,
            tools,
            title=packages.names[0],
            nowhere="neither in the packages nor on this machine",
            libraries=f"{missing}, {ELSEWHERE}",
            programs="put all packages of that Open vSwitch into the folder",
            drivers=f"{missing} (on Debian and Ubuntu librte-net-memif* and librte-mempool-ring*), {ELSEWHERE}",
        )
    return Programs(
        vswitchd,
        tools,
        title="the build",
        nowhere="not on this machine",
        libraries="install the packages with them, or build it on this system",
        programs="install the build once more",
        drivers="build its DPDK with net/memif, net/af_packet and mempool/ring, and bus/vdev (meson: enable_drivers)",
    )


def _versions(host: Host, config: OvsDpdkConfig) -> dict[str, Any]:
    installation = OvsInstallation.at(config.ovs.prefix)
    program, libraries = installation.vswitchd_path, f"{installation.prefix}/lib"
    try:
        with installation.shown(host) as there:
            versions: dict[str, Any] = read_versions(there, program)
            # A build of the same version may be another one. Libraries of its own are below its prefix, or its DPDK's.
            own = [program]
            if installation.prefix != "/usr":
                elsewhere = loaded_from_elsewhere(there, program)
                own += [libraries, *(path for path in elsewhere if not path.startswith(f"{libraries}/"))]
            find = ["find", "-L", *own, "-type", "f", "(", "-path", program, "-o", "-name", "*.so*", ")"]
            versions["files"] = sorted(there.run([*find, "-exec", "sha256sum", "{}", "+"], check=False).stdout.split())
    except (TestbedError, MissingResource, IndexError):
        versions = {}
    return {f"Open vSwitch in {config.ovs.prefix}": versions}


#: Builds of Open vSwitch, each with a prefix of its own.
BUILDS = Builds("Open vSwitch", "ovs", _check, _versions, unpack, Packages.read)
