"""Where the parts of this checkout are."""

import os
import sys
from pathlib import Path

#: The checkout.
ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = ROOT / "libraries"
SUITES = ROOT / "suites"
#: What a DUT does to a packet, in files of its own tools, and what the ports of OVS' bridge are.
RULESETS = ROOT / "resources" / "rulesets"
PORTS = ROOT / "resources" / "ports"
#: The example files and the SLAs, a folder for each kind.
VARIABLES = ROOT / "variables"
#: Where runs land, unless the environment variable names another folder.
RESULTS = ROOT / "results"
#: Figures that others published, a folder for each of their devices.
REFERENCES = RESULTS / "reference"
RESULTS_VARIABLE = "CONNTRACK_SLA_RESULTS"
#: What ./run hands over to: a command and its arguments follow.
PROGRAM = (sys.executable, str(LIBRARIES / "ctbench" / "cli" / "__main__.py"))


def results_root() -> Path:
    """Where runs land: where the environment says, else results/ of the checkout, or, when that is another user's, a
    folder of the user's own."""
    if named := os.environ.get(RESULTS_VARIABLE):
        return Path(named).absolute()
    if os.access(RESULTS if RESULTS.exists() else ROOT, os.W_OK):
        return RESULTS
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "conntrack-sla" / "results"


def cache_folder(name: str) -> Path:
    """A folder for what can be made again, which may not be there yet: in .venv, or when that is another user's, in a
    folder of the user's own."""
    if os.access(ROOT / ".venv", os.W_OK):
        return ROOT / ".venv" / name
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "conntrack-sla" / name
