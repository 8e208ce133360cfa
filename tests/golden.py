"""A run of this project as it really was, and its report."""

from pathlib import Path

from ctbench.report.compose import compose
from ctbench.report.reference import read_references
from ctbench.report.runs import read_runs
from ctbench.report.write import documents

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden-run"
REFERENCES = [ROOT / "results" / "reference" / name for name in ("ovs-3.0.0", "ovs-2.17.2")]


def render() -> dict[str, str]:
    """Text of each file of the report by its name."""
    runs, references = read_runs([GOLDEN]), read_references(REFERENCES)
    made = documents(runs, compose(runs, GOLDEN, references), GOLDEN, references)
    return {name: text if isinstance(text, str) else text.decode() for name, text in made}
