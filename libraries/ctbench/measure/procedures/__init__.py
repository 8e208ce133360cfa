"""The procedures. A new one is a file here; `ctbench.measure.promises` registers what it promises."""
