"""What the figures depend on: versions, machines, generator, testbed. Each value once."""

from collections.abc import Mapping, Sequence
from typing import Any

from ctbench.dut import registry
from ctbench.report import enough, labels
from ctbench.report.page import Fact
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
        enough.fact("Machine", (_short_machine(facts) for record in records for facts in _dut_machines(record))),
        enough.fact("Testbed and campaign", (_where(record) for record in records)),
        Fact("Measured", (when,)),
        *([Fact("Runs", (f"{runs} runs; where one measured a test again, the newest counts",))] if runs > 1 else []),
    ]
    return tuple(fact for fact in found if fact.values)


def environment(records: Sequence[Record], run_ids: Sequence[str]) -> tuple[Fact, ...]:
    """Everything that a reader needs to compare figures. `run_ids` are those of older records too."""
    found = [
        enough.fact("Device under test", (_whole_dut(record) for record in records)),
        enough.fact("Machine of the DUT", (machine(facts) for record in records for facts in _dut_machines(record))),
        enough.fact("Memory of OVS", (_memory(record) for record in records)),
        enough.fact("Hugepages", (_hugepages(facts) for record in records for facts in _dut_machines(record))),
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
    facts = record.environment.dut
    if record.topology.datapath == "cable":
        return ""
    datapath = record.topology.datapath
    return registry.describe(datapath, facts) or registry.title(datapath)


def machine(facts: Mapping[str, Any]) -> str:
    """`Intel Xeon …, 2 CPUs, KVM, Debian …, Linux …`; empty where nothing is known."""
    if not facts.get("cpu_model"):
        return ""
    parts = [str(facts["cpu_model"]).replace("(R)", ""), labels.plural(len(facts.get("usable_cpus") or ()), "CPU")]
    virtual = str(facts.get("virtualisation", ""))
    parts += [f"virtual machine ({virtual})"] if virtual and virtual != "none" else []
    parts += [str(facts["distribution"])] if facts.get("distribution") else []
    parts += [f"Linux {facts['kernel']}"] if facts.get("kernel") else []
    return ", ".join(parts)


def _short_machine(facts: Mapping[str, Any]) -> str:
    return ", ".join(machine(facts).split(", ")[:3])


def _where(record: Record) -> str:
    return f"{record.environment.testbed.get('name', '?')}, {record.campaign.get('name', '?')}"


def testbed(record: Record) -> str:
    """The testbed's name with its description."""
    facts = record.environment.testbed
    about = str(facts.get("description", ""))
    return f"{facts.get('name', '')}: {about}" if about else str(facts.get("name", ""))


def _dut_machines(record: Record) -> list[Mapping[str, Any]]:
    facts = record.environment.dut.get("machine") or record.environment.machine
    return [facts] if isinstance(facts, dict) else []


def _whole_dut(record: Record) -> str:
    datapath = record.topology.datapath
    found = registry.describe(datapath, record.environment.dut, whole=True) or dut(record)
    return f"{registry.title(datapath)}: {found}" if found else ""


def _memory(record: Record) -> str:
    facts = record.environment.dut.get("memory")
    if not isinstance(facts, dict):
        return ""
    pages = "ordinary pages" if facts.get("kind") == "no-huge" else str(facts.get("kind", ""))
    return f"{facts.get('megabytes', '?')} MB, {pages}"


def _hugepages(facts: Mapping[str, Any]) -> str:
    pages = facts.get("hugepages")
    if not isinstance(pages, list):
        return ""
    reserved = [f"{page['total']} of {page['size_kb']} kB" for page in pages if page.get("total")]
    return ", ".join(reserved) or "none reserved"


def _generator(record: Record) -> str:
    facts = record.environment.generator
    parts = [str(facts[key]) for key in ("type", "version", "wiring") if facts.get(key)]
    return ", ".join(parts)


def _placement(record: Record) -> str:
    facts = record.environment.dut.get("placement")
    if not isinstance(facts, dict):
        return ""
    cpus = "; ".join(f"{name} {', '.join(map(str, facts[name]))}" for name in ("generator", "pmd", "housekeeping")
                     if facts.get(name))  # fmt: skip
    return f"{cpus} (threads share CPUs)" if facts.get("oversubscribed") else cpus


def _ceiling(record: Record) -> str:
    if record.ceiling is None:
        return ""
    return f"{record.profile.name}: {labels.rate(record.ceiling, record.profile.kind)}"
