"""Tables of ``-m hashlimit`` as sets with a limit for each element.

An element begins with a full bucket. Like an entry of the kernel's table, it expires when no packet has used
it for some time. The kernel removes expired entries once per ``--hashlimit-htable-gcinterval`` (default: one
second), so it may remember a bucket longer by that time.

An element keeps the limit of the rule that created it (``nft_dynset_new``). So all rules of one table must
have the same limit. ``th dport`` does not match a packet without ports, but xt_hashlimit counts such a packet
under port 0. So a rule with ports in its key must test for a protocol with ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from translate.ir import PORT_PROTOCOLS, Family, Field, HashLimit, Origin, Test
from translate.nft.legal import FilledSet, Key, Masked, TakenInSet
from translate.nft.legalise.headers import PORTS, transports
from translate.nft.legalise.rates import rate_of
from translate.nft.limits.refusal import CannotSay
from translate.nft.names import NameGiver

__all__ = ["hash_sets", "taken"]

_SIZE: Final = 65535
_MILLISECONDS: Final = 1000


def hash_sets(tables: Mapping[str, tuple[HashLimit, Origin]], names: NameGiver) -> dict[str, FilledSet]:
    """Return the sets of the tables, by the table's name."""
    return {
        name: FilledSet(
            name=names.give(f"hashlimit_{name}"),
            key=test.key or (Field.SADDR,),
            size=test.size or _SIZE,
            timeout=-(-test.expire // _MILLISECONDS),
            note=f"hashlimit {name}" + (f", line {origin.line}" if origin.line else ""),
        )
        for name, (test, origin) in tables.items()
    }


def taken(test: HashLimit, first: HashLimit, name: str, tests: Sequence[Test], family: Family) -> TakenInSet:
    """Return nft's match for ``test`` in a rule with ``tests``. Raises CannotSay."""
    if test.window:
        raise CannotSay("hashlimit-window", "nf_tables has token buckets, and no rate averaged over a window")
    if test != first:
        reason = (
            f"another rule named {test.name} has a different limit, but an element of an nft set has only one"
        )
        raise CannotSay("hashlimit-shared", reason)
    if test.expire % _MILLISECONDS:
        raise CannotSay("hashlimit-expire", "elements of an nft set expire after whole seconds")
    protocols = transports(tests)
    if PORTS.intersection(test.key) and not (protocols and set(protocols) <= PORT_PROTOCOLS):
        reason = "xt_hashlimit counts packets without ports under port 0; test for a protocol with ports"
        raise CannotSay("hashlimit-ports", reason)
    rate, unit = rate_of(test.interval)
    return TakenInSet(name, _key(test, family), rate=rate, unit=unit, burst=test.burst, above=test.above)


def _key(test: HashLimit, family: Family) -> Key:
    """Return the key of the buckets. Without a mode all packets share one bucket, under address 0."""
    masks = {Field.SADDR: test.source_mask, Field.DADDR: test.destination_mask}
    whole = (1 << family.bits) - 1
    if not test.key:
        return (Masked(Field.SADDR, 0),)
    return tuple(f if masks.get(f, whole) == whole else Masked(f, masks[f]) for f in test.key)
