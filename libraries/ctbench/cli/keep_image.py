"""What an emulated machine boots, kept as a file: `./run calibrate --keep-image`."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.cli.emulated_dut import emulated_dut
from ctbench.dut.registry import abilities
from ctbench.results.metrics import COSTS
from ctbench.results.record import Record
from ctbench.testbed.config import TestbedConfig


def check_target(target: Path, testbed: TestbedConfig, *, force: bool) -> None:
    """Raise `ConfigError` for what would be a pity to learn after the measurement."""
    if not any("instructions" in abilities(dut.type) for dut in testbed.duts):
        raise ConfigError(f"--keep-image: {testbed.file} has no emulated machine.\n  Expected a testbed with one.")
    if target.exists() and not force:
        raise ConfigError(f"--keep-image: {target} is there already.\n  Expected another name, or --force.")
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-"):
            pass
    except OSError as error:
        raise ConfigError(f"--keep-image: {target} cannot be written ({error.strerror}).") from None


def keep_image(target: Path, testbed: TestbedConfig, records: Sequence[Record]) -> None:
    """Write the image that was measured. `ConfigError` where what is installed is another one by now."""
    measured = next((record for record in records if record.metric in COSTS), None)
    if measured is None:
        raise MissingResource("--keep-image: nothing was measured in an emulated machine; the logs say why.")
    with emulated_dut(testbed) as dut:
        dut.apply(measured.topology)
        identity = dut.keep_image(target)
    if identity != measured.environment.dut.image:
        target.unlink()
        raise ConfigError(
            f"--keep-image: what is installed makes image {identity} now, and {measured.environment.dut.image} was "
            "measured.\n  Expected no updates in between: calibrate again."
        )
    print(f"calibrate: {target} keeps image {identity}.")
