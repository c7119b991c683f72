"""``gather``: rules that one lookup could hold come together, where the order does not tell.

*Before*: a normalised Program.

*After*: in each chain, a rule stands behind the last earlier one that tests the same fields and shares the
other tests (``lookup`` makes one lookup of both), if it may be moved there. kube-proxy writes the refusals
of one service after those of another, by address and by node port in turn; without this pass they are
as many lookups as services.

*Why the meaning is preserved*: a rule moves up past one rule at a time, and two neighbours may be
swapped when either

* no packet matches both, because they ask for different values of the same header field. The one that
  matches does the same in either order: the other does nothing before it, and nothing that it does
  changes a header field before control comes back; or
* both do the same, and that ends the table for the packet: whichever is first decides, and decides alike.

No rule moves past a test with state or chance, a draw or a lookup, nor past too many kinds of rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from translate.ir import Action, Apply, Field, LoweredChain, Name, Program, Statement, Value
from translate.passes.control import plain, terminal
from translate.passes.lookup import Candidate, Context, Key, candidate_of

__all__ = ["gather"]

_TELLING: Final = frozenset(
    {Field.SADDR, Field.DADDR, Field.L4PROTO, Field.SPORT, Field.DPORT, Field.ICMP_TYPE, Field.IIF, Field.OIF}
)
"""The fields by which two rules can be told apart: nothing changes them before control comes back."""

_MOST_KINDS: Final = 16
"""How many kinds of rules a rule is moved past at most, so that the cost stays linear."""

_Asked = tuple[Field, ...]


@dataclass(slots=True)
class _Kind:
    """Rules in a row that one lookup could hold, and what those with some values of some fields do."""

    shape: object
    fields: _Asked
    rules: list[Statement] = field(default_factory=list)
    members: list[tuple[tuple[Key, ...], tuple[Action, ...]]] = field(default_factory=list)
    by_values: dict[_Asked, dict[Key, tuple[Action, ...] | None]] = field(default_factory=dict)
    anywhere: tuple[Action, ...] | None = ()
    """What the rules do that ask for intervals: (), or None when they do different things."""

    def add(self, statement: Statement, keys: tuple[Key, ...] | None, actions: tuple[Action, ...]) -> None:
        self.rules.append(statement)
        if keys is None:
            self.anywhere = _either(self.anywhere, actions)
            return
        self.members.append((keys, actions))
        for asked, known in self.by_values.items():
            self._note(known, asked, keys, actions)

    def does(self, asked: _Asked, values: Key) -> tuple[Action, ...] | None:
        """What its rules that may have these values do: () when there is none, None for different things."""
        known = self.by_values.get(asked)
        if known is None:
            known = self.by_values[asked] = {}
            for keys, actions in self.members:
                self._note(known, asked, keys, actions)
        return _either(self.anywhere, known.get(values, ()))

    def _note(
        self,
        known: dict[Key, tuple[Action, ...] | None],
        asked: _Asked,
        keys: tuple[Key, ...],
        actions: tuple[Action, ...],
    ) -> None:
        at = [self.fields.index(f) for f in asked]
        for key in keys:
            values = tuple(key[i] for i in at)
            known[values] = _either(known.get(values, ()), actions)


def _either(some: tuple[Action, ...] | None, others: tuple[Action, ...] | None) -> tuple[Action, ...] | None:
    """What some rules and others do: () when there are none, None when they do different things."""
    if not some or not others:
        return None if some is None or others is None else some or others
    return some if some == others else None


def gather(program: Program) -> Program:
    """Return the Program with rules of a kind next to each other."""
    context = Context(program)
    return replace(program, chains=tuple([_chain(chain, context) for chain in program.chains]))


def _chain(chain: LoweredChain, context: Context) -> LoweredChain:
    if len(chain.statements) < 3:
        return chain
    done: list[Statement] = []
    kinds: list[_Kind] = []
    moved = False
    for statement in chain.statements:
        if not isinstance(statement, Apply) or not plain(statement.tests):
            done += [rule for kind in kinds for rule in kind.rules]
            kinds = []
            done.append(statement)
            continue
        found = candidate_of(statement, context)
        shape: object = found.shape if found is not None else None
        keys, fields = _points(found)
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
    return replace(chain, statements=(*done, *(rule for kind in kinds for rule in kind.rules)))


def _points(found: Candidate | None) -> tuple[tuple[Key, ...] | None, _Asked]:
    """The values of the telling fields that a rule asks for, None if one is an interval; and the fields."""
    if found is None:
        return None, ()
    at = [i for i, f in enumerate(found.shape.fields) if f in _TELLING]
    fields = tuple(found.shape.fields[i] for i in at)
    if any(not _is_single(v) for key in found.keys for v in key):
        return None, fields
    return tuple(dict.fromkeys(tuple(key[i] for i in at) for key in found.keys)), fields


def _is_single(value: Value) -> bool:
    return isinstance(value, Name) or value.is_point


def _passes(apply: Apply, fields: _Asked, keys: tuple[Key, ...] | None, between: list[_Kind]) -> bool:
    """Whether the rule may be swapped with every rule of these kinds."""
    ends = len(apply.actions) == 1 and terminal(apply.actions[0])
    if keys is None:
        keys, fields = ((),), ()
    for kind in between:
        asked = tuple(f for f in fields if f in kind.fields)
        at = [fields.index(f) for f in asked]
        for key in keys:
            does = kind.does(asked, tuple(key[i] for i in at))
            if does != () and not (ends and does == apply.actions):
                return False
    return True
