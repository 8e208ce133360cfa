"""The testbed: its file, its CPUs, and how a traffic generator and a device under test are joined."""
