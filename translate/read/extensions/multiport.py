"""``-m multiport``: a list of ports and port ranges."""

from __future__ import annotations

from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Interval, Protocol, Test
from translate.read.declaration import Context, Given, MatchExtension, OptionError, OptionSpec
from translate.read.ports import parse_port_range

__all__ = ["MULTIPORT"]

_SLOTS: Final = 15  # XT_MULTI_PORTS; a range takes two


def _list(text: str, *, option: int) -> tuple[Interval, ...]:
    ports = []
    slots = 0
    offset = 0
    for part in text.split(","):
        if not part or part == ":" or part[0] == ":" or part[-1] == ":":
            raise OptionError(f'"{part}" is not a port or a range', option=option, offset=offset)
        ports.append(parse_port_range(part, option=option, offset=offset))
        slots += 2 if ":" in part else 1
        offset += len(part) + 1
    if slots > _SLOTS:
        raise OptionError(
            f"{slots} ports are over the kernel's {_SLOTS}", option=option, hint="a range counts twice"
        )
    return tuple(ports)


def _multiport(given: Given, context: Context) -> tuple[Test, ...]:
    context.require("multiport", Protocol.TCP, Protocol.UDP, Protocol.UDPLITE, Protocol.SCTP, Protocol.DCCP)
    if not given.options:
        raise OptionError("multiport needs --sports, --dports or --ports")
    if len(given.options) > 1:
        raise OptionError("multiport takes one option", option=1, argument=0)
    option = given.options[0]
    values = _list(option.arguments[0], option=0)
    match option.name:
        case "--sports":
            return (FieldTest(field=Field.SPORT, values=values, negated=option.negated),)
        case "--dports":
            return (FieldTest(field=Field.DPORT, values=values, negated=option.negated),)
        case _ if option.negated:
            # neither port; two tests rather than a negated AnyOf, which would hold of a later
            # fragment, where multiport_mt is false
            return (
                FieldTest(field=Field.SPORT, values=values, negated=True),
                FieldTest(field=Field.DPORT, values=values, negated=True),
            )
        case _:
            either = (
                FieldTest(field=Field.SPORT, values=values),
                FieldTest(field=Field.DPORT, values=values),
            )
            return (AnyOf(tests=either),)


MULTIPORT: Final = MatchExtension(
    name="multiport",
    options=(
        OptionSpec(name="--sports", aliases=("--source-ports", "--sport", "--source-port"), invertible=True),
        OptionSpec(
            name="--dports", aliases=("--destination-ports", "--dport", "--destination-port"), invertible=True
        ),
        OptionSpec(name="--ports", aliases=("--port",), invertible=True),
    ),
    meaning=_multiport,
)
"""``-m multiport`` (``xt_multiport``)."""
