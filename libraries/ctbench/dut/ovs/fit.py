"""Whether an Open vSwitch fits the machine that it is to run on: each of its programs finds its libraries and starts,
all are of one version, and its DPDK has the drivers that the ports need.

All of it is seen without privileges and before anything is set up, in the files themselves.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.hosts.base import Host
from ctbench.hosts.local import fate

#: Text in whatever has a driver in it, stripped or not: the program where DPDK is linked in, else the driver's library.
#: PMD_INFO_STRING is for DPDK's own dpdk-pmdinfo.py; the ring's kind is named nowhere but in its mempool driver
#: (rte_mempool_ring.c, since DPDK 20.05).
_DRIVERS = {
    **{name: rf'PMD_INFO_STRING= \{{"name" ?: "{name}"' for name in ("net_memif", "net_af_packet")},
    "mempool_ring": "ring_mt_rts",
}
#: What ports need, by their kind; of cards each has a driver of its own.
_OF_PORTS = {"memif": ["net_memif"], "veth": ["net_af_packet"], "pci": []}
#: In librte_eal: the folder whose libraries a DPDK that is not linked in loads, all of them (eal_common_options.c).
_DRIVERS_FOLDER = "DPDK_PLUGIN_PATH="
#: What ldd(1) says of a library that is nowhere, and of a version of symbols that a library does not have.
_NOT_FOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_NO_VERSION = re.compile(r"version `([^']+)' not found")
#: And of one that is there.
_FOUND = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)
#: What env(1) ends with where a program is not there, or the loader that it names: one of another C library.
_NOT_THERE = 127
_LOADER = "/lib[[:alnum:]_]*/ld-[[:alnum:]._-]+"
#: What versions of the C library's symbols begin with.
_LIBC = "GLIBC_"
#: Libraries that are named in a sentence.
_NAMED = 16


@dataclass(frozen=True)
class Programs:
    """What is run of an Open vSwitch, and what a user can do where it does not fit."""

    vswitchd: str
    #: The others, by their paths.
    tools: Sequence[str]
    #: `the build`, or the package with ovs-vswitchd and its version.
    title: str
    #: Where something was looked for in vain: `not on this machine`.
    nowhere: str
    #: What to do where libraries are missing, where a program does not start, and where drivers are missing.
    libraries: str
    programs: str
    drivers: str
    #: Kind of its ports: `memif`, `veth` or `pci`.
    ports: str = "memif"

    def require(self, host: Host) -> None:
        """`MissingResource` names what does not fit, the libraries first: nothing starts without them."""
        libraries = self._require_libraries(host, [self.vswitchd, *self.tools])
        self._require_start(host)
        self._require_drivers(host, libraries)

    def _require_libraries(self, host: Host, files: Sequence[str]) -> dict[str, str]:
        """Paths of the libraries that the files need, by their names. A script has none."""
        done = host.run(["ldd", *files], check=False)
        missing = dict.fromkeys(_NOT_FOUND.findall(done.stdout))
        versions = dict.fromkeys(_NO_VERSION.findall(done.stdout + done.stderr))
        missing.update(dict.fromkeys(version for version in versions if not version.startswith(_LIBC)))
        # What has the newest has the others.
        libc = max((version for version in versions if version.startswith(_LIBC)), key=_number, default="")
        if missing or libc:
            names = [*missing][:_NAMED] + ([f"{len(missing) - _NAMED} more"] if len(missing) > _NAMED else [])
            names += [f"{libc} (the C library here is {_libc(host)})"] if libc else []
            raise MissingResource(f"{self.title} needs {', '.join(names)}: {self.nowhere}; {self.libraries}.")
        return dict(_FOUND.findall(done.stdout))

    def _require_start(self, host: Host) -> None:
        versions = {}
        for program in (self.vswitchd, *self.tools):
            if host.run(["test", "-f", program, "-a", "-x", program], check=False).exit_status != 0:
                raise MissingResource(f"{program} cannot be executed: {self.programs}.")
            said = self._said(host, program)
            if program == self.vswitchd and "DPDK" not in said:
                raise MissingResource(f"{program} was built without DPDK: configure the build with --with-dpdk.")
            versions[program] = said.splitlines()[0].split()[-1]
        own = versions[self.vswitchd]
        if other := next((program for program, version in versions.items() if version != own), ""):
            raise MissingResource(
                f"{other} is of Open vSwitch {versions[other]}, and {self.vswitchd} of {own}: {self.programs}."
            )

    def _said(self, host: Host, program: str) -> str:
        # Python raises where a script lacks its #! line; env ends with a status and a message instead.
        done = host.run(["env", program, "--version"], check=False)
        if done.exit_status == _NOT_THERE and program in done.stderr and (loader := _texts(host, _LOADER, [program])):
            raise MissingResource(f"{program} needs the loader {loader[0]}: {self.nowhere}; {self.libraries}.")
        if done.exit_status != 0 or "Open vSwitch" not in done.stdout:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [fate(done.exit_status)]
            raise MissingResource(f"{program} --version does not work ({lines[-1]}): {self.programs}.")
        return done.stdout

    def _require_drivers(self, host: Host, libraries: Mapping[str, str]) -> None:
        files = [self.vswitchd, *libraries.values()]
        folder = _drivers_folder(host, libraries)
        if folder:
            plugins = host.run(["find", "-L", folder, "-type", "f", "-name", "*.so*"], check=False).stdout.splitlines()
            self._require_libraries(host, plugins)
            files += plugins
        needed = [*_OF_PORTS[self.ports], "mempool_ring"]
        missing = [driver for driver in needed if not _texts(host, _DRIVERS[driver], files)]
        if missing:
            where = f"in {folder}, where its DPDK looks for drivers" if folder else f"in {self.vswitchd}"
            raise MissingResource(
                f"DPDK's {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not {where}: {self.drivers}."
            )


def loaded_from_elsewhere(host: Host, program: str) -> list[str]:
    """Libraries that a program loads from where no distribution has them, and the folder of its DPDK's drivers."""
    libraries = dict(_FOUND.findall(host.run(["ldd", program], check=False).stdout))
    paths = [*libraries.values(), _drivers_folder(host, libraries)]
    return [path for path in paths if path and not path.startswith(("/lib", "/usr/lib"))]


def _drivers_folder(host: Host, libraries: Mapping[str, str]) -> str:
    """Where DPDK looks for drivers; empty where it is linked in, and then does not look."""
    eal = [path for name, path in libraries.items() if name.startswith("librte_eal.so")]
    found = _texts(host, f"{_DRIVERS_FOLDER}[[:print:]]*", eal) if eal else []
    return found[0].removeprefix(_DRIVERS_FOLDER) if found else ""


def _texts(host: Host, pattern: str, files: Sequence[str]) -> list[str]:
    return host.run(["grep", "-a", "-h", "-o", "-E", "-e", pattern, *files], check=False).stdout.splitlines()


def _number(version: str) -> list[int]:
    """Of `GLIBC_2.38`, to compare: 2, 38."""
    return [int(part) for part in re.findall(r"\d+", version)]


def _libc(host: Host) -> str:
    """Its version; `unknown` where it does not say."""
    try:
        return host.run(["getconf", "GNU_LIBC_VERSION"], check=False).stdout.split()[-1]
    except (TestbedError, IndexError):
        return "unknown"
