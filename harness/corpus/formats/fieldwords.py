"""Tests of fields for which a sentence says more than the name of the field and a value.

These are fields with two values (``fib.saddr.back is 1``), fields with a bit for each part of a packet, and
tests for any value of a header, which a packet passes if it has the header.
"""

from __future__ import annotations

from typing import Final

from translate.ir import AUTHENTICATION, IPSEC_STATES, Family, Field, FieldTest, Interval, Name, field_bits
from translate.ir.chunks import CHUNKS

__all__ = ["field_sentence"]

_BY_MARK: Final = ", looked up by the packet's mark"
_BACK: Final = (
    "the route back to its source uses its input interface",
    "no route back to its source uses its input interface",
)
_ROUTE: Final = ("there is a route back to its source", "there is no route back to its source")
_SENTENCES: Final = {
    Field.REVERSE_PATH: _BACK,
    Field.REVERSE_PATH_BY_MARK: (_BACK[0] + _BY_MARK, _BACK[1] + _BY_MARK),
    Field.REVERSE_ROUTE: _ROUTE,
    Field.REVERSE_ROUTE_BY_MARK: (_ROUTE[0] + _BY_MARK, _ROUTE[1] + _BY_MARK),
    Field.BRIDGED: ("it came in through a bridge port", "it did not come in through a bridge port"),
    Field.BRIDGED_ON: ("its bridge sends it on", "its bridge does not send it on"),
    Field.SOCKET: ("a socket of this node sends it", "no socket of this node sends it"),
    Field.TAKER: ("a socket of this node takes it", "no socket of this node takes it"),
    Field.TAKER_WILDCARD: (
        "the socket that takes it is bound to any address",
        "the socket that takes it is bound to one address",
    ),
    Field.TAKER_TRANSPARENT: (
        "the socket that takes it is transparent",
        "the socket that takes it is not transparent",
    ),
    Field.IPSEC_IN: ("it came in through IPsec", "it did not come in through IPsec"),
    Field.IPSEC_OUT: ("it goes out through IPsec", "it does not go out through IPsec"),
    Field.IPSEC_IN_STATES: ("its IPsec states fit the options", "its IPsec states do not fit the options"),
    Field.IPSEC_OUT_STATES: ("its IPsec states fit the options", "its IPsec states do not fit the options"),
    Field.EUI64: (
        "its source address is made from its MAC address",
        "its source address is not made from its MAC address",
    ),
    Field.FRAGMENT: ("it is a later fragment", "it is not a later fragment"),
    Field.FRAGMENT_MORE: ("more fragments follow it", "it is the last fragment"),
    Field.CT_DIRECTION: (
        "it goes in the reply direction of its connection",
        "it goes in the original direction of its connection",
    ),
}
"""The sentence for the value 1 of a field, and that for 0."""

_HEADERS: Final = {
    Field.SPORT: "a header with ports",
    Field.ICMP_TYPE: "an ICMP header",
    Field.ESP_SPI: "an ESP header",
    **dict.fromkeys(AUTHENTICATION, "an AH header"),
    Field.IPCOMP_CPI: "an IPComp header",
    Field.MH_TYPE: "a Mobility Header",
    Field.HOP_LENGTH: "hop-by-hop options",
    Field.DESTINATION_LENGTH: "destination options",
    Field.ROUTING_TYPE: "a routing header",
    Field.FRAGMENT_ID: "a fragment header",
    Field.TCP_MSS: "the TCP option 2 (MSS)",
}
"""The part of a packet that gives a field its value."""


def field_sentence(test: FieldTest, family: Family) -> str | None:
    """Return a sentence about the packet for which the test holds, or None if its field has none."""
    if test.field in _SENTENCES:
        return _of_two_values(test)
    if test.field in (Field.TCP_OPTIONS, Field.DCCP_OPTIONS, Field.SCTP_CHUNKS):
        return _of_parts(test)
    if test.field is Field.CT_HELPER:
        return _of_helper(test)
    if test.field in IPSEC_STATES:
        return _of_state(test)
    if test.field in _HEADERS and test.mask is None:
        whole = Interval(0, (1 << field_bits(test.field, family)) - 1)
        if test.values == (whole,):
            return f"it has {'no ' if test.negated else ''}{_bare(_HEADERS[test.field], test.negated)}"
    return None


def _bare(header: str, negated: bool) -> str:
    """Return the name of a header, without its article behind ``no``."""
    if not negated:
        return header
    return header.removeprefix("an ").removeprefix("a ").removeprefix("the ")


def _of_two_values(test: FieldTest) -> str | None:
    if test.mask is not None or len(test.values) != 1:
        return None
    (value,) = test.values
    if value not in (Interval.point(0), Interval.point(1)):
        return None
    yes, no = _SENTENCES[test.field]
    return yes if (value == Interval.point(1)) is not test.negated else no


def _of_state(test: FieldTest) -> str | None:
    """Return a sentence for a test of one value of a state of IPsec, or that there is a state."""
    _, direction, number, key = test.field.text.split(".")
    passed = "has passed" if direction == "in" else "will pass"
    if test.values == (Interval(0, (1 << 32) - 1),) and not test.negated:
        return f"it {passed} more than {number} states of IPsec"
    if len(test.values) != 1 or test.mask is not None or not isinstance(test.values[0], Interval):
        return None
    value = test.values[0].low
    word = hex(value) if test.field.is_hexadecimal else str(value)
    which = f"state {int(number) + 1} of IPsec that it {passed}"
    return f"{which} has {'another' if test.negated else 'the'} {key}{' than' if test.negated else ''} {word}"


def _of_parts(test: FieldTest) -> str | None:
    """Return a sentence for a test of one bit, or for a test that other bits than some are not set."""
    if test.mask is None or len(test.values) != 1:
        return None
    (value,) = test.values
    if value == Interval.point(0) and not test.negated and test.field is Field.SCTP_CHUNKS:
        others = [kind for kind in range(field_bits(test.field, Family.IP)) if not test.mask >> kind & 1]
        return f"it has no chunk but {' or '.join(map(_chunk, others))}"
    if test.mask.bit_count() != 1 or value != Interval.point(test.mask):
        return None
    number = test.mask.bit_length() - 1
    has = "it does not have" if test.negated else "it has"
    if test.field is Field.TCP_OPTIONS:
        return f"{has} the TCP option {number}"
    if test.field is Field.DCCP_OPTIONS:
        return f"{has} the option {number} of DCCP"
    return f"{has} a chunk {_chunk(number)}"


def _chunk(number: int) -> str:
    return CHUNKS.get(number, str(number)).upper()


def _of_helper(test: FieldTest) -> str | None:
    """Return a sentence for the names that ``-m helper`` takes: one name and all beginnings of it."""
    names = [value for value in test.values if isinstance(value, Name)]
    longest = max((name.text for name in names), key=len)
    if not longest:
        return f"{'no' if test.negated else 'a'} helper expected its connection"
    whose = f'the helper "{longest}", or a helper whose name begins like that,'
    return f"{'not ' if test.negated else ''}{whose} expected its connection"
