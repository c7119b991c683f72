"""``-m ecn`` and ``-j ECN``: congestion bits of the TCP header and of the IP header (RFC 3168)."""

from __future__ import annotations

from typing import Final

from translate.ir import (
    Family,
    Field,
    FieldTest,
    Hidden,
    Interval,
    Protocol,
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
"""In the order in which iptables-save prints the options."""


def _ecn(options: Options, context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("ecn needs one of its options", hint="for example --ecn-tcp-ece")
    tests: list[Test] = []
    for name, bit in _BITS.items():
        occurrence = options.find(name)
        if occurrence is not None:
            context.require(name, Protocol.TCP)
            tests.append(_bits(Field.TCP_FLAGS, bit, bit, negated=occurrence[1].negated))
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


def _ecn_target(options: Options, _context: Context) -> SetTos:
    index, option = options.need("--ecn-ip-ect", "ECN")
    return SetTos(parse_number(option.arguments[0], _IN_IP, option=index), _IN_IP)


_OF_TCP: Final = "nft 1.0.6 cannot change one TCP flag of a segment and keep the others"

ECN_TARGET: Final = TargetExtension(
    name="ECN",
    options=(
        *(
            OptionSpec(name=name, arguments=arguments, refused=_OF_TCP, hides=Hidden.EFFECT)
            for name, arguments in (("--ecn-tcp-remove", 0), ("--ecn-tcp-cwr", 1), ("--ecn-tcp-ece", 1))
        ),
        OptionSpec(name="--ecn-ip-ect"),
    ),
    meaning=_ecn_target,
    family=Family.IP,
    tables=frozenset({TableName.MANGLE}),
)
"""``-j ECN`` (``ecn_tg``)."""
