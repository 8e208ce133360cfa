"""What the libraries import of other packages, and when."""

import ast
import re
import subprocess
import sys
from importlib import metadata

from ctbench.base.paths import ROOT

OURS = {"ctbench", "ctgen", "icount", "ConntrackSLA"}


def imported_packages() -> set[str]:
    """The uppermost packages that libraries/ imports from."""
    found = set()
    for path in (ROOT / "libraries").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])
    return found


def test_what_the_libraries_import_comes_with_what_measuring_needs() -> None:
    """And not with what only the tests need, which is in the .venv of a developer."""
    required = re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    brought = {as_written(name) for each in required for name in (each, *(metadata.requires(each) or ()))}
    known = metadata.packages_distributions()
    imported = imported_packages() - sys.stdlib_module_names - OURS
    missing = {name for name in imported & set(known) if not set(map(as_written, known[name])) & brought}
    assert missing == set()


def as_written(requirement: str) -> str:
    """The name of a distribution in one spelling, without a version."""
    return re.split(r"[^\w-]", requirement, maxsplit=1)[0].replace("_", "-").lower()


def test_what_takes_long_to_import_waits_until_it_is_used() -> None:
    asked = "import sys, ConntrackSLA; print(*{'requests', 'SSHLibrary'} & {*sys.modules})"
    command = [sys.executable, "-c", asked]
    done = subprocess.run(command, cwd=ROOT / "libraries", capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
