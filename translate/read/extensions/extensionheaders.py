"""``-m hbh``, ``-m dst``, ``-m frag`` and ``-m ipv6header``: the extension headers of IPv6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from translate.ir import (
    AnyOf,
    Family,
    Field,
    FieldTest,
    HeaderOptions,
    Interval,
    Option,
    Test,
    Word,
    WordOperator,
    WordTest,
)
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_number,
    parse_range,
)
from translate.read.spelling.errors import NotModelledError, OptionError

__all__ = ["DST", "FRAG", "HBH", "IPV6HEADER"]

_BYTE: Final = 0xFF
_MOST: Final = 0xFFFFFFFF
_UNIT: Final = 8
"""Bytes in one unit of a header's length field, which does not count the first unit."""


def _length(field: Field, name: str, options: Options) -> Test:
    """Return the test of the header's length, or only that the packet has the header."""
    occurrence = options.find(name)
    if occurrence is None:
        return _present(field)
    index, length = occurrence
    units, rest = divmod(parse_number(length.arguments[0], _MOST, option=index), _UNIT)
    if rest or not 0 < units <= _BYTE + 1:
        return FieldTest(field=field, values=(Interval(0, _BYTE),), negated=not length.negated)
    return FieldTest(field=field, values=(Interval.point(units - 1),), negated=length.negated)


_FIRST_OPTION: Final = 42
"""The place of the first option after the IP header, if this header follows it (RFC 8200)."""
_NEXT_HEADER: Final = Word(
    offset=4, steps=((WordOperator.RIGHT, 8), (WordOperator.AND, _BYTE)), values=(Interval.point(0),)
)
"""Hop-by-hop options follow the header of IPv6."""
_MOST_OPTIONS: Final = 16  # IP6T_OPTS_OPTSNR


def _hbh(options: Options, _context: Context) -> tuple[Test, ...]:
    tests = [_length(Field.HOP_LENGTH, "--hbh-len", options)]
    occurrence = options.find("--hbh-opts")
    if occurrence is not None:
        listed = _kinds(occurrence[1].arguments[0], occurrence[0])
        if all(not kind or length is not None for kind, length in listed[:-1]):
            tests += _in_place(listed)
        else:
            tests.append(HeaderOptions(header=Field.HOP_LENGTH, options=tuple(listed)))
    return tuple(tests)


def _dst(options: Options, _context: Context) -> tuple[Test, ...]:
    tests = [_length(Field.DESTINATION_LENGTH, "--dst-len", options)]
    occurrence = options.find("--dst-opts")
    if occurrence is not None:
        listed = _kinds(occurrence[1].arguments[0], occurrence[0])
        tests.append(HeaderOptions(header=Field.DESTINATION_LENGTH, options=tuple(listed)))
    return tuple(tests)


def _in_place(listed: Sequence[tuple[int, int | None]]) -> Iterator[Test]:
    """Yield the tests that hop-by-hop options begin with these, as bytes whose places are known."""
    words = [_NEXT_HEADER]
    at, end = _FIRST_OPTION, _FIRST_OPTION
    for number, (kind, length) in enumerate(listed, 1):
        whole = bool(kind) and length is not None
        # the last two bytes of the word are the option's kind and length, or its last byte is the kind
        value, bits = (kind << 8 | (length or 0), 0xFFFF) if whole else (kind, _BYTE)
        place = at - 2 if whole else at - 3
        words.append(Word(offset=place, steps=((WordOperator.AND, bits),), values=(Interval.point(value),)))
        end = at + (2 if kind else 1)
        at += (length or 0) + 2 if kind else 1
        if number < len(listed):
            end = at
    units = -(-(end - _FIRST_OPTION + 2) // _UNIT) - 1
    if units:
        yield between(Field.HOP_LENGTH, units, _BYTE, negated=False, family=Family.IP6)
    yield WordTest(words=tuple(words))


def _kinds(text: str, index: int) -> list[tuple[int, int | None]]:
    """Return the kind and length of each option; a length of 255 is any length (``parse_options``)."""
    listed: list[tuple[int, int | None]] = []
    offset = 0
    for word in text.split(","):
        kind_text, colon, length_text = word.partition(":")
        kind = parse_number(kind_text, _MOST, option=index, offset=offset) & _BYTE
        length: int | None = None
        if colon:
            if not kind:
                raise OptionError("option 0 (Pad1) has no length", option=index, offset=offset)
            place = offset + len(kind_text) + 1
            length = parse_number(length_text, _MOST, option=index, offset=place) & _BYTE
        listed.append((kind, None if length == _BYTE else length))
        offset += len(word) + 1
    if len(listed) > _MOST_OPTIONS:
        raise OptionError(f"iptables takes at most {_MOST_OPTIONS} options", option=index)
    if len(listed) == _MOST_OPTIONS and ":" in text.rpartition(",")[2]:
        raise OptionError(f"option {_MOST_OPTIONS} must not have a length", option=index)
    return listed


HBH: Final = MatchExtension(
    name="hbh",
    options=(OptionSpec(name="--hbh-len", invertible=True), OptionSpec(name="--hbh-opts")),
    meaning=_hbh,
    family=Family.IP6,
)
"""``-m hbh`` (``hbh_mt6``): a packet without the header never matches, negated or not."""

DST: Final = MatchExtension(
    name="dst",
    options=(
        OptionSpec(name="--dst-len", invertible=True),
        OptionSpec(name="--dst-opts"),
    ),
    meaning=_dst,
    family=Family.IP6,
)
"""``-m dst`` (``hbh_mt6``): the first header of this kind."""


def _present(field: Field) -> FieldTest:
    """Return the test of whether the packet has the header with ``field``."""
    return between(field, 0, (1 << (field.bits or 0)) - 1, negated=False, family=Family.IP6)


def _point(field: Field, value: int) -> FieldTest:
    return between(field, value, value, negated=False, family=Family.IP6)


_OF_FRAGMENTS: Final = {
    "--fragres": (_point(Field.FRAGMENT_RESERVED, 0), _point(Field.FRAGMENT_RESERVED2, 0)),
    "--fragfirst": (_point(Field.FRAGMENT_OFFSET, 0),),
    "--fragmore": (_point(Field.FRAGMENT_MORE, 1),),
    "--fraglast": (_point(Field.FRAGMENT_MORE, 0),),
    "--fraglen": (),
}
"""The tests of each option except ``--fragid``; the kernel does not read ``--fraglen`` (``frag_mt6``)."""


def _frag(options: Options, context: Context) -> tuple[Test, ...]:
    tests: list[Test] = []
    last = options.find("--fraglast")
    if last is not None and options.has("--fragmore"):
        raise OptionError("a fragment is not the last one if more follow", option=last[0], argument=0)
    for index, option in enumerate(options):
        if option.name == "--fragid":
            low, high = parse_range(option.arguments[0], _MOST, option=index)
            tests.append(between(Field.FRAGMENT_ID, low, high, negated=option.negated, family=context.family))
        else:
            if option.name == "--fraglen":
                parse_number(option.arguments[0], _MOST, option=index)
            tests += _OF_FRAGMENTS[option.name]
    return tuple(tests) or (_present(Field.FRAGMENT_ID),)


FRAG: Final = MatchExtension(
    name="frag",
    options=(
        OptionSpec(name="--fragid", invertible=True),
        OptionSpec(name="--fraglen", invertible=True),
        *(OptionSpec(name=name, arguments=0) for name in ("--fragres", "--fragfirst")),
        *(OptionSpec(name=name, arguments=0) for name in ("--fragmore", "--fraglast")),
    ),
    meaning=_frag,
    family=Family.IP6,
)
"""``-m frag`` (``frag_mt6``): the fragment header, which a node with conntrack removes before any rule."""

_ESP, _NONE = 50, 59
_HEADERS: Final = {
    0: _present(Field.HOP_LENGTH),
    60: _present(Field.DESTINATION_LENGTH),
    43: _present(Field.ROUTING_TYPE),
    44: _present(Field.FRAGMENT_ID),
    _ESP: _point(Field.L4PROTO, _ESP),
    _NONE: _point(Field.L4PROTO, _NONE),
    255: FieldTest(field=Field.L4PROTO, values=(Interval.point(_ESP), Interval.point(_NONE)), negated=True),
}
"""The test for each header, by its number; 255 is any other header, which begins the payload."""
_AH: Final = 51
_NAMES: Final = {
    "hop-by-hop": 0,
    "hop": 0,
    "hopopt": 0,
    "ip": 0,
    "ipv6-opts": 60,
    "dst": 60,
    "ipv6-route": 43,
    "route": 43,
    "ipv6-frag": 44,
    "frag": 44,
    "ah": _AH,
    "auth": _AH,
    "esp": _ESP,
    "ipv6-nonxt": _NONE,
    "none": _NONE,
    "protocol": 255,
    "prot": 255,
    **{str(number): number for number in (*_HEADERS, _AH)},
}


def _ipv6header(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--header", "ipv6header")
    numbers = {_number(name, option, index): None for name in option.arguments[0].split(",") if name}
    if not numbers:
        raise OptionError("--header names no header", option=index)
    if not options.has("--soft"):
        what = "--header without --soft, which also tests that there is no AH,"
        raise NotModelledError(what, option=index)
    if _AH in numbers:
        raise NotModelledError("--header ah, which nftables does not read,", option=index)
    tests = tuple(_HEADERS[number] for number in numbers)
    return (AnyOf(tests=tests, negated=True),) if option.negated else tests


def _number(name: str, option: Option, index: int) -> int:
    if name not in _NAMES:
        at = option.arguments[0].index(name)
        raise OptionError(f'"{name}" is not an extension header of IPv6', option=index, offset=at)
    return _NAMES[name]


IPV6HEADER: Final = MatchExtension(
    name="ipv6header",
    options=(
        OptionSpec(name="--header", invertible=True),
        OptionSpec(name="--soft", arguments=0),
    ),
    meaning=_ipv6header,
    family=Family.IP6,
)
"""``-m ipv6header --soft`` (``ipv6header_mt6``): all of these headers are present; negated, none is."""
