"""Each pass makes of the Program of a case the expected one, and no packet notices.

A case is a file ``cases/PASS/NAME.ir``: a Program in its text form, a line ``==> PASS, …``, and behind it the
Program that these passes make, ``unchanged``, or ``refused:`` with the message. ``make golden`` writes what
stands behind the line. Where a pass refuses to act, ``NAME.refused-REASON.ir`` is the twin of ``NAME.ir``, in
which it acts. ``flatten`` is given rules, ``inline`` a chain and its caller; ``verify`` accepts or refuses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tests.unit.translate.passes.helpers.evaluate import Distribution, State, distance, run
from translate.errors import UnsupportedError
from translate.ir import AnyOf, Choose, ConnectionState, Field, FieldTest, Interval, Lookup, Name, Program
from translate.irtext import parse_program, print_program
from translate.passes import VerifyError, verify
from translate.passes.control import changed_fields
from translate.passes.flatten import flatten
from translate.passes.inline import inline
from translate.passes.pipeline import LEVELS
from translate.read import read_ruleset

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(FOLDER.glob("*/*.ir"))
PASSES: dict[str, Callable[[Program], Program]] = {step.__name__: step for step in LEVELS[2]}
ARROW = "\n==> "
REFUSALS = ("unchanged\n", "refused: ")
EQUAL_SPLIT = Fraction(2, 1 << 31)  # what each may differ by
PACKETS = 150


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def inlined(program: Program, chain: str, caller: str) -> Program:
    made = inline(program.chain(caller), program.chain(chain), changed_fields(program))
    return (
        program
        if made is None
        else replace(program, chains=tuple(made if c.name == caller else c for c in program.chains))
    )


def outcome(given: str, steps: str, path: Path) -> str:
    """Return the output of a case, which is compared with the text after its arrow."""
    try:
        if steps == "flatten":
            return print_program(verify(flatten(read_ruleset(given.encode(), name=path.name))))
        before = after = parse_program(given, name=path.name)
        if steps == "verify":
            verify(before)
            return "accepted\n"
        for step in steps.split(", "):
            match step.split():
                case ["inline", chain, "into", caller]:
                    after = inlined(after, chain, caller)
                case _:
                    after = PASSES[step](after)
    except (UnsupportedError, VerifyError) as e:
        return f"refused: {e}\n"
    same(verify(before), verify(after))
    return "unchanged\n" if after == before else print_program(after)


@pytest.mark.parametrize("path", CASES, ids=name)
def test_golden_cases(path: Path, request: pytest.FixtureRequest) -> None:
    given, arrow, rest = path.read_text().partition(ARROW)
    assert arrow, "no line ==> PASS"
    steps, _, expected = rest.partition("\n")
    made = outcome(given, steps, path)
    if request.config.getoption("--golden-write"):
        path.write_text(f"{given}{ARROW}{steps}\n{made}")
        return
    assert made == expected, f"{path} differs: make golden writes it, review the change"


@pytest.mark.parametrize("path", CASES, ids=name)
def test_a_pass_acts_but_where_the_name_says_refused(path: Path) -> None:
    assert acts(path) is (".refused" not in path.stem)
    assert acts(path.with_name(f"{path.name.partition('.')[0]}.ir"))


def acts(path: Path) -> bool:
    return not path.read_text().partition(ARROW)[2].partition("\n")[2].startswith(REFUSALS)


def test_every_pass_has_cases_in_which_it_acts_and_in_which_it_does_not() -> None:
    for step in ("flatten", "inline", "verify", *PASSES):
        assert {acts(path) for path in CASES if path.parent.name == step} == {True, False}, step


# Packets made of the constants that a Program compares with.


def same(before: Program, after: Program) -> None:
    splits = sum(isinstance(s, Choose) for chain in after.chains for s in chain.statements)
    for chain in before.chains:
        if chain.hook is None:
            continue
        left = any(c.name == chain.name for c in after.chains)
        for packet in packets(before):
            expected = endings(run(before, chain.name, packet))
            if left:
                assert distance(expected, endings(run(after, chain.name, packet))) <= EQUAL_SPLIT * splits
            else:
                assert {end for end, _ in expected} == {chain.policy}


def endings(found: Distribution) -> Distribution:
    """Without what lists and counters hold then, which a pass may name otherwise."""
    total: Distribution = {}
    for (end, after), share in found.items():
        key = end, replace(after, memory=())
        total[key] = total.get(key, Fraction(0)) + share
    return total


def packets(program: Program) -> Iterator[State]:
    draw = random.Random(0)
    values: dict[Field, set[int | str]] = {
        Field.SADDR: {1}, Field.DADDR: {1}, Field.L4PROTO: {6, 17}, Field.FRAGMENT: {0}, Field.DPORT: {9},
        Field.SPORT: {9}, Field.MARK: {0, 1}, Field.CT_MARK: {0}, Field.IIF: {"eth0"}, Field.OIF: {"eth0"},
        Field.CT_STATE: {int(ConnectionState.NEW)}, Field.CT_STATUS: {0}, Field.ICMP_TYPE: {8},
        Field.FIB_DADDR_TYPE: {1, 2},
    }  # fmt: skip
    for field, value in constants(program):
        values.setdefault(field, set()).add(value.text if isinstance(value, Name) else value.low)
    ordered = {field: sorted(known, key=str) for field, known in values.items()}
    for _ in range(PACKETS):
        packet = {field: draw.choice(known) for field, known in ordered.items()}
        absent = {Field.ICMP_TYPE} if packet[Field.L4PROTO] in (6, 17) else {Field.SPORT, Field.DPORT}
        if packet[Field.FRAGMENT]:
            absent |= {Field.SPORT, Field.DPORT, Field.ICMP_TYPE}
        yield State.of({field: value for field, value in packet.items() if field not in absent})


def constants(program: Program) -> Iterator[tuple[Field, Interval | Name]]:
    for statement in (s for chain in program.chains for s in chain.statements):
        for test in statement.tests:
            for part in test.tests if isinstance(test, AnyOf) else (test,):
                if isinstance(part, FieldTest):
                    yield from ((part.field, value) for value in part.values)
        if isinstance(statement, Lookup):
            for entry in statement.entries:
                yield from zip(statement.fields, entry.key, strict=True)
