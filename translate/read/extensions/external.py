"""Effects outside of the packet filter: ``IDLETIMER``, ``LED`` and ``RATEEST``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from translate.ir import External, ExternalTarget
from translate.read.extensions.declaration import (
    Context,
    Options,
    OptionSpec,
    TargetExtension,
    parse_number,
)
from translate.read.spelling.errors import OptionError

__all__ = ["EXTERNAL"]

_MOST: Final = (1 << 32) - 1
_MOST_SECONDS: Final = ((1 << 31) - 1) // 1000 - 1
_LONGEST_LABEL: Final = 27  # MAX_IDLETIMER_LABEL_SIZE, less its NUL
_LONGEST_TRIGGER: Final = 17  # the rest of its 27 bytes is "netfilter-" and a NUL
_LONGEST_ESTIMATOR: Final = 15  # IFNAMSIZ, less its NUL
_TIME: Final = re.compile(r"\d+(?:\.\d*)?(?:s|sec|secs|ms|msec|msecs|us|usec|usecs)?")


def _named(options: Options, name: str, extension: str, most: int) -> str:
    index, option = options.need(name, extension)
    text = option.arguments[0]
    if not 0 < len(text.encode("utf-8", "surrogateescape")) <= most:
        raise OptionError(f"the value of {name} has 1 to {most} bytes", option=index)
    return text


def _idletimer(options: Options, _context: Context) -> None:
    index, option = options.need("--timeout", "IDLETIMER")
    if not 0 < parse_number(option.arguments[0], _MOST, option=index) <= _MOST_SECONDS:
        raise OptionError(f"the timeout is from 1 to {_MOST_SECONDS} seconds", option=index)
    _named(options, "--label", "IDLETIMER", _LONGEST_LABEL)


def _led(options: Options, _context: Context) -> None:
    _named(options, "--led-trigger-id", "LED", _LONGEST_TRIGGER)
    delay = options.find("--led-delay")
    if delay is not None and delay[1].arguments[0].lower() != "inf":
        parse_number(delay[1].arguments[0], _MOST, option=delay[0])


def _rateest(options: Options, _context: Context) -> None:
    _named(options, "--rateest-name", "RATEEST", _LONGEST_ESTIMATOR)
    for name in ("--rateest-interval", "--rateest-ewmalog"):
        index, option = options.need(name, "RATEEST")
        if not _TIME.fullmatch(option.arguments[0]):
            raise OptionError(f'"{option.arguments[0]}" is not a time', option=index, hint="such as 250ms")


def _extension(
    target: ExternalTarget,
    check: Callable[[Options, Context], None],
    specs: tuple[OptionSpec, ...],
) -> TargetExtension:
    def meaning(options: Options, context: Context) -> External:
        check(options, context)
        return External(target)

    return TargetExtension(
        name=target.value,
        options=specs,
        meaning=meaning,
    )


EXTERNAL: Final = (
    _extension(
        ExternalTarget.IDLETIMER,
        _idletimer,
        (
            OptionSpec(name="--timeout"),
            OptionSpec(name="--label"),
            OptionSpec(name="--alarm", arguments=0),
        ),
    ),
    _extension(
        ExternalTarget.LED,
        _led,
        (
            OptionSpec(name="--led-trigger-id"),
            OptionSpec(name="--led-delay"),
            OptionSpec(name="--led-always-blink", arguments=0),
        ),
    ),
    _extension(
        ExternalTarget.RATEEST,
        _rateest,
        (
            OptionSpec(name="--rateest-name"),
            OptionSpec(name="--rateest-interval"),
            OptionSpec(name="--rateest-ewmalog"),
        ),
    ),
)
"""The targets with such effects."""
