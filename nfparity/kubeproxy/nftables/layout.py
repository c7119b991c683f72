"""Layouts of the table of kube-proxy's nftables mode, by Kubernetes version, as data.

The layout of 1.30 is that of a real kube-proxy's output. In 1.34 (kubernetes/kubernetes #132456; also in a
late patch release of 1.33, #133969) the base chains of type filter moved: the checks for endpoints and for
cluster IPs run after DNAT, so that pods and the node reach a load balancer whose endpoints are all on other
nodes. Since 1.36, rules set the masquerade mark themselves instead of jumping to a chain, the rule that marks
off-cluster traffic is at the head of ``services``, hairpin connections are in a set, and only endpoints of
services with session affinity have chains (#135800, #136499).
"""

from __future__ import annotations

from typing import Final

from translate.dataclass import dataclass, replace
from translate.errors import InputError

__all__ = ["LAYOUTS", "BaseChain", "Layout", "LayoutJump", "layout_of"]


@dataclass(frozen=True, slots=True)
class BaseChain:
    """A base chain; ``type`` is filter or nat."""

    name: str
    type: str
    hook: str
    priority: int


@dataclass(frozen=True, slots=True)
class LayoutJump:
    """A jump from a base chain; ``new``: only for new connections."""

    source: str
    target: str
    new: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The table of one Kubernetes minor version.

    ``marks_in_place``: rules set the masquerade mark themselves. ``hairpin_set``: connections of an endpoint
    with itself are matched by a set of local endpoints, after DNAT, and are not marked.
    ``endpoint_chains``: every endpoint has a chain, not only endpoints of services with affinity.
    ``knows_service_cidrs``: ServiceCIDR objects are watched without a feature gate.
    ``remark`` is an assumption about the version.
    """

    version: str
    base_chains: tuple[BaseChain, ...]
    jumps: tuple[LayoutJump, ...]
    marks_in_place: bool
    hairpin_set: bool
    endpoint_chains: bool
    knows_service_cidrs: bool
    remark: str | None = None


_DNAT, _SNAT = -100, 100
_BEFORE_DNAT = _DNAT - 10
_NAT_CHAINS: Final = (
    BaseChain("nat-prerouting", "nat", "prerouting", _DNAT),
    BaseChain("nat-output", "nat", "output", _DNAT),
    BaseChain("nat-postrouting", "nat", "postrouting", _SNAT),
)
_NAT_JUMPS: Final = (
    LayoutJump("nat-output", "services", new=False),
    LayoutJump("nat-prerouting", "services", new=False),
    LayoutJump("nat-postrouting", "masquerading", new=False),
)
_ENDPOINT_CHECKS: Final = (
    LayoutJump("filter-input", "nodeport-endpoints-check"),
    LayoutJump("filter-input", "service-endpoints-check"),
    LayoutJump("filter-forward", "service-endpoints-check"),
    LayoutJump("filter-output", "service-endpoints-check"),
)

_V1_30: Final = Layout(
    version="1.30",
    base_chains=(
        BaseChain("filter-prerouting", "filter", "prerouting", _BEFORE_DNAT),
        BaseChain("filter-input", "filter", "input", _BEFORE_DNAT),
        BaseChain("filter-forward", "filter", "forward", _BEFORE_DNAT),
        BaseChain("filter-output", "filter", "output", _BEFORE_DNAT),
        BaseChain("filter-output-post-dnat", "filter", "output", _DNAT + 10),
        *_NAT_CHAINS,
    ),
    jumps=(
        *_ENDPOINT_CHECKS,
        LayoutJump("filter-prerouting", "firewall-check"),
        LayoutJump("filter-output", "firewall-check"),
        *_NAT_JUMPS,
        LayoutJump("filter-forward", "cluster-ips-check"),
        LayoutJump("filter-output-post-dnat", "cluster-ips-check"),
    ),
    marks_in_place=False,
    hairpin_set=False,
    endpoint_chains=True,
    knows_service_cidrs=False,
)
_V1_33: Final = replace(
    _V1_30,
    version="1.33",
    knows_service_cidrs=True,
    remark="1.33 is assumed to be a release without the change k/k #133969; use 1.34 for releases with it",
)
_V1_34: Final = replace(
    _V1_33,
    version="1.34",
    base_chains=(
        BaseChain("filter-prerouting-pre-dnat", "filter", "prerouting", _BEFORE_DNAT),
        BaseChain("filter-output-pre-dnat", "filter", "output", _BEFORE_DNAT),
        BaseChain("filter-input", "filter", "input", 0),
        BaseChain("filter-forward", "filter", "forward", 0),
        BaseChain("filter-output", "filter", "output", 0),
        *_NAT_CHAINS,
    ),
    jumps=(
        *_ENDPOINT_CHECKS,
        LayoutJump("filter-prerouting-pre-dnat", "firewall-check"),
        LayoutJump("filter-output-pre-dnat", "firewall-check"),
        *_NAT_JUMPS,
        LayoutJump("filter-forward", "cluster-ips-check"),
        LayoutJump("filter-output", "cluster-ips-check"),
    ),
    remark=None,
)
_V1_36: Final = replace(_V1_34, version="1.36", marks_in_place=True, hairpin_set=True, endpoint_chains=False)

LAYOUTS: Final = {
    layout.version: layout
    for layout in (
        _V1_30,
        replace(_V1_30, version="1.31"),
        replace(_V1_30, version="1.32"),
        _V1_33,
        _V1_34,
        replace(_V1_34, version="1.35"),
        _V1_36,
        replace(
            _V1_36,
            version="1.37",
            remark="the gate KubeProxyNFTablesLocalhostNodePorts is assumed to be off, its default in 1.37",
        ),
    )
}
"""Layouts by minor version."""


def layout_of(version: str) -> Layout:
    """Return the layout of a version such as ``1.30`` or ``v1.30.4``. Raises InputError for unknown ones."""
    minor = ".".join(version.removeprefix("v").split(".")[:2])
    if minor not in LAYOUTS:
        known = tuple(LAYOUTS)
        raise InputError(f"unknown Kubernetes version {version!r}, expected {known[0]} to {known[-1]}")
    return LAYOUTS[minor]
