"""Stems of chain names: programs that write many chains of one kind give them hashes or numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["Stems", "stem"]

_PARTS: Final = re.compile(r"[^-_.]+|[-_.]")
_NUMBER: Final = re.compile(r"[0-9]+$")
_LONG: Final = 14
"""The least length of a hash without a digit: it has letters of both cases, or is kube-proxy's (base 32)."""
_KUBE_HASH: Final = 16


def stem(name: str) -> str:
    """Return the name with ``*`` for its hashes and numbers: ``KUBE-SEP-*``, ``cali-fw-*``, ``zone*``."""
    first, *rest = _PARTS.findall(name) or [name]
    made = _NUMBER.sub("*", first)
    for part in rest:
        made += "*" if _is_variable(part) else part
    return re.sub(r"\*([-_.]?\*)+", "*", made)


class Stems:
    """Names grouped by stem, from which texts about all of the names but a few are made."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_stem: dict[str, set[str]] = {}
        for name in names:
            self._by_stem.setdefault(stem(name), set()).add(name)

    def text(self, *, without: Iterable[str] = ()) -> str:
        """Return the names in short: one as it is, several of a stem with their number, the most first."""
        out: dict[str, set[str]] = {}
        for name in without:
            out.setdefault(stem(name), set()).add(name)
        left = [
            (each, len(names - out[each]) if each in out else len(names))
            for each, names in self._by_stem.items()
        ]
        left.sort(key=lambda pair: (-pair[1], pair[0]))
        return ", ".join(
            f"{count} {each}" if count > 1 else "".join(self._by_stem[each] - out.get(each, set()))
            for each, count in left
            if count
        )


def _is_variable(part: str) -> bool:
    if any(letter.isdigit() for letter in part):
        return True
    if len(part) == _KUBE_HASH and part.isalpha() and part.isupper():
        return True
    return len(part) >= _LONG and not (part.islower() or part.isupper())
