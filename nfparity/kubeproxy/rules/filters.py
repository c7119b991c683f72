"""The filter table's rules for services: refusals, source ranges, health checks."""

from __future__ import annotations

from typing import Final

from nfparity.kubeproxy.rules.draft import ServiceDraft
from nfparity.kubeproxy.rules.reading import Reading
from nfparity.kubeproxy.rules.rule_matches import (
    DESTINATION,
    Tests,
    is_local,
    point,
    protocol,
    tests_by_subject,
)
from nfparity.kubeproxy.service import Purpose
from translate.ir import Accept, Chain, Drop, Field, Reject, Rule, TableName

__all__ = ["read_filters"]

_FILTER: Final = TableName.FILTER
_PORT: Final = frozenset({Field.L4PROTO, Field.DPORT})


def read_filters(reading: Reading) -> None:
    """Read the chains of the filter table that contain rules of services."""
    readers = {
        "KUBE-SERVICES": _refusal,
        "KUBE-EXTERNAL-SERVICES": _refusal,
        "KUBE-PROXY-FIREWALL": _out_of_range,
        "KUBE-NODEPORTS": _health_check,
    }
    chains = {c.name: c for c in reading.chains(_FILTER)}
    # Rules that identify a service better come first: by cluster IP, then by other addresses, then by ports.
    for name, read in readers.items():
        chain = chains.get(name, Chain(name=name, rules=()))
        asking = [(rule, tests_by_subject(rule)) for rule in chain.rules]
        asking.sort(key=lambda pair: pair[1] is not None and Field.FIB_DADDR_TYPE in pair[1])
        for rule, tests in asking:
            if tests is None or not read(reading, rule, tests, name):
                reading.leave_unread(rule, name)


def _refusal(reading: Reading, rule: Rule, tests: Tests, chain: str) -> bool:
    """Read the rule of a service without endpoints (REJECT) or without local endpoints (DROP)."""
    action = rule.actions[0] if rule.actions else None
    if not isinstance(action, Reject | Drop):
        return False
    local = isinstance(action, Drop)
    proto, port = protocol(tests), point(tests, Field.DPORT)
    if proto is None or port is None:
        return False
    address = point(tests, Field.DADDR)
    node_port = tests.keys() == _PORT | {Field.FIB_DADDR_TYPE} and is_local(tests, Field.FIB_DADDR_TYPE)
    if not node_port and (tests.keys() != DESTINATION or address is None):
        return False
    draft = reading.find(rule, proto, address, port, own_port=not node_port)
    internal = chain == "KUBE-SERVICES"
    if node_port:
        if draft.node_port not in (None, port):
            return False
        draft.node_port = port
    elif not draft.place(proto, port) or not _address(draft, address, internal=internal):
        return False
    if local:
        # The policy is Local, and all endpoints are on other nodes.
        draft.local_seps = draft.local_seps or []
        draft.endpoints_elsewhere = True
        if internal:
            draft.internal_local = True
        else:
            draft.external_local = True
    part = Purpose.NO_LOCAL_ENDPOINTS if local else Purpose.NO_ENDPOINTS
    reading.keep(draft, rule, part, _FILTER, chain, address)
    reading.enter(draft)
    return True


def _address(draft: ServiceDraft, address: int | None, *, internal: bool) -> bool:
    assert address is not None
    if internal:
        if draft.cluster_ip not in (None, address):
            return False
        draft.cluster_ip = address
    elif address not in (*draft.external_ips, *draft.load_balancer_ips, *draft.outside_ips):
        draft.outside_ips.append(address)
    return True


def _out_of_range(reading: Reading, rule: Rule, tests: Tests, chain: str) -> bool:
    address, port, proto = point(tests, Field.DADDR), point(tests, Field.DPORT), protocol(tests)
    if tests.keys() != DESTINATION or proto is None or address is None or port is None:
        return False
    if not rule.actions or not isinstance(rule.actions[0], Drop):
        return False
    draft = reading.find(rule, proto, address, port)
    if address not in draft.load_balancer_ips:
        return False
    reading.keep(draft, rule, Purpose.OUT_OF_RANGE, _FILTER, chain, address)
    return True


def _health_check(reading: Reading, rule: Rule, tests: Tests, chain: str) -> bool:
    port = point(tests, Field.DPORT)
    if tests.keys() != _PORT or port is None or not rule.actions:
        return False
    if not isinstance(rule.actions[0], Accept) or protocol(tests) is None:
        return False
    draft = reading.health_checked(rule)
    if draft is None:
        reading.health_check_ports.append(port)
        reading.keep_common(rule, Purpose.HEALTH_CHECK, _FILTER, chain)
        return True
    if draft.health_check_port not in (None, port):
        return False
    draft.health_check_port = port
    reading.keep(draft, rule, Purpose.HEALTH_CHECK, _FILTER, chain)
    return True
