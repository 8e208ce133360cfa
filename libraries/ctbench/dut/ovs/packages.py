"""What of Open vSwitch and DPDK has to be installed on this machine, each answer one sentence."""

import os
from collections.abc import Iterable
from pathlib import Path

from ctbench.base.errors import MissingResource
from ctbench.dut.ovs.settings import DISTRIBUTION_VSWITCHD

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
