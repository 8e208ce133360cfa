"""Letting go of what is broken: the rest is let go of all the same, and what stays is said."""

from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import TestbedError
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.new_dut import Place
from ctbench.testbed.testbed import Testbed

pytestmark = pytest.mark.unit

ROUTER = Topology(datapath="linux-router", ruleset="forward")


class Dut:
    """Restores its host, unless something is wrong."""

    def __init__(self, wrong: Exception | None = None, trouble: str = "") -> None:
        self.wrong, self.broken, self.restored = wrong, trouble, 0

    def restore(self) -> None:
        self.restored += 1
        if self.wrong:
            raise self.wrong

    def trouble(self) -> str:
        return self.broken

    def snapshot(self) -> dict[str, Any]:
        raise KeyError("pid")


class DeadSandbox(Sandbox):
    """One of which only the end is asked for."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def testbed(output: Path, **duts: tuple[Dut, object]) -> Testbed:
    """A testbed with these DUTs, of which the first stands."""
    made = Testbed(load("testbeds", "local", TestbedConfig), output)
    made._duts = {Place(name.replace("_", "-")): pair for name, pair in duts.items()}  # type: ignore[misc]
    first = next(iter(made._duts))
    made._connected, made._standing = made._duts[first][0], {first: None}
    return made


testbed.__test__ = False  # type: ignore[attr-defined]


def test_a_dut_in_a_dead_sandbox_is_let_go_of_with_it_and_that_is_no_complaint(tmp_path: Path) -> None:
    dut, sandbox = Dut(TestbedError("The sandbox has ended.")), DeadSandbox()
    broken = testbed(tmp_path, ovs_dpdk=(dut, sandbox))
    assert broken.discard() == []
    assert (dut.restored, sandbox.closed, broken._duts) == (1, 1, {})
    broken.close()
    assert (dut.restored, sandbox.closed) == (1, 1)


def test_a_host_that_could_not_be_put_back_is_said_and_tried_once_more_at_the_end(tmp_path: Path) -> None:
    dut, other = Dut(TestbedError("lab does not answer.")), Dut()
    lab = testbed(tmp_path, ovs_dpdk=(dut, object()), linux_router=(other, object()))
    assert lab.discard() == ["lab does not answer."]
    with pytest.raises(TestbedError, match=r"^lab does not answer\.$"):
        lab.close()
    assert (dut.restored, other.restored) == (2, 1)
    lab.close()


def test_an_error_of_any_kind_leaves_nothing_else_standing(tmp_path: Path) -> None:
    dut, other, sandbox = Dut(ZeroDivisionError()), Dut(), DeadSandbox()
    lab = testbed(tmp_path, ovs_dpdk=(dut, object()), linux_router=(other, sandbox))
    with pytest.raises(TestbedError, match=r"ZeroDivisionError \(traceback in .*unexpected-errors\.log\)"):
        lab.close()
    assert (other.restored, sandbox.closed) == (1, 1)


def test_a_dut_that_is_well_is_kept_and_one_that_is_not_is_replaced(tmp_path: Path) -> None:
    dut = Dut(trouble="The interface r0 is gone.")
    made = testbed(tmp_path, linux_router=(dut, DeadSandbox()))
    assert made.replace_broken(ROUTER.model_copy(update={"datapath": "linux-bridge"})) == ""
    assert made.replace_broken(ROUTER) == "The interface r0 is gone."
    assert made._duts == {}
    well = testbed(tmp_path, linux_router=(Dut(), DeadSandbox()))
    assert well.replace_broken(ROUTER) == ""
    assert Place("linux-router") in well._duts


def test_the_facts_of_a_record_say_why_something_could_not_be_asked(tmp_path: Path) -> None:
    facts = testbed(tmp_path, ovs_dpdk=(Dut(), DeadSandbox())).facts()
    assert facts["dut"] == {"trouble": "it could not be asked: 'pid'"}
    assert facts["machine"] and facts["generator"]["type"] == "software"
