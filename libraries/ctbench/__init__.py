"""Measure connection tracking of a real device under test and judge it against a service level agreement.

Plain Python without Robot Framework. Floors of the house, top to bottom, an import goes down only:
`acceptance`, `testbed` → `measure`, `sla`, `report` → `dut`, `traffic`, `results` → `hosts` → `units`, `errors`.
"""

__version__ = "0.1.0"
