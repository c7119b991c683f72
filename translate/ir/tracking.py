"""Rulesets that make the kernel track connections or reassemble fragments.

The first rule that needs conntrack registers its hooks (``nf_ct_netns_get`` in ``xt_check_match`` and
``xt_check_target``), even if no packet reaches the rule. A table nat alone does not: without conntrack, no
packet reaches the rules of nat (``nf_nat_inet_fn``). ``-m socket`` and TPROXY register only the hooks that
reassemble fragments (``socket_mt_enable_defrag``, ``tproxy_tg4_check``).
"""

from __future__ import annotations

from typing import Final

from translate.ir.actions import (
    Dnat,
    Masquerade,
    Netmap,
    Proxy,
    Redirect,
    RestoreMark,
    SaveMark,
    SetConnmark,
    Snat,
    SynProxy,
    Template,
)
from translate.ir.fields import Field
from translate.ir.matches import ClusterShare, ConnectionLimit, ConnLabel, FieldTest, flat
from translate.ir.ruleset import Rule, Ruleset

__all__ = ["SOCKET_FIELDS", "needs_connections", "reassembles_fragments", "tracks_connections"]

_TESTS: Final = (ConnectionLimit, ConnLabel, ClusterShare)
_ACTIONS: Final = (
    *(Dnat, Snat, Masquerade, Redirect, Netmap),
    *(SetConnmark, SaveMark, RestoreMark, Template, SynProxy),
)


SOCKET_FIELDS: Final = frozenset({Field.TAKER, Field.TAKER_WILDCARD, Field.TAKER_TRANSPARENT})
"""The fields of ``-m socket``."""


def tracks_connections(ruleset: Ruleset) -> bool:
    """Return whether a rule of the ruleset makes the kernel track connections."""
    return any(map(needs_connections, ruleset.rules()))


def needs_connections(rule: Rule) -> bool:
    """Return whether the rule makes the kernel track connections."""
    return any(isinstance(action, _ACTIONS) for action in rule.actions) or any(
        test.field.text.startswith("ct.") if isinstance(test, FieldTest) else isinstance(test, _TESTS)
        for test in flat(rule.tests)
    )


def reassembles_fragments(ruleset: Ruleset) -> bool:
    """Return whether a rule that needs no conntrack makes the kernel reassemble fragments."""
    return any(map(_reassembles, ruleset.rules()))


def _reassembles(rule: Rule) -> bool:
    return any(isinstance(action, Proxy) for action in rule.actions) or any(
        isinstance(test, FieldTest) and test.field in SOCKET_FIELDS for test in flat(rule.tests)
    )
