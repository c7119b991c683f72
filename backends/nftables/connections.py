"""Rules of nft that set the zones or the source ports of connections, recognized in their text.

A comment with the words of a statement counts, too: then connections are only forgotten more often.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["gives_source_ports", "sets_zones"]

_ZONE: Final = " zone set "
_MASQUERADE: Final = "masquerade to "
_SNAT: Final = re.compile(r"snat [^\n]*?(?:\. port|:[0-9]| map )")
"""A source NAT with a port, or with a map that may have ports. Patterns with a literal first are fast."""


def sets_zones(text: str) -> bool:
    """Return whether rules put connections into zones of conntrack."""
    return _ZONE in text


def gives_source_ports(text: str) -> bool:
    """Return whether rules give source ports to connections."""
    return _MASQUERADE in text or _SNAT.search(text) is not None
