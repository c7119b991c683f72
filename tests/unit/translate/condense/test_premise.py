"""The premise of the fast path: what passes may ask of a constant (:mod:`translate.condense`).

A pass commutes with renaming: constants of members that are renamed, one to one, before the pass give the
same Program as constants that are renamed behind it.
"""

from __future__ import annotations

import pkgutil
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Final

import pytest

from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate import condense, passes
from translate.condense import families
from translate.ir import (
    Action,
    AnyOf,
    Apply,
    Dnat,
    Family,
    Field,
    FieldTest,
    Interval,
    Lookup,
    LoweredChain,
    Program,
    Statement,
    Test,
    Value,
    format_address,
    parse_address,
)
from translate.passes import pipeline
from translate.passes.flatten import flatten
from translate.read import read_ruleset

Pass = Callable[[Program], Program]

SHAPES: Final = (
    Shape(services=100, endpoints=2),
    Shape(
        services=160, endpoints=1, node_ports=20, load_balancers=18, external_local=17, without_endpoints=16
    ),
)
_PORTS: Final = frozenset({Field.SPORT, Field.DPORT})


@dataclass(frozen=True)
class Renaming:
    """A one-to-one map of addresses and of ports; what it does not have stays as it is."""

    family: Family
    addresses: dict[int, int]
    ports: dict[int, int]

    def text(self, rules: str) -> str:
        def address(found: re.Match[str]) -> str:
            return found[1] + self._spelled(found[2]) + found[3]

        def target(found: re.Match[str]) -> str:
            host, _, port = found[2].rpartition(":")
            inner = self._spelled(host.strip("[]"))
            host = f"[{inner}]" if self.family is Family.IP6 else inner
            return f"{found[1]}{host}:{self.ports.get(int(port), int(port))}"

        def port(found: re.Match[str]) -> str:
            return f"{found[1]}{self.ports.get(int(found[2]), int(found[2]))}"

        rules = re.sub(rf"( -[sd] )([0-9a-f.:]+)(/{self.family.bits} )", address, rules)
        rules = re.sub(r"(--to-destination )(\S+)", target, rules)
        return re.sub(r"(--dport )(\d+)", port, rules)

    def _spelled(self, address: str) -> str:
        number = parse_address(self.family, address)
        return format_address(self.family, self.addresses.get(number, number))

    def program(self, program: Program) -> Program:
        return replace(program, chains=tuple(map(self._chain, program.chains)))

    def _chain(self, chain: LoweredChain) -> LoweredChain:
        return replace(chain, statements=tuple(map(self._statement, chain.statements)))

    def _statement(self, statement: Statement) -> Statement:
        tests = tuple(map(self._test, statement.tests))
        if isinstance(statement, Apply):
            return replace(statement, tests=tests, actions=self._actions(statement.actions))
        if isinstance(statement, Lookup):
            entries = tuple(
                replace(
                    entry,
                    key=tuple(map(self._value, statement.fields, entry.key)),
                    actions=self._actions(entry.actions),
                )
                for entry in statement.entries
            )
            return replace(statement, tests=tests, entries=entries)
        branches = tuple(replace(b, actions=self._actions(b.actions)) for b in statement.branches)
        return replace(statement, tests=tests, branches=branches)

    def _test(self, test: Test) -> Test:
        match test:
            case FieldTest():
                return replace(test, values=tuple(self._value(test.field, v) for v in test.values))
            case AnyOf():
                parts = [part for one in test.tests if isinstance(part := self._test(one), FieldTest)]
                assert len(parts) == len(test.tests)
                return replace(test, tests=tuple(parts))
            case _:
                return test

    def _value(self, field: Field, value: Value) -> Value:
        names = self.addresses if field.is_address else self.ports if field in _PORTS else {}
        if isinstance(value, Interval) and value.is_point:
            return Interval.point(names.get(value.low, value.low))
        return value

    def _actions(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return tuple(self._action(action) for action in actions)

    def _action(self, action: Action) -> Action:
        if not isinstance(action, Dnat) or action.addresses is None or action.ports.interval is None:
            return action
        address = self._value(Field.DADDR, action.addresses)
        port = self._value(Field.DPORT, action.ports.interval)
        assert isinstance(address, Interval)
        assert isinstance(port, Interval)
        return replace(action, addresses=address, ports=replace(action.ports, interval=port))


@cache
def rules_of(shape: Shape, family: Family) -> str:
    return kube_proxy_rules(draw_cluster(replace(shape, family=family)))


def renaming(text: str, family: Family, seed: int) -> Renaming:
    """A random renaming of the constants of all members."""
    ruleset = condense.condense(text, name="rules", family=family)
    assert ruleset is not None
    addresses: set[int] = set()
    ports: set[int] = set()
    for each in ruleset.families:
        for member in each.members:
            for field, constant in zip(each.fields, member.constants, strict=True):
                if field in _PORTS:
                    ports.add(int(constant))
                    continue
                address, port = constant, ""
                if field is None:
                    address, _, port = constant.rpartition(":")
                    ports.add(int(port))
                addresses.add(parse_address(family, address.strip("[]")))
    draw = random.Random(seed)
    # Nothing of the input is here, so that no two values become one.
    first = parse_address(family, "198.18.0.0" if family is Family.IP else "2001:db8:ffff::")
    others = draw.sample(range(first, first + 60_000), len(addresses))
    return Renaming(
        family,
        dict(zip(sorted(addresses), others, strict=True)),
        dict(zip(sorted(ports), draw.sample(range(40_000, 60_000), len(ports)), strict=True)),
    )


def commutes(steps: tuple[Pass, ...], text: str, family: Family, seed: int) -> str:
    """The name of the first pass that tells renamed constants from others; empty when there is none."""
    names = renaming(text, family, seed)
    plain = flatten(read_ruleset(text.encode(), name="rules", family=family))
    renamed = flatten(read_ruleset(names.text(text).encode(), name="rules", family=family))
    assert plain != renamed
    assert names.program(plain) == renamed
    for step in steps:
        plain, renamed = step(plain), step(renamed)
        if names.program(plain) != renamed:
            return step.__name__
    return ""


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_every_pass_commutes_with_renaming(shape: Shape, family: Family, seed: int) -> None:
    assert commutes(passes.LEVELS[2], rules_of(shape, family), family, seed) == ""


def test_the_sample_has_more_rules_than_any_pass_counts() -> None:
    modules = [
        import_module(f"translate.passes.{each.name}") for each in pkgutil.iter_modules(passes.__path__)
    ]
    limits = {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, int) and name.startswith("_") and name.isupper()
    }
    assert len(limits) > 4
    assert not {name: limit for name, limit in limits.items() if limit >= families._ENOUGH}


# Passes that break the premise.


def _changed(program: Program, change: Callable[[Lookup], Lookup]) -> Program:
    chains = []
    for chain in program.chains:
        statements = tuple(change(s) if isinstance(s, Lookup) else s for s in chain.statements)
        chains.append(replace(chain, statements=statements))
    return replace(program, chains=tuple(chains))


def sort_keys(program: Program) -> Program:
    """Sort the entries of lookups by their keys."""
    return _changed(program, lambda lookup: replace(lookup, entries=tuple(sorted(lookup.entries, key=str))))


def drop_even(program: Program) -> Program:
    """Drop every entry whose key has an even sum."""

    def odd(lookup: Lookup) -> Lookup:
        kept = [e for e in lookup.entries if sum(v.low for v in e.key if isinstance(v, Interval)) % 2]
        return replace(lookup, entries=tuple(kept) or lookup.entries)

    return _changed(program, odd)


BREAKING: Final = (sort_keys, drop_even)


@pytest.mark.parametrize("step", BREAKING)
def test_a_pass_that_looks_at_constants_is_noticed(step: Pass) -> None:
    steps = (*passes.LEVELS[2], step)
    assert commutes(steps, rules_of(SHAPES[0], Family.IP), Family.IP, 1) == step.__name__


@pytest.mark.parametrize("step", BREAKING)
def test_such_a_pass_makes_the_paths_differ(step: Pass, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LEVELS", {**pipeline.LEVELS, 2: (*pipeline.LEVELS[2], step)})
    text = rules_of(SHAPES[0], Family.IP)
    ruleset = condense.condense(text, name="rules", family=Family.IP)
    assert ruleset is not None
    plain = passes.lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=2)
    fast = condense.lower(ruleset, level=2)
    assert isinstance(fast, Program) or condense.whole_program(fast) != plain
