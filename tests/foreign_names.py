"""Finds where a source uses what another package keeps for itself, or changes what belongs to another package."""

import ast
import importlib
import inspect
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache

#: Documented, and so public in spite of its name; and settings and hooks, which are there to be changed.
DOCUMENTED = {
    "os._exit",
    "numba.config.CACHE_DIR",
    "threading.excepthook",
    *(f"sys.{name}" for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")),
    # Read where Robot Framework has it, and only to forget what it would say twice.
    "robot.output.LOGGER._message_cache",
}
#: Documented methods of named tuples.
OF_NAMED_TUPLES = {"_asdict", "_replace", "_make", "_fields"}


@dataclass(frozen=True)
class Finding:
    """A line of a source, and what is wrong there."""

    line: int
    name: str
    #: "is private" or "is overwritten".
    problem: str


def is_private(name: str) -> bool:
    """Whether a name begins with one underscore; two at both ends are Python's own."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__")) and name != "_"


def names_defined(tree: ast.AST) -> set[str]:
    """The private names that a source gives to something of its own."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
    return {name for name in found if is_private(name)}


def imports(tree: ast.AST) -> Iterator[tuple[int, str, str, str]]:
    """Line, module, name imported from it (empty: the module itself) and the name that it gets here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, "", alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield node.lineno, node.module or "", alias.name, alias.asname or alias.name


def packages(tree: ast.AST) -> set[str]:
    """The uppermost packages that a source imports from."""
    return {module.partition(".")[0] for _, module, _, _ in imports(tree)}


class Foreign(ast.NodeVisitor):
    """What a source does with other packages' names."""

    def __init__(self, tree: ast.AST, ours: Collection[str], defined: Collection[str]) -> None:
        """`ours`: the packages that are no others. `defined`: private names that our sources give to something."""
        self.findings: list[Finding] = []
        self._defined = {*defined, *OF_NAMED_TUPLES}
        #: What a name of this source stands for, in another package.
        self._known: dict[str, str] = {}
        for line, module, name, here in imports(tree):
            if module.partition(".")[0] in ours:
                continue
            whole = f"{module}.{name}" if name else module
            if any(is_private(part) for part in whole.split(".")):
                self._find(line, whole, "is private")
            self._known[here] = whole if name or here != module.partition(".")[0] else here
        self.visit(tree)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        whole = self._foreign(node)
        if whole in DOCUMENTED:
            return
        if whole and not isinstance(node.ctx, ast.Load):
            self._find(node.lineno, whole, "is overwritten")
        elif whole and is_private(node.attr):
            self._find(node.lineno, whole, "is private")
        elif not whole and is_private(node.attr) and not _is_own(node.value) and node.attr not in self._defined:
            self._find(node.lineno, ast.unparse(node), "is private")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """`getattr` and its like, which name what they look for in a string."""
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "delattr" | "hasattr" as how),
                args=[owner, ast.Constant(value=str(name)), *_],
            ):
                whole = self._foreign(owner)
                if whole and how in ("setattr", "delattr"):
                    self._find(node.lineno, f"{whole}.{name}", "is overwritten")
                elif is_private(name) and (whole or not (_is_own(owner) or name in self._defined)):
                    self._find(node.lineno, f"{whole or ast.unparse(owner)}.{name}", "is private")
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Private names that a class has from another package's: to use or to replace them is the same."""
        for base in node.bases:
            whole = self._foreign(base.value if isinstance(base, ast.Subscript) else base)
            for name, line in (_own_names(node) if whole else {}).items():
                if name in private_names_of(whole):
                    self._find(line, f"{whole}.{name}", "is private")
        self.generic_visit(node)

    def _foreign(self, node: ast.expr) -> str:
        """What an expression names in another package, from the package on; empty where it does not."""
        match node:
            case ast.Name(id=name):
                return self._known.get(name, "")
            case ast.Attribute(value=value, attr=attr):
                owner = self._foreign(value)
                return f"{owner}.{attr}" if owner else ""
        return ""

    def _find(self, line: int, name: str, problem: str) -> None:
        self.findings.append(Finding(line, name, problem))


def findings(tree: ast.AST, ours: Collection[str] = (), defined: Collection[str] = ()) -> list[Finding]:
    """What is wrong in a source. `ours`: the packages that are no others. `defined`: private names of our sources."""
    return Foreign(tree, ours, {*defined, *names_defined(tree)}).findings


@cache
def private_names_of(whole: str) -> set[str]:
    """The private names of a class and its objects, read from the sources of it and of its bases; none of a class of a
    package that is not installed (TRex' client)."""
    module, _, name = whole.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return set()
    names = set()
    for each in inspect.getmro(found) if inspect.isclass(found) else ():
        names |= set(vars(each))
        try:
            names |= set(re.findall(r"\bself\.(_\w+)", inspect.getsource(each)))
        except (OSError, TypeError):
            continue  # it is written in C
    return {name for name in names if is_private(name)}


def _own_names(node: ast.ClassDef) -> dict[str, int]:
    """Private names of a class: its methods, what it gives values to, and what it uses of itself; with their lines."""
    names = {}
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                names[name] = each.lineno
            case ast.Attribute(value=value, attr=name) if _is_own(value):
                names[name] = each.lineno
    return {name: line for name, line in names.items() if is_private(name)}


def _is_own(node: ast.expr) -> bool:
    """`self`, `cls` and `super()`."""
    match node:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super")):
            return True
    return False
