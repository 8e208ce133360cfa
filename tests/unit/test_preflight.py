"""Preflight says in one sentence what a machine lacks, and what to do about it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ctbench.base.errors import MissingResource
from ctbench.base.yaml_files import load
from ctbench.dut.ovs import kind, settings
from ctbench.testbed import config
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.software import kind as software
from ctbench.traffic.software.kind import require_x86_64


def sentence_of(check: Callable[[], None]) -> str:
    with pytest.raises(MissingResource) as caught:
        check()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_another_processor_is_refused() -> None:
    require_x86_64("x86_64")
    assert "aarch64" in sentence_of(lambda: require_x86_64("aarch64"))


def test_missing_ovs_names_the_package(tmp_path: Path) -> None:
    text = sentence_of(lambda: settings.check_ovs(tmp_path / "ovs-vswitchd-dpdk"))
    assert "./run setup" in text
    assert "openvswitch-switch-dpdk" in text


MEMIF, MEMPOOL = "librte-net-memif*", "librte-mempool-ring*"


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ([], {MEMIF, MEMPOOL}),
        (["pmds-23.0/librte_net_memif.so.23"], {MEMPOOL}),
        # Those of two DPDKs do not add up.
        (["pmds-23.0/librte_net_memif.so.23", "pmds-24.0/librte_mempool_ring.so.24"], {MEMPOOL}),
        ([f"pmds-23.0/{library}.so.23" for library in settings.PMD_LIBRARIES], set()),
    ],
)
def test_the_drivers_that_are_missing_are_named(there: list[str], missing: set[str], tmp_path: Path) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    check = partial(settings.check_drivers, [f"{tmp_path}/pmds-*"])
    if not missing:
        check()
        return
    text = sentence_of(check)
    assert {each for each in (MEMIF, MEMPOOL) if each in text} == missing


def local_with(**changes: object) -> TestbedConfig:
    """The local testbed, with only its OVS, and `changes` to that."""
    local = load("testbeds", "local", TestbedConfig).model_dump()
    local["duts"] = [{**local["duts"][0], **changes}]
    return TestbedConfig.model_validate(local)


def test_a_lab_asks_nothing_of_this_machine_but_its_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for module, check in (
        (software, "require_x86_64"), (kind, "check_ovs"), (kind, "check_drivers"), (config, "check_namespaces"),
    ):  # fmt: skip
        monkeypatch.setattr(module, check, lambda check=check: asked.append(check))
    load("testbeds", "example-trex-xeon", TestbedConfig).check_machine()
    assert not asked
    local_with(ovs={"prefix": "/opt/ovs"}).check_machine()
    assert asked == ["require_x86_64", "check_namespaces"]
    asked.clear()
    local_with().check_machine()
    assert asked == ["require_x86_64", "check_ovs", "check_drivers", "check_namespaces"]
