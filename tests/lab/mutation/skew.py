"""A fault of a given size: one branch of a random choice is taken too often.

The operator ``skew`` of the mutation table is coarse, so that few packets show it. This module makes small
ones, to measure the smallest skew that many packets show.
"""

from __future__ import annotations

import re
from typing import Final

from translate.errors import InputError
from translate.ir import RANDOM_RANGE

__all__ = ["skewed"]

_LADDER: Final = re.compile(r"(numgen random mod 2147483648 < )(\d+)")
_DRAWN: Final = re.compile(r"((?:drawn|>> 1\)) < )(0x[0-9a-f]+)")
_EQUAL: Final = re.compile(r"numgen random mod (\d+) vmap @(\S+)")
_FINE: Final = 10_000
"""The numbers per branch when a choice among few numbers is made uneven."""


def skewed(text: str, shift: float) -> str:
    """Return a translation (nft or C text) in which the first branch of the first choice gets more.

    Its share grows by ``shift`` of the whole, at the expense of the others. Raises InputError when the
    text draws nothing.
    """
    more = round(shift * RANDOM_RANGE)
    if match := _LADDER.search(text):
        return text[: match.start(2)] + str(int(match[2]) + more) + text[match.end(2) :]
    if match := _DRAWN.search(text):
        return text[: match.start(2)] + f"{int(match[2], 16) + more:#x}" + text[match.end(2) :]
    if match := _EQUAL.search(text):
        return _uneven(text, int(match[1]), match[2], shift)
    raise InputError("nothing is drawn here")


def _uneven(text: str, choices: int, name: str, shift: float) -> str:
    """Return the text with a draw among many numbers, of which the first branch gets more than its share."""
    numbers = choices * _FINE
    start = text.index(f"\tmap {name} {{")
    end = text.index("\n\t}\n", start)
    block = text[start:end].replace(f"mod {choices} :", f"mod {numbers} :")
    block = block.replace("\t\telements", "\t\tflags interval\n\t\telements", 1)
    edges = [0, _FINE + round(shift * numbers), *(_FINE * n for n in range(2, choices + 1))]

    def interval(match: re.Match[str]) -> str:
        branch = int(match[2])
        return f"{match[1]}{edges[branch]}-{edges[branch + 1] - 1}{match[3]}"

    block = re.sub(r"(?m)^(\t\t\t)(\d+)( |$)", interval, block)
    rest = text[end:].replace(
        f"numgen random mod {choices} vmap @{name}", f"numgen random mod {numbers} vmap @{name}"
    )
    return text[:start] + block + rest
