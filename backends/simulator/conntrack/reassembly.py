"""Rules that make the kernel reassemble fragments before all tables.

Conntrack and ``-m socket`` register hooks at priority -400 of PREROUTING and OUTPUT, which keep fragments
until they have all of a packet (``nf_defrag_ipv4_enable``, ``nf_defrag_ipv6_enable``). They do so as soon
as one loaded rule needs it, also a rule that no packet reaches (``xt_check_match``, ``xt_check_target``). A
table nat without rules does not. Without conntrack, IPv4 reassembles what the node delivers to itself before
INPUT (``ip_local_deliver``), and IPv6 after INPUT (``ipv6_frag_rcv``).
"""

from __future__ import annotations

from typing import Final

from translate.ir import (
    AnyOf,
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
)

__all__ = ["reassembles"]

_FIELDS: Final = frozenset(
    {field for field in Field if field.text.partition(".")[0] == "ct"}
    | {Field.TAKER, Field.TAKER_WILDCARD, Field.TAKER_TRANSPARENT}
)
"""Fields of connections, and those of ``-m socket`` (``socket_mt_enable_defrag``)."""
_TESTS: Final = (ConnectionLimit, ConnLabel, ClusterShare)
_ACTIONS: Final = (
    *(Dnat, Snat, Masquerade, Redirect, Netmap, SetConnmark, SaveMark, RestoreMark),
    *(Template, SynProxy, Proxy),
)


def reassembles(ruleset: Ruleset) -> bool | None:
    """Return whether a rule makes the kernel reassemble fragments; None if an unmodelled one may do so."""
    if any(map(_needs_whole_packets, ruleset.rules())):
        return True
    return None if any(unknown.extension for _, unknown in ruleset.unknowns()) else False


def _needs_whole_packets(rule: Rule) -> bool:
    return any(map(_tests_connection, rule.tests)) or any(isinstance(a, _ACTIONS) for a in rule.actions)


def _tests_connection(test: Test) -> bool:
    match test:
        case FieldTest(field=field):
            return field in _FIELDS
        case AnyOf(tests=tests):
            return any(map(_tests_connection, tests))
        case _:
            return isinstance(test, _TESTS)
