"""Allowed imports between the packages of docs/architecture.md, read from the source itself."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.lab.imports import Import, cycles, modules_of, read_imports, upward

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("translate", "backends", "harness", "nfparity")
PRODUCT = (*ROOMS, "vm")
WORDS = ("backends.model",)
EVERYWHERE = "translate.dataclass"  # stands for dataclasses of the standard library
NOT_WITH_LIBRARIES = ("nfparity.capture", "nfparity.kubectl", "harness.files")

# Each third-party library and the modules that may import it; all of them lazily unless said otherwise.
LIBRARIES = {
    "dask": {"nfparity.assess.fleet.daskpool"},
    "deepdiff": {"harness.diff.mismatch"},
    "distributed": {"nfparity.assess.fleet.daskpool"},
    "jinja2": {"nfparity.report.pages.page"},
    "rich": {"harness.report.progress", "harness.report.terminal", "harness.report.text"},
    "scapy": {"harness.corpus.formats.capturefile"},
}
MOST_IMPORTERS = 3


MODULES = modules_of(ROOT, PRODUCT)


@cache
def every_import() -> tuple[Import, ...]:
    return tuple(read_imports(ROOT, PRODUCT))


@cache
def imports() -> tuple[Import, ...]:
    return tuple(
        i for i in every_import() if i.module.partition(".")[0] in ROOMS and not _within(i.target, EVERYWHERE)
    )


def _within(target: str, *packages: str) -> bool:
    return any(target == p or target.startswith(f"{p}.") for p in packages)


def _room(target: str) -> bool:
    return _within(target, *ROOMS)


def test_the_source_was_found() -> None:
    assert len(MODULES) > 40
    assert any(i.target.startswith("translate.ir") for i in imports())


def test_translate_imports_the_standard_library_and_itself() -> None:
    wrong = [
        i
        for i in imports()
        if _within(i.module, "translate")
        and not _within(i.target, "translate")
        and i.target.partition(".")[0] not in sys.stdlib_module_names
        and (i.module, i.target.partition(".")[0]) != (EVERYWHERE, "msgspec")
    ]
    assert not wrong


def test_dataclasses_come_from_one_place() -> None:
    of_the_library = [i for i in every_import() if i.target.partition(".")[0] == "dataclasses"]
    ours = [i for i in every_import() if _within(i.target, EVERYWHERE)]
    assert ours
    assert not [i for i in ours if _within(i.module, *NOT_WITH_LIBRARIES)]
    allowed = (EVERYWHERE, "vm", *NOT_WITH_LIBRARIES)
    assert not [i for i in of_the_library if not _within(i.module, *allowed)]


def test_translate_reads_no_file_clock_or_chance() -> None:
    forbidden = ("os", "random", "secrets", "time", "datetime", "subprocess", "pathlib", "io", "tempfile")
    # Families turn addresses into text with inet_ntop; that is all of socket that is used.
    wrong = [i for i in imports() if _within(i.module, "translate") and _within(i.target, *forbidden)]
    assert not wrong


def test_ir_imports_nothing_above_it() -> None:
    wrong = [
        i
        for i in imports()
        if _within(i.module, "translate.ir") and _room(i.target) and not _within(i.target, "translate.ir")
    ]
    assert not wrong


def test_the_text_form_of_programs_is_for_the_command_line() -> None:
    allowed = ("translate.irtext", "translate.ir", "translate.errors")
    own = [i for i in imports() if _within(i.module, "translate.irtext") and _room(i.target)]
    assert own
    assert not [i for i in own if not _within(i.target, *allowed)]
    users = {i.module for i in imports() if _within(i.target, "translate.irtext")}
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
        for i in imports()
        if _within(i.module, "translate.nftlisting") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_plain_translation_knows_nothing_of_the_fast_path() -> None:
    users = {i.module for i in imports() if _within(i.target, "translate.condense")}
    allowed = ("translate.condense", "backends.nftables", "backends.tc_ebpf", "nfparity")
    assert users
    assert not [user for user in users if not _within(user, *allowed)]


def test_the_words_of_backends_import_the_vocabulary_alone() -> None:
    allowed = ("translate.ir", "translate.errors", "translate.jsoninput", *WORDS)
    wrong = [
        i
        for i in imports()
        if _within(i.module, *WORDS) and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_the_simulator_never_sees_a_lowered_program() -> None:
    allowed = ("backends.simulator", "backends.wire", "translate.ir", "translate.errors", *WORDS)
    wrong = [
        i
        for i in imports()
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
    for one in imports():
        room, _, rest = one.module.partition(".")
        package, target = rest.partition(".")[0], one.target.removeprefix("backends.").partition(".")[0]
        if room != "backends" or not _within(one.target, "backends") or package not in (*below, *backends):
            continue
        allowed = ("model", *below, package, *extended.get(package, ()))
        if target not in allowed or (package in below and target in backends):
            wrong.append(one)
    assert not wrong


def test_packages_import_only_packages_before_them() -> None:
    assert upward(every_import(), PRODUCT) == []


def test_no_import_cycles() -> None:
    """Between modules and between packages; lazy imports and those for type checking count as well."""
    assert cycles(every_import(), MODULES) == []


def _planted(root: Path, files: dict[str, str]) -> tuple[list[Import], set[str]]:
    """Write a small product and return its imports and modules."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(read_imports(root, PRODUCT)), set(modules_of(root, PRODUCT))


SMALL_PRODUCT = {
    "translate/__init__.py": "",
    "translate/ir/__init__.py": "from translate.ir.rule import Rule\n",
    "translate/ir/rule.py": "class Rule: ...\n",
    "translate/read/__init__.py": "",
    "translate/read/save.py": "from translate.ir import Rule\n",
    "backends/node.py": "from translate.read import save\nimport translate.ir.rule\n",
}
LAZY = "def late():\n    from {} import {}\n"
TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {} import {}\n"


def test_a_small_product_without_faults(tmp_path: Path) -> None:
    imports, modules = _planted(tmp_path, SMALL_PRODUCT)
    assert (upward(imports, PRODUCT), cycles(imports, modules)) == ([], [])


@pytest.mark.parametrize("form", ["from {} import {}\n", LAZY, TYPES])
@pytest.mark.parametrize(
    ("file", "package", "name", "cycle"),
    [
        ("translate/ir/rule.py", "translate.ir", "Rule", ("translate.ir.__init__", "translate.ir.rule")),
        ("translate/ir/rule.py", "translate.read.save", "Rule", ("translate.ir", "translate.read")),
        ("translate/ir/other.py", "translate.read", "other", ("translate.ir", "translate.read")),
    ],
)
def test_a_planted_cycle_is_found(
    form: str, file: str, package: str, name: str, cycle: tuple[str, ...], tmp_path: Path
) -> None:
    """Cycles between modules, between packages, and between a module and its package."""
    imports, modules = _planted(tmp_path, {**SMALL_PRODUCT, file: form.format(package, name)})
    assert cycles(imports, modules) == [cycle]


@pytest.mark.parametrize("form", ["from {} import {}\n", LAZY, TYPES])
def test_a_planted_upward_import_is_found(form: str, tmp_path: Path) -> None:
    imports, _ = _planted(tmp_path, {**SMALL_PRODUCT, "translate/up.py": form.format("backends", "node")})
    (one,) = upward(imports, PRODUCT)
    assert (one.module, one.target) == ("translate.up", "backends.node")


def test_no_product_module_names_the_laboratory() -> None:
    texts = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert not [path for path in texts if re.search(r"tests[./]lab", path.read_text(encoding="utf-8"))]


def test_assess_is_asked_by_commands_and_reports_alone() -> None:
    allowed = ("nfparity.assess", "nfparity.cli", "nfparity.assess.fleet", "nfparity.report")
    wrong = [i for i in imports() if _within(i.target, "nfparity.assess") and not _within(i.module, *allowed)]
    assert not wrong


def test_fleets_are_asked_for_by_commands_and_told_by_reports() -> None:
    allowed = ("nfparity.assess.fleet", "nfparity.cli", "nfparity.report")
    users = {i.module for i in imports() if _within(i.target, "nfparity.assess.fleet")}
    assert users
    assert not [user for user in users if not _within(user, *allowed)]


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_a_library_is_imported_lazily_where_it_belongs(library: str) -> None:
    uses = [i for i in imports() if _within(i.target, library)]
    assert uses
    assert {i.module for i in uses} <= LIBRARIES[library]
    assert not [i for i in uses if not i.lazy]


def test_every_other_library_stays_in_few_modules() -> None:
    users: dict[str, set[str]] = {}
    for one in imports():
        library = one.target.partition(".")[0]
        if library not in sys.stdlib_module_names and library not in ROOMS:
            users.setdefault(library, set()).add(one.module)
    assert set(users) <= {*LIBRARIES, "bcc", "msgspec", "nftables", "pytest"}
    assert users["msgspec"] == {EVERYWHERE}
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
        "harness.corpus.formats.rulefile",
        *WORDS,
    )
    wrong = [
        i
        for i in imports()
        if _within(i.module, "nfparity.snapshot") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_capture_stands_alone() -> None:
    carried = tuple(f"harness.files.{name}" for name in ("errors", "output", "wholefiles"))
    wrong = [
        i
        for i in imports()
        if _within(i.module, "nfparity.capture", *carried)
        and _room(i.target)
        and not _within(i.target, "nfparity.capture", *carried)
    ]
    assert not wrong


def test_the_kubectl_plugin_imports_what_it_carries() -> None:
    carried = ("harness.files.errors", "harness.files.wholefiles", "nfparity.capture.armour")
    allowed = ("nfparity.kubectl", *carried, "nfparity.capture.package")
    own = [i for i in imports() if _within(i.module, "nfparity.kubectl") and _room(i.target)]
    assert own
    assert not [i for i in own if not _within(i.target, *allowed)]


def test_what_a_kube_proxy_is_follows_from_rules_alone() -> None:
    allowed = ("nfparity.kubeproxy", "translate", "backends.model.node", "backends.model.ipvs")
    wrong = [
        i
        for i in imports()
        if _within(i.module, "nfparity.kubeproxy") and _room(i.target) and not _within(i.target, *allowed)
    ]
    assert not wrong


def test_only_the_command_line_migrates() -> None:
    users = {i.module for i in imports() if _within(i.target, "nfparity.migrate")}
    allowed = (
        "nfparity.migrate",
        "nfparity.cli.migrate",
        "nfparity.report.migration",
        "nfparity.report.pages.migration",
    )
    assert users
    assert not [user for user in users if not _within(user, *allowed)]
