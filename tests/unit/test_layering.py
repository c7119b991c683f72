"""Who may import whom (docs: the rooms), read from the source itself."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("translate", "backends", "harness", "nfparity")
WORDS = ("backends.model",)

# Each third-party library and the modules that may import it; all of them lazily unless said otherwise.
LIBRARIES = {
    "dask": {"nfparity.assess.fleet.daskpool"},
    "deepdiff": {"harness.diff.compare"},
    "distributed": {"nfparity.assess.fleet.daskpool"},
    "rich": {"nfparity.report.assessment", "harness.report.progress", "harness.report.text"},
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


def test_the_text_form_of_programs_is_for_the_command_line() -> None:
    allowed = ("translate.irtext", "translate.ir", "translate.errors")
    own = [i for i in IMPORTS if _within(i.module, "translate.irtext") and _room(i.target)]
    assert own
    assert not [i for i in own if not _within(i.target, *allowed)]
    users = {i.module for i in IMPORTS if _within(i.target, "translate.irtext")}
    assert not [user for user in users if not _within(user, "translate.irtext", "nfparity.cli")]


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
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, *WORDS) and _room(i.target) and not _within(i.target, *allowed)
    ]
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
    below = ("wire", "testbed", "replay")
    extended = {"given_nftables": ("nftables", "combined")}
    backends = ("iptables", "nftables", "given_nftables", "combined", "tc_ebpf")
    wrong = []
    for one in IMPORTS:
        room, _, rest = one.module.partition(".")
        package, target = rest.partition(".")[0], one.target.removeprefix("backends.").partition(".")[0]
        if room != "backends" or not _within(one.target, "backends") or package not in (*below, *backends):
            continue
        allowed = ("model", *below, package, *extended.get(package, ()))
        if target not in allowed or (package in below and target in backends):
            wrong.append(one)
    assert not wrong


def test_rooms_import_only_rooms_before_them() -> None:
    room_of = {room: at for at, room in enumerate(ROOMS)}
    wrong = [
        i
        for i in IMPORTS
        if _room(i.target) and room_of[i.target.partition(".")[0]] > room_of[i.module.partition(".")[0]]
    ]
    assert not wrong


def test_no_packages_import_each_other() -> None:
    """Packages of two levels, such as ``harness.diff``; what is loaded lazily counts as well."""
    edges: dict[str, set[str]] = {}
    for one in IMPORTS:
        source, target = (".".join(name.split(".")[:2]) for name in (one.module, one.target))
        if _room(one.target) and source != target:
            edges.setdefault(source, set()).add(target)
    assert not _cycle(edges)


def _cycle(edges: dict[str, set[str]]) -> tuple[str, ...]:
    """A way through the edges that ends where it begins, or nothing."""
    done: set[str] = set()

    def walk(at: str, way: tuple[str, ...]) -> tuple[str, ...]:
        if at in way:
            return (*way[way.index(at) :], at)
        if at in done:
            return ()
        found = next((c for to in sorted(edges.get(at, ())) if (c := walk(to, (*way, at)))), ())
        done.add(at)
        return found

    return next((c for at in sorted(edges) if (c := walk(at, ()))), ())


def test_no_product_module_names_the_laboratory() -> None:
    texts = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert not [path for path in texts if re.search(r"tests[./]lab", path.read_text(encoding="utf-8"))]


def test_assess_is_asked_by_commands_and_reports_alone() -> None:
    allowed = ("nfparity.assess", "nfparity.cli", "nfparity.assess.fleet", "nfparity.report")
    wrong = [i for i in IMPORTS if _within(i.target, "nfparity.assess") and not _within(i.module, *allowed)]
    assert not wrong


def test_fleets_are_asked_for_by_commands_and_told_by_reports() -> None:
    allowed = ("nfparity.assess.fleet", "nfparity.cli", "nfparity.report")
    users = {i.module for i in IMPORTS if _within(i.target, "nfparity.assess.fleet")}
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
        "nfparity.snapshot",
        "nfparity.capture",
        "harness.files",
        "harness.corpus.rulefile",
        *WORDS,
    )
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "nfparity.snapshot") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_capture_stands_alone() -> None:
    carried = tuple(f"harness.files.{name}" for name in ("errors", "output", "wholefiles"))
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "nfparity.capture", *carried)
        and _room(i.target)
        and not _within(i.target, "nfparity.capture", *carried)
    ]
    assert not wrong


def test_what_a_kube_proxy_is_follows_from_rules_alone() -> None:
    allowed = ("nfparity.kubeproxy", "translate", "backends.model.node")
    wrong = [
        i
        for i in IMPORTS
        if _within(i.module, "nfparity.kubeproxy") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_only_the_command_line_migrates() -> None:
    users = {i.module for i in IMPORTS if _within(i.target, "nfparity.migrate")}
    allowed = ("nfparity.migrate", "nfparity.cli.migrate", "nfparity.cli.verify", "nfparity.report.migration")
    assert users
    assert not [user for user in users if not _within(user, *allowed)]
