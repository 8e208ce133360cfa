"""Compiles the generator, so that later starts are quick: `python -m ctbench.traffic.software`."""

import sys

from ctbench.base.errors import CtbenchError
from ctbench.traffic.software.generator import warm_up

try:
    warm_up()
except CtbenchError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_status)
except KeyboardInterrupt:
    sys.exit(130)
