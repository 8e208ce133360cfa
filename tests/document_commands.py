"""How the tests of README.md and docs/ run each command: shortened where it measures, or not, with the reason."""

import os
import re
from pathlib import Path

from documents import Command

FILES = Path(__file__).parent / "integration"
CAMPAIGN, FLOORS = FILES / "search.yaml", FILES / "floors.yaml"

#: How a command begins that is not run, and why. Any other `./run sla` is tried, in a dry run.
EXCEPTIONS = {
    "./run tests": "it is what runs this test",
    "./run check (docs|unit|lint)": "it needs what ./run tests installs",
    "./run check promises": "test_promises.py judges the suites that ship, those of one's own, and by another SLA",
    r"\.venv/bin/pip wheel|python3 -m venv ~/sla|~/sla/bin/": "test_wheel.py builds the package and uses it",
    r"\./run sla ~|\.venv/bin/robot --pythonpath ": "tests/acceptance/own_suites.robot runs this suite",
    r"\./run sla --include \S+$": "test_command_lines.py looks for rows with its tags",
    r"ovs-(vsctl|ofctl) |PYTHONPATH=libraries \S+ -m ctgen --memif ": "it needs an Open vSwitch that runs",
    r"meson |\./boot\.sh|PKG_CONFIG_PATH=|cat gate.sh|git bisect |make ": "it needs a tree of DPDK or Open vSwitch",
    "sysctl |podman |docker |echo 1024 >/sys/": "it needs root, or a registry of images",
    r"\./run calibrate (my|--)|TREX_HOME=": "it needs a lab, TRex, or boots for minutes",
    r"\.venv/bin/python -m tools\.": "the tools have tests of their own",
    r"PYTHONPATH=libraries \.venv/bin/python -m icount": "it has tests of its own, and needs a build",
}

#: What a command ends with, where that is not 0.
STATUSES = {
    "./run doctor mylab": {6},
    "./run doctor mylab --frames": {6},
    # 4: another page's command has made a file of this name.
    "./run doctor --write mylab --dut root@dut.lab.example --generator root@tgen.lab.example": {4, 6},
    "./run doctor --write here": {0, 6},
    "./run doctor example-trex-xeon": {6},
    "./run sla --testbeds local,local": {0} if len(os.sched_getaffinity(0)) >= 4 else {6},
    "robot --help": {251},
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
}

#: The one test that is measured, by a campaign and floors of these tests.
_TAGS = ("ovs-dpdk", "conntrack", "1cpu", "1rxq", "short-lived")
_ONE_TEST = " ".join([*(f"--exclude NOT{tag}" for tag in _TAGS), "--exclude nat", "--exclude nightly"])
_SAME_TEST = f"{'AND'.join(_TAGS)}NOTnatNOTnightly"
_RUN = f"-v CAMPAIGN:{CAMPAIGN} {_ONE_TEST}"

#: Commands that measure, with what shortens them. Any other command that would measure is a dry run.
MEASURED = {
    "./run sla": f"{_RUN} -v SLA:{FLOORS}",
    "./run sla --testbeds local,local": f"{_RUN} -v SLA:{FLOORS}",
    "./run calibrate mine": f"--most-runs 5 --campaign {CAMPAIGN} --sla {FLOORS} --include {_SAME_TEST}",
    "./run sla -v SLA:mine": _RUN,
}
DRY = "--dryrun --console none --log NONE --report NONE"
#: What chooses rows. A command that does not runs some in its dry run: ./run check dryrun runs all of them.
_CHOOSES, _SOME = re.compile(r" (--include|-i|--test|-t) | suites/|acceptance"), "--include 1cpuANDshort-lived"


def typed(command: Command) -> str | None:
    """What is typed in the place of a command; None for an exception. Raises `LookupError` if no test runs it."""
    text = filled = command.text
    for asked, given in PLACEHOLDERS.items():
        filled = filled.replace(asked, given)
    if text in MEASURED:
        return f"{filled} {MEASURED[text]}".strip()
    if any(re.match(begins, text) for begins in EXCEPTIONS):
        return None
    if re.match(r"\./run sla\b", text):
        some = "" if _CHOOSES.search(text) else f" {_SOME}"
        return re.sub(r"(?=( suites/\S+)?$)", f" {DRY}{some}", filled, count=1)
    if re.match(r"(\.venv/bin/)?robot ", text):
        return ".venv/bin/" + filled.removeprefix(".venv/bin/").replace(" suites/", f" {DRY} --output NONE suites/")
    if re.match(r"\./run (report|doctor|setup|--help)|cp |PYTHONPATH=libraries \S+ -m ctgen ", text):
        return filled
    raise LookupError(f"{command.place}: no test runs this command: {text}")
