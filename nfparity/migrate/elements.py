"""Addresses of lists of ``-m recent`` as elements of the sets that replace the lists, and back.

The timeout of an element is ``--seconds`` minus the age of the last packet. A list with ``--hitcount``
becomes a ring of sets (``translate.nft.legalise.recent``): each set holds one of the last packets, the oldest
first, and the next packet replaces the oldest.

On the way back, only the order of the addresses is kept, because a list accepts no times. Each address gets
as many packets as still count, all with the present time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from nfparity.migrate.recentfiles import Jiffies, ListedAddress
from translate.errors import MachineError
from translate.nft import TABLE, NftList

__all__ = ["SetContents", "additions", "read_contents", "replacements", "returning"]

_BATCH: Final = 1000
"""Elements in one command."""

SetContents = Mapping[str, Mapping[tuple[str, ...], Mapping[str, int | None]]]
"""For each set, for each key after the address: the seconds left by address; None without a timeout."""

_Element = tuple[str, str]
"""The name of a set, and an element as text."""


def additions(
    family: str, lists: Iterable[NftList], clients: Mapping[str, Sequence[ListedAddress]], clock: Jiffies
) -> str:
    """Return the commands that add the addresses of each list, by its name.

    A set that is too small gets the youngest addresses.
    """
    return _commands("add", family, _elements(lists, clients, clock))


def replacements(
    family: str, lists: Sequence[NftList], clients: Mapping[str, Sequence[ListedAddress]], clock: Jiffies
) -> str:
    """Return the commands that give the sets these addresses, with the times of the lists.

    Other addresses are not changed; those without a time are removed. An element is added before it is
    deleted, because nft rejects the deletion of a missing element.
    """
    old = [
        (name, _key(known, client.address))
        for known in lists
        for client in clients.get(known.name, ())
        for name in known.names
    ]
    deleted = _commands("add", family, old) + _commands("delete", family, old)
    return deleted + _commands("add", family, _elements(lists, clients, clock))


def _commands(verb: str, family: str, elements: Iterable[_Element]) -> str:
    by_set: dict[str, list[str]] = {}
    for name, text in elements:
        by_set.setdefault(name, []).append(text)
    return "".join(
        f"{verb} element {family} {TABLE} {name} {{ {', '.join(texts[first : first + _BATCH])} }}\n"
        for name, texts in by_set.items()
        for first in range(0, len(texts), _BATCH)
    )


def _elements(
    lists: Iterable[NftList], clients: Mapping[str, Sequence[ListedAddress]], clock: Jiffies
) -> Iterator[_Element]:
    rooms: dict[str, int] = {}
    for known in lists:
        aged = [
            (sorted(map(clock.age, client.stamps)), client.address)
            for client in clients.get(known.name, ())
            if client.stamps
        ]
        aged.sort()
        for ages, address in aged:
            for name, text in _of_address(known, address, ages):
                room = rooms[name] = rooms.get(name, known.size) - 1
                if room >= 0:
                    yield name, text


def _of_address(known: NftList, address: str, ages: Sequence[float]) -> Iterator[_Element]:
    """Yield the elements of one address; ``ages`` are those of its packets in seconds, youngest first."""
    key = _key(known, address)
    for name, seconds in known.sets:
        if (text := _until(key, seconds, ages[0])) is not None:
            yield name, text
    for ring in known.rings:
        counted = [age for age in ages if ring.seconds is None or age < ring.seconds][: len(ring.times)]
        if not counted:
            continue
        turns = (*ring.turns[len(counted) % len(ring.turns) :], *ring.turns)
        for name, age in zip(ring.times, reversed(counted), strict=False):
            if (text := _until(key, ring.seconds, age)) is not None:
                yield name, text
        if (text := _until(key, ring.seconds, counted[0])) is not None:
            yield turns[0], text


def _key(known: NftList, address: str) -> str:
    return " . ".join((address, *known.key))


def _until(key: str, seconds: int | None, age: float) -> str | None:
    """Return an element with its remaining time, or None if the time is over."""
    if seconds is None:
        return key
    left = round((seconds - age) * 1000)
    return f"{key} expires {left // 1000}s{left % 1000}ms" if left > 0 else None


def read_contents(listing: str) -> SetContents:
    """Return the elements of all sets in an output of ``nft -j list table``. Raises MachineError."""
    contents: dict[str, dict[tuple[str, ...], dict[str, int | None]]] = {}
    try:
        for item in json.loads(listing)["nftables"]:
            if "set" not in item:
                continue
            keyed = contents.setdefault(item["set"]["name"], {})
            for element in item["set"].get("elem", ()):
                key, left = _parts(element)
                keyed.setdefault(key[1:], {})[key[0]] = left
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise MachineError(f"the output of nft -j list table is not a table: {e}") from e
    return contents


def _parts(element: Any) -> tuple[tuple[str, ...], int | None]:
    left = None
    if isinstance(element, dict) and "elem" in element:
        left = element["elem"].get("expires")
        element = element["elem"]["val"]
    parts = element["concat"] if isinstance(element, dict) and "concat" in element else [element]
    return tuple(map(str, parts)), left


def returning(known: NftList, contents: SetContents) -> tuple[tuple[str, int], ...]:
    """Return the addresses of a list with the numbers of their packets that count, the oldest first."""
    ages: dict[str, float] = {}
    packets: dict[str, int] = {}
    timed = [*known.sets, *((name, ring.seconds) for ring in known.rings for name in ring.times)]
    for name, seconds in timed:
        for address, left in contents.get(name, {}).get(known.key, {}).items():
            age = float("inf") if seconds is None or left is None else seconds - left
            ages[address] = min(age, ages.get(address, age))
            packets.setdefault(address, 1)
    for ring in known.rings:
        for address in ages:
            times = sum(address in contents.get(name, {}).get(known.key, {}) for name in ring.times)
            packets[address] = max(packets[address], times)
    return tuple((address, packets[address]) for address in sorted(ages, key=lambda a: -ages[a]))
