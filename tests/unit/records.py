"""Made-up records as JSON documents, the golden ones, and documents that are no records, for what reads and writes
them."""

import json
from pathlib import Path
from typing import Any

from ctbench.results.record import Record, from_json

DATA = Path(__file__).resolve().parents[1] / "data"
GOLDEN_FILES = sorted(path for path in DATA.glob("golden-run/records/*.json") if path.stem != "broken")


def document(**changes: Any) -> dict[str, Any]:
    """A record of version 2 that has every part: a search for connections per second; `changes` replace keys."""
    return json.loads((DATA / "record.json").read_text()) | changes


def record(**changes: Any) -> Record:
    """The same, read."""
    return from_json(json.dumps(document(**changes)), "made-up.json")


def changed(path: str, value: Any, whole: dict[str, Any] | None = None) -> bytes:
    """A document with another value at a place such as `environment.dut.version`."""
    whole = document(test="Odd") if whole is None else whole
    part: Any = whole
    *parents, key = path.split(".")
    for parent in parents:
        part = part[int(parent)] if isinstance(part, list) else part.setdefault(parent, {})
    part[int(key) if isinstance(part, list) else key] = value
    return json.dumps(whole).encode()


def raw(path: str, text: str) -> bytes:
    """A document with a value at a place that Python does not write."""
    return changed(path, "PLACE").replace(b'"PLACE"', text.encode())


#: What may lie among the records of a run: name, content, and what is said of it.
CONTENTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not JSON"),
    "bytes": (b"\xff\xfe\x00", "is not JSON"),
    "deep lists": (b"[" * 100_000, "is not JSON (recursion limit exceeded"),
    "cut off": (b'{"schema_version": 2', "is not JSON"),
    "no version": (b"{}", "schema_version: missing is not known"),
    "another verdict": (changed("verdict", "perhaps"), "verdict: "),
    "trials without numbers": (changed("evidence.trials", [{"state": "good"}]), "evidence.trials.0."),
    "a figure without value": (changed("figures.cps", {"unit": "s"}), "figures.cps.value: "),
    "a list": (b"[]", "the file: "),
    "another version": (changed("schema_version", 3), "schema_version: 3 is not known"),
    "a naive date": (changed("started", "2025-01-01T00:00:00"), "started: "),
    "half a surrogate pair": (raw("test", '"\\ud800"'), "is not JSON"),
    "infinity": (raw("figures.cps.value", "1e999"), "figures.cps.value: "),
    "no number": (raw("evidence.trials.0.trial.load", "NaN"), "evidence.trials.0.trial.load: "),
    "a negative count": (changed("evidence.trials.0.trial.completed", -1), "evidence.trials.0.trial.completed: "),
    "a negative rate": (changed("figures.cps.value", -1.0), "figures: cps is negative"),
    "a trial without length": (
        changed("evidence.trials.0.trial.duration_s", 0),
        "evidence.trials.0.trial.duration_s: ",
    ),
    "a number as text": (changed("figures.cps.value", "1000"), "figures.cps.value: "),
    "DUT a list": (changed("environment.dut", []), "environment.dut: "),
    "image a mapping": (changed("environment.dut.image", {"a": 1}), "environment.dut.image"),
    "hugepages without size": (changed("environment.machine.hugepages", [{"total": 1}]), "hugepages.0"),
    "DUTs of the testbed a number": (changed("environment.testbed.duts", 3), "environment.testbed.duts: "),
    "a campaign without words": (changed("campaign.description", None), "campaign.description: "),
    "an unknown metric": (changed("metric", "speed"), 'metric: "speed" is not a metric of this version'),
    "an unknown metric promised": (
        changed("thresholds.0.metric", "cpss"),
        'thresholds.0.metric: "cpss" is not a metric',
    ),
    "a figure in another unit": (changed("figures.cps.unit", "packets/s"), 'the unit of cps is "packets/s"'),
    "a figure between nothing": (changed("figures.cps.low", 1e9), "figures.cps: low is 1e+09, which is above high"),
    "a promise kept between nothing": (
        changed("thresholds.0.low", 2.0, json.loads(changed("thresholds.0.high", 1.0))),
        "thresholds.0: low is 2, which is above high",
    ),
    "a pair between nothing": (
        changed(
            "evidence.pairs",
            [
                {
                    "tested": {"key": "one"},
                    "other": {"key": "two"},
                    "how": "side by side",
                    "ratios": [1.0],
                    "looks": [{"value": 1.0, "low": 2.0, "high": 1.0, "rounds": 4}],
                }
            ],
        ),
        "evidence.pairs.0.looks.0: low is 2, which is above high",
    ),
    "a promise without a number": (changed("thresholds.0.limit", ">= many"), "thresholds.0.limit: "),
    "samples of every 0 s": (changed("evidence.series.0.every_s", 0), "evidence.series.0.every_s: "),
    "version 1": (changed("schema_version", 1), "schema_version: 1 is not known"),
    "an unknown key of 5000 letters": (changed("k" * 5000, 1), "kkk"),
    "an escape in a key": (changed("\x1b[31m", 1), "\\x1b[31m"),
}
