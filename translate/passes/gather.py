"""``gather``: move rules that can share a lookup next to each other, if that has no effect on packets.

*Before*: a normalised Program.

*After*: in each chain, a rule follows the last earlier rule that tests the same fields and shares its other
tests, if it may be moved there; ``lookup`` makes one lookup of both. kube-proxy writes the refusals service
by service, for an address and a node port in turn. Without this pass there would be as many lookups as
services.

*Why the meaning is preserved*: a rule moves up past one rule at a time, and two neighbours may be
swapped when either

* no packet matches both, because they compare the same header field with different values. The rule that
  matches does the same in either order, because the other has no effect and no action changes a header field
  before control comes back; or
* both have the same action, and it ends the table for the packet.

No rule moves past a test with state or chance, a draw or a lookup, nor past too many kinds of rules.
"""

from __future__ import annotations

from typing import Final

from translate.dataclass import dataclass, field, replace
from translate.ir import Action, Apply, Field, LoweredChain, Name, Program, Statement, Value
from translate.passes.control import plain, terminal
from translate.passes.lookup import Candidate, Context, Key, candidate_of

__all__ = ["gather"]

_UNCHANGED: Final = frozenset(
    {Field.SADDR, Field.DADDR, Field.L4PROTO, Field.SPORT, Field.DPORT, Field.ICMP_TYPE, Field.IIF, Field.OIF}
)
"""Fields that no action changes before control comes back; rules with different values are disjoint."""

_MOST_KINDS: Final = 16
"""The maximum number of kinds of rules past which a rule is moved, so that the cost stays linear."""

_Fields = tuple[Field, ...]


@dataclass(slots=True)
class _Kind:
    """Consecutive rules that can share a lookup, and their actions by the values of some fields."""

    shape: object
    fields: _Fields
    rules: list[Statement] = field(default_factory=list)
    members: list[tuple[tuple[Key, ...], tuple[Action, ...]]] = field(default_factory=list)
    by_values: dict[_Fields, dict[Key, tuple[Action, ...] | None]] = field(default_factory=dict)
    anywhere: tuple[Action, ...] | None = ()
    """The common actions of the rules that compare with intervals: () for no rule, None if they differ."""

    def add(self, statement: Statement, keys: tuple[Key, ...] | None, actions: tuple[Action, ...]) -> None:
        self.rules.append(statement)
        if keys is None:
            self.anywhere = _either(self.anywhere, actions)
            return
        self.members.append((keys, actions))
        for fields, by_key in self.by_values.items():
            self._note(by_key, fields, keys, actions)

    def does(self, fields: _Fields, values: Key) -> tuple[Action, ...] | None:
        """Return the common actions of rules that may have these values; () and None as in ``anywhere``."""
        by_key = self.by_values.get(fields)
        if by_key is None:
            by_key = self.by_values[fields] = {}
            for keys, actions in self.members:
                self._note(by_key, fields, keys, actions)
        return _either(self.anywhere, by_key.get(values, ()))

    def _note(
        self,
        by_key: dict[Key, tuple[Action, ...] | None],
        fields: _Fields,
        keys: tuple[Key, ...],
        actions: tuple[Action, ...],
    ) -> None:
        at = [self.fields.index(f) for f in fields]
        for key in keys:
            values = tuple(key[i] for i in at)
            by_key[values] = _either(by_key.get(values, ()), actions)


def _either(first: tuple[Action, ...] | None, second: tuple[Action, ...] | None) -> tuple[Action, ...] | None:
    """Return the common actions of two groups of rules: () for no rule, None if they differ."""
    if not first or not second:
        return None if first is None or second is None else first or second
    return first if first == second else None


def gather(program: Program) -> Program:
    """Return the Program with rules of the same kind next to each other."""
    context = Context(program)
    return replace(program, chains=tuple([_chain(chain, context) for chain in program.chains]))


def _chain(chain: LoweredChain, context: Context) -> LoweredChain:
    if len(chain.statements) < 3:
        return chain
    gathered: list[Statement] = []
    kinds: list[_Kind] = []
    moved = False
    for statement in chain.statements:
        if not isinstance(statement, Apply) or not plain(statement.tests):
            gathered += [rule for kind in kinds for rule in kind.rules]
            kinds = []
            gathered.append(statement)
            continue
        candidate = candidate_of(statement, context)
        shape: object = candidate.shape if candidate is not None else None
        keys, fields = _points(candidate)
        near = range(max(len(kinds) - _MOST_KINDS - 1, 0), len(kinds))
        own = next((i for i in reversed(near) if kinds[i].shape == shape), None)
        between = [] if own is None else kinds[own + 1 :]
        if own is None or shape is None or not _passes(statement, fields, keys, between):
            own = len(kinds)
            kinds.append(_Kind(shape, fields))
        moved = moved or own < len(kinds) - 1
        kinds[own].add(statement, keys, statement.actions)
    if not moved:
        return chain
    return replace(chain, statements=(*gathered, *(rule for kind in kinds for rule in kind.rules)))


def _points(candidate: Candidate | None) -> tuple[tuple[Key, ...] | None, _Fields]:
    """Return the values of header fields that a rule requires (None for an interval), and the fields."""
    if candidate is None:
        return None, ()
    at = [i for i, f in enumerate(candidate.shape.fields) if f in _UNCHANGED]
    fields = tuple(candidate.shape.fields[i] for i in at)
    if any(not _is_single(v) for key in candidate.keys for v in key):
        return None, fields
    return tuple(dict.fromkeys(tuple(key[i] for i in at) for key in candidate.keys)), fields


def _is_single(value: Value) -> bool:
    return isinstance(value, Name) or value.is_point


def _passes(apply: Apply, fields: _Fields, keys: tuple[Key, ...] | None, between: list[_Kind]) -> bool:
    """Return whether the rule may be swapped with every rule of these kinds."""
    ends = len(apply.actions) == 1 and terminal(apply.actions[0])
    if keys is None:
        keys, fields = ((),), ()
    for kind in between:
        common = tuple(f for f in fields if f in kind.fields)
        at = [fields.index(f) for f in common]
        for key in keys:
            does = kind.does(common, tuple(key[i] for i in at))
            if does != () and not (ends and does == apply.actions):
                return False
    return True
