"""Snapshots of nodes, and the expected outcomes of packets in their anonymised forms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.model.flow import Flow
from backends.model.node import Node, node_from_json
from harness.corpus.formats.jsonlines import write_flows
from nfparity.capture.anonymise.mapping import Mapping
from translate.ir import Family, format_address

RULESETS = Path(__file__).parents[5] / "corpus" / "rulesets"


@dataclass(frozen=True)
class Original:
    """Rules and their node; if ``generated``, a corpus is generated from the rules."""

    rules: str
    node: str
    generated: bool = True

    @property
    def family(self) -> Family:
        return Family.IP6 if "ip6tables" in self.rules else Family.IP

    def files(self) -> dict[str, bytes]:
        name = "ip6tables-save" if self.family is Family.IP6 else "iptables-save"
        path = RULESETS / self.rules
        node = node_from_json((RULESETS / self.node).read_text(), name=self.node)
        made = {name: path.read_bytes(), "meta.json": b'{"hostname": "test-node"}', **written(node)}
        for extra in ("ipset-save", "ipvs-save", "objects.json"):
            if (path.parent / extra).is_file():
                made[extra] = (path.parent / extra).read_bytes()
        return made


def written(node: Node) -> dict[str, bytes]:
    """Return the files that capture would write for this node."""
    addr = [
        {
            "ifname": i.name,
            "flags": ["UP"],
            "link_type": "ether",
            "addr_info": [
                {
                    "family": "inet" if a.family is Family.IP else "inet6",
                    "local": format_address(a.family, a.value),
                    "prefixlen": a.prefix_length,
                }
                for a in i.addresses
            ],
        }
        for i in node.interfaces
    ]
    routes: dict[Family, list[dict[str, Any]]] = {f: [] for f in Family}
    for i in node.interfaces:
        for a in i.addresses:
            if a.prefix_length < a.family.bits:
                network = f"{format_address(a.family, a.network.low)}/{a.prefix_length}"
                routes[a.family].append({"dst": network, "dev": i.name, "protocol": "kernel"})
    for r in node.routes:
        length = r.dst.prefix_length(r.family.bits)
        entry = {
            "dst": f"{format_address(r.family, r.dst.low)}/{length}" if length else "default",
            "dev": r.dev,
        }
        if r.via is not None:
            entry["gateway"] = format_address(r.family, r.via)
        routes[r.family].append(entry)
    files = {"addr.json": addr, "sysctl.json": dict(node.sysctls)}
    files["route.json"], files["route6.json"] = routes[Family.IP], routes[Family.IP6]
    return {name: json.dumps(data).encode() for name, data in files.items()}


def mapped(value: Any, mapping: Mapping, key: str = "") -> Any:
    """Return a flow or an outcome of the original in the form expected for the anonymised snapshot."""
    if isinstance(value, dict):
        return {k: mapped(v, mapping, k) for k, v in value.items()}
    if isinstance(value, list):
        made = [mapped(item, mapping, key) for item in value]
        # Branches stand in the order of their addresses.
        return sorted(made, key=json.dumps) if key == "outcomes" else made
    if isinstance(value, str) and key in ("in", "out"):
        return mapping.interface(value)
    if isinstance(value, str) and key in ("id", "why"):
        return ""
    return mapping.address(value) if isinstance(value, str) and mapping.is_address(value) else value


def lines_of(flows: tuple[Flow, ...]) -> list[Any]:
    return [json.loads(line) for line in write_flows(flows).splitlines()]


def moved_flows(flows: tuple[Flow, ...], mapping: Mapping) -> str:
    """Return the same flows for the anonymised node, as JSON Lines, with the same ids."""
    return "".join(json.dumps({**mapped(flow, mapping), "id": flow["id"]}) + "\n" for flow in lines_of(flows))
