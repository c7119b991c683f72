"""``-m set``: membership of an ipset; ``-j SET``: changes of an ipset."""

from __future__ import annotations

from typing import Final

from translate.ir import Hidden, Option, SetDirection, SetTest, SetUpdate, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    TargetExtension,
    parse_number,
)
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned

__all__ = ["SET", "SET_TARGET"]

_MOST_DIMENSIONS: Final = 6  # IPSET_DIM_MAX
_LONGEST_NAME: Final = 31  # IPSET_MAXNAMELEN, less its NUL
_COUNTED: Final = ("packets", "bytes")
_MOST: Final = (1 << 64) - 1
_LONGEST_OPTION: Final = (1 << 32) - 2
_LONGEST_TIMEOUT: Final = ((1 << 32) - 1 >> 1) // 1000  # IPSET_MAX_TIMEOUT


def _set(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--match-set", "set")
    name, directions = _named(index, option)
    return (
        SetTest(
            name=name,
            directions=directions,
            negated=option.negated,
            nomatch=options.has("--return-nomatch"),
            counters=_compares_counters(options),
        ),
    )


def _named(index: int, option: Option) -> tuple[str, tuple[SetDirection, ...]]:
    """Return the name of the set, and the sides of the packet that its dimensions are compared with."""
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
    return name, tuple(directions)


def _compares_counters(options: Options) -> bool:
    """Return whether the rule compares the counters of an element (``set_parse_v3``)."""
    compared: set[str] = set()
    for index, option in enumerate(options):
        counter = option.name.removeprefix("--").partition("-")[0]
        if counter not in _COUNTED:
            continue
        if counter in compared:
            message = f"only one comparison of {counter} is possible in a rule"
            raise OptionError(message, option=index, argument=0)
        compared.add(counter)
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


def _update(options: Options, _context: Context) -> tuple[Test, ...]:
    """Return the changes in the order of ``set_target``: it adds before it deletes."""
    addition = options.find("--add-set")
    for name in ("--exist", "--timeout"):
        flag = options.find(name)
        if flag is not None and addition is None:
            raise OptionError(f"{name} needs --add-set", option=flag[0], argument=0)
    timeout = options.find("--timeout")
    seconds = None
    if timeout is not None:
        index, option = timeout
        seconds = min(parse_number(option.arguments[0], _LONGEST_OPTION, option=index), _LONGEST_TIMEOUT)
    updates = []
    if addition is not None:
        name, directions = _named(*addition)
        refresh = options.has("--exist")
        updates.append(SetUpdate(name=name, directions=directions, refresh=refresh, timeout=seconds))
    if (deleted := options.find("--del-set")) is not None:
        name, directions = _named(*deleted)
        updates.append(SetUpdate(name=name, directions=directions, delete=True))
    if not updates:
        raise OptionError("SET needs --add-set, --del-set or --map-set")
    return tuple(updates)


_MAP: Final = "elements of a set in nftables and in the tc program have no mark, class and queue"

SET_TARGET: Final = TargetExtension(
    name="SET",
    options=(
        OptionSpec(name="--add-set", arguments=2),
        OptionSpec(name="--del-set", arguments=2),
        OptionSpec(name="--map-set", arguments=2, refused=_MAP, hides=Hidden.ACTION, kind="set-map"),
        OptionSpec(name="--exist", arguments=0, repeated=True),
        OptionSpec(name="--timeout"),
        *(
            OptionSpec(name=f"--map-{what}", arguments=0, refused=_MAP, hides=Hidden.ACTION, kind="set-map")
            for what in ("mark", "prio", "queue")
        ),
    ),
    meaning=_update,
)
"""``-j SET`` (``xt_set``)."""
