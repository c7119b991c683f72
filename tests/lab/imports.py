"""The imports of a source tree, read from the source itself, and the cycles that they form."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Import", "cycles", "modules_of", "read_imports", "upward"]


@dataclass(frozen=True)
class Import:
    """One import: ``module`` imports ``target`` at ``place``.

    ``lazy`` is true inside a function and under ``TYPE_CHECKING``; such an import counts in a cycle, too.
    """

    module: str
    target: str
    lazy: bool
    place: str


def modules_of(root: Path, packages: Iterable[str]) -> dict[str, Path]:
    """Return the modules of some top-level packages with their files."""
    return {_name(path, root): path for p in packages for path in sorted((root / p).rglob("*.py"))}


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_imports(root: Path, packages: Iterable[str]) -> Iterator[Import]:
    """Yield every import in some top-level packages."""
    modules = modules_of(root, packages)
    for module, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lazy = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _type_checking(node)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            for target in _targets(node, modules):
                place = f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}"
                yield Import(module, target, id(node) in lazy, place)


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _targets(node: ast.AST, modules: Iterable[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "a relative import hides the package"
        assert node.module is not None
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules else node.module


def upward(imports: Iterable[Import], order: Sequence[str]) -> list[Import]:
    """Return the imports of a later one of the top-level packages by an earlier one."""
    level = {package: i for i, package in enumerate(order)}
    return [
        edge
        for edge in imports
        if (target := edge.target.partition(".")[0]) in level
        and level[target] > level[edge.module.partition(".")[0]]
    ]


def cycles(imports: Iterable[Import], modules: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups of packages and modules, direct children of one package, that import each other.

    An import of a module counts as an import between two children of the nearest common package: those that
    contain the two modules. The package's own ``__init__`` is one of the children. So every cycle of modules
    is a cycle of children of some package. A cycle of packages is found even if no single module is in a
    cycle.
    """
    known = set(modules)
    packages = {name.rpartition(".")[0] for name in known}
    edges: dict[str, set[str]] = {}
    for edge in imports:
        if edge.target in known:
            source, target = (f"{n}.__init__" if n in packages else n for n in (edge.module, edge.target))
            ends = _children(source.split("."), target.split("."))
            if ends is not None:
                edges.setdefault(ends[0], set()).add(ends[1])
    return _components(edges)


def _children(source: list[str], target: list[str]) -> tuple[str, str] | None:
    """Return the children of the nearest common package to which two modules belong."""
    for depth, (a, b) in enumerate(zip(source, target, strict=False), 1):
        if a != b:
            return ".".join(source[:depth]), ".".join(target[:depth])
    return None


def _components(edges: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """Return the strongly connected components with more than one node (Tarjan's algorithm), sorted."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: list[str] = []
    components: list[tuple[str, ...]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        open_nodes.append(node)
        for to in sorted(edges.get(node, ())):
            if to not in number:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in open_nodes:
                low[node] = min(low[node], number[to])
        if low[node] == number[node]:
            place = open_nodes.index(node)
            component = open_nodes[place:]
            del open_nodes[place:]
            if len(component) > 1:
                components.append(tuple(sorted(component)))

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return sorted(components)
