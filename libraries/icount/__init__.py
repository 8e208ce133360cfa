"""Counts instructions in an emulated machine, whose clock is its own instruction count: what a packet costs is the same
on every host (docs/emulated.md). `python -m icount --help` is its command.

The door is `Counter` with its three functions, `count`, `functions` and `keep_image`, and what tells a user's kernel or
image before it is booted. `image` makes what a machine boots, `machine` boots it, saves it when it is ready, starts it
from there and reads what it says. What runs inside is in `guest`; what it is set up as, one file a topology, is in
resources/rulesets/emulated.
"""

from icount.counter import Counter, Setup
from icount.errors import IcountError, Invalid, Missing
from icount.image import check_image, missing_programs
from icount.kernel import UNPACKED, check_kernel, read_release
from icount.machine import Counted, Workload

__all__ = [
    "UNPACKED", "Counted", "Counter", "IcountError", "Invalid", "Missing", "Setup", "Workload",
    "check_image", "check_kernel", "missing_programs", "read_release",
]  # fmt: skip
