"""A plugin of pytest (`-p sanitized`): the generator's kernel with AddressSanitizer and UndefinedBehaviorSanitizer.

The process has to be started as `environment` says.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping

from ctbench.base.paths import LIBRARIES, ROOT
from ctgen import library

#: Without -Werror: what is added to each access gives compilers more to wonder about. A call for each access and the
#: lines alone (-g1) take half the time to compile, and check the same ones.
FLAGS = (
    *(flag for flag in library.FLAGS if flag != "-Werror"),
    *("-g1", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    *("--param", "asan-instrumentation-with-call-threshold=0"),
)


def pytest_configure() -> None:
    """Where this is a plugin, and not only imported."""
    library.FLAGS = FLAGS


def environment() -> dict[str, str]:
    """Where the interpreter, which is not compiled so, finds what a library that is has to find first. Python's own
    memory comes from where the sanitizer sees it; what Python leaks is not looked for."""
    ask = [library.COMPILER, "-print-file-name=libasan.so"]
    found = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    # Where Python had its memory from is not asked, and to note it takes most of the time.
    asan = "detect_leaks=0:malloc_context_size=1"
    options = {"LD_PRELOAD": found, "ASAN_OPTIONS": asan, "PYTHONMALLOC": "malloc"}
    return os.environ | options | {"PYTEST_ADDOPTS": ""}


def poison(address: int, size: int) -> None:
    """Nobody may touch these bytes; nothing where the process is not sanitized."""
    if forbid := getattr(ctypes.CDLL(None), "__asan_poison_memory_region", None):
        forbid(ctypes.c_void_p(address), ctypes.c_size_t(size))


def find_nothing(chosen: Mapping[str, str]) -> None:
    """Tests pass with the sanitizers, in a process of their own: of each file those that are chosen (pytest's -k)."""
    names = " or ".join(f"{file} and ({which})" for file, which in chosen.items())
    command = [sys.executable, "-m", "pytest", "-p", "sanitized", "-s", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-k", names, *(f"tests/unit/{file}" for file in chosen)]
    found = environment() | {"PYTHONPATH": f"{LIBRARIES}:{ROOT / 'tests'}"}
    done = subprocess.run(command, env=found, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
