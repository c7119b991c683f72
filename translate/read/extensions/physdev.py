"""``-m physdev``: whether a routed packet came in through a port of a bridge."""

from __future__ import annotations

from typing import Final

from translate.ir import Field, FieldTest, Interval, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec

__all__ = ["PHYSDEV"]

_PORTS: Final = "ports of a bridge are not modelled"
_BRIDGED: Final = "packets that a bridge forwards without routing are not modelled"


def _physdev(options: Options, context: Context) -> tuple[Test, ...]:
    _, option = options.need("--physdev-is-in", "physdev")
    return (FieldTest(field=Field.BRIDGED, values=(Interval.point(1),), negated=option.negated),)


PHYSDEV: Final = MatchExtension(
    name="physdev",
    options=(
        OptionSpec(name="--physdev-is-in", arguments=0, invertible=True),
        OptionSpec(name="--physdev-in", invertible=True, refused=_PORTS),
        OptionSpec(name="--physdev-out", invertible=True, refused=_PORTS),
        OptionSpec(name="--physdev-is-out", arguments=0, invertible=True, refused=_BRIDGED),
        OptionSpec(name="--physdev-is-bridged", arguments=0, invertible=True, refused=_BRIDGED),
    ),
    meaning=_physdev,
)
"""``-m physdev`` (``xt_physdev``)."""
