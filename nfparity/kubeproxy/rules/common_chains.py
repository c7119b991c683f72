"""The rules of kube-proxy that belong to no service: marks, masquerading, guards and entrances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nfparity.kubeproxy.chains import split_chain
from nfparity.kubeproxy.rules.reading import Reading
from nfparity.kubeproxy.rules.rule_matches import Tests, tests_by_subject
from nfparity.kubeproxy.service import Purpose
from translate.ir import (
    Accept,
    Account,
    AnyOf,
    Chain,
    ConnectionState,
    Drop,
    Field,
    FieldTest,
    Interval,
    Masquerade,
    Return,
    Rule,
    SetMark,
    TableName,
)

__all__ = ["FILTER_CHAINS", "NAT_CHAINS", "read_shared"]

NAT_CHAINS: Final = frozenset({"KUBE-SERVICES", "KUBE-NODEPORTS"})
"""Chains of the nat table that :mod:`~nfparity.kubeproxy.rules.service_dispatch` reads."""

FILTER_CHAINS: Final = frozenset(
    {"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL", "KUBE-NODEPORTS"}
)
"""Chains of the filter table that :mod:`~nfparity.kubeproxy.rules.filters` reads."""


def read_shared(reading: Reading) -> None:
    """Read the chains of kube-proxy and kubelet that belong to no service, and the jumps to all chains."""
    for table in reading.ruleset.tables:
        for chain in table.chains:
            if not chain.name.startswith("KUBE-"):
                _entrances(reading, table.name, chain)
                continue
            if split_chain(chain.name) is not None and table.name is TableName.NAT:
                continue
            if chain.name in {TableName.NAT: NAT_CHAINS, TableName.FILTER: FILTER_CHAINS}.get(
                table.name, frozenset()
            ):
                continue
            read = _READERS.get((table.name, chain.name))
            for rule in chain.rules:
                tests = tests_by_subject(rule)
                part = None if read is None or tests is None else read(reading, rule, tests)
                if part is None:
                    reading.leave_unread(rule, chain.name)
                else:
                    reading.keep_common(rule, part, table.name, chain.name)


def _entrances(reading: Reading, table: TableName, chain: Chain) -> None:
    for rule in chain.rules:
        target = rule.callee
        if target is not None and target.startswith("KUBE-"):
            reading.keep_common(rule, Purpose.ENTRANCE, table, chain.name)


def _mark_masq(reading: Reading, rule: Rule, tests: Tests) -> Purpose | None:
    action = rule.actions[0] if rule.actions else None
    if tests or not isinstance(action, SetMark) or not action.value or action.value & ~action.mask:
        return None
    reading.mark = action.value
    return Purpose.MARK


def _mark_drop(reading: Reading, rule: Rule, tests: Tests) -> Purpose | None:
    return Purpose.MARK_DROP if not tests and rule.actions and isinstance(rule.actions[0], SetMark) else None


def _postrouting(reading: Reading, rule: Rule, tests: Tests) -> Purpose | None:
    action = rule.actions[0] if rule.actions else None
    if isinstance(action, Masquerade):
        # Before 1.19 the rule itself matched the mark, and did not clear it.
        if tests.keys() - {Field.MARK}:
            return None
        reading.fully_random = action.ports.fully_random
        return Purpose.POSTROUTING
    if isinstance(action, Return) and tests.keys() == {Field.MARK}:
        return Purpose.POSTROUTING
    return Purpose.POSTROUTING if isinstance(action, SetMark) and not tests else None


def _forward(reading: Reading, rule: Rule, tests: Tests) -> Purpose | None:
    action = rule.actions[0] if rule.actions else None
    kinds = tests.keys() - {Account}
    if isinstance(action, Accept) and kinds == {Field.MARK}:
        return Purpose.ACCEPT_MARKED
    states = _states(tests)
    if isinstance(action, Drop) and states == {ConnectionState.INVALID} and kinds == {Field.CT_STATE}:
        return Purpose.DROP_INVALID
    related = {ConnectionState.RELATED, ConnectionState.ESTABLISHED}
    # Before 1.22 there was one rule for each direction, with the pods' network.
    if isinstance(action, Accept) and states == related:
        return Purpose.ACCEPT_RELATED if kinds <= {Field.CT_STATE, Field.SADDR, Field.DADDR} else None
    return None


def _states(tests: Tests) -> set[int]:
    test = tests.get(Field.CT_STATE)
    if not isinstance(test, FieldTest) or test.negated:
        return set()
    return {v for i in test.values if isinstance(i, Interval) for v in range(i.low, i.high + 1)}


def _firewall(reading: Reading, rule: Rule, tests: Tests) -> Purpose | None:
    action = rule.actions[0] if rule.actions else None
    if not isinstance(action, Drop):
        return None
    if tests.keys() == {Field.MARK}:
        return Purpose.MARK_DROP
    if tests.keys() - {Account} == {Field.SADDR, Field.DADDR, AnyOf}:
        return Purpose.LOCALNET_GUARD
    return None


_READERS: Final[dict[tuple[TableName, str], Callable[[Reading, Rule, Tests], Purpose | None]]] = {
    (TableName.NAT, "KUBE-MARK-MASQ"): _mark_masq,
    (TableName.NAT, "KUBE-MARK-DROP"): _mark_drop,
    (TableName.NAT, "KUBE-POSTROUTING"): _postrouting,
    (TableName.FILTER, "KUBE-FORWARD"): _forward,
    (TableName.FILTER, "KUBE-FIREWALL"): _firewall,
}
