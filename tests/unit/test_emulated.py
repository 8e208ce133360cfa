"""The suite's side of an emulated machine: what a topology may ask of it, its errors, and the doctor's rows."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import icount
from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.dut import emulated
from ctbench.dut.emulated import EmulatedConfig, EmulatedCounter, EmulatedKind
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Finding

from .test_icount import GOOD, folder

FORWARD = Topology(datapath="emulated", ruleset="forward")


def new_counter(memory: Path, **settings: Any) -> EmulatedCounter:
    keys = {"type": "emulated", "kernel": "distribution", "seeds": 2} | settings
    sandbox: Any = SimpleNamespace(local_path=lambda _: memory)
    return EmulatedCounter(EmulatedConfig.model_validate(keys), sandbox)


def test_a_topology_with_several_cpus_is_more_than_there_is(tmp_path: Path) -> None:
    counter = new_counter(tmp_path)
    with pytest.raises(MissingResource, match="an emulated machine has one of each"):
        counter.count([FORWARD.model_copy(update={"cpus": 2})], "stream")
    with pytest.raises(ConfigError, match="is not a ruleset of an emulated machine"):
        counter.count([FORWARD.model_copy(update={"ruleset": "nat"})], "stream")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (icount.IcountError("it broke"), TestbedError),
        (icount.Missing("no QEMU"), MissingResource),
        (icount.Invalid("no kernel"), ConfigError),
    ],
)
def test_what_goes_wrong_is_the_suites(raised: Exception, expected: type[Exception], tmp_path: Path) -> None:
    counter = new_counter(tmp_path)
    counter.counter = Mock(spec=icount.Counter)
    counter.counter.count.side_effect = raised
    with pytest.raises(expected, match=str(raised)):
        counter.count([FORWARD], "stream")


def test_its_image_is_known_before_it_runs_and_is_the_one_of_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = SimpleNamespace(identity="b2", release="6.1", qemu="7.2", packages={})
    monkeypatch.setattr(icount, "Counter", lambda *_, **__: machine)
    config, anywhere = EmulatedConfig(type="emulated", kernel="distribution", seeds=2), Mock()
    assert EmulatedKind().program(config, anywhere) == new_counter(tmp_path).snapshot()["program"] == "b2"


def test_what_its_image_is_made_of_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[Path] = []

    def unpack(memory: Path, *_: object, **__: object) -> SimpleNamespace:
        unpacked.append(memory / "kernel")
        unpacked[0].write_text("of a package")
        return SimpleNamespace(identity="b2")

    monkeypatch.setattr(icount, "Counter", unpack)
    monkeypatch.chdir(tmp_path)
    config, anywhere = EmulatedConfig(type="emulated", kernel="/linux.deb", seeds=2), Mock()
    assert EmulatedKind().program(config, anywhere) == "b2"
    assert not unpacked[0].exists() and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["kernel", "ovs"])
def test_a_path_that_does_not_exist_is_a_mistake(tmp_path: Path, key: str) -> None:
    named = str(tmp_path / "nothing")
    settings: Any = {"kernel": named} if key == "kernel" else {"kernel": "distribution", "ovs": {"prefix": named}}
    with pytest.raises(ConfigError, match=f"{key}.* is {named}, which does not exist"):
        EmulatedKind().require(EmulatedConfig(type="emulated", seeds=2, **settings))


@pytest.mark.parametrize(
    ("key", "name", "content", "said"),
    [
        ("kernel", "none", None, "does not exist"),
        ("image", "none", None, "does not exist"),
        ("image", "x", b"", "is empty"),
        ("image", "x", b"text", "cut off or changed"),
        ("image", ".", None, "is not a file"),
    ],
)
def test_the_doctor_says_what_is_wrong_with_a_kernel_or_an_image_and_what_to_do(
    key: str, name: str, content: bytes | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(icount, "missing_programs", list)

    def look(key: str, path: Path) -> Finding:
        settings = {"type": "emulated", "seeds": 2, "kernel": "distribution", key: str(path)}
        anywhere: Any = None
        (finding,) = EmulatedKind().examine(EmulatedConfig.model_validate(settings), anywhere)
        return finding

    if content is not None:
        (tmp_path / name).write_bytes(content)
    finding = look(key, tmp_path / name)
    assert (finding.state, finding.what) == ("bad", emulated.KERNEL if key == "kernel" else emulated.IMAGE)
    assert str(tmp_path) in finding.found and said in finding.found and f"{key}:" in finding.remedy
    well = look("kernel", folder(tmp_path / "well", GOOD))
    assert (well.state, well.what) == ("ok", emulated.KERNEL) and "6.1" in well.found
