"""The kernel as a library, compiled from C once for each user and each state of source, compiler and flags.

Each user has a folder of compiled kernels, so that no user has to trust code that another one compiled.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path

from ctgen import layout
from ctgen.errors import GeneratorError, Unavailable

SOURCES = Path(__file__).parent / "kernel"
COMPILER = "cc"
#: What every x86-64 server since 2009 has; the warnings are for who changes the source.
FLAGS = ("-std=gnu11", "-O2", "-march=x86-64-v2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
#: What the library does, each with the struct that it works on.
FUNCTIONS: dict[str, list[type[ctypes.Structure]]] = {
    "run_connections": [layout.Run], "run_packets": [layout.Run], "run_backlogs": [layout.Run],
    "run_phase": [layout.Run, layout.Phase], "carry": [layout.LinkThread],
}  # fmt: skip


def require_x86_64() -> None:
    """Raise `Unavailable` elsewhere: the memif code relies on x86-64's ordering of stores."""
    machine = platform.machine()
    if machine not in ("x86_64", "AMD64"):
        raise Unavailable(
            f"This is a {machine} machine, and the software traffic generator works on x86-64 only:"
            " measure on an x86-64 machine."
        )


def require_compiler() -> str:
    """Return the path of the C compiler for the kernel."""
    found = shutil.which(COMPILER)
    if found is None:
        raise Unavailable(
            f"The software traffic generator is written in C, and this machine has no C compiler ({COMPILER}):"
            " install the packages gcc and libc6-dev."
        )
    return found


@cache
def kernel() -> ctypes.CDLL:
    """Return the kernel's library, and compile it where that was not done before: a few seconds. Its functions release
    the interpreter's lock. Raise `Unavailable` where the compiler is missing, `GeneratorError` where it fails, or where
    its result cannot be kept or loaded."""
    require_x86_64()
    path = built(sorted(SOURCES.glob("*.c")), FLAGS)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise GeneratorError(
            f"The compiled traffic generator cannot be loaded: {error}. Delete {path}, and it is compiled again; a file"
            " system that is mounted noexec cannot hold it."
        ) from error
    for name, structs in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.POINTER(each) for each in structs], None
    library.read_cycles.restype = ctypes.c_int64
    return library


class KernelThread(threading.Thread):
    """A thread that runs a function of the kernel. Wait for `ended`, not with `join`: where a signal interrupts it,
    `join` takes the thread for ended (CPython, _wait_for_tstate_lock), and memory would be unmapped under the
    function."""

    def __init__(self, name: str, work: Callable[[], None], cpus: Collection[int]) -> None:
        """`cpus`: where the thread may run; empty: on any CPU."""
        super().__init__(name=name, daemon=True)
        self._work, self._cpus = work, cpus
        self.ended = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            if self._cpus:
                os.sched_setaffinity(0, self._cpus)  # of this thread only
            self._work()
        except BaseException as error:
            self.failure = error
        finally:
            self.ended.set()

    def check(self, what: str) -> None:
        """Raise `GeneratorError` where the thread failed. `what`: its name in the sentence."""
        if self.failure:
            raise GeneratorError(f"{what} failed: {self.failure}") from self.failure


def built(sources: Sequence[Path], flags: Sequence[str]) -> Path:
    """Return the library of these sources, compiled where needed. They may include headers of `SOURCES`."""
    command = [require_compiler(), *flags, f"-I{SOURCES}", *(str(source) for source in sources)]
    digest = hashlib.sha256(" ".join([_version(command[0]), *flags]).encode())
    for source in [*sources, *sorted(SOURCES.glob("*.[ch]"))]:
        digest.update(source.read_bytes())
    library = _cache() / f"{digest.hexdigest()[:16]}.so"
    if not library.exists():
        _build(command, library)
    return library


def _cache() -> Path:
    """Return this user's folder of compiled kernels: in the virtual environment where that is writable, else in the
    suite's folder below XDG_CACHE_HOME."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix, f"ctgen-{os.geteuid()}")
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "conntrack-sla" / "ctgen"


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
        raise GeneratorError(
            f"The compiled traffic generator cannot be kept in {library.parent}: {error.strerror}. Name a folder"
            " that can be written with XDG_CACHE_HOME."
        ) from error
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise GeneratorError(f"{command[0]} could not compile the software traffic generator: {said}")
