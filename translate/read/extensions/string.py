"""``-m string``: a text in a packet, counted from the start of the IP header.

``skb_find_text`` finds the first place of a text that begins at ``--from`` or later and ends at ``--to`` or
before. A text that can only be in one place is a test of the words there. Elsewhere it would take a search,
which neither the simulator nor nftables has; only the opposite, a text in none of a few places, is a test of
each of them.
"""

from __future__ import annotations

from typing import Final

from translate.ir import WORD_BITS, Interval, Option, Test, Word, WordOperator, WordTest
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_number,
)
from translate.read.spelling.errors import NotModelledError, OptionError

__all__ = ["STRING"]

_LAST: Final = 0xFFFF
_LONGEST: Final = 128
"""The longest text (``XT_STRING_MAX_PATTERN_SIZE``)."""
_BYTES: Final = WORD_BITS // 8
_WORDS: Final = 10
"""The most words in one test (``XT_U32_MAXSIZE``)."""
_MOST_PLACES: Final = 16
_SEARCHES: Final = ("bm", "kmp")
"""The algorithms that look for the bytes as they are given."""
_NEVER: Final = WordTest(
    words=(Word(offset=0, steps=((WordOperator.AND, 0xF0000000),), values=(Interval.point(0),)),)
)
"""A test that never holds, because a packet begins with the version of IP."""
_UPPER: Final = 0xDF
"""The bits by which letters are compared without their case."""


def _string(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = _text_option(options)
    text = _bytes_of(option.arguments[0])
    pattern = _unhexed(text, index) if option.name == "--hex-string" else text
    if not pattern:
        raise OptionError("string needs a text with at least one byte", option=index, argument=1)
    if len(pattern) > _LONGEST:
        raise OptionError(f"string takes a text of at most {_LONGEST} bytes", option=index, argument=1)
    at, algorithm = options.need("--algo", "string")
    if algorithm.arguments[0] not in _SEARCHES:
        raise NotModelledError(f"--algo {algorithm.arguments[0]}", option=at)
    first, end = _number(options, "--from", 0), _number(options, "--to", _LAST)
    if first > end:
        raise OptionError("--from is after --to", option=at)
    folded = options.has("--icase")
    if folded and not pattern.isascii():
        raise NotModelledError("--icase with bytes that are not ASCII,", option=index)
    places = range(first, end - len(pattern) + 1)
    if not places:
        return () if option.negated else (_NEVER,)
    if len(places) > (_MOST_PLACES if option.negated else 1):
        what = "a text that may be in several places"
        raise NotModelledError(what, option=index)
    words = [_words(pattern, place, folded=folded) for place in places]
    if option.negated:
        if len(words[0]) > _WORDS:
            raise NotModelledError(f"a negated text of more than {_WORDS * _BYTES} bytes", option=index)
        return tuple(WordTest(words=each, negated=True) for each in words)
    (whole,) = words
    return tuple(WordTest(words=whole[i : i + _WORDS]) for i in range(0, len(whole), _WORDS))


def _text_option(options: Options) -> tuple[int, Option]:
    """Return the option with the text. Raises OptionError unless there is exactly one."""
    plain, coded = options.find("--string"), options.find("--hex-string")
    if plain is not None and coded is not None:
        raise OptionError("--string and --hex-string exclude each other", option=coded[0])
    occurrence = plain or coded
    if occurrence is None:
        raise OptionError("string needs --string or --hex-string")
    return occurrence


def _number(options: Options, name: str, default: int) -> int:
    occurrence = options.find(name)
    if occurrence is None:
        return default
    index, option = occurrence
    return parse_number(option.arguments[0], _LAST, option=index)


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _unhexed(text: bytes, index: int) -> bytes:
    """Return the bytes of ``GET|0d 0a|`` (``parse_hex_string``). Raises OptionError.

    A backslash takes the next byte as it is. The byte after the end of a block is taken as it is, too.
    """
    pattern = bytearray()
    i, coded = 0, False
    while i < len(text):
        literal = text[i] == _BACKSLASH
        if literal and coded:
            raise OptionError("a backslash between two |", option=index, argument=1)
        if text[i] == _BAR:
            coded = not coded
            while coded and text[i + 1 : i + 2] == b" ":
                i += 1
            i += 1
            if i >= len(text):
                break
        if literal:
            if i + 1 >= len(text):
                raise OptionError("a backslash at the end of the text", option=index, argument=1)
            pattern.append(text[i + 1])
            i += 2
        elif coded:
            digits = text[i : i + 2]
            if len(text) <= i + 2 or not all(digit in _DIGITS for digit in digits):
                raise OptionError("bytes between two | are written as 0d 0a", option=index, argument=1)
            pattern.append(int(digits, 16))
            i += 3 if text[i + 2 : i + 3] == b" " else 2
        else:
            pattern.append(text[i])
            i += 1
    return bytes(pattern)


_BACKSLASH, _BAR = b"\\|"
_DIGITS: Final = b"0123456789abcdefABCDEF"


def _words(pattern: bytes, place: int, *, folded: bool) -> tuple[Word, ...]:
    """Return the words that have a text at ``place``, and are whole in every packet that has it."""
    end = place + len(pattern)
    starts = [*range(place, end - _BYTES, _BYTES), max(end - _BYTES, 0)]
    return tuple(_word(pattern, place, start, folded=folded) for start in starts)


def _word(pattern: bytes, place: int, start: int, *, folded: bool) -> Word:
    """Return the word at ``start``, of which the bytes in the text are compared."""
    mask = value = 0
    for at in range(start, start + _BYTES):
        mask, value = mask << 8, value << 8
        if place <= at < place + len(pattern):
            byte = pattern[at - place]
            bits = _UPPER if folded and chr(byte).isalpha() else 0xFF
            mask, value = mask | bits, value | byte & bits
    steps = () if mask == (1 << WORD_BITS) - 1 else ((WordOperator.AND, mask),)
    return Word(offset=start, steps=steps, values=(Interval.point(value),))


STRING: Final = MatchExtension(
    name="string",
    options=(
        *(OptionSpec(name=name) for name in ("--from", "--to", "--algo")),
        *(OptionSpec(name=name, invertible=True) for name in ("--string", "--hex-string")),
        OptionSpec(name="--icase", arguments=0),
    ),
    meaning=_string,
)
"""``-m string`` (``string_mt``)."""
