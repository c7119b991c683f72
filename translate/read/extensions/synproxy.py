"""``-j SYNPROXY``: TCP handshakes with the clients of a server, made in the server's place."""

from __future__ import annotations

from typing import Final

from translate.ir import Hook, Protocol, SynProxy
from translate.read.extensions.declaration import (
    Context,
    Options,
    OptionSpec,
    TargetExtension,
    parse_number,
)

__all__ = ["SYNPROXY"]

_MOST_MSS: Final = 0xFFFF
_MOST_SHIFT: Final = 14  # TCP_MAX_WSCALE


def _synproxy(options: Options, context: Context) -> SynProxy:
    context.require("SYNPROXY", Protocol.TCP)
    numbers: dict[str, int | None] = {}
    for name, most in (("mss", _MOST_MSS), ("wscale", _MOST_SHIFT)):
        option = options.find(f"--{name}")
        numbers[name] = (
            None if option is None else parse_number(option[1].arguments[0], most, option=option[0])
        )
    return SynProxy(
        mss=numbers["mss"],
        wscale=numbers["wscale"],
        sack_perm=options.has("--sack-perm"),
        timestamp=options.has("--timestamp"),
        ecn=options.has("--ecn"),
    )


SYNPROXY: Final = TargetExtension(
    name="SYNPROXY",
    options=(
        OptionSpec(name="--sack-perm", arguments=0),
        OptionSpec(name="--timestamp", arguments=0),
        OptionSpec(name="--wscale"),
        OptionSpec(name="--mss"),
        OptionSpec(name="--ecn", arguments=0),
    ),
    meaning=_synproxy,
    hooks=frozenset({Hook.INPUT, Hook.FORWARD}),
)
"""``-j SYNPROXY`` (``ipt_SYNPROXY``)."""
