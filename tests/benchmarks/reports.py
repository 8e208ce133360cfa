"""How long the report of a year takes, and how much memory: made-up runs, multiplied from those of the golden run.

Run by hand: PYTHONPATH=libraries .venv/bin/python tests/benchmarks/reports.py [--records 10000] [--folder DIR]
For 60 tests measured again and again, and for as many different tests; prints seconds, peak memory and the size of the
page. Nothing is measured but the report.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ctbench.results.record import from_json

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "tests" / "data" / "golden-run" / "records"


def make_year(folder: Path, count: int, tests: int) -> Path:
    """Write `count` records of `tests` tests into `folder`, one run after another; every rate is a little different."""
    golden = [path for path in sorted(RECORDS.glob("*.json")) if path.stem != "broken"]
    models = [json.loads(from_json(path.read_bytes(), path.name).to_json()) for path in golden]
    records = folder / "records"
    records.mkdir(parents=True)
    for number in range(count):
        run, test = divmod(number, tests)
        text = json.dumps(_changed(models[test % len(models)], run, test), indent=1, ensure_ascii=False)
        (records / f"suite-{test % 12}.test-{test}-{run}.json").write_text(text)
    return folder


def _changed(model: dict[str, Any], run: int, test: int) -> dict[str, Any]:
    begun = datetime.fromisoformat(model["started"]) + timedelta(days=2 * run, seconds=30 * test)
    factor = 1 + ((run * 7919 + test * 104729) % 1000 - 500) / 10_000
    figures = model["figures"]
    if rate := figures.get(model["metric"]):
        scaled = {name: rate[name] and rate[name] * factor for name in ("value", "low", "high")}
        figures = figures | {model["metric"]: rate | scaled}
    return model | {
        "run_id": f"run-{run:05d}",
        "suite": f"{model['suite']} {test % 12}",
        "test": f"{model['test']}, number {test}",
        "started": begun.isoformat(),
        "ended": (begun + timedelta(seconds=28)).isoformat(),
        "figures": figures,
    }


def report(folder: Path) -> tuple[float, float, int, str]:
    """Write the report as a user would: seconds, peak memory in MB, bytes of the page, and what was said."""
    begun = time.monotonic()
    code = "import resource, sys; from ctbench.cli import report; report.main(sys.argv[1:])"
    code += "; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    said, _, peak = done.stdout.splitlines()
    return time.monotonic() - begun, int(peak) / 1024, (folder / "report.html").stat().st_size, said


def main() -> None:
    """Both kinds of a year."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="keep the runs and their reports here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for tests in (60, options.records):
            folder = (options.folder or Path(temporary)) / f"of-{tests}-tests"
            if not folder.exists():
                make_year(folder, options.records, tests)
            seconds, peak, size, said = report(folder)
            print(f"{options.records} records of {tests} tests: {seconds:.1f} s, {peak:.0f} MB, "
                  f"page {size / 1e6:.2f} MB. {said}", flush=True)  # fmt: skip


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
