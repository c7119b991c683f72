"""The rules that lead to a service: KUBE-SERVICES and KUBE-NODEPORTS of the nat table."""

from __future__ import annotations

from typing import Final

from nfparity.kubeproxy.chains import ChainKind, split_chain
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
from nfparity.kubeproxy.rules.serving import MARK_CHAIN, MasqueradedTraffic
from nfparity.kubeproxy.service import Purpose
from translate.ir import Account, Family, Field, FieldTest, Interval, Rule, TableName

__all__ = ["NODE_PORT_CHAIN", "SERVICE_CHAIN", "read_service_dispatch"]

NODE_PORT_CHAIN: Final = "KUBE-NODEPORTS"
SERVICE_CHAIN: Final = "KUBE-SERVICES"
_NAT: Final = TableName.NAT
_PORT: Final = frozenset({Field.L4PROTO, Field.DPORT})
_OLD_EXTERNAL: Final = ({Field.BRIDGED, Field.FIB_SADDR_TYPE}, {Field.FIB_DADDR_TYPE})
"""Further tests in both rules of an external IP, by which old kube-proxies excluded bridged traffic."""
_LOOPBACK: Final = {
    Family.IP: Interval.prefix(0x7F000000, 8, 32),
    Family.IP6: Interval.point(1),
}


def read_service_dispatch(reading: Reading) -> None:
    """Read KUBE-NODEPORTS, then KUBE-SERVICES, because old kube-proxies set the mark before the jump."""
    for chain in reading.chains(_NAT):
        if chain.name == SERVICE_CHAIN:
            late = []
            for rule in chain.rules:
                tests = tests_by_subject(rule)
                if tests is not None and _to_service(reading, rule, tests):
                    continue
                if tests is not None and _to_node_ports(reading, rule, tests):
                    continue
                late.append((rule, tests))
            # Old kube-proxies mark off-cluster traffic here, before the jump.
            reading.index()
            for rule, tests in late:
                if tests is None or not _mark(reading, rule, tests, SERVICE_CHAIN):
                    reading.leave_unread(rule, SERVICE_CHAIN)
        elif chain.name == NODE_PORT_CHAIN:
            late = []
            for rule in chain.rules:
                tests = tests_by_subject(rule)
                if tests is None or not _to_node_port(reading, rule, tests):
                    late.append((rule, tests))
            reading.index()
            for rule, tests in late:
                if tests is None or not _mark(reading, rule, tests, NODE_PORT_CHAIN):
                    reading.leave_unread(rule, NODE_PORT_CHAIN)
    reading.index()


def _to_service(reading: Reading, rule: Rule, tests: Tests) -> bool:
    """Read a rule from an address and port to a service's chain."""
    target = rule.callee
    chain = None if target is None else split_chain(target)
    if chain is None or not tests.keys() >= DESTINATION:
        return False
    bridged = tests.keys() - DESTINATION
    if bridged and bridged not in _OLD_EXTERNAL:
        return False
    address, port = point(tests, Field.DADDR), point(tests, Field.DPORT)
    draft = reading.draft(chain[1])
    if address is None or port is None or not draft.place(protocol(tests), port):
        return False
    part = Purpose.EXTERNAL_IP if bridged else _kind_of_address(rule, chain[0], draft, address)
    match part:
        case Purpose.CLUSTER_IP:
            if draft.cluster_ip not in (None, address):
                return False
            draft.cluster_ip = address
            draft.internal_local = chain[0] is ChainKind.SVL
        case Purpose.EXTERNAL_IP:
            if address not in draft.external_ips:
                draft.external_ips.append(address)
        case Purpose.LOAD_BALANCER_IP:
            draft.load_balancer_ips.append(address)
        case _:
            draft.outside_ips.append(address)
    reading.keep(draft, rule, part, _NAT, SERVICE_CHAIN, address)
    return True


def _kind_of_address(rule: Rule, kind: ChainKind, draft: ServiceDraft, address: int) -> Purpose:
    if kind is ChainKind.FW:
        return Purpose.LOAD_BALANCER_IP
    comment = rule.comment or ""
    for part, words in _SAID.items():
        if comment.endswith(words):
            return part
    if kind in (ChainKind.SVC, ChainKind.SVL) and draft.cluster_ip in (None, address):
        return Purpose.CLUSTER_IP
    return Purpose.OUTSIDE_IP


_SAID: Final = {
    Purpose.CLUSTER_IP: " cluster IP",
    Purpose.EXTERNAL_IP: " external IP",
    Purpose.LOAD_BALANCER_IP: " loadbalancer IP",
}


def _to_node_ports(reading: Reading, rule: Rule, tests: Tests) -> bool:
    """Read a jump to KUBE-NODEPORTS with the addresses of the node: all local ones, or a list."""
    if rule.callee != NODE_PORT_CHAIN:
        return False
    kinds = tests.keys()
    if kinds == {Field.DADDR} and point(tests, Field.DADDR) is not None:
        address = point(tests, Field.DADDR)
        assert address is not None
        listed = reading.node_port_addresses or []
        reading.node_port_addresses = [*listed, address]
        reading.localhost_node_ports |= address in _LOOPBACK[reading.ruleset.family]
        reading.keep_common(rule, Purpose.NODE_PORTS, _NAT, SERVICE_CHAIN, address)
        return True
    if Field.FIB_DADDR_TYPE not in kinds or not is_local(tests, Field.FIB_DADDR_TYPE):
        return False
    if kinds == {Field.FIB_DADDR_TYPE}:
        reading.localhost_node_ports = reading.ruleset.family is Family.IP
    elif kinds != {Field.FIB_DADDR_TYPE, Field.DADDR} or not _spares_localhost(reading, tests):
        return False
    reading.keep_common(rule, Purpose.NODE_PORTS, _NAT, SERVICE_CHAIN)
    return True


def _spares_localhost(reading: Reading, tests: Tests) -> bool:
    test = tests[Field.DADDR]
    loopback = (_LOOPBACK[reading.ruleset.family],)
    return isinstance(test, FieldTest) and test.negated and test.values == loopback


def _to_node_port(reading: Reading, rule: Rule, tests: Tests) -> bool:
    """Read a rule from a node port to a service's chain; a rule with nfacct counts traffic to localhost."""
    target = rule.callee
    chain = None if target is None else split_chain(target)
    port = point(tests, Field.DPORT)
    counted = tests.keys() == _PORT | {Account, Field.DADDR}
    if chain is None or port is None or not (tests.keys() == _PORT or counted):
        return False
    draft = reading.draft(chain[1])
    if draft.node_port not in (None, port) or not draft.place(protocol(tests)):
        return False
    draft.node_port = port
    part = Purpose.LOCALHOST_NODE_PORT if counted else Purpose.NODE_PORT
    reading.keep(draft, rule, part, _NAT, NODE_PORT_CHAIN)
    return True


def _mark(reading: Reading, rule: Rule, tests: Tests, chain: str) -> bool:
    """Read a rule of old kube-proxies that sets the mark before the jump to a service."""
    if rule.callee != MARK_CHAIN:
        return False
    proto, port, address = protocol(tests), point(tests, Field.DPORT), point(tests, Field.DADDR)
    if proto is None or port is None:
        return False
    draft = reading.by_place.get((proto, address, port))
    if draft is None:
        return False
    if address is None:
        local = _is_loopback(reading, tests)
        if tests.keys() - {Field.SADDR} != _PORT or (Field.SADDR in tests and not local):
            return False
        draft.external_local = local
    elif address == draft.cluster_ip:
        masqueraded = MasqueradedTraffic.of(tests, DESTINATION)
        if masqueraded is None:
            return False
        masqueraded.record(reading)
    elif tests.keys() != DESTINATION:
        return False
    else:
        draft.external_local = False
    reading.keep(draft, rule, Purpose.MASQUERADE, _NAT, chain, address)
    return True


def _is_loopback(reading: Reading, tests: Tests) -> bool:
    """Return whether the source must be in the loopback network."""
    test = tests.get(Field.SADDR)
    loopback = (_LOOPBACK[reading.ruleset.family],)
    return isinstance(test, FieldTest) and not test.negated and test.values == loopback
