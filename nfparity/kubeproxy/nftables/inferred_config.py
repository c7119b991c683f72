"""Configuration of kube-proxy's nftables mode that no iptables dump contains, inferred from the node."""

from __future__ import annotations

from backends.model.node import Node
from nfparity.kubeproxy.state import KubeProxyState
from translate.dataclass import dataclass
from translate.ir import Family, Interval, format_address

__all__ = ["InferredConfig", "infer_config"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredConfig:
    """The inferred configuration, with the assumptions and their reasons, one sentence each.

    ``node_port_ips`` are the addresses at which node ports answer; None: every local address.
    ``service_cidrs`` are the networks of cluster IPs that kube-proxy knows. ``local`` are the addresses of
    endpoints that are assumed to be on this node because no rule shows it.
    """

    node_port_ips: tuple[int, ...] | None = None
    service_cidrs: tuple[Interval, ...] = ()
    local: frozenset[int] = frozenset()
    assumptions: tuple[str, ...] = ()


def infer_config(
    state: KubeProxyState, node: Node | None = None, *, service_cidrs: tuple[Interval, ...] = ()
) -> InferredConfig:
    """Return the configuration that follows from the rules and the node's facts.

    If the rules show ``--nodeport-addresses``, node ports answer at the listed addresses. Otherwise they
    answer at the node's primary address, the default of the nftables mode: the first address of the device of
    the default route. An endpoint is assumed to be on the node if the route to it has no gateway. Without a
    node, node ports answer at every local address, and endpoints without other information are assumed to be
    local.
    """
    notes: list[str] = []
    ips: tuple[int, ...] | None = None
    loopback = _loopback(state.family)
    if state.node_port_addresses is not None:
        ips = tuple(a for a in state.node_port_addresses if a not in loopback)
        notes.append("--nodeport-addresses keeps the value that the rules show")
    elif node is not None:
        primary = primary_address(node, state.family)
        ips = () if primary is None else (primary,)
        shown = "none" if primary is None else format_address(state.family, primary)
        notes.append(f"--nodeport-addresses becomes its default, the node's primary address: {shown}")
    else:
        notes.append("the node's addresses are not known: node ports answer at every local address")
    unknown = {e.address for s in state.services for e in s.endpoints if e.local is None}
    local = frozenset(unknown if node is None else {a for a in unknown if _on_link(node, state.family, a)})
    if unknown:
        have = "has" if len(local) == 1 else "have"
        how = "this is assumed" if node is None else f"{len(local)} {have} a route without a gateway"
        which = "1 endpoint is" if len(unknown) == 1 else f"{len(unknown)} endpoints are"
        notes.append(f"no rule shows whether {which} on the node: {how}")
    return InferredConfig(
        node_port_ips=ips, service_cidrs=service_cidrs, local=local, assumptions=tuple(notes)
    )


def primary_address(node: Node, family: Family) -> int | None:
    """Return the first address of the default route's device, otherwise of any device."""
    defaults = [r.dev for r in node.main_routes(family) if _is_all(r.dst, family)]
    devices = sorted(node.interfaces, key=lambda i: i.name not in defaults)
    for device in devices:
        for address in device.addresses:
            if address.family is family and not _is_link_local(address.value, family):
                return address.value
    return None


def _is_all(dst: Interval, family: Family) -> bool:
    return dst.prefix_length(family.bits) == 0


def _is_link_local(address: int, family: Family) -> bool:
    return family is Family.IP6 and address >> 118 == 0xFE80 >> 6


def _loopback(family: Family) -> Interval:
    return Interval.prefix(0x7F000000, 8, 32) if family is Family.IP else Interval.point(1)


def _on_link(node: Node, family: Family, address: int) -> bool:
    """Return whether an address is the node's own, or its most specific route has no gateway."""
    best: tuple[int, bool] = (-1, False)
    for device in node.interfaces:
        for own in device.addresses:
            if own.family is family:
                if own.value == address:
                    return True
                if address in own.network:
                    best = max(best, (own.prefix_length, _is_pods(node, device.name)))
    for route in node.main_routes(family):
        length = route.dst.prefix_length(family.bits)
        if length is not None and address in route.dst:
            best = max(best, (length, route.via is None and _is_pods(node, route.dev)))
    return best[1]


def _is_pods(node: Node, device: str) -> bool:
    """Return whether a device can lead to pods of the node: none of its routes has a gateway."""
    return all(route.via is None for route in node.routes if route.dev == device)
