"""Made-up records of tests that count instructions, and a stand-in for the runs that make them, for the unit tests."""

from collections.abc import Callable, Sequence
from typing import Any

from ctbench.dut.topology import Topology
from ctbench.results.record import Record
from ctbench.results.record_model import Estimate
from ctbench.traffic.profiles import load_profile

from .simulated import made_up_packet_record

PER_PACKET = "instructions_per_packet"
#: Puts this stand-in in the place of ./run sla.
Made = Callable[[Any], Any]


def counted_record(ruleset: str, values: Sequence[float], *, ports: Any = "plain", **dut: Any) -> Record:
    """What a packet costs in a topology with each seed; without values, it was not proved. `dut`: of its machine."""
    record = made_up_packet_record()
    around = record.environment
    facts = {"image": "a1", "product": "Linux 6.1 in QEMU 7.2", "qemu": "7.2"} | dut
    ordered = sorted(values)
    figures, unproved = {}, {"verdict": "not measured", "verdict_reason": "nothing was proved of the topology."}
    if values:
        figures = {
            PER_PACKET: Estimate(ordered[len(ordered) // 2], "instructions", ordered[0], ordered[-1], tuple(values))
        }
        unproved = {}
    return record.model_copy(
        update={
            "suite": "Emulated",
            "test": ruleset.capitalize(),
            "metric": PER_PACKET,
            "topology": Topology(datapath="emulated", ruleset=ruleset, ports=ports),
            "profile": load_profile("udp-64-1flow"),
            "figures": figures,
            "environment": around.model_copy(update={"dut": around.dut.model_copy(update=facts)}),
        }
        | unproved
    )
