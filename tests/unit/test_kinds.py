"""Nobody asks which kind of DUT or of traffic source it has: a scan of the sources."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.paths import LIBRARIES
from ctbench.dut.registry import KINDS
from ctbench.testbed.connectors.registry import CONNECTORS
from ctbench.traffic.registry import SOURCES

CTBENCH = LIBRARIES / "ctbench"
#: A package for each implementation; `ctbench.dut.linux` has two kinds.
PACKAGES = tuple(file.parent for room in ("dut", "traffic") for file in sorted((CTBENCH / room).glob("*/kind.py")))
MODULES = tuple(f"ctbench.{folder.parent.name}.{folder.name}." for folder in PACKAGES)
#: Where else kinds may be known; `connectors` is where a source meets a DUT's ports.
REGISTRIES = (CTBENCH / "dut/registry.py", CTBENCH / "traffic/registry.py", CTBENCH / "testbed/connectors")
#: Where a name is no question: the default of `Topology`, a family of rulesets that is called as its kind, a folder
#: of sources that is compiled before the tests.
NAMED = (CTBENCH / "dut/topology.py", CTBENCH / "dut/rulesets.py", CTBENCH / "cli/tests.py")
#: Modules of a package whose classes others hold: settings, DUTs, generators.
HELD = ("config.py", "settings.py", "kind.py", "dut.py", "counter.py", "forwarding.py", "bridge.py", "generator.py")


def classes_of(*files: Path) -> set[str]:
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}


NAMES = {*KINDS, *SOURCES}
CLASSES = classes_of(
    CTBENCH / "dut/kind.py",
    *(folder / name for folder in PACKAGES for name in HELD if (folder / name).is_file()),
)


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []


def questions(tree: ast.AST) -> Iterator[str]:
    """What in a module knows a kind: an import of its package, its name, an isinstance of its class."""
    for node in ast.walk(tree):
        yield from (f"import of {name}" for name in imported(node) if f"{name}.".startswith(MODULES))
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield f"the name {node.value}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            yield from (f"isinstance of {name}" for name in sorted(asked & CLASSES))


def test_each_kind_of_source_can_be_connected() -> None:
    assert set(CONNECTORS) == set(SOURCES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('if config.type == "trex": pass', "the name trex"),
        ('match kind:\n    case "ovs-dpdk": pass', "the name ovs-dpdk"),
        ('do = {"linux-router": 1}[name]', "the name linux-router"),
        ("isinstance(ports, InterfacePorts | PciPorts)", "isinstance of InterfacePorts"),
        ("from ctbench.traffic.trex.config import TrexPort", "import of ctbench.traffic.trex.config.TrexPort"),
        ("from ctbench.dut import ovs", "import of ctbench.dut.ovs"),
        ("import ctbench.dut.linux.kind", "import of ctbench.dut.linux.kind"),
    ],
)
def test_the_scan_finds(text: str, found: str) -> None:
    assert found in set(questions(ast.parse(text)))


def test_nobody_else_asks_which_kind_it_is() -> None:
    found = [
        f"{file.relative_to(LIBRARIES)}: {question}"
        for file in sorted(LIBRARIES.rglob("*.py"))
        if not any(file.is_relative_to(place) for place in (*PACKAGES, *REGISTRIES, *NAMED))
        for question in questions(ast.parse(file.read_text()))
    ]
    assert found == []
