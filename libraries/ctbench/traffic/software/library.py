"""The kernel as a library: C, compiled once for each user and state of its source, compiler and flags.

No user has to trust code that another one compiled: each has a folder of their own.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ctbench.base.errors import ConfigError, GeneratorError
from ctbench.base.paths import cache_folder
from ctbench.traffic.software import layout
from ctbench.traffic.software.kind import require_compiler, require_x86_64

SOURCES = Path(__file__).parent / "kernel"
#: What every x86-64 server since 2009 has; the warnings are for who changes the source.
FLAGS = ("-std=gnu11", "-O2", "-march=x86-64-v2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
#: What the library does, each with the struct that it works on.
FUNCTIONS: dict[str, list[type[ctypes.Structure]]] = {
    "run_connections": [layout.Run], "run_packets": [layout.Run], "run_phase": [layout.Run, layout.Phase],
    "carry": [layout.LinkThread],
}  # fmt: skip


@cache
def kernel() -> ctypes.CDLL:
    """The kernel, compiled if that was not done before: a few seconds. Its functions do without the interpreter's lock.
    Raises `MissingResource` where there is no compiler, `ConfigError` where it cannot be kept."""
    require_x86_64()
    library = ctypes.CDLL(str(built(sorted(SOURCES.glob("*.c")), FLAGS)))
    for name, structs in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.POINTER(each) for each in structs], None
    library.read_cycles.restype = ctypes.c_int64
    return library


def built(sources: Sequence[Path], flags: Sequence[str]) -> Path:
    """The library of these sources, which may include what is in `SOURCES`."""
    command = [require_compiler(), *flags, f"-I{SOURCES}", *(str(source) for source in sources)]
    digest = hashlib.sha256(" ".join([_version(command[0]), *flags]).encode())
    for source in [*sources, *sorted(SOURCES.glob("*.[ch]"))]:
        digest.update(source.read_bytes())
    # The number of the user, as a .venv may be written by several.
    library = cache_folder(f"generator-{os.geteuid()}") / f"{digest.hexdigest()[:16]}.so"
    if not library.exists():
        _build(command, library)
    return library


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def _build(command: Sequence[str], library: Path) -> None:
    try:
        library.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Whole or not at all: another process may look for it now.
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder, library.name)
            done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                made.replace(library)
    except OSError as error:
        raise ConfigError(
            f"The compiled traffic generator cannot be kept in {library.parent}: {error.strerror}. Name a folder"
            " that can be written with XDG_CACHE_HOME."
        ) from error
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise GeneratorError(f"{command[0]} could not compile the software traffic generator: {said}")
