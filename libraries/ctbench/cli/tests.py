"""`./run tests`: becomes the program that runs all checks, which handles signals in its own way."""

import sys

from ctbench.cli.checks.tool import become


def main() -> int:
    """Never returns."""
    become(["python", "-m", "ctbench.cli.checks.whole_suite", *sys.argv[1:]], imports_ours=True)
