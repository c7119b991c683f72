"""``-m cgroup``: the net_cls class of the process whose socket sent a packet."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Hook, Interval, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec, parse_mark
from translate.read.spelling.errors import OptionError

__all__ = ["CGROUP"]


def _cgroup(options: Options, _context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("cgroup needs --cgroup or --path")
    index, option = options.need("--cgroup", "cgroup")
    number = parse_mark(option.arguments[0], option=index)
    return (FieldTest(field=Field.SOCKET_CLASS, values=(Interval.point(number),), negated=option.negated),)


CGROUP: Final = MatchExtension(
    name="cgroup",
    options=(
        OptionSpec(name="--cgroup", invertible=True),
        OptionSpec(
            name="--path",
            invertible=True,
            refused="a path names a cgroup of the node, which nftables looks up when it loads the rule",
        ),
    ),
    meaning=_cgroup,
    hooks=frozenset({Hook.INPUT, Hook.OUTPUT, Hook.POSTROUTING}),
)
"""``-m cgroup`` (``cgroup_mt_v0``): false of a packet without a socket, negated or not."""
