"""``-m icmp`` and ``-m icmp6``: type and code, by name or number."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from translate.ir import AnyOf, Family, Field, FieldTest, Interval, Protocol, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec, between
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["ICMP", "ICMP6"]

_ANY: Final = 255

_ICMP_TYPES: Final = MappingProxyType(
    {
        "any": (_ANY, None),
        "echo-reply": (0, None),
        "pong": (0, None),
        "destination-unreachable": (3, None),
        "network-unreachable": (3, 0),
        "host-unreachable": (3, 1),
        "protocol-unreachable": (3, 2),
        "port-unreachable": (3, 3),
        "fragmentation-needed": (3, 4),
        "source-route-failed": (3, 5),
        "network-unknown": (3, 6),
        "host-unknown": (3, 7),
        "network-prohibited": (3, 9),
        "host-prohibited": (3, 10),
        "tos-network-unreachable": (3, 11),
        "tos-host-unreachable": (3, 12),
        "communication-prohibited": (3, 13),
        "host-precedence-violation": (3, 14),
        "precedence-cutoff": (3, 15),
        "source-quench": (4, None),
        "redirect": (5, None),
        "network-redirect": (5, 0),
        "host-redirect": (5, 1),
        "tos-network-redirect": (5, 2),
        "tos-host-redirect": (5, 3),
        "echo-request": (8, None),
        "ping": (8, None),
        "router-advertisement": (9, None),
        "router-solicitation": (10, None),
        "time-exceeded": (11, None),
        "ttl-exceeded": (11, None),
        "ttl-zero-during-transit": (11, 0),
        "ttl-zero-during-reassembly": (11, 1),
        "parameter-problem": (12, None),
        "ip-header-bad": (12, 0),
        "required-option-missing": (12, 1),
        "timestamp-request": (13, None),
        "timestamp-reply": (14, None),
        "address-mask-request": (17, None),
        "address-mask-reply": (18, None),
    }
)
_ICMP6_TYPES: Final = MappingProxyType(
    {
        "destination-unreachable": (1, None),
        "no-route": (1, 0),
        "communication-prohibited": (1, 1),
        "beyond-scope": (1, 2),
        "address-unreachable": (1, 3),
        "port-unreachable": (1, 4),
        "failed-policy": (1, 5),
        "reject-route": (1, 6),
        "packet-too-big": (2, None),
        "time-exceeded": (3, None),
        "ttl-exceeded": (3, None),
        "ttl-zero-during-transit": (3, 0),
        "ttl-zero-during-reassembly": (3, 1),
        "parameter-problem": (4, None),
        "bad-header": (4, 0),
        "unknown-header-type": (4, 1),
        "unknown-option": (4, 2),
        "echo-request": (128, None),
        "ping": (128, None),
        "echo-reply": (129, None),
        "pong": (129, None),
        "router-solicitation": (133, None),
        "router-advertisement": (134, None),
        "neighbour-solicitation": (135, None),
        "neighbor-solicitation": (135, None),
        "neighbour-advertisement": (136, None),
        "neighbor-advertisement": (136, None),
        "redirect": (137, None),
    }
)


def _type_codes(
    text: str, names: Mapping[str, tuple[int, int | None]], *, option: int
) -> tuple[int, tuple[int, int] | None]:
    """Return type and codes of a name, of an unambiguous abbreviation, or of ``type[/code[:code]]``."""
    matching = [name for name in names if name.startswith(text.lower())]
    if len(matching) > 1:
        raise OptionError(
            f'ICMP type "{text}" is ambiguous', option=option, hint="it may be " + ", ".join(matching)
        )
    if matching:
        icmp_type, code = names[matching[0]]
        return icmp_type, None if code is None else (code, code)
    type_text, slash, code_text = text.partition("/")
    if not type_text[:1].isdigit():
        raise OptionError(f'unknown ICMP type "{text}"', option=option, hint='write "type/code" in numbers')
    low, high = _bytes(type_text, option=option, described="type", offset=0)
    if low != high:
        raise OptionError(f'"{type_text}" is more than one ICMP type', option=option)
    return low, _bytes(
        code_text, option=option, described="code", offset=len(type_text) + 1
    ) if slash else None


def _bytes(text: str, *, option: int, described: str, offset: int) -> tuple[int, int]:
    """Return the numbers of ``n`` or ``n:n``."""
    low_text, colon, high_text = text.partition(":")
    low = unsigned(low_text, 255)
    high = unsigned(high_text, 255) if colon else low
    if low is None or high is None:
        raise OptionError(f'"{text}" is not an ICMP {described}', option=option, offset=offset)
    return low, high


def _tests(
    icmp_type: int, codes: tuple[int, int] | None, context: Context, *, negated: bool
) -> tuple[Test, ...]:
    type_test = FieldTest(field=Field.ICMP_TYPE, values=(Interval.point(icmp_type),), negated=negated)
    if codes is None or codes == (0, 255):
        return (type_test,)
    code_test = between(Field.ICMP_CODE, *codes, negated=negated, family=context.family)
    if negated:
        # not (type and code): another type, or another code; both false of a later fragment
        return (AnyOf(tests=(type_test, code_test)),)
    return (type_test, code_test)


def _icmp(options: Options, context: Context) -> tuple[Test, ...]:
    context.require("icmp", Protocol.ICMP)
    index, option = options.need("--icmp-type", "icmp")
    icmp_type, codes = _type_codes(option.arguments[0], _ICMP_TYPES, option=index)
    if icmp_type == _ANY:  # any type and any code (icmp_type_code_match)
        return (FieldTest(field=Field.ICMP_TYPE, values=(Interval(0, 255),), negated=option.negated),)
    return _tests(icmp_type, codes, context, negated=option.negated)


def _icmp6(options: Options, context: Context) -> tuple[Test, ...]:
    context.require("icmp6", Protocol.ICMPV6)
    index, option = options.need("--icmpv6-type", "icmp6")
    icmp_type, codes = _type_codes(option.arguments[0], _ICMP6_TYPES, option=index)
    return _tests(icmp_type, codes, context, negated=option.negated)


ICMP: Final = MatchExtension(
    name="icmp",
    options=(OptionSpec(name="--icmp-type", invertible=True),),
    meaning=_icmp,
    family=Family.IP,
)
"""``-m icmp`` (``ip_tables.c``, ``icmp_match``)."""

ICMP6: Final = MatchExtension(
    name="icmp6",
    options=(OptionSpec(name="--icmpv6-type", invertible=True),),
    meaning=_icmp6,
    family=Family.IP6,
)
"""``-m icmp6`` (``ip6_tables.c``, ``icmp6_match``)."""
