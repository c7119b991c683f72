"""``-m rpfilter``: whether the route back to the source leaves by the device that the packet came in on."""

from __future__ import annotations

from typing import Final

from translate.ir import AnyOf, Family, Field, FieldTest, Hook, Interval, TableName, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["RPFILTER"]

_TABLES: Final = frozenset({TableName.RAW, TableName.MANGLE})


def _rpfilter(options: Options, context: Context) -> tuple[Test, ...]:
    if context.table not in _TABLES:
        raise OptionError(f"match rpfilter is not valid in table {context.table}", hint="only in mangle, raw")
    field = Field.REVERSE_PATH_BY_MARK if options.has("--validmark") else Field.REVERSE_PATH
    back = FieldTest(field=field, values=(Interval.point(1),), negated=options.has("--invert"))
    if context.family is Family.IP:
        return (back,)
    nobody = FieldTest(field=Field.SADDR, values=(Interval.point(0),), negated=back.negated)
    return (nobody, back) if back.negated else (AnyOf(tests=(nobody, back)),)


RPFILTER: Final = MatchExtension(
    name="rpfilter",
    options=(
        OptionSpec(name="--validmark", arguments=0),
        OptionSpec(name="--invert", arguments=0),
        OptionSpec(name="--loose", arguments=0, refused="a route back by any device is not modelled"),
        OptionSpec(name="--accept-local", arguments=0, refused="accepted local sources are not modelled"),
    ),
    meaning=_rpfilter,
    hooks=frozenset({Hook.PREROUTING}),
)
"""``-m rpfilter``. Over IPv6 a packet from ``::`` passes, whatever the routes are (``ip6t_rpfilter``)."""
