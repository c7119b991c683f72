"""Addresses, routes, policy rules, ipsets and nftables: the output of the node's own tools."""

from __future__ import annotations

import json
from pathlib import Path

from nfparity.capture.tools import Notes, Tool, Tools

__all__ = ["read_network"]

_ASKED = {
    "addr.json": ("-j", "-d", "addr"),
    "route.json": ("-j", "-4", "route", "show", "table", "all"),
    "route6.json": ("-j", "-6", "route", "show", "table", "all"),
    "rule.json": ("-j", "-4", "rule"),
    "rule6.json": ("-j", "-6", "rule"),
}


def read_network(tools: Tools, notes: Notes, sys: Path) -> dict[str, bytes]:
    """Return the files; add a note for each part that cannot be read."""
    files: dict[str, bytes] = {}
    ip = tools.find("ip")
    if ip is None:
        notes.add("ip is missing: no addresses, routes and routing rules")
    else:
        for name, words in _ASKED.items():
            data = _json(tools, notes, ip, words)
            if data is not None:
                files[name] = data
    nft = tools.find("nft")
    if nft is None:
        notes.add("nft is missing: no nftables rules")
    else:
        data = _json(tools, notes, nft, ("-j", "list", "ruleset"))
        if data is not None:
            files["nft.json"] = data
    # Listing sets would load the module ip_set. If it is present, built in or loaded, this directory exists.
    if (sys / "module" / "ip_set").is_dir():
        ipset = tools.find("ipset")
        if ipset is None:
            notes.add("ipset is missing: no ipsets")
        else:
            text = tools.read(ipset, "save")
            if text:
                files["ipset-save"] = text
    return files


def _json(tools: Tools, notes: Notes, tool: Tool, words: tuple[str, ...]) -> bytes | None:
    data = tools.read(tool, *words)
    if data is None:
        return None
    if not data.strip():
        return b"[]\n"  # iproute2 prints nothing for an empty list
    try:
        json.loads(data)
    except ValueError:
        # busybox has its own ip, and iproute2 before 4.17 does not support -j for some of these.
        notes.add(f"{tool.name} {' '.join(words)} prints no JSON; it is too old, or built without JSON")
        return None
    return data
