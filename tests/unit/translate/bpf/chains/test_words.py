from __future__ import annotations

from translate.bpf.chains.words import words_condition
from translate.ir import WordTest
from translate.ir.words import read_words


def function(text: str, *, negated: bool = False) -> tuple[str, str]:
    """The condition of a test, and the body of its function in one line."""
    condition = words_condition(WordTest(words=read_words(text), negated=negated))
    (declaration,) = condition.needs.declarations
    body = " ".join(line.strip() for line in declaration.lines[3:-2])
    return condition.text, body


def test_a_word_is_read_changed_and_compared() -> None:
    _, body = function("6&0xff=17,0x20:0x30")
    assert body == (
        "u64 base, word;  base = 0; word = word_at(skb, p, base, 0x6); if (word == NO_WORD) return 0;"
        " word = (u32)(word & 0xff); if (!(word == 0x11 || (word >= 0x20 && word <= 0x30))) return 0;"
        " return 1;"
    )


def test_a_word_may_give_the_offset_of_the_next() -> None:
    _, body = function("0>>22&0x3c@4<<8=1")
    assert "word = (u32)(word >> 0x16); word = (u32)(word & 0x3c); base += word;" in body
    assert "word = word_at(skb, p, base, 0x4);" in body
    assert body.count("if (word == NO_WORD) return 0;") == 2


def test_equal_words_have_one_function() -> None:
    (plain, body), (negated, same), (other, _) = (
        function("0=1"),
        function("0=1", negated=True),
        function("0=2"),
    )
    assert (negated, same) == (f"!{plain}", body)
    assert other != plain
