"""The procedures that there are. A new one is a file here; `ctbench.run.choice` says when it is used."""
