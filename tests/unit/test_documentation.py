"""Files that pages name exist, docstrings begin with the thing or the act, and names mean something."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from nfparity.assess.catalogue import entry
from nfparity.cli.main import main

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")),
)
_TOP: Final = ("translate", "backends", "harness", "nfparity", "tests", "vm", "docs", "deploy")
_PATH: Final = re.compile(rf"`((?:{'|'.join(_TOP)})/[\w./*-]*[\w*/])[^`]*`")
_LINK: Final = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_PLACEHOLDER: Final = re.compile(r"\b(NAME|PASS|kNN)\b")


def mentioned(page: str) -> Iterator[str]:
    """The paths in a page, relative to the root: in backquotes, and as links."""
    path = ROOT / page
    text = path.read_text()
    for match in _PATH.finditer(text):
        if not _PLACEHOLDER.search(match[1]) and "…" not in match[0]:
            yield match[1]
    for match in _LINK.finditer(text):
        yield str((path.parent / match[1]).resolve().relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_mentions_exists(page: str) -> None:
    missing = [one for one in mentioned(page) if not list(ROOT.glob(one.rstrip("/")))]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / page).read_text())
    assert [
        f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text()
    ] == []
    assert named or page != "docs/faults.md"


def test_pages_about_the_source_mention_files() -> None:
    assert len(set(mentioned("docs/architecture.md"))) > 40


def test_both_walks_take_at_most_ten_files() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    for title in ("## The path of a rule", "## The path of a packet"):
        steps = re.findall(r"^\d+\. `", text.partition(title)[2].partition("\n## ")[0], re.MULTILINE)
        assert 5 <= len(steps) <= 10


def _walk(title: str) -> list[tuple[str, ...]]:
    """The files of each step of a walk: the first with its path, others ``there``, in the same directory."""
    text = (ROOT / "docs/architecture.md").read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    steps = re.split(r"^\d+\. ", text.partition("\n\nFor")[0], flags=re.MULTILINE)[1:]
    walk = []
    for step in steps:
        first, *others = (path for path in re.findall(r"`([\w/]+\.py)`", step))
        walk.append(
            (first, *(other if "/" in other else str(Path(first).with_name(other)) for other in others))
        )
    return walk


def test_the_path_of_a_rule_is_the_order_of_the_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules"
    match = "-m iprange --src-range 10.0.0.1-10.0.0.9"
    rules.write_text(f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {match} -j DROP\nCOMMIT\n")
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(f"{ROOT}/"):
            calls.append(path[len(f"{ROOT}/") :])

    sys.setprofile(note)
    try:
        status = main(["translate", str(rules), "--to", "nft"])
    finally:
        sys.setprofile(None)
    assert status == 0
    assert "ip saddr 10.0.0.1-10.0.0.9 drop" in capsys.readouterr().out
    walk = _walk("The path of a rule")
    remaining = iter(calls)
    assert all(first in remaining for first, *_ in walk), "the steps are not in the order of the calls"
    assert {file for step in walk for file in step} <= set(calls)


def test_the_files_of_a_match_are_those_of_the_example() -> None:
    table = (ROOT / "docs/architecture.md").read_text().partition("| step | files |")[2].partition("\n\n")[0]
    length = re.compile(
        r"Field\.LENGTH\b|^    LENGTH\b|\blength\.LENGTH\b|(?<![\w-])--length\b|`-m length`", re.MULTILINE
    )
    files = {
        str(path.relative_to(ROOT))
        for top in (
            "translate",
            "backends",
            "harness",
            "nfparity",
            "tests/lab",
            "tests/corpus/rulesets",
            "docs",
        )
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and length.search(path.read_text(errors="replace"))
    }
    assert files - {"docs/architecture.md"} == set(_PATH.findall(table))


@pytest.mark.parametrize("page", ["README.md", "docs/nft-mode.md"])
def test_findings_in_a_page_are_worded_as_the_catalogue_words_them(page: str) -> None:
    text = (ROOT / page).read_text()
    shown = re.findall(r"^(K\d\d)  (.*)\n((?:  .*\n)+)", text, re.MULTILINE)
    assert shown
    for name, title, block in shown:
        one = entry(name)
        flat = " ".join(block.split())
        assert title == one.title
        for label, words in (("before", one.before), ("after", one.after), ("action", one.action)):
            assert f"{label} {words}" in flat


_QUESTION: Final = re.compile(r"(What|Which|How|Whether|Where|Who|Whose|Why)\b")


def docstrings(root: Path) -> Iterator[tuple[str, str]]:
    """Every docstring of a tree with its place; also those of attributes."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for one in _texts(node):
                yield f"{path.relative_to(ROOT)}:{one.lineno}", str(one.value).strip()


def _texts(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        for one in node.body:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                yield one.value


@pytest.mark.parametrize("package", ["translate", "backends", "harness", "nfparity", "deploy", "tests", "vm"])
def test_docstrings_begin_with_the_thing_or_the_act(package: str) -> None:
    wrong = [
        f"{place}: {text.splitlines()[0]}"
        for place, text in docstrings(ROOT / package)
        if _QUESTION.match(text)
    ]
    assert not wrong


# Names that fit every value. Each of them stood for dozens of different things.
_MEANINGLESS: Final = frozenset(
    {"asked", "found", "given", "gone", "got", "had", "held", "one", "seen", "told"}
)
_FIELDS_OF_THE_KERNEL: Final = {("backends/simulator/conntrack/tcp.py", "seen")}
"""Names of structures of the kernel that the product takes over: ``struct ip_ct_tcp`` has ``seen``."""


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a file gives: to variables, parameters, attributes and functions."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
            ):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name):
                yield node.lineno, name


def _helpers() -> Iterator[Path]:
    """The modules that several tests share."""
    for pattern in ("helpers/*.py", "conftest.py"):
        yield from (ROOT / "tests").rglob(pattern)


@pytest.mark.parametrize(
    "package", ["translate", "backends", "harness", "nfparity", "deploy", "vm", "tests/lab", "helpers"]
)
def test_names_mean_something(package: str) -> None:
    paths = _helpers() if package == "helpers" else (ROOT / package).rglob("*.py")
    wrong = [
        f"{place}:{line}: {name}"
        for path in sorted(paths)
        for place in (str(path.relative_to(ROOT)),)
        for line, name in names(ast.parse(path.read_text()))
        if name.lstrip("_") in _MEANINGLESS and (place, name) not in _FIELDS_OF_THE_KERNEL
    ]
    assert not wrong
