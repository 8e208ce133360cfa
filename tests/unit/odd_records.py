"""Documents that are no records: what may lie among the records of a run, and what is said of each."""

from .records import changed as _document


def _raw(path: str, text: str) -> bytes:
    """A document with a value at a place that Python does not write."""
    return _document(path, "PLACE").replace(b'"PLACE"', text.encode())


#: Name, content, and what is said of it.
CONTENTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not JSON"),
    "bytes": (b"\xff\xfe\x00", "is not JSON"),
    "deep lists": (b"[" * 100_000, "is not JSON (recursion limit exceeded"),
    "cut off": (b'{"schema_version": 2', "is not JSON"),
    "no version": (b"{}", "schema_version: missing is not known"),
    "another verdict": (_document("verdict", "perhaps"), "verdict: "),
    "trials without numbers": (_document("evidence.trials", [{"state": "good"}]), "evidence.trials.0."),
    "a figure without value": (_document("figures.cps", {"unit": "s"}), "figures.cps.value: "),
    "a list": (b"[]", "the file: "),
    "another version": (_document("schema_version", 3), "schema_version: 3 is not known"),
    "a naive date": (_document("started", "2025-01-01T00:00:00"), "started: "),
    "half a surrogate pair": (_raw("test", '"\\ud800"'), "is not JSON"),
    "infinity": (_raw("figures.cps.value", "1e999"), "figures.cps.value: "),
    "no number": (_raw("evidence.trials.0.trial.load", "NaN"), "evidence.trials.0.trial.load: "),
    "a negative count": (_document("evidence.trials.0.trial.completed", -1), "evidence.trials.0.trial.completed: "),
    "a negative rate": (_document("figures.cps.value", -1.0), "figures: cps is negative"),
    "a trial without length": (
        _document("evidence.trials.0.trial.duration_s", 0),
        "evidence.trials.0.trial.duration_s: ",
    ),
    "a number as text": (_document("figures.cps.value", "1000"), "figures.cps.value: "),
    "DUT a list": (_document("environment.dut", []), "environment.dut: "),
    "version a mapping": (_document("environment.dut.version", {"a": 1}), "environment.dut.version"),
    "hugepages without size": (_document("environment.machine.hugepages", [{"total": 1}]), "hugepages.0"),
    "DUTs of the testbed a number": (_document("environment.testbed.duts", 3), "environment.testbed.duts: "),
    "a campaign without words": (_document("campaign.description", None), "campaign.description: "),
    "an unknown metric": (_document("metric", "speed"), 'metric: "speed" is not a metric of this version'),
    "a figure in another unit": (_document("figures.cps.unit", "packets/s"), 'the unit of cps is "packets/s"'),
    "a figure between nothing": (_document("figures.cps.low", 1e9), "figures.cps: low is 1e+09, which is above high"),
    "a promise without a number": (_document("thresholds.0.limit", ">= many"), "thresholds.0.limit: "),
    "samples of every 0 s": (_document("evidence.series.0.every_s", 0), "evidence.series.0.every_s: "),
    "version 1": (_document("schema_version", 1), "schema_version: 1 is not known"),
    "an unknown key of 5000 letters": (_document("k" * 5000, 1), "kkk"),
    "an escape in a key": (_document("\x1b[31m", 1), "\\x1b[31m"),
}
