"""The floors of the house, which the lint holds; other packages are used by what they make public: a new release of one
may change anything else. The lint says where a private attribute is used (SLF001); here is what it does not see."""

import ast
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from ctbench.base.paths import LIBRARIES, ROOT

OURS = {"ctbench", "ConntrackSLA"}
#: Settings and hooks, which are there to be changed.
SETTINGS = {"threading.excepthook", "robot.output.LOGGER._message_cache"} | {
    f"sys.{name}" for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
}
#: Libraries of Robot Framework that the project stands on.
STARTS_ROBOT = "libraries/ctbench/cli/robot"
OF_ROBOT = ("SSHLibrary", "RequestsLibrary")


@pytest.fixture(scope="module")
def sources() -> dict[Path, ast.AST]:
    """What libraries/ holds."""
    paths = sorted((ROOT / "libraries").rglob("*.py"))
    assert len(paths) > 100
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What a source imports of other packages: the name that it has here, and its whole name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield alias.asname or first, alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def packages(tree: ast.AST) -> set[str]:
    """The uppermost packages that a source imports from."""
    return {whole.partition(".")[0] for _, whole in imports(tree)}


def findings(tree: ast.AST) -> list[str]:
    """Names of other packages that a source overwrites; private ones that it imports, or shares with a base class."""
    known = {here: whole for here, whole in imports(tree) if whole.partition(".")[0] not in OURS}

    def foreign(node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return known.get(name, "")
            case ast.Attribute(value=value, attr=name) if whole := foreign(value):
                return f"{whole}.{name}"
        return ""

    found = [whole for whole in known.values() if re.search(r"\._(?!_)", whole)]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                found.append(foreign(node))
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, ast.Constant(value=str(name)), *_]):
                found.append(foreign(owner) and f"{foreign(owner)}.{name}")
            case ast.ClassDef(bases=bases):
                for base in filter(None, map(foreign, bases)):
                    used = set(re.findall(r"(?:\bself\.|\bdef )(_[a-z]\w*)", ast.unparse(node)))
                    found += [f"{base}.{name}" for name in used & private_names(base)]
    return [each for each in found if each and each not in SETTINGS]


@cache
def private_names(whole: str) -> set[str]:
    """The private names of a class and its objects, by the sources of it and its bases; none of what is not a class, or
    not installed (TRex' client)."""
    module, _, name = whole.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name) if module else None
    except (ImportError, AttributeError):
        return set()
    names: set[str] = set()
    for each in inspect.getmro(found) if inspect.isclass(found) else ():
        names |= set(vars(each))
        try:
            names |= set(re.findall(r"\bself\.(_\w+)", inspect.getsource(each)))
        except (OSError, TypeError):
            continue  # it is written in C
    return names


def test_no_source_changes_another_package_or_imports_robot_framework_itself(sources: dict[Path, ast.AST]) -> None:
    assert {str(path): found for path, tree in sources.items() if (found := findings(tree))} == {}
    # But for the folder that starts it.
    elsewhere = {path: tree for path, tree in sources.items() if not path.is_relative_to(STARTS_ROBOT)}
    inside = {path: tree for path, tree in elsewhere.items() if "ctbench" in path.parts}
    assert [str(path) for path, tree in inside.items() if "robot" in packages(tree)] == []
    where: dict[str, list[str]] = {
        package: [str(path) for path, tree in sources.items() if package in packages(tree)] for package in OF_ROBOT
    }
    assert {package: len(paths) for package, paths in where.items()} == dict.fromkeys(OF_ROBOT, 1), where


def test_what_the_libraries_import_comes_with_what_measuring_needs(sources: dict[Path, ast.AST]) -> None:
    """And not with what only the tests need, which is in the .venv of a developer."""
    required = re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    brought = {as_written(name) for each in required for name in (each, *(metadata.requires(each) or ()))}
    known = metadata.packages_distributions()
    imported = set().union(*map(packages, sources.values())) - sys.stdlib_module_names - OURS
    missing = {name for name in imported & set(known) if not set(map(as_written, known[name])) & brought}
    assert missing == set()


def as_written(requirement: str) -> str:
    """The name of a distribution in one spelling, without a version."""
    return re.split(r"[^\w-]", requirement, maxsplit=1)[0].replace("_", "-").lower()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os, numpy._core as core", ["numpy._core"]),
        ("from robot import run\nrun.COUNT = 1", ["robot.run.COUNT"]),
        ("import robot as r\ndel r.main", ["robot.main"]),
        ("from robot import run\nsetattr(run, 'main', 1)", ["robot.run.main"]),
        (
            "from SSHLibrary import SSHClient\nclass C(SSHClient):\n def _get_client(self): pass",
            ["SSHLibrary.SSHClient._get_client"],
        ),
        ("import threading\nclass T(threading.Thread):\n def f(self): self._target()", ["threading.Thread._target"]),
        ("import os\nos.environ['A'] = 'b'\nimport sys\nsys.stdout = None", []),
        ("from ctbench import thing\nthing._inner = 1\nclass A:\n _inner = 0", []),
        ("import threading\nclass T(threading.Thread):\n def f(self): self._seen = 1", []),
    ],
)
def test_the_check_sees_what_it_should_and_nothing_else(source: str, found: list[str]) -> None:
    assert findings(ast.parse(source)) == found


def test_what_takes_long_to_import_waits_until_it_is_used() -> None:
    asked = "import sys, ConntrackSLA; print(*{'requests', 'SSHLibrary'} & {*sys.modules})"
    command = [sys.executable, "-c", asked]
    done = subprocess.run(command, cwd=ROOT / "libraries", capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [("base/units", "run.acceptance"), ("dut/topology", "traffic.profiles"), ("hosts/base", "sla.floor")],
)
def test_an_import_that_goes_up_is_said(tmp_path: Path, module: str, imported: str) -> None:
    shutil.copytree(LIBRARIES, tmp_path / "libraries")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file = tmp_path / "libraries" / "ctbench" / f"{module}.py"
    file.write_text(f"{file.read_text()}\nimport ctbench.{imported}\n")

    lint = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(
        lint, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "libraries")}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert f"ctbench.{module.replace('/', '.')} -> ctbench.{imported}" in done.stdout
