"""The software traffic generator: complete TCP and UDP connections over shared memory, from one thread."""

import hashlib
import os
from pathlib import Path

from ctbench.base.paths import users_own


def cache_directory() -> Path:
    """Where the compiled kernel function is kept: per user, and per state of the sources.

    numba only looks at the file of the cached function, not at the files that it was inlined from.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = os.environ.get("NUMBA_CACHE_DIR") or users_own("XDG_CACHE_HOME", ".cache") / "ctbench" / "numba"
    return Path(base, digest.hexdigest()[:16])
