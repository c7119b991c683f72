"""``-m set``: membership of an ipset."""

from __future__ import annotations

from typing import Final

from translate.ir import SetDirection, SetTest, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["SET"]

_MOST_DIMENSIONS: Final = 6  # IPSET_DIM_MAX
_LONGEST_NAME: Final = 31  # IPSET_MAXNAMELEN, less its NUL
_COUNTED: Final = ("packets", "bytes")
_MOST: Final = (1 << 64) - 1


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
    return (
        SetTest(
            name=name,
            directions=tuple(directions),
            negated=option.negated,
            nomatch=options.has("--return-nomatch"),
            counters=_compares_counters(options),
        ),
    )


def _compares_counters(options: Options) -> bool:
    """Return whether the rule compares the counters of an element (``set_parse_v3``)."""
    compared: set[str] = set()
    for index, option in enumerate(options):
        what = option.name.removeprefix("--").partition("-")[0]
        if what not in _COUNTED:
            continue
        if what in compared:
            message = f"only one comparison of {what} is possible in a rule"
            raise OptionError(message, option=index, argument=0)
        compared.add(what)
        if unsigned(option.arguments[0], _MOST) is None:
            raise OptionError(f'"{option.arguments[0]}" is not a number', option=index)
    return bool(compared)


SET: Final = MatchExtension(
    name="set",
    options=(
        OptionSpec(name="--match-set", aliases=("--set",), arguments=2, invertible=True),
        OptionSpec(name="--return-nomatch", arguments=0, repeated=True),
        OptionSpec(name="--update-counters", arguments=0, invertible=True, repeated=True),
        OptionSpec(name="--update-subcounters", arguments=0, invertible=True, repeated=True),
        *(
            OptionSpec(name=f"--{what}-{how}", invertible=how == "eq")
            for what in _COUNTED
            for how in ("eq", "lt", "gt")
        ),
    ),
    meaning=_set,
)
"""``-m set`` (``xt_set``). Whether an element's counters are updated decides about no packet by itself."""
