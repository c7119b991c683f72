"""What nftables cannot say: raised deep in the emitter, collected per rule at its top."""

from __future__ import annotations

from typing import Final

from translate.errors import Refusal
from translate.ir import Origin

__all__ = ["BACKEND", "CannotSay"]

BACKEND: Final = "nftables"


class CannotSay(Exception):  # noqa: N818  # not an error by itself: becomes a Refusal with an origin
    """A test or an action without an exact nftables form; ``feature`` as in :class:`Refusal`."""

    def __init__(self, feature: str, reason: str) -> None:
        self.feature = feature
        self.reason = reason
        super().__init__(reason)

    def at(self, origin: Origin) -> Refusal:
        """Return the refusal of the rule at ``origin``."""
        return Refusal(origin, BACKEND, self.feature, self.reason)
