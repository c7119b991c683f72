"""Packets without a route, to which the kernel limits its answers.

The kernel answers five IPv4 packets of each source at once, and then one a second (``ip_error``), whatever
the rules are. A packet without a route is counted in any case. So if nothing came out, the first five errors
of a source were dropped by the rules; a later one may have been left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from backends.testbed.tapnode import Sighting
from translate.dataclass import dataclass, field

__all__ = ["LEFT_OUT_OR_DROPPED", "NO_ERROR", "UnroutedPackets"]

NO_ERROR: Final = (Sighting(b"", None, None),)
"""In place of sightings: the packet had no route, and the rules let no error out."""
LEFT_OUT_OR_DROPPED: Final = (Sighting(b"?", None, None),)
"""In place of sightings: the packet had no route, and the kernel may have left out the error."""
_ANSWERED: Final = 5
"""The number of errors for one source that are never left out (``ip_rt_error_burst``)."""


@dataclass(slots=True)
class UnroutedPackets:
    """The packets without a route of a session, by source."""

    _by_source: Counter[int] = field(default_factory=Counter)
    _total: int = 0
    _all_known: bool = True
    """False once packets of an unknown source had no route: runs made at once are not told apart."""

    def record(self, source: int, before: int, total: int) -> tuple[Sighting, ...]:
        """Record a packet without a route; return what stands for its sightings if nothing came out.

        ``before`` and ``total`` are the numbers of such packets before and after it.
        """
        self._all_known &= before == self._total
        self._total = total
        self._by_source[source] += 1
        certain = self._all_known and self._by_source[source] <= _ANSWERED
        return NO_ERROR if certain else LEFT_OUT_OR_DROPPED
