"""How the test of README.md and docs/ runs each command: shortened where it measures, or not, with the reason."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from documents import Command, Shown

FILES = Path(__file__).parent / "integration"
CAMPAIGN, BUILDS, FLOORS = FILES / "search.yaml", FILES / "builds.yaml", FILES / "floors.yaml"
#: A comparison that was stopped before the last start of the base against itself, and of both builds.
COMPARED = "results/compared"
STARTS = 5
COMPARE = "./run compare --installations base=distribution candidate=/opt/ovs-3.3 --include conntrack"

#: What is not run, and why. Of `./run sla` every file and tag is tried nevertheless, in a dry run.
EXCEPTIONS = {
    "./run tests": "it is what runs this test",
    "./run check docs": "it needs what ./run tests installs, another minute",
    "sysctl vm.nr_hugepages=600": "it needs root and changes the machine",
    "./run compare --installations": "it names the option, the whole command is in docs/comparing.md",
    "./run compare --kernels": "it names the option, as above",
    "./run calibrate mylab --testbed mylab": "it needs a lab",
    "./run sla -v TESTBED:mylab": "it needs a lab",
    "./run sla -v TESTBED:mylab -v CAMPAIGN:published": "it needs a lab",
    "./run sla --testbeds lab-a,lab-b": "it needs two labs",
    "./run sla --testbeds lab-a,lab-b -v CAMPAIGN:characterise": "it needs two labs",
    "./run sla -v TESTBED:emulated --include emulated": "it boots for minutes; test_emulated.py has fewer boots",
    "./run compare --kernels base=distribution candidate=linux-image-6.12.deb": "it boots for minutes, as above",
    "./run calibrate mykernel --testbed emulated --keep-image mykernel.image": "it boots for minutes, as above",
    "./run sla -v TESTBED:mykernel -v SLA:mykernel --include emulated": "it boots for minutes, as above",
    "TREX_HOME=/path/to/trex/scripts ./run sla -v TESTBED:local-trex": "it needs TRex, which is on no registry",
    "TREX_HOME=/path/to/trex/scripts ./run calibrate mytrex --testbed local-trex": "it needs TRex as well",
}

#: What a command ends with, where that is not 0. Runs on a machine of two CPUs are too few to compare.
STATUSES = {
    "./run doctor mylab": {6},
    "./run doctor example-trex-xeon": {6},
    "./run doctor [TESTBED]": {0, 6},
    "./run sla --testbeds local,local": {0} if len(os.sched_getaffinity(0)) >= 4 else {6},
    "robot --help": {251},
    COMPARE: {0, 7, 8},
    "./run compare results/last-release results/this-one": {0, 7, 8},
    # What the machine had the time for in the run that it goes on with.
    "./run sla --resume latest": {0, 1, 3},
}

#: What the documents write for something of the reader's.
PLACEHOLDERS = {
    "RUN RUN...": "results/last-release results/this-one",
    "ANOTHER-RUN": "results/last-release",
    "candidate=/opt/ovs-3.3": "candidate=/usr",
    " [TESTBED]": "",
}

#: What is typed in the place of a command that takes too long: the same without its measurements, or as ./run does it
#: once it has installed what all checks need.
INSTEAD = {
    "robot suites/": "robot --dryrun --output NONE --log NONE --report NONE suites/",
    "robot --pythonpath libraries --prerunmodifier ConntrackSLA.tags --include 1cpuANDconntrack suites/": (
        "robot --pythonpath libraries --prerunmodifier ConntrackSLA.tags --include 1cpuANDconntrack "
        "--dryrun --output NONE --log NONE --report NONE suites/"
    ),
    "./run check promises": "PYTHONPATH=libraries .venv/bin/python -m ConntrackSLA.check_promises",
}

#: How a block begins that shows what a command shows.
OUTPUTS = {"test  ": "table", "1 CPU, 2 Queues, Short-Lived Connections  ": "trials"}

#: The one test that is measured.
_TAGS = ("ovs-dpdk", "conntrack", "1cpu", "1rxq", "short-lived")
_ONE_TEST = " ".join([*(f"--exclude NOT{tag}" for tag in _TAGS), "--exclude nat"])
_ONLY = f"--include {'AND'.join(_TAGS)}NOTnat"


@dataclass(frozen=True)
class Way:
    """What is typed in the place of a command, and what it has to end with."""

    #: As it is written, in a dry run where it would measure.
    typed: str
    statuses: frozenset[int]
    #: Where it measures: what it measures, which is the same for several commands, so that one of them is enough; and
    #: how that is typed in short.
    measures: str = ""
    short: str = ""


def way(command: Command) -> Way | None:
    """How a command is run; None where it is an exception. Raises `LookupError` if no test runs it."""
    text = typed = command.text
    statuses = frozenset(STATUSES.get(text, {0}))
    for asked, given in PLACEHOLDERS.items():
        typed = typed.replace(asked, given)
    # The run that --resume goes on with is complete: nothing is measured, and the whole is reported.
    if re.match(r"(\w+=\S+ )*\./run sla\b(?! --resume)", text):
        dry = _before_suites(typed, "--dryrun --console none --log NONE --report NONE")
        if text in EXCEPTIONS or not command.in_block:
            return Way(dry, statuses)
        return Way(dry, statuses, re.sub(_CHOICES, "", text), _short_run(re.sub(_CHOICES, "", typed)))
    if text in EXCEPTIONS:
        return None
    if re.match(r"\./run (calibrate|compare --installations) ", text):
        # The starts that are there were made up, on another machine.
        few = f"--outputdir {COMPARED} --different --starts {STARTS} --campaign {BUILDS} {_ONE_TEST}"
        if " calibrate " in text:
            few = f"--most-runs 5 --campaign {CAMPAIGN} --sla {FLOORS} {_ONLY}"
        return Way("", statuses, text, f"{typed} {few}")
    typed = INSTEAD.get(text, typed)
    if typed.startswith("robot "):
        return Way(f".venv/bin/{typed}", statuses)
    if text in INSTEAD or re.match(r"\./run (report|compare|doctor|setup|sla --resume|--help)\b|cp ", text):
        return Way(typed, statuses)
    raise LookupError(f"{command.place}: no test runs this command: {text}")


#: Options that choose tests or a campaign, or a list of such: in the short form of a command they are the same for all.
_CHOICES = r" --include \S+| -v CAMPAIGN:\S+| --argumentfile \S+| suites/\S+"


def _short_run(typed: str) -> str:
    floors = "" if " -v SLA:" in typed else f" -v SLA:{FLOORS}"
    return f"{typed} -v CAMPAIGN:{CAMPAIGN}{floors} {_ONE_TEST}"


def is_dry(typed: str) -> bool:
    """Whether a command line measures nothing and writes nothing."""
    return "--dryrun" in typed


def _before_suites(typed: str, options: str) -> str:
    return re.sub(r"(?=( suites/\S+)?$)", f" {options}", typed, count=1)


def problems(commands: Sequence[Command], shown: Sequence[Shown]) -> list[str]:
    """Commands and blocks that no test runs or compares, and entries of the lists here that no document has."""
    found = []
    for command in commands:
        try:
            way(command)
        except LookupError as error:
            found.append(str(error))
    found += [f"{each.place}: no test compares what is shown here" for each in shown if output_of(each) is None]
    texts = [command.text for command in commands]
    found += [
        f"{text}: is in no document" for text in dict.fromkeys([*EXCEPTIONS, *STATUSES, *INSTEAD]) if text not in texts
    ]
    found += [f"{part}: is in no command" for part in PLACEHOLDERS if not any(part in text for text in texts)]
    found += [
        f"{start}: begins no block" for start in OUTPUTS if not any(each.text.startswith(start) for each in shown)
    ]
    return found


def output_of(shown: Shown) -> str | None:
    """The name of the form that a block without a command has to have."""
    return next((name for start, name in OUTPUTS.items() if shown.text.startswith(start)), None)
