"""Conntrack, which nft registers as iptables does: for the first rule with an expression that needs it.

The kernel tracks connections and reassembles fragments as soon as such an expression is loaded, also in a
chain that no packet reaches (``nf_ct_netns_get``). Without conntrack no packet reaches the chains of type nat
(``nf_nat_inet_fn``). A Program whose passes have removed every rule that needs conntrack gets a chain that
does nothing else.

``-m socket`` and TPROXY make the kernel reassemble fragments, and track no connections. Of nft's expressions
``tproxy`` does so (``nft_tproxy_init``); ``socket`` does not. A Program without ``tproxy`` gets a chain with
it that no packet reaches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from translate.ir import (
    NOWHERE,
    ConnectionState,
    ConnSecmark,
    Dnat,
    Field,
    FieldTest,
    Interval,
    Masquerade,
    Netmap,
    Protocol,
    Proxy,
    Redirect,
    RestoreMark,
    SaveMark,
    SetConnmark,
    Snat,
    SynProxy,
    Template,
)
from translate.nft.legal import (
    AddLabel,
    CountedInSet,
    DnatTo,
    HashedTo,
    HasLabel,
    InSet,
    LegalChain,
    LegalRule,
    Part,
    SetChange,
    SetHelper,
    TakenInSet,
    VerdictOf,
)

__all__ = ["needs_connections", "reassembling_chain", "tracking_chain", "tracks_connections"]

_CONNECTION: Final = frozenset(field for field in Field if field.text.partition(".")[0] == "ct")
_TRACKING: Final = (
    *(Dnat, Snat, Masquerade, Redirect, Netmap, DnatTo),
    *(SetConnmark, SaveMark, RestoreMark, ConnSecmark, HasLabel, AddLabel, HashedTo, CountedInSet),
    *(SynProxy, Template, SetHelper),
)
"""Parts whose expressions register conntrack, in addition to those that read ``ct``."""


def tracks_connections(chains: Iterable[LegalChain]) -> bool:
    """Return whether the kernel tracks connections because of a rule of these chains."""
    return any(needs_connections(part) for chain in chains for rule in chain.rules for part in rule.parts)


def needs_connections(part: Part) -> bool:
    """Return whether an expression of the part registers conntrack."""
    match part:
        case FieldTest(field=field):
            return field in _CONNECTION
        case InSet(key=key) | SetChange(key=key) | TakenInSet(key=key) | VerdictOf(key=key):
            return not _CONNECTION.isdisjoint(key)
        case _:
            return isinstance(part, _TRACKING)


def tracking_chain(name: str) -> LegalChain:
    """Return a chain that no rule calls, with a rule that needs conntrack."""
    reads = FieldTest(field=Field.CT_STATE, values=(Interval.point(ConnectionState.NEW),))
    rule = LegalRule(parts=(reads,), origin=NOWHERE)
    return LegalChain(name=name, note="registers conntrack", origin=NOWHERE, rules=[rule])


def reassembling_chain(name: str) -> LegalChain:
    """Return a chain that no rule calls, with a rule that makes the kernel reassemble fragments."""
    of_udp = FieldTest(field=Field.L4PROTO, values=(Interval.point(Protocol.UDP),))
    rule = LegalRule(parts=(of_udp, Proxy(address=None, port=1, value=0, mask=0)), origin=NOWHERE)
    return LegalChain(name=name, note="reassembles fragments", origin=NOWHERE, rules=[rule])
