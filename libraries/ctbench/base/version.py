"""The version of the suite, which a record names as the version that measured it."""

import hashlib

from ctbench import __version__
from ctbench.base.paths import LIBRARIES, PORTS

#: What figures depend on: our packages, which others are installed where the suite is, and what OVS' ports are.
#: A record says of the row itself what else it depends on.
_PARTS = (*(LIBRARIES / name for name in ("ConntrackSLA", "ctbench", "ctgen", "icount")), PORTS)


def _hash() -> str:
    """Return a hash of the files of `_PARTS` as they are, so that an uncommitted change shows as well."""
    found = hashlib.sha256()
    for path in sorted(path for part in _PARTS for path in part.rglob("*") if path.is_file()):
        if path.parent.name != "__pycache__":
            found.update(str(path.relative_to(LIBRARIES.parent)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:12]


#: `0.1.0+3f2a9c81b7de`. Found when it is imported: what is changed while a run lasts is not what measures.
SUITE_VERSION = f"{__version__}+{_hash()}"
