"""The topology: the set-up of a DUT for one test, and its key, by which all other code knows it."""

import re
from functools import lru_cache
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ctbench.base.units import quoted

#: What the two ports are: plain links, trunks of a VLAN, bonds, or bonds that are trunks of a VLAN.
PortSetup = Literal["plain", "vlan", "bond", "bond-vlan"]

EXPECTED_KEY = (
    "Expected DATAPATH/RULESET/CPUS-QUEUES, for example ovs-dpdk/conntrack/1cpu-1rxq, followed by what is not the"
    " default, for example /ports=bond/mtu=9000."
)
_KEY = re.compile(r"([a-z0-9-]+)/([a-z0-9-]+)/([0-9]{1,3})cpu-([0-9]{1,3})rxq((?:/[a-z_]+=[a-z0-9-]+)*)")


class Topology(BaseModel):
    """The set-up of the DUT for one test."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: The kind of DUT: `ovs-dpdk`, `linux-router`, `linux-bridge`, or `cable` for none.
    datapath: str = "ovs-dpdk"
    #: CPUs that receive and forward, for the whole DUT: PMD threads of OVS, CPUs that the kernel receives on.
    cpus: int = Field(1, ge=1, le=64)
    #: Receive queues per port.
    rx_queues: int = Field(1, ge=1, le=64)
    #: Name of a ruleset of the catalogue, `ctbench.dut.rulesets`.
    ruleset: str = "conntrack"
    ports: PortSetup = "plain"
    #: Largest IP packet, bytes, on all interfaces of the path.
    mtu: int = Field(1500, ge=576, le=9000)
    #: Exact match cache of OVS: a packet in how many is inserted (`emc-insert-inv-prob`); 0 switches it off,
    #: None is OVS' default.
    emc_insert_inv_prob: int | None = Field(None, ge=0, le=2**32 - 1)
    #: Extra bridge ports without test traffic.
    idle_ports: int = Field(0, ge=0, le=1024)
    #: Threads of OVS that look at the flows of the datapath (`n-revalidator-threads`); None is OVS' default.
    revalidators: int | None = Field(None, ge=1, le=128)
    #: Threads of OVS that a datapath in the kernel asks for packets of unknown flows (`n-handler-threads`); None is
    #: OVS' default.
    handlers: int | None = Field(None, ge=1, le=128)
    #: Every timeout of the connection table, seconds; None: those of the DUT's settings, which keep what was closed for
    #: 1 s and what is established for 30 s.
    timeout_s: int | None = Field(None, ge=1, le=86_400)
    #: How the timeout policy of a connection tracking zone of Open vSwitch is set: as a change of another one, which
    #: every release takes over, or as the first that the zone has.
    zone_policy: Literal["changed", "first"] = "changed"
    #: Entries of the connection table at most; None: as the DUT's settings say.
    max_connections: int | None = Field(None, ge=1, le=1 << 31)

    @property
    def label(self) -> str:
        """CPUs and queues: `1cpu-2rxq`."""
        return f"{self.cpus}cpu-{self.rx_queues}rxq"

    @property
    def key(self) -> str:
        """The name in SLA files, reports and comparisons: `ovs-dpdk/conntrack/1cpu-1rxq`, followed by the options that
        are not the default: `ovs-dpdk/normal/1cpu-1rxq/mtu=9000`."""
        own = (
            f"/{name}={str(value).lower()}"
            for name, default in OPTIONS.items()
            if (value := getattr(self, name)) != default
        )
        return f"{self.datapath}/{self.ruleset}/{self.label}{''.join(own)}"

    @classmethod
    @lru_cache(maxsize=1000)
    def of_key(cls, key: str) -> "Topology | None":
        """Return the topology that a key names; None where it names none."""
        try:
            return cls.parse(key)
        except ValueError:
            return None

    @classmethod
    def parse(cls, key: str) -> Self:
        """Return the topology that a key names. Raise `ValueError` with what is wrong with it, or how the key is
        written."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{quoted(key)} is not a topology.\n  {EXPECTED_KEY}")
        datapath, ruleset, cpus, queues, rest = match.groups()
        options = dict(option.split("=") for option in rest.split("/")[1:])
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            raise ValueError(f"{quoted(unknown[0])} is not an option of a topology.\n  Expected {', '.join(OPTIONS)}.")
        named = {"datapath": datapath, "ruleset": ruleset, "cpus": int(cpus), "rx_queues": int(queues)}
        try:
            topology = cls.model_validate(named | options)
        except ValidationError as errors:
            first = errors.errors(include_url=False)[0]
            raise ValueError(
                f"{quoted(key)} is not a topology: {first['loc'][0]} is {quoted(first['input'])}.\n"
                f"  {first['msg'].replace('Input should be', 'Expected')}."
            ) from None
        if topology.key != key:
            raise ValueError(f"{quoted(key)} is not how this topology is written.\n  Expected {quoted(topology.key)}.")
        return topology


#: What a key names only where it is not the default, which stands with it; in this order.
OPTIONS = {name: field.default for name, field in Topology.model_fields.items()
           if name not in ("datapath", "cpus", "rx_queues", "ruleset")}  # fmt: skip
