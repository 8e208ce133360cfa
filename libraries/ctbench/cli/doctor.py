"""The command `./run doctor`: examines the hosts of a testbed and prints what has to be fixed before a run. It changes
nothing unless it has to send frames. With `--write` it first writes a testbed file from what it finds."""

import argparse
import locale
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.files import write_whole
from ctbench.base.paths import own_files
from ctbench.base.yaml_files import check_name, load
from ctbench.doctor.examine import MARKS, PLAIN_MARKS, Section, closing_line, examine, is_well, section_text
from ctbench.doctor.frames import send
from ctbench.doctor.testbed_file import make_testbed_file
from ctbench.testbed.config import TestbedConfig


def main(options: argparse.Namespace) -> int:
    if not options.write and (options.dut or options.generator):
        options.parser.error("--dut and --generator need --write: a testbed file names its hosts itself")
    if options.write and options.testbed:
        options.parser.error(f"--write {options.write} is the testbed: {options.testbed} is one argument too many")
    marks = MARKS if _can_show("".join(MARKS.values())) else PLAIN_MARKS
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    sections: list[Section] = []
    name = _write(options.write, options.dut, options.generator) if options.write else options.testbed or "local"
    testbed = load("testbeds", name, TestbedConfig)
    print(f"Testbed {testbed.name} ({testbed.file})")
    for section in _sections(testbed, frames=options.frames):
        sections.append(section)
        print(f"\n{section_text(section, marks=marks, colour=colour)}", flush=True)
    print(f"\n{closing_line(sections, marks)}")
    return ExitStatus.MET if is_well(sections) else ExitStatus.NOTHING_MEASURED


def _sections(testbed: TestbedConfig, *, frames: bool) -> Iterator[Section]:
    """Yield the sections of the examination, then that of the frames where they are asked for."""
    yield from examine(testbed, _say)
    if frames:
        yield send(testbed, _say)


def _say(line: str) -> None:
    print(f"doctor: {line} ...", file=sys.stderr, flush=True)


def _write(name: str, dut: str, generator: str) -> Path:
    """Write a testbed file and return its path. Raise `ConfigError` where it cannot be written, or exists and the user
    keeps it."""
    try:
        target = own_files("testbeds") / f"{check_name(name)}.yaml"
    except ValueError as error:
        raise ConfigError(f"--write: {error}") from None
    if os.path.lexists(target):
        _ask_to_overwrite(target)
    _say(f"looking for what {name} can be made of")
    text = make_testbed_file(name, dut, generator)
    try:
        write_whole(target, text)
    except OSError as error:
        raise ConfigError(
            f"{target}: cannot be written ({error.strerror}).\n  Expected a folder that you may write to."
        ) from None
    return target


def _ask_to_overwrite(target: Path) -> None:
    if not sys.stdin.isatty():
        raise ConfigError(f"{target}: is there already.\n  Expected another name, or a terminal to ask you on.")
    print(f"{target} is there already. Overwrite it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError(f"{target}: is kept as it is.\n  Expected y, or another name.")


def _can_show(text: str) -> bool:
    """True where the terminal can, by the locale: ./run has Python write UTF-8 whatever that is."""
    try:
        text.encode(locale.getencoding())
    except (UnicodeEncodeError, LookupError):  # LookupError: Python does not know the encoding
        return False
    return True
