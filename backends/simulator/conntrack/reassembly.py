"""Rules that make the kernel track connections, or only reassemble fragments, before all tables.

Conntrack and ``-m socket`` register hooks at priority -400 of PREROUTING and OUTPUT, which keep fragments
until they have all of a packet (``nf_defrag_ipv4_enable``, ``nf_defrag_ipv6_enable``). They do so as soon as
one loaded rule needs it, also a rule that no packet reaches (``xt_check_match``, ``xt_check_target``). A
table nat without such rules does not. Without conntrack, no packet reaches the rules of nat
(``nf_nat_inet_fn``), IPv4 reassembles packets for the node before INPUT (``ip_local_deliver``), and IPv6
reassembles them after INPUT (``ipv6_frag_rcv``).
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

from translate.ir import (
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Dnat,
    Field,
    FieldTest,
    Masquerade,
    Netmap,
    Proxy,
    Redirect,
    RestoreMark,
    Rule,
    Ruleset,
    SaveMark,
    SetConnmark,
    Snat,
    SynProxy,
    Template,
    Test,
    flat,
)

__all__ = ["reassembles", "tracks"]

_CONNECTION: Final = frozenset(field for field in Field if field.text.partition(".")[0] == "ct")
_SOCKET: Final = frozenset({Field.TAKER, Field.TAKER_WILDCARD, Field.TAKER_TRANSPARENT})
"""The fields of ``-m socket``, which only reassembles (``socket_mt_enable_defrag``)."""
_TESTS: Final = (ConnectionLimit, ConnLabel, ClusterShare)
_ACTIONS: Final = (
    *(Dnat, Snat, Masquerade, Redirect, Netmap, SetConnmark, SaveMark, RestoreMark),
    *(Template, SynProxy),
)


def reassembles(ruleset: Ruleset) -> bool | None:
    """Return whether a rule makes the kernel reassemble fragments; None if an unmodelled one may do so."""
    return any(map(_reassembles, ruleset.rules())) or tracks(ruleset)


def tracks(ruleset: Ruleset) -> bool | None:
    """Return whether a rule makes the kernel track connections; None if an unknown one may do so."""
    if any(map(_needs_connections, ruleset.rules())):
        return True
    return None if any(True for _ in ruleset.unknowns()) else False


def _reassembles(rule: Rule) -> bool:
    return _reads(rule.tests, _SOCKET) or any(isinstance(action, Proxy) for action in rule.actions)


def _needs_connections(rule: Rule) -> bool:
    return (
        _reads(rule.tests, _CONNECTION)
        or any(isinstance(action, _ACTIONS) for action in rule.actions)
        or any(isinstance(test, _TESTS) for test in rule.tests)
    )


def _reads(tests: Iterable[Test], fields: Set[Field]) -> bool:
    return any(isinstance(test, FieldTest) and test.field in fields for test in flat(tests))
