"""Where the parts of this checkout are, or of the package that was made of it."""

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
    """Where runs land: where the environment says, else results/ of the checkout, or, when that is another user's or a
    package is installed, a folder of the user's own."""
    if named := os.environ.get(RESULTS_VARIABLE):
        return Path(named).absolute()
    if not INSTALLED and os.access(RESULTS if RESULTS.exists() else ROOT, os.W_OK):
        return RESULTS
    return users_own("XDG_STATE_HOME", ".local/state") / "conntrack-sla" / "results"


def cache_folder(name: str) -> Path:
    """A folder for what can be made again, which may not be there yet: in .venv, or when that is another user's, in a
    folder of the user's own."""
    if os.access(ROOT / ".venv", os.W_OK):
        return ROOT / ".venv" / name
    return users_own("XDG_CACHE_HOME", ".cache") / "conntrack-sla" / name


def own_files(kind: str) -> Path:
    """Where a file of variables/ goes that is written here: next to those that ship, or of an installed package into
    the current folder."""
    return Path.cwd() if INSTALLED else VARIABLES / kind


def users_own(variable: str, below_home: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that a `variable` of the XDG Base Directory Specification names, else its place in the user's home.
    `ConfigError` where neither is known, as of a container's user whom no passwd entry names."""
    home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 # pathlib raises where there is none
    if not environment.get(variable) and home == "~":
        raise ConfigError(
            f"User {os.getuid()} has no home: HOME is not set, and there is no passwd entry.\n"
            f"  Expected {' or '.join(filter(None, (variable, 'HOME')))} to name a folder that can be written."
        )
    return Path(environment.get(variable) or Path(home, below_home))
