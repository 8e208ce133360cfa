"""`./run COMMAND` once everything is installed: inside the boundary, which is there before a package is imported."""

import os
import sys
from pathlib import Path

# Started as a file, so that nothing depends on PYTHONPATH: its own folder is not for imports, libraries/ is.
sys.path[0] = str(Path(__file__).resolve().parents[2])
# What the user's PYTHONPATH names can be imported, and takes the place of nothing.
sys.path.extend(filter(None, os.environ.get("CTBENCH_PYTHONPATH", "").split(os.pathsep)))

from ctbench.cli.commands import find  # noqa: E402 - needs the path above
from ctbench.cli.error_boundary import enter  # noqa: E402

if __name__ == "__main__":
    command = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    enter(command, lambda: find(command))
