"""The figures of a report for other programs: summary.json and results.csv. Numbers are not rounded. Figures are
named as the metrics of `ctbench.results.metrics`, in their units: per second, ratios, seconds; what ends in `_pct` is
percent."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ctbench.base.plain_text import printable
from ctbench.report import figures, headline
from ctbench.report.kinds import Kinds
from ctbench.report.reference import References, against
from ctbench.report.rows import relative
from ctbench.report.runs import RunSet
from ctbench.results.metrics import METRICS, RELATIVE
from ctbench.results.record import Record
from ctbench.results.store import Stored

#: What a formula begins with in spreadsheets, some of which take the wide forms too, or skip the tab and the newline.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def summary_json(runs: RunSet, output: Path, references: References) -> str:
    """The verdict with its counts, and every test."""
    tally = headline.Tally.of(runs)
    document = {
        "schema_version": 2,
        "verdict": {"met": "met", "missed": "missed"}.get(tally.tone, "not measured"),
        "sentence": headline.sentence(tally),
        "counts": {
            "met": tally.met,
            "missed": tally.missed,
            "not measured": tally.not_measured,
            "skipped": tally.skipped,
            "left for the night": tally.left,
            "failed without record": tally.failed,
            "unreadable": tally.unreadable,
        },
        "kinds": asdict(Kinds.of([each.record for each in runs.newest])),
        "run_ids": list(dict.fromkeys(each.record.run_id for each in runs.stored)),
        "tests": [_in_summary(each, output, references) for each in runs.newest],
        "without_record": [test.model_dump() for test in runs.without_record],
        "unreadable": [_path(broken.path, output) for broken in runs.broken],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def results_csv(newest: Sequence[Stored], output: Path, references: References) -> str:
    """A line for each test (RFC 4180), with a column for each metric that there is."""
    lines = [_in_csv(each, output, references) for each in newest]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0]) if lines else ["suite", "test", "verdict"])
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in line.items()} for line in lines)
    return text.getvalue()


def _in_summary(each: Stored, output: Path, references: References) -> dict[str, Any]:
    """A test in summary.json: figures by metric, and every promise with what was measured of it."""
    record = each.record
    return {
        **_result(each),
        "figures": {name: figure.value for name, figure in record.figures.items()},
        "thresholds": [threshold.model_dump() for threshold in record.thresholds],
        **_origin(each, output, references),
    }


def _in_csv(each: Stored, output: Path, references: References) -> dict[str, Any]:
    return {
        **_result(each),
        **{name: figures.value_of(each.record, name) for name in METRICS},
        **_relative(each.record),
        **_origin(each, output, references),
    }


def _relative(record: Record) -> dict[str, Any]:
    """Of what compares with something else, the interval and what that is; and how the floor is meant."""
    shown = figures.deciding(record)
    found: dict[str, Any] = {
        "kind": shown.kind if shown else None,
        "kind_of_floor": figures.kind(shown) if shown else None,
    }
    for name in RELATIVE:
        promise = record.threshold(name)
        found |= {f"{name}_{key}": getattr(promise, key) if promise else None for key in ("low", "high", "to")}
    return found


def _result(each: Stored) -> dict[str, Any]:
    """Which test it is, and what was promised and found of the metric that its procedure looks for; None: nothing."""
    record, result = each.record, each.record.result
    promised = record.threshold(record.metric)
    spread = result.spread if result else None
    return {
        "suite": record.suite,
        "test": record.test,
        "topology": record.topology.key,
        "profile": record.profile.name,
        "campaign": record.campaign.name,
        "testbed": record.environment.testbed.name,
        "procedure": record.procedure,
        "verdict": record.verdict,
        "metric": record.metric,
        "unit": figures.metric_of(record).unit.name,
        "floor": promised.limit if promised else None,
        "measured": result.value if result else None,
        "margin_pct": record.margin_pct,
        "limited_by": record.limited_by,
        "searches": len(result.repetitions) if result else 0,
        "trials": each.trials,
        "trials_thrown_away": each.thrown_away,
        "spread_pct": None if spread is None else spread * 100,
        "upper_bound": record.evidence.upper_bound,
    }


def _origin(each: Stored, output: Path, references: References) -> dict[str, Any]:
    """What the test is compared with, and where its figures are from."""
    record = each.record
    compared = against(record, references.find(record))
    return {
        "reference": compared.figure.label if compared else None,
        "reference_metric": compared.metric.name if compared else None,
        "reference_value": compared.theirs if compared else None,
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
