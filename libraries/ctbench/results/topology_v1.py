"""How records of version 1 write a topology: what its ports are is a part of the ruleset's name there."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from ctbench.dut.topology import PortSetup, Topology

#: Rulesets that were called otherwise: what topologies call them now, by their names in records.
_RENAMED = {"notrack": "iptables-notrack"}
#: Rulesets that nothing but the ports was said of: what they are called by the datapath, and else.
_OF_PORTS, _OF_OTHER_PORTS = {"ovs-dpdk": "normal"}, "forward"
_PORTS = tuple(setup for setup in get_args(PortSetup) if setup != "plain")


class _Written(BaseModel):
    """The keys of version 1."""

    model_config = ConfigDict(extra="forbid", title="Topology")

    datapath: str = "ovs-dpdk"
    #: CPUs that receive and forward, for the whole DUT.
    pmd_cpus: int = Field(1, ge=1, le=64)
    rx_queues: int = Field(1, ge=1, le=64)
    rx_descriptors: int = Field(2048, ge=64, le=16384)
    #: The ruleset, or what the ports are (`vlan`, `bond`, `bond-vlan`), or both with a plus between them.
    ruleset: str = "conntrack"
    mtu: int = Field(1500, ge=576, le=9000)
    emc_insert_inv_prob: int | None = Field(None, ge=0)
    smc: bool | None = None


def read(written: Any) -> Any:
    """The keys of a topology from those of version 1. Anything else is left for the model to refuse."""
    if not isinstance(written, Mapping):
        return written
    if "cpus" in written or "ports" in written:
        raise ValueError("cpus and ports are keys of another version")
    found = {("cpus" if key == "pmd_cpus" else key): value for key, value in written.items()}
    ruleset, datapath = written.get("ruleset", ""), written.get("datapath", "ovs-dpdk")
    if ruleset in _PORTS:
        base = _OF_PORTS.get(datapath, _OF_OTHER_PORTS) if isinstance(datapath, str) else ""
        return found | {"ruleset": base, "ports": ruleset}
    if isinstance(ruleset, str) and ruleset:
        name, _, ports = ruleset.partition("+")
        found |= {"ruleset": _RENAMED.get(name, name)} | ({"ports": ports} if ports else {})
    return found


def write(topology: Topology) -> dict[str, Any]:
    """The keys of version 1."""
    written = topology.model_dump(exclude={"cpus", "ports", "ruleset"}) | {"pmd_cpus": topology.cpus}
    names = {now: name for name, now in _RENAMED.items()}
    ruleset = names.get(topology.ruleset, topology.ruleset)
    if topology.ports != "plain":
        alone = topology.ruleset == _OF_PORTS.get(topology.datapath, _OF_OTHER_PORTS)
        ruleset = topology.ports if alone else f"{ruleset}+{topology.ports}"
    return {key: (written | {"ruleset": ruleset})[key] for key in _Written.model_fields}


RecordedTopology = Annotated[
    Topology, BeforeValidator(read), PlainSerializer(write), WithJsonSchema(_Written.model_json_schema())
]
