"""The iptables tables of this network namespace, without parts that change by themselves.

Two dumps are equal if their chains, policies and rules are equal, in order. Counters and comment lines, in
which ``iptables-save`` writes the time, are ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from backends.model.variant import Variant
from backends.testbed.command import own_xtables_lock, run
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family
from translate.read.save import lines_by_table

__all__ = ["SavedTable", "digest_of", "empty", "holding", "restore_table", "save", "split"]

_COUNTERS: Final = re.compile(r"^\[\d+:\d+\] (?=-A )|(?<=\S) \[\d+:\d+\]$")
_LIST: Final = re.compile(r" -m recent .*?--name (\S+)")
_RECENT: Final = re.compile(r" -m recent .*?--name \S+(?: --mask \S+)?(?: --r(?:source|dest))?(?= |$)")
_HOLDER: Final = "nfparity-lists"
"""A chain that names lists of ``-m recent``. No rule jumps to it."""
_SET: Final = re.compile(r" --(?:add|del|map)-set (\S+)")
_PROGRAM: Final = {Family.IP: "iptables", Family.IP6: "ip6tables"}


@dataclass(frozen=True, slots=True)
class SavedTable:
    """One table: its name, its lines of iptables-save, and their contents."""

    name: str
    lines: tuple[str, ...]
    """The lines from ``*name`` to ``COMMIT``, with counters."""

    @property
    def table_state(self) -> tuple[str, ...]:
        """The same lines without counters."""
        return tuple(map(_without_counters, self.lines))

    @property
    def built_in(self) -> tuple[str, ...]:
        """The built-in chains, in order."""
        return tuple(line[1:].split(" ", 1)[0] for line in self._declarations() if " - " not in f"{line} ")

    @property
    def chains(self) -> tuple[str, ...]:
        """The user-defined chains."""
        return tuple(line[1:].split(" ", 1)[0] for line in self._declarations() if " - " in f"{line} ")

    @property
    def rules(self) -> int:
        """The number of rules."""
        return len(self.lines) - len(self._declarations()) - 2

    @property
    def is_empty(self) -> bool:
        """True if the table has no effect: no rules, no user-defined chains, every policy ACCEPT.

        The chain of :func:`holding` does not count.
        """
        own = (f":{_HOLDER} ", f"-A {_HOLDER} ")
        lines = map(_without_counters, self.lines[1:-1])
        others = (line for line in lines if not f"{line} ".startswith(own))
        return all(line.startswith(":") and line.partition(" ")[2] == "ACCEPT" for line in others)

    @property
    def is_held(self) -> bool:
        """True if the table contains the chain of :func:`holding`."""
        return _HOLDER in self.chains

    def contains(self, other: SavedTable) -> bool:
        """Return whether the table contains another one: every chain with its policy, every rule in order."""
        if not {line for line in other.table_state if line[0] == ":"} <= set(self.table_state):
            return False
        rules_by_chain = _rules_by_chain(self.table_state)
        for chain, rules in _rules_by_chain(other.table_state).items():
            rest = iter(rules_by_chain.get(chain, ()))
            if not all(rule in rest for rule in rules):
                return False
        return True

    @property
    def lists(self) -> frozenset[str]:
        """The lists of ``-m recent`` in its rules; iptables-save always prints their names."""
        return frozenset(name for line in self.lines for name in _LIST.findall(line))

    @property
    def sets_written(self) -> frozenset[str]:
        """The ipsets that its rules change (``-j SET``)."""
        return frozenset(name for line in self.lines for name in _SET.findall(line))

    @property
    def text(self) -> str:
        """The input for iptables-restore."""
        return "".join(f"{line}\n" for line in self.lines)

    def _declarations(self) -> tuple[str, ...]:
        return tuple(line for line in self.lines if line.startswith(":"))


def _without_counters(line: str) -> str:
    # To search a line of a rule takes long, and there may be hundreds of thousands.
    return _COUNTERS.sub("", line) if line.startswith("[") or line.endswith("]") else line


def _rules_by_chain(lines: Iterable[str]) -> dict[str, list[str]]:
    by_chain: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("-A "):
            by_chain.setdefault(line.split(" ", 2)[1], []).append(line)
    return by_chain


def split(text: str) -> dict[str, SavedTable]:
    """Return the tables in an output of iptables-save, by name, in order."""
    tables: dict[str, list[str]] = {}
    for table, line in lines_by_table(text):
        if table and line and not line.startswith("#"):
            tables.setdefault(table, []).append(line)
    return {name: SavedTable(name, tuple(lines)) for name, lines in tables.items() if lines[-1] == "COMMIT"}


def empty(table: SavedTable) -> str:
    """Return the input for iptables-restore that empties a table in one step of the kernel."""
    chains = [f":{name} ACCEPT [0:0]" for name in table.built_in]
    return "\n".join((f"*{table.name}", *chains, "COMMIT", ""))


def holding(table: SavedTable) -> str:
    """Return the input for iptables-restore that empties a table, but keeps its lists of ``-m recent``.

    The parts of rules that name a list are in a chain that no packet reaches. A list whose first rule has
    another ``--hitcount`` loses its addresses (``recent_mt_check``), so these parts are unchanged.
    """
    parts = dict.fromkeys(part for line in table.lines for part in _RECENT.findall(line))
    head, end = empty(table).rsplit("COMMIT", 1)
    rules = "".join(f"-A {_HOLDER}{part}\n" for part in parts)
    return f"{head}:{_HOLDER} - [0:0]\n{rules}COMMIT{end}"


def digest_of(tables: Mapping[str, SavedTable]) -> str:
    """Return the SHA-256 of the tables' contents; empty tables do not count."""
    lines = (line for table in tables.values() if not table.is_empty for line in table.table_state)
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def save(variant: Variant, family: Family, *, counters: bool = False) -> str:
    """Return the output of iptables-save. Raises MachineError with its message."""
    return _run(f"{_PROGRAM[family]}-{variant.value}-save", "", *(("-c",) if counters else ()))


def restore_table(variant: Variant, family: Family, text: str, *, counters: bool = False) -> None:
    """Replace one table in one step (``xt_replace_table``, or an nf_tables transaction). MachineError."""
    _run(f"{_PROGRAM[family]}-{variant.value}-restore", text, *(("-c",) if counters else ()))


def _run(command: str, text: str, *arguments: str) -> str:
    # The caller already holds the lock of iptables-legacy (place.tables_locked).
    with own_xtables_lock() as lock:
        done = run((command, *arguments), text, environment=lock, inherit=True)
    if done.returncode:
        errors = "; ".join(x for x in done.stderr.split("\n") if x and not x.startswith("Try `"))
        raise MachineError(f"{command}: {errors or f'status {done.returncode}'}")
    return done.stdout
