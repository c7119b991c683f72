"""Tests of one rule in the form that nft reads correctly: tests of ports, lists and wildcards.

* ``th sport`` reads the first bytes of any transport header, so a match on protocols with ports must stand
  before it. ``fragments`` adds a guard, so that the match fails for later fragments as the test of the field
  does.
* nft knows the type of a connection's port only after a match on the protocol.
* One transport protocol and a port of it are one match (``tcp dport 53``), unless a counter between them
  depends on the protocol.
* ``ct state`` with a list tests bits, and is exact because a packet has exactly one state. ``!=`` with a list
  is not a bit test, so a negated list becomes the list of the other states.
* An interface name has at most fifteen characters, so a wildcard after fifteen matches no more than the name.
* nft reads no day of the month, so a test of it becomes a test of the clock (``monthdays``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, assert_never

from translate.dataclass import replace
from translate.ir import (
    PORT_PROTOCOLS,
    Account,
    AnyOf,
    BytecodeTest,
    CgroupTest,
    ClusterShare,
    ConnectionLimit,
    ConnectionState,
    ConnLabel,
    Family,
    Field,
    FieldTest,
    HashLimit,
    HeaderOptions,
    Interval,
    Limit,
    Name,
    Nth,
    Protocol,
    Quota,
    Random,
    Recent,
    SetTest,
    SetUpdate,
    Test,
    Value,
    WordTest,
)
from translate.nft.legal import AnyProtocol, InSet, Part, PortOf, TransportByte
from translate.nft.legalise.monthdays import MONTHDAYS, on_clock
from translate.nft.legalise.sockets import of_cgroup
from translate.nft.legalise.words import word_matches
from translate.nft.limits.inexpressible import check_test
from translate.nft.limits.refusal import CannotSay

__all__ = ["CT_PORTS", "PORTS", "matches", "protocol_among", "transports"]

_IFNAMSIZ: Final = 16
PORTS: Final = frozenset({Field.SPORT, Field.DPORT})
"""Fields that are ports of the packet itself."""

CT_PORTS: Final = frozenset(
    {Field.CT_ORIGINAL_SPORT, Field.CT_ORIGINAL_DPORT, Field.CT_REPLY_SPORT, Field.CT_REPLY_DPORT}
)
"""Fields that are ports of the packet's connection."""


def transports(tests: Sequence[Test]) -> tuple[int, ...]:
    """Return the transport protocols that the tests allow, or () if they do not test the protocol.

    A test of TCP flags implies TCP, and no test of the protocol remains next to it.
    """
    for test in tests:
        if not isinstance(test, FieldTest):
            continue
        if test.field is Field.TCP_FLAGS:
            return (Protocol.TCP,)
        if test.field is Field.L4PROTO and not test.negated:
            return tuple(n for v in test.values if isinstance(v, Interval) for n in range(v.low, v.high + 1))
    return ()


def protocol_among(numbers: Iterable[int]) -> FieldTest:
    """Return a test that the transport protocol is one of these."""
    return FieldTest(field=Field.L4PROTO, values=tuple(Interval.point(n) for n in sorted(numbers)))


def matches(
    tests: Sequence[Test],
    family: Family,
    in_set: Callable[[SetTest], InSet],
    before: Sequence[Test] = (),
) -> list[Part]:
    """Return the matches of a rule with these tests, in order; ``before`` are tests already written.

    The tests have no :class:`AnyOf`, no list, no bucket and no counter. Ports without a protocol get the
    guard that they need. Raises CannotSay.
    """
    fields = {test.field for test in tests if isinstance(test, FieldTest)}
    has_port, has_ct_port = not fields.isdisjoint(PORTS), not fields.isdisjoint(CT_PORTS)
    protocols = transports((*before, *tests)) if has_port or has_ct_port else ()
    after_any_protocol = bool(before) and any(map(_is_ct_port, before))
    if has_ct_port and not after_any_protocol:
        after_any_protocol = not protocols or any(map(_counts, tests))
        tests = tests if after_any_protocol else sorted(tests, key=_is_ct_port)
    port = next(i for i, test in enumerate(tests) if _is_port(test)) if has_port else None
    joined = (
        port is not None and len(protocols) == 1 and protocols[0] in PORT_PROTOCOLS and not after_any_protocol
    )
    guarded = port is not None and not (protocols and set(protocols) <= PORT_PROTOCOLS)
    parts: list[Part] = [AnyProtocol()] if after_any_protocol and has_ct_port else []
    for index, test in enumerate(tests):
        if guarded and index == port:
            parts.append(protocol_among(set(protocols) & PORT_PROTOCOLS or PORT_PROTOCOLS))
        match test:
            case FieldTest():
                implied = joined and test.field is Field.L4PROTO and not test.negated
                if not implied or any(map(_counts, tests[index:port])):
                    parts += _field_matches(
                        test, protocols[0] if joined else None, after_any_protocol, family
                    )
            case SetTest():
                parts.append(in_set(test))
            case Random() | Nth():
                parts.append(test)
            case CgroupTest():
                parts.append(of_cgroup(test))
            case WordTest():
                parts += word_matches(test, (*before, *tests), family)
            case HeaderOptions():
                reason = "nftables reads the length of a header, not the options in it"
                raise CannotSay("header-options", reason)
            case BytecodeTest():
                raise CannotSay("bpf", "nf_tables runs no BPF program")
            case (
                AnyOf()
                | Limit()
                | HashLimit()
                | ConnectionLimit()
                | Quota()
                | Recent()
                | SetUpdate()
                | ConnLabel()
                | ClusterShare()
                | Account()
            ):
                raise AssertionError(f"{test} is no match")
            case _:
                assert_never(test)
    return parts


def _field_matches(
    test: FieldTest, joined: int | None, after_any_protocol: bool, family: Family
) -> list[Part]:
    """Return one test as matches.

    ``joined`` is the protocol whose ports are read by its name. With ``after_any_protocol``, the
    test follows an :class:`AnyProtocol`, so the protocol that nft would otherwise imply must be written.
    """
    test = _as_nft_reads_it(test)
    check_test(test, family)
    if joined is not None and test.field in PORTS:
        return [PortOf(joined, test)]
    if after_any_protocol and test.field is Field.TCP_FLAGS:
        return [protocol_among((Protocol.TCP,)), test]
    if after_any_protocol and test.field in (Field.ICMP_TYPE, Field.ICMP_CODE):
        icmp = Protocol.ICMP if family is Family.IP else Protocol.ICMPV6
        return [protocol_among((icmp,)), TransportByte(test)]
    return [test]


def _as_nft_reads_it(test: FieldTest) -> FieldTest:
    """Return an equal test in a form that nft reads correctly."""
    if test.field is Field.CT_STATE and test.mask is None and test.negated:
        others = [
            s for s in ConnectionState if not any(s in v for v in test.values if isinstance(v, Interval))
        ]
        assert others, "a test of no state never holds, and is not written"
        return replace(test, values=tuple(map(Interval.point, others)), negated=False)
    if test.field is Field.FRAGMENT:  # a bit in the IR, an offset in the header
        later = any(1 in v for v in test.values if isinstance(v, Interval)) is not test.negated
        return replace(test, values=(Interval.point(0),), negated=later)
    if test.field in MONTHDAYS:
        return on_clock(test)
    if test.field.is_name:
        values = tuple(map(_interface, test.values))
        return test if values == test.values else replace(test, values=values)
    return test


def _interface(value: Value) -> Value:
    if isinstance(value, Name) and value.wildcard and len(value.text) >= _IFNAMSIZ - 1:
        return Name(value.text)
    return value


def _counts(test: Test) -> bool:
    """Return whether a test counts packets."""
    return isinstance(test, Nth)


def _is_port(test: Test) -> bool:
    return isinstance(test, FieldTest) and test.field in PORTS


def _is_ct_port(test: Test) -> bool:
    return isinstance(test, FieldTest) and test.field in CT_PORTS
