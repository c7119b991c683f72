from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translate.read.spelling.scanner import QuoteError, Word, quote, scan, split


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-A INPUT -j DROP", ["-A", "INPUT", "-j", "DROP"]),
        ("  -A\t INPUT  ", ["-A", "INPUT"]),
        ('--comment "a b" -j X', ["--comment", "a b", "-j", "X"]),
        ('--comment ""', ["--comment", ""]),
        ('--comment "" -j X', ["--comment", "", "-j", "X"]),
        (r'--comment "say \"hi\" \\ it\'s"', ["--comment", 'say "hi" \\ it\'s']),
        ('"a"b', ["a", "b"]),
        ('x"y z" w', ["xy z", "w"]),
        (r"C:\dir it's", ["C:\\dir", "it's"]),
        ('"a  b" c', ["a  b", "c"]),
        ('"one" "two"', ["one", "two"]),
        ("", []),
        ("a\u00a0b", ["a\u00a0b"]),
    ],
)
def test_words_are_those_of_iptables(line: str, words: list[str]) -> None:
    assert split(line) == words
    assert [word.text for word in scan(line)] == words


def test_columns_count_from_one() -> None:
    assert scan('-m  "a b" -j') == [Word("-m", 1), Word("a b", 5), Word("-j", 11)]


@pytest.mark.parametrize(("line", "column"), [('a "b', 3), ('"', 1), ('a "b\\"', 3), ('"a" x"y', 6)])
def test_an_open_quote_is_invalid(line: str, column: int) -> None:
    for read in (scan, split):
        with pytest.raises(QuoteError) as caught:
            read(line)
        assert caught.value.column == column


@given(st.text(alphabet=st.sampled_from("ab \"\\\t'")))
def test_the_short_cuts_change_nothing(line: str) -> None:
    try:
        expected = [word.text for word in scan(line)]
    except QuoteError:
        with pytest.raises(QuoteError):
            split(line)
    else:
        assert split(line) == expected


@given(st.lists(st.text(alphabet=st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]))))
def test_what_is_quoted_is_read_back(words: list[str]) -> None:
    assert split(" ".join(quote(word) for word in words)) == words


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("plain-1_A", "plain-1_A"), ("", '""'), ("a:b", '"a:b"'), ('it\'s "x"\\', r'"it\'s \"x\"\\"')],
)
def test_quoting_is_that_of_xtables_save_string(text: str, quoted: str) -> None:
    assert quote(text) == quoted
