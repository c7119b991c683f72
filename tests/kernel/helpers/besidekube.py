"""The rules of a real kube-proxy with those of a CNI plugin or a mesh on one node."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from backends.model.node import Node, node_from_json
from tests.kernel.helpers.assessed import REAL

__all__ = ["BESIDE", "beside_kube", "combined"]

_RULESETS: Final = REAL.parent
_NODE: Final = REAL / "dataplane.json"
_REPLACED: Final = {
    "calico": (("192.168.20.", "10.244.0."), ("172.30.", "10.99.")),
    "flannel": (("10.244.1.", "10.244.0."), ("192.168.10.2", "192.168.0.2"), ("8443", "8000")),
    "aws-vpc-cni": (("eni+", "cni0"), ("10.20.0.0/16", "10.244.0.0/16"), ("10.20.1.10", "192.168.0.3")),
    "ip-masq-agent": (
        ("10.8.1.", "10.244.0."),
        ("10.0.0.0/8", "172.31.0.0/16"),
        ("udp", "tcp"),
        ("port 53", "port 30080"),
        ("ports 53", "ports 30080"),
    ),
    "port-maps": (("--dport 9000:9001", "--dport 30080:30081"), ("/9001", "/30080"), ("pod3", "cni0")),
    "tailscale": (("-i tailscale0 -j MARK", "-i cni0 -j MARK"),),
}
"""Addresses, ports and devices of the rulesets, and those of the node of kube-proxy's rules."""

BESIDE: Final = tuple(_REPLACED)


def beside_kube(name: str) -> tuple[str, Node]:
    """Return the rules of kube-proxy with those of a component, and the node."""
    folder = _RULESETS / name
    file = folder / "rules.iptables-save"
    if not folder.is_dir():
        file = _RULESETS / "mark-schemes" / f"{name}.iptables-save"
    text = file.read_text()
    for old, new in _REPLACED[name]:
        text = text.replace(old, new)
    return combined((REAL / "rules.iptables-save").read_text(), text), _node()


def _node() -> Node:
    data = json.loads(_NODE.read_text())
    data["interfaces"]["eth0"].append("192.168.0.3/24")
    return node_from_json(json.dumps(data), name="node")


def combined(first: str, second: str) -> str:
    """Return two dumps as one: in each chain, the rules of the first come first.

    Lines of ``second`` that name a chain of kube-proxy are left out.
    """
    others = [line for line in second.splitlines() if "KUBE-" not in line]
    tables: dict[str, tuple[dict[str, str], list[str]]] = {}
    for lines in (first.splitlines(), others):
        table = ""
        for line in lines:
            if line.startswith("*"):
                table = line
                tables.setdefault(table, ({}, []))
            elif line.startswith(":"):
                chains = tables[table][0]
                name = line.split()[0]
                drops = line.split()[1] == "DROP"
                chains[name] = line if name not in chains or drops else chains[name]
            elif line.startswith(("-A", "[")):
                tables[table][1].append(line)
    return "".join(
        f"{table}\n{_lines(chains.values())}{_lines(rules)}COMMIT\n"
        for table, (chains, rules) in tables.items()
    )


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
