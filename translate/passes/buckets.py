"""The token buckets, counts of connections and quotas that each belong to one rule of a Program."""

from __future__ import annotations

from collections.abc import Iterator

from translate.ir import ConnectionLimit, Limit, Origin, Program, Quota, Test

__all__ = ["buckets", "connection_limits", "quotas"]


def buckets(program: Program) -> dict[str, tuple[Limit, Origin]]:
    """Return the buckets by name, each with the first rule that takes from it."""
    by_name: dict[str, tuple[Limit, Origin]] = {}
    for test, origin in _tests(program):
        if isinstance(test, Limit):
            by_name.setdefault(test.bucket, (test, origin))
    return by_name


def connection_limits(program: Program) -> dict[str, tuple[ConnectionLimit, Origin]]:
    """Return the tests that count connections by the name of their count, each with its first rule."""
    by_name: dict[str, tuple[ConnectionLimit, Origin]] = {}
    for test, origin in _tests(program):
        if isinstance(test, ConnectionLimit):
            by_name.setdefault(test.state, (test, origin))
    return by_name


def quotas(program: Program) -> dict[str, tuple[Quota, Origin]]:
    """Return the quotas by the name of their count, each with the first rule that uses it."""
    by_name: dict[str, tuple[Quota, Origin]] = {}
    for test, origin in _tests(program):
        if isinstance(test, Quota):
            by_name.setdefault(test.state, (test, origin))
    return by_name


def _tests(program: Program) -> Iterator[tuple[Test, Origin]]:
    for chain in program.chains:
        for statement in chain.statements:
            for test in statement.tests:
                yield test, statement.origin
