"""Commands on a table: ``-A``, ``-I``, ``-N``, ``-P``, and in a fragment ``-D``, ``-F``, ``-X``."""

from __future__ import annotations

import re
from typing import Final

from translate.dataclass import dataclass, field, replace
from translate.ir import NOWHERE, Counters, Family, Goto, Jump, Origin, Policy
from translate.read.rule.base import RuleError, parse_counters
from translate.read.rule.reader import RuleReader
from translate.read.spelling.scanner import scan
from translate.read.tables.building import ChainBuilder, TableBuilder
from translate.read.tables.faults import Faults
from translate.read.tables.hidden import hidden_rule

__all__ = ["APPEND", "COUNTERS", "Commands"]

COUNTERS: Final = re.compile(r"\[([0-9]{1,20}):([0-9]{1,20})\]")
"""Packets and bytes, as iptables-save prints them."""

APPEND: Final = frozenset({"-A", "--append"})
_INSERT: Final = frozenset({"-I", "--insert"})
_NEW: Final = frozenset({"-N", "--new-chain"})
_POLICY: Final = frozenset({"-P", "--policy"})
_DELETE: Final = frozenset({"-D", "--delete"})
_FLUSH: Final = frozenset({"-F", "--flush"})
_REMOVE: Final = frozenset({"-X", "--delete-chain"})


@dataclass(slots=True)
class Commands:
    """The commands of an input, each applied to the table of its line.

    In a ``fragment`` there may be unknown rules before the given ones. ``implicit`` is for ``iptables -S``
    output, whose ``-P`` and ``-N`` declare the chains. ``notes`` lists the rules that were skipped.
    """

    rules: RuleReader
    faults: Faults
    fragment: bool
    implicit: bool
    notes: list[str] = field(default_factory=list)

    def run(self, table: TableBuilder, words: list[str], origin: Origin) -> None:
        """Apply one line, given as words. Raises RuleError."""
        start = 0
        counters = None
        if words[0][:1] == "[":
            match = COUNTERS.fullmatch(words[0])
            if match is None:
                raise RuleError(0, f'"{words[0]}" is not [packets:bytes]')
            counters = Counters(int(match[1]), int(match[2]))
            start = 1
        command = words[start] if start < len(words) else ""
        append = command in APPEND
        if not append and command not in _INSERT:
            if counters is not None:
                raise RuleError(start, "expected a rule after its counters")
            self._other(table, words, origin)
            return
        if start + 1 >= len(words):
            raise RuleError(len(words), f'"{command}" needs a chain')
        chain = self._chain(table, words, start + 1, origin)
        first = start + 2
        position = len(chain.rules)
        if not append:
            position = 0
            if first < len(words) and words[first].isascii() and words[first].isdigit():
                position = int(words[first][:10]) - 1
                if not 0 <= position <= len(chain.rules):
                    raise RuleError(first, f"chain {chain.name} has {len(chain.rules)} rules")
                first += 1
        rules = self.rules.read(
            words, first, table=table.name, chain=chain.name, counters=counters, origin=origin
        )
        if not rules:
            other = 6 if self.rules.family is Family.IP else 4
            self.notes.append(f"line {origin.line} is a rule only for IPv{other} (-{other}), and is not read")
        if append:
            chain.rules += rules
            return
        for rule in rules:  # each is inserted at the same place, as iptables does
            chain.rules.insert(position, rule)

    def _chain(self, table: TableBuilder, words: list[str], at: int, origin: Origin) -> ChainBuilder:
        chain = table.chains.get(words[at])
        if chain is None:
            hook = table.hook(words[at])
            # declared from here on, so that each missing declaration is reported once
            chain_builder = ChainBuilder(words[at], NOWHERE if hook is None else origin, hook, None, None)
            table.chains[words[at]] = chain_builder
            if self.fragment:
                chain_builder.rules.append(
                    hidden_rule(f"the earlier rules of chain {chain_builder.name}", origin)
                )
                return chain_builder
            if hook is not None and not self.implicit:
                return chain_builder  # iptables-restore has all built-in chains; the policy is unknown
            line = f":{words[at]} {'ACCEPT' if hook is not None else '-'} [0:0]"
            raise RuleError(at, f'chain "{words[at]}" is not declared', f'declare it by "{line}"')
        return chain

    def _other(self, table: TableBuilder, words: list[str], origin: Origin) -> None:
        command = words[0]
        if command in _NEW and len(words) == 2:
            column = scan(origin.text)[1].column
            table.declare(origin, column, words[1], "-", 1, None, self.faults)
        elif command in _POLICY and len(words) in (3, 6):
            self._policy(table, words, origin)
        elif self.fragment and command in _DELETE:
            self._delete(table, words, origin)
        elif self.fragment and command in _FLUSH | _REMOVE:
            self._empty(table, words, origin)
        elif command in _NEW or command in _POLICY:
            raise RuleError(0, f'"{command}" has a wrong number of values')
        else:
            hint = "commands that are read: -A, -I, -N, -P"
            if command in _DELETE | _FLUSH | _REMOVE:
                hint = "it changes rules that are not shown; --input restore reads such commands"
            raise RuleError(0, f'"{command}" is not read', hint)

    def _policy(self, table: TableBuilder, words: list[str], origin: Origin) -> None:
        counters = None
        if len(words) == 6:  # iptables -S -v
            if words[3] != "-c" or not self.implicit:
                raise RuleError(3, f'unexpected "{words[3]}"')
            counters = parse_counters(words, 4)
        if self.implicit:
            if table.hook(words[1]) is None:
                raise RuleError(1, f'table {table.name} has no built-in chain "{words[1]}"')
            column = scan(origin.text)[1].column
            table.declare(origin, column, words[1], words[2], 1, counters, self.faults)
            return
        chain = self._chain(table, words, 1, origin)
        if chain.hook is None:
            raise RuleError(1, f'user chain "{chain.name}" cannot have a policy')
        if words[2] not in Policy.__members__:
            raise RuleError(2, f'unknown policy "{words[2]}"', "ACCEPT or DROP")
        chain.policy = Policy(words[2])

    # -- changes of existing rules: in a fragment, as far as they are known ---------------

    def _empty(self, table: TableBuilder, words: list[str], origin: Origin) -> None:
        """Flush or delete a chain."""
        command = words[0]
        if len(words) != 2:
            raise RuleError(min(len(words), 2), f'"{command}" needs the name of one chain')
        chain = table.chains.get(words[1])
        if command in _FLUSH:
            flushed = self._chain(table, words, 1, origin)
            flushed.rules.clear()
            if flushed.hook is not None and flushed.policy is None:
                flushed.rules.append(hidden_rule(f"the policy of chain {flushed.name}", origin))
        elif chain is None:
            raise RuleError(1, f'chain "{words[1]}" is not declared', "declare it, so that it is empty")
        elif chain.hook is not None:
            raise RuleError(1, "a built-in chain cannot be deleted")
        elif chain.rules:
            raise RuleError(1, f'chain "{chain.name}" is not empty: it cannot be deleted')
        elif any(
            isinstance(action, Jump | Goto) and action.chain == chain.name
            for other in table.chains.values()
            for rule in other.rules
            for action in rule.actions
        ):
            raise RuleError(1, f'a rule leads to chain "{chain.name}": it cannot be deleted')
        else:
            del table.chains[words[1]]

    def _delete(self, table: TableBuilder, words: list[str], origin: Origin) -> None:
        if len(words) < 3:
            raise RuleError(len(words), '"-D" needs a chain and a rule')
        chain = self._chain(table, words, 1, origin)
        if len(words) == 3 and words[2].isascii() and words[2].isdigit():
            raise RuleError(
                2, "a rule cannot be deleted by number, because the rules before it are not known"
            )
        wanted = self.rules.read(words, 2, table=table.name, chain=chain.name, counters=None, origin=origin)
        if any(other.unknown for other in chain.rules):
            raise RuleError(1, f'it is not known which rule of chain "{chain.name}" this deletes')
        for rule in wanted:
            deleted = next((other for other in chain.rules if replace(other, counters=None) == rule), None)
            if deleted is None:
                raise RuleError(1, f'chain "{chain.name}" has no such rule')
            chain.rules.remove(deleted)
