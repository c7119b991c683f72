from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.ir import Origin
from translate.read.rule.base import RuleError
from translate.read.tables.faults import Faults

LINE = '-A INPUT --comment "two words" -j DROP'


def raised(faults: Faults) -> list[tuple[int, int, str]]:
    with pytest.raises(ParseError) as error:
        faults.raise_if_any()
    return [(d.origin.line, d.origin.column, d.message) for d in error.value.diagnostics]


def test_without_faults_nothing_is_raised() -> None:
    faults = Faults()
    faults.raise_if_any()
    assert not faults


@pytest.mark.parametrize(("word", "column"), [(0, 1), (3, 20), (5, 35), (6, len(LINE) + 1)])
def test_a_fault_of_a_rule_is_at_its_word_or_behind_the_last_one(word: int, column: int) -> None:
    faults = Faults()
    faults.report_rule(Origin("rules", 7, 1, LINE), RuleError(word, "wrong"))
    assert raised(faults) == [(7, column, "wrong")]


def test_faults_are_sorted_and_the_rest_is_counted() -> None:
    faults = Faults()
    for line in range(30, 0, -1):
        faults.report(Origin("rules", line, 1), f"fault {line}")
    shown = raised(faults)
    assert shown[:20] == [(line, 1, f"fault {line}") for line in range(1, 21)]
    assert shown[20:] == [(21, 1, "and 10 more from here on")]


def test_quoted_input_is_printable_and_short() -> None:
    faults = Faults()
    faults.report(Origin("rules", 1, 1), "\x1b[2J" + "x" * 500)
    ((_, _, message),) = raised(faults)
    assert message.startswith("?[2Jx")
    assert message.endswith("x…")
    assert len(message) == 401
