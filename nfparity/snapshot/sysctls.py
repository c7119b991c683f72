"""The captured sysctls that affect packets of the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from backends.model.node import DEFAULT_SYSCTLS
from backends.model.timeouts import TIMEOUT_DEFAULTS
from nfparity.snapshot.jsonfile import read_mapping
from translate.jsoninput import JsonObject, json_kind

__all__ = ["read_switches"]

_PER_DEVICE: Final = {
    "rp_filter": "net.ipv4.conf.{}.rp_filter",
    "route_localnet": "net.ipv4.conf.{}.route_localnet",
    "accept_local": "net.ipv4.conf.{}.accept_local",
    "src_valid_mark": "net.ipv4.conf.{}.src_valid_mark",
    "forwarding": "net.ipv4.conf.{}.forwarding",
}
"""Per-device sysctls of IPv4; ``send_redirects`` is off on every node under test."""

_REFLECTING: Final = {"net.ipv4.fwmark_reflect": "0", "net.ipv6.fwmark_reflect": "0"}
"""The sysctls by which an answer of the node has the mark of the packet that it answers."""

_TIMEOUTS: Final = {f"net.netfilter.nf_conntrack_{k}": str(v) for k, v in TIMEOUT_DEFAULTS.items()}


def read_switches(data: bytes, devices: tuple[str, ...], *, name: str) -> Mapping[str, str]:
    """Return the sysctls of these devices that differ from a node's defaults. Raises ParseError.

    ``sysctl.json`` is an object of values by name, in the spelling of ``sysctl -a`` (with a slash for each
    dot in a device's name).
    """
    listed = read_mapping(data, name=name)
    values = {key: _value(listed, key) for key in listed.data}
    known = {**_TIMEOUTS, **DEFAULT_SYSCTLS, **_REFLECTING}
    kept = {key: values[key] for key, usual in known.items() if key in values and values[key] != usual}
    forwards = values.get("net.ipv4.ip_forward", DEFAULT_SYSCTLS["net.ipv4.ip_forward"])
    for switch, form in _PER_DEVICE.items():
        usual = forwards if switch == "forwarding" else "0"
        # forwarding of "all" is another name of ip_forward (devinet_sysctl_forward).
        for device in () if switch == "forwarding" else ("all", "default"):
            key = form.format(device)
            if key in values and key not in known and values[key] != "0":
                kept[key] = values[key]
        if switch != "forwarding":
            usual = values.get(form.format("default"), "0")
        for device in devices:
            value = values.get(form.format(device.replace(".", "/")), usual)
            if value != usual:
                kept[form.format(device)] = value
    return kept


def _value(listed: JsonObject, key: str) -> str:
    value = listed.data[key]
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise listed.error(key, f"expected a value as text, found {json_kind(value)}")
    text = str(value).strip()
    if key.startswith(("net.netfilter.nf_conntrack_", "net.ipv4.conf.")) and not _is_number(text):
        wanted = key in _TIMEOUTS or key in DEFAULT_SYSCTLS or key.rpartition(".")[2] in _PER_DEVICE
        if wanted:
            raise listed.error(key, f"{text!r} is no number")
    return text


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
