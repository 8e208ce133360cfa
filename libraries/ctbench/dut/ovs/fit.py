"""Checks that an Open vSwitch fits the machine that it is to run on: it is whole, each of its programs finds its
libraries and starts, all have one version, and its DPDK has the drivers that the ports need.

The checks need no privileges and no set-up: they read the files themselves.
"""

import hashlib
import re
from collections.abc import Sequence

from ctbench.base.errors import MissingResource
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.base import Host
from ctbench.hosts.local import fate

#: Drivers, by the names of their libraries, with the text that a program has which they are linked into, stripped or
#: not: PMD_INFO_STRING is for DPDK's own dpdk-pmdinfo.py; the ring's kind is named nowhere but in its mempool driver
#: (rte_mempool_ring.c, since DPDK 20.05).
_LINKED_IN = {
    "librte_net_memif": r'PMD_INFO_STRING= \{"name" ?: "net_memif"',
    "librte_net_af_packet": r'PMD_INFO_STRING= \{"name" ?: "net_af_packet"',
    "librte_mempool_ring": "ring_mt_rts",
}
#: What ports need, by their kind; of cards each has a driver of its own. Without the mempool driver OVS says "Failed to
#: create mempool: Invalid argument".
DRIVERS = {
    "memif": ["librte_mempool_ring", "librte_net_memif"],
    "veth": ["librte_mempool_ring", "librte_net_af_packet"],
    "pci": ["librte_mempool_ring", "librte_bus_pci"],
}
#: In librte_eal: the folder whose libraries a DPDK that is not linked in loads, all of them (eal_common_options.c).
_DRIVERS_FOLDER = "DPDK_PLUGIN_PATH="
#: What ldd(1) says of a library that is there; of one that is nowhere, and of a version of symbols that one lacks.
_FOUND = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)
_NOT_FOUND = re.compile(r"(?:^\s*(\S+) =>|version `([^']+)') not found", re.MULTILINE)
#: Libraries that are named in a sentence.
_NAMED = 16


def require_fit(host: Host, installation: OvsInstallation, drivers: Sequence[str]) -> None:
    """Raise `MissingResource` where a part of an installation, or one of these drivers, is missing or does not work."""
    require_programs(host, installation)
    where, missing = missing_drivers(host, installation, drivers)
    if missing:
        raise MissingResource(f"DPDK's {' and '.join(missing)} are missing in {where}: {installation.remedy}.")


def require_programs(host: Host, installation: OvsInstallation) -> dict[str, str]:
    """Return the `version` of Open vSwitch and its `dpdk_version`. Raise `MissingResource` where a program is missing,
    fails, or has another version than the others, or a script stands for ovs-vswitchd."""
    there = host.run(["ls", "-d", *installation.files], check=False).stdout.splitlines()
    if missing := [path for path in installation.files if path not in there]:
        raise MissingResource(f"OVS-DPDK is not on {host.name}: {', '.join(missing)} not found: {installation.remedy}.")
    if host.run(["head", "-c", "2", installation.vswitchd_path], check=False).stdout == "#!":
        raise MissingResource(
            f"{installation.vswitchd_path} is a script, where the program itself has to be: {installation.remedy}."
        )
    _libraries(host, installation, installation.programs)
    said = {program: _ask_version(host, installation, program) for program in installation.programs}
    versions = {program: answer.splitlines()[0].split()[-1] for program, answer in said.items()}
    own = versions[installation.vswitchd_path]
    if other := next((program for program, version in versions.items() if version != own), ""):
        raise MissingResource(
            f"{other} is of Open vSwitch {versions[other]}, and {installation.vswitchd_path} of {own}: "
            f"{installation.remedy}."
        )
    dpdk = re.search(r"^DPDK .*?(\S+)$", said[installation.vswitchd_path], re.MULTILINE)
    if dpdk is None:
        raise MissingResource(f"{installation.vswitchd_path} was built without DPDK: {installation.remedy}.")
    return {"version": own, "dpdk_version": dpdk[1]}


def program_of(host: Host, installation: OvsInstallation) -> str:
    """Return the identity of an installation's programs and the libraries that they are linked with, which differs for
    any other build: a hash of sizes and times of the files. Raise `MissingResource` where a library is missing."""
    libraries = _libraries(host, installation, installation.programs)
    files = sorted({*installation.programs, *libraries.values()})
    said = host.run(["stat", "-L", "-c", "%n %s %.9Y", *files], check=False).stdout
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _ask_version(host: Host, installation: OvsInstallation, program: str) -> str:
    # Python raises where a script lacks its #! line; env ends with a status and a message instead.
    done = host.run(["env", program, "--version"], check=False)
    if done.exit_status != 0 or "Open vSwitch" not in done.stdout:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [fate(done.exit_status)]
        raise MissingResource(f"{program} --version does not work ({lines[-1]}): {installation.remedy}.")
    return done.stdout


def missing_drivers(host: Host, installation: OvsInstallation, needed: Sequence[str]) -> tuple[str, list[str]]:
    """Return where an installation's DPDK has its drivers, and which of those needed are missing. It is not known
    whether the driver of a card is linked in."""
    libraries = _libraries(host, installation, [installation.vswitchd_path])
    eal = [path for name, path in libraries.items() if name.startswith("librte_eal.so")]
    found = _texts(host, f"{_DRIVERS_FOLDER}[[:print:]]*", eal) if eal else []
    if not found:  # linked in
        files = [installation.vswitchd_path, *libraries.values()]
        known = [driver for driver in needed if driver in _LINKED_IN]
        return files[0], [driver for driver in known if not _texts(host, _LINKED_IN[driver], files)]
    folder = found[0].removeprefix(_DRIVERS_FOLDER)
    plugins = host.run(["find", "-L", folder, "-type", "f", "-name", "*.so*"], check=False).stdout.splitlines()
    _libraries(host, installation, plugins)  # DPDK loads all of them, and does not start where one cannot be loaded
    return folder, [driver for driver in needed if not any(f"/{driver}.so" in plugin for plugin in plugins)]


def _libraries(host: Host, installation: OvsInstallation, files: Sequence[str]) -> dict[str, str]:
    """Return the paths of the libraries that the files need, by name. Raise `MissingResource` with those that are
    missing. A script has none."""
    done = host.run(["ldd", *files], check=False)
    missing = list(dict.fromkeys(name or version for name, version in _NOT_FOUND.findall(done.stdout + done.stderr)))
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        names = f"{', '.join(missing[:_NAMED])}{more}"
        raise MissingResource(f"{installation.title} needs {names}, not found: {installation.remedy}.")
    return dict(_FOUND.findall(done.stdout))


def _texts(host: Host, pattern: str, files: Sequence[str]) -> list[str]:
    return host.run(["grep", "-a", "-h", "-o", "-E", "-e", pattern, *files], check=False).stdout.splitlines()
