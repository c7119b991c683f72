"""Parsing of a Program from its text form, line by line."""

from __future__ import annotations

from typing import NoReturn

from translate.dataclass import replace
from translate.errors import Diagnostic, ParseError
from translate.ir import (
    NOWHERE,
    Apply,
    Branch,
    Choose,
    Entry,
    Family,
    Hook,
    IpSet,
    Lookup,
    LoweredChain,
    Origin,
    Policy,
    Program,
    SetElement,
    Statement,
    TableName,
    Test,
    Value,
)
from translate.irtext.actions import take_actions
from translate.irtext.annotations import parse_origin
from translate.irtext.ipsets import take_element, take_set
from translate.irtext.lexer import Cursor, TextError, scan
from translate.irtext.matches import take_fields, take_share, take_test
from translate.irtext.values import take_value

__all__ = ["parse_program"]


def parse_program(text: str, *, name: str) -> Program:
    """Return the Program in ``text``; ``name`` is the file name in errors.

    Only the syntax is checked; ``translate.passes.verify`` checks the invariants of a Program. Raises
    ParseError with line and column of the first fault.
    """
    return _Parser(text, name).program()


class _Parser:
    """Reads line by line; ``_line`` is the number of the last line read."""

    def __init__(self, text: str, name: str) -> None:
        self._lines = text.split("\n")
        self._name = name
        self._line = 0
        self._family = Family.IP
        self._source = NOWHERE.file
        self._rest = ""
        self._rest_column = 1

    def program(self) -> Program:
        try:
            return self._program()
        except TextError as fault:
            self._refuse(fault)

    def _refuse(self, fault: TextError) -> NoReturn:
        line = min(self._line, len(self._lines))
        origin = Origin(self._name, line, fault.column, self._lines[line - 1])
        raise ParseError((Diagnostic(origin, fault.message),)) from None

    def _next(self) -> Cursor | None:
        """Return the tokens of the next line that is not blank; None after the last line."""
        while self._line < len(self._lines):
            self._line += 1
            line = self._lines[self._line - 1]
            tokens, end = scan(line)
            if tokens:
                self._rest, self._rest_column = line[end:], end + 1
                return Cursor(tokens, len(line[:end].rstrip()) + 1)
        return None

    def _inside(self) -> Cursor | None:
        """Return the next line of a block, or None at its end."""
        cursor = self._next()
        if cursor is None:
            raise TextError(len(self._lines[-1]) + 1, "expected }, found the end of the text")
        if cursor.take("}"):
            cursor.finish()
            return None
        return cursor

    def _origin(self, file: str) -> Origin:
        """Return the origin of the last line read."""
        return parse_origin(self._rest, file, self._rest_column)

    def _program(self) -> Program:
        cursor = self._next()
        if cursor is None:
            raise TextError(1, "expected program ip or program ip6, found the end of the text")
        cursor.expect("program")
        self._family = cursor.member(Family)
        tracked, reassembled = not cursor.take("untracked"), cursor.take("reassembled")
        if not cursor.is_done:
            self._source = cursor.next("the name of the source").text
        cursor.finish()
        sets: list[IpSet] = []
        chains: list[LoweredChain] = []
        while (cursor := self._next()) is not None:
            if not chains and cursor.take("set"):
                sets.append(self._set(cursor))
            elif cursor.take("chain"):
                chains.append(self._chain(cursor))
            else:
                raise cursor.fault("expected chain" if chains else "expected set or chain")
        return Program(
            family=self._family,
            chains=tuple(chains),
            source=self._source,
            sets=tuple(sets),
            tracked=tracked,
            reassembled=reassembled,
        )

    def _set(self, cursor: Cursor) -> IpSet:
        ipset = take_set(cursor, self._origin(self._source))
        elements: list[SetElement] = []
        while (line := self._inside()) is not None:
            elements.append(take_element(line, ipset, self._origin(ipset.origin.file)))
        return replace(ipset, elements=tuple(elements))

    def _chain(self, cursor: Cursor) -> LoweredChain:
        token = cursor.next("the name of a chain")
        table = token.text.partition("/")[0]
        if table not in TableName.__members__.values() or "/" not in token.text:
            raise TextError(token.column, f"expected a chain with its table, found {token.text!r}")
        hook = cursor.member(Hook) if cursor.take("hook") else None
        priority = cursor.signed("a priority") if cursor.take("priority") else None
        policy = cursor.member(Policy) if cursor.take("policy") else None
        cursor.expect("{")
        cursor.finish()
        origin = self._origin(self._source)
        statements: list[Statement] = []
        while (line := self._inside()) is not None:
            statements.append(self._statement(line))
        return LoweredChain(
            name=token.text,
            table=TableName(table),
            statements=tuple(statements),
            hook=hook,
            priority=priority,
            policy=policy,
            origin=origin,
        )

    def _statement(self, cursor: Cursor) -> Statement:
        tests: list[Test] = []
        if cursor.has("->"):
            tests.append(take_test(cursor, self._family))
            while cursor.take(","):
                tests.append(take_test(cursor, self._family))
            cursor.expect("->")
        origin = self._origin(self._source)
        if cursor.take("lookup"):
            return self._lookup(cursor, tuple(tests), origin)
        if cursor.take("choose"):
            return self._choose(cursor, tuple(tests), origin)
        return Apply(tests=tuple(tests), actions=take_actions(cursor, self._family), origin=origin)

    def _lookup(self, cursor: Cursor, tests: tuple[Test, ...], origin: Origin) -> Lookup:
        fields = take_fields(cursor)
        cursor.expect("{")
        cursor.finish()
        entries: list[Entry] = []
        while (line := self._inside()) is not None:
            key: list[Value] = []
            for field in fields:
                if key:
                    line.expect(".")
                key.append(take_value(line, field, self._family))
            line.expect("->")
            actions = take_actions(line, self._family)
            entries.append(Entry(key=tuple(key), actions=actions, origin=self._origin(self._source)))
        return Lookup(fields=fields, entries=tuple(entries), tests=tests, origin=origin)

    def _choose(self, cursor: Cursor, tests: tuple[Test, ...], origin: Origin) -> Choose:
        equal = cursor.take("equal")
        cursor.expect("{")
        cursor.finish()
        branches: list[Branch] = []
        while (line := self._inside()) is not None:
            weight = take_share(line)
            line.expect("->")
            actions = take_actions(line, self._family)
            branches.append(Branch(weight=weight, actions=actions, origin=self._origin(self._source)))
        return Choose(branches=tuple(branches), equal=equal, tests=tests, origin=origin)
