"""The connections of ``-m connlimit`` as sets whose elements count connections.

x_tables and nf_tables both count with ``nf_conncount``. x_tables keeps a tree of addresses, which becomes a
set. The keys of the tree also have the zone, so rules are refused if other rules assign zones.
"""

from __future__ import annotations

from typing import Final

from translate.ir import ConnectionLimit, Field, Origin, Program, SetDirection, Template, alternatives
from translate.nft.legal import CountedInSet, FilledSet, Key, Masked
from translate.nft.limits.refusal import CannotSay
from translate.nft.names import NameGiver

__all__ = ["counted_in", "set_of_counts"]

_SIZE: Final = 65535


def set_of_counts(test: ConnectionLimit, origin: Origin, names: NameGiver) -> FilledSet:
    """Return the set of the connections that a rule counts."""
    return FilledSet(
        name=names.give(f"connlimit_{test.state.replace('/', '_', 1)}"),
        key=(_address(test),),
        size=_SIZE,
        timeout=None,
        note=f"connlimit {test.state}" + (f", line {origin.line}" if origin.line else ""),
    )


def counted_in(test: ConnectionLimit, name: str, program: Program) -> CountedInSet:
    """Return the match of a test whose connections are in the set ``name``. Raises CannotSay."""
    if any(
        isinstance(action, Template) and (action.zone is None or action.zone)
        for chain in program.chains
        for statement in chain.statements
        for alternative in alternatives(statement)
        for action in alternative.actions
    ):
        raise CannotSay(
            "connlimit-zones",
            "other rules assign zones; xt_connlimit counts connections by zone, and nftables does not",
        )
    return CountedInSet(name, _key(test, program), test.limit, test.above)


def _address(test: ConnectionLimit) -> Field:
    return Field.SADDR if test.side is SetDirection.SRC else Field.DADDR


def _key(test: ConnectionLimit, program: Program) -> Key:
    whole = (1 << program.family.bits) - 1
    return (_address(test) if test.mask == whole else Masked(_address(test), test.mask),)
