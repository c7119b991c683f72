"""``-m rpfilter``: whether there is a route back to the source, by the device that the packet came in on.

With ``--loose`` it may leave by any device. ``--accept-local`` also accepts the node's own addresses: over
IPv4 those of the device, unless the test is loose (``rpfilter_lookup_reverse``), over IPv6 all
(``rpfilter_lookup_reverse6``).
"""

from __future__ import annotations

from typing import Final

from translate.ir import AddressType, AnyOf, Family, Field, FieldTest, Hook, Interval, TableName, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["RPFILTER"]

_FIELDS: Final = {
    (False, False): Field.REVERSE_PATH,
    (False, True): Field.REVERSE_PATH_BY_MARK,
    (True, False): Field.REVERSE_ROUTE,
    (True, True): Field.REVERSE_ROUTE_BY_MARK,
}
"""The field that is tested, by ``--loose`` and ``--validmark``."""
_TABLES: Final = frozenset({TableName.RAW, TableName.MANGLE})


def _rpfilter(options: Options, context: Context) -> tuple[Test, ...]:
    if context.table not in _TABLES:
        raise OptionError(f"match rpfilter is not valid in table {context.table}", hint="only in mangle, raw")
    inverted, loose = options.has("--invert"), options.has("--loose")
    field = _FIELDS[loose, options.has("--validmark")]
    passing = [FieldTest(field=field, values=(Interval.point(1),), negated=inverted)]
    if options.has("--accept-local"):
        everywhere = loose or context.family is Family.IP6
        kind = Field.FIB_SADDR_TYPE if everywhere else Field.FIB_SADDR_TYPE_IIF
        passing.append(FieldTest(field=kind, values=(Interval.point(AddressType.LOCAL),), negated=inverted))
    if context.family is Family.IP6:
        passing.insert(0, FieldTest(field=Field.SADDR, values=(Interval.point(0),), negated=inverted))
    return tuple(passing) if inverted or len(passing) == 1 else (AnyOf(tests=tuple(passing)),)


RPFILTER: Final = MatchExtension(
    name="rpfilter",
    options=(
        OptionSpec(name="--validmark", arguments=0),
        OptionSpec(name="--invert", arguments=0),
        OptionSpec(name="--loose", arguments=0),
        OptionSpec(name="--accept-local", arguments=0),
    ),
    meaning=_rpfilter,
    hooks=frozenset({Hook.PREROUTING}),
)
"""``-m rpfilter``. Over IPv6 a packet from ``::`` passes, whatever the routes are (``ip6t_rpfilter``)."""
