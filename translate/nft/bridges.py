"""What ``-m physdev`` asks, in nftables: the kind of the device that the packet came in by.

``physdev`` asks whether the packet carries what ``br_netfilter`` noted of it at a port of a bridge. It
does if it came in by a bridge while ``net.bridge.bridge-nf-call-iptables`` was 1, which is its default and
which Kubernetes asks for; nftables knows the first half alone (``nft_meta_store_ifkind``). ``meta iifkind``
ends the rule where the device has no kind (a network card, ``lo``, or no device in OUTPUT), so that "not a
bridge" takes two rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Note
from translate.ir import AnyOf, Apply, Choose, Field, FieldTest, Lookup, Origin, Program, Test
from translate.nft.refusal import BACKEND

__all__ = ["BRIDGE", "notes_on_bridges"]

BRIDGE: Final = '"bridge"'
"""The kind of a bridge, as ``meta iifkind`` is compared."""

_TEXT: Final = (
    "what comes in by a bridge is taken to have passed br_netfilter: the same while"
    " net.bridge.bridge-nf-call-iptables (IPv6: -ip6tables) is 1"
)


def notes_on_bridges(program: Program) -> tuple[Note, ...]:
    """Return a note for each rule that asks."""
    return tuple(dict.fromkeys(Note(origin, BACKEND, "physdev", _TEXT) for origin in _asking(program)))


def _asking(program: Program) -> Iterator[Origin]:
    for chain in program.chains:
        for statement in chain.statements:
            if any(map(_asks, statement.tests)):
                match statement:
                    case Apply():
                        yield statement.origin
                    case Lookup():
                        yield from (entry.origin for entry in statement.entries)
                    case Choose():
                        yield from (branch.origin for branch in statement.branches)


def _asks(test: Test) -> bool:
    parts = test.tests if isinstance(test, AnyOf) else (test,)
    return any(isinstance(part, FieldTest) and part.field is Field.BRIDGED for part in parts)
