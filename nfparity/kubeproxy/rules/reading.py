"""Shared state of the readers of chains: drafts, lines of no service, and rules not understood."""

from __future__ import annotations

from collections.abc import Iterable

from nfparity.kubeproxy.chains import Protocol
from nfparity.kubeproxy.rules.draft import ServiceDraft, line_of, name_in
from nfparity.kubeproxy.service import Endpoint, Line, Purpose
from nfparity.kubeproxy.state import Remainder
from translate.dataclass import dataclass, field
from translate.ir import Chain, Interval, Name, Rule, Ruleset, TableName

__all__ = ["Reading", "SepChain"]


@dataclass(slots=True)
class SepChain:
    """A KUBE-SEP chain: its endpoint, and its rules."""

    endpoint: Endpoint | None = None
    protocol: Protocol | None = None
    name: str | None = None
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Reading:
    """A ruleset, and the facts that have been read from it so far."""

    ruleset: Ruleset
    known_names: dict[str, tuple[str, Protocol]] = field(default_factory=dict)
    """Names of services in API objects, by the hash in the names of their chains."""
    drafts: dict[str, ServiceDraft] = field(default_factory=dict)
    """Drafts by the hash in the names of their chains."""
    chainless: list[ServiceDraft] = field(default_factory=list)
    """Services without a chain of their own."""
    off_cluster_marks: list[tuple[ServiceDraft, Rule, str]] = field(default_factory=list)
    """Marking rules in KUBE-SVC chains, which are read at the end, when all cluster IPs are known."""
    seps: dict[str, SepChain] = field(default_factory=dict)
    used_seps: set[str] = field(default_factory=set)
    lines: list[Line] = field(default_factory=list)
    remainder: list[Remainder] = field(default_factory=list)
    pods: dict[Interval | Name, int] = field(default_factory=dict)
    """The values by which rules recognise traffic of pods, and the number of rules with each."""
    masquerade_all: bool = False
    masquerade_off_cluster: bool = False
    mark: int | None = None
    fully_random: bool = False
    node_port_addresses: list[int] | None = None
    localhost_node_ports: bool = False
    health_check_ports: list[int] = field(default_factory=list)
    """Health check ports whose service is unknown."""
    by_place: dict[tuple[Protocol, int | None, int], ServiceDraft] = field(default_factory=dict)
    """Drafts by protocol, address (None: node port) and port."""
    by_name: dict[tuple[str, Protocol], ServiceDraft] = field(default_factory=dict)

    def chains(self, table: TableName) -> Iterable[Chain]:
        """Return the chains of a table; empty if the table does not exist."""
        known = self.ruleset.table(table)
        return () if known is None else known.chains

    def draft(self, suffix: str) -> ServiceDraft:
        """Return the draft of the service whose chains have this hash."""
        draft = self.drafts.get(suffix)
        if draft is None:
            name, protocol = self.known_names.get(suffix, (None, None))
            draft = self.drafts[suffix] = ServiceDraft(hash=suffix, name=name, protocol=protocol)
        return draft

    def keep(
        self,
        draft: ServiceDraft,
        rule: Rule,
        part: Purpose,
        table: TableName,
        chain: str,
        address: int | None = None,
    ) -> None:
        """Record a rule of a service."""
        draft.lines.append(line_of(rule, part, table, chain, address))
        if draft.name is None:
            draft.name_from(rule.comment)

    def keep_common(
        self, rule: Rule, part: Purpose, table: TableName, chain: str, address: int | None = None
    ) -> None:
        """Record a rule that belongs to no service."""
        self.lines.append(line_of(rule, part, table, chain, address))

    def leave_unread(self, rule: Rule, chain: str) -> None:
        """Record a rule that was not understood."""
        reason = "not a rule that kube-proxy is known to write"
        self.remainder.append(Remainder(chain, rule.origin, reason))

    def index(self) -> None:
        """Index services by name, and by address and port, for rules without a per-service chain."""
        for draft in self.drafts.values():
            self.enter(draft)

    def find(
        self, rule: Rule, protocol: Protocol, address: int | None, port: int, *, own_port: bool = True
    ) -> ServiceDraft:
        """Return the service of a rule without a chain of its own; a new one if it is not known.

        ``own_port``: ``port`` is the service's port, not a node port.
        """
        name = name_in(rule.comment)
        draft = None if name is None else self.by_name.get((name, protocol))
        draft = draft or self.by_place.get((protocol, address, port))
        if draft is None:
            draft = ServiceDraft(name=name, protocol=protocol, port=port if own_port else None)
            self.chainless.append(draft)
        return draft

    def enter(self, draft: ServiceDraft) -> None:
        """Update the index with new facts of a draft."""
        if draft.protocol is None:
            return
        if draft.name is not None:
            self.by_name.setdefault((draft.name, draft.protocol), draft)
        if draft.node_port is not None:
            self.by_place.setdefault((draft.protocol, None, draft.node_port), draft)
        if draft.port is not None:
            addresses = (*draft.external_ips, *draft.load_balancer_ips, *draft.outside_ips)
            for address in (*addresses, *(() if draft.cluster_ip is None else (draft.cluster_ip,))):
                self.by_place.setdefault((draft.protocol, address, draft.port), draft)

    def health_checked(self, rule: Rule) -> ServiceDraft | None:
        """Return the service of a health check port; these use TCP for services of any protocol."""
        name = name_in(rule.comment)
        if name is None:
            return None
        for protocol in Protocol:
            draft = self.by_name.get((name, protocol))
            if draft is not None:
                return draft
        return None
