"""The testbed: its file, its CPUs, its DUTs, and the connectors that join a traffic generator to them."""
