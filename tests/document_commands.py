"""How the tests of README.md and docs/ run each command: shortened where it measures, or not, with the reason."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from documents import Command, Shown

FILES = Path(__file__).parent / "integration"
CAMPAIGN, FLOORS = FILES / "search.yaml", FILES / "floors.yaml"

#: What is not run, and why. `./run sla` is tried nevertheless, in a dry run.
EXCEPTIONS = {
    "./run tests": "it is what runs this test",
    "./run check docs": "it needs what ./run tests installs, another minute",
    "./run check promises ~/firewall": "test_promises.py judges this folder",
    "./run check promises --sla mine": "test_promises.py judges by an SLA of one's own",
    "pip wheel --no-deps --wheel-dir dist .": "test_wheel.py builds it, without a network",
    "pip install conntrack_sla-0.1.0-py3-none-any.whl": "test_wheel.py installs it into a folder of its own",
    "conntrack-sla sla ~/firewall/firewall.robot": "test_wheel.py has a dry run of it",
    "robot --dryrun ~/firewall/firewall.robot": "test_wheel.py does this",
    "./run sla ~/firewall/firewall.robot": "tests/acceptance/own_suites.robot runs this suite",
    ".venv/bin/robot --pythonpath libraries --dryrun ~/firewall/firewall.robot": "own_suites.robot does this too",
    "cat gate.sh": "it is of a tree of Open vSwitch",
    "git bisect start BAD GOOD": "it needs such a tree",
    "git bisect run ./gate.sh": "it builds and measures for half an hour",
    "sysctl vm.nr_hugepages=1024": "it needs root and changes the machine",
    "./run compare --installations": "it names the option, the whole command is in docs/comparing.md",
    "./run compare --installations base=distribution candidate=/opt/ovs-3.7.1": "it boots for minutes, as below",
    "./run compare --kernels": "it names the option, as above",
    "./run calibrate mylab --testbed mylab": "it needs a lab",
    "./run sla -v TESTBED:mylab": "it needs a lab",
    "./run sla -v TESTBED:mylab -v CAMPAIGN:published": "it needs a lab",
    "./run sla --testbeds lab-a,lab-b": "it needs two labs",
    "./run sla --testbeds lab-a,lab-b -v CAMPAIGN:characterise": "it needs two labs",
    "podman build --tag conntrack-sla .": "it needs podman and a registry of images",
    "podman run --rm --network none --security-opt unmask=ALL --security-opt label=disable --volume /sys:/sys --volume "
    '"$PWD/results:/conntrack-sla/results" conntrack-sla sla': "it needs that image",
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
    "./run compare results/last-release results/this-one": {0, 7, 8},
    # What the machine had the time for in the run that it goes on with.
    "./run sla --resume latest": {0, 1, 3},
    # On a machine that others use, one run may find less than the five before it.
    "./run sla -v SLA:mine": {0, 1},
}

#: What the documents write for something of the reader's.
PLACEHOLDERS = {
    "RUN RUN...": "results/last-release results/this-one",
    "report results/mine": "report results/last-release",
    "--candidate /opt/ovs-3.7.1": "--candidate results/ovs-3.3",
    "--base /opt/ovs-3.6.3": "--base distribution",
    "--candidate ./debs/ --base ./debs-of-3.2/": "--candidate results/ovs-3.3",
    " [TESTBED]": "",
}

#: How a block begins that shows what a command shows.
OUTPUTS = {"test  ": "table", "SNAT, 1 CPU, 1 Queue, Short-Lived  ": "trials"}

#: The one test that is measured, by a campaign and floors of these tests.
_TAGS = ("ovs-dpdk", "conntrack", "1cpu", "1rxq", "short-lived")
_ONE_TEST = " ".join([*(f"--exclude NOT{tag}" for tag in _TAGS), "--exclude nat", "--exclude nightly"])
_SAME_TEST = f"{'AND'.join(_TAGS)}NOTnatNOTnightly"
_RUN = f"-v CAMPAIGN:{CAMPAIGN} {_ONE_TEST}"

#: Commands that measure, with what shortens them. Any other command that would measure is a dry run.
MEASURED = {
    "./run sla": f"{_RUN} -v SLA:{FLOORS}",
    "./run sla -v TESTBED:mylab -v SLA:release-3": _RUN,
    # The run that it goes on with is complete: nothing is measured, and the whole is reported.
    "./run sla --resume latest": "",
    "./run sla --testbeds local,local": f"{_RUN} -v SLA:{FLOORS}",
    "./run calibrate mine": f"--most-runs 5 --campaign {CAMPAIGN} --sla {FLOORS} --include {_SAME_TEST}",
    "./run sla -v SLA:mine": _RUN,
}
_DRY = "--dryrun --console none --log NONE --report NONE"


def typed(command: Command) -> str | None:
    """What is typed in the place of a command; None for an exception. Raises `LookupError` if no test runs it."""
    text = command.text
    filled = text
    for asked, given in PLACEHOLDERS.items():
        filled = filled.replace(asked, given)
    if text in MEASURED:
        return f"{filled} {MEASURED[text]}".strip()
    if re.match(r"(\w+=\S+ )*\./run sla\b", text):
        return re.sub(r"(?=( (suites|~)/\S+)?$)", f" {_DRY}", filled, count=1)
    if text in EXCEPTIONS or text.startswith(".venv/bin/python -m tools."):  # the tools have tests of their own
        return None
    if text == "./run check promises":  # without what ./run installs for all checks
        return "PYTHONPATH=libraries .venv/bin/python -m ConntrackSLA.check_promises"
    if text.startswith("robot "):
        return ".venv/bin/" + filled.replace(" suites/", f" {_DRY} --output NONE suites/")
    if re.match(r"\./run (report|compare (?!-)|doctor|setup|--help)|cp ", text):
        return filled
    raise LookupError(f"{command.place}: no test runs this command: {text}")


def problems(commands: Sequence[Command], shown: Sequence[Shown]) -> list[str]:
    """Commands and blocks that no test runs or compares, and entries of the lists here that no document has."""
    found = []
    for command in commands:
        try:
            typed(command)
        except LookupError as error:
            found.append(str(error))
    found += [f"{each.place}: no test compares what is shown here" for each in shown if output_of(each) is None]
    texts = [command.text for command in commands]
    listed = dict.fromkeys([*EXCEPTIONS, *STATUSES, *MEASURED])
    found += [f"{text}: is in no document" for text in listed if text not in texts]
    found += [f"{part}: is in no command" for part in PLACEHOLDERS if not any(part in text for text in texts)]
    found += [
        f"{start}: begins no block" for start in OUTPUTS if not any(each.text.startswith(start) for each in shown)
    ]
    return found


def output_of(shown: Shown) -> str | None:
    """The name of the form that a block without a command has to have."""
    return next((name for start, name in OUTPUTS.items() if shown.text.startswith(start)), None)
