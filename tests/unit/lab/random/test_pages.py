"""Random pages are read in full, each chain in its table; faults that the reader had are shown by a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab.random.pages import Page, Shown, random_page
from translate.errors import ParseError
from translate.ir import Hidden
from translate.read import extract, read_pieces

SEEDS = range(100)


def read(page: Page) -> tuple[Shown, ...]:
    """The chains of a page with the rules that are shown there, as they are read."""
    pieces = read_pieces(page.text.encode(), name="page")
    return tuple(
        Shown(
            table.name,
            chain.name,
            len(chain.rules),
            tuple(
                index
                for index, rule in enumerate(chain.rules)
                if any(one.hides is Hidden.RULES for one in rule.unknown)
            ),
        )
        for ruleset in pieces
        for table in ruleset.tables
        for chain in table.chains
        if not chain.is_hidden
    )


def is_read(page: Page) -> bool:
    try:
        return read(page) == page.shown
    except ParseError:
        return False


def test_everything_on_a_page_is_read() -> None:
    assert [seed for seed in SEEDS if not is_read(random_page(seed))] == []


def test_the_same_seed_gives_the_same_page() -> None:
    assert random_page(7) == random_page(7)
    assert random_page(7) != random_page(8)


@dataclass(frozen=True)
class Fault:
    """A fault that the reader had, and a page that shows it."""

    name: str
    put_back: Callable[[pytest.MonkeyPatch], None]
    seed: int


def prose_names_no_table(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(extract, "_MENTION", re.compile("(nothing)(nothing)"))


def indented_rules_are_prose(patch: pytest.MonkeyPatch) -> None:
    for name in ("_in_rules", "_in_dump"):
        right = getattr(extract._Finder, name)

        def unless_indented(self: object, number: int, line: str, right: Any = right) -> Any:
            return not line[:1].isspace() and right(self, number, line)

        patch.setattr(extract._Finder, name, unless_indented)


def one_line_refuses_its_block(patch: pytest.MonkeyPatch) -> None:
    for name in ("read_listing", "read_rules", "read_fragment"):
        right = getattr(extract, name)
        patch.setattr(extract, name, lambda *given, excerpt, right=right, **others: right(*given, **others))


FAULTS = (
    Fault("prose names no table", prose_names_no_table, 0),
    Fault("indented rules are prose", indented_rules_are_prose, 0),
    Fault("one line refuses its block", one_line_refuses_its_block, 0),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_page_shows_an_old_fault(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    page = random_page(fault.seed)
    assert is_read(page)
    fault.put_back(monkeypatch)
    assert not is_read(page)
