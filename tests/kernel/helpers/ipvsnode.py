"""Snapshots of a node in ipvs mode, which together show every difference of the second catalogue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from backends.model.node import Node, node_from_json
from backends.model.variant import Variant
from nfparity.snapshot import Snapshot
from translate.ir import Family
from translate.read import read_ipsets, read_ruleset, with_sets

__all__ = ["NODES", "IpvsNode"]

RULESETS = Path(__file__).parents[2] / "corpus/rulesets"


@dataclass(frozen=True, slots=True, kw_only=True)
class IpvsNode:
    """A variant of the node of the corpus.

    ``shows`` are the differences that it has. ``only`` are the flows that are sent, by id or by difference;
    empty: all.
    ``without`` are words; rules that contain one of them are left out. ``added`` are further rules of the
    filter table. ``without_servers`` is the address of a virtual service that loses its servers.
    """

    shows: tuple[str, ...]
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    added: str = ""
    scheduler: str = "rr"
    family: Family = Family.IP
    objects: str | None = None
    without_servers: str = ""

    @property
    def node(self) -> Node:
        """The node."""
        return node_from_json((self._folder / "node.json").read_text(), name="node.json")

    @property
    def _folder(self) -> Path:
        return RULESETS / ("kube-ipvs" if self.family is Family.IP else "kube-ipvs6")

    @property
    def _rules(self) -> str:
        return "iptables-save" if self.family is Family.IP else "ip6tables-save"

    def files(self) -> dict[str, str]:
        """Return the rules, the ipsets and the virtual services."""
        lines = (self._folder / f"rules.{self._rules}").read_text().splitlines(keepends=True)
        rules = "".join(line for line in lines if not any(word in line for word in self.without))
        virtual = (self._folder / "ipvs-save").read_text()
        return {
            self._rules: rules.replace("COMMIT\n", f"{self.added}COMMIT\n", 1),
            "ipset-save": (self._folder / "ipset-save").read_text(),
            "ipvs-save": self._without_servers(virtual.replace("-s rr", f"-s {self.scheduler}")),
        }

    def _without_servers(self, virtual: str) -> str:
        lines = virtual.splitlines(keepends=True)
        lost = f"-a -t {self.without_servers} "
        return "".join(line for line in lines if not self.without_servers or not line.startswith(lost))

    def snapshot(self) -> Snapshot:
        """Return the snapshot."""
        files = self.files()
        ruleset = read_ruleset(files[self._rules].encode(), name=self._rules)
        sets = read_ipsets(files["ipset-save"].encode(), name="ipset-save")
        return Snapshot(
            name="ipvs-node",
            rules={(Variant.LEGACY, self.family): with_sets(ruleset, sets)},
            node=self.node,
            ipvs=files["ipvs-save"],
            objects=self.objects,
        )


_FIRST = ("I02", "I03", "I04", "I05", "I06", "I07", "I08", "I12", "I13", "I14", "I15")
_SOME = (("tcp", "outside"), ("udp", "pod"), ("tcp", "endpoint"), ("udp", "node"))
_LOCAL_SERVICE = json.dumps(
    {
        "services": [
            {
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {
                    "clusterIP": "10.96.20.7",
                    "externalTrafficPolicy": "Local",
                    "ports": [{"name": "http", "port": 80, "nodePort": 31443, "protocol": "TCP"}],
                },
            }
        ]
    }
)
_ADDRESSES = ("I01", "I02", "I03")

NODES = {
    "kube-proxy 1.26": IpvsNode(shows=_FIRST),
    # Before KUBE-IPVS-FILTER, the node answered at every address of a service.
    "kube-proxy 1.25": IpvsNode(
        shows=_ADDRESSES, only=_ADDRESSES, without=("KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER")
    ),
    "IPv6": IpvsNode(
        shows=("I02", "I03", "I07", "I12"),
        only=(
            *("I02", "I03", "I04"),
            *(f"service/[fd00:10:96::a]:53/{protocol}/{client}" for protocol, client in _SOME),
        ),
        family=Family.IP6,
    ),
    "policy Local": IpvsNode(
        shows=("I09",),
        only=("service/172.18.0.3:31443/tcp/pod", "service/172.18.0.3:31443/tcp/outside"),
        objects=_LOCAL_SERVICE,
    ),
    "policy Local without endpoints": IpvsNode(
        shows=("I09",),
        only=("service/172.18.0.3:31443/tcp/pod", "service/172.18.0.3:31443/tcp/node"),
        objects=_LOCAL_SERVICE,
        without_servers="172.18.0.3:31443",
    ),
    "firewall in INPUT": IpvsNode(
        shows=("I10",),
        only=("service/10.96.0.1:443/tcp/outside", "service/10.96.0.10:53/udp/outside"),
        added="-A INPUT -i eth0 -p udp -m udp --dport 53 -j DROP\n",
    ),
    "firewall in FORWARD": IpvsNode(
        shows=("I11",),
        only=(
            *("service/10.96.0.1:443/tcp/outside", "service/10.96.0.1:443/tcp/pod"),
            *("service/10.96.0.10:53/udp/outside", "service/10.96.0.10:53/udp/pod"),
        ),
        added="-A FORWARD -j DROP\n",
    ),
    "scheduler sh": IpvsNode(
        shows=("I07",),
        only=("service/10.96.0.10:53/tcp/outside", "service/10.96.0.10:53/udp/pod"),
        scheduler="sh",
    ),
}
