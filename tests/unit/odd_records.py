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
    "deep mappings": (b'{"a":' * 100_000, "is not JSON (recursion limit exceeded"),
    "deep facts": (_raw("environment.dut.x", "[" * 5000 + "]" * 5000), "recursion limit exceeded"),
    "a list": (b"[]", "the record: [] is not of type 'object'"),
    "a number": (b"1", "the record: 1 is not of type 'object'"),
    "another version": (_document("schema_version", 3), "schema_version: 3 is not known"),
    "a version of a million digits": (_raw("schema_version", "9" * 1_000_000), "is not JSON"),
    "the first year, east of UTC": (_document("started", "0001-01-01T00:00:00+14:00"), "beyond the years 1 to 9999"),
    "the last year, west of UTC": (_document("ended", "9999-12-31T23:59:59-14:00"), "beyond the years 1 to 9999"),
    "a naive date": (_document("started", "2025-01-01T00:00:00"), "started: "),
    "no date": (_document("started", None), "started: "),
    "half a surrogate pair": (_raw("test", '"\\ud800"'), "is not JSON"),
    "infinity": (_raw("figures.cps.value", "1e999"), "figures.cps.value: "),
    "infinity by name": (_raw("figures.pps.value", "Infinity"), "figures.pps.value: "),
    "no number": (_raw("evidence.trials.0.trial.load", "NaN"), "evidence.trials.0.trial.load: "),
    "no number in a fact": (_raw("environment.dut.x", "NaN"), "environment.dut: "),
    "infinity in a campaign": (_raw("campaign.settle", "1e999"), "campaign: "),
    "the largest float": (_document("figures.cps.value", 1e308), "figures.cps.value: "),
    "the least float": (_document("margin_pct", -1e308), "margin_pct: "),
    "a large fact": (_document("environment.machine.memory", 1e308), "environment.machine: "),
    "5000 digits": (_raw("evidence.trials.0.trial.intended", "9" * 5000), "is not JSON"),
    "4000 digits in a fact": (_raw("environment.dut.x", "9" * 4000), "environment.dut: has a number that is not"),
    "4000 digits in facts of many": (_raw("environment.machine.x", "9" * 4000), "environment.machine: has a number"),
    "4000 digits": (_raw("evidence.trials.0.trial.intended", "9" * 4000), "evidence.trials.0.trial.intended: "),
    "a negative count": (_document("evidence.trials.0.trial.completed", -1), "evidence.trials.0.trial.completed: "),
    "a negative rate": (_document("figures.cps.value", -1.0), "figures: cps is negative"),
    "a trial without length": (
        _document("evidence.trials.0.trial.duration_s", 0),
        "evidence.trials.0.trial.duration_s: ",
    ),
    "a number as text": (_document("figures.cps.value", "1000"), "figures.cps.value: "),
    "a truth as number": (_document("evidence.trials.0.trial.completed", True), "evidence.trials.0.trial.completed: "),
    "DUT a list": (_document("environment.dut", []), "environment.dut: "),
    "DUT nothing": (_document("environment.dut", None), "environment.dut: "),
    "version a mapping": (_document("environment.dut.version", {"a": 1}), "environment.dut.version"),
    "kernel nothing": (_document("environment.machine.kernel", None), "environment.machine.kernel: "),
    "CPUs a number": (_document("environment.machine.usable_cpus", 2), "environment.machine.usable_cpus: "),
    "hugepages of words": (_document("environment.machine.hugepages", ["a"]), "environment.machine.hugepages.0: "),
    "hugepages without size": (_document("environment.machine.hugepages", [{"total": 1}]), "hugepages.0: "),
    "machine of the DUT a text": (_document("environment.dut.machine", "x"), "environment.dut.machine: "),
    "memory a list": (_document("environment.dut.memory", [1]), "environment.dut.memory: "),
    "placement of words": (_document("environment.dut.placement", {"pmd": "1"}), "environment.dut.placement.pmd: "),
    "DUTs of the testbed a number": (_document("environment.testbed.duts", 3), "environment.testbed.duts: "),
    "a campaign without words": (_document("campaign.description", None), "campaign.description: "),
    "stand-ins a list": (_document("campaign.profiles", ["a"]), "campaign.profiles: "),
    "a loss of a text": (_document("campaign.loss_ratio", "0"), "campaign.loss_ratio: "),
    "an unknown metric": (_document("metric", "speed"), 'metric: "speed" is not a metric of this version'),
    "a figure of an unknown metric": (_document("figures.speed", {"value": 1, "unit": "s"}), "figures.speed: "),
    "a figure in another unit": (_document("figures.cps.unit", "packets/s"), 'the unit of cps is "packets/s"'),
    "a figure between nothing": (_document("figures.cps.low", 1e9), "figures.cps: low is 1e+09, which is above high"),
    "a promise of an unknown metric": (_document("thresholds.0.metric", "speed"), "thresholds.0.metric: "),
    "a promise without a number": (_document("thresholds.0.limit", ">= many"), "thresholds.0.limit: "),
    "samples of every 0 s": (_document("evidence.series.0.every_s", 0), "evidence.series.0.every_s: "),
    "a record of version 1 and 2": (_document("schema_version", 1), "topology: cpus is a key of another version"),
    "an unknown key": (_document("colour", "red"), "'colour' was unexpected"),
    "an unknown key of 5000 letters": (_document("k" * 5000, 1), "was unexpected"),
    "an escape in a key": (_document("\x1b[31m", 1), "\\x1b[31m"),
}
