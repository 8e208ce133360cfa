"""Compiles the generator: `python -m ctbench.traffic.software --warm-up`, so that later starts are quick."""

import argparse
import sys

from ctbench.base.errors import CtbenchError
from ctbench.traffic.software.generator import warm_up


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ctbench.traffic.software", description=__doc__)
    parser.add_argument("--warm-up", action="store_true", required=True, help="compile the kernel functions")
    parser.parse_args()
    try:
        warm_up()
    except CtbenchError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
