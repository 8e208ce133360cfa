"""The registry of promises: what can be measured and judged, each said once.

Keywords of suites, tags, `./run check promises`, the plan of a test and the page read it. A promise whose name is
`table dump time` has the keyword `Table Dump Time Should Meet SLA`, and others that say their minimum in the row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ctbench.measure.procedure import Procedure
from ctbench.measure.procedures.below import Below
from ctbench.measure.procedures.control_plane import PORT_CHURN, REVALIDATION, STATISTICS, SWEEP, TABLE_DUMP
from ctbench.measure.procedures.held_dump import HELD_DUMP
from ctbench.measure.procedures.highest_load import LOCK_SHARE, NEW_FLOWS
from ctbench.measure.procedures.instruction_count import InstructionCount
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.port_exhaustion import PORT_EXHAUSTION
from ctbench.measure.procedures.rates import AtFloor, ClosedLoop, HighestRate
from ctbench.measure.procedures.reassembly import REASSEMBLY
from ctbench.measure.procedures.removal import ENTRY_REMOVAL, TABLE_REMOVAL, ZONE_REMOVAL
from ctbench.measure.procedures.restart import RESTART
from ctbench.measure.procedures.same_load import SameLoad
from ctbench.measure.procedures.sustained import SUSTAINED_IN_TURN, SUSTAINED_RATE
from ctbench.measure.procedures.table_expiry import TABLE_DRAIN, TABLE_REAPING, TABLE_STEADY
from ctbench.measure.procedures.table_limits import TABLE_CAPACITY, TABLE_EARLY_DROP, TABLE_FULL, ZONE_FULL
from ctbench.measure.procedures.table_memory import TABLE_MEMORY
from ctbench.measure.procedures.timeout_policy import TIMEOUT_POLICY
from ctbench.results.metrics import ANY, CONNECTIONS, PACKETS
from ctbench.traffic.generator import LoadUnit


@dataclass(frozen=True)
class Promise:
    """One kind of promise."""

    #: In lower case; its keyword is made of it.
    name: str
    about: Literal["rate", "cost", "table", "control plane"]
    #: Of a rate, the campaign decides the procedure (`ctbench.run.measurement`).
    procedure: Procedure | None = None
    #: What is done, as a tag: it and `about` are in the place of the profile's tags. None for a rate or a cost.
    tag: str | None = None
    #: Kinds of profiles that it can be measured with.
    profiles: frozenset[LoadUnit] = ANY
    #: Whether it takes too long for a quick run: the tag `long`, which a campaign can skip.
    long: bool = False
    #: Whether the DUT has to be a new one: memory that another test took would hide what this one takes.
    fresh: bool = False
    #: What is made of a candidate in the place of `procedure`, in turn with its base.
    in_turn: Procedure | None = None
    #: Of a rate, what is measured of it.
    of_rate: str = ""

    @property
    def tags(self) -> tuple[str, ...]:
        """In the place of the profile's tags; none where those count."""
        return (self.about.replace(" ", "-"), self.tag) if self.tag else ()

    @property
    def holds(self) -> bool:
        """Whether connections are held, so that the DUT's table, the generator and memory bound how many there can
        be."""
        return self.procedure is not None and "connections" in self.procedure.abilities

    @property
    def says(self) -> str:
        """What is measured, as the end of a sentence that begins with "it"."""
        return self.procedure.says if self.procedure else self.of_rate


PROMISES: Mapping[str, Promise] = {
    promise.name: promise
    for promise in (
        Promise(
            "connection rate",
            "rate",
            of_rate="finds the connections and packets per second at which the loss stays within the limit",
            profiles=CONNECTIONS,
        ),
        Promise(
            "packet rate",
            "rate",
            of_rate="finds the packets per second at which the loss stays within the limit",
            profiles=PACKETS,
        ),
        Promise("instruction cost", "cost", InstructionCount()),
        Promise("table dump time", "control plane", TABLE_DUMP, "dump"),
        Promise("port churn time", "control plane", PORT_CHURN, "churn"),
        Promise("revalidation time", "control plane", REVALIDATION, "revalidation", PACKETS, long=True),
        Promise("forced revalidation time", "control plane", SWEEP, "revalidation", PACKETS),
        Promise("statistics time", "control plane", STATISTICS, "statistics", long=True),
        Promise("held dump time", "control plane", HELD_DUMP, "dump", CONNECTIONS, long=True),
        Promise("entry removal time", "control plane", ENTRY_REMOVAL, "removal", CONNECTIONS, long=True),
        Promise("zone removal time", "control plane", ZONE_REMOVAL, "removal", CONNECTIONS, long=True),
        Promise("table removal time", "control plane", TABLE_REMOVAL, "removal", CONNECTIONS, long=True),
        Promise("lock share", "control plane", LOCK_SHARE, "contention", long=True),
        Promise("new flow rate", "control plane", NEW_FLOWS, "upcalls", CONNECTIONS, long=True),
        Promise("held connections", "table", TABLE_CAPACITY, "capacity", CONNECTIONS),
        Promise("table level", "table", TABLE_STEADY, "steady", CONNECTIONS),
        Promise("sustained rate", "table", SUSTAINED_RATE, "sustained", CONNECTIONS, in_turn=SUSTAINED_IN_TURN),
        Promise("drain time", "table", TABLE_DRAIN, "drain", CONNECTIONS),
        Promise("recovery time", "table", TABLE_FULL, "full", CONNECTIONS),
        Promise("full zone", "table", ZONE_FULL, "full", CONNECTIONS),
        Promise("early drop", "table", TABLE_EARLY_DROP, "early-drop", CONNECTIONS),
        Promise("memory", "table", TABLE_MEMORY, "memory", CONNECTIONS, fresh=True),
        Promise("port exhaustion", "table", PORT_EXHAUSTION, "port-exhaustion", CONNECTIONS),
        Promise("restart", "table", RESTART, "restart", CONNECTIONS),
        Promise("reassembly time", "table", REASSEMBLY, "reassembly", PACKETS),
        Promise("timeout", "table", TIMEOUT_POLICY, "timeout-policy", CONNECTIONS),
        Promise("load during expiry", "table", TABLE_REAPING, "reaping", CONNECTIONS),
    )
}


def procedures() -> dict[str, str]:
    """What each procedure does, by its name in records: those of rates, and those of one promise each."""
    of_one = (each for promise in PROMISES.values() for each in (promise.procedure, promise.in_turn) if each)
    of_rates = {each.name: each.says for each in (ClosedLoop, HighestRate, AtFloor, SameLoad, Below, Pair)}
    return of_rates | {each.name: each.says for each in of_one}
