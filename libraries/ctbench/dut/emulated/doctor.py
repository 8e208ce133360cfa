"""What the doctor says of an emulated machine: programs, and the kernel or image that the testbed file names."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.image import COMPILER, PATH, PROGRAMS
from ctbench.dut.emulated.kept import open_kept
from ctbench.dut.kernel import UNPACKED, check_kernel, require_bootable, require_file
from ctbench.hosts.examination import Finding, bad, ok, unknown

WHAT, KERNEL, IMAGE = "emulated machine", "emulated machine, kernel", "emulated machine, image"
_NAME_KERNEL = "name a package of a kernel (.deb) or a folder as one has it in kernel:, or write kernel: distribution"
_KEEP_IMAGE = "keep one with ./run calibrate --keep-image, or take image: out of the testbed file"


def examine(config: EmulatedConfig) -> Iterator[Finding]:
    """Programs that are missing skip its tests; a file that the testbed file names has to be what it should be."""
    missing = [name for name in (machine.QEMU, COMPILER, *PROGRAMS) if shutil.which(name, path=PATH) is None]
    if missing:
        yield unknown(WHAT, f"{', '.join(missing)} not found: its tests are skipped (./run setup)")
    seeds = f"{config.seeds} machines for each topology"
    what, remedy = (IMAGE, _KEEP_IMAGE) if config.image else (KERNEL, _NAME_KERNEL)
    try:
        if config.image:
            yield ok(IMAGE, f"Linux {_kept_release(config)}, {seeds}")
        elif config.kernel != "distribution":
            yield ok(KERNEL, f"Linux {check_kernel(Path(config.kernel))}, {seeds}")
        else:
            what, remedy = WHAT, ""
            yield ok(WHAT, f"Linux {check_kernel(UNPACKED)}, {seeds}")
    except (ConfigError, MissingResource) as error:
        if remedy:
            yield bad(what, str(error).split("\n")[0].rstrip("."), remedy)
        else:
            yield unknown(WHAT, f"its tests are skipped: {error}")


def _kept_release(config: EmulatedConfig) -> str:
    require_file(Path(config.image))
    with tempfile.TemporaryDirectory(prefix="ctbench-doctor-") as folder:
        kernel = open_kept(Path(config.image), Path(folder), config.ovs.prefix).kernel
        require_bootable(kernel.image)
        return kernel.release
