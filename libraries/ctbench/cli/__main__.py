"""The entry point of `./run COMMAND`, once everything is installed."""

import os
import sys
from pathlib import Path

# Started as a file, so that nothing depends on PYTHONPATH: its own folder is not for imports, libraries/ is.
sys.path[0] = str(Path(__file__).resolve().parents[2])
# What the user's PYTHONPATH names can be imported, and takes the place of nothing.
sys.path.extend(filter(None, os.environ.get("CTBENCH_PYTHONPATH", "").split(os.pathsep)))

from ctbench.cli.main import run  # noqa: E402 - needs the path above

if __name__ == "__main__":
    run()
