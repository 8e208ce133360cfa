"""Compiles the generator's kernel, so that no trial waits for it: `python -m ctbench.traffic.software`."""

import sys

from ctbench.base.errors import CtbenchError
from ctbench.traffic.software.library import kernel

try:
    kernel()
except CtbenchError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_status)
except KeyboardInterrupt:
    sys.exit(130)
