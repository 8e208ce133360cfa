"""Whether this machine can measure at all, found out before any test runs, each answer one sentence."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from ctbench.errors import ConfigError, CtbenchError, MissingResource

OVS_DPDK = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")

#: Where distributions keep DPDK's drivers, one folder per DPDK ABI.
PMD_FOLDERS = ("/usr/lib/x86_64-linux-gnu/dpdk/pmds-*", "/usr/lib64/dpdk/pmds-*", "/usr/local/lib/dpdk/pmds-*")

#: Both or nothing: without the mempool driver OVS says "Failed to create mempool: Invalid argument".
PMD_LIBRARIES = {"librte_net_memif": "librte-net-memif*", "librte_mempool_ring": "librte-mempool-ring*"}

#: What the sandbox is made of; see hosts/sandbox.
UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "true")

#: Command-line variables that name a YAML file, and the folder below variables/ where a bare name is looked up.
NAMED_FILES = {"TESTBED": "testbeds", "CAMPAIGN": "campaigns", "SLA": "sla"}


def check_machine(ovs: Path = OVS_DPDK) -> None:
    """Raise MissingResource with the first thing that is missing; the order is the order in which to mend it."""
    check_cpu()
    check_ovs(ovs)
    check_drivers()
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
    """Try what the sandbox does, and explain a refusal by the settings that are known to cause it."""
    try:
        tried = subprocess.run(UNSHARE, capture_output=True, text=True, timeout=10, check=False)
    except (FileNotFoundError, PermissionError):  # the latter when PATH has a folder of somebody else's
        raise MissingResource("The command unshare is not installed: install the package util-linux.") from None
    except subprocess.TimeoutExpired:
        raise MissingResource("The command unshare hung for 10 s: user namespaces do not work here.") from None
    if tried.returncode:
        said = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MissingResource(f"This machine forbids user namespaces ({said}): {_namespace_remedy()}")


def _namespace_remedy() -> str:
    """What to do, by the first setting found that forbids user namespaces."""
    if _sysctl("user/max_user_namespaces") == "0":
        return "an administrator allows them with `sysctl -w user.max_user_namespaces=15000`."
    if _sysctl("kernel/unprivileged_userns_clone") == "0":
        return "an administrator allows them with `sysctl -w kernel.unprivileged_userns_clone=1`."
    if in_container():
        return (
            "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
            " --security-opt systempaths=unconfined`, or measure outside of it."
        )
    if _sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "Ubuntu's AppArmor restricts them; an administrator allows them with"
            " `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
        )
    return "ask the administrator to allow unprivileged user namespaces, or run as root."


def _sysctl(name: str, root: Path = Path("/proc/sys")) -> str:
    """A kernel setting, empty where this kernel does not have it."""
    try:
        return (root / name).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def in_container() -> bool:
    """Docker and Podman leave a file; systemd-nspawn, LXC and Kubernetes' runtimes set `container`."""
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")) or "container" in os.environ


def check_named_files(assignments: Iterable[str], variables: Path) -> None:
    """Raise ConfigError when a file named by `-v TESTBED:…`, `-v CAMPAIGN:…` or `-v SLA:…` is not readable YAML.

    `assignments` are Robot Framework's `NAME:value`; NAME ignores case, spaces and underscores as Robot does. A value
    with a slash or a .yaml suffix is a path, anything else a name below `variables`. What a file may *say* is
    the business of the code that reads it.
    """
    for assignment in assignments:
        name, _, value = assignment.partition(":")
        name = name.replace("_", "").replace(" ", "").upper()
        if name in NAMED_FILES and "${" not in value:
            _check_yaml(f"-v {name}:{value}", _named_file(value, variables / NAMED_FILES[name]))


def _named_file(value: str, folder: Path) -> Path:
    return Path(value) if "/" in value or value.endswith((".yaml", ".yml")) else folder / f"{value}.yaml"


def _check_yaml(option: str, path: Path) -> None:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(other.stem for other in path.parent.glob("*.yaml")))
        there = f" There are: {known}." if known else ""
        raise ConfigError(f"{option}: there is no file {path}.{there}") from None
    except OSError as error:
        raise ConfigError(f"{option}: {path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{option}: {path} is not UTF-8 text.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise ConfigError(f"{option}: {path} is not YAML{line}: {problem}.") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{option}: {path} should hold keys and values, and holds {type(content).__name__}.")


def main() -> int:
    """Print what is missing, if anything, to stderr; return the exit status of `./run`."""
    try:
        check_machine()
    except CtbenchError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
