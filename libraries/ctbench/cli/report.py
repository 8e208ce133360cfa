"""The command `./run report`: writes the report of one run, or one report of several runs."""

import argparse

from ctbench.base.errors import ConfigError, ExitStatus
from ctbench.base.files import named_folder
from ctbench.base.paths import results_root
from ctbench.base.text import printable
from ctbench.report import console
from ctbench.report.write import PAGE, write_reports


def main(options: argparse.Namespace) -> int:
    runs = [named_folder(run) for run in options.runs] or [results_root() / "latest"]
    if options.outputdir is None and len(runs) > 1:
        raise ConfigError(f"{len(runs)} runs are merged into a folder of their own: name it with --outputdir.")
    output = (options.outputdir or runs[0]).absolute()
    page = write_reports(runs, output)
    print(console.report(page))
    print(printable(f"Report:  {output / PAGE}"))
    return ExitStatus.MET
