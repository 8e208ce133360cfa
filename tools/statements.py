"""Counts statements, functions and classes of the sources by their top folders, as Python's parser sees them:
docstrings do not count, and how lines are broken changes nothing."""

import argparse
import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import ending

ROOT = Path(__file__).parents[1]
FOLDERS = ("libraries", "tests")


@dataclass
class Size:
    """What a piece of source has."""

    statements: int = 0
    functions: int = 0
    classes: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.statements + other.statements, self.functions + other.functions, self.classes + other.classes)


def size_of(source: str) -> Size:
    """Of one file."""
    nodes = list(ast.walk(ast.parse(source)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    modules = [node for node in nodes if isinstance(node, ast.Module)]
    docstrings = [node for node in (*modules, *classes, *functions) if ast.get_docstring(node) is not None]
    statements = sum(isinstance(node, ast.stmt) for node in nodes) - len(docstrings)
    return Size(statements, len(functions), len(classes))


def sizes(folder: Path) -> Iterator[tuple[str, Size]]:
    """Of the folder, and of each package below it with those right below that."""
    found: dict[str, Size] = {}
    for path in sorted(folder.rglob("*.py")):
        name = "/".join(path.relative_to(folder).parts[:-1][:2]) or "files of its own"
        found[name] = found.get(name, Size()) + size_of(path.read_text(encoding="utf-8"))
    yield f"{folder.name}/", sum(found.values(), Size())
    yield from ((f"  {name}", size) for name, size in found.items())


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.statements", description=__doc__)
    parser.add_argument("folders", nargs="*", default=FOLDERS, metavar="FOLDER", help="instead of libraries and tests")
    folders = parser.parse_args().folders
    print(f"{'':24}{'statements':>12}{'functions':>12}{'classes':>12}")
    for folder in folders:
        for name, size in sizes(ROOT / folder):
            print(f"{name:24}{size.statements:>12}{size.functions:>12}{size.classes:>12}")
    return 0


if __name__ == "__main__":
    ending.run(main)
