"""Who may import whom (docs: the rooms), read from the source itself."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("translate", "backends", "harness")
WORDS = {f"backends.{w}" for w in ("packet", "flow", "exchange", "outcome", "contract", "node", "timeouts")}

# Each third-party library and the modules that may import it; all of them lazily unless said otherwise.
LIBRARIES = {
    "dask": {"harness.fleet.daskpool"},
    "deepdiff": {"harness.compare"},
    "distributed": {"harness.fleet.daskpool"},
    "rich": {"harness.report.assessment", "harness.report.progress", "harness.report.text"},
    "scapy": {"harness.corpus.capturefile"},
}
MOST_IMPORTERS = 3


@dataclass(frozen=True)
class Import:
    module: str
    target: str
    lazy: bool
    place: str


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules() -> set[str]:
    return {_module(p) for room in ROOMS for p in (ROOT / room).rglob("*.py")}


def _imports() -> Iterator[Import]:
    modules = _modules()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            lazy = {
                id(inner)
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _type_checking(node)
                for inner in ast.walk(node)
            }
            for node in ast.walk(tree):
                for target in _targets(node, modules):
                    place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
                    yield Import(_module(path), target, id(node) in lazy, place)


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _targets(node: ast.AST, modules: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide the room"
        assert node.module is not None
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules else node.module


IMPORTS = tuple(_imports())


def _within(target: str, *packages: str) -> bool:
    return any(target == p or target.startswith(f"{p}.") for p in packages)


def _room(target: str) -> bool:
    return _within(target, *ROOMS)


def test_the_source_was_found() -> None:
    assert len(_modules()) > 40
    assert any(i.target.startswith("translate.ir") for i in IMPORTS)


def test_translate_imports_the_standard_library_and_itself() -> None:
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "translate")
        and not _within(i.target, "translate")
        and i.target.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert not wrong


def test_translate_reads_no_file_clock_or_chance() -> None:
    forbidden = ("os", "random", "secrets", "time", "datetime", "subprocess", "pathlib", "io", "tempfile")
    # Families turn addresses into text with inet_ntop; that is all of socket that is used.
    wrong = [i for i in IMPORTS if _within(i.module, "translate") and _within(i.target, *forbidden)]
    assert not wrong


def test_ir_imports_nothing_above_it() -> None:
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "translate.ir") and _room(i.target) and not _within(i.target, "translate.ir")
    ]
    assert not wrong


def test_listings_are_no_rules_of_ours() -> None:
    allowed = (
        "translate.nftlisting",
        "translate.ir",
        "translate.errors",
        "translate.collector",
        "translate.jsoninput",
    )
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "translate.nftlisting") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_the_words_of_backends_import_the_vocabulary_alone() -> None:
    allowed = ("translate.ir", "translate.errors", "translate.jsoninput", *WORDS)
    wrong = [i for i in IMPORTS if i.module in WORDS and _room(i.target) and not _within(i.target, *allowed)]
    assert not wrong


def test_the_simulator_never_sees_a_lowered_program() -> None:
    allowed = ("backends.simulator", "translate.ir", "translate.errors", *WORDS)
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "backends.simulator") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong
    program = {"Program", "Lookup", "Choose", "LoweredChain", "Apply"}
    for path in (ROOT / "backends/simulator").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
        assert not names & program, path


def test_kernel_backends_import_neither_the_simulator_nor_each_other() -> None:
    names = ("xtables", "nftables", "nftgiven", "tc_ebpf")
    backends = tuple(f"backends.kernel.{name}" for name in names)
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "backends.kernel")
        and (
            _within(i.target, "backends.simulator")
            or any(_within(i.target, b) and not _within(i.module, b) for b in backends)
        )
    ]
    assert not wrong


def test_nobody_below_imports_the_harness() -> None:
    wrong = [i for i in IMPORTS if _within(i.target, "harness") and not _within(i.module, "harness")]
    assert not wrong


def test_assess_is_asked_by_commands_and_reports_alone() -> None:
    allowed = ("harness.assess", "harness.cli", "harness.fleet", "harness.report")
    wrong = [i for i in IMPORTS if _within(i.target, "harness.assess") and not _within(i.module, *allowed)]
    assert not wrong


def test_fleets_are_asked_for_by_commands_and_told_by_reports() -> None:
    allowed = ("harness.fleet", "harness.cli", "harness.report")
    users = {i.module for i in IMPORTS if _within(i.target, "harness.fleet")}
    assert users
    assert not [user for user in users if not _within(user, *allowed)]


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_a_library_is_imported_lazily_where_it_belongs(library: str) -> None:
    uses = [i for i in IMPORTS if _within(i.target, library)]
    assert uses
    assert {i.module for i in uses} <= LIBRARIES[library]
    assert not [i for i in uses if not i.lazy]


def test_every_other_library_stays_in_few_modules() -> None:
    users: dict[str, set[str]] = {}
    for one in IMPORTS:
        library = one.target.partition(".")[0]
        if library not in sys.stdlib_module_names and library not in ROOMS:
            users.setdefault(library, set()).add(one.module)
    assert set(users) <= {"dask", "deepdiff", "distributed", "rich", "scapy", "pyroute2", "nftables", "bcc"}
    crowded = {k: v for k, v in users.items() if len(v) > MOST_IMPORTERS}
    assert not crowded


def test_every_package_says_what_it_exports() -> None:
    for room in ROOMS:
        for path in (ROOT / room).rglob("__init__.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            assert ast.get_docstring(tree), path
            names = {
                t.id
                for n in tree.body
                if isinstance(n, ast.Assign | ast.AnnAssign)
                for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
                if isinstance(t, ast.Name)
            }
            has_code = any(isinstance(n, ast.Import | ast.ImportFrom | ast.FunctionDef) for n in tree.body)
            assert "__all__" in names or not has_code, path


def test_a_snapshot_knows_no_command_and_no_backend() -> None:
    allowed = (
        "translate",
        "harness.snapshot",
        "harness.capture",
        "harness.files",
        "harness.rulefile",
        "harness.inference",
        *WORDS,
    )
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "harness.snapshot") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_capture_stands_alone() -> None:
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "harness.capture")
        and _room(i.target)
        and not _within(i.target, "harness.capture")
    ]
    assert not wrong


def test_what_a_kube_proxy_is_follows_from_rules_alone() -> None:
    allowed = ("harness.kubeproxy", "translate", "backends.node")
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "harness.kubeproxy") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_nobody_imports_the_bench() -> None:
    assert not [i for i in IMPORTS if _within(i.target, "bench")]


def test_only_the_command_line_migrates() -> None:
    users = {i.module for i in IMPORTS if _within(i.target, "harness.migrate")}
    allowed = ("harness.migrate", "harness.cli.migrate", "harness.cli.verify", "harness.report.migration")
    assert users
    assert not [user for user in users if not _within(user, *allowed)]
