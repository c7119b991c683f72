"""``-m connlabel``: labels of connections."""

from __future__ import annotations

from typing import Final

from translate.ir import ConnLabel, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import NotModelledError
from translate.read.spelling.numbers import unsigned

__all__ = ["CONNLABEL"]

_LAST: Final = 127  # XT_CONNLABEL_MAXBIT


def _connlabel(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--label", "connlabel")
    number = unsigned(option.arguments[0], _LAST)
    if number is None:
        # The number of a name is in connlabel.conf of the node.
        raise NotModelledError("the name of a label", option=index)
    return (ConnLabel(number=number, add=options.has("--set"), negated=option.negated),)


CONNLABEL: Final = MatchExtension(
    name="connlabel",
    options=(OptionSpec(name="--label", invertible=True), OptionSpec(name="--set", arguments=0)),
    meaning=_connlabel,
)
"""``-m connlabel`` (``xt_connlabel``)."""
