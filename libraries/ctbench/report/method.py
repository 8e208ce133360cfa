"""How the figures were measured, and where that deviates from the standards."""

from collections import Counter
from collections.abc import Sequence

from ctbench.base.units import format_duration, format_ratio
from ctbench.report import enough, labels
from ctbench.report.remarks import Deviation, Note
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
    "“At least” marks a lower bound (“at most”, where lower is better): the generator or the "
    "campaign's range ended the measurement before the DUT did, so the DUT may do better.",
    "Margin says how much better than the floor the figure is: +100 % is twice as good, whether a higher or a lower "
    "figure is better. It is the smallest margin of the test's promises.",
    "Lost is everything that was intended and not completed, also what was never sent. State is flushed before each "
    "trial.",
    "Spread is the range of repetitions relative to their median; of a single search, how far above the capacity the "
    "next load was that did not hold.",
)
#: What the procedures do, in a sentence.
_PROCEDURES = {
    "highest-rate": "searches for the capacity: the highest load whose loss stays within the limit",
    "table-dump": "prints the connection table beside a load that the device under test holds alone",
    "port-churn": "adds and deletes ports of the bridge beside a load that the device under test holds alone",
    "revalidation": "asks how long it took to look at all datapath flows, beside the load that keeps them alive",
    "revalidation-sweep": "the same, where that is forced ten times a second",
    "interface-statistics": "looks for the collections of statistics in the main thread's CPU time, beside a load",
    "at-floor": "offers the load that the floor promises, and no other one",
    "table-capacity": "opens connections, keeps them open, asks each a message, and compares their number with the "
    "DUT's own count at every step",
    "table-drain": "opens connections, leaves them, and asks the DUT until it counts none",
    "table-steady": "offers a rate for longer than connections are remembered, and compares the table's level with "
    "rate x (lifetime + timeout)",
    "table-full": "fills the table, opens more, asks those that are open, makes room and opens more again",
}


def methodology(records: Sequence[Record]) -> tuple[str, ...]:
    """What was measured and how, what the words on the page mean, and what the campaigns say of themselves."""
    campaigns = enough.once(
        f"Campaign {record.campaign.name}: {said}"
        for record in records
        if (said := record.campaign.description.strip())
    )
    return (*enough.some(campaigns, enough.VALUES), *_procedures(records), *_VERDICTS)


def _procedures(records: Sequence[Record]) -> tuple[str, ...]:
    """Each procedure with what it measured, and of how many tests."""
    tests = Counter((record.procedure, record.metric) for record in records)
    said = []
    for procedure in dict.fromkeys(procedure for procedure, _ in tests):
        measured = [
            f"{METRICS[metric].title} ({labels.plural(number, 'test')})"
            for (by, metric), number in tests.items()
            if by == procedure
        ]
        does = f": it {_PROCEDURES[procedure]}" if procedure in _PROCEDURES else ""
        said.append(f"Procedure {procedure} measured {' and '.join(measured)}{does}.")
    return enough.some(said, enough.VALUES)


def deviations(newest: Sequence[Stored]) -> tuple[Deviation, ...]:
    """Where the campaigns fall short of the standards, by what the trials of the records really were."""
    found: list[Deviation] = []
    records = [each.record for each in newest]
    of_connections = [
        each
        for each in newest
        if each.record.profile.kind == "connections" and each.sustain_s and not METRICS[each.record.metric].of_table
    ]
    of_packets = [each for each in newest if each.record.profile.kind == "packets" and each.sustain_s]
    if lengths := _short(of_connections, _RFC_9411_SUSTAIN_S):
        found.append(Deviation("RFC 9411, 7.2", "a sustain phase of 300 s", lengths))
    if lengths := _short(of_packets, _RFC_2544_SUSTAIN_S):
        found.append(Deviation("RFC 2544, 24", "trials of at least 60 s", lengths))
    connections, packets = ([each.record for each in some] for some in (of_connections, of_packets))
    limits = sorted({limit for record in connections if (limit := record.campaign.loss_ratio) > _RFC_9411_LOSS})
    if limits:
        allowed = _listed([format_ratio(limit) for limit in limits])
        found.append(Deviation("RFC 9411, 7.2", "fewer than 0.001 % failed transactions", f"at most {allowed} lost"))
    if any(record.campaign.loss_ratio > 0 for record in packets):
        allowed = _listed(sorted({format_ratio(record.campaign.loss_ratio) for record in packets}))
        found.append(Deviation("RFC 2544, 26.1", "throughput without any loss", f"at most {allowed} lost"))
    substitutes = {
        (old, new) for record in records for old, new in record.campaign.profiles.items() if record.profile.name == new
    }
    found += [
        Deviation(
            "2022 article",
            f"the profile {old}",
            f"the substitute profile {new}, whose floor follows from the same packet rate",
        )
        for old, new in sorted(substitutes)[: enough.VALUES]
    ]
    return tuple(found)


def floor_sources(records: Sequence[Record]) -> tuple[Note, ...]:
    """Where the promises come from."""
    return _counted([record.floor.source for record in records])


def notes(records: Sequence[Record]) -> tuple[Note, ...]:
    """What the records say of themselves, each sentence once."""
    return _counted([note for record in records for note in dict.fromkeys(record.notes)])


def _counted(sentences: Sequence[str]) -> tuple[Note, ...]:
    counted = list(Counter(sentences).items())
    shown = [Note(enough.sentence(text), labels.plural(count, "test")) for text, count in counted[: enough.VALUES]]
    if rest := counted[enough.VALUES :]:
        more = f"{labels.thousands(len(rest))} more sentences, which are in the records"
        shown.append(Note(more, labels.plural(sum(count for _, count in rest), "test")))
    return tuple(shown)


def _short(newest: Sequence[Stored], asked_s: float) -> str:
    """The shortest and longest sustain phase of the trials that results rest on, where that is too short."""
    shortest = [each.sustain_s[0] for each in newest if each.sustain_s]
    longest = [each.sustain_s[1] for each in newest if each.sustain_s]
    if not longest or min(longest) >= asked_s:
        return ""
    least, most = min(shortest), max(longest)
    return format_duration(least) if least == most else f"{format_duration(least)} to {format_duration(most)}"


def _listed(values: list[str]) -> str:
    return ", ".join(enough.some(enough.once(values), enough.VALUES))
