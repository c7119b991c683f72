"""``-m physdev``: the ports of a bridge through which a packet comes in and goes out."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Interval, Name, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["PHYSDEV"]

_LONGEST: Final = 15
_FIELDS: Final = {
    "--physdev-is-in": Field.BRIDGED,
    "--physdev-is-out": Field.BRIDGED_ON,
    "--physdev-is-bridged": Field.BRIDGED_ON,
    "--physdev-in": Field.BRIDGE_PORT_IN,
    "--physdev-out": Field.BRIDGE_PORT_OUT,
}


def _physdev(options: Options, context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("physdev needs one of its options", hint="for example --physdev-is-in")
    tests: list[Test] = []
    for index, option in enumerate(options):
        field = _FIELDS[option.name]
        if option.arguments:
            tests.append(_port(field, option.arguments[0], option=index, negated=option.negated))
        else:
            tests.append(FieldTest(field=field, values=(Interval.point(1),), negated=option.negated))
    return tuple(tests)


def _port(field: Field, text: str, *, option: int, negated: bool) -> FieldTest:
    """Return the test of a port's name (``physdev_mt``).

    ``+`` and an empty name match every port, but not a packet without a port.
    """
    if len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
        raise OptionError(f'interface name "{text}" has more than {_LONGEST} bytes', option=option)
    if text in ("", "+"):
        return FieldTest(field=field, values=(Name(""),), negated=not negated)
    name = Name(text[:-1], wildcard=True) if text.endswith("+") else Name(text)
    return FieldTest(field=field, values=(name,), negated=negated)


PHYSDEV: Final = MatchExtension(
    name="physdev",
    options=(
        *(
            OptionSpec(name=name, arguments=0, invertible=True)
            for name in ("--physdev-is-in", "--physdev-is-out", "--physdev-is-bridged")
        ),
        *(OptionSpec(name=name, invertible=True) for name in ("--physdev-in", "--physdev-out")),
    ),
    meaning=_physdev,
)
"""``-m physdev`` (``xt_physdev``): a packet is bridged exactly if it goes out through a port."""
