"""Tools for who works on the suite (README.md), each started in the root of a checkout by the Python of its .venv."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "libraries"))
