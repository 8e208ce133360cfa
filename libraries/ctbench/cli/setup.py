"""The command `./run setup`, once ./run has installed everything."""

import argparse
import sys

from ctbench.base.errors import ExitStatus


def main(_options: argparse.Namespace) -> int:
    print("run: everything is installed.", file=sys.stderr)
    return ExitStatus.MET
