"""Names that every nft takes, for chains and maps, made from names that x_tables takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["MAX_NAME", "NameGiver"]

MAX_NAME: Final = 128
"""Longest name in bytes: half of what a kernel takes (``NFT_NAME_MAXLEN``), for readers."""

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_./-]")
_ROOM_FOR_SUFFIX: Final = 12


@dataclass(slots=True)
class NameGiver:
    """Gives out legal names, each once.

    x_tables takes any bytes but blanks, ``!`` and a leading ``-``; the scanner of nft 1.0.6 takes a
    letter and then letters, digits and ``/ - _ .`` (``string`` in ``scanner.l``), and reads keywords
    as such. A wanted name starts with the table's and an underscore, which no keyword has; other
    characters become underscores; what is taken then gets a number.
    """

    _taken: set[str] = field(default_factory=set)

    def give(self, wanted: str) -> str:
        """Return ``wanted``, or a name close to it; never the same twice."""
        plain = _FOREIGN.sub("_", wanted)[: MAX_NAME - _ROOM_FOR_SUFFIX]
        name, number = plain, 1
        while name in self._taken:
            number += 1
            name = f"{plain}_{number}"
        self._taken.add(name)
        return name
