"""``-m cgroup``: the cgroup of the process whose socket sent a packet, by its net_cls class or its path."""

from __future__ import annotations

from typing import Final

from translate.dataclass import replace
from translate.ir import CgroupTest, Field, FieldTest, Hook, Interval, Option, Test
from translate.read.extensions.declaration import (
    MARK_BITS,
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_mark,
)
from translate.read.spelling.errors import OptionError

__all__ = ["CGROUP"]


def _cgroup(options: Options, _context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("cgroup needs --cgroup or --path")
    path = options.find("--path")
    if path is not None:
        if options.has("--cgroup"):
            raise OptionError("--cgroup and --path exclude each other", option=path[0])
        return _path(*path)
    index, option = options.need("--cgroup", "cgroup")
    number = parse_mark(option.arguments[0], option=index)
    return (FieldTest(field=Field.SOCKET_CLASS, values=(Interval.point(number),), negated=option.negated),)


_LONGEST: Final = 4095  # PATH_MAX, with its NUL
_HAS_SOCKET: Final = FieldTest(field=Field.SOCKET_CLASS, values=(Interval(0, MARK_BITS),))


def _path(index: int, option: Option) -> tuple[Test, ...]:
    text = option.arguments[0]
    if len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
        raise OptionError("a path has at most 4,095 bytes", option=index)
    path = "/".join(name for name in text.split("/") if name)
    if path:
        return _HAS_SOCKET, CgroupTest(path=path, negated=option.negated)
    return (replace(_HAS_SOCKET, negated=option.negated),)  # all cgroups are below the first


CGROUP: Final = MatchExtension(
    name="cgroup",
    options=(
        OptionSpec(name="--cgroup", invertible=True),
        OptionSpec(name="--path", invertible=True),
    ),
    meaning=_cgroup,
    hooks=frozenset({Hook.INPUT, Hook.OUTPUT, Hook.POSTROUTING}),
)
"""``-m cgroup`` (``cgroup_mt_v0``): false of a packet without a socket, negated or not."""
