"""What the figures depend on: versions, machines, generator, testbed. Each value once."""

from collections.abc import Sequence

from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.report import enough, labels
from ctbench.report.page import Fact
from ctbench.results.environment import MachineFacts
from ctbench.results.record import Record


def first_screen(records: Sequence[Record], runs: int) -> tuple[Fact, ...]:
    """The few facts that everybody asks for."""
    if not records:
        return ()
    first, last = min(record.started for record in records), max(record.ended for record in records)
    traffic = sum(record.traffic_s for record in records)
    when = f"{labels.span(first, last)}, {labels.length(traffic)} of it traffic"
    found = [
        enough.fact("Device under test", (dut(record) for record in records)),
        enough.fact("Machine", (_short_machine(dut_machine(record)) for record in records)),
        enough.fact("Testbed and campaign", (_where(record) for record in records)),
        Fact("Measured", (when,)),
        *([Fact("Runs", (f"{runs} runs; where one measured a test again, the newest counts",))] if runs > 1 else []),
    ]
    return tuple(fact for fact in found if fact.values)


def environment(records: Sequence[Record], run_ids: Sequence[str]) -> tuple[Fact, ...]:
    """Everything that a reader needs to compare figures. `run_ids` are those of older records too."""
    found = [
        enough.fact("Device under test", (_whole_dut(record) for record in records)),
        enough.fact("Machine of the DUT", (machine(dut_machine(record)) for record in records)),
        enough.fact("Packet memory of the DUT", (_memory(record) for record in records)),
        enough.fact("Hugepages", (_hugepages(dut_machine(record)) for record in records)),
        enough.fact("Traffic generator", (_generator(record) for record in records)),
        enough.fact("Machine of the generator", (machine(record.environment.machine) for record in records)),
        enough.fact("CPUs", (_placement(record) for record in records)),
        enough.fact("Testbed", (testbed(record) for record in records)),
        enough.fact("Generator's ceiling", (_ceiling(record) for record in records)),
        enough.fact("Suite version", (record.tool_version for record in records)),
        enough.fact("Runs", run_ids),
    ]
    return tuple(fact for fact in found if fact.values)


def dut(record: Record) -> str:
    """`Open vSwitch 3.1.0`, `Linux 6.18.44`; empty for the cable."""
    datapath = record.topology.datapath
    return "" if datapath == CABLE.datapath else record.environment.dut.product or registry.title(datapath)


def machine(facts: MachineFacts) -> str:
    """`Intel Xeon …, 2 CPUs, KVM, Debian …, Linux …`; empty where nothing is known."""
    if not facts.cpu_model:
        return ""
    parts = [facts.cpu_model.replace("(R)", ""), labels.plural(len(facts.usable_cpus), "CPU")]
    virtual = facts.virtualisation
    parts += [f"virtual machine ({virtual})"] if virtual and virtual != "none" else []
    parts += [facts.distribution] if facts.distribution else []
    parts += [f"Linux {facts.kernel}"] if facts.kernel else []
    return ", ".join(parts)


def dut_machine(record: Record) -> MachineFacts:
    """Where the DUT ran: on the generator's machine, unless the record knows another one."""
    own = record.environment.dut.machine
    return own if own and own.cpu_model else record.environment.machine


def _short_machine(facts: MachineFacts) -> str:
    return ", ".join(machine(facts).split(", ")[:3])


def _where(record: Record) -> str:
    return f"{record.environment.testbed.name or '?'}, {record.campaign.name or '?'}"


def testbed(record: Record) -> str:
    """The testbed's name with its description."""
    facts = record.environment.testbed
    return f"{facts.name}: {facts.description}" if facts.description else facts.name


def _whole_dut(record: Record) -> str:
    found = record.environment.dut.product_details or dut(record)
    return f"{registry.title(record.topology.datapath)}: {found}" if found else ""


def _memory(record: Record) -> str:
    facts = record.environment.dut.memory
    if facts is None:
        return ""
    pages = "ordinary pages" if facts.kind == "no-huge" else facts.kind
    return f"{facts.megabytes} MB, {pages}"


def _hugepages(facts: MachineFacts) -> str:
    reserved = [f"{pages.total} of {pages.size_kb} kB" for pages in facts.hugepages if pages.total]
    return ", ".join(reserved) or ("none reserved" if facts.hugepages else "")


def _generator(record: Record) -> str:
    facts = record.environment.generator
    return ", ".join(str(part) for part in (facts.type, facts.version, facts.wiring) if part)


def _placement(record: Record) -> str:
    facts = record.environment.dut.placement
    if facts is None:
        return ""
    users = (("generator", facts.generator), ("pmd", facts.pmd), ("housekeeping", facts.housekeeping))
    cpus = "; ".join(f"{name} {', '.join(map(str, some))}" for name, some in users if some)
    return f"{cpus} (threads share CPUs)" if facts.oversubscribed else cpus


def _ceiling(record: Record) -> str:
    ceiling = record.evidence.ceiling
    return "" if ceiling is None else f"{record.profile.name}: {labels.rate(ceiling, record.profile.kind)}"
