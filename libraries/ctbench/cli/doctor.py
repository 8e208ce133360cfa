"""`./run doctor`: looks at the hosts of a testbed and says what has to be mended before a run; changes nothing."""

import argparse
import os
import sys

from ctbench.base.errors import CtbenchError
from ctbench.base.yaml_files import load
from ctbench.cli.boundary import enter
from ctbench.doctor.examine import Section, examine
from ctbench.doctor.table import MARKS, PLAIN_MARKS, closing_line, is_well, section_text
from ctbench.run.exit_status import ExitStatus
from ctbench.testbed.config import TestbedConfig


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./run doctor",
        description="Look at the hosts of a testbed, and say what is not set up and which command mends it. Changes"
        " nothing.",
        epilog="Exit status: 0 nothing has to be mended; 6 something has, or a host cannot be reached; 2 wrong usage;"
        " 4 invalid value in the testbed file.",
    )
    parser.add_argument("testbed", nargs="?", default="local", help="name or path (default: %(default)s)")
    return parser


def main() -> int:
    """The command line; returns the exit status."""
    options = arguments().parse_args()
    marks = MARKS if _can_show("".join(MARKS.values())) else PLAIN_MARKS
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    sections: list[Section] = []
    try:
        testbed = load("testbeds", options.testbed, TestbedConfig)
        print(f"Testbed {testbed.name} ({testbed.file})")
        for section in examine(testbed, _say):
            sections.append(section)
            print(f"\n{section_text(section, marks=marks, colour=colour)}", flush=True)
    except CtbenchError as error:
        print(f"doctor: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    print(f"\n{closing_line(sections, marks)}")
    return ExitStatus.MET if is_well(sections) else ExitStatus.NOTHING_MEASURED


def _say(line: str) -> None:
    print(f"doctor: {line} ...", file=sys.stderr, flush=True)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


if __name__ == "__main__":
    enter("doctor", lambda: main)
