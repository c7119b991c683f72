"""``-m set``: membership of an ipset."""

from __future__ import annotations

from typing import Final

from translate.ir import SetDirection, SetTest, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["SET"]

_MOST_DIMENSIONS: Final = 6  # IPSET_DIM_MAX
_LONGEST_NAME: Final = 31  # IPSET_MAXNAMELEN, less its NUL
_COUNTERS: Final = "counters of ipset entries are not modelled"


def _set(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--match-set", "set")
    name, sides = option.arguments
    if not name or len(name.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
        raise OptionError(f"a set's name has 1 to {_LONGEST_NAME} bytes", option=index)
    directions = []
    offset = 0
    for text in sides.split(","):
        side = next((d for d in SetDirection if text.startswith(d.value)), None)  # strncmp(…, 3)
        if side is None:
            raise OptionError(
                f'unknown direction "{text}"', option=index, argument=2, offset=offset, hint="src or dst"
            )
        directions.append(side)
        offset += len(text) + 1
    if len(directions) > _MOST_DIMENSIONS:
        raise OptionError(f"a set has at most {_MOST_DIMENSIONS} dimensions", option=index, argument=2)
    return (SetTest(name=name, directions=tuple(directions), negated=option.negated),)


SET: Final = MatchExtension(
    name="set",
    options=(
        OptionSpec(name="--match-set", aliases=("--set",), arguments=2, invertible=True),
        OptionSpec(name="--return-nomatch", arguments=0, refused='"nomatch" entries are not modelled'),
        OptionSpec(name="--update-counters", arguments=0, invertible=True, refused=_COUNTERS),
        OptionSpec(name="--update-subcounters", arguments=0, invertible=True, refused=_COUNTERS),
        *(
            OptionSpec(name=f"--{what}-{how}", invertible=how == "eq", refused=_COUNTERS)
            for what in ("packets", "bytes")
            for how in ("eq", "lt", "gt")
        ),
    ),
    meaning=_set,
)
"""``-m set`` (``xt_set``)."""
