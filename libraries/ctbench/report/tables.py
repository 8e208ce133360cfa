"""The figures of a report for other programs: summary.json and results.csv. Numbers are not rounded; rates are per
second, `loss_ratio` is a ratio, what ends in `_pct` is percent."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctbench.base.plain_text import printable
from ctbench.report import headline
from ctbench.report.reference import References, against
from ctbench.report.rows import relative
from ctbench.report.runs import RunSet
from ctbench.results.record import Record
from ctbench.results.store import Stored

#: What a formula begins with in spreadsheets, some of which take the wide forms too, or skip the tab and the newline.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Metrics of a floor that are a rate of the profile's unit.
_RATES = {"connections": "cps", "packets": "pps"}


def summary_json(runs: RunSet, output: Path, references: References) -> str:
    """The verdict with its counts, and every test."""
    tally = headline.Tally.of(runs)
    document = {
        "schema_version": 1,
        "verdict": {"met": "met", "missed": "missed"}.get(tally.tone, "not measured"),
        "sentence": headline.sentence(tally),
        "counts": {
            "met": tally.met,
            "missed": tally.missed,
            "not measured": tally.not_measured,
            "skipped": tally.skipped,
            "failed without record": tally.failed,
            "unreadable": tally.unreadable,
        },
        "run_ids": list(dict.fromkeys(each.record.run_id for each in runs.stored)),
        "tests": [figures(each, output, references) for each in runs.newest],
        "without_record": [test.model_dump() for test in runs.without_record],
        "unreadable": [_path(broken.path, output) for broken in runs.broken],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def results_csv(newest: Sequence[Stored], output: Path, references: References) -> str:
    """A line for each test (RFC 4180)."""
    lines = [{key: _cell(value) for key, value in figures(each, output, references).items()} for each in newest]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0]) if lines else ["suite", "test", "verdict"])
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def figures(each: Stored, output: Path, references: References) -> dict[str, Any]:
    """Everything that a row of the page shows, as numbers; None where there is none."""
    record, found = each.record, each.record.measured
    compared = against(record, references.find(record))
    times = found.setup_time_us if found else None
    latency = found.latency_us if found else None
    return {
        "suite": record.suite,
        "test": record.test,
        "topology": record.topology.key,
        "profile": record.profile.name,
        "campaign": record.campaign.get("name"),
        "testbed": record.environment.testbed.get("name"),
        "verdict": record.verdict,
        "unit": record.profile.kind,
        "floor": _floor(record),
        "measured": found.rate if found else None,
        "margin_pct": record.margin_pct,
        "limited_by": record.limited_by,
        "searches": len(record.capacities),
        "spread_pct": None if record.spread is None else record.spread * 100,
        "upper_bound": record.upper_bound,
        "pps": found.pps if found else None,
        "bps": found.bps if found else None,
        "active_connections": found.active_connections if found else None,
        "loss_ratio": found.loss_ratio if found else None,
        "setup_p99_us": times.p99 if times else None,
        "latency_p99_us": latency.p99 if latency else None,
        "reference": compared.figure.label if compared else None,
        "reference_rate": compared.theirs if compared else None,
        "reference_difference_pct": compared.difference_pct if compared else None,
        "reference_other_hardware": compared.other_hardware if compared else None,
        "reason": record.verdict_reason,
        "started": record.started.isoformat(),
        "run_id": record.run_id,
        "record": _path(each.path, output),
    }


def _path(path: Path, output: Path) -> str:
    return printable(relative(path, output))


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula begins with an apostrophe, which makes it a text there."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _floor(record: Record) -> float | None:
    """The promised rate in the unit of the profile; None where nothing was compared."""
    metric = _RATES[record.profile.kind]
    return next((threshold.limit for threshold in record.thresholds if threshold.metric == metric), None)
