"""``-m ecn`` and ``-j ECN``: congestion bits of the TCP header and of the IP header (RFC 3168)."""

from __future__ import annotations

from typing import Final

from translate.dataclass import replace
from translate.ir import (
    Family,
    Field,
    FieldTest,
    Hidden,
    Interval,
    Protocol,
    SetTcpFlags,
    SetTos,
    TableName,
    TcpFlag,
    Test,
)
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    TargetExtension,
    parse_number,
)
from translate.read.spelling.errors import OptionError

__all__ = ["ECN_MATCH", "ECN_TARGET"]

_IN_IP: Final = 0x03
"""The bits of the TOS that are not DSCP (``XT_ECN_IP_MASK``)."""
_BITS: Final = {"--ecn-tcp-ece": TcpFlag.ECE, "--ecn-tcp-cwr": TcpFlag.CWR}
"""The TCP flag that each option tests, in the order in which iptables-save prints the options."""


def _ecn(options: Options, context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("ecn needs one of its options", hint="for example --ecn-tcp-ece")
    tests: list[Test] = []
    for name, bit in _BITS.items():
        occurrence = options.find(name)
        if occurrence is not None:
            context.require(name, Protocol.TCP)
            bits = _bits(Field.TCP_FLAGS, bit, bit, negated=occurrence[1].negated)
            tests.append(replace(bits, reads_data=True))
    if (occurrence := options.find("--ecn-ip-ect")) is not None:
        index, option = occurrence
        value = parse_number(option.arguments[0], _IN_IP, option=index)
        tests.append(_bits(Field.TOS, value, _IN_IP, negated=option.negated))
    return tuple(tests)


def _bits(field: Field, value: int, mask: int, *, negated: bool) -> FieldTest:
    return FieldTest(field=field, values=(Interval.point(value),), mask=mask, negated=negated)


ECN_MATCH: Final = MatchExtension(
    name="ecn",
    options=(
        *(OptionSpec(name=name, arguments=0, invertible=True) for name in _BITS),
        OptionSpec(name="--ecn-ip-ect", invertible=True),
    ),
    meaning=_ecn,
)
"""``-m ecn`` (``xt_ecn``); the bits of TCP need ``-p tcp`` (``ecn_mt_check4``)."""


def _ecn_target(options: Options, context: Context) -> SetTos | SetTcpFlags:
    if not options:
        raise OptionError("ECN needs one of its options", hint="for example --ecn-tcp-remove")
    value = mask = 0
    for index, option in enumerate(options):
        if option.name == _REMOVE and len(options) > 1 and options.has(_OTHER[0]) | options.has(_OTHER[1]):
            raise OptionError(f'"{_REMOVE}" sets the same bits as another option', option=index, argument=0)
        if option.name == _REMOVE:
            mask = TcpFlag.ECE | TcpFlag.CWR
        elif option.name != _OF_IP:
            bit = _BITS[option.name]
            mask |= bit
            value |= bit * parse_number(option.arguments[0], 1, option=index)
    if (occurrence := options.find(_OF_IP)) is None:
        context.require("a change of a segment", Protocol.TCP)
        return SetTcpFlags(int(value), int(mask))
    index, option = occurrence
    return SetTos(parse_number(option.arguments[0], _IN_IP, option=index), _IN_IP)


_OF_IP: Final = "--ecn-ip-ect"
_REMOVE: Final = "--ecn-tcp-remove"
_OTHER: Final = ("--ecn-tcp-cwr", "--ecn-tcp-ece")

ECN_TARGET: Final = TargetExtension(
    name="ECN",
    options=(
        OptionSpec(name=_REMOVE, arguments=0),
        *(OptionSpec(name=name) for name in _OTHER),
        OptionSpec(name=_OF_IP),
    ),
    meaning=_ecn_target,
    hides=Hidden.EFFECT,
    alone=_OF_IP,
    family=Family.IP,
    tables=frozenset({TableName.MANGLE}),
)
"""``-j ECN`` (``ecn_tg``)."""
