"""A plugin of pytest (`-p sanitized`): the generator's kernel with AddressSanitizer and UndefinedBehaviorSanitizer.

The process has to be started as `environment` says.
"""

import ctypes
import os
import subprocess
import sys

from ctbench.base.paths import LIBRARIES, ROOT
from ctgen import library

#: Without -Werror: what is added to each access gives compilers more to wonder about.
FLAGS = (
    *(flag for flag in library.FLAGS if flag != "-Werror"),
    *("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


def pytest_configure() -> None:
    """Where this is a plugin, and not only imported."""
    library.FLAGS = FLAGS


def environment() -> dict[str, str]:
    """Where the interpreter, which is not compiled so, finds what a library that is has to find first. Python's own
    memory comes from where the sanitizer sees it; what Python leaks is not looked for."""
    ask = [library.COMPILER, "-print-file-name=libasan.so"]
    found = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    options = {"LD_PRELOAD": found, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    return os.environ | options | {"PYTEST_ADDOPTS": ""}


def poison(address: int, size: int) -> None:
    """Nobody may touch these bytes; nothing where the process is not sanitized."""
    if forbid := getattr(ctypes.CDLL(None), "__asan_poison_memory_region", None):
        forbid(ctypes.c_void_p(address), ctypes.c_size_t(size))


def find_nothing(file: str, chosen: str) -> None:
    """Tests of a file pass with the sanitizers, in a process of its own: those that `chosen` chooses (pytest's -k)."""
    command = [sys.executable, "-m", "pytest", "-p", "sanitized", "-s", "-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-k", chosen, f"tests/unit/{file}"], cwd=ROOT, capture_output=True, text=True, check=False,
        env=environment() | {"PYTHONPATH": f"{LIBRARIES}:{ROOT / 'tests'}"}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
