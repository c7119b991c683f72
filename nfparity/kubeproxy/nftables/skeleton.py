"""The table of kube-proxy without any service (``setupNFTables``)."""

from __future__ import annotations

from nfparity.kubeproxy.nftables.inferred_config import InferredConfig
from nfparity.kubeproxy.nftables.layout import Layout
from nfparity.kubeproxy.nftables.script import Script
from nfparity.kubeproxy.state import KubeProxyState
from translate.dataclass import dataclass
from translate.ir import Family, Interval, Name, format_address

__all__ = ["Words", "write_skeleton"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Spellings of rules that depend on family and configuration.

    ``mark`` is the end of a rule that marks packets for masquerading. ``from_pods`` and ``not_from_pods`` are
    empty if pods cannot be distinguished from other sources.
    """

    ip: str
    address: str
    mark: str
    from_pods: str
    not_from_pods: str

    @classmethod
    def of(cls, state: KubeProxyState, layout: Layout) -> Words:
        """Return the spellings for a state of kube-proxy and the layout of its version."""
        v4 = state.family is Family.IP
        mark = f"mark set mark or {mark_text(state)}"
        from_pods, not_from_pods = _pods(state)
        return cls(
            ip=state.family.value,
            address="ipv4_addr" if v4 else "ipv6_addr",
            mark=mark if layout.marks_in_place else "jump mark-for-masquerade",
            from_pods=from_pods,
            not_from_pods=not_from_pods,
        )


def mark_text(state: KubeProxyState) -> str:
    """Return the masquerade mark; bit 14, the default, if the rules show none."""
    return f"{state.mark if state.mark is not None else 1 << 14:#010x}"


def _pods(state: KubeProxyState) -> tuple[str, str]:
    match state.pods:
        case None:
            return "", ""
        case Interval() as network:
            length = network.prefix_length(state.family.bits)
            text = f"{format_address(state.family, network.low)}/{length}"
            return f"{state.family} saddr {text}", f"{state.family} saddr != {text}"
        case Name(text=text, wildcard=wildcard):
            name = f'"{text}*"' if wildcard else f'"{text}"'
            return f"iifname {name}", f"iifname != {name}"


def write_skeleton(
    script: Script, state: KubeProxyState, layout: Layout, config: InferredConfig, words: Words
) -> None:
    """Write base chains, jumps, sets, maps and the rules that all services share."""
    for base in layout.base_chains:
        script.chain(base.name, f"type {base.type} hook {base.hook} priority {base.priority}")
    for jump in layout.jumps:
        script.chain(jump.target)
        script.rule(jump.source, "ct state new" if jump.new else "", f"jump {jump.target}")
    _masquerading(script, state, layout, words)
    _declare(script, words, config)
    _checks(script, state, config, words)
    _dispatch(script, state, layout, config, words)


def _masquerading(script: Script, state: KubeProxyState, layout: Layout, words: Words) -> None:
    mark = mark_text(state)
    if not layout.marks_in_place:
        script.chain("mark-for-masquerade")
        script.rule("mark-for-masquerade", f"mark set mark or {mark}")
        script.rule("masquerading", f"mark and {mark} == 0 return")
        script.rule("masquerading", f"mark set mark xor {mark}")
        script.rule("masquerading", "masquerade fully-random")
    else:
        own = f"mark and {mark} != 0 mark set mark xor {mark}"
        script.rule("masquerading", own, "masquerade fully-random")
    if layout.hairpin_set:
        kind = f"{words.address} . {words.address} . inet_proto . inet_service"
        script.declare("set", "hairpin-connections", f'type {kind} ; comment "service hairpin connections"')
        key = f"{words.ip} saddr . {words.ip} daddr . meta l4proto . th dport"
        script.rule("masquerading", f"ct status dnat {key} @hairpin-connections masquerade fully-random")


def _declare(script: Script, words: Words, config: InferredConfig) -> None:
    place = f"type {words.address} . inet_proto . inet_service : verdict"
    port = "type inet_proto . inet_service : verdict"
    addresses = f"type {words.address}"
    declared = [
        ("set", "cluster-ips", addresses, "Active ClusterIPs"),
        (
            "map",
            "no-endpoint-services",
            place,
            "vmap to drop or reject packets to services with no endpoints",
        ),
        (
            "map",
            "no-endpoint-nodeports",
            port,
            "vmap to drop or reject packets to service nodeports with no endpoints",
        ),
        ("map", "firewall-ips", place, "destinations that are subject to LoadBalancerSourceRanges"),
        ("map", "service-ips", place, "ClusterIP, ExternalIP and LoadBalancer IP traffic"),
        ("map", "service-nodeports", port, "NodePort traffic"),
    ]
    if config.node_port_ips is not None:
        declared.append(("set", "nodeport-ips", addresses, "IPs that accept NodePort traffic"))
    for kind, name, what, comment in declared:
        script.declare(kind, name, f'{what} ; comment "{comment}"')
    script.chain("reject-chain", 'comment "helper for @no-endpoint-services / @no-endpoint-nodeports"')
    script.rule("reject-chain", "reject")


def _checks(script: Script, state: KubeProxyState, config: InferredConfig, words: Words) -> None:
    place = f"{words.ip} daddr . meta l4proto . th dport"
    known = f"{words.ip} daddr @cluster-ips"
    script.rule("cluster-ips-check", known, "reject", comment="Reject traffic to invalid ports of ClusterIPs")
    if config.service_cidrs:
        listed = ",".join(
            f"{format_address(state.family, c.low)}/{c.prefix_length(state.family.bits)}"
            for c in config.service_cidrs
        )
        comment = "Drop traffic to unallocated ClusterIPs"
        script.rule("cluster-ips-check", f"{words.ip} daddr {{ {listed} }} drop", comment=comment)
    script.rule("service-endpoints-check", place, "vmap @no-endpoint-services")
    port = "meta l4proto . th dport vmap @no-endpoint-nodeports"
    if config.node_port_ips is None:
        script.rule("nodeport-endpoints-check", _not_localhost(state.family), port)
    else:
        script.rule("nodeport-endpoints-check", f"{words.ip} daddr @nodeport-ips", port)
    script.rule("firewall-check", place, "vmap @firewall-ips")


def _dispatch(
    script: Script, state: KubeProxyState, layout: Layout, config: InferredConfig, words: Words
) -> None:
    if layout.marks_in_place and state.masquerade_all:
        comment = "masquerade all clusterIP traffic"
        script.rule("services", f"{words.ip} daddr @cluster-ips", words.mark, comment=comment)
    elif layout.marks_in_place and words.not_from_pods:
        comment = "masquerade clusterIP traffic from outside cluster"
        strangers = f"{words.ip} daddr @cluster-ips {words.not_from_pods}"
        script.rule("services", strangers, words.mark, comment=comment)
    script.rule("services", f"{words.ip} daddr . meta l4proto . th dport vmap @service-ips")
    port = "meta l4proto . th dport vmap @service-nodeports"
    if config.node_port_ips is None:
        script.rule("services", "fib daddr type local", _not_localhost(state.family), port)
        return
    script.rule("services", f"{words.ip} daddr @nodeport-ips", port)
    for address in config.node_port_ips:
        script.element("nodeport-ips", format_address(state.family, address))


def _not_localhost(family: Family) -> str:
    return "ip daddr != 127.0.0.0/8" if family is Family.IP else "ip6 daddr != ::1"
