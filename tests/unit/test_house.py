"""The floors of the house, which the lint holds, and what the libraries import of other packages."""

import ast
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from ctbench.base.paths import LIBRARIES, ROOT

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


#: Modules, and what each may not import.
FORBIDDEN = {
    "ctbench.base.units": "ctbench.run.acceptance",
    "ctbench.dut.topology": "ctbench.traffic.profiles",
    "ctbench.hosts.base": "ctbench.results.floor",
    "ctbench.measure.trial": "ctgen",
    "ctbench.traffic.loads": "ctgen.engine",
    "ctgen.plan": "ctbench.base.units",
    "ctbench.report.candidate": "ctbench.measure.procedures.pair",
    "ctbench.sla.calibration": "icount",
    "ctbench.dut.emulated": "icount.machine",
    "icount.errors": "ctbench.base.text",
}


@pytest.fixture(scope="module")
def linted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the lint says of a copy in which all of them do."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copytree(LIBRARIES, copy / "libraries")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for module, imported in FORBIDDEN.items():
        file = (copy / "libraries" / module.replace(".", "/")).with_suffix(".py")
        file.write_text(f"{file.read_text()}\nimport {imported}\n")
    lint = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {"PYTHONPATH": str(copy / "libraries")}
    done = subprocess.run(lint, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stdout


@pytest.mark.parametrize(("module", "imported"), FORBIDDEN.items())
def test_an_import_that_goes_up_or_past_a_door_is_said(linted: str, module: str, imported: str) -> None:
    assert f"{module} -> {imported}" in linted
