"""Refusals: the exception that translations raise, and the features that all of them refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from translate.errors import Refusal
from translate.ir import Origin

__all__ = ["REFUSED_BY_ALL", "CannotTranslate"]

REFUSED_BY_ALL: Final = {
    "addrtype6": "`-m addrtype` over IPv6 with any type but `LOCAL`",
    "ah6": "`-m ah` over IPv6",
    "bridge-port": "`-m physdev` with any option but `--physdev-is-in`",
    "ipset": "`-m set` of a set whose members are not known",
    "mh-order": "`-m mh` after a test that counts, draws or keeps a state",
    "recent-mask": "`-m recent` with two masks for one list",
    "recent-reap": "`-m recent --reap` where other rules look for older addresses of the list",
    "recent-rttl": "`-m recent --rttl`",
    "reject-kind": "`-j REJECT` with an answer of the other family",
    "unknown": "a rule that the input shows only in part",
    "unmodelled": "a match, target or option that is not modelled (`-m string`): kept as written",
}
"""Descriptions of the features that every translation refuses, by the name in a Refusal."""


class CannotTranslate(Exception):  # noqa: N818  # caught inside of translations, never shown
    """A test or action without an exact form in a translation; it becomes a Refusal.

    ``backend`` is the translation's name in refusals, and ``refused`` describes the features it refuses.
    Raises KeyError for a feature that ``refused`` lacks.
    """

    backend: ClassVar[str]
    refused: ClassVar[Mapping[str, str]]

    def __init__(self, feature: str, reason: str) -> None:
        if feature not in self.refused:
            raise KeyError(feature)
        self.feature = feature
        self.reason = reason
        super().__init__(reason)

    def at(self, origin: Origin) -> Refusal:
        """Return the refusal of the rule at ``origin``."""
        return Refusal(origin, self.backend, self.feature, self.reason)
