"""``-m recent``: lists of addresses that packets fill."""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Recent, RecentMode, SetDirection, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec, parse_mark
from translate.read.spelling.address import parse_resolved
from translate.read.spelling.errors import OptionError

__all__ = ["RECENT"]

_MODES: Final = {f"--{mode.value}": mode for mode in RecentMode}
_LONGEST_NAME: Final = 199  # XT_RECENT_NAME_LEN, less its NUL
_MOST_HITS: Final = 65535  # XT_RECENT_MAX_NSTAMPS - 1
_DEFAULT_NAME: Final = "DEFAULT"


def _seconds(options: Options) -> int | None:
    occurrence = options.find("--seconds")
    if occurrence is None:
        return None
    index, option = occurrence
    value = parse_mark(option.arguments[0], option=index)
    if value == 0:
        raise OptionError('"--seconds" must be at least 1', option=index)
    return value


def _hitcount(options: Options) -> int | None:
    """Return the required number of packets; None for 0, which requires none (``recent_mt``)."""
    occurrence = options.find("--hitcount")
    return (
        None if occurrence is None else parse_mark(occurrence[1].arguments[0], option=occurrence[0]) or None
    )


def _mask(options: Options, family: Family) -> int:
    occurrence = options.find("--mask")
    if occurrence is None:
        return (1 << family.bits) - 1
    index, option = occurrence
    return parse_resolved(family, option.arguments[0], option=index)


def _name(options: Options) -> str:
    occurrence = options.find("--name")
    if occurrence is None:
        return _DEFAULT_NAME
    index, option = occurrence
    text = option.arguments[0]
    if text in ("", ".", "..") or "/" in text:  # xt_check_proc_name
        raise OptionError(f'"{text}" cannot be the name of a list', option=index)
    return text.encode("utf-8", "surrogateescape")[:_LONGEST_NAME].decode("utf-8", "surrogateescape")


def _side(options: Options) -> SetDirection:
    """Return the side whose address is used: the last one given."""
    sides = [option.name for option in options if option.name in ("--rsource", "--rdest")]
    return SetDirection.DST if sides[-1:] == ["--rdest"] else SetDirection.SRC


def _recent(options: Options, context: Context) -> tuple[Test, ...]:
    modes = [(i, o) for i, o in enumerate(options) if o.name in _MODES]
    if len(modes) != 1:
        message = "recent needs one of --set, --rcheck, --update, --remove"
        raise OptionError(message, option=modes[1][0] if modes else None, argument=0)
    mode = _MODES[modes[0][1].name]
    test = Recent(
        name=_name(options),
        mode=mode,
        side=_side(options),
        mask=_mask(options, context.family),
        seconds=_seconds(options),
        hitcount=_hitcount(options),
        reap=options.has("--reap"),
        rttl=options.has("--rttl"),
        negated=modes[0][1].negated,
    )
    if test.reap and test.seconds is None:
        raise OptionError('"--reap" needs "--seconds"')
    if test.hitcount is not None and test.hitcount > _MOST_HITS:
        raise OptionError(f"--hitcount {test.hitcount} exceeds the kernel's limit of {_MOST_HITS}")
    checks = test.seconds is not None or test.hitcount is not None or test.rttl
    if checks and mode in (RecentMode.SET, RecentMode.REMOVE):
        raise OptionError(f"--seconds, --hitcount and --rttl cannot be used with --{mode.value}")
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
"""``-m recent``; ``recent_mt_check`` of ``xt_recent`` decides which options exclude each other."""
