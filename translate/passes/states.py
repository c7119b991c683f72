"""Tests of a Program that keep a state from packet to packet, by the name of the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from translate.ir import Account, ConnectionLimit, HashLimit, Limit, Origin, Program, Quota, Test

__all__ = ["account_origins", "buckets", "connection_limits", "hash_tables", "quotas", "tests_of_type"]

_T = TypeVar("_T", bound=Test)


def account_origins(program: Program) -> dict[str, Origin]:
    """Return the accounting objects of ``-m nfacct`` by name, each with the first rule that updates it."""
    return {name: origin for name, (_, origin) in _first(program, Account, lambda test: test.name).items()}


def buckets(program: Program) -> dict[str, tuple[Limit, Origin]]:
    """Return the token buckets of ``-m limit`` by name, each with the first rule that takes from it."""
    return _first(program, Limit, lambda test: test.bucket)


def connection_limits(program: Program) -> dict[str, tuple[ConnectionLimit, Origin]]:
    """Return the tests that count connections by the name of their count, each with its first rule."""
    return _first(program, ConnectionLimit, lambda test: test.state)


def hash_tables(program: Program) -> dict[str, tuple[HashLimit, Origin]]:
    """Return the tables of ``-m hashlimit`` by name, each with the first rule that takes from it."""
    return _first(program, HashLimit, lambda test: test.name)


def quotas(program: Program) -> dict[str, tuple[Quota, Origin]]:
    """Return the quotas by the name of their count, each with the first rule that uses it."""
    return _first(program, Quota, lambda test: test.state)


def tests_of_type(program: Program, kind: type[_T]) -> Iterator[tuple[_T, Origin]]:
    """Yield the tests of one type, outside of any AnyOf, each with its rule."""
    for chain in program.chains:
        for statement in chain.statements:
            for test in statement.tests:
                if isinstance(test, kind):
                    yield test, statement.origin


def _first(program: Program, kind: type[_T], name: Callable[[_T], str]) -> dict[str, tuple[_T, Origin]]:
    by_name: dict[str, tuple[_T, Origin]] = {}
    for test, origin in tests_of_type(program, kind):
        by_name.setdefault(name(test), (test, origin))
    return by_name
