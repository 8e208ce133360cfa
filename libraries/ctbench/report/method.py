"""What the figures depend on (versions, machines, generator, testbed), how they were measured, and where that deviates
from the standards."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ctbench.base.units import format_duration, format_ratio
from ctbench.dut import registry
from ctbench.dut.cable import CABLE
from ctbench.measure.promises import procedures
from ctbench.report import labels
from ctbench.report.labels import LIMITS
from ctbench.report.page import Cell, Column, Facts, Line, Table
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.store import Stored

#: Sustain phases that are asked for, seconds, and the loss of RFC 9411.
_RFC_9411_SUSTAIN_S = 300.0
_RFC_2544_SUSTAIN_S = 60.0
_RFC_9411_LOSS = 1e-5

_VERDICTS = (
    "Met: measured, and every threshold of the floor is kept.",
    "Missed: measured, and a threshold of the floor is broken.",
    "Not measured: the generator or the testbed set the limit, or something broke. The figure says nothing about the "
    "DUT and never counts as met.",
    "“At least” marks a lower bound (“at most”, where lower is better): the search, the generator or the campaign's "
    "range ended the measurement before the DUT did, so the DUT may do better. Of a ratio that is known to less than "
    "± 10 % it is the end of its interval that is nearer to the minimum.",
    "Margin says how much better than the floor the figure is: +100 % is twice as good, whether a higher or a lower "
    "figure is better. It is the smallest margin of the test's promises.",
    "The two rates of a ratio are the median of each side; the ratio is the median of its rounds, so it is not exactly "
    "their quotient. Side by side, both are what is served in a closed loop.",
    "Lost is everything that was intended and not completed, also what was never sent; where nothing may be lost, only "
    "what was sent. State is flushed before each trial.",
    "Spread is the range of repetitions relative to their median; of a single search, how far above what held the "
    "next load was that did not hold.",
)


def first_screen(records: Sequence[Record], runs: int) -> Facts:
    """The few facts that everybody asks for."""
    if not records:
        return {}
    first, last = min(record.started for record in records), max(record.ended for record in records)
    traffic = sum(record.traffic_s for record in records)
    when, some = f"{labels.span(first, last)}, {labels.length(traffic)} of it trials", _unlike(records)
    return _facts({
        "Device under test": map(_built_dut, some),
        "Machine": (", ".join(machine(each.environment.dut_machine).split(", ")[:3]) for each in some),
        "Testbed and campaign": (f"{one.environment.testbed.name or '?'}, {one.campaign.name or '?'}" for one in some),
        "Measured": (when,),
        "Runs": (f"{runs} runs; where one measured a test again, the newest counts",) if runs > 1 else (),
    })  # fmt: skip


def environment(records: Sequence[Record], run_ids: Sequence[str]) -> Facts:
    """Everything that a reader needs to compare figures. `run_ids` are those of older records too."""
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
    """One record of each environment and campaign: there are few, and `read_stored` holds what is the same once."""
    return list({
        (*map(id, (*vars(each.environment).values(), each.campaign)), each.topology.datapath, each.tool_version): each
        for each in records
    }.values())  # fmt: skip


def dut(record: Record) -> str:
    """`Open vSwitch 3.1.0`, `Linux 6.18.44`; empty for the cable."""
    datapath = record.topology.datapath
    return "" if datapath == CABLE.datapath else record.environment.dut.product or registry.title(datapath)


def _built_dut(record: Record) -> str:
    """With where it is, of a build of one's own."""
    path = str((record.environment.dut.model_extra or {}).get("vswitchd", ""))
    prefix = path.removesuffix("/sbin/ovs-vswitchd")
    return dut(record) if prefix == path else f"{dut(record)} in {prefix}"


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


def _facts(known: Mapping[str, Iterable[str]]) -> Facts:
    """Each value once, in the order of the records; without names of which nothing is known."""
    each_once = ((name, labels.once(values)) for name, values in known.items())
    return {name: labels.some(values, LIMITS.values) for name, values in each_once if values}


def methodology(records: Sequence[Record]) -> tuple[str, ...]:
    """What was measured and how, what the words on the page mean, and what the campaigns say of themselves."""
    campaigns = labels.once(
        f"Campaign {record.campaign.name}: {said}"
        for record in records
        if (said := record.campaign.description.strip())
    )
    return (*labels.some(campaigns, LIMITS.values), *_procedures(records), *_VERDICTS)


def _procedures(records: Sequence[Record]) -> tuple[str, ...]:
    """Each procedure with what it measured, and of how many tests."""
    tests = Counter((record.procedure, record.metric) for record in records)
    said, known = [], procedures()
    for procedure in dict.fromkeys(procedure for procedure, _ in tests):
        measured = [
            f"{METRICS[metric].title} ({labels.plural(number, 'test')})"
            for (by, metric), number in tests.items()
            if by == procedure
        ]
        does = f": it {known[procedure]}" if procedure in known else ""
        said.append(f"Procedure {procedure} measured {' and '.join(measured)}{does}.")
    return labels.some(said, LIMITS.values)


def deviations(newest: Sequence[Stored]) -> Table | None:
    """Where the campaigns fall short of the standards, by what the trials of the records really were."""
    found: list[tuple[str, str, str]] = []
    records = [each.record for each in newest]
    searched = [each for each in newest if each.sustain_s and not METRICS[each.record.metric].of_table]
    of_connections, of_packets = (
        [each for each in searched if each.record.profile.kind == kind] for kind in ("connections", "packets")
    )
    if lengths := _short(of_connections, _RFC_9411_SUSTAIN_S):
        found.append(("RFC 9411, 7.2", "a sustain phase of 300 s", lengths))
    if lengths := _short(of_packets, _RFC_2544_SUSTAIN_S):
        found.append(("RFC 2544, 24", "trials of at least 60 s", lengths))
    if allowed := _lost(of_connections, _RFC_9411_LOSS):
        found.append(("RFC 9411, 7.2", "fewer than 0.001 % failed transactions", allowed))
    if allowed := _lost(of_packets, 0.0):
        found.append(("RFC 2544, 26.1", "throughput without any loss", allowed))
    substitutes = {
        (old, new) for record in records for old, new in record.campaign.profiles.items() if record.profile.name == new
    }
    found += [
        (
            "2022 article",
            f"the profile {old}",
            f"the substitute profile {new}, whose floor follows from the same packet rate",
        )
        for old, new in sorted(substitutes)[: LIMITS.values]
    ]
    if not found:
        return None
    columns = tuple(Column(name, right=False) for name in ("Standard", "Asks for", "This run"))
    return Table(columns, {"": [Line(tuple(map(Cell, texts))) for texts in found]})


def counted(sentences: Iterable[str]) -> dict[str, str]:
    """Each sentence with how many tests it is said of."""
    numbers = list(Counter(sentences).items())
    shown = {labels.sentence(text): labels.plural(count, "test") for text, count in numbers[: LIMITS.values]}
    if rest := numbers[LIMITS.values :]:
        more = f"{labels.thousands(len(rest))} more sentences, which are in the records"
        shown[more] = labels.plural(sum(count for _, count in rest), "test")
    return shown


def _short(newest: Sequence[Stored], asked_s: float) -> str:
    """The shortest and longest sustain phase of the trials that results rest on, where that is too short."""
    shortest = [each.sustain_s[0] for each in newest if each.sustain_s]
    longest = [each.sustain_s[1] for each in newest if each.sustain_s]
    if not longest or min(longest) >= asked_s:
        return ""
    least, most = min(shortest), max(longest)
    return format_duration(least) if least == most else f"{format_duration(least)} to {format_duration(most)}"


def _lost(newest: Sequence[Stored], asked: float) -> str:
    """The losses that the campaigns allow, where they are more than is asked for."""
    limits = sorted({each.record.campaign.loss_ratio for each in newest})
    above = [format_ratio(limit) for limit in limits if limit > asked]
    return f"at most {', '.join(labels.some(labels.once(above), LIMITS.values))} lost" if above else ""
