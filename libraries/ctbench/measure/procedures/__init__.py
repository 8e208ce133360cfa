"""The procedures that there are. A new one is a file here; `ctbench.measure.promises` says what it is used for."""
