"""``-m addrtype``: the type that the routing table gives to an address."""

from __future__ import annotations

from typing import Final

from translate.ir import AddressType, Family, Field, FieldTest, Interval, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec, first_named
from translate.read.spelling.errors import OptionError

__all__ = ["ADDRTYPE"]

_TYPES: Final = {kind.name: kind for kind in AddressType}
_FIELDS: Final = {
    ("--src-type", None): Field.FIB_SADDR_TYPE,
    ("--dst-type", None): Field.FIB_DADDR_TYPE,
    ("--src-type", "--limit-iface-in"): Field.FIB_SADDR_TYPE_IIF,
    ("--dst-type", "--limit-iface-in"): Field.FIB_DADDR_TYPE_IIF,
    ("--src-type", "--limit-iface-out"): Field.FIB_SADDR_TYPE_OIF,
    ("--dst-type", "--limit-iface-out"): Field.FIB_DADDR_TYPE_OIF,
}
_NOT_IN_IPV6: Final = frozenset(
    {
        *(AddressType.BROADCAST, AddressType.BLACKHOLE, AddressType.PROHIBIT, AddressType.THROW),
        *(AddressType.NAT, AddressType.XRESOLVE),
    }
)


def _types(text: str, *, option: int, family: Family) -> tuple[Interval, ...]:
    kinds = set()
    offset = 0
    for name in text.split(","):
        type_name = first_named(_TYPES, name) if name else None
        if type_name is None:
            raise OptionError(f'unknown address type "{name}"', option=option, offset=offset)
        address_type = _TYPES[type_name]
        if family is Family.IP6 and address_type in _NOT_IN_IPV6:
            raise OptionError(f"IPv6 has no address type {address_type.name}", option=option, offset=offset)
        kinds.add(address_type)
        offset += len(name) + 1
    return tuple(Interval.point(int(kind)) for kind in sorted(kinds))


def _addrtype(options: Options, context: Context) -> tuple[Test, ...]:
    limits = [o.name for o in options if o.name.startswith("--limit-iface")]
    if len(limits) > 1:
        raise OptionError("addrtype takes --limit-iface-in or --limit-iface-out, not both")
    limit = limits[0] if limits else None
    tests = []
    # xt_addrtype looks up the source before the destination, in any order of the options
    for name in ("--src-type", "--dst-type"):
        occurrence = options.find(name)
        if occurrence is None:
            continue
        index, option = occurrence
        values = _types(option.arguments[0], option=index, family=context.family)
        tests.append(FieldTest(field=_FIELDS[name, limit], values=values, negated=option.negated))
    if not tests:
        raise OptionError("addrtype needs --src-type or --dst-type")
    return tuple(tests)


ADDRTYPE: Final = MatchExtension(
    name="addrtype",
    options=(
        OptionSpec(name="--src-type", invertible=True),
        OptionSpec(name="--dst-type", invertible=True),
        OptionSpec(name="--limit-iface-in", arguments=0),
        OptionSpec(name="--limit-iface-out", arguments=0),
    ),
    meaning=_addrtype,
)
"""``-m addrtype`` (``xt_addrtype``)."""
