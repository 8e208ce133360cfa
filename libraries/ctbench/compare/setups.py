"""The kernels of the two sides of a comparison, looked at before one of them is counted; and their testbed files, which
differ in nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.files import read_yaml
from ctbench.base.units import quoted
from ctbench.base.yaml_files import load
from ctbench.dut.emulated import check_kernel
from ctbench.dut.registry import KINDS
from ctbench.hosts.ssh_login import password_of
from ctbench.testbed.config import TestbedConfig

#: The kind of DUT that counts instructions; the testbed that has nothing else is called the same.
EMULATED = next(name for name, kind in KINDS.items() if "instructions" in kind.abilities)
_A_KERNEL = 'a package of Linux (.deb), a bzImage with its modules beside it, or "distribution"'


def whole_kernel(option: str, given: str) -> str:
    """The kernel that an option names: `distribution`, or its file, looked into: a package has to unpack, an image to
    be whole, with its modules beside it. `ConfigError` where it is none."""
    if given == "distribution":
        return given
    path = Path(given).absolute()
    if not path.exists():
        raise ConfigError(f"{option}: {quoted(given)} is not there.\n  Expected {_A_KERNEL}.")
    try:
        check_kernel(path)
    except MissingResource as error:
        why = str(error).rstrip(".")
        raise ConfigError(f"{option}: {given} is not a kernel: {why}.\n  Expected {_A_KERNEL}.") from None
    return str(path)


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
