"""A reader that remembers shapes reads every rule as one that meets it for the first time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from translate.ir import Counters, Family, Origin, Rule, TableName
from translate.read.rule.base import RuleError
from translate.read.rule.reader import RuleReader
from translate.read.spelling.scanner import quote, split

RULESETS = Path(__file__).parents[4] / "corpus" / "rulesets"
FILES = sorted((*RULESETS.rglob("*tables-save"), *RULESETS.rglob("*.rules")))


@dataclass(frozen=True)
class Line:
    """A rule and the table that it stands in."""

    table: TableName
    text: str


def lines_of(path: Path) -> list[Line]:
    found = []
    table = TableName.FILTER
    for line in path.read_text().splitlines():
        if line.startswith("*"):
            table = TableName(line[1:])
        elif line.startswith("-A "):
            found.append(Line(table, line))
    return found


LINES = [line for path in FILES if "ip6" not in path.name for line in lines_of(path)]
WORDS = sorted({word for line in LINES for word in split(line.text)} | {"!", "0", "-f", "--dport=1", "a,b"})


def outcome(reader: RuleReader, line: Line) -> object:
    words = split(line.text)
    try:
        rules = reader.read(
            words,
            2,
            table=line.table,
            chain=words[1],
            counters=Counters(1, 2),
            origin=Origin("rules", 1, 1, line.text),
        )
    except RuleError as error:
        return error.word, error.offset, error.message, error.hint
    assert all(rule.origin.text == line.text for rule in rules)
    return rules


def test_there_are_rules_to_try() -> None:
    assert len(LINES) > 300


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(RULESETS)))
def test_whole_rulesets_are_read_alike(path: Path) -> None:
    family = Family.IP6 if "ip6" in path.name else Family.IP
    remembering = RuleReader(family)
    for line in lines_of(path):
        assert outcome(remembering, line) == outcome(RuleReader(family), line)


@st.composite
def odd_lines(draw: st.DrawFn) -> Line:
    """A line of the corpus, some of whose words are changed."""
    line = draw(st.sampled_from(LINES))
    words = split(line.text)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(2, len(words)))
        match draw(st.sampled_from(("put", "replace", "leave out", "repeat"))):
            case "put":
                words.insert(at, draw(st.sampled_from(WORDS)))
            case "replace":
                words[at : at + 1] = [draw(st.sampled_from(WORDS))]
            case "leave out":
                del words[at : at + 1]
            case _:
                words += words[at : at + 3]
    words[1] = draw(st.sampled_from((words[1], "PREROUTING", "OUTPUT")))
    return Line(line.table, " ".join(quote(word) if " " in word else word for word in words))


TAUGHT = (
    "-A INPUT -i eth0 -j ACCEPT",
    "-A INPUT -s 10.0.0.3 -j ACCEPT",
    "-A x -m comment --comment z -j y",
    "-A x -m conntrack ! --ctstate NEW -j y",
    "-A x -j y",
)
REMEMBERING = RuleReader(Family.IP)
for each in (*LINES, *(Line(table, text) for text in TAUGHT for table in TableName)):
    outcome(REMEMBERING, each)


@given(odd_lines())
@example(Line(TableName.FILTER, "-A INPUT -i ! -j ACCEPT"))
@example(Line(TableName.FILTER, "-A OUTPUT -i eth0 -j ACCEPT"))
@example(Line(TableName.FILTER, "-A INPUT -s 10.0.0.1,10.0.0.2 -j ACCEPT"))
@example(Line(TableName.NAT, '-A x -m comment --comment "!" -j y'))
@example(Line(TableName.NAT, "-A x -m comment --comment y -j DROP"))
@example(Line(TableName.FILTER, "-A x -j LOG"))
@example(Line(TableName.FILTER, "-A x -m conntrack --ctstate ! NEW -j y"))
@example(Line(TableName.FILTER, "-A x -m conntrack ! --ctstate ! -j y"))
def test_odd_rules_are_read_alike(line: Line) -> None:
    assert outcome(REMEMBERING, line) == outcome(RuleReader(Family.IP), line)


def test_a_shape_is_used_again() -> None:
    reader = RuleReader(Family.IP)
    first, second = (
        outcome(reader, Line(TableName.NAT, f"-A x -s 10.0.0.{n} -m comment --comment c -j y"))
        for n in (1, 2)
    )
    assert isinstance(first, list)
    assert isinstance(second, list)
    one, two = first[0], second[0]
    assert isinstance(one, Rule)
    assert one.matches[0] is two.matches[0]
    assert one.actions is two.actions
    assert one.tests != two.tests
