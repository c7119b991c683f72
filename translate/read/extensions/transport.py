"""``-m tcp``, ``-m udp``, ``-m sctp`` and ``-m dccp``: ports and flags of the transport header.

All four matches are false of a later fragment, which has no such header (``tcp_mt``, ``udp_mt``, ``sctp_mt``,
``dccp_mt``), as are all tests of absent fields.
"""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Interval, Protocol, TcpFlag, Test
from translate.ir.intervals import union
from translate.read.extensions.chunks import chunk_tests
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    parse_number,
)
from translate.read.spelling.errors import OptionError
from translate.read.spelling.ports import parse_port_range, parse_resolved_range

__all__ = ["DCCP", "DCCP_NAMES", "SCTP", "TCP", "UDP"]

_PORT_OPTIONS: Final = (
    OptionSpec(name="--sport", aliases=("--source-port",), invertible=True),
    OptionSpec(name="--dport", aliases=("--destination-port",), invertible=True),
)
_ALL_FLAGS: Final = 0x3F
_FLAG_LISTS: Final = {
    **{flag.name: flag.value for flag in TcpFlag if flag & _ALL_FLAGS},
    "ALL": _ALL_FLAGS,
    "NONE": 0,
}
_MOST_KIND: Final = 255
_SYN_MASK: Final = TcpFlag.FIN | TcpFlag.SYN | TcpFlag.RST | TcpFlag.ACK


def _ports(options: Options, *, context: Context, resolved: bool = False) -> list[Test]:
    """Return the tests of the given ports; iptables-save omits a range with all ports."""
    tests: list[Test] = []
    for name, field in (("--sport", Field.SPORT), ("--dport", Field.DPORT)):
        occurrence = options.find(name)
        if occurrence is not None:
            index, option = occurrence
            text = option.arguments[0]
            ports = (parse_resolved_range if resolved else parse_port_range)(text, option=index)
            if (ports.low, ports.high) == (0, 65535) and not option.negated:
                continue
            test = between(field, ports.low, ports.high, negated=option.negated, family=context.family)
            tests.append(test)
    return tests


def _or_header(tests: list[Test], context: Context) -> tuple[Test, ...]:
    """Return the tests, or a test for the header if there are none, because the match requires it.

    In the nat table every packet has it.
    """
    if not tests and context.sees_fragments:
        tests.append(FieldTest(field=Field.SPORT, values=(Interval(0, 65535),)))
    return tuple(tests)


def _flags(text: str, *, option: int, argument: int) -> int:
    value = 0
    offset = 0
    for name in text.split(","):
        bits = _FLAG_LISTS.get(name.upper()) if name else 0  # strtok(3) skips empty words
        if bits is None:
            raise OptionError(
                f'unknown TCP flag "{name}"',
                option=option,
                argument=argument,
                offset=offset,
                hint="flags are SYN, ACK, FIN, RST, URG, PSH, ALL, NONE",
            )
        value |= bits
        offset += len(name) + 1
    return value


def _tcp(options: Options, context: Context) -> tuple[Test, ...]:
    context.require("tcp", Protocol.TCP)
    tests = _ports(options, context=context)
    flags = options.find("--tcp-flags")
    syn = options.find("--syn")
    if flags is not None and syn is not None:
        raise OptionError('"--syn" and "--tcp-flags" are the same test', option=syn[0], argument=0)
    if flags is not None:
        index, option = flags
        mask = _flags(option.arguments[0], option=index, argument=1)
        required = _flags(option.arguments[1], option=index, argument=2)
    elif syn is not None:
        option = syn[1]
        mask, required = int(_SYN_MASK), int(TcpFlag.SYN)
    else:
        return _or_header([*tests, *_kind(options)], context)
    if mask or required or option.negated:
        value = (Interval.point(required),)
        tests.append(FieldTest(field=Field.TCP_FLAGS, values=value, mask=mask, negated=option.negated))
    return _or_header([*tests, *_kind(options)], context)


def _kind(options: Options) -> tuple[FieldTest, ...]:
    """Return the test for an option of the segment (``tcp_find_option``)."""
    occurrence = options.find("--tcp-option")
    if occurrence is None:
        return ()
    index, option = occurrence
    kind = parse_number(option.arguments[0], _MOST_KIND, option=index)
    if not kind:
        raise OptionError('TCP options have kinds from 1 to 255, not "0"', option=index)
    bit = 1 << kind
    return (
        FieldTest(field=Field.TCP_OPTIONS, values=(Interval.point(bit),), mask=bit, negated=option.negated),
    )


def _udp(options: Options, context: Context) -> tuple[Test, ...]:
    context.require("udp", Protocol.UDP)
    return _or_header(_ports(options, context=context, resolved=True), context)


def _sctp(options: Options, context: Context) -> tuple[Test, ...]:
    context.require("sctp", Protocol.SCTP)
    tests = _ports(options, context=context)
    if (occurrence := options.find("--chunk-types")) is None:
        return _or_header(tests, context)
    index, option = occurrence
    return (*_or_header(tests, context), *chunk_tests(option, index=index))


DCCP_NAMES: Final = (
    *("REQUEST", "RESPONSE", "DATA", "ACK", "DATAACK", "CLOSEREQ", "CLOSE", "RESET", "SYNC", "SYNCACK"),
)
"""The types of packets of DCCP, in the order of their numbers (RFC 4340, 5.1)."""

_DCCP_TYPES: Final = {
    **{name: Interval.point(number) for number, name in enumerate(DCCP_NAMES)},
    "INVALID": Interval(10, 15),
}
"""The numbers of the packet types that each name stands for."""


def _dccp(options: Options, context: Context) -> tuple[Test, ...]:
    context.require("dccp", Protocol.DCCP)
    tests = _ports(options, context=context, resolved=True)
    if (occurrence := options.find("--dccp-types")) is not None:
        index, option = occurrence
        types = []
        for word in option.arguments[0].split(","):
            if word.upper() not in _DCCP_TYPES:
                at = option.arguments[0].index(word)
                raise OptionError(f'"{word}" is not a packet type of DCCP', option=index, offset=at)
            types.append(_DCCP_TYPES[word.upper()])
        tests.append(FieldTest(field=Field.DCCP_TYPE, values=union(types), negated=option.negated))
    if (occurrence := options.find("--dccp-option")) is not None:
        index, option = occurrence
        kind = parse_number(option.arguments[0], _MOST_KIND, option=index)
        if not kind:
            raise OptionError('options of DCCP are from 1 to 255 in iptables, not "0"', option=index)
        bit = 1 << kind
        values = (Interval.point(bit),)
        tests.append(FieldTest(field=Field.DCCP_OPTIONS, values=values, mask=bit, negated=option.negated))
    return _or_header(tests, context)


DCCP: Final = MatchExtension(
    name="dccp",
    options=(
        *_PORT_OPTIONS,
        OptionSpec(name="--dccp-types", invertible=True),
        OptionSpec(name="--dccp-option", invertible=True),
    ),
    meaning=_dccp,
)
"""``-m dccp``: ports, types and options (``xt_dccp``)."""

TCP: Final = MatchExtension(
    name="tcp",
    options=(
        *_PORT_OPTIONS,
        OptionSpec(name="--tcp-flags", arguments=2, invertible=True),
        OptionSpec(name="--syn", arguments=0, invertible=True),
        OptionSpec(name="--tcp-option", invertible=True),
    ),
    meaning=_tcp,
)
"""``-m tcp``: ports, flags and options (``xt_tcpudp``)."""

UDP: Final = MatchExtension(name="udp", options=_PORT_OPTIONS, meaning=_udp)
"""``-m udp``: ports (``xt_tcpudp``)."""

SCTP: Final = MatchExtension(
    name="sctp",
    options=(
        *_PORT_OPTIONS,
        OptionSpec(name="--chunk-types", arguments=2, invertible=True),
    ),
    meaning=_sctp,
)
"""``-m sctp``: ports and types of chunks (``xt_sctp``)."""
