"""The software traffic generator: complete TCP and UDP connections over shared memory, from one thread.

Python plans a trial, connects to the DUT and reads what was counted; the kernel, in C, sends and takes every frame.
"""
