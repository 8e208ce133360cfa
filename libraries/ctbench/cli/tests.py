"""The command `./run tests`: all tests of this checkout, which tools/all_tests.py runs."""

import argparse

from ctbench.cli.check import become


def main(options: argparse.Namespace) -> int:
    become("tools.all_tests", *options.rest)
