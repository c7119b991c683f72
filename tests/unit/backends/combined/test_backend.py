"""Several loaders on one node: what all of them together have observed."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import pytest

from backends.combined.backend import CombinedLoader
from backends.replay.loader import Loader, Watched
from backends.testbed.tapnode import TapNode

SETTLED = Watched(settled=True)
NO_NODE = cast(TapNode, None)


class _Rules(Loader):
    """Rules that are watched if there is something to observe."""

    def __init__(self, observed: Watched | None, *, chance: bool = False) -> None:
        self.watches = observed is not None
        self.chance = chance
        self._observed = observed or Watched()

    def load(self, tap: TapNode) -> None:
        """Load nothing."""

    def watched(self) -> Watched:
        return self._observed


@pytest.mark.parametrize(
    ("loaders", "settled"),
    [
        ([_Rules(SETTLED)], True),
        ([_Rules(SETTLED), _Rules(None)], True),
        ([_Rules(SETTLED), _Rules(None, chance=True)], False),
        ([_Rules(SETTLED, chance=True), _Rules(SETTLED, chance=True)], True),
        ([_Rules(SETTLED), _Rules(Watched(Fraction(1, 3)))], False),
    ],
    ids=["alone", "beside plain rules", "beside random rules", "both traced", "one chooses"],
)
def test_an_outcome_is_settled_if_no_rules_choose(loaders: list[_Rules], settled: bool) -> None:
    combined = CombinedLoader(*loaders)
    combined.load(NO_NODE)
    assert combined.watched().settled is settled
