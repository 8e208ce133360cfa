"""What the record says of the testbed: named facts in their types, and none that throws a measurement away."""

from typing import Any

from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.run.measurement import environment_of

OVS = {"version": "3.1.0", "dpdk_version": "22.11.1", "kind": "ovs-dpdk", "machine": {"cpu_model": "Xeon"}}


def facts(**dut: Any) -> dict[str, dict[str, Any]]:
    return {"testbed": {"name": "local"}, "dut": OVS | dut, "generator": {}, "machine": {"usable_cpus": (0, 1)}}


def test_the_product_is_what_people_call_it_and_odd_facts_are_kept_as_text() -> None:
    found = environment_of(Topology(), facts())
    assert (found.dut.product, found.dut.product_details) == ("Open vSwitch 3.1.0", "Open vSwitch 3.1.0, DPDK 22.11.1")
    assert found.dut.machine is not None
    assert (found.dut.machine.cpu_model, found.dut.model_extra["kind"]) == ("Xeon", "ovs-dpdk")
    assert (found.testbed.name, found.machine.usable_cpus) == ("local", [0, 1])
    assert environment_of(CABLE, facts() | {"dut": {}}).dut.product == ""
    found = environment_of(Topology(), facts(memory={"megabytes": "many"}, machine=7))
    assert (found.dut.version, found.dut.memory, found.dut.machine) == ("3.1.0", None, None)
    assert found.dut.model_extra["odd_facts"] == {"machine": "7", "memory": "{'megabytes': 'many'}"}
