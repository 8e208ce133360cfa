"""Measure connection tracking of a real device under test and judge it against a service level agreement.

Plain Python without Robot Framework. Floors of the house, top to bottom, an import goes down only:
`cli` → `run` → `doctor` → `report` → `sla` → `measure` → `testbed` → `results` → `dut`, `traffic` → `hosts` →
`base`. `./run check lint` holds this order ([tool.importlinter] in pyproject.toml).
"""

__version__ = "0.1.0"
