"""Proofs: reasons why certain faults change no packet, and the conditions under which they hold.

A proof is for faults whose :attr:`Fault.key` its pattern matches, in the translations of one ruleset's
rules on its nodes. A fault that survives without a proof is a hole in the corpus.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.lab.mutation.fault import Fault

__all__ = ["PROOFS", "Proof", "proof_of"]


@dataclass(frozen=True, slots=True)
class Proof:
    """The reason why faults of this pattern change nothing.

    With ``nested`` it applies only to a line inside an ``if``, with ``above`` only below a line that matches
    this pattern, with ``subject`` only in that translation.
    """

    pattern: str
    reason: str
    nested: bool = False
    above: str = ""
    subject: str | None = None

    def covers(self, subject: str, fault: Fault) -> bool:
        """Return whether the proof applies to ``fault`` in the translation ``subject``."""
        if self.nested and not fault.place.text.startswith("\t\t"):
            return False
        if self.subject not in (None, subject) or not re.search(self.above, fault.place.above):
            return False
        return re.search(self.pattern, fault.key) is not None


_ANYWHERE: Final = (
    Proof(
        r"^(hook|priority|policy|lost-line): mangle_(PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING): "
        r"type .*policy accept; → type .*policy accept;",
        "the chain has no rule, and its policy accepts",
    ),
    Proof(
        r"^((priority|hook): nat_INPUT: |hook: handle_input: RUN_NAT\(chain_nat_input)",
        "the chain has no rule, and its policy accepts",
    ),
    Proof(
        r"^priority: nat_POSTROUTING: .*priority -90",
        "no other chain with a rule runs at POSTROUTING, and conntrack confirms after all priorities",
    ),
    Proof(
        r"^priority: filter_(INPUT|FORWARD): .*priority -400",
        "no other chain with a rule runs at that hook, and conntrack has seen the packet in PREROUTING",
    ),
    Proof(
        r"^\S+: (nat|mangle|filter)_(\S*CANARY|KUBE.MARK.DROP|KUBE-IPTABLES-HINT): ",
        "nothing jumps to the chain",
    ),
    Proof(
        r"^lost-test: nat_KUBE.SEP.\w+: .*p->proto == 0x(6|11)\) \{ → if \(1\)",
        "KUBE-SERVICES has tested the protocol",
    ),
    Proof(
        r"^inverted-test: nat_KUBE.(SV[CL]|SERVICES_2_endpoints)_\w+: if \(drawn < 0x40000000\) ",
        "both branches of the draw have probability 1/2",
    ),
    Proof(
        r"^lost-test: nat_\w+: .*p->has_ports.*→ (?!.*p->has_ports)",
        "the rule also tests for tcp or udp, which have ports; later fragments are dropped on arrival",
    ),
)

_NOTHING_BEHIND_FORWARD: Final = (
    "no rule follows in FORWARD, and its policy accepts, so that an earlier accept has the same result"
)

_KIND: Final = (
    Proof(
        r"^\S+: (nat|filter)_\S+: .*(jump |c\d+_)(filter|nat)_"
        r"KUBE.(PROXY.FIREWALL|NODEPORTS|EXTERNAL.SERVICES|SERVICES)\b.*"
        r"(line (23|24|25|27|29|30|31|32|102)"
        r"|filter_KUBE_(PROXY_FIREWALL|NODEPORTS|EXTERNAL_SERVICES|SERVICES))",
        "the target chain is empty",
    ),
    Proof(
        r"^(lost-test|inverted-test|constant|side): nat_KUBE.SERVICES: if \(address_type\(p->daddr"
        r"|^lost-call: nat_KUBE.SERVICES: .*_nat_KUBE_NODEPORTS\(",
        "the target chain is empty",
    ),
    Proof(
        r"^lost-test: nat_(PREROUTING|OUTPUT): .*(ip daddr 172\.18\.0\.1|p->daddr == 0xac120001)",
        "every rule of DOCKER_OUTPUT tests the same destination again",
    ),
    Proof(
        r"^lost-test: nat_DOCKER_OUTPUT: .*(ip daddr 172\.18\.0\.1.* → (tcp|udp|meta|dnat)"
        r"|p->daddr == 0xac120001.*→ (?!.*p->daddr))",
        "both callers have tested this destination",
    ),
    Proof(
        r"^lost-test: nat_POSTROUTING: .*(ip daddr 172\.18\.0\.1|p->daddr == 0xac120001)",
        "DOCKER_POSTROUTING's rules test for source 127.0.0.11, and packets from there leave the node "
        "(route_localnet) only for the gateway",
    ),
    Proof(
        r"^verdict: nat_KIND.MASQ.AGENT: ",
        "no rule follows a return: KIND-MASQ-AGENT is the last rule of POSTROUTING, whose policy accepts",
    ),
    Proof(
        r"^(lost-line|address|lost-mark|lost-test|inverted-test|constant): nat_KUBE.SEP.QKX4QX54UKWK6JIY: "
        r".*(ip saddr 172\.18\.0\.3|p->saddr == 0xac120003|p->mark = ).*"
        r"→ (\(gone\)|ip saddr 172\.18\.0\.2 |if \(p->saddr == 0xac120002\))",
        "172.18.0.2 and 172.18.0.3 are outside 10.244.0.0/16: the service's rule marks such packets",
    ),
    Proof(
        r"^lost-test: nat_KUBE.SVC.\w+: .*→ .*"
        r"(ip saddr != 10\.244\.0\.0/16|p->saddr & 0xffff0000\) == 0xaf40000)",
        "KUBE-SERVICES has tested the same destination, protocol and port",
    ),
    Proof(
        r"^\S+: filter_KUBE.FORWARD(_\d|_verdicts)?: .*(meta mark & 0x4000|p->mark & 0x4000"
        r"|established,related|(established|related) comment|ct_state == 0x2|return ACCEPT)"
        r".*→ (?!.*(drop|DROP))",
        _NOTHING_BEHIND_FORWARD,
    ),
    Proof(
        r"^(lost-entry|constant): lookup_\d+: \*   0x\d+ : 1 \(line 38\) → (\(gone\)|\*   0x[35] : 1 )",
        _NOTHING_BEHIND_FORWARD,
        subject="tc-O2",
    ),
)

_ONE_ENDPOINT: Final = "the service has one endpoint: the next rule sends all clients to the same endpoint"

_SAME_ENDPOINT: Final = (
    "only KUBE-EXT calls the chain, and then it continues with the local endpoint, which is the lost one"
)

_NOTHING_BEHIND: Final = (
    "no rule of INPUT after the one for health checks tests their ports, and the policy accepts"
)

_CLUSTER: Final = (
    Proof(
        r"^verdict: nat_KUBE.POSTROUTING: .*(return comment|return CONTINUE).*→ .*(accept|ACCEPT)",
        "no rule follows the return: POSTROUTING has no other rule, and its policy accepts",
    ),
    Proof(
        r"^(lost-line|lost-entry|data|code|verdict|state): filter_KUBE.FORWARD(_verdicts)?: "
        r"(?!.*→ .*(drop|DROP)).*(established|related) (accept )?comment .*(gone|accept)",
        "the next rules of FORWARD test for new connections, and its policy accepts",
    ),
    Proof(
        r"^(lost-line|lost-test|inverted-test|target(?=.*-CANARY )): filter_INPUT: "
        r".* jump filter_KUBE-PROXY-FIREWALL ",
        "KUBE-PROXY-FIREWALL tests for the address of a load balancer, which is not the node's",
    ),
    Proof(
        r"^(lost-line|lost-test|inverted-test): filter_FORWARD: .* jump filter_KUBE-EXTERNAL-SERVICES ",
        "KUBE-EXTERNAL-SERVICES tests for addresses of the node, which no forwarded packet has",
    ),
    Proof(
        r"^lost-line: filter_(INPUT|OUTPUT): jump filter_KUBE-FIREWALL ",
        "the other hook runs the same test on packets that the node sends to 127.0.0.0/8, and without "
        "route_localnet none come from outside",
    ),
    Proof(
        r"^(verdict|state): filter_KUBE-FIREWALL_2: ct state .*"
        r"→ .*(established,related accept|established return)",
        "no rule after the return is for known connections; an error about a connection to 127.0.0.1 has "
        "the status DNAT, which the next rule tests",
    ),
    Proof(
        r"^(verdict|lost-line): filter_KUBE-FIREWALL_2: ct status .*→ (\(gone\)|.* accept comment)",
        "no rule translates to 127.0.0.0/8: a packet there with status DNAT is an answer, and an earlier "
        "rule accepts it",
    ),
    Proof(
        r"^lost-test: filter_FORWARD: ct state new jump filter_KUBE-SERVICES ",
        "KUBE-FORWARD has accepted established and related packets, and dropped invalid ones",
    ),
    Proof(
        r"^(lost-line|mark-bit): filter_KUBE-FORWARD: meta mark & 0x4000 == 0x4000 accept ",
        "marked packets go to an endpoint, and no later rule rejects these",
    ),
    Proof(r"^lost-line: filter_INPUT: jump filter_KUBE-NODEPORTS ", _NOTHING_BEHIND),
    Proof(
        r"^lost-line: nat_KUBE-SVC-J2MTS\w+(_draw: \d .* : |: )jump nat_KUBE-SEP-(5VVH|UPZB)\w+\b",
        _SAME_ENDPOINT,
    ),
    Proof(
        r"^lost-call: nat_KUBE_SVC_J2MTS\w+: .*_nat_KUBE_SEP_(5VVH|UPZB)\w+\(",
        _SAME_ENDPOINT,
        above=r"^\t(if \(drawn < |\} else )",
    ),
    Proof(
        r"^lost-test: nat_KUBE_SEP_\w+: if \(p->proto == 0x6 && recent\(.*→ if \(recent\(",
        "KUBE-SERVICES or KUBE-NODEPORTS has tested the protocol",
    ),
    Proof(
        r"^lost-test: filter_KUBE_\w+: if \(p->proto == 0x6 .*p->has_ports.*→ (?!.*p->has_ports)",
        "the rule also tests for tcp, which has ports; later fragments are dropped on arrival",
    ),
    Proof(
        r"^(lost-line|lost-test|inverted-test|side|list): nat_KUBE.SVL.\w+: "
        r"(ip6? saddr @recent_(?P<list>\S+) jump nat_(?P=list) "
        r"|if \(recent\(\d+, p->saddr, \d+, RECENT_RCHECK, 0\)\))",
        _ONE_ENDPOINT,
    ),
    Proof(r"^lost-call: nat_KUBE.SVL.\w+: .*_nat_KUBE_SEP_", _ONE_ENDPOINT, nested=True),
    Proof(
        r"^\S+: nat_KUBE-(SVC-ALULQ|SEP-(27LC|WODG|H454|R2BW|QZ6D|SQJR))\w+: .* meta mark \| 0x4000 .*"
        r"→ (\(gone\)$|.*meta mark set meta mark \| 0x4000 )",
        "at this level only KUBE-EXT calls the service's chain, and it has marked every packet",
        subject="nft-O2",
    ),
    Proof(
        r"^\S+: nat_KUBE-SVC-ALULQ\w+: ip6? saddr .* (?P<service>ip6? daddr \S+ tcp dport \d+) "
        r".*→ .*(?P=service) ",
        "at this level only KUBE-EXT calls the service's chain, and not for the cluster IP",
        subject="nft-O2",
    ),
    Proof(
        r"^target: nat_KUBE-SERVICES_to_3_endpoints_\w+: jump nat_KUBE-SERVICES_3_endpoints_\w+ comment "
        r".*→ jump nat_KUBE-SERVICES_3_endpoints_\w+ comment ",
        "KUBE-EXT has marked every packet; apart from a mark, both chains draw among the same endpoints",
        subject="nft-O2",
    ),
    Proof(
        r"^lookup: nat_KUBE-SERVICES_3_endpoints_\w+: .* comment \"rules like line 13[89]\" "
        r"→ numgen random mod 3 vmap @nat_KUBE-SVC-ALULQ\w+_draw ",
        "only packets to this service get here, and the map of its own chain has the same endpoints",
        subject="nft-O2",
    ),
    Proof(
        r"^(lost-line|address|prefix-length|port|tcp-udp): nat_KUBE-SERVICES_endpoint_\d_eb18_keys: "
        r"\S+ \. (198\.18\.0\.1|2001:db8:2::1) \. tcp \. 8080 ",
        "packets to the load balancer's address are already marked, like all packets from outside",
        subject="nft-O2",
    ),
    Proof(
        r"^lost-test: nat_KUBE.SEP.\w+: meta l4proto \w+ update .* → update ",
        "KUBE-SERVICES has tested the protocol",
    ),
    Proof(
        r"^lost-test: nat_KUBE.SV(C.\w+|L.\w+(?=.*→ .*daddr)): "
        r".*(ip6? saddr != |p->saddr).*→ .*(ip6? saddr != |p->saddr)",
        "KUBE-SERVICES has run the same test; a packet from KUBE-EXT is marked, comes from a pod, or was "
        "not sent to the cluster IP",
    ),
    Proof(
        r"^(lost-line|port|tcp-udp): filter_KUBE.NODEPORTS(_keys)?: .*accept",
        _NOTHING_BEHIND,
    ),
)

_IPVS: Final = (
    Proof(
        r"^address: set_KUBE-(6-)?NODE-PORT-SCTP-HASH: \S+ \. sctp \. 30998 ",
        "an earlier rule decides about packets to this port; the set is only for the node's addresses",
    ),
    Proof(
        r"^(hook|lost-line): filter_FORWARD: (type |jump filter_KUBE-PROXY-FIREWALL )",
        "KUBE-PROXY-FIREWALL tests for addresses of the node, which no forwarded packet has; INPUT has "
        "already called it",
    ),
    Proof(
        r"^target: filter_OUTPUT: jump filter_KUBE-IPVS-OUT-FILTER .*→ jump filter_KUBE-IPVS-FILTER ",
        "KUBE-IPVS-FILTER rejects packets to the node's own addresses, and INPUT calls it, too",
    ),
    Proof(
        r"^side: filter_KUBE-SOURCE-RANGES-FIREWALL: ip6? d.*@set_KUBE-(6-)?LOAD-BALANCER-SOURCE-IP "
        r".*→ ip6? saddr . meta l4proto . th d",
        "each element has the same address as source and destination, and a port that no other element has",
    ),
)

_IPVS_IP4: Final = (
    Proof(
        r"^\S+: set_KUBE-LOAD-BALANCER-SOURCE-IP: (?P<own>\S+) \. tcp \. 443 \. (?P=own) ",
        "only the node itself sends from this address to itself, and masquerading has changed the source of "
        "its packets to this service before INPUT tests it",
    ),
)

PROOFS: Final[dict[str, tuple[Proof, ...]]] = {
    "kind": (*_ANYWHERE, *_KIND),
    "cluster": (*_ANYWHERE, *_CLUSTER),
    "cluster6": (*_ANYWHERE, *_CLUSTER),
    "kube-real": _ANYWHERE,
    "kube-real6": _ANYWHERE,
    "kube-ipvs": (*_ANYWHERE, *_IPVS, *_IPVS_IP4),
    "kube-ipvs6": (*_ANYWHERE, *_IPVS),
}
"""The known proofs for each ruleset, tried in order."""


def proof_of(ruleset: str, subject: str, fault: Fault) -> Proof | None:
    """Return the first proof that applies to ``fault`` in ``ruleset``'s translation ``subject``, or None."""
    for proof in PROOFS.get(ruleset, ()):
        if proof.covers(subject, fault):
            return proof
    return None
