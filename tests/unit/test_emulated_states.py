"""States of emulated machines: saved once for each seed, as many as there is memory for, and none that is not whole."""

from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.emulated.image import Image
from ctbench.dut.emulated.kernel import Kernel
from ctbench.dut.emulated.states import States

from .qemu_double import MonitorDouble, QemuDouble

pytestmark = pytest.mark.unit


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QemuDouble:
    """A host whose /run is empty, and where each machine gets ready."""
    (tmp_path / "run").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "run"))
    made = QemuDouble(says="")
    monkeypatch.setattr("ctbench.dut.emulated.machine.Monitor", lambda _path: MonitorDouble(made))
    return made


@pytest.fixture
def states(host: Any, tmp_path: Path) -> States:
    (tmp_path / "vmlinuz").write_bytes(b"MZ")
    image = Image(Kernel(tmp_path / "vmlinuz", tmp_path))
    image.__dict__.update(common=b"c", rules=b"r", openvswitch=b"o")
    return States(host, image)


def files(host: QemuDouble) -> list[str]:
    (folder,) = host.local_path("/run").iterdir()
    return sorted(each.name for each in folder.iterdir())


def needed_kb(machines: int) -> int:
    return machines * (512 + 128 + 80) * 1024


def test_each_seed_is_booted_once_and_all_go_in_the_end(host: QemuDouble, states: States) -> None:
    ready = states.ready([1, 2], 2)
    assert [Path(each.state).name for each in ready.values()] == ["1.state", "2.state"]
    assert states.ready([2, 1], 2) == ready
    assert (len(host.given), host.most) == (2, 2)
    assert files(host) == ["1.state", "2.state", "kernel"]
    states.close()
    assert list(host.local_path("/run").iterdir()) == []


def test_where_there_is_memory_for_one_the_others_come_later_and_make_way(host: QemuDouble, states: States) -> None:
    host.free_kb = needed_kb(1)
    assert list(states.ready([1, 2], 2)) == [1]
    host.free_kb = needed_kb(1) - 1024
    assert list(states.ready([1, 2], 2)) == [1]
    with pytest.raises(MissingResource, match="needs 720 MB of memory, and 719 MB are available"):
        states.ready([2], 2)
    assert files(host) == ["kernel"]  # it has made way


def test_files_may_take_a_part_of_the_memory(host: QemuDouble, states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    class Files:
        f_bavail, f_frsize = 79, 2**20

    monkeypatch.setattr("ctbench.dut.emulated.states.os.statvfs", lambda _folder: Files)
    with pytest.raises(MissingResource, match="needs 80 MB for its state, and files may take 79 MB"):
        states.ready([1], 2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"status": -9}, r"did not get ready \(seed 1\): QEMU ended with status -9\."),
        ({"looks": 2, "says": "Kernel panic - no init\n"}, r"did not get ready \(seed 1\): Kernel panic - no init\."),
        ({"looks": 2, "says": "broken it is\ndone"}, r"did not get ready \(seed 1\): it is\."),
        ({"saving": {"status": "failed", "error-desc": "No space"}}, "could not be saved: No space"),
        ({"refuses": "migrate"}, "QEMU refuses `migrate`"),
    ],
)
def test_a_machine_that_does_not_get_ready_is_said_and_leaves_no_state(
    host: QemuDouble, states: States, settings: dict[str, Any], said: str
) -> None:
    for name, value in settings.items():
        setattr(host, name, value)
    with pytest.raises(TestbedError, match=said):
        states.ready([1], 2)
    assert (files(host), host.running) == (["kernel"], 0)
