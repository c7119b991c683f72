"""``-m owner``: the process whose socket sent a packet."""

from __future__ import annotations

import re
from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Hook, Interval, Option, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["OWNER"]

_MOST: Final = 0xFFFFFFFE  # -1 is not a user
_FIELDS: Final = {
    "--uid-owner": (Field.SOCKET_UID, "user"),
    "--gid-owner": (Field.SOCKET_GID, "group"),
}


def _range(text: str, described: str, index: int) -> Interval:
    """Return the range of numbers (``owner_parse_range``)."""
    if text == "root":
        return Interval.point(0)
    first, *rest = re.split("[-:]", text, maxsplit=1)
    low = unsigned(first, _MOST)
    high = unsigned(rest[0], _MOST) if rest else low
    if low is None or high is None:
        hint = "names depend on the node; iptables-save prints the number"
        raise OptionError(
            f'"{text}" is neither the number of a {described} nor a range of them', option=index, hint=hint
        )
    if high < low:
        raise OptionError(f'range "{text}" ends before it begins', option=index)
    return Interval(low, high)


def _test(index: int, option: Option) -> Test:
    if option.name == "--socket-exists":
        return FieldTest(field=Field.SOCKET, values=(Interval.point(0 if option.negated else 1),))
    field, kind = _FIELDS[option.name]
    test = FieldTest(field=field, values=(_range(option.arguments[0], kind, index),))
    # Negated, it holds for a packet without an owner as well.
    return AnyOf(tests=(test,), negated=True) if option.negated else test


def _owner(options: Options, _context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("owner needs --uid-owner, --gid-owner or --socket-exists")
    return tuple(_test(index, option) for index, option in enumerate(options))


_OLD: Final = "the kernel has no such test since Linux 2.6.14"

OWNER: Final = MatchExtension(
    name="owner",
    options=(
        *(OptionSpec(name=name, invertible=True) for name in _FIELDS),
        OptionSpec(name="--socket-exists", arguments=0, invertible=True),
        OptionSpec(
            name="--suppl-groups",
            arguments=0,
            refused="nftables and tc see the group that opened a socket, but no supplementary groups",
            kind="supplementary-groups",
        ),
        *(
            OptionSpec(name=name, invertible=True, refused=_OLD, kind="owner-process", removed_in="2.6.14")
            for name in ("--pid-owner", "--sid-owner", "--cmd-owner")
        ),
    ),
    meaning=_owner,
    hooks=frozenset({Hook.OUTPUT, Hook.POSTROUTING}),
)
"""``-m owner`` (``owner_mt``).

A forwarded packet and a RST of REJECT have no socket. An ICMP error of the node has a socket without an
owner. For all of these, ``--uid-owner`` and ``--gid-owner`` are false, and negated they are true.
"""
