"""`./run check NAME`: one check of this project."""

import subprocess

from ctbench.base.statuses import ExitStatus
from ctbench.cli.checks.commands import CHECKS
from ctbench.cli.checks.tool import ROOT, argv, become, environment
from ctbench.cli.parser.tree import parse


def main() -> int:
    """Run the programs of the check; one that has a single program becomes that program."""
    options = parse("check")
    check = CHECKS[options.name]
    if len(check.programs) == 1:
        become([*check.programs[0], *options.arguments, *check.last], imports_ours=check.imports_ours)
    ours = environment(imports_ours=check.imports_ours)
    ended = [subprocess.run(argv(program), cwd=ROOT, env=ours, check=False).returncode for program in check.programs]
    return ExitStatus.MISSED if any(ended) else ExitStatus.MET
