"""Other packages are used by what they make public: a new release of one may change anything else."""

import ast
from pathlib import Path

import pytest
from foreign_names import findings, names_defined, packages

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
OURS = {"ctbench", "ConntrackSLA"}
#: Libraries of Robot Framework that the project stands on.
STARTS_ROBOT = "libraries/ctbench/cli/robot"
OF_ROBOT = ("pabot", "SSHLibrary", "RequestsLibrary")


@pytest.fixture(scope="module")
def sources() -> dict[Path, ast.AST]:
    """What libraries/ holds."""
    paths = sorted((ROOT / "libraries").rglob("*.py"))
    assert len(paths) > 100
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def test_no_source_uses_or_changes_what_another_package_keeps_for_itself(sources: dict[Path, ast.AST]) -> None:
    defined = set().union(*(names_defined(tree) for tree in sources.values()))
    found = [
        f"{path}:{each.line}: {each.name} {each.problem}"
        for path, tree in sources.items()
        for each in findings(tree, OURS, defined)
    ]
    assert found == []


def test_each_library_of_robot_framework_is_imported_in_one_module(sources: dict[Path, ast.AST]) -> None:
    where: dict[str, list[str]] = {
        package: [str(path) for path, tree in sources.items() if package in packages(tree)] for package in OF_ROBOT
    }
    assert {package: len(paths) for package, paths in where.items()} == dict.fromkeys(OF_ROBOT, 1), where


def test_ctbench_imports_nothing_of_robot_framework_itself(sources: dict[Path, ast.AST]) -> None:
    """But for the folder that starts it."""
    elsewhere = {path: tree for path, tree in sources.items() if not path.is_relative_to(STARTS_ROBOT)}
    inside = {path: tree for path, tree in elsewhere.items() if "ctbench" in path.parts}
    assert [str(path) for path, tree in inside.items() if "robot" in packages(tree)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from pabot.pabotlib import _PabotLib", ["pabot.pabotlib._PabotLib is private"]),
        ("import os, numpy._core as core", ["numpy._core is private"]),
        ("from pabot import pabot\nprint(pabot._PABOTLIBURI)", ["pabot.pabot._PABOTLIBURI is private"]),
        ("from pabot import pabot\npabot._PABOTLIBURI = 1", ["pabot.pabot._PABOTLIBURI is overwritten"]),
        ("import pabot.pabot\npabot.pabot.keyboard_interrupt = 1", ["pabot.pabot.keyboard_interrupt is overwritten"]),
        ("import pabot as p\ndel p.main", ["pabot.main is overwritten"]),
        ("from pabot import pabot\npabot.count += 1", ["pabot.pabot.count is overwritten"]),
        ("from pabot import pabot\nsetattr(pabot, 'main', 1)", ["pabot.pabot.main is overwritten"]),
        ("from pabot import pabot\ngetattr(pabot, '_main')", ["pabot.pabot._main is private"]),
        ("import paramiko\ndef f(x: paramiko.Channel): return x._closed", ["x._closed is private"]),
        ("import paramiko\nparamiko.SSHClient()._transport", ["paramiko.SSHClient()._transport is private"]),
        (
            "from SSHLibrary import SSHClient\nclass C(SSHClient):\n def _get_client(self): pass",
            ["SSHLibrary.SSHClient._get_client is private"],
        ),
        (
            "import threading\nclass T(threading.Thread):\n def f(self): self._target()",
            ["threading.Thread._target is private"],
        ),
        ("import os\nos._exit(1)\nos.environ['A'] = 'b'", []),
        ("from __future__ import annotations\nimport x\nprint(x.__doc__, x.__version__)", []),
        ("from ours import thing\nthing._inner = 1\nclass A:\n _inner = 0", []),
        ("import threading\nclass T(threading.Thread):\n def f(self): self._seen = 1", []),
        ("class A:\n def f(self, other): return self._a or other._a\n def g(self): self._a = 1", []),
        ("import x\nfor _ in x.y: pass\nx.y._replace(a=1)", ["x.y._replace is private"]),
        ("def f(pair): return pair._replace(a=1)", []),
    ],
)
def test_the_check_sees_what_it_should_and_nothing_else(source: str, found: list[str]) -> None:
    assert [f"{each.name} {each.problem}" for each in findings(ast.parse(source), {"ours"})] == found
