"""``-m multiport``: a list of ports and port ranges."""

from __future__ import annotations

from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Interval, Protocol, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError
from translate.read.spelling.ports import parse_port

__all__ = ["MULTIPORT"]

_SLOTS: Final = 15  # XT_MULTI_PORTS; a range takes two


def _list(text: str, *, option: int) -> tuple[Interval, ...]:
    ports = []
    slots = 0
    offset = 0
    for part in text.split(","):
        low_text, colon, high_text = part.partition(":")
        if not low_text or (colon and not high_text):
            raise OptionError(f'"{part}" is not a port or a range', option=option, offset=offset)
        low = parse_port(low_text, option=option, offset=offset)
        high = parse_port(high_text, option=option, offset=offset + len(low_text) + 1) if colon else low
        if colon and low >= high:
            raise OptionError(
                f'port range "{part}" ends where it begins, or before', option=option, offset=offset
            )
        ports.append(Interval(low, high))
        slots += 2 if ":" in part else 1
        offset += len(part) + 1
    if slots > _SLOTS:
        raise OptionError(
            f"{slots} ports; the kernel takes at most {_SLOTS}", option=option, hint="a range counts twice"
        )
    return tuple(ports)


def _multiport(options: Options, context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("multiport needs --sports, --dports or --ports")
    context.require_before(
        "multiport", Protocol.TCP, Protocol.UDP, Protocol.UDPLITE, Protocol.SCTP, Protocol.DCCP
    )
    if len(options) > 1:
        raise OptionError("multiport takes one option", option=1, argument=0)
    option = options[0]
    values = _list(option.arguments[0], option=0)
    match option.name:
        case "--sports":
            return (_ports(Field.SPORT, values, negated=option.negated),)
        case "--dports":
            return (_ports(Field.DPORT, values, negated=option.negated),)
        case _ if option.negated:
            # neither port; two tests rather than a negated AnyOf, which would hold of a later
            # fragment, where multiport_mt is false
            return _ports(Field.SPORT, values, negated=True), _ports(Field.DPORT, values, negated=True)
        case _:
            return (AnyOf(tests=(_ports(Field.SPORT, values), _ports(Field.DPORT, values))),)


def _ports(field: Field, values: tuple[Interval, ...], *, negated: bool = False) -> FieldTest:
    return FieldTest(field=field, values=values, negated=negated, reads_ports=True)


MULTIPORT: Final = MatchExtension(
    name="multiport",
    options=(
        OptionSpec(name="--sports", aliases=("--source-ports",), invertible=True),
        OptionSpec(name="--dports", aliases=("--destination-ports",), invertible=True),
        OptionSpec(name="--ports", invertible=True),
    ),
    meaning=_multiport,
)
"""``-m multiport`` (``xt_multiport``)."""
