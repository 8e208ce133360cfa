"""Robot Framework for the commands: the only modules of `ctbench` that import it."""
