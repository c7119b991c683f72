"""``--chunk-types`` of ``-m sctp``: the types of a packet's chunks (RFC 9260)."""

from __future__ import annotations

from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Interval, Option, Test
from translate.read.spelling.errors import NotModelledError, OptionError

__all__ = ["CHUNK_TYPES", "chunk_tests"]

CHUNK_TYPES: Final = {
    **{
        name: number
        for number, name in enumerate(
            (
                *("DATA", "INIT", "INIT_ACK", "SACK", "HEARTBEAT", "HEARTBEAT_ACK", "ABORT", "SHUTDOWN"),
                *("SHUTDOWN_ACK", "ERROR", "COOKIE_ECHO", "COOKIE_ACK", "ECN_ECNE", "ECN_CWR"),
                "SHUTDOWN_COMPLETE",
            )
        )
    },
    "ASCONF_ACK": 0x80,
    "FORWARD_TSN": 0xC0,
    "ASCONF": 0xC1,
}
"""The number of each type, by the name that iptables-save prints."""

_EVERY: Final = (1 << 256) - 1


def chunk_tests(option: Option, *, index: int) -> tuple[Test, ...]:
    """Return the tests of a packet with chunks (``match_packet`` of ``xt_sctp``). Raises OptionError.

    ``any``: a chunk has one of the types; ``all``: there is a chunk of each type; ``only``: each chunk has
    one of the types.
    """
    quantifier, text = option.arguments
    if text.upper() in ("ALL", "NONE"):
        raise NotModelledError(f"--chunk-types {quantifier} {text}", option=index)
    types = sorted({_type(word, text, index) for word in text.split(",")})
    match quantifier.lower():
        case "any":
            return (AnyOf(tests=tuple(_has(kind) for kind in types), negated=option.negated),)
        case "all" if option.negated:
            return (AnyOf(tests=tuple(_has(kind, negated=True) for kind in types)),)
        case "all":
            return tuple(map(_has, types))
        case "only":
            others = _EVERY & ~sum(1 << kind for kind in types)
            return (_of(others, 0, negated=option.negated),)
        case _:
            raise OptionError(f'"{quantifier}" is none of any, all and only', option=index)


def _type(word: str, text: str, index: int) -> int:
    name, colon, _ = word.partition(":")
    number = CHUNK_TYPES.get(name.upper())
    if number is None:
        at = text.index(word)
        raise OptionError(f'"{name}" is not a chunk type', option=index, argument=2, offset=at)
    if colon:
        raise NotModelledError(f"--chunk-types with flags of chunks ({word})", option=index)
    return number


def _has(kind: int, *, negated: bool = False) -> FieldTest:
    return _of(1 << kind, 1 << kind, negated=negated)


def _of(mask: int, value: int, *, negated: bool) -> FieldTest:
    values = (Interval.point(value),)
    return FieldTest(field=Field.SCTP_CHUNKS, values=values, mask=mask, negated=negated)
