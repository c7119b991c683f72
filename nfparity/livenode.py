"""The live node: devices, addresses, routes and sysctls of this network namespace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from backends.model.node import Node
from backends.testbed.command import run
from nfparity.snapshot.nodefacts import read_node
from translate.errors import MachineError

__all__ = ["live_node"]

_COMMANDS: Final = {
    "addr.json": ("ip", "-d", "-j", "addr"),
    "route.json": ("ip", "-4", "-j", "route", "show", "table", "all"),
    "route6.json": ("ip", "-6", "-j", "route", "show", "table", "all"),
    "rule.json": ("ip", "-4", "-j", "rule"),
    "rule6.json": ("ip", "-6", "-j", "rule"),
}
_SYSCTLS: Final = ("net/ipv4/ip_forward", "net/ipv4/conf", "net/ipv6/conf/all", "net/netfilter")


def live_node() -> Node:
    """Return the node; its assumptions list the facts that a copy cannot reproduce. Raises MachineError."""
    files = {}
    for name, command in _COMMANDS.items():
        done = run(command, inherit=True)
        if done.returncode:
            raise MachineError(f"{' '.join(command)}: {done.stderr.strip()}")
        files[name] = (done.stdout or "[]").encode()
    files["sysctl.json"] = json.dumps(_sysctls()).encode()
    node = read_node(files, name="this node")
    assert node is not None
    return node


def _sysctls() -> dict[str, str]:
    root, values = Path("/proc/sys"), {}
    for start in _SYSCTLS:
        place = root / start
        for file in (place,) if place.is_file() else place.rglob("*"):
            try:
                if file.is_file():
                    # Dots of a device's name are slashes, as sysctl -a prints them.
                    parts = (part.replace(".", "/") for part in file.relative_to(root).parts)
                    values[".".join(parts)] = file.read_text().strip()
            except OSError:
                continue  # write-only, or the device has just been removed
    return values
