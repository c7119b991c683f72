"""Tests of words as C: a function for each test, which reads the words in order."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from translate.bpf.chains.code import Condition, Declaration, Needs
from translate.bpf.layout.tables import RuntimePart
from translate.ir import Interval, Word, WordOperator, WordTest, words_text

__all__ = ["words_condition"]


def words_condition(test: WordTest) -> Condition:
    """Return the condition that a packet passes a test, with the function that decides it."""
    name = f"words_{sha256(words_text(test.words).encode()).hexdigest()[:16]}"
    lines = (
        f"/* {words_text(test.words)} */",
        f"INLINE int {name}(struct __sk_buff *skb, struct pkt *p)",
        "{",
        "\tu64 base, word;",
        "",
        *(f"\t{line}" for word in test.words for line in _word(word)),
        "\treturn 1;",
        "}",
        "",
    )
    needs = Needs(parts=frozenset({RuntimePart.WORDS}), declarations=(Declaration(lines),))
    return Condition(f"{'!' if test.negated else ''}{name}(skb, p)", needs)


def _word(word: Word) -> Iterator[str]:
    """Yield statements that return 0 unless the word has one of its values (``u32_match_it``)."""
    yield "base = 0;"
    yield from _read(word.offset)
    for operator, number in word.steps:
        if operator is WordOperator.AT:
            yield "base += word;"
            yield from _read(number)
        else:
            yield f"word = (u32)(word {operator} {number:#x});"
    some = " || ".join(map(_among, word.values))
    yield f"if (!({some}))"
    yield "\treturn 0;"


def _read(number: int) -> Iterator[str]:
    yield f"word = word_at(skb, p, base, {number:#x});"
    yield "if (word == NO_WORD)"
    yield "\treturn 0;"


def _among(value: Interval) -> str:
    if value.is_point:
        return f"word == {value.low:#x}"
    return f"(word >= {value.low:#x} && word <= {value.high:#x})"
