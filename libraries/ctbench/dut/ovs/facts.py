"""What only an ovs-vswitchd that runs can say of itself, for records."""

from typing import Any

from ctbench.dut.ovs.control import OvsControl
from ctbench.dut.ovs.parse import parse_pmd_statistics, parse_rxq_map


def running_facts(control: OvsControl) -> dict[str, Any]:
    """Its settings, which PMD thread polls which queue, and what each of them has done."""
    queues = parse_rxq_map(control.appctl("dpif-netdev/pmd-rxq-show"))
    statistics = parse_pmd_statistics(control.appctl("dpif-netdev/pmd-stats-show"))
    return {
        "other_config": control.columns("Open_vSwitch", ".", "other_config")["other_config"],
        "rxq_map": {str(cpu): [f"{port}/{queue}" for port, queue in polled] for cpu, polled in queues.items()},
        "pmd": {str(cpu): pmd.as_record() for cpu, pmd in statistics.items()},
    }
