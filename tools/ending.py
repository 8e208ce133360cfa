"""How a tool ends: a mistake is a sentence and a status, a signal the status of it."""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from ctbench.base.errors import CtbenchError
from icount import IcountError


def run(main: Callable[[], int]) -> NoReturn:
    """Call `main` and end this process with its status."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` has seen enough
    try:
        sys.exit(main())
    except (CtbenchError, IcountError) as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_status)
