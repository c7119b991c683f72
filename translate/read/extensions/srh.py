"""``-m srh``: the segment routing header of IPv6 (RFC 8754), a routing header of type 4.

``libip6t_srh`` has one number for the three options about a length, and so for those about the segments left
and about the last entry: the last of them counts. The kernel compares the tag as it is in memory, so its
bytes are swapped on the processors of Kubernetes nodes, which are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.ir import Family, Field, FieldTest, Option, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_number,
)
from translate.read.spelling.address import parse_resolved_mask
from translate.read.spelling.errors import NotModelledError

__all__ = ["SRH"]

_SEGMENTS: Final = 4
"""The type of the header."""
_BYTE: Final = 0xFF
_SHORT: Final = 0xFFFF
_NUMBERS: Final = {
    "--srh-hdr-len": Field.ROUTING_LENGTH,
    "--srh-segs-left": Field.ROUTING_LEFT,
    "--srh-last-entry": Field.ROUTING_LAST,
}
"""The fields of numbers, each of which has three options: ``-eq``, ``-gt`` and ``-lt``."""
_ADDRESSES: Final = (Field.ROUTING_FIRST_ADDRESS, Field.ROUTING_SECOND_ADDRESS)


def _srh(options: Options, context: Context) -> tuple[Test, ...]:
    tests: list[Test] = [
        _within(Field.ROUTING_TYPE, _SEGMENTS, _SEGMENTS),
        _within(Field.ROUTING_IN_ORDER, 1, 1),
    ]
    numbers = _last_numbers(options)
    for index, option in enumerate(options):
        name, _, comparison = option.name.rpartition("-")
        match option.name:
            case "--srh-next-hdr":
                number = parse_number(option.arguments[0], _BYTE, option=index)
                tests.append(_within(Field.ROUTING_NEXT, number, number, negated=option.negated))
            case "--srh-tag":
                swapped = parse_number(option.arguments[0], _SHORT, option=index).to_bytes(2, "little")
                number = int.from_bytes(swapped, "big")
                tests.append(_within(Field.ROUTING_TAG, number, number, negated=option.negated))
            case "--srh-psid" | "--srh-nsid" | "--srh-lsid":
                tests += _segment(options, index, option, context)
            case _:
                tests.append(_compared(_NUMBERS[name], comparison, numbers[name], negated=option.negated))
    return tuple(tests)


def _last_numbers(options: Options) -> dict[str, int]:
    """Return the number of each field: that of the last option about it. Raises OptionError."""
    numbers: dict[str, int] = {}
    for index, option in enumerate(options):
        name = option.name.rpartition("-")[0]
        if name in _NUMBERS:
            numbers[name] = parse_number(option.arguments[0], _BYTE, option=index)
    return numbers


def _compared(field: Field, comparison: str, number: int, *, negated: bool) -> FieldTest:
    low, high = {"eq": (number, number), "gt": (number + 1, _BYTE), "lt": (0, number - 1)}[comparison]
    return _within(field, low, high, negated=negated)


def _within(field: Field, low: int, high: int, *, negated: bool = False) -> FieldTest:
    return between(field, low, high, negated=negated, family=Family.IP6)


def _segment(options: Options, index: int, option: Option, context: Context) -> Iterator[Test]:
    """Yield the tests of a segment: the last one, the next one, or the one before (``srh1_mt6``).

    Segments are in reverse order. Which of them is the next one depends on the number of those that are left.
    """
    wanted = parse_resolved_mask(context.family, option.arguments[0], option=index)
    place = 0
    if option.name != "--srh-lsid":
        step = 1 if option.name == "--srh-psid" else -1
        left = _left(options)
        if left is None or not 0 <= left + step < len(_ADDRESSES):
            what = f"{option.name} without a --srh-segs-left-eq by which nft finds it,"
            raise NotModelledError(what, option=index)
        place = left + step
        if step == 1:
            yield _within(Field.ROUTING_LAST, left, left, negated=True)
    yield wanted.test(_ADDRESSES[place], negated=option.negated)


def _left(options: Options) -> int | None:
    """Return the number of segments left, if the rule tests that there are exactly so many."""
    equal = options.find("--srh-segs-left-eq")
    return None if equal is None or equal[1].negated else _last_numbers(options)["--srh-segs-left"]


SRH: Final = MatchExtension(
    name="srh",
    options=tuple(
        OptionSpec(name=name, invertible=True)
        for name in (
            "--srh-next-hdr",
            *(f"{name}-{comparison}" for name in _NUMBERS for comparison in ("eq", "gt", "lt")),
            *("--srh-tag", "--srh-psid", "--srh-nsid", "--srh-lsid"),
        )
    ),
    meaning=_srh,
    family=Family.IP6,
)
"""``-m srh`` (``srh1_mt6``): a packet without the header never matches, even if an option is negated."""
