"""A counter of instructions in an emulated machine, whose clock is its own instruction count, so that a packet costs
the same on every host within 0.2 % (docs/emulated.md). `python -m icount --help` is its command.

The interface is `Counter` with its three functions, `count`, `functions` and `keep_image`, and the checks of a user's
kernel or image before it is booted. `image` makes what a machine boots. `machine` boots it, saves it when it is ready,
starts it from that state and reads its output. `guest` has what runs inside; resources/rulesets/emulated has its
set-ups, one file a topology.
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
