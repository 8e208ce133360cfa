"""What docs/evidence/ is made from: simulations of the rules, and measurements that are made by hand."""

import sys
from pathlib import Path

# Simulated DUTs, and what else only tests have.
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
