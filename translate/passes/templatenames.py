"""Names of the chains and lists that ``template`` makes.

A name has the dispatching chain, a description of the chain, and a digest of its shape: ``nat/KUBE-SERVICES 3
endpoints 70ab``, ``nat/KUBE-SERVICES endpoint 2 eb18``. It depends only on the dispatcher and the shape, so
it does not change when other services or lines do. The digest distinguishes shapes with the same description
(with and without a mark, for example). One chain is the second endpoint of services with two and with three
endpoints, so names do not have "of 3".

Names contain spaces, which names of x_tables chains cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2s

from translate.ir import Choose, Dnat
from translate.passes.copies import Copy

__all__ = ["Place", "chain_names", "dispatcher_label", "list_name"]

Place = tuple[str, tuple[int, ...]]
"""A shape and the path to it (the number of the callee at each call); the copies there become one chain."""

_DIGITS = 4


def dispatcher_label(chain: str, number: int) -> str:
    """Return the prefix of names below lookup ``number`` (from 0) of a chain that dispatches."""
    return chain if number == 0 else f"{chain}#{number + 1}"


def chain_names(label: str, copies: Mapping[Place, Copy]) -> dict[Place, str]:
    """Return the name of the chain for each place; ``copies`` has one copy for each place."""
    names = {place: _name(label, place, copy, _DIGITS) for place, copy in copies.items()}
    uses = Counter(names.values())
    return {
        place: name if uses[name] == 1 else _name(label, place, copies[place], None)
        for place, name in names.items()
    }


def list_name(label: str, number: int, profile: tuple[str, ...]) -> str:
    """Return the name of a list of ``-m recent`` that replaces list ``number`` (from 0) of many keys.

    ``profile`` is its use by rules.
    """
    digest = blake2s(f"{label} {profile}".encode(), digest_size=_DIGITS // 2).hexdigest()
    return f"{label.rpartition('/')[2]} list {number + 1} {digest}"


def _name(label: str, place: Place, copy: Copy, digits: int | None) -> str:
    shape, path = place
    return " ".join((label, _words(copy), *(str(index + 1) for index in path), shape[:digits]))


def _words(copy: Copy) -> str:
    """Return words that describe a chain, given its shape."""
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
