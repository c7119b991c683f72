from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

RULES = (
    "*nat\n:PREROUTING ACCEPT [0:0]\n"
    "-A PREROUTING -p tcp -m tcp --dport {} -j DNAT --to-destination {}:80\nCOMMIT\n"
)

ETH0 = {
    "ifname": "eth0",
    "flags": ["BROADCAST", "UP", "LOWER_UP"],
    "link_type": "ether",
    "addr_info": [
        {"family": "inet", "local": "192.0.2.2", "prefixlen": 24},
        {"family": "inet6", "local": "2001:db8::2", "prefixlen": 64},
        {"family": "inet6", "local": "fe80::2", "prefixlen": 64},
    ],
}
LO = {
    "ifname": "lo",
    "flags": ["LOOPBACK", "UP"],
    "link_type": "loopback",
    "addr_info": [
        {"family": "inet", "local": "127.0.0.1", "prefixlen": 8},
        {"family": "inet6", "local": "::1", "prefixlen": 128},
    ],
}
ROUTES = [
    {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []},
    {"dst": "192.0.2.0/24", "dev": "eth0", "protocol": "kernel", "prefsrc": "192.0.2.2", "flags": []},
]
"""As ``ip -j`` prints them."""


Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a snapshot from files by name; None leaves one out."""

    def made(**files: object) -> str:
        contents: dict[str, object] = {
            "iptables-save": RULES.format(80, "10.0.0.1"),
            "addr.json": [LO, ETH0],
            "route.json": ROUTES,
            **files,
        }
        folder = tmp_path / "node"
        folder.mkdir(exist_ok=True)
        for name, content in contents.items():
            if content is not None:
                (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return str(folder)

    return made
