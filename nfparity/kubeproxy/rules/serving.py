"""The chains of one service: KUBE-SEP, KUBE-SVC, KUBE-SVL, KUBE-EXT, KUBE-XLB and KUBE-FW.

The rules are written by ``syncProxyRules`` in ``pkg/proxy/iptables/proxier.go``, since 1.20. Before 1.24
there was XLB, and FW chains were also used for load balancers without source ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nfparity.kubeproxy.chains import ChainKind, split_chain
from nfparity.kubeproxy.rules.draft import ServiceDraft, name_in
from nfparity.kubeproxy.rules.reading import Reading, SepChain
from nfparity.kubeproxy.rules.rule_matches import (
    DESTINATION,
    Key,
    Tests,
    is_local,
    is_network,
    network,
    point,
    protocol,
    tests_by_subject,
)
from nfparity.kubeproxy.service import Endpoint, Purpose
from translate.dataclass import dataclass
from translate.ir import (
    Chain,
    Dnat,
    Field,
    FieldTest,
    Interval,
    Name,
    Random,
    Recent,
    RecentMode,
    Rule,
    TableName,
    Test,
)

__all__ = ["MARK_CHAIN", "MasqueradedTraffic", "read_off_cluster_marks", "read_service_chains"]

MARK_CHAIN: Final = "KUBE-MARK-MASQ"
_DROP_CHAIN: Final = "KUBE-MARK-DROP"
_NAT: Final = TableName.NAT


def read_service_chains(reading: Reading) -> None:
    """Read every chain of a service, endpoints first."""
    parts = [(chain, split_chain(chain.name)) for chain in reading.chains(_NAT)]
    for chain, part in parts:
        if part is not None and part[0] is ChainKind.SEP:
            reading.seps[chain.name] = _endpoint(reading, chain)
    readers: dict[ChainKind, Callable[[Reading, ServiceDraft, Chain], None]] = {
        ChainKind.SVC: _balancer,
        ChainKind.SVL: _local_balancer,
        ChainKind.EXT: _external,
        ChainKind.XLB: _external,
        ChainKind.FW: _firewall,
    }
    for chain, part in parts:
        if part is not None and part[0] in readers:
            readers[part[0]](reading, reading.draft(part[1]), chain)


def _endpoint(reading: Reading, chain: Chain) -> SepChain:
    sep = SepChain()
    draft = ServiceDraft()
    for rule in chain.rules:
        tests = tests_by_subject(rule)
        action = rule.actions[0] if rule.actions else None
        target = rule.callee
        if tests is None:
            reading.leave_unread(rule, chain.name)
        elif target == MARK_CHAIN and tests.keys() == {Field.SADDR} and point(tests, Field.SADDR) is not None:
            reading.keep(draft, rule, Purpose.HAIRPIN, _NAT, chain.name, point(tests, Field.SADDR))
        elif isinstance(action, Dnat) and sep.endpoint is None and _plain_dnat(action):
            recent = tests.get(Recent)
            known = tests.keys() - {Recent} == {Field.L4PROTO} and protocol(tests) is not None
            if not known or not (recent is None or _is_recent(recent, RecentMode.SET)):
                reading.leave_unread(rule, chain.name)
                continue
            assert action.addresses is not None
            assert action.ports.interval is not None
            sep.endpoint = Endpoint(action.addresses.low, action.ports.interval.low)
            sep.protocol = protocol(tests)
            reading.keep(draft, rule, Purpose.DNAT, _NAT, chain.name, sep.endpoint.address)
        else:
            reading.leave_unread(rule, chain.name)
    sep.name, sep.lines = draft.name, draft.lines
    return sep


def _plain_dnat(action: Dnat) -> bool:
    address, ports = action.addresses, action.ports
    plain = not (ports.random or ports.fully_random or ports.persistent)
    pointed = address is not None and address.is_point
    return plain and pointed and ports.interval is not None and ports.interval.is_point


def _is_recent(test: Test | None, mode: RecentMode) -> bool:
    return isinstance(test, Recent) and test.mode is mode and not test.negated and test.hitcount is None


def _balancer(reading: Reading, draft: ServiceDraft, chain: Chain) -> None:
    _choices(reading, draft, chain, draft.seps)


def _local_balancer(reading: Reading, draft: ServiceDraft, chain: Chain) -> None:
    draft.local_seps = [] if draft.local_seps is None else draft.local_seps
    _choices(reading, draft, chain, draft.local_seps)


def _choices(reading: Reading, draft: ServiceDraft, chain: Chain, endpoints: list[str]) -> None:
    for rule in chain.rules:
        tests = tests_by_subject(rule)
        if tests is not None and _balance(reading, draft, chain.name, rule, tests, endpoints):
            continue
        if tests is not None and rule.callee == MARK_CHAIN:
            reading.off_cluster_marks.append((draft, rule, chain.name))
        elif tests == {} and rule.callee == _DROP_CHAIN and endpoints is draft.local_seps:
            # 1.24 and 1.25, if no endpoint is on the node.
            draft.endpoints_elsewhere = True
            reading.keep(draft, rule, Purpose.NO_LOCAL_ENDPOINTS, _NAT, chain.name)
        else:
            reading.leave_unread(rule, chain.name)


def _balance(
    reading: Reading, draft: ServiceDraft, chain: str, rule: Rule, tests: Tests, endpoints: list[str]
) -> bool:
    """Read a rule that jumps to an endpoint: because of session affinity, or at random."""
    target = rule.callee
    sep = None if target is None else reading.seps.get(target)
    if target is None or sep is None:
        return False
    recent = tests.get(Recent)
    if tests.keys() == {Recent} and isinstance(recent, Recent) and _is_recent(recent, RecentMode.RCHECK):
        draft.affinity = recent.seconds
        reading.keep(draft, rule, Purpose.AFFINITY, _NAT, chain)
        return True
    chance = tests.get(Random)
    if tests.keys() - {Random} or (isinstance(chance, Random) and chance.negated):
        return False
    if draft.affinity is None:
        draft.affinity = 0
    if draft.protocol is None:
        draft.protocol = sep.protocol
    endpoints.append(target)
    reading.keep(draft, rule, Purpose.BALANCE, _NAT, chain)
    if target not in reading.used_seps:
        reading.used_seps.add(target)
        draft.lines += sep.lines
    draft.name = draft.name or sep.name
    return True


def read_off_cluster_marks(reading: Reading) -> None:
    """Read the marking rules in KUBE-SVC chains, when KUBE-SERVICES has shown the cluster IPs."""
    for draft, rule, chain in reading.off_cluster_marks:
        tests = tests_by_subject(rule)
        if tests is None or not _off_cluster_mark(reading, draft, chain, rule, tests):
            reading.leave_unread(rule, chain)


def _off_cluster_mark(reading: Reading, draft: ServiceDraft, chain: str, rule: Rule, tests: Tests) -> bool:
    """Read the rule that masquerades packets to the cluster IP unless they come from pods."""
    masqueraded = MasqueradedTraffic.of(tests, DESTINATION)
    if masqueraded is None:
        return False
    address, port = point(tests, Field.DADDR), point(tests, Field.DPORT)
    if address is None or port is None or not draft.place(protocol(tests), port):
        return False
    if draft.cluster_ip not in (None, address):
        return False
    masqueraded.record(reading)
    draft.cluster_ip = address
    reading.keep(draft, rule, Purpose.MASQUERADE, _NAT, chain, address)
    return True


@dataclass(frozen=True, slots=True)
class MasqueradedTraffic:
    """The packets that a rule masquerades: all, or all except those from ``pods``."""

    pods: Interval | Name | None

    @classmethod
    def of(cls, tests: Tests, others: frozenset[Field]) -> MasqueradedTraffic | None:
        """Return the packets; None if a test is neither in ``others`` nor a negated source or input
        interface.
        """
        if not tests.keys() >= others:
            return None
        rest = tests.keys() - others
        if not rest:
            return cls(None)
        value = recognised_pods(tests, next(iter(rest)), negated=True) if len(rest) == 1 else None
        return None if value is None else cls(value)

    def record(self, reading: Reading) -> None:
        """Record the facts about kube-proxy's configuration."""
        if self.pods is None:
            reading.masquerade_all = True
        else:
            reading.masquerade_off_cluster = True
            reading.pods[self.pods] = reading.pods.get(self.pods, 0) + 1


def recognised_pods(tests: Tests, key: Key, *, negated: bool) -> Interval | Name | None:
    """Return the network or interface by which a test recognises traffic of pods."""
    test = tests.get(key)
    if not isinstance(test, FieldTest) or test.field not in (Field.SADDR, Field.IIF):
        return None
    if test.negated is not negated or test.mask is not None or len(test.values) != 1:
        return None
    value = test.values[0]
    return None if isinstance(value, Interval) and not is_network(value) else value


def _external(reading: Reading, draft: ServiceDraft, chain: Chain) -> None:
    """Read KUBE-EXT, or KUBE-XLB, which also picks one of the endpoints on this node."""
    suffix = draft.hash
    cluster, local = f"KUBE-{ChainKind.SVC}-{suffix}", f"KUBE-{ChainKind.SVL}-{suffix}"
    if chain.name.startswith(f"KUBE-{ChainKind.XLB}-"):
        draft.external_local = True
        draft.local_seps = [] if draft.local_seps is None else draft.local_seps
    for rule in chain.rules:
        tests = tests_by_subject(rule)
        target = rule.callee
        if tests is None:
            reading.leave_unread(rule, chain.name)
            continue
        kinds = tests.keys()
        own = kinds == {Field.FIB_SADDR_TYPE} and is_local(tests, Field.FIB_SADDR_TYPE)
        pods = _of_pods(tests)
        to_local = not kinds and target == local
        if not kinds and target == MARK_CHAIN:
            draft.external_local = False
        elif not kinds and target == cluster:
            draft.external_local = bool(draft.external_local)
        elif pods is not None and target == cluster:
            # The same network as in the rules for off-cluster traffic, which do not exist with masqueradeAll.
            draft.external_local = True
            reading.pods[pods] = reading.pods.get(pods, 0) + 1
        elif to_local or (own and target in (MARK_CHAIN, cluster)):
            draft.external_local = True
        elif not kinds and target == _DROP_CHAIN:
            draft.local_seps = draft.local_seps or []
        elif draft.local_seps is None or not _balance(
            reading, draft, chain.name, rule, tests, draft.local_seps
        ):
            reading.leave_unread(rule, chain.name)
            continue
        else:
            continue
        reading.keep(draft, rule, Purpose.EXTERNAL, _NAT, chain.name)


def _of_pods(tests: Tests) -> Interval | Name | None:
    return recognised_pods(tests, next(iter(tests)), negated=False) if len(tests) == 1 else None


def _firewall(reading: Reading, draft: ServiceDraft, chain: Chain) -> None:
    ranges: list[Interval] = []
    everything = False
    for rule in chain.rules:
        tests = tests_by_subject(rule)
        target = rule.callee
        kind = None if target is None else split_chain(target)
        inward = kind is not None and kind[1] == draft.hash
        allowed = None if tests is None else network(tests, Field.SADDR)
        if tests is not None and tests.keys() == {Field.SADDR} and allowed is not None and inward:
            ranges.append(allowed)
            reading.keep(draft, rule, Purpose.SOURCE_RANGE, _NAT, chain.name)
        elif tests is None or tests:
            reading.leave_unread(rule, chain.name)
        elif not rule.actions or target == _DROP_CHAIN:
            reading.keep(draft, rule, Purpose.OUT_OF_RANGE, _NAT, chain.name)
        elif inward or target == MARK_CHAIN:
            # No source is tested: an old load balancer without ranges, or a range of all addresses.
            everything = everything or inward
            if target == MARK_CHAIN:
                draft.external_local = False
            reading.keep(draft, rule, Purpose.EXTERNAL, _NAT, chain.name)
        else:
            reading.leave_unread(rule, chain.name)
    draft.ranges = [] if everything else ranges
    draft.name = draft.name or next((n for n in (name_in(r.comment) for r in chain.rules) if n), None)
