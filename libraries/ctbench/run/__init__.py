"""An acceptance run: the order of things, what is known so far, the records and the exit status."""
