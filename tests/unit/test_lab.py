"""tools.lab: what it asks of QEMU and of this machine, and what it says where something is missing."""

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ctbench.base.errors import MissingResource
from ctbench.base.yaml_files import load
from ctbench.hosts.local import LocalHost, LocalProcess, Owner
from ctbench.testbed.config import TestbedConfig
from icount import Missing
from tools import lab


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lab, "FOLDER", tmp_path)
    monkeypatch.setattr(lab.machine, "version", lambda: "7.2")
    return tmp_path


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


def test_the_cards_get_what_qemu_holds_back_as_long_as_a_machine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [False, False, True, True, True]
    links: list[str] = []
    running = cast("LocalProcess", SimpleNamespace(is_running=looks.pop))
    monitor = SimpleNamespace(ask=lambda _what, name, up: links.append(name) if up else None)
    monkeypatch.setattr(lab, "_monitor", lambda _number: monitor)
    lab._flush([running, running])
    assert links == ["c0", "s0", "c1", "s1"] * 3


def test_it_starts_only_where_it_can(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingResource, match="`build`"):
        lab._require(LocalHost())
    (folder / "disk").touch()
    monkeypatch.setattr(lab, "TUN", folder / "tun")
    with pytest.raises(MissingResource, match="may not open"):
        lab._require(LocalHost())
    (folder / "tun").touch()
    monkeypatch.setattr(lab, "MEMORY_MB", 1 << 30)
    with pytest.raises(Missing, match="MB of memory"):
        lab._require(LocalHost())


def test_what_is_asked_of_a_lab_that_does_not_run_says_so(folder: Path) -> None:
    (folder / "process").write_text(str(Owner.of(str(os.getpid()))).replace(f" {os.getpid()} ", " 1 "))
    with pytest.raises(MissingResource, match="does not run"):
        lab.main(["ssh", "true"])


def test_a_command_that_is_in_the_lab_already_stays_there() -> None:
    assert lab._inside(os.getpid(), ["true"]) == ["true"]


def test_options_behind_the_command_are_the_commands() -> None:
    assert lab.parse(["in", "./run", "sla", "-v", "X:y", "--", "--help"]).command == [
        "./run", "sla", "-v", "X:y", "--", "--help"
    ]  # fmt: skip
    for wrong in (["stop", "now"], ["in"], ["begin"], []):
        with pytest.raises(SystemExit):
            lab.parse(wrong)
