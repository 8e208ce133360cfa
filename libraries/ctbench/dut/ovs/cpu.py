"""What a trial cost the CPUs of the PMD threads, and where they found what to do, by what they count themselves."""

from collections.abc import Collection

from ctbench.dut.base import CpuUse, LookUps
from ctbench.dut.ovs.parse import PmdStatistics

NANOSECONDS = 1_000_000_000


def cpu_use(statistics: Collection[PmdStatistics], cycles_per_second: float | None) -> CpuUse | None:
    """CPU use from the `statistics` of all PMD threads; None when they have received no packet.

    A PMD thread polls without end: of its CPU it uses the share of the cycles in which a poll found packets. The time
    for a packet needs the rate at which cycles are counted; None where it is not known."""
    packets = sum(pmd.packets_received for pmd in statistics)
    if not packets:
        return None
    cycles = sum(pmd.processing_cycles for pmd in statistics) / packets
    return CpuUse(
        busy_cpus=sum(pmd.processing_percent for pmd in statistics) / 100,
        ns_per_packet=cycles / cycles_per_second * NANOSECONDS if cycles_per_second else None,
        source="PMD cycles",
        hertz=cycles_per_second,
        cpus=len(statistics),
    )


def look_ups(statistics: Collection[PmdStatistics], datapath_flows: int) -> LookUps:
    """Where packets were found, summed over the PMD threads."""

    def total(name: str) -> int:
        return sum(getattr(pmd, name) for pmd in statistics)

    return LookUps(
        packets=total("packets_received"),
        recirculations=total("recirculations"),
        emc_hits=total("emc_hits"),
        smc_hits=total("smc_hits"),
        megaflow_hits=total("megaflow_hits"),
        upcalls=total("upcalls"),
        failed_upcalls=total("failed_upcalls"),
        datapath_flows=datapath_flows,
    )
