"""``-m recent``: lists of addresses that the packets themselves fill."""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Recent, RecentMode, SetDirection, Test, parse_address
from translate.read.declaration import (
    Context,
    Given,
    MatchExtension,
    OptionError,
    OptionSpec,
    parse_mark,
)

__all__ = ["RECENT"]

_MODES: Final = {f"--{mode.value}": mode for mode in RecentMode}
_LONGEST_NAME: Final = 199  # XT_RECENT_NAME_LEN, less its NUL
_MOST_HITS: Final = 65535  # XT_RECENT_MAX_NSTAMPS - 1
_DEFAULT_NAME: Final = "DEFAULT"


def _number(given: Given, name: str) -> int | None:
    found = given.find(name)
    if found is None:
        return None
    index, option = found
    value = parse_mark(option.arguments[0], option=index)
    if value == 0:
        raise OptionError(f'"{name}" must be at least 1', option=index)
    return value


def _mask(given: Given, family: Family) -> int:
    found = given.find("--mask")
    if found is None:
        return (1 << family.bits) - 1
    index, option = found
    try:
        return parse_address(family, option.arguments[0])
    except ValueError:
        raise OptionError(f'"{option.arguments[0]}" is not a mask', option=index) from None


def _name(given: Given) -> str:
    found = given.find("--name")
    if found is None:
        return _DEFAULT_NAME
    index, option = found
    name = option.arguments[0]
    if name in ("", ".", "..") or "/" in name or len(name) > _LONGEST_NAME:  # xt_check_proc_name
        raise OptionError(f'"{name}" cannot be the name of a list', option=index)
    return name


def _recent(given: Given, context: Context) -> tuple[Test, ...]:
    modes = [(i, o) for i, o in enumerate(given.options) if o.name in _MODES]
    if len(modes) != 1:
        message = "recent needs one of --set, --rcheck, --update, --remove"
        raise OptionError(message, option=modes[1][0] if modes else None, argument=0)
    mode = _MODES[modes[0][1].name]
    test = Recent(
        name=_name(given),
        mode=mode,
        side=SetDirection.DST if given.has("--rdest") else SetDirection.SRC,
        mask=_mask(given, context.family),
        seconds=_number(given, "--seconds"),
        hitcount=_number(given, "--hitcount"),
        reap=given.has("--reap"),
        rttl=given.has("--rttl"),
        negated=modes[0][1].negated,
    )
    if given.has("--rdest") and given.has("--rsource"):
        raise OptionError("recent takes --rsource or --rdest, not both")
    if test.reap and test.seconds is None:
        raise OptionError('"--reap" needs "--seconds"')
    if test.hitcount is not None and test.hitcount > _MOST_HITS:
        raise OptionError(f"--hitcount {test.hitcount} is over the kernel's {_MOST_HITS}")
    checks = test.seconds is not None or test.hitcount is not None or test.rttl
    if checks and mode in (RecentMode.SET, RecentMode.REMOVE):
        raise OptionError(f"--seconds, --hitcount and --rttl do not go with --{mode.value}")
    return (test,)


RECENT: Final = MatchExtension(
    name="recent",
    options=(
        *(OptionSpec(name=name, arguments=0, invertible=True) for name in _MODES),
        OptionSpec(name="--seconds"),
        OptionSpec(name="--reap", arguments=0),
        OptionSpec(name="--hitcount"),
        OptionSpec(name="--rttl", arguments=0),
        OptionSpec(name="--name"),
        OptionSpec(name="--mask"),
        OptionSpec(name="--rsource", arguments=0),
        OptionSpec(name="--rdest", arguments=0),
    ),
    meaning=_recent,
)
"""``-m recent``; what may go together is ``recent_mt_check`` (``xt_recent``)."""
