"""Whether this machine can measure at all, found out before any test runs, each answer one sentence."""

import os
import platform
from collections.abc import Iterable
from pathlib import Path

from ctbench.dut_config import OvsDpdkConfig
from ctbench.errors import MissingResource
from ctbench.host_config import SANDBOX
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed_config import TestbedConfig

OVS_DPDK = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")

#: Where distributions keep DPDK's drivers, one folder per DPDK ABI.
PMD_FOLDERS = ("/usr/lib/x86_64-linux-gnu/dpdk/pmds-*", "/usr/lib64/dpdk/pmds-*", "/usr/local/lib/dpdk/pmds-*")

#: Both or nothing: without the mempool driver OVS says "Failed to create mempool: Invalid argument".
PMD_LIBRARIES = {"librte_net_memif": "librte-net-memif*", "librte_mempool_ring": "librte-mempool-ring*"}


def check_machine(testbed: TestbedConfig) -> None:
    """Raise MissingResource with the first thing that this machine lacks of what `testbed` needs of it, in the order in
    which to mend it. What other hosts lack, they say when they are set up (and `./run doctor` before)."""
    if testbed.generator.type == "software":
        check_cpu()
    here = [dut for dut in testbed.duts if dut.host == SANDBOX]
    if any(isinstance(dut, OvsDpdkConfig) and dut.ovs.prefix == "distribution" for dut in here):
        check_ovs()
        check_drivers()
    if here:
        check_namespaces()


def check_cpu(machine: str | None = None) -> None:
    """The generator's memif code relies on x86-64's ordering of stores."""
    machine = machine or platform.machine()
    if machine not in ("x86_64", "AMD64"):
        raise MissingResource(
            f"This is a {machine} machine, and the software traffic generator works on x86-64 only:"
            " measure on an x86-64 machine."
        )


def check_ovs(ovs: Path = OVS_DPDK) -> None:
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


def check_namespaces() -> None:
    """Make a sandbox and end it; a refusal says what to do."""
    Sandbox().close()
