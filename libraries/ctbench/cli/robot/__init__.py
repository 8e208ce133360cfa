"""Robot Framework as the commands start it: the only modules of `ctbench` that import it."""
