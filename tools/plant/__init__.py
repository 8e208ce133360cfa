"""What tools.prove plants: faults, and how a program gets one."""
