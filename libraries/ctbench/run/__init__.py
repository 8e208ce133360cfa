"""An acceptance run: the order of its steps, its state, the records and the exit status."""
