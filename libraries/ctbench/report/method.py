"""The conditions of the figures: versions, machines, generator and testbed, the procedures, and the deviations from the
standards."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ctbench.base.units import format_duration, format_ratio, plural
from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.measure.promises import procedures
from ctbench.report import labels
from ctbench.report.page import Fields
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.store import Stored

#: Sustain phases that are asked for, seconds, and the loss of RFC 9411.
_RFC_9411_SUSTAIN_S = 300.0
_RFC_2544_SUSTAIN_S = 60.0
_RFC_9411_LOSS = 1e-5


def first_screen(records: Sequence[Record], runs: int) -> Fields:
    """Return the facts of the page's first screen."""
    if not records:
        return {}
    first, last = min(record.started for record in records), max(record.ended for record in records)
    traffic = sum(record.traffic_s for record in records)
    when, some = f"{labels.span(first, last)}, {labels.length(traffic)} of it trials", _unlike(records)
    return _facts({
        "Device under test": map(built_dut, some),
        "Machine": (", ".join(machine(each.environment.dut_machine).split(", ")[:3]) for each in some),
        "Testbed and campaign": (f"{one.environment.testbed.name or '?'}, {one.campaign.name or '?'}" for one in some),
        "Measured": (when,),
        "Runs": (f"{runs} runs; where one measured a test again, the newest counts",) if runs > 1 else (),
    })  # fmt: skip


def environment(records: Sequence[Record], run_ids: Sequence[str]) -> Fields:
    """Return the facts that a reader needs to compare figures. `run_ids` include those of older records."""
    some = _unlike(records)
    return _facts({
        "Device under test": map(_whole_dut, some),
        "Machine of the DUT": (machine(each.environment.dut_machine) for each in some),
        "Packet memory of the DUT": map(_memory, some),
        "Hugepages": (_hugepages(each.environment.dut_machine) for each in some),
        "Traffic generator": map(_generator, some),
        "Machine of the generator": (machine(each.environment.machine) for each in some),
        "CPUs": map(_placement, some),
        "Testbed": map(_testbed, some),
        "Generator's ceiling": map(_ceiling, records),
        "Suite version": (each.tool_version for each in some),
        "Runs": run_ids,
    })  # fmt: skip


def _unlike(records: Sequence[Record]) -> list[Record]:
    """Return one record of each environment and campaign. There are few, as `read_stored` holds equal parts only
    once."""
    return list({
        (*map(id, (*vars(each.environment).values(), each.campaign)), each.topology.datapath, each.tool_version): each
        for each in records
    }.values())  # fmt: skip


def dut(record: Record) -> str:
    """Return the DUT with its version: `Open vSwitch 3.1.0`, `Linux 6.18.44`; empty for the cable."""
    datapath = record.topology.datapath
    return "" if datapath == CABLE.datapath else record.environment.dut.product or registry.title(datapath)


def built_dut(record: Record) -> str:
    """Return the DUT with its version, and with the prefix of a user's own build."""
    path = str((record.environment.dut.model_extra or {}).get("vswitchd", ""))
    prefix = path.removesuffix("/sbin/ovs-vswitchd")
    return dut(record) if prefix == path else f"{dut(record)} in {prefix}"


def machine(facts: MachineFacts) -> str:
    """Return a machine in words: `Intel Xeon …, 2 CPUs, KVM, Debian …, Linux …`; empty where its CPU model is
    unknown."""
    if not facts.cpu_model:
        return ""
    virtual = facts.virtualisation not in ("", "none")
    parts = [
        facts.cpu_model.replace("(R)", ""),
        plural(len(facts.usable_cpus), "CPU"),
        f"virtual machine ({facts.virtualisation})" if virtual else "",
        facts.distribution,
        f"Linux {facts.kernel}" if facts.kernel else "",
    ]
    return ", ".join(filter(None, parts))


def _testbed(record: Record) -> str:
    return ": ".join(filter(None, (record.environment.testbed.name, record.environment.testbed.description)))


def _whole_dut(record: Record) -> str:
    facts = record.environment.dut
    parts = [facts.product_details or dut(record), str((facts.model_extra or {}).get("vswitchd", ""))]
    found = ", ".join(filter(None, parts))
    return f"{registry.title(record.topology.datapath)}: {found}" if found else ""


def _memory(record: Record) -> str:
    facts = record.environment.dut.memory
    if facts is None:
        return ""
    kind = facts.get("kind", "")
    return f"{facts.get('megabytes', 0)} MB, {'ordinary pages' if kind == 'no-huge' else kind}"


def _hugepages(facts: MachineFacts) -> str:
    reserved = [f"{pages.total} of {pages.size_kb} kB" for pages in facts.hugepages if pages.total]
    return ", ".join(reserved) or ("none reserved" if facts.hugepages else "")


def _generator(record: Record) -> str:
    facts = record.environment.generator
    return ", ".join(str(facts[name]) for name in ("type", "version", "wiring") if facts.get(name))


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


def _facts(known: Mapping[str, Iterable[str]]) -> Fields:
    """Return each value once, in the order of the records. Names without a value are left out."""
    each_once = ((name, labels.once(values)) for name, values in known.items())
    return {name: labels.some(values) for name, values in each_once if values}


def methodology(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the descriptions of the campaigns, and a sentence for each procedure."""
    campaigns = labels.once(
        f"Campaign {record.campaign.name}: {said}"
        for record in records
        if (said := record.campaign.description.strip())
    )
    return (*labels.some(campaigns), *_procedures(records))


def _procedures(records: Sequence[Record]) -> tuple[str, ...]:
    """Return a sentence for each procedure: the metrics that it measured, and in how many tests."""
    tests = Counter((record.procedure, record.metric) for record in records)
    said, known = [], procedures()
    for procedure in dict.fromkeys(procedure for procedure, _ in tests):
        measured = [
            f"{METRICS[metric].title} ({plural(number, 'test')})"
            for (by, metric), number in tests.items()
            if by == procedure
        ]
        does = f": it {known[procedure]}" if procedure in known else ""
        said.append(f"Procedure {procedure} measured {' and '.join(measured)}{does}.")
    return labels.some(said)


def deviations(newest: Sequence[Stored]) -> tuple[tuple[str, str, str], ...]:
    """Return where the campaigns fall short of the standards, by the actual trials: the standard, its demand, what was
    done."""
    searched = [each for each in newest if not METRICS[each.record.metric].of_table]
    of_connections, of_packets = (
        [each for each in searched if each.record.profile.kind == kind] for kind in ("connections", "packets")
    )
    substitutes = {
        (old, new)
        for each in newest
        for old, new in each.record.campaign.profiles.items()
        if each.record.profile.name == new
    }
    found = [
        ("RFC 9411, 7.2", "a sustain phase of 300 s", _short(of_connections, _RFC_9411_SUSTAIN_S)),
        ("RFC 2544, 24", "trials of at least 60 s", _short(of_packets, _RFC_2544_SUSTAIN_S)),
        ("RFC 9411, 7.2", "fewer than 0.001 % failed transactions", _lost(of_connections, _RFC_9411_LOSS)),
        ("RFC 2544, 26.1", "throughput without any loss", _lost(of_packets, 0.0)),
    ]
    found += [
        ("2022 article", f"the profile {old}", f"the profile {new}, whose floor follows from the same packet rate")
        for old, new in sorted(substitutes)[: labels.MOST_VALUES]
    ]
    return tuple(each for each in found if each[-1])


def counted(sentences: Iterable[str]) -> dict[str, str]:
    """Return each sentence with the number of tests that it applies to."""
    return {labels.sentence(text): plural(count, "test") for text, count in Counter(sentences).items()}


def _short(newest: Sequence[Stored], asked_s: float) -> str:
    """Return the shortest and longest sustain phase of the trials behind the results; empty where no test is short of
    `asked_s`."""
    known = [each.sustain_s for each in newest if each.sustain_s]
    if not known or min(longest for _, longest in known) >= asked_s:
        return ""
    ends = (min(shortest for shortest, _ in known), max(longest for _, longest in known))
    return " to ".join(dict.fromkeys(map(format_duration, ends)))


def _lost(newest: Sequence[Stored], asked: float) -> str:
    """Return the loss ratios of the campaigns that exceed the one that is asked for."""
    limits = sorted({each.record.campaign.loss_ratio for each in newest if each.sustain_s})
    above = labels.once(format_ratio(limit) for limit in limits if limit > asked)
    return f"at most {', '.join(labels.some(above))} lost" if above else ""
