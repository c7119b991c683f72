"""The ruleset that kube-proxy's nftables mode would load in place of its iptables rules."""

from __future__ import annotations

from backends.model.node import Node
from nfparity.kubeproxy.nftables.inferred_config import InferredConfig, infer_config
from nfparity.kubeproxy.nftables.layout import Layout, layout_of
from nfparity.kubeproxy.nftables.script import Script
from nfparity.kubeproxy.nftables.serving import ServiceWriter
from nfparity.kubeproxy.nftables.skeleton import Words, write_skeleton
from nfparity.kubeproxy.service import Service
from nfparity.kubeproxy.state import KubeProxyState, Mode
from translate.dataclass import dataclass
from translate.errors import InputError

__all__ = ["NftablesMode", "nftables_mode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NftablesMode:
    """A ruleset: ``text`` is input for ``nft -f`` that adds one table; ``assumptions`` are assumed facts."""

    version: str
    text: str
    assumptions: tuple[str, ...]


def nftables_mode(
    state: KubeProxyState,
    version: str,
    node: Node | None = None,
    config: InferredConfig | None = None,
) -> NftablesMode:
    """Return the ruleset that kube-proxy of a Kubernetes version would load in nftables mode.

    Without ``config``, it is inferred from the rules and ``node`` (:func:`infer_config`). Raises InputError
    for an unknown version, and for a state without the endpoints of services.
    """
    layout = layout_of(version)
    if state.mode is Mode.NONE or not state.endpoints_known:
        raise InputError(f"expected rules of kube-proxy's iptables mode, found: {state.mode}")
    config = config or infer_config(state, node)
    words = Words.of(state, layout)
    script = Script(state.family.value)
    write_skeleton(script, state, layout, config, words)
    writer = ServiceWriter(script, state, layout, config, words)
    for service in state.services:
        writer.write(service)
    remark = () if layout.remark is None else (layout.remark,)
    notes = (*remark, *config.assumptions, *_cidrs(layout, config), *_unknown(state.services))
    return NftablesMode(version=layout.version, text=script.text(), assumptions=notes)


def _cidrs(layout: Layout, config: InferredConfig) -> tuple[str, ...]:
    if config.service_cidrs:
        return ()
    why = (
        "no ServiceCIDR is given"
        if layout.knows_service_cidrs
        else "before 1.33 ServiceCIDRs are not watched"
    )
    return (f"{why}: packets to unassigned cluster IPs are not dropped",)


def _unknown(services: tuple[Service, ...]) -> list[str]:
    """Return notes about unknown facts, for which the defaults of the API are used."""
    questions = (
        ("no name: their chains are named after their addresses", [s.name is None for s in services]),
        (
            "no endpoints, so no rule shows their traffic policies: Cluster is assumed",
            [s.internal_local is None or (s.external and s.external_local is None) for s in services],
        ),
        (
            "no endpoints, so no rule shows their source ranges: none are assumed",
            [s.source_ranges is None for s in services],
        ),
        (
            "addresses that may be a load balancer's: no source range is applied there",
            [bool(s.outside_ips) for s in services],
        ),
        ("no known cluster IP", [s.cluster_ip is None for s in services]),
    )
    counted = ((sum(flags), what) for what, flags in questions)
    return [f"{n} service{'s have' if n > 1 else ' has'} {what}" for n, what in counted if n]
