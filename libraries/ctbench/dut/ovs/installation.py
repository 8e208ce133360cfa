"""What is installed: whether it is complete, which OVS and DPDK it is, what they cannot do, and builds to compare."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.dut.kind import Builds
from ctbench.dut.ovs.settings import DISTRIBUTION_VSWITCHD, PACKAGES, OvsDpdkConfig, OvsInstallation
from ctbench.hosts.base import Host


def require_installation(host: Host, installation: OvsInstallation) -> None:
    done = host.run(["ls", "-d", *installation.files], check=False)
    missing = [path for path in installation.files if path not in done.stdout.splitlines()]
    if missing:
        raise MissingResource(f"OVS-DPDK is not on {host.name}: {', '.join(missing)} not found. Install {PACKAGES}.")


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


class OvsBuilds(Builds):
    """Builds of Open vSwitch, each with a prefix of its own."""

    title = "Open vSwitch"
    key = "ovs"

    def check(self, host: Host, prefix: str) -> None:
        installation = OvsInstallation.at(prefix)
        if host.run(["test", "-d", installation.prefix], check=False).exit_status != 0:
            raise ConfigError(
                f"there is no such folder on {host.name}.\n  Expected what the build was configured with (--prefix) "
                "and installed to."
            )
        require_installation(host, installation)
        for program in (installation.vswitchd_path, installation.ovsdb_server):
            if host.run(["test", "-f", program, "-a", "-x", program], check=False).exit_status != 0:
                raise MissingResource(f"{program} cannot be executed: install the build once more.")
            said = _version(host, program)
            if program == installation.vswitchd_path and "DPDK" not in said:
                raise MissingResource(f"{program} was built without DPDK: configure the build with --with-dpdk.")

    def versions(self, host: Host, config: OvsDpdkConfig) -> dict[str, Any]:
        installation = OvsInstallation.at(config.ovs.prefix)
        try:
            versions = read_versions(host, installation.vswitchd_path)
        except (TestbedError, IndexError):
            versions = {}
        return {f"{self.title} in {installation.prefix}": versions}


def _version(host: Host, program: str) -> str:
    # Python raises where a script lacks its #! line; env ends with a status and a message instead.
    done = host.run(["env", program, "--version"], check=False)
    if done.exit_status != 0 or "Open vSwitch" not in done.stdout:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
        raise MissingResource(f"{program} --version does not work ({lines[-1]}): install the build once more.")
    return done.stdout
