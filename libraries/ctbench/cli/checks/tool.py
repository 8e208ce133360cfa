"""How a check starts the program behind it: in the checkout, and as somebody would start it by hand."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[4]
_LIBRARIES = str(ROOT / "libraries")


def argv(program: Sequence[str]) -> list[str]:
    """A program of our .venv by its path, with its arguments."""
    return [str(Path(sys.prefix) / "bin" / program[0]), *program[1:]]


def environment(*, imports_ours: bool) -> dict[str, str]:
    """Ours, without what `./run` sets for the commands that measure; with our libraries in PYTHONPATH, or without."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONUTF8")}
    others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each not in ("", _LIBRARIES)]
    path = os.pathsep.join([_LIBRARIES] * imports_ours + others)
    return kept | ({"PYTHONPATH": path} if path else {})


def become(program: Sequence[str], *, imports_ours: bool) -> NoReturn:
    """Replace this process by a program, so that signals and the exit status are that program's."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.chdir(ROOT)
    sys.stdout.flush()
    sys.stderr.flush()
    command = argv(program)
    os.execve(command[0], command, environment(imports_ours=imports_ours))
