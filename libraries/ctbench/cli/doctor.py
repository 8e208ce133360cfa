"""`./run doctor`: looks at the hosts of a testbed and says what has to be fixed before a run; changes nothing, but
where it is to send frames."""

import argparse
import os
import sys
from collections.abc import Iterator

from ctbench.base.errors import ExitStatus
from ctbench.base.yaml_files import load
from ctbench.doctor.examine import MARKS, PLAIN_MARKS, Section, closing_line, examine, is_well, section_text
from ctbench.doctor.frames import send
from ctbench.testbed.config import TestbedConfig


def main(options: argparse.Namespace) -> int:
    marks = MARKS if _can_show("".join(MARKS.values())) else PLAIN_MARKS
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    sections: list[Section] = []
    testbed = load("testbeds", options.testbed, TestbedConfig)
    print(f"Testbed {testbed.name} ({testbed.file})")
    for section in _sections(testbed, frames=options.frames):
        sections.append(section)
        print(f"\n{section_text(section, marks=marks, colour=colour)}", flush=True)
    print(f"\n{closing_line(sections, marks)}")
    return ExitStatus.MET if is_well(sections) else ExitStatus.NOTHING_MEASURED


def _sections(testbed: TestbedConfig, *, frames: bool) -> Iterator[Section]:
    """What is looked at, and frames that are sent."""

    def say(line: str) -> None:
        print(f"doctor: {line} ...", file=sys.stderr, flush=True)

    yield from examine(testbed, say)
    if frames:
        yield send(testbed, say)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
