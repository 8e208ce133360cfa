"""Renders the page of the golden run again, after an intended change of it:

PYTHONPATH=libraries .venv/bin/python tests/golden.py
"""

from pathlib import Path

from ctbench.report.compose import compose
from ctbench.report.reference import read_references
from ctbench.report.runs import read_runs
from ctbench.report.write import STYLE_SHEET, documents

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden-run"
REFERENCES = [ROOT / "results" / "reference" / name for name in ("ovs-3.0.0", "ovs-2.17.2")]


def render() -> dict[str, str]:
    """Text of each file of the report by its name, without the style sheet: that is the same file in every report."""
    runs, references = read_runs([GOLDEN]), read_references(REFERENCES)
    texts = documents(runs, compose(runs, GOLDEN, references), GOLDEN, references)
    return {name: text for name, text in texts.items() if name != STYLE_SHEET.name}


if __name__ == "__main__":
    (GOLDEN / "report.html").write_text(render()["report.html"], encoding="utf-8", newline="")
    print(f"{GOLDEN / 'report.html'} rendered")
