"""tools.lab: what it asks of QEMU and of this machine, and what it says where something is missing."""

import re
from pathlib import Path

import pytest

from ctbench.base.yaml_files import load
from ctbench.testbed.config import TestbedConfig
from tools import lab


def test_its_testbed_file_names_what_qemu_makes() -> None:
    testbed, asked = load("testbeds", "lab-in-a-box", TestbedConfig), " ".join(lab._qemu())
    (dut,), (key,) = testbed.duts, {Path(host.key).expanduser() for host in testbed.hosts.values()}
    assert key == lab.FOLDER / "key"
    for side, address in dut.ports.cards if dut.ports else ():
        assert f"addr=0x{int(address[8:10], 16)}" in asked
        assert f"ifname={getattr(testbed.generator.interfaces, side)}" in asked  # type: ignore[union-attr]
    assert f"hugepages={dut.memory_mb // 2}" in asked  # type: ignore[union-attr]
    isolated = re.search(r"isolcpus=1-(\d+)", asked)
    assert isolated and testbed.cpus.pmd_named == set(range(1, int(isolated[1]) + 1)) == set(range(1, lab.CPUS))


def test_machines_of_a_pool_share_no_card_and_no_file_that_they_write() -> None:
    one, other = (
        set(re.findall(r"(?:ifname=|mac=|file:|unix:)([^, ]+)", " ".join(lab._qemu(number)))) for number in (0, 1)
    )
    assert len(one) == len(other) == 8 and not one & other


def test_options_behind_the_command_are_the_commands() -> None:
    assert lab.parse(["in", "./run", "sla", "-v", "X:y", "--", "--help"]).command == [
        "./run", "sla", "-v", "X:y", "--", "--help"
    ]  # fmt: skip
    for wrong in (["stop", "now"], ["in"], ["begin"], []):
        with pytest.raises(SystemExit):
            lab.parse(wrong)
