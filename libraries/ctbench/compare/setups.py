"""What is set up on the two sides of a comparison, installations or kernels: looked at before one of them is measured,
for a night is too long to learn of it; and their testbed files, which differ in nothing else."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.files import read_yaml
from ctbench.base.units import quoted
from ctbench.base.yaml_files import load
from ctbench.compare.sides import ROLES, Role
from ctbench.dut.kernel import check_kernel, read_release
from ctbench.dut.registry import KINDS
from ctbench.hosts.ssh_login import password_of
from ctbench.testbed.config import TestbedConfig

#: The kind of DUT that counts instructions; the testbed that has nothing else is called the same.
EMULATED = next(name for name, kind in KINDS.items() if "instructions" in kind.abilities)
_A_KERNEL = 'a package of Linux (.deb), a bzImage with its modules beside it, or "distribution"'


def installations(given: Sequence[str]) -> dict[Role, str]:
    """The prefixes of `base=distribution candidate=/opt/ovs-3.7.1`; `ConfigError` where they are not two such."""
    expected = (
        'base=PREFIX candidate=PREFIX, each with "distribution" or the absolute path that the build was configured '
        "with, such as /opt/ovs-3.7.1"
    )
    return _both("--installations", "an installation", expected, given, lambda prefix: prefix.startswith("/"))


def kernels(given: Sequence[str]) -> dict[Role, str]:
    """The files of `base=distribution candidate=/tmp/linux.deb`, each looked into: a package has to unpack, an image to
    be whole. `ConfigError` where they are not two kernels, `MissingResource` where packages cannot be unpacked."""
    expected = f"base=FILE candidate=FILE, each {_A_KERNEL}"
    found = _both("--kernels", "a kernel that is there", expected, given, os.path.exists)
    files = {role: path if path == "distribution" else str(Path(path).absolute()) for role, path in found.items()}
    for path in files.values():
        if path != "distribution":
            _release(Path(path))
    return files


def _both(
    option: str, what: str, expected: str, given: Sequence[str], is_one: Callable[[str], bool]
) -> dict[Role, str]:
    """Take `base=something candidate=something` apart."""
    found: dict[Role, str] = {}
    for text in given:
        name, _, each = text.partition("=")
        role = next((role for role in ROLES if role == name), None)
        if role is None or not (each == "distribution" or is_one(each)):
            raise ConfigError(f"{option}: {quoted(text)} is not a side with {what}.\n  Expected {expected}.")
        found[role] = each
    if len(found) < 2:
        raise ConfigError(f"{option}: names one side twice.\n  Expected {expected}.")
    return found


def _release(path: Path) -> str:
    """The release of a kernel, which is whole."""
    try:
        return check_kernel(path) if path.is_dir() or path.suffix == ".deb" else read_release(path)
    except MissingResource as error:
        why = str(error).rstrip(".")
        raise ConfigError(f"--kernels: {path} is not a kernel: {why}.\n  Expected {_A_KERNEL}.") from None


def kernel_setting(path: str, folder: Path) -> str:
    """What a testbed file says of a kernel: a package and a folder as they are; of a bzImage, `folder`, which is made
    with links to it and to its modules. `ConfigError` for a file that is not a kernel, or whose modules are not
    found."""
    image = Path(path)
    if path == "distribution" or image.suffix == ".deb" or image.is_dir():
        return path
    release = _release(image)
    places = [up / "lib/modules" / release for up in (image.parent, image.parent.parent, Path("/"))]
    modules = next((each for each in places if each.is_dir()), None)
    if modules is None:
        raise ConfigError(
            f"{path}: the modules of Linux {release} are not found.\n  Expected them in {places[0]} or {places[1]}, "
            "where `make modules_install INSTALL_MOD_PATH=...` puts them."
        )
    for link, to in ((folder / f"boot/vmlinuz-{release}", image), (folder / f"lib/modules/{release}", modules)):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(to.resolve())
    return str(folder)


def write_emulated(testbed: TestbedConfig, changes: Mapping[str, Any], target: Path) -> None:
    """Write a testbed file with nothing but an emulated machine: that of `testbed`, else that of the testbed
    with nothing else, with `changes` of its keys. It skips what `testbed` skips of them."""
    alone = load("testbeds", EMULATED, TestbedConfig)
    data = _as_written(testbed if any(dut.type == EMULATED for dut in testbed.duts) else alone)
    own = next(dut for dut in data["duts"] if dut["type"] == EMULATED)
    skips = [tag for tag in testbed.skips if tag != EMULATED]
    _write_once({**_as_written(alone), "duts": [{**own, **changes}], "skips": skips}, target)


def _as_written(testbed: TestbedConfig) -> dict[str, Any]:
    """What a testbed's file says, to write it once more."""
    for name, host in testbed.hosts.items():
        password_of(name, host)  # a password that is in the file by mistake is refused, and not copied
    assert testbed.path is not None, "it was read from a file"
    found: dict[str, Any] = read_yaml(testbed.path, testbed.file)
    return found


def _write_once(data: Mapping[str, Any], target: Path) -> None:
    """Write a testbed file. One that is there already has to say the same: it belongs to the runs in its folder."""
    text = yaml.safe_dump(data, sort_keys=False)
    if target.exists() and target.read_text(encoding="utf-8") != text:
        raise ConfigError(
            f"{target}: is of a comparison of something else.\n  Expected another --outputdir, or the same options."
        )
    target.write_text(text, encoding="utf-8")
    load("testbeds", target, TestbedConfig)
