"""The ipsets of a ruleset: each test of a set is resolved to the set with that name."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from translate.dataclass import replace
from translate.errors import Diagnostic, ParseError
from translate.ir import Cell, Hidden, IpSet, Rule, Ruleset, SetTest, SetUpdate, Test, Unknown
from translate.read.ipset.reader import IpSets

__all__ = ["with_sets"]


def with_sets(ruleset: Ruleset, ipsets: IpSets) -> Ruleset:
    """Return the ruleset with the given sets that one of its rules tests or changes.

    A rule that compares counters is read without the comparison if the set has none, as in the kernel
    (``ip_set_match_extensions``); otherwise its test is not modelled. ``--return-nomatch`` has no meaning for
    a set without nets, whose type has no ``nomatch`` elements. Tests of a set that a rule changes are marked
    (:attr:`~translate.ir.SetTest.filled`). A change of a set that no rule tests is not modelled if the set is
    missing or unsupported.

    Raises ParseError, at the place of the rule, for a set that is missing or unsupported, for a set of the
    other family, and for a number of directions that differs from the set's dimensions. The kernel accepts
    these: a set of the other family never matches, and a rule with too few directions never matches
    (``ip_set_test``).
    """
    by_name = {ipset.name: ipset for ipset in ipsets.sets}
    tested: set[str] = set()
    problems: dict[tuple[int, str], Diagnostic] = {}
    filled: set[str] = set()
    unread: set[SetUpdate] = set()
    tested_names = {test.name for _, test in ruleset.set_tests()}
    for rule, test in ruleset.set_uses():
        problem = _problem(rule, test, by_name.get(test.name), ruleset, ipsets)
        if problem is None:
            tested.add(test.name)
            if isinstance(test, SetUpdate):
                filled.add(test.name)
        elif isinstance(test, SetUpdate) and test.name not in tested_names:
            unread.add(test)
        else:
            problems.setdefault((rule.origin.line, test.name), problem)
    if problems:
        raise ParseError(tuple(problems.values()))
    ruleset = replace(ruleset, sets=tuple(ipset for ipset in ipsets.sets if ipset.name in tested))
    if (
        not filled
        and not unread
        and not any(test.counters or test.nomatch for _, test in ruleset.set_tests())
    ):
        return ruleset
    tables = (
        replace(
            table,
            chains=tuple(
                replace(chain, rules=tuple(_resolved(rule, by_name, filled, unread) for rule in chain.rules))
                for chain in table.chains
            ),
        )
        for table in ruleset.tables
    )
    return replace(ruleset, tables=tuple(tables))


_COUNTED: Final = "--packets and --bytes: counters of ipset entries are not modelled"


def _resolved(rule: Rule, by_name: Mapping[str, IpSet], filled: Set[str], unread: Set[SetUpdate]) -> Rule:
    """Return a rule with its tests of sets resolved to these sets."""
    tests: list[Test] = []
    unknown = list(rule.unknown)
    for test in rule.tests:
        if isinstance(test, SetUpdate) and test in unread:
            reason = f"-j SET changes the ipset {test.name}, which is missing or not supported"
            unknown.append(Unknown(reason, Hidden.EFFECT, extension="-j SET"))
            continue
        if not isinstance(test, SetTest):
            tests.append(test)
            continue
        ipset = by_name[test.name]
        if test.counters and any(option.name == "counters" for option in ipset.options):
            unknown.append(Unknown(_COUNTED, Hidden.TESTS, extension="-m set"))
        else:
            nomatch = test.nomatch and Cell.NET in ipset.type.cells
            tests.append(replace(test, counters=False, nomatch=nomatch, filled=test.name in filled))
    return replace(rule, tests=tuple(tests), unknown=tuple(unknown))


def _problem(
    rule: Rule, test: SetTest | SetUpdate, ipset: IpSet | None, ruleset: Ruleset, ipsets: IpSets
) -> Diagnostic | None:
    column = rule.origin.text.find(f" {test.name} ") + 2
    origin = rule.origin.at(column if column > 1 else 1)
    unread = ipsets.unread.get(test.name)
    if unread is not None:
        message = f'ipset "{test.name}" ({unread.origin.place}) is not supported'
        return Diagnostic(origin, f"{message}: {unread.reason}")
    if ipset is None:
        return Diagnostic(origin, f'there is no ipset "{test.name}" in {ipsets.source}')
    if ipset.family not in (None, ruleset.family):
        message = f'ipset "{test.name}" is of family {ipset.family}, the rules of {ruleset.family}'
        return Diagnostic(origin, f"{message}: it never matches", f"see {ipset.origin.place}")
    dimensions = len(ipset.type.dimensions)
    if len(test.directions) != dimensions:
        sides = ",".join(test.directions)
        message = f'ipset "{test.name}" is a {ipset.type} with {dimensions} dimensions, not "{sides}"'
        return Diagnostic(origin, message, f"see {ipset.origin.place}")
    return None
