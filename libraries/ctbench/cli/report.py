"""`./run report` once everything is installed: writes the report of one run, or one report of several runs."""

import sys
from collections.abc import Sequence

from ctbench.base.errors import ConfigError, CtbenchError
from ctbench.base.files import named_folder
from ctbench.base.paths import results_root
from ctbench.base.text import printable
from ctbench.cli.parser.tree import parse
from ctbench.report import console
from ctbench.report.write import PAGE, write_reports


def main(arguments: Sequence[str] | None = None) -> int:
    asked = parse("report", arguments)
    try:
        runs = [named_folder(run) for run in asked.runs] or [results_root() / "latest"]
        if asked.outputdir is None and len(runs) > 1:
            raise ConfigError(f"{len(runs)} runs are merged into a folder of their own: name it with --outputdir.")
        output = (asked.outputdir or runs[0]).absolute()
        page = write_reports(runs, output)
    except CtbenchError as error:
        print(printable(f"run: {error}"), file=sys.stderr)
        return error.exit_status
    print(console.report(page))
    print(printable(f"Report:  {output / PAGE}"))
    return 0
