"""The two emulated machines that instructions are compared in: their testbed files, which differ in one thing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError
from ctbench.base.units import quoted
from ctbench.base.yaml_files import load
from ctbench.compare.starts import Role, as_written, of_role, write_once
from ctbench.dut.registry import KINDS
from ctbench.testbed.config import TestbedConfig

#: The kind of DUT that counts instructions; the testbed that has nothing else is called the same.
EMULATED = next(name for name, kind in KINDS.items() if "instructions" in kind.abilities)
#: In the header of a bzImage (boot protocol 2.00 and later, Documentation/arch/x86/boot.rst): what tells it, and where
#: the text begins that its release stands at the head of, from 0x200 on.
_MAGIC, _MAGIC_AT, _VERSION_AT, _BASE = b"HdrS", 0x202, 0x20E, 0x200
#: Bytes that a header and the text are within, and the longest release.
_HEAD, _LONGEST = 0x10000, 200


def write_emulated(testbed: TestbedConfig, changes: Mapping[str, Any], target: Path) -> None:
    """Write a testbed file with nothing but an emulated machine: that of `testbed`, else that of the testbed
    with nothing else, with `changes` of its keys."""
    if not any(dut.type == EMULATED for dut in testbed.duts):
        testbed = load("testbeds", EMULATED, TestbedConfig)
    data = as_written(testbed)
    own = next(dut for dut in data["duts"] if dut["type"] == EMULATED)
    write_once({**as_written(load("testbeds", EMULATED, TestbedConfig)), "duts": [{**own, **changes}]}, target)


def kernel(text: str) -> tuple[Role, str]:
    """Take `base=/boot/vmlinuz-6.1.0` apart; `ConfigError` where it is not such a pair, or the file is not there."""
    role, path = of_role(text) or (None, "")
    if role and path == "distribution":
        return role, path
    if role and Path(path).exists():
        return role, str(Path(path).absolute())
    missing = "is not there" if role else "is no kernel of a side"
    raise ConfigError(
        f"--kernels: {quoted(text)} {missing}.\n  Expected base=FILE candidate=FILE, each a package (.deb), a bzImage "
        'with its modules beside it, or "distribution".'
    )


def kernel_setting(path: str, folder: Path) -> str:
    """What a testbed file says of a kernel: a package and a folder as they are; of a bzImage, `folder`, which is made
    with links to it and to its modules. `ConfigError` for a file that is no kernel, or whose modules are not found."""
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


def _release(image: Path) -> str:
    """The release that a bzImage names in its header: `6.1.0-56-cloud-amd64`."""
    try:
        with image.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ConfigError(f"{image}: cannot be read ({error.strerror}).\n  Expected a package or a bzImage.") from None
    at = int.from_bytes(head[_VERSION_AT : _VERSION_AT + 2], "little") + _BASE
    text = head[at : at + _LONGEST].partition(b"\0")[0].partition(b" ")[0]
    release = text.decode(errors="replace")
    if (
        head[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC
        or not release.isprintable()
        or not release
        or "/" in release
    ):
        raise ConfigError(f"{image}: is no kernel.\n  Expected a package (.deb), or a bzImage.")
    return release
