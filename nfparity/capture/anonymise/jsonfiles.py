"""Anonymisation of the JSON files of a snapshot.

From the output of ``ip -j``, only keys that affect packets are kept; from API objects, only the labels that
kube-proxy reads.
"""

from __future__ import annotations

import re
from typing import Any

from nfparity.capture.anonymise.mapping import Mapping
from nfparity.capture.anonymise.words import KEYWORDS, NFT_NAMES

__all__ = [
    "anonymise_addresses",
    "anonymise_meta",
    "anonymise_nft",
    "anonymise_objects",
    "anonymise_routes",
    "anonymise_rules_of_routing",
    "anonymise_sysctls",
]

_DEVICE = frozenset("ifindex flags mtu operstate link_type link_index link_netnsid".split())
_ENTRY = frozenset(
    """family prefixlen scope valid_life_time preferred_life_time dynamic noprefixroute secondary deprecated
    tentative dadfailed nodad home mngtmpaddr temporary permanent metric""".split()
)
_ROUTE = frozenset("type table protocol scope metric flags pref weight onlink".split())
_RULE = frozenset(
    """priority table fwmark fwmask not action goto nop suppress_prefixlen suppress_ifgroup l3mdev ipproto tos
    sport sport_start sport_end sport_mask dport dport_start dport_end dport_mask uid_start uid_end tun_id
    srclen dstlen iif_detached oif_detached dscp dscp_mask flowlabel flowlabel_mask""".split()
)
_KNOWN_TABLES = ("local", "main", "default")
_LABELS = ("kubernetes.io/service-name", "kubernetes.io/hostname", "topology.kubernetes.io/zone",
           "topology.kubernetes.io/region", "service.kubernetes.io/headless",
           "service.kubernetes.io/service-proxy-name")  # fmt: skip
_ENUMS = frozenset(
    """apiVersion kind type protocol appProtocol ipFamilies ipFamilyPolicy ipFamily sessionAffinity
    addressType internalTrafficPolicy externalTrafficPolicy trafficDistribution status reason ipMode
    resourceVersion""".split()
)
_NFT_KEPT = frozenset(
    """family type hook policy op key protocol version release_name base mode result unit burst field level
    rate_unit burst_unit direction flags per dir""".split()
)

_NFT_EXPRESSIONS = frozenset(
    (
        *("exthdr", "tcp option", "ip option", "sctp chunk", "dccp option", "fib", "meta", "ct", "rt"),
        *("socket", "osf", "numgen", "jhash", "symhash", "ipsec", "payload", "limit", "log", "reject"),
        *("queue", "tunnel"),
    )
)
"""Expressions and statements that contain only keywords of nft, apart from the prefix of a log."""


def anonymise_addresses(data: Any, mapping: Mapping) -> Any:
    """Anonymise ``addr.json``: the interfaces and their addresses."""
    made = []
    for device in data:
        kept = {k: v for k, v in device.items() if k in _DEVICE}
        for key in ("ifname", "master", "link"):
            if isinstance(device.get(key), str):
                kept[key] = mapping.interface(device[key])
        group = device.get("group")
        if isinstance(group, str) and (group == "default" or group.isdecimal()):
            kept["group"] = group
        kind = device.get("linkinfo", {}).get("info_kind")
        if kind is not None:
            kept["linkinfo"] = {"info_kind": kind}
        entries = []
        for address in device.get("addr_info", []):
            entry = {k: v for k, v in address.items() if k in _ENTRY}
            for key in ("local", "address", "broadcast"):
                if key in address:
                    entry[key] = mapping.address(address[key])
                    mapping.network(address[key], address.get("prefixlen", 0))
            if "label" in address:
                entry["label"] = mapping.interface(address["label"])
            entries.append(entry)
        kept["addr_info"] = entries
        made.append(kept)
    return made


def anonymise_routes(data: Any, mapping: Mapping) -> Any:
    """Anonymise ``route.json`` and ``route6.json``."""
    return [_route(route, mapping) for route in data]


def _route(route: Any, mapping: Mapping) -> Any:
    kept = {k: v for k, v in route.items() if k in _ROUTE}
    if "table" in kept:
        kept["table"] = _table(kept["table"], mapping)
    for key in ("dst", "gateway", "prefsrc", "src", "from"):
        if key in route:
            kept[key] = mapping.address(route[key])
    if isinstance(route.get("dev"), str):
        kept["dev"] = mapping.interface(route["dev"])
    if isinstance(route.get("via"), dict):
        via = route["via"]
        kept["via"] = {"family": via.get("family"), "host": mapping.address(str(via.get("host")))}
    if isinstance(route.get("nexthops"), list):
        kept["nexthops"] = [_route(hop, mapping) for hop in route["nexthops"]]
    return kept


def anonymise_rules_of_routing(data: Any, mapping: Mapping) -> Any:
    """Anonymise ``rule.json`` and ``rule6.json``."""
    made = []
    for rule in data:
        kept = {k: v for k, v in rule.items() if k in _RULE}
        if "table" in kept:
            kept["table"] = _table(kept["table"], mapping)
        if "suppress_ifgroup" in kept:
            kept["suppress_ifgroup"] = _group(kept["suppress_ifgroup"], mapping)
        for key in ("src", "dst"):
            if key in rule:
                length = rule.get(f"{key}len")
                text = rule[key]
                kept[key] = mapping.address(text) if length is None else mapping.prefix(text, length)
        for key in ("iif", "oif"):
            if key in rule:
                kept[key] = mapping.interface(rule[key])
        made.append(kept)
    return made


def _group(value: Any, mapping: Mapping) -> Any:
    text = str(value)
    return value if text.isdigit() or text == "default" else mapping.name(text)


def _table(value: Any, mapping: Mapping) -> Any:
    text = str(value)
    return value if text.isdigit() or text in _KNOWN_TABLES else mapping.name(text)


def anonymise_sysctls(data: Any, mapping: Mapping) -> Any:
    """Anonymise ``sysctl.json``: values are kept, names of interfaces in keys are replaced."""
    made = {}
    for key, value in data.items():
        parts = key.split(".")
        if len(parts) == 5 and parts[2] in ("conf", "neigh") and parts[3] not in ("all", "default"):
            parts[3] = mapping.interface(parts[3].replace("/", ".")).replace(".", "/")
        made[".".join(parts)] = value
    return made


def anonymise_meta(data: Any, mapping: Mapping) -> Any:
    """Anonymise ``meta.json``: versions, times and names of kernel modules are kept."""
    kept = ("format", "time", "kernel", "tools", "stacks", "modules", "expressions")
    made = {key: data[key] for key in kept if key in data}
    made["anonymised"] = True
    if isinstance(data.get("hostname"), str):
        made["hostname"] = mapping.name(data["hostname"])
    notes = data.get("notes", [])
    made["notes"] = [mapping.comment(note) for note in notes] if isinstance(notes, list) else []
    return made


def anonymise_objects(data: Any, mapping: Mapping, key: str = "") -> Any:
    """Anonymise ``objects.json``: the API objects that kube-proxy watches."""
    if isinstance(data, dict):
        if key in ("labels", "annotations", "matchLabels", "selector"):
            return {k: mapping.name(str(v)) for k, v in data.items() if k in _LABELS}
        _learn_service(data, mapping)
        return {k: anonymise_objects(v, mapping, k) for k, v in data.items() if k != "managedFields"}
    if isinstance(data, list):
        return [anonymise_objects(item, mapping, key) for item in data]
    if not isinstance(data, str) or key in _ENUMS or key.endswith("Timestamp"):
        return data
    return mapping.address(data) if mapping.is_address(data) else mapping.name(data)


def _learn_service(data: Any, mapping: Mapping) -> None:
    """Learn the names that kube-proxy hashes, which comments do not always contain."""
    meta, spec = data.get("metadata"), data.get("spec")
    if mapping.learning and isinstance(meta, dict) and isinstance(spec, dict) and "ports" in spec:
        for port in spec["ports"] or ():
            name = port.get("name", "")
            colon = ":" if name else ""
            mapping.service(f"{meta.get('namespace')}/{meta.get('name')}{colon}{name}")


def anonymise_nft(data: Any, mapping: Mapping, key: str = "", device: bool = False) -> Any:
    """Anonymise ``nft.json``, the listing of libnftables. ``device``: strings here are interface names."""
    if isinstance(data, dict):
        return _nft_object(data, mapping, key, device)
    if isinstance(data, list):
        if key == "range" and len(data) == 2 and all(isinstance(item, str) for item in data):
            return list(mapping.address_range(*data))
        return [anonymise_nft(item, mapping, key, device) for item in data]
    if not isinstance(data, str) or key in _NFT_KEPT:
        return data
    if device or key in ("dev", "devices"):
        return mapping.interface(data)
    if mapping.is_address(data):
        return mapping.address(data)
    if key in ("comment", "prefix"):
        return mapping.comment(data)
    if data.startswith("@"):
        return "@" + mapping.chain(data[1:])
    if key in ("name", "table", "chain", "target", "set", "map", "counter", "quota", "limit", "ct helper"):
        return data if data in NFT_NAMES else mapping.chain(data)
    if data in KEYWORDS or data in mapping.interfaces or re.fullmatch(r"[\d.:*-]*", data):
        return mapping.interface(data) if data in mapping.interfaces - {"in", "out"} else data
    return mapping.name(data)


def _nft_object(data: Any, mapping: Mapping, of: str, device: bool) -> Any:
    if set(data) == {"addr", "len"} and isinstance(data["addr"], str):
        return {"addr": mapping.prefix(data["addr"], data["len"]), "len": data["len"]}
    made = {}
    of_match = "left" in data and _names_devices(data["left"])
    of_set = data.get("type") in ("ifname", ["ifname"])
    of_map = "key" in data and isinstance(data["key"], dict) and _names_devices(data["key"])
    for key, value in data.items():
        inner = device
        inner = (
            inner or (of_match and key == "right") or (of_set and key == "elem") or (of_map and key == "data")
        )
        if key == "xt" or (key == "map" and "type" in data):
            made[key] = value  # the name of an extension, or the type of a map's values
            continue
        if of in _NFT_EXPRESSIONS and key != "prefix" and _is_words(value):
            made[key] = value
            continue
        if key in ("drop", "accept", "return", "jump", "goto", "counter", "name", "table", "chain", "target"):
            inner = False
        made[key] = anonymise_nft(value, mapping, key, inner)
    return made


def _is_words(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


def _names_devices(expression: Any) -> bool:
    text = expression.get("meta", {}).get("key") if isinstance(expression, dict) else None
    return text in ("iifname", "oifname", "iif", "oif", "ibrname", "obrname", "sdifname")
