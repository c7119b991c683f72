"""Text is taken apart where nft's scanner takes it apart, and nowhere else."""

from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.nftlisting.pieces import Piece, pieces


def taken(text: str) -> list[tuple[str, int]]:
    return [(piece.flat, piece.line) for piece in pieces(Piece(text, 1, "x.nft"))]


def test_statements_end_at_semicolons_and_newlines_outside_of_braces() -> None:
    assert taken("a b; c\n\n  d { e; f\n g }\nh") == [("a b", 1), ("c", 1), ("d { e; f g }", 3), ("h", 5)]


def test_strings_hold_what_would_end_a_statement_elsewhere() -> None:
    text = 'drop comment "a;b}{c#d"\naccept comment "two  spaces"'
    assert taken(text) == [('drop comment "a;b}{c#d"', 1), ('accept comment "two  spaces"', 2)]


def test_comments_are_left_out_and_count_as_lines() -> None:
    assert taken('# one { "\na # two; b\nc { d # three }\n e }') == [("a", 2), ("c { d e }", 3)]


def test_a_backslash_joins_lines() -> None:
    assert taken("a \\\n b\nc") == [("a b", 1), ("c", 3)]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a {\n b {\n }\n", "x.nft:1", "this brace is never closed"),
        ("a\n b }\n", "x.nft:2", "this brace closes nothing"),
        ('a {\n b "c\n }\n', "x.nft:2", "this string has no end on its line"),
    ],
)
def test_halves_are_refused_at_their_line(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        taken(text)
    assert caught.value.diagnostics[0].origin.place == place


def test_a_block_is_what_has_braces_before_any_string() -> None:
    (piece,) = pieces(Piece('\ntable ip a {\n\tcomment "}"\n}', 1, "x.nft"))
    block = piece.block()
    assert block is not None
    assert block.head == ("table", "ip", "a")
    assert [(p.flat, p.line) for p in pieces(block.body)] == [('comment "}"', 3)]
    assert Piece('comment "{ }"', 1, "x.nft").block() is None
