"""The rules of a Program by their tests and actions.

Many decisions concern one kind of test or action, which most Programs do not have. One walk over the rules
records the kinds that occur. A search for any other kind then ends without a walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TypeVar

from translate.dataclass import dataclass
from translate.ir import Action, AnyOf, Field, FieldTest, Origin, Program, Test, alternatives, flat

__all__ = ["Inventory"]

_T = TypeVar("_T", bound=Test)


@dataclass(frozen=True, slots=True)
class Inventory:
    """A Program with the kinds of its tests and actions, and the fields that its tests read.

    ``tests`` has the kinds of tests outside of any AnyOf. Fields of lookups are not among ``fields``.
    """

    program: Program
    tests: frozenset[type[Test]]
    actions: frozenset[type[Action]]
    fields: frozenset[Field]

    @classmethod
    def of(cls, program: Program) -> Inventory:
        """Return the inventory of a Program."""
        tests: set[type[Test]] = set()
        actions: set[type[Action]] = set()
        fields: set[Field] = set()
        for chain in program.chains:
            for statement in chain.statements:
                for test in statement.tests:
                    tests.add(type(test))
                    if isinstance(test, FieldTest):
                        fields.add(test.field)
                    elif isinstance(test, AnyOf):
                        fields.update(part.field for part in test.tests)
                for each in alternatives(statement):
                    actions.update(map(type, each.actions))
        return cls(program, frozenset(tests), frozenset(actions), frozenset(fields))

    def tests_of_type(self, kind: type[_T]) -> Iterator[tuple[_T, Origin]]:
        """Yield the tests of one type, outside of any AnyOf, each with the origin of its rule."""
        if kind not in self.tests:
            return
        for chain in self.program.chains:
            for statement in chain.statements:
                for test in statement.tests:
                    if isinstance(test, kind):
                        yield test, statement.origin

    def testing(self, fields: Set[Field]) -> Iterator[Origin]:
        """Yield the origin of each rule that tests one of the fields."""
        if self.fields.isdisjoint(fields):
            return
        for chain in self.program.chains:
            for statement in chain.statements:
                if any(isinstance(t, FieldTest) and t.field in fields for t in flat(statement.tests)):
                    yield from (each.origin for each in alternatives(statement))

    def doing(self, kind: type[Action]) -> Iterator[Origin]:
        """Yield the origin of each rule with an action of this kind."""
        if kind not in self.actions:
            return
        for chain in self.program.chains:
            for statement in chain.statements:
                for each in alternatives(statement):
                    if any(isinstance(action, kind) for action in each.actions):
                        yield each.origin
