"""The rules of a node that kube-proxy did not write: they stay when kube-proxy changes its mode.

kube-proxy removes its own rules when it starts in another mode (``CleanupLeftovers``): the jumps from the
built-in chains, and its chains. Rules that another component put into one of these chains go with it. A rule
of another component that jumps to one of them finds an empty chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nfparity.kubeproxy.rules.ipvs import IPVS_CHAINS
from nfparity.kubeproxy.state import KubeProxyState
from translate.dataclass import dataclass, replace
from translate.ir import (
    Chain,
    Drop,
    Field,
    FieldTest,
    Hook,
    Interval,
    Policy,
    Reject,
    Rule,
    Ruleset,
    SetMark,
    Table,
    TableName,
    flat,
)

__all__ = ["Denial", "OtherRules", "is_kube_proxy_chain", "without_kube_proxy"]

_OWN: Final = frozenset(
    {
        "KUBE-EXTERNAL-SERVICES",
        "KUBE-FORWARD",
        "KUBE-MARK-DROP",
        "KUBE-MARK-MASQ",
        "KUBE-NODEPORTS",
        "KUBE-POSTROUTING",
        "KUBE-PROXY-CANARY",
        "KUBE-PROXY-FIREWALL",
        "KUBE-SERVICES",
        "KUBE-SOURCE-RANGES-FIREWALL",
        *IPVS_CHAINS,
    }
)
_OF_A_SERVICE: Final = re.compile(r"KUBE-(SVC|SVL|EXT|XLB|FW|SEP)-.+")
_MARK: Final = "KUBE-MARK-MASQ"
_GUARD: Final = "KUBE-FIREWALL"
_KUBELET: Final = ("KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY")
"""Chains that only a kubelet creates.

On a node with them, the chain :data:`_GUARD` stays (``pkg/kubelet``).
"""


@dataclass(frozen=True, slots=True)
class Denial:
    """A default denial in one hook of the filter table: a last rule, or the policy (``rule`` is None)."""

    hook: Hook
    chain: Chain
    rule: Rule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRules:
    """The rules that stay, and the subset that affects kube-proxy's traffic.

    ``intruders`` use a chain or the mark of kube-proxy; ``askers`` match on the mark.
    ``denials`` are firewalls that deny by default; ``drops`` is True if any of the rules drops or
    rejects. ``notes`` are the assumptions.
    """

    ruleset: Ruleset
    intruders: tuple[Rule, ...] = ()
    askers: tuple[Rule, ...] = ()
    denials: tuple[Denial, ...] = ()
    drops: bool = False
    notes: tuple[str, ...] = ()


def is_kube_proxy_chain(name: str, *, kubelet: bool) -> bool:
    """Return whether kube-proxy creates a chain of that name; ``kubelet``: the node has kubelet's chains."""
    if name == _GUARD:
        return not kubelet
    return name in _OWN or _OF_A_SERVICE.fullmatch(name) is not None


def without_kube_proxy(ruleset: Ruleset, state: KubeProxyState) -> OtherRules:
    """Return the rules that remain when the kube-proxy of ``state`` has removed its own."""
    names = {chain.name for table in ruleset.tables for chain in table.chains}
    kubelet = any(name in names for name in _KUBELET)
    notes: list[str] = []
    intruders: list[Rule] = []
    tables: list[Table] = []
    for table in ruleset.tables:
        wanted: dict[str, None] = {}
        chains: list[Chain] = []
        for chain in table.chains:
            if is_kube_proxy_chain(chain.name, kubelet=kubelet):
                continue
            rules = []
            for rule in chain.rules:
                target = rule.callee
                own = target is not None and is_kube_proxy_chain(target, kubelet=kubelet)
                if own and _is_own_jump(chain, rule):
                    continue
                if own and target is not None:
                    wanted[target] = None
                    where = f"chain {target} of {table.name}"
                    notes.append(f"{where} stays, without rules, because other components' rules jump to it")
                if own or _matches_mark(rule, state.mark) or _sets_mark(rule, state.mark):
                    intruders.append(rule)
                rules.append(rule)
            chains.append(replace(chain, rules=tuple(rules)))
        chains += [Chain(name=name, rules=()) for name in wanted]
        if any(chain.rules or chain.policy is Policy.DROP for chain in chains):
            tables.append(replace(table, chains=tuple(chains)))
    rest = replace(ruleset, tables=tuple(tables))
    if kubelet and _GUARD in names:
        notes.append(f"chain {_GUARD} belongs to the kubelet, and stays")
    return OtherRules(
        ruleset=rest,
        intruders=tuple(intruders),
        askers=tuple(rule for rule in intruders if _matches_mark(rule, state.mark)),
        denials=tuple(_denials(rest)),
        drops=any(_denies(rule) for rule in rest.rules()),
        notes=tuple(dict.fromkeys(notes)),
    )


def _is_own_jump(chain: Chain, rule: Rule) -> bool:
    """Return whether a jump to a chain of kube-proxy is its own: for all packets, or all new ones."""
    plain = all(isinstance(t, FieldTest) and t.field is Field.CT_STATE for t in flat(rule.tests))
    return chain.hook is not None and plain and rule.callee != _MARK


def _matches_mark(rule: Rule, mark: int | None) -> bool:
    if mark is None:
        return False
    for test in rule.tests:
        if isinstance(test, FieldTest) and test.field is Field.MARK:
            mask = -1 if test.mask is None else test.mask
            if mask & mark and any(isinstance(v, Interval) and v.high & mark for v in test.values):
                return True
    return False


def _sets_mark(rule: Rule, mark: int | None) -> bool:
    return mark is not None and any(isinstance(a, SetMark) and a.value & mark for a in rule.actions)


def _denies(rule: Rule) -> bool:
    return any(isinstance(a, Drop | Reject) for a in rule.actions)


def _denials(ruleset: Ruleset) -> Iterator[Denial]:
    table = ruleset.table(TableName.FILTER)
    for chain in () if table is None else table.chains:
        if chain.hook not in (Hook.INPUT, Hook.FORWARD):
            continue
        last = next((r for r in chain.rules if _denies(r) and not r.tests), None)
        if chain.policy is Policy.DROP or last is not None:
            yield Denial(chain.hook, chain, last)
