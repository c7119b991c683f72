"""Names of the chains and lists that ``template`` makes.

A name says which chain dispatches to it, what the chain does, and which shape it has: ``nat/KUBE-SERVICES 3
endpoints 70ab``, ``nat/KUBE-SERVICES endpoint 2 eb18``. It follows from the dispatcher and the shape alone,
so that it stays while other services come and go, and does not depend on lines. The four digits tell shapes
apart that do about the same (with and without a mark, say). A chain that stands for the second endpoint of
services with two and with three is one chain: hence no "of 3".

Names hold blanks, which no chain of x_tables has in its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2s

from translate.ir import Choose, Dnat
from translate.passes.copies import Copy

__all__ = ["Place", "chain_names", "dispatcher_label", "list_name"]

Place = tuple[str, tuple[int, ...]]
"""A shape and the path to it (which callee of which callee): the copies there become one chain."""

_DIGITS = 4


def dispatcher_label(chain: str, number: int) -> str:
    """Return the prefix of names below lookup ``number`` (from 0) of a chain that dispatches."""
    return chain if number == 0 else f"{chain}#{number + 1}"


def chain_names(label: str, copies: Mapping[Place, Copy]) -> dict[Place, str]:
    """Return the name of the chain for each place; ``copies`` has one copy for each."""
    names = {place: _name(label, place, copy, _DIGITS) for place, copy in copies.items()}
    uses = Counter(names.values())
    return {
        place: name if uses[name] == 1 else _name(label, place, copies[place], None)
        for place, name in names.items()
    }


def list_name(label: str, number: int, profile: tuple[str, ...]) -> str:
    """Return the name of a list of ``-m recent`` for many keys, the one ``number`` (from 0) of each.

    ``profile`` is what rules ask of it.
    """
    digest = blake2s(f"{label} {profile}".encode(), digest_size=_DIGITS // 2).hexdigest()
    return f"{label.rpartition('/')[2]} list {number + 1} {digest}"


def _name(label: str, place: Place, copy: Copy, digits: int | None) -> str:
    shape, path = place
    return " ".join((label, _words(copy), *(str(index + 1) for index in path), shape[:digits]))


def _words(copy: Copy) -> str:
    """Return words that describe a chain; they follow from its shape."""
    for part in copy.parts:
        if isinstance(part.statement, Choose):
            count = len(part.statement.branches)
            return f"{count} endpoints" if _translates(copy) else f"draw of {count}"
    if any(isinstance(action, Dnat) for part in copy.parts for row in part.rows for action in row.actions):
        return "endpoint"
    callees = list(copy.callees.values())
    if not callees:
        return "rules"
    below = _words(callees[-1])
    return "1 endpoint" if below == "endpoint" else below if below.startswith("to ") else f"to {below}"


def _translates(copy: Copy) -> bool:
    """Return whether a chain, or one that it calls, translates the destination."""
    return any(
        isinstance(action, Dnat) for part in copy.parts for row in part.rows for action in row.actions
    ) or any(map(_translates, copy.callees.values()))
