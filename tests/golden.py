"""A run of this project as it really was, and its report."""

from functools import cache
from pathlib import Path

from ctbench.report.compose import compose
from ctbench.report.runs import read_runs
from ctbench.report.write import documents

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden-run"


@cache
def render() -> dict[str, str]:
    """Text of each file of the report by its name."""
    runs = read_runs([GOLDEN])
    made = documents(runs, compose(runs, GOLDEN), GOLDEN)
    return {name: text if isinstance(text, str) else text.decode() for name, text in made.items()}
