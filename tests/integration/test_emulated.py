"""A real emulated machine: its figures come again to the last digit, and a topology that is broken has none."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.base.paths import RULESETS
from ctbench.dut.emulated.config import EmulatedConfig
from ctbench.dut.emulated.dut import EmulatedDut
from ctbench.dut.emulated.kernel import UNPACKED
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import read_machine
from ctbench.hosts.sandbox import Sandbox

pytestmark = pytest.mark.beside_others

FORWARD = Topology(datapath="emulated", ruleset="forward")
STATEFUL = Topology(datapath="emulated", ruleset="iptables-stateful")


def new_dut(sandbox: Sandbox, rulesets: Path = RULESETS, kernel: str = "distribution", **more: float) -> EmulatedDut:
    config = EmulatedConfig(type="emulated", kernel=kernel, seeds=2)
    dut = EmulatedDut(config, sandbox, read_machine(sandbox), rulesets, **more)
    try:
        dut.apply(FORWARD)
    except MissingResource as error:
        pytest.skip(str(error))
    return dut


@pytest.fixture
def rulesets(tmp_path: Path) -> Iterator[Path]:
    """A copy of the catalogue, to break."""
    yield shutil.copytree(RULESETS, tmp_path / "rulesets")


def change(rulesets: Path, name: str, old: str, new: str) -> None:
    script = rulesets / "emulated" / f"{name}.sh"
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))


def test_two_machines_count_the_same_to_the_last_digit(sandbox: Sandbox) -> None:
    one, two = (new_dut(sandbox) for _ in range(2))
    first, second = (dut.count([FORWARD], "stream")[0] for dut in (one, two))
    assert one.identity == two.identity
    assert [each.doubt for each in first] == ["", ""]
    assert [each.rounds for each in first] == [each.rounds for each in second]
    assert max(each.each for each in first) / min(each.each for each in first) < 1.0005


def test_rules_that_were_not_loaded_are_not_measured(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "iptables-stateful", "rules iptables/stateful.rules", ":")
    (counted, _) = new_dut(sandbox, rulesets).count([STATEFUL], "stream")[0]
    assert counted.doubt == "connections in the table: 0 where 1 had to be"


def test_what_does_not_come_through_is_said(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "forward", "router\n", "router\ndut ip link set server down\n")
    with pytest.raises(TestbedError, match="no stream could be sent"):
        new_dut(sandbox, rulesets).count([FORWARD], "stream")


def test_a_module_that_the_kernel_does_not_have_is_said(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "forward", "router\n", "use not_there\nrouter\n")
    with pytest.raises(TestbedError, match="the kernel has no module not_there"):
        new_dut(sandbox, rulesets).count([FORWARD], "stream")


def test_a_machine_that_hangs_is_stopped(sandbox: Sandbox, rulesets: Path) -> None:
    change(rulesets, "forward", "router\n", "while :; do :; done\n")
    with pytest.raises(TestbedError, match="did not end within 6 s"):
        new_dut(sandbox, rulesets, longest_s=6).count([FORWARD], "stream")


def test_a_kernel_that_is_cut_off_does_not_boot(sandbox: Sandbox, tmp_path: Path) -> None:
    try:
        new_dut(sandbox)
    finally:
        (tmp_path / "boot").mkdir()
    (whole,) = (UNPACKED / "boot").glob("vmlinuz-*")
    (tmp_path / "boot" / whole.name).write_bytes(whole.read_bytes()[:1_000_000])
    (tmp_path / "lib").symlink_to(UNPACKED / "lib")
    with pytest.raises(TestbedError, match="did not measure emulated/forward"):
        new_dut(sandbox, kernel=str(tmp_path), longest_s=6).count([FORWARD], "stream")
