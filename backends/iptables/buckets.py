"""Tables whose rules keep a state that only loading them again resets: buckets, quotas, counts."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

__all__ = ["hashlimit_names", "tables_to_reload", "with_counters"]

_TABLE: Final = re.compile(r"^\*(\S+)$.*?^COMMIT$", re.MULTILINE | re.DOTALL)
_RULE: Final = re.compile(r"^-A .*$", re.MULTILINE)
_APPENDED: Final = re.compile(r"^-A (\S+) ", re.MULTILINE)
_SAVED: Final = re.compile(r"^(\[\d+:\d+\]) -A (\S+)", re.MULTILINE)
_COUNTS: Final = re.compile(r" -m (?:(?:hash|conn)?limit|quota) ")
_ACTS: Final = re.compile(r" -[jg] (?!LOG\b|NFLOG\b)")
_CHANGES: Final = re.compile(r" -m (?:recent|connlabel) ")
"""Matches that change what later packets meet, also in a rule that does nothing else."""
_HASHED: Final = re.compile(r' --hashlimit-name (?:"([^"]*)"|(\S+))')


def tables_to_reload(text: str) -> tuple[str, ...]:
    """Return the tables of ``iptables-save`` text with a state that can affect a packet, in their order.

    The state of a rule that only logs, or does nothing, affects no packet, unless other rules share it or a
    match of the rule changes a list or a label.
    """
    named = Counter(hashlimit_names(text))
    return tuple(
        table[1] for table in _TABLE.finditer(text) if any(_affects(rule, named) for rule in _rules(table[0]))
    )


def with_counters(text: str, table: str, saved: str) -> str:
    """Return a table of ``iptables-save`` text, with the counters of its rules in ``saved``.

    iptables-nft-save prints only the last of several tests of a port in one rule, so its text may be of other
    rules.
    """
    own = next(match[0] for match in _TABLE.finditer(text) if match[1] == table)
    counters: dict[str, deque[str]] = {}
    for counter, chain in _SAVED.findall(saved):
        counters.setdefault(chain, deque()).append(counter)
    return _APPENDED.sub(lambda rule: f"{counters[rule[1]].popleft()} {rule[0]}", own) + "\n"


def hashlimit_names(text: str) -> Iterator[str]:
    """Yield the name in each ``-m hashlimit`` of some rules."""
    return (quoted or name for quoted, name in _HASHED.findall(text))


def _rules(table: str) -> Iterator[str]:
    return (match[0] for match in _RULE.finditer(table))


def _affects(rule: str, named: Counter[str]) -> bool:
    if not _COUNTS.search(rule):
        return False
    shared = any(named[name] > 1 for name in hashlimit_names(rule))
    return bool(shared or _ACTS.search(rule) or _CHANGES.search(rule))
