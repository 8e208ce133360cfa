"""The judgement of what was counted of two kernels: does the candidate cost more instructions than the base?"""

import statistics
from collections.abc import Sequence

from ctbench.base.units import format_margin
from ctbench.dut.topology import Topology
from ctbench.results.metrics import COSTS, METRICS
from ctbench.results.record import Record
from ctbench.results.verdict import Code, Verdict, by_difference

#: What costs more by no more than this is not a regression, 0.5 %: new connections differ by as much from one seed of
#: the hash functions to the next.
LEAST_OF_COUNTS = 0.005
#: What has to be the same on both sides where instructions are counted, as records name it: nothing that is compared.
_ALIKE = {"qemu": "QEMU", "packages": "the packages in the machine", "seeds": "the number of seeds"}

#: A test is the same on either side when these are: the topology, the name of the profile that was offered, and the
#: metric that is compared.
TestKey = tuple[Topology, str, str]


def judge_counts(base: Sequence[Record], candidate: Sequence[Record]) -> list[tuple[str, Verdict]]:
    """Compare what was counted of the two sides, matched by topology, profile and metric: test by test."""
    ours, theirs = _by_test(base), _by_test(candidate)
    return [_judged(ours.get(key), theirs.get(key)) for key in dict.fromkeys([*ours, *theirs])]


def differences(base: Sequence[Record], candidate: Sequence[Record]) -> list[str]:
    """What else the sides differ in, one sentence each."""
    machines = [each.environment.dut for each in (*base, *candidate)]
    return [
        f"The sides differ in {name} as well, so a difference may not be what is compared."
        for key, name in _ALIKE.items()
        if len({str(getattr(machine, key, None)) for machine in machines}) > 1
    ]


def _by_test(records: Sequence[Record]) -> dict[TestKey, Record]:
    """The tests that count instructions; of rows that count the same, the first."""
    found: dict[TestKey, Record] = {}
    for record in records:
        if record.metric in COSTS:
            found.setdefault((record.topology, record.profile.name, record.metric), record)
    return found


def _judged(base: Record | None, candidate: Record | None) -> tuple[str, Verdict]:
    """By the medians, and by how far the seeds lie apart. A side that was not proved has no figure."""
    known = candidate or base
    assert known is not None, "one of the two has the test"
    ours, theirs = _seeds(base), _seeds(candidate)
    if not ours or not theirs or min(ours) <= 0:
        name, lacking = ("candidate", candidate) if ours else ("base", base)
        return known.test, Verdict(None, Code.NOTHING, f"of the {name}: {_without(lacking)}")
    difference = _pct(statistics.median(theirs), statistics.median(ours))
    low, high = _pct(min(theirs), max(ours)), _pct(max(theirs), min(ours))
    seen = f"{format_margin(difference)} ({format_margin(low)} to {format_margin(high)} over the seeds)"
    return known.test, by_difference(difference, low, LEAST_OF_COUNTS * 100, seen)


def _seeds(record: Record | None) -> Sequence[float]:
    """What was counted with each seed."""
    figure = record.figures.get(record.metric) if record else None
    return figure.repetitions if figure else ()


def _without(record: Record | None) -> str:
    """Why there is no figure of a test."""
    if record is None:
        return "there is no record of it"
    if record.verdict == "not measured":
        return f"not measured: {record.verdict_reason.rstrip('.')}"
    return f"its record has no figure of {METRICS[record.metric].title}"


def _pct(value: float, of: float) -> float:
    return (value / of - 1) * 100
