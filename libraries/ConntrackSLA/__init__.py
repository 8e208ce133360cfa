"""Keyword library of the conntrack acceptance suites: sets a DUT up, measures it, judges it by its SLA."""

import sys
from pathlib import Path

# `robot suites/` needs no options: this library is imported by path and brings its neighbour along.
_LIBRARIES = str(Path(__file__).resolve().parents[1])
if _LIBRARIES not in sys.path:
    sys.path.insert(0, _LIBRARIES)

from ConntrackSLA.library import ConntrackSLA  # noqa: E402 - needs the path above

__all__ = ["ConntrackSLA"]
