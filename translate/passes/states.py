"""Tests of a Program that keep a state from packet to packet, by the name of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from translate.ir import Account, ConnectionLimit, HashLimit, Limit, Origin, Quota, Test
from translate.passes.inventory import Inventory

__all__ = ["account_origins", "buckets", "connection_limits", "hash_tables", "quotas"]

_T = TypeVar("_T", bound=Test)


def account_origins(inventory: Inventory) -> dict[str, Origin]:
    """Return the accounting objects of ``-m nfacct`` by name, each with the first rule that updates it."""
    return {name: origin for name, (_, origin) in _first(inventory, Account, lambda test: test.name).items()}


def buckets(inventory: Inventory) -> dict[str, tuple[Limit, Origin]]:
    """Return the token buckets of ``-m limit`` by name, each with the first rule that takes from it."""
    return _first(inventory, Limit, lambda test: test.bucket)


def connection_limits(inventory: Inventory) -> dict[str, tuple[ConnectionLimit, Origin]]:
    """Return the tests that count connections, by the name of their count, each with its first rule."""
    return _first(inventory, ConnectionLimit, lambda test: test.state)


def hash_tables(inventory: Inventory) -> dict[str, tuple[HashLimit, Origin]]:
    """Return the tables of ``-m hashlimit`` by name, each with the first rule that takes from it."""
    return _first(inventory, HashLimit, lambda test: test.name)


def quotas(inventory: Inventory) -> dict[str, tuple[Quota, Origin]]:
    """Return the quotas by the name of their count, each with the first rule that uses it."""
    return _first(inventory, Quota, lambda test: test.state)


def _first(inventory: Inventory, kind: type[_T], name: Callable[[_T], str]) -> dict[str, tuple[_T, Origin]]:
    by_name: dict[str, tuple[_T, Origin]] = {}
    for test, origin in inventory.tests_of_type(kind):
        by_name.setdefault(name(test), (test, origin))
    return by_name
