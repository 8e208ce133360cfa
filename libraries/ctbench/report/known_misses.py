"""Known misses: what an SLA file accepts, with its ticket and its root cause, and what became of it from release to
release."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from ctbench.report import labels, method
from ctbench.report.page import KnownMiss, ReportRow
from ctbench.results.record import Record
from ctbench.results.record_model import Accepted

#: Of records of earlier releases.
NO_TICKET = "no ticket"


def known_misses(tests: Iterable[Sequence[Record]], rows: Iterable[ReportRow]) -> tuple[KnownMiss, ...]:
    """Tests whose miss an SLA file accepted in one of the runs or more, with the newest entry. `rows` are those of the
    `tests`, whose records are oldest first."""
    found = []
    for test, row in zip(tests, rows, strict=True):
        entry = next((record.floor.accepted for record in reversed(test) if record.floor.accepted), None)
        if entry:
            ticket, because = labels.sentence(entry.ticket) or NO_TICKET, labels.sentence(entry.because)
            found.append(KnownMiss(row, ticket, because, _accepted(test[-1], entry), labels.some(_became(test))))
    return tuple(found)


def _accepted(newest: Record, entry: Accepted) -> str:
    """By whom and until when, and what to do about it."""
    said = f"until {entry.until} by {labels.name(entry.by)}"
    if newest.floor.accepted is None:
        return f"{said}; the SLA file no longer says so"
    if newest.verdict == "met":
        return f"{said}; it is met: remove the entry"
    return said if newest.ended.date() <= entry.until else f"{said}; that day has passed"


def _became(test: Sequence[Record]) -> list[str]:
    """How each release did, the newest first; of several runs of one, the newest."""
    releases = [(release, list(runs)) for release, runs in groupby(test, method.dut)]
    return [_did(release, runs) for release, runs in reversed(releases)]


def _did(release: str, runs: Sequence[Record]) -> str:
    margin = f", {labels.margin(runs[-1].margin_pct)}" if runs[-1].margin_pct is not None else ""
    several = f" (the newest of {len(runs)} runs)" if len(runs) > 1 else ""
    return f"{labels.name(release) or 'unknown release'}: {runs[-1].verdict}{margin}{several}"
