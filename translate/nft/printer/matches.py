"""Matches as nft text.

* ``tcp flags a`` and ``ct status a`` without an operator are bit tests, so an operator is always written;
* ``fib saddr . iif oif`` and ``fib saddr oif`` find a route to a broadcast address, which ``rpfilter``
  does not (``nft_fib4_eval``, ``rpfilter_lookup_reverse``), so the type of the address is tested as well;
* every socket is in a cgroup, and ``meta cgroup`` fails without a socket (``nft_meta_get_eval_cgroup``);
  ``meta skuid`` also fails for sockets of the kernel, which no process opened;
* ``socket transparent`` fails if no socket takes the packet (``nft_socket_eval``), so any value of it shows
  that there is a socket;
* an interface that a hook does not have is the empty name (``nft_meta_store_ifname``), as in x_tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, assert_never

from translate.ir import (
    IPSEC_STATES,
    REVERSE_PATHS,
    REVERSE_ROUTES,
    WORD_BITS,
    ConnectionState,
    Family,
    Field,
    FieldTest,
    Interval,
    format_address,
)
from translate.ir.chunks import CHUNKS
from translate.nft.legal import Draw, Key, Masked, WordMatch
from translate.nft.printer.fields import expression, keys, protocol, status
from translate.nft.timers import LAST_SECOND

__all__ = [
    "ANY_PROTOCOL",
    "HAS_TRANSPORT",
    "field_match",
    "key_text",
    "port_match",
    "transport_byte_match",
    "word_match",
]

ANY_PROTOCOL: Final = "meta l4proto { 0-5, 7-255, tcp }"
"""The match that is true of every packet (:class:`~translate.nft.legal.AnyProtocol`)."""

HAS_TRANSPORT: Final = "@th,0,24 >= 0"
"""The match that is true of all packets but later fragments (:class:`~translate.nft.legal.HasTransport`)."""

_BRIDGE: Final = '"bridge"'
_NO_BROADCAST: Final = " type . ip saddr != { broadcast . 1.0.0.0-255.255.255.254 }"
"""The end of a match that excludes broadcast sources; ``fib … oif`` finds a route to them.

0.0.0.0/8 and 255.255.255.255 have the type ``broadcast`` whatever their route is (``__inet_dev_addr_type``).
"""
_WITH_OPERATOR: Final = frozenset({Field.TCP_FLAGS, Field.CT_STATUS, Field.FRAGMENT})
"""Fields whose comparison with a single value is written with an operator."""


def field_match(test: FieldTest, family: Family) -> str:
    """Return one test as a match."""
    return _match(expression(test.field, family), test, family)


def port_match(number: int, test: FieldTest, family: Family) -> str:
    """Return the test of a port as a match on the header of one protocol."""
    return _match(_port(number, test.field), test, family)


@cache
def _port(number: int, field: Field) -> str:
    return f"{protocol(number)} {field.name.lower()}"


def transport_byte_match(test: FieldTest, family: Family) -> str:
    """Return the test of an ICMP type or code as a match on a byte of the transport header."""
    return _match("@th,0,8" if test.field is Field.ICMP_TYPE else "@th,8,8", test, family)


def word_match(match: WordMatch) -> str:
    """Return the test of 32 bits of a header."""
    left = f"@{match.header},{8 * match.offset},{WORD_BITS}"
    if match.values == (Interval(0, _WORD),):
        return f"{left} >= 0x0"
    if match.mask != _WORD:
        left += f" & {match.mask:#x}"
    return f"{left} == {_one_or_set([_span(value.low, value.high) for value in match.values])}"


_WORD: Final = (1 << WORD_BITS) - 1


def key_text(key: Key, family: Family) -> str:
    """Return the expression of a key."""
    return " . ".join(_key_part(part, family) for part in key)


def _key_part(part: Field | Masked | Draw, family: Family) -> str:
    match part:
        case Field():
            return expression(part, family)
        case Masked(field=field, mask=mask):
            return f"{expression(field, family)} & {format_address(family, mask)}"
        case Draw(below=below):
            return f"numgen random mod {below}"
        case _:
            assert_never(part)


def _match(left: str, test: FieldTest, family: Family) -> str:
    field = test.field
    if field in _OWN_FORM and (text := _own_form(left, test, family)):
        return text
    if test.mask is not None:
        left += f" & {_mask(field, test.mask, family)}"
    values = [text for value in test.values for text in keys(field, value, family)]
    right = _one_or_set(values)
    if test.negated:
        return f"{left} != {right}"
    if test.mask is not None or field in _WITH_OPERATOR:
        return f"{left} == {right}"
    return f"{left} {right}"


_WHOLE: Final = Interval(0, (1 << 32) - 1)
_OWN_FORM: Final = frozenset(
    {
        Field.CT_STATE,
        *REVERSE_PATHS,
        Field.IPSEC_IN,
        Field.IPSEC_OUT,
        Field.SOCKET,
        Field.TAKER,
        Field.TAKER_WILDCARD,
        *IPSEC_STATES,
        Field.BRIDGED,
        Field.TOS,
        Field.TCP_OPTIONS,
        Field.SCTP_CHUNKS,
        Field.CLOCK,
        Field.CT_EXPIRES,
        Field.ROUTING_IN_ORDER,
    }
)
"""Fields that :func:`_own_form` may write."""


def _own_form(left: str, test: FieldTest, family: Family) -> str | None:
    """Return the match for a field with a special syntax; None for a field that is compared with values."""
    field = test.field
    if field is Field.CT_STATE:
        return f"{left} {_states(test)}" if test.mask is None else None
    if field in REVERSE_PATHS:
        return _reverse_path(left, field, family)
    if field in (Field.IPSEC_IN, Field.IPSEC_OUT):
        protected = any(1 in v for v in test.values if isinstance(v, Interval)) is not test.negated
        return f"{left} {'exists' if protected else 'missing'}"
    if field is Field.TAKER_WILDCARD:
        return f"{left} >= 0" if test.values == (Interval(0, 1),) and not test.negated else None
    if field in IPSEC_STATES:
        return f"{left} >= 0" if test.values == (_WHOLE,) and not test.negated else None
    if field in (Field.SOCKET, Field.TAKER):
        return f"{left} >= 0"
    if field is Field.BRIDGED:
        return f"{left} {_BRIDGE}"
    if field is Field.TOS:
        return _tos(left, test, family)
    if field is Field.TCP_OPTIONS:
        return _tcp_option(left, test)
    if field is Field.SCTP_CHUNKS:
        return _chunk(left, test)
    if field is Field.CLOCK:
        return _clock(left, test)
    if field is Field.CT_EXPIRES:
        return _expiration(left, test)
    if field is Field.ROUTING_IN_ORDER:
        return _in_order(left, test)
    return None


def _reverse_path(left: str, field: Field, family: Family) -> str:
    """Return a test for a route to the source; IPv6 has no broadcast addresses."""
    if family is Family.IP6:
        return f"{left} exists"
    of_device = "fib saddr" if field in REVERSE_ROUTES else "fib saddr . iif"
    return f"{left} exists {of_device}{_NO_BROADCAST}"


def _tcp_option(left: str, test: FieldTest) -> str:
    """Return a test for an option of a kind, or for none in a packet that has a header of TCP.

    ``tcp option … missing`` also holds for packets of other protocols (``nft_exthdr_tcp_eval``).
    """
    mask = test.mask or 0
    kind = mask.bit_length() - 1
    assert mask == 1 << kind
    if any(mask in value for value in test.values if isinstance(value, Interval)) is not test.negated:
        return f"{left} {kind} exists"
    return f"tcp sport >= 0 {left} {kind} missing"


def _chunk(left: str, test: FieldTest) -> str:
    """Return a test for a chunk of a type, or for none, in a packet that has a header of SCTP."""
    kind = (test.mask or 0).bit_length() - 1
    present = any(1 << kind in value for value in test.values if isinstance(value, Interval))
    presence = "exists" if present is not test.negated else "missing"
    return f"sctp sport >= 0 {left} {CHUNKS[kind]} {presence}"


def _tos(left: str, test: FieldTest, family: Family) -> str:
    """Return a test of the TOS: of DSCP or ECN by name, otherwise of the header's bytes.

    In IPv6 it is spread over the first two bytes.
    """
    mask = _BYTE if test.mask is None else test.mask
    values = [value for value in test.values if isinstance(value, Interval)]
    for name, part, shift in _PARTS_OF_TOS:
        if mask == part and all(value.is_point and not value.low & ~part for value in values):
            texts = [hex(value.low >> shift) for value in values]
            return f"{family.value} {name} {'!= ' if test.negated else ''}{_one_or_set(texts)}"
    shift = 0 if family is Family.IP else _TOS_SHIFT_6
    if mask != _BYTE or shift:
        left += f" & {mask << shift:#x}"
    texts = [_span(value.low << shift, value.high << shift) for value in values]
    return f"{left} {'!=' if test.negated else '=='} {_one_or_set(texts)}"


def _clock(left: str, test: FieldTest) -> str:
    """Return a test of whole seconds, which nft compares as nanoseconds.

    ``meta time 5-9`` of nft ends with the first nanosecond of the last second, so each bound is written as a
    comparison. Of several intervals each ends with the first nanosecond after its last second, which is
    excluded again.
    """
    assert not test.negated
    values = [value for value in test.values if isinstance(value, Interval)]
    if len(values) > 1:
        ends = [value.high + 1 for value in values]
        spans = _set([f"{value.low}-{end}" for value, end in zip(values, ends, strict=True)])
        return f"{left} {spans} {left} != {_set([str(end) for end in ends])}"
    (value,) = values
    bounds = [f"{left} >= {value.low}"] if value.low else []
    if value.high < _LATEST:
        bounds.append(f"{left} < {value.high + 1}")
    return " ".join(bounds) or f"{left} >= 0"


def _expiration(left: str, test: FieldTest) -> str | None:
    """Return a test of whole seconds, which nft compares as milliseconds; None for another form.

    ``nft list`` prints the ends of a range without their milliseconds, but not those of comparisons.
    """
    match test:
        case FieldTest(values=(Interval(low=low, high=high),), negated=False):
            bounds = [f"{left} >= {low}s"] if low else []
            bounds += [f"{left} < {high + 1}s"] if high < LAST_SECOND else []
            return " ".join(bounds) or f"{left} >= 0s"
        case _:
            return None


def _in_order(left: str, test: FieldTest) -> str:
    """Return a test of whether one byte is at most another one, which nft cannot compare."""
    within = any(1 in value for value in test.values if isinstance(value, Interval)) is not test.negated
    ordered = _set([f"{least} . {least}-{_BYTE}" for least in range(_BYTE + 1)])
    return f"{left} {'' if within else '!= '}{ordered}"


_LATEST: Final = (1 << 32) - 1
_BYTE: Final = 0xFF
_PARTS_OF_TOS: Final = (("dscp", 0xFC, 2), ("ecn", 0x03, 0))
_TOS_SHIFT_6: Final = 4


def _span(low: int, high: int) -> str:
    return f"{low:#x}" if low == high else f"{low:#x}-{high:#x}"


def _one_or_set(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else _set(texts)


def _states(test: FieldTest) -> str:
    states = [s for s in ConnectionState if any(s in v for v in test.values if isinstance(v, Interval))]
    return ",".join(state.name.lower() for state in states)


def _set(values: Sequence[str]) -> str:
    return "{ " + ", ".join(values) + " }"


def _mask(field: Field, mask: int, family: Family) -> str:
    if field.is_address:
        return format_address(family, mask)
    return status(mask) if field is Field.CT_STATUS else hex(mask)
