"""`./run sla --candidate KERNEL`: the emulated rows, with the candidate's kernel and with the base's, counted by the
engine of `./run compare --kernels`, and judged in the words of an SLA by the floor that it has there."""

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from ctbench.base.errors import ConfigError, CtbenchError, ExitStatus, MissingResource
from ctbench.base.paths import SUITES
from ctbench.base.text import printable
from ctbench.base.units import format_margin
from ctbench.cli import compare
from ctbench.cli.robot.command_line import CommandLine, as_arguments, check_names
from ctbench.compare.limits import LEAST_OF_COUNTS
from ctbench.compare.page import PAGE, write_comparison
from ctbench.compare.setups import kernels
from ctbench.dut.kernel import read_release
from ctbench.report import labels
from ctbench.results.comparison import Comparison, CountedTest
from ctbench.results.record import Word

#: Options of Robot Framework that choose tests.
_CHOOSE = ("include", "exclude", "test", "suite", "task")
_STATUS = {"missed": ExitStatus.MISSED, "not measured": ExitStatus.NOT_MEASURED, "met": ExitStatus.MET}


def is_kernel(given: str) -> bool:
    """Whether a candidate is a kernel: its package (linux-…), a bzImage, or a folder as a package has it. An empty text
    names none."""
    path = Path(given)
    try:
        if path.is_dir():
            return bool(given) and any((path / "boot").glob("vmlinuz-*"))
        return path.name.startswith("linux-") if path.suffix == ".deb" else bool(read_release(path))
    except (MissingResource, OSError):
        return False


def run(command: CommandLine, prepare: Callable[[CommandLine], Path], keep: Callable[[Path, CommandLine], None]) -> int:
    """Count, judge, and write the page to the folder that `prepare` makes; `keep` is told when it has one. Raises what
    `./run compare --kernels` raises of two files that are not kernels, or of a machine that cannot count."""
    chosen = command.chosen
    asked_for = {"--resume": command.resume, "--testbeds": command.testbeds, "--all": chosen.get("all_rows")}
    if option := next((name for name, given in asked_for.items() if given), ""):
        raise ConfigError(f"{option}: a kernel is counted in its own rows, at once.\n  Expected no such option.")
    check_names(command, (), SUITES)
    files = [os.path.realpath(chosen.get(side, "distribution")) for side in ("base", "candidate")]
    if files[0] == files[1]:
        raise ConfigError(f"--candidate: {chosen['candidate']} is the base itself.\n  Expected another kernel.")
    options = {name: value for name, value in command.options.items() if name in _CHOOSE and value}
    suites = command.suites if command.names_suites else ()
    sides = [f"base={chosen.get('base', 'distribution')}", f"candidate={chosen['candidate']}"]
    testbed = chosen.get("testbed", "local")
    rest = [*as_arguments(options), *suites]
    asked = Namespace(kernels=sides, installations=None, testbed=testbed, rest=rest, functions=False, only=[])
    try:
        kernels(sides)  # before there is a folder
        if command.dry_run:
            return ExitStatus.MET
        folder = prepare(command)
        found = compare.by_instructions(asked, folder, LEAST_OF_COUNTS)
    except CtbenchError as error:
        raise type(error)(str(error).replace("--kernels: ", "--candidate: ")) from None
    if found is None:
        return ExitStatus.NOTHING_MEASURED
    (folder / "compare.json").write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    write_comparison(found, folder)
    keep(folder, command)
    words = [verdict(test) for test in found.counts.tests]
    print(printable("\n".join(lines(found))))
    print(printable(f"Page: {folder / PAGE}"))
    return next((status for word, status in _STATUS.items() if word in words), ExitStatus.NOTHING_MEASURED)


def verdict(test: CountedTest) -> Word:
    """Missed where it costs more, with every seed, than the floor allows; met where it does not in the median; else the
    seeds are too far apart to tell."""
    if test.judgement == "regressed":
        return "missed"
    if test.difference_pct is None or test.difference_pct > LEAST_OF_COUNTS * 100:
        return "not measured"
    return "met"


def lines(compared: Comparison) -> list[str]:
    """A line for each test, the worst news first, and what came of all."""
    tests = compared.counts.tests
    said = []
    for word in _STATUS:
        for test in (each for each in tests if verdict(each) == word):
            both = [test.difference_pct, test.low_pct, test.high_pct]
            seen = "{} ({} to {} over the seeds)".format(*(format_margin(each) for each in both if each is not None))
            seen = seen if None not in both else test.reason
            said.append(f"  {test.test[:50]:<50}  {word.upper():<12}  {seen}")
    floor = f"at most {format_margin(LEAST_OF_COUNTS * 100)} instructions"
    found_words = [verdict(each) for each in tests]
    counts = ", ".join(f"{found_words.count(word)} {word}" for word in ("met", "missed", "not measured"))
    return [*said, f"Of {labels.plural(len(tests), 'row')}, {floor} of the base's: {counts}."]
