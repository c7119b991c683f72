"""The simulator's result for the rules as written is that of the Program, lowered at any level.

The two share only the vocabulary: ``evaluate`` runs the Program, and ``backends.simulator`` the rules. At
every hook, the verdict of a table, the marks and the probability must be equal.
"""

from __future__ import annotations

import dataclasses
import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.examples import examples
from tests.lab.random.rules import random_rules
from tests.unit.translate.passes.helpers.bothresults import BIAS, RULESETS, Rules, difference
from translate.ir import (
    Choose,
    Lookup,
    Program,
)
from translate.passes import LEVELS, lower
from translate.passes.choose import choose
from translate.passes.lookup import lookup
from translate.read import read_ruleset

KUBE = [
    "kind-node/rules.iptables-save",
    "affinity/rules.iptables-save",
    "aws-vpc-cni/rules.iptables-save",
    "kube-real/rules.iptables-save",
    "six/rules.ip6tables-save",
]


@functools.lru_cache(maxsize=8)
def read(seed: int) -> Rules:
    return Rules(read_ruleset(random_rules(seed, hashed=0).encode(), name=f"seed {seed}"))


@functools.cache
def committed(name: str) -> Rules:
    return Rules(read_ruleset((RULESETS / name).read_bytes(), name=name))


@functools.lru_cache(maxsize=16)
def lowered(name: str, level: int) -> Program:
    return lower(committed(name).ruleset, level=level)


SEEDS = st.integers(0, 1 << 32)
RELAXED = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("level", LEVELS)
@given(rules=SEEDS, packets=st.lists(SEEDS, min_size=1, max_size=8))
@RELAXED
def test_random_rules(level: int, rules: int, packets: list[int]) -> None:
    written = read(rules)
    program = lower(written.ruleset, level=level)
    for seed in packets:
        apart, where = difference(written, program, seed)
        assert apart <= (BIAS if level else 0), where


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", KUBE)
@given(seed=SEEDS)
@RELAXED
def test_rules_of_nodes(name: str, level: int, seed: int) -> None:
    apart, where = difference(committed(name), lowered(name, level), seed)
    assert apart <= (BIAS if level else 0), where


def swapped_entries(program: Program) -> Program:
    """A lookup pass that mixes up two entries of its maps."""

    def spoil(statement):
        if not isinstance(statement, Lookup) or len(statement.entries) < 2:
            return statement
        one, two, *others = statement.entries
        entries = (
            dataclasses.replace(one, actions=two.actions),
            dataclasses.replace(two, actions=one.actions),
            *others,
        )
        return dataclasses.replace(statement, entries=entries)

    return changed(lookup(program), spoil)


def skewed(program: Program) -> Program:
    """A choose pass that gives a thousandth of a choice to another branch."""

    def spoil(statement):
        if not isinstance(statement, Choose):
            return statement
        first, second, *others = statement.branches
        part = first.weight // 1000
        moved = (
            dataclasses.replace(first, weight=first.weight - part),
            dataclasses.replace(second, weight=second.weight + part),
        )
        return dataclasses.replace(statement, branches=(*moved, *others))

    return changed(choose(program), spoil)


def without_shared_tests(program: Program) -> Program:
    """A lookup pass that forgets what the rules of a run have in common."""
    return changed(
        lookup(program), lambda s: dataclasses.replace(s, tests=()) if isinstance(s, Lookup) else s
    )


def changed(program: Program, spoil) -> Program:
    chains = tuple(
        dataclasses.replace(chain, statements=tuple(map(spoil, chain.statements))) for chain in program.chains
    )
    return dataclasses.replace(program, chains=chains)


@pytest.mark.parametrize("broken", [swapped_entries, skewed, without_shared_tests], ids=lambda b: b.__name__)
def test_a_broken_pass_is_caught(broken) -> None:
    """On the rules of one node or on random ones; what is not broken differs on none of them."""
    written, sound = committed("kind-node/rules.iptables-save"), lowered("kind-node/rules.iptables-save", 0)
    spoiled = broken(sound)
    assert any(difference(written, spoiled, seed)[0] > BIAS for seed in range(400)) or any(
        difference(read(rules), broken(lower(read(rules).ruleset, level=0)), seed)[0] > BIAS
        for rules in range(60)
        for seed in range(5)
    )
