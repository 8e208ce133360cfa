"""The emulated machine of a testbed, for what is not a test: to look into its functions, and to keep what it boots."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.base.files import check_writable
from ctbench.dut.abilities import Counter
from ctbench.dut.kind import Surroundings
from ctbench.dut.registry import KINDS, abilities
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Placement, read_machine
from ctbench.hosts.sandbox import Sandbox
from ctbench.results.metrics import COSTS
from ctbench.results.record import Record
from ctbench.testbed.config import TestbedConfig


@contextmanager
def emulated_dut(testbed: TestbedConfig) -> Iterator[Counter]:
    """The DUT, in a sandbox that ends with it; nothing is booted yet."""
    sandbox = Sandbox()
    try:
        config = next(dut for dut in testbed.duts if "instructions" in abilities(dut.type))
        around = Surroundings(
            sandbox, read_machine(sandbox), _nowhere, Path(), lambda: ("", ""), generator_carries=False
        )
        dut = KINDS[config.type].build(config, around)
        assert isinstance(dut, Counter), "its kind says so"
        yield dut
    finally:
        sandbox.close()


def _nowhere(_topology: Topology) -> Placement:
    raise AssertionError("an emulated machine is not placed")


def check_target(target: Path, testbed: TestbedConfig, *, force: bool) -> None:
    """Raise `ConfigError` for what would be a pity to learn after the measurement."""
    if not any("instructions" in abilities(dut.type) for dut in testbed.duts):
        raise ConfigError(f"--keep-image: {testbed.file} has no emulated machine.\n  Expected a testbed with one.")
    if target.exists() and not force:
        raise ConfigError(f"--keep-image: {target} is there already.\n  Expected another name, or --force.")
    try:
        check_writable(target.parent)
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
