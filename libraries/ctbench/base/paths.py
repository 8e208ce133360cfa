"""Paths of the parts of this checkout, or of the installed package that was built from it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ctbench.base.errors import ConfigError

LIBRARIES = Path(__file__).resolve().parents[2]
#: What a package has besides libraries ([tool.hatch] in pyproject.toml), laid out as in the checkout.
_SHARE = LIBRARIES / "ctbench" / "share"
INSTALLED = _SHARE.is_dir()
#: The checkout.
ROOT = _SHARE if INSTALLED else LIBRARIES.parent
SUITES = ROOT / "suites"
#: What a DUT does to a packet, in files of its own tools, and what the ports of OVS' bridge are.
RULESETS = ROOT / "resources" / "rulesets"
PORTS = ROOT / "resources" / "ports"
#: The example files and the SLAs, a folder for each kind.
VARIABLES = ROOT / "variables"
#: Where runs land, unless the environment variable names another folder.
RESULTS = ROOT / "results"
RESULTS_VARIABLE = "CONNTRACK_SLA_RESULTS"
#: What ./run hands over to: a command and its arguments follow.
PROGRAM = (sys.executable, str(LIBRARIES / "ctbench" / "cli" / "__main__.py"))


def results_root() -> Path:
    """Return the folder for runs: the environment variable's, else results/ of the checkout, else a folder of the
    user's own. The last one applies where results/ cannot be written, or a package is installed."""
    if named := os.environ.get(RESULTS_VARIABLE):
        return Path(named).absolute()
    if not INSTALLED and os.access(RESULTS if RESULTS.exists() else ROOT, os.W_OK):
        return RESULTS
    return users_own("XDG_STATE_HOME", ".local/state") / "conntrack-sla" / "results"


def cache_folder(name: str) -> Path:
    """Return the folder for files that can be made again; it may not exist yet. It is in .venv, or where that cannot be
    written in a folder of the user's own."""
    if os.access(ROOT / ".venv", os.W_OK):
        return ROOT / ".venv" / name
    return users_own("XDG_CACHE_HOME", ".cache") / "conntrack-sla" / name


def own_files(kind: str) -> Path:
    """Return the folder for a file of variables/ that a command writes: next to the shipped files, or the current
    folder where a package is installed."""
    return Path.cwd() if INSTALLED else VARIABLES / kind


def users_own(variable: str, below_home: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that `variable` of the XDG Base Directory Specification names, else its default in the user's
    home. Raise `ConfigError` where neither is known, as for a container's user without a passwd entry."""
    home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 # pathlib raises where there is none
    if not environment.get(variable) and home == "~":
        raise ConfigError(
            f"User {os.getuid()} has no home: HOME is not set, and there is no passwd entry.\n"
            f"  Expected {' or '.join(filter(None, (variable, 'HOME')))} to name a folder that can be written."
        )
    return Path(environment.get(variable) or Path(home, below_home))
