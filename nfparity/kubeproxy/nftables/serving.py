"""Elements and chains of one service in kube-proxy's nftables mode (the loop of ``syncProxyRules``)."""

from __future__ import annotations

from collections.abc import Iterable

from nfparity.kubeproxy.nftables.inferred_config import InferredConfig
from nfparity.kubeproxy.nftables.layout import Layout
from nfparity.kubeproxy.nftables.names import endpoint_base, service_base
from nfparity.kubeproxy.nftables.script import Script
from nfparity.kubeproxy.nftables.skeleton import Words
from nfparity.kubeproxy.service import Endpoint, Service
from nfparity.kubeproxy.state import KubeProxyState
from translate.dataclass import dataclass
from translate.ir import Interval, format_address

__all__ = ["ServiceWriter"]

_REJECT = "goto reject-chain"


@dataclass(frozen=True, slots=True)
class ServiceWriter:
    """A writer of services into a script; unknown facts get the API's defaults."""

    script: Script
    state: KubeProxyState
    layout: Layout
    config: InferredConfig
    words: Words

    def write(self, service: Service) -> None:
        """Write one service."""
        _Writing(self, service).write()


class _Writing:
    def __init__(self, writer: ServiceWriter, service: Service) -> None:
        self._script = writer.script
        self._state = writer.state
        self._family = writer.state.family
        self._layout = writer.layout
        self._words = writer.words
        self._s = service
        self._base = service_base(service, self._family)
        self._spread = service.cluster_endpoints
        known = writer.config.local
        self._near = tuple(
            e for e in service.endpoints if e.local or (e.local is None and e.address in known)
        )
        self._external_local = bool(service.external_local)
        self._internal_local = bool(service.internal_local)
        self._has_any = bool(service.endpoints) or service.endpoints_elsewhere

    def write(self) -> None:
        s = self._s
        uses_spread = bool(self._spread) and (not self._internal_local or s.external)
        uses_near = bool(self._near) and (self._internal_local or (self._external_local and s.external))
        served_inside = bool(self._near if self._internal_local else self._spread)
        served_outside = bool(self._near if self._external_local else self._spread)
        reached = self._reached(spread=not self._internal_local or s.external)
        chains = [c for c, used in (("service", uses_spread), ("local", uses_near)) if used]
        for kind in chains:
            self._script.chain(self._chain(kind))
        self._cluster_ip(served=served_inside)
        self._outside(served=served_outside)
        if self._spread and s.external:
            self._external_chain(served=served_outside)
        self._firewall()
        if self._layout.hairpin_set:
            self._hairpins()
        if s.affinity:
            self._affinity_sets(reached)
        for kind, endpoints in (("service", self._spread), ("local", self._near)):
            if kind in chains:
                self._balance(self._chain(kind), endpoints)
        if self._layout.endpoint_chains or s.affinity:
            self._endpoint_chains(reached)

    def _reached(self, *, spread: bool) -> tuple[Endpoint, ...]:
        """Return the endpoints to which packets on this node may be sent."""
        return self._s.endpoints if spread else self._near

    def _chain(self, kind: str) -> str:
        return f"{kind}-{self._base}"

    def _host(self, address: int) -> str:
        return format_address(self._family, address)

    def _place(self, address: int) -> str:
        return f"{self._host(address)} . {self._s.protocol} . {self._s.port}"

    # Destinations of the service

    def _cluster_ip(self, *, served: bool) -> None:
        s, words = self._s, self._words
        if s.cluster_ip is None:
            return
        self._script.element("cluster-ips", self._host(s.cluster_ip))
        if not served:
            verdict = "drop" if self._has_any else _REJECT
            self._refuse("no-endpoint-services", self._place(s.cluster_ip), verdict)
            return
        chain = self._chain("local" if self._internal_local else "service")
        self._script.element("service-ips", self._place(s.cluster_ip), f"goto {chain}")
        if self._layout.marks_in_place or not (words.not_from_pods or self._state.masquerade_all):
            return
        here = f"{words.ip} daddr {self._host(s.cluster_ip)} {s.protocol} dport {s.port}"
        strangers = "" if self._state.masquerade_all else words.not_from_pods
        self._script.rule(chain, here, strangers, words.mark)

    def _outside(self, *, served: bool) -> None:
        s, verdict = self._s, "drop" if self._has_any else _REJECT
        target = f"goto {self._chain('external')}"
        for address in s.external_addresses:
            if self._spread:
                self._script.element("service-ips", self._place(address), target)
            if not served:
                self._refuse("no-endpoint-services", self._place(address), verdict)
        if s.node_port:
            key = f"{s.protocol} . {s.node_port}"
            if self._spread:
                self._script.element("service-nodeports", key, target)
            if not served:
                self._refuse("no-endpoint-nodeports", key, verdict)

    def _refuse(self, container: str, key: str, verdict: str) -> None:
        self._script.element(container, key, verdict, comment=self._s.label(self._family))

    def _external_chain(self, *, served: bool) -> None:
        chain, words, rule = self._chain("external"), self._words, self._script.rule
        self._script.chain(chain)
        everywhere = self._chain("service")
        if not self._external_local:
            rule(chain, words.mark, comment="masquerade" if self._layout.marks_in_place else "")
        else:
            own = "fib saddr type local"
            if words.from_pods:
                rule(chain, words.from_pods, f"goto {everywhere}", comment="short-circuit pod traffic")
            rule(chain, own, words.mark, comment="masquerade local traffic")
            rule(chain, own, f"goto {everywhere}", comment="short-circuit local traffic")
        if served:
            rule(chain, f"goto {self._chain('local' if self._external_local else 'service')}")

    def _firewall(self) -> None:
        s = self._s
        if not s.load_balancer_ips or not s.source_ranges:
            return
        chain = self._chain("firewall")
        self._script.chain(chain)
        sources = [self._network(r) for r in s.source_ranges]
        if s.allows_node:
            sources += [self._host(a) for a in s.load_balancer_ips]
        listed = " , ".join(sources)
        self._script.rule(chain, f"{self._words.ip} saddr != {{ {listed} }} drop")
        # 1.30 writes comments for these elements, 1.36 does not; they have no effect.
        comment = "" if self._layout.marks_in_place else s.label(self._family)
        for address in s.load_balancer_ips:
            self._script.element("firewall-ips", self._place(address), f"goto {chain}", comment=comment)

    def _network(self, network: Interval) -> str:
        return f"{self._host(network.low)}/{network.prefix_length(self._family.bits)}"

    # Endpoints

    def _endpoint(self, kind: str, endpoint: Endpoint) -> str:
        return f"{kind}-{endpoint_base(self._s, endpoint, self._family)}"

    def _affinity_sets(self, endpoints: Iterable[Endpoint]) -> None:
        for endpoint in endpoints:
            options = f"type {self._words.address} ; flags dynamic,timeout ; timeout {self._s.affinity}s"
            self._script.declare("set", self._endpoint("affinity", endpoint), options)

    def _balance(self, chain: str, endpoints: tuple[Endpoint, ...]) -> None:
        if not (self._layout.endpoint_chains or self._s.affinity):
            self._balance_in_place(chain, endpoints)
            return
        if self._s.affinity:
            for endpoint in endpoints:
                known = f"{self._words.ip} saddr @{self._endpoint('affinity', endpoint)}"
                self._script.rule(chain, known, f"goto {self._endpoint('endpoint', endpoint)}")
        choices = " , ".join(f"{n} : goto {self._endpoint('endpoint', e)}" for n, e in enumerate(endpoints))
        self._script.rule(chain, f"numgen random mod {len(endpoints)} vmap {{ {choices} }}")

    def _balance_in_place(self, chain: str, endpoints: tuple[Endpoint, ...]) -> None:
        protocol = f"meta l4proto {self._s.protocol}"
        if len(endpoints) == 1:
            self._script.rule(chain, protocol, f"dnat to {endpoints[0].text(self._family)}")
            return
        choices = " , ".join(f"{n} : {self._host(e.address)} . {e.port}" for n, e in enumerate(endpoints))
        pick = f"numgen random mod {len(endpoints)} map {{ {choices} }}"
        self._script.rule(chain, protocol, f"dnat {self._words.ip} addr . port to {pick}")

    def _hairpins(self) -> None:
        for endpoint in self._near:
            host = self._host(endpoint.address)
            self._script.element(
                "hairpin-connections", f"{host} . {host} . {self._s.protocol} . {endpoint.port}"
            )

    def _endpoint_chains(self, endpoints: Iterable[Endpoint]) -> None:
        s, words = self._s, self._words
        for endpoint in endpoints:
            chain = self._endpoint("endpoint", endpoint)
            self._script.chain(chain)
            if not self._layout.hairpin_set:
                self._script.rule(chain, f"{words.ip} saddr {self._host(endpoint.address)}", words.mark)
            if s.affinity:
                update = f"update @{self._endpoint('affinity', endpoint)} {{ {words.ip} saddr }}"
                self._script.rule(chain, update)
            self._script.rule(chain, f"meta l4proto {s.protocol} dnat to {endpoint.text(self._family)}")
