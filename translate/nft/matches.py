"""Tests as nft matches: each returns what ``and``\\ s together in one rule.

Traps that this module knows of:

* ``ct state a,b`` tests bits, and is exact because a packet has one state; ``!=`` with a list is no
  bit test, so that a negated list is written as the list of the other states;
* ``tcp flags a`` and ``ct status a`` without an operator are bit tests, so that an operator is
  always there;
* a match on ``ct status``, ``ct mark``, … fails for a packet without a conntrack entry, negated or not:
  just what :class:`FieldTest` means, but not what a negated :class:`AnyOf` means (see ``alternatives``);
* ``th sport`` reads the first bytes of any transport header, so that a protocol with ports must be
  asked for. It fails on later fragments (``nft_payload_eval``), as the field does;
* ``fib daddr type`` gives an address one type; ``addrtype`` of IPv6 calls the node's own UNICAST as well
  (``match_type6``), so that only LOCAL is written there;
* ``fib saddr . iif oif`` finds a route to a broadcast address, which ``rpfilter`` does not
  (``nft_fib4_eval``, ``rpfilter_lookup_reverse``), so that the type of the address is asked for as well;
* an interface that a hook does not have is the empty name (``nft_meta_store_ifname``), as in x_tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, assert_never

from translate.ir import (
    PORT_PROTOCOLS,
    RANDOM_RANGE,
    Account,
    AddressType,
    AnyOf,
    ConnectionState,
    ConnectionStatus,
    Family,
    Field,
    FieldTest,
    Interval,
    Name,
    Nth,
    Protocol,
    Random,
    Recent,
    SetTest,
    Test,
    Value,
    field_bits,
    format_address,
)
from translate.nft.bridges import BRIDGE
from translate.nft.ipsets import NamedSets
from translate.nft.refusal import CannotSay

__all__ = ["CT_PORTS", "REVERSE_PATHS", "expression", "keys", "matches", "protocols", "transports"]

_PROTOCOLS: Final[dict[int, str]] = {
    Protocol.ICMP: "icmp",
    Protocol.TCP: "tcp",
    Protocol.UDP: "udp",
    Protocol.DCCP: "dccp",
    Protocol.ICMPV6: "icmpv6",
    Protocol.SCTP: "sctp",
    Protocol.UDPLITE: "udplite",
}
_ADDRESS_TYPES: Final = frozenset(range(AddressType.UNSPEC, AddressType.THROW))
_PLAIN_INTERFACE: Final = re.compile(r"[A-Za-z0-9._@-]+")
_IFNAMSIZ: Final = 16
_PORTS: Final = {Field.SPORT: "sport", Field.DPORT: "dport"}
CT_PORTS: Final = frozenset(
    {Field.CT_ORIGINAL_SPORT, Field.CT_ORIGINAL_DPORT, Field.CT_REPLY_SPORT, Field.CT_REPLY_DPORT}
)


REVERSE_PATHS: Final = frozenset({Field.REVERSE_PATH, Field.REVERSE_PATH_BY_MARK})
_FIB: Final = frozenset(field for field in Field if field.name.startswith("FIB_"))
_STATE_NAMES: Final[dict[int, str]] = {state: state.name.lower() for state in ConnectionState}
_SYMBOLS: Final = frozenset({Field.L4PROTO, Field.CT_PROTO, Field.CT_STATE, Field.CT_DIRECTION, *_FIB})


@cache
def expression(field: Field, family: Family) -> str:
    """Return the nft expression that reads ``field``."""
    ip = family.value
    icmp = "icmp" if family is Family.IP else "icmpv6"
    match field:
        case Field.SADDR | Field.DADDR:
            return f"{ip} {field.name.lower()}"
        case Field.FRAGMENT:
            if family is Family.IP6:
                raise CannotSay("ipv6-fragment", "later fragments of IPv6 cannot be told apart here")
            return "ip frag-off & 0x1fff"
        case Field.L4PROTO:
            return "meta l4proto"
        case Field.SPORT | Field.DPORT:
            return f"th {_PORTS[field]}"
        case Field.ICMP_TYPE:
            return f"{icmp} type"
        case Field.ICMP_CODE:
            return f"{icmp} code"
        case Field.TCP_FLAGS:
            return "tcp flags"
        case Field.MARK:
            return "meta mark"
        case Field.IIF:
            return "iifname"
        case Field.OIF:
            return "oifname"
        case Field.CT_STATE:
            return "ct state"
        case Field.CT_STATUS:
            return "ct status"
        case Field.CT_MARK:
            return "ct mark"
        case Field.CT_DIRECTION:
            return "ct direction"
        case Field.CT_PROTO:
            return "ct original protocol"
        case Field.CT_ORIGINAL_SADDR:
            return f"ct original {ip} saddr"
        case Field.CT_ORIGINAL_DADDR:
            return f"ct original {ip} daddr"
        case Field.CT_REPLY_SADDR:
            return f"ct reply {ip} saddr"
        case Field.CT_REPLY_DADDR:
            return f"ct reply {ip} daddr"
        case Field.CT_ORIGINAL_SPORT:
            return "ct original proto-src"
        case Field.CT_ORIGINAL_DPORT:
            return "ct original proto-dst"
        case Field.CT_REPLY_SPORT:
            return "ct reply proto-src"
        case Field.CT_REPLY_DPORT:
            return "ct reply proto-dst"
        case Field.FIB_SADDR_TYPE:
            return "fib saddr type"
        case Field.FIB_DADDR_TYPE:
            return "fib daddr type"
        case Field.FIB_SADDR_TYPE_IIF:
            return "fib saddr . iif type"
        case Field.FIB_DADDR_TYPE_IIF:
            return "fib daddr . iif type"
        case Field.FIB_SADDR_TYPE_OIF:
            return "fib saddr . oif type"
        case Field.FIB_DADDR_TYPE_OIF:
            return "fib daddr . oif type"
        case Field.REVERSE_PATH:
            return "fib saddr . iif oif"
        case Field.REVERSE_PATH_BY_MARK:
            return "fib saddr . mark . iif oif"
        case Field.BRIDGED:
            return "meta iifkind"
        case _:
            assert_never(field)


def transports(tests: Sequence[Test]) -> tuple[int, ...]:
    """Return the transport protocols that the tests leave, or () when they do not ask for any.

    The flags of TCP ask for TCP: next to them a test on the protocol says nothing, and is gone.
    """
    for test in tests:
        if isinstance(test, FieldTest) and test.field is Field.TCP_FLAGS:
            return (Protocol.TCP,)
        if isinstance(test, FieldTest) and test.field is Field.L4PROTO and not test.negated:
            return tuple(n for v in test.values if isinstance(v, Interval) for n in range(v.low, v.high + 1))
    return ()


def protocol(number: int) -> str:
    """Return a transport protocol as nft reads it."""
    return _PROTOCOLS.get(number) or str(number)


def protocols(numbers: Sequence[int]) -> str:
    """Return the match on one of the transport protocols."""
    names = [protocol(n) for n in sorted(numbers)]
    return f"meta l4proto {names[0] if len(names) == 1 else _set(names)}"


def matches(tests: Sequence[Test], family: Family, sets: NamedSets, before: Sequence[Test] = ()) -> list[str]:
    """Return the matches of a rule with these tests, in order; ``before`` are those already written.

    There is no :class:`AnyOf` among them. One transport protocol and a port of it are written
    together (``tcp dport 53``), unless a counter stands between them, which the protocol decides about;
    ports without a protocol get the guard that they need. Raises CannotSay.
    """
    known = transports((*before, *tests))
    apart = any(map(_is_ct_port, before))
    asked = any(map(_is_ct_port, tests))
    if asked and not apart:
        # nft knows what a port of the connection is only behind the match on the protocol.
        apart = not known or any(map(_counts, tests))
        tests = tests if apart else sorted(tests, key=_is_ct_port)
    port = next((i for i, t in enumerate(tests) if isinstance(t, FieldTest) and t.field in _PORTS), None)
    joined = port is not None and len(known) == 1 and known[0] in PORT_PROTOCOLS and not apart
    guarded = port is not None and not (known and set(known) <= PORT_PROTOCOLS)
    found = [_EVERY_PROTOCOL] if apart and asked else []
    for index, test in enumerate(tests):
        if guarded and index == port:
            found.append(protocols(sorted(set(known) & PORT_PROTOCOLS or PORT_PROTOCOLS)))
        text = sets.match(test) if isinstance(test, SetTest) else _match(test, family)
        if joined and isinstance(test, FieldTest):
            if test.field is Field.L4PROTO and not test.negated:
                if not any(map(_counts, tests[index:port])):
                    continue
            elif test.field in _PORTS:
                text = text.replace("th ", f"{protocol(known[0])} ", 1)
        if apart and isinstance(test, FieldTest):
            text = _with_protocol(test, text, family)
        found.append(text)
    return found


_EVERY_PROTOCOL: Final = "meta l4proto { 0-5, 7-255, tcp }"
"""A match that every packet passes, behind which nft knows what a port of the connection is.

To nft the packet is then one of TCP (``relational_expr_pctx_update`` looks at single values in the set), so
that it implies TCP no more, and refuses what would imply another protocol.
"""


def _with_protocol(test: FieldTest, text: str, family: Family) -> str:
    """Return a match behind :data:`_EVERY_PROTOCOL`, with the protocol that nft would imply elsewhere."""
    match test.field:
        case Field.TCP_FLAGS:
            return f"{protocols((Protocol.TCP,))} {text}"
        case Field.ICMP_TYPE | Field.ICMP_CODE:
            four = family is Family.IP
            at = "@th,0,8" if test.field is Field.ICMP_TYPE else "@th,8,8"
            plain = text.replace(expression(test.field, family), at, 1)
            return f"{protocols((Protocol.ICMP if four else Protocol.ICMPV6,))} {plain}"
        case _:
            return text


def _counts(test: Test) -> bool:
    """Whether a test counts the packets that come to it."""
    return isinstance(test, Nth)


def _is_ct_port(test: Test) -> bool:
    return isinstance(test, FieldTest) and test.field in CT_PORTS


def _match(test: Test, family: Family) -> str:
    """Return one test as a match. Raises CannotSay."""
    match test:
        case FieldTest():
            return _field_match(test, family)
        case Random(numerator=numerator, negated=negated):
            return f"numgen random mod {RANDOM_RANGE} {'>=' if negated else '<'} {numerator}"
        case Nth(every=every, packet=packet, negated=negated):
            return f"numgen inc mod {every} {'!=' if negated else '=='} {packet}"
        case Recent() | Account() | SetTest():
            raise AssertionError(test)  # written by emit and ipsets, which know the objects
        case AnyOf():
            raise AssertionError("AnyOf takes more than one rule")
        case _:
            assert_never(test)


def _field_match(test: FieldTest, family: Family) -> str:
    field = test.field
    left = expression(field, family)
    if field is Field.CT_STATE and test.mask is None:
        return f"{left} {_states(test)}"
    if field in REVERSE_PATHS:
        return f"{left} exists {_NO_BROADCAST}"  # no way back takes two rules: see alternatives
    if field is Field.BRIDGED:
        return f"{left} {BRIDGE}"  # what is no bridge takes two rules: see emit
    if field is Field.FRAGMENT:
        later = any(1 in v for v in test.values if isinstance(v, Interval)) is not test.negated
        return f"{left} {'!=' if later else '=='} 0"
    if test.mask is not None:
        left += f" & {_mask(field, test.mask, family)}"
    values = [text for value in test.values for text in keys(field, value, family)]
    right = values[0] if len(values) == 1 else _set(values)
    if test.negated:
        return f"{left} != {right}"
    if test.mask is not None or field in _BITS:
        return f"{left} == {right}"
    return f"{left} {right}"


_BITS: Final = frozenset({Field.TCP_FLAGS, Field.CT_STATUS})
"""Fields for which nft takes a value without an operator for a bit test."""


_NO_BROADCAST: Final = "fib saddr . iif type . ip saddr != { broadcast . 1.0.0.0-255.255.255.254 }"
"""The route back to a broadcast address is none for ``rpfilter``, but one for ``fib … oif``.

0.0.0.0/8 and 255.255.255.255 have the type by themselves (``__inet_dev_addr_type``), whatever their route is.
"""


def _states(test: FieldTest) -> str:
    asked = {s for s in ConnectionState if any(s in v for v in test.values if isinstance(v, Interval))}
    if test.negated:
        asked = set(ConnectionState) - asked
    if not asked:
        raise AssertionError("a test of no state never holds, and is not written")
    return ",".join(s.name.lower() for s in ConnectionState if s in asked)


def _set(values: Sequence[str]) -> str:
    return "{ " + ", ".join(values) + " }"


def _mask(field: Field, mask: int, family: Family) -> str:
    if field.is_address:
        return format_address(family, mask)
    if field is Field.CT_STATUS:
        return _status(mask)
    return hex(mask)


def _status(bits: int) -> str:
    known = [(bit, name) for bit, name in _STATUS_NAMES.items() if bits & bit]
    if bits and bits == sum(bit for bit, _ in known) and len(known) == 1:
        return known[0][1]
    return hex(bits)


_STATUS_NAMES: Final = {
    int(ConnectionStatus.EXPECTED): "expected",
    int(ConnectionStatus.SEEN_REPLY): "seen-reply",
    int(ConnectionStatus.ASSURED): "assured",
    int(ConnectionStatus.CONFIRMED): "confirmed",
    int(ConnectionStatus.SNAT): "snat",
    int(ConnectionStatus.DNAT): "dnat",
}


def keys(field: Field, value: Value, family: Family) -> list[str]:
    """Return ``value`` as the keys that stand for it: one, or one each for symbols without an order."""
    if field in _SYMBOLS and isinstance(value, Interval):
        return [_number(field, n, family) for n in range(value.low, value.high + 1)]
    return [_key(field, value, family)]


def _key(field: Field, value: Value, family: Family) -> str:
    """Return one value of ``field`` as nft reads it. Raises CannotSay for odd interface names."""
    if isinstance(value, Name):
        return _interface(value)
    if value.is_point:
        return _number(field, value.low, family)
    if field.is_address:
        length = value.prefix_length(field_bits(field, family))
        if length is not None:
            return f"{format_address(family, value.low)}/{length}"
    return f"{_number(field, value.low, family)}-{_number(field, value.high, family)}"


def _number(field: Field, value: int, family: Family) -> str:
    if field.is_address:
        return format_address(family, value)
    if field is Field.L4PROTO or field is Field.CT_PROTO:
        return protocol(value)
    if field is Field.CT_STATE and value in _STATE_NAMES:
        return _STATE_NAMES[value]
    if field is Field.CT_STATUS:
        return _status(value)
    if field is Field.CT_DIRECTION:
        return ("original", "reply")[value]
    if field in (Field.MARK, Field.CT_MARK, Field.TCP_FLAGS):
        return hex(value)
    if field in _FIB and family is Family.IP6 and value != AddressType.LOCAL:
        raise CannotSay("addrtype6", "of the types of an IPv6 address, only LOCAL means the same in nftables")
    if field in _FIB and value in _ADDRESS_TYPES:
        return AddressType(value).name.lower()
    return str(value)


def _interface(name: Name) -> str:
    if not _PLAIN_INTERFACE.fullmatch(name.text):
        raise CannotSay("interface-name", f"nft cannot spell the interface name {name.text!r}")
    # Fifteen characters fill the kernel's buffer: nothing is left for the wildcard to stand for.
    wildcard = name.wildcard and len(name.text) < _IFNAMSIZ - 1
    return f'"{name.text}*"' if wildcard else f'"{name.text}"'
