"""``-m socket``: whether a socket of the node takes the packet."""

from __future__ import annotations

from typing import Final

from translate.ir import Action, AnyOf, Field, FieldTest, Hook, Interval, RestoreSocketMark, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec

__all__ = ["SOCKET"]

_YES: Final = (Interval.point(1),)


def _socket(options: Options, _context: Context) -> tuple[Test, ...]:
    tests: list[Test] = [FieldTest(field=Field.TAKER, values=_YES)]
    if options.has("--transparent"):
        tests = [FieldTest(field=Field.TAKER_TRANSPARENT, values=_YES)]
    if not options.has("--nowildcard"):
        # also true of a request or time-wait socket, which lacks the field
        wildcard = FieldTest(field=Field.TAKER_WILDCARD, values=_YES)
        tests.append(AnyOf(tests=(wildcard,), negated=True))
    return tuple(tests)


def _restoring(options: Options) -> tuple[Action, ...]:
    return (RestoreSocketMark(),) if options.has("--restore-skmark") else ()


SOCKET: Final = MatchExtension(
    name="socket",
    options=(
        OptionSpec(name="--transparent", arguments=0),
        OptionSpec(name="--nowildcard", arguments=0),
        OptionSpec(name="--restore-skmark", arguments=0),
    ),
    meaning=_socket,
    hooks=frozenset({Hook.PREROUTING, Hook.INPUT}),
    effect=_restoring,
)
"""``-m socket`` (``socket_match``): without ``--nowildcard``, only a socket that is bound to an address."""
