"""Names of chains and maps that every nft accepts, made from names that x_tables accepts."""

from __future__ import annotations

import re
from typing import Final

from translate.dataclass import dataclass, field

__all__ = ["MAX_NAME", "NameGiver"]

MAX_NAME: Final = 128
"""The longest name in bytes: half of the kernel's limit (``NFT_NAME_MAXLEN``), for readability."""

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_./-]")
_ROOM_FOR_SUFFIX: Final = 12


@dataclass(slots=True)
class NameGiver:
    """Makes legal names and gives each name only once.

    x_tables accepts any bytes except blanks, ``!`` and a leading ``-``. The scanner of nft 1.0.6 accepts a
    letter and then letters, digits and ``/ - _ .`` (``string`` in ``scanner.l``), and does not accept
    keywords. A name begins with the table's name and an underscore, so that it is not a keyword; other
    characters become underscores; a name that is already in use gets a number.
    """

    _taken: set[str] = field(default_factory=set)

    def give(self, wanted: str) -> str:
        """Return ``wanted``, or a similar name if it is in use; every call returns a new name."""
        plain = _FOREIGN.sub("_", wanted)[: MAX_NAME - _ROOM_FOR_SUFFIX]
        name, number = plain, 1
        while name in self._taken:
            number += 1
            name = f"{plain}_{number}"
        self._taken.add(name)
        return name
