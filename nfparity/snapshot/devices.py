"""The node's interfaces, from the output of ``ip -j addr`` (with or without ``-d``).

``notes`` list properties of devices that a :class:`~backends.model.node.Node` cannot represent. Each note
names the assumption made instead, because the notes become the node's assumptions.
"""

from __future__ import annotations

from typing import Final

from backends.model.node import Address, Interface, Route, is_device_name
from nfparity.snapshot.jsonfile import read_list
from translate.dataclass import dataclass, replace
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Interval, Origin, parse_address
from translate.jsoninput import JsonObject

__all__ = ["Devices", "read_devices"]

_FAMILIES: Final = {"inet": Family.IP, "inet6": Family.IP6}
_LINK_LOCAL6: Final = 0xFE80 << 112
_PORT_OF: Final = ("bridge", "bond", "team")


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Interfaces, routes that their addresses imply (to the other end of a link), and notes."""

    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...]
    left_out: frozenset[str]
    """Devices that are not among the interfaces, including ``lo``."""
    notes: tuple[str, ...]


def read_devices(data: bytes, *, name: str) -> Devices:
    """Read ``addr.json``. Raises ParseError for anything that is not output of ``ip -j addr``.

    Ports of bridges, bonds and teams are left out, because their packets enter at the master
    (``rx_handler``). A device that is down, such as ``kube-ipvs0``, keeps its IPv4 addresses, which are still
    local (``fib_add_ifaddr``), but without connected networks.
    """
    interfaces: list[Interface] = []
    routes: list[Route] = []
    left_out: set[str] = set()
    notes: list[str] = []
    kinds: dict[str, str] = {}
    elsewhere: list[Address] = []
    listed = read_list(data, name=name)
    for entry in listed:
        device = entry.take("ifname")
        if not isinstance(device, str) or not is_device_name(device):
            raise entry.error("ifname", "expected the name of an interface")
        if device in kinds:
            raise entry.error("ifname", "an interface is listed twice")
        kinds[device] = _kind(entry.data)
    for entry in listed:
        fields = entry.data
        device = str(fields["ifname"])
        master = fields.get("master")
        if device == "lo":
            left_out.add(device)
            elsewhere = _other_loopback(entry)
            continue
        if isinstance(master, str) and kinds.get(master, "bridge") in _PORT_OF:
            left_out.add(device)
            notes.append(f"no interface {device}: it is a port of {master}, where its packets enter")
            continue
        if isinstance(master, str):
            notes.append(f"interface {device} without its master {master} ({kinds[master]})")
        if fields.get("link_type", "ether") != "ether":
            notes.append(f"interface {device} as an Ethernet device (it is: {fields['link_type']})")
        flags = fields.get("flags")
        up = not isinstance(flags, list) or "UP" in flags
        addresses, brought, more_notes = _addresses(entry, device, up=up)
        if not up and not addresses:
            left_out.add(device)  # no packet enters or leaves by it
            continue
        if not up:
            notes.append(f"interface {device} up, but without connected networks (it is down)")
        group, unknown = _group(fields)
        notes += [f"interface {device} in group 0 (its group is {unknown})"] if unknown else []
        interfaces.append(Interface(device, addresses, group))
        routes += brought
        notes += more_notes
    if not interfaces:
        place = Origin(name, 1, 1)
        raise ParseError((Diagnostic(place, "no interface except lo; a node needs at least one"),))
    if elsewhere:
        # An address is local on any device; the last address of a device is never selected as a source.
        first = interfaces[0]
        interfaces[0] = replace(first, addresses=(*first.addresses, *elsewhere))
        notes += [f"address {address} on {first.name} (it is on lo)" for address in elsewhere]
    return Devices(
        interfaces=tuple(interfaces), routes=tuple(routes), left_out=frozenset(left_out), notes=tuple(notes)
    )


def _kind(link: dict[str, object]) -> str:
    info = link.get("linkinfo")
    kind = info.get("info_kind") if isinstance(info, dict) else None
    # Without -d the kind of a master is unknown; nearly all are bridges.
    return kind if isinstance(kind, str) else "bridge"


def _group(link: dict[str, object]) -> tuple[int, str]:
    """Return the number of a device's group, or 0 and the name of a group whose number is not known."""
    name = str(link.get("group", "default"))
    if name == "default":
        return 0, ""
    return (int(name), "") if name.isdecimal() else (0, f'"{name}", whose number is not known')


def _addresses(
    link: JsonObject, device: str, *, up: bool
) -> tuple[tuple[Address, ...], list[Route], list[str]]:
    addresses: list[Address] = []
    routes: list[Route] = []
    notes: list[str] = []
    for entry in _entries(link):
        family = _FAMILIES.get(str(entry.data.get("family")))
        if family is None:
            continue
        address = _address(entry, family, "local")
        if family is Family.IP6 and Interval.prefix(_LINK_LOCAL6, 64, 128).low == address.value & -(1 << 64):
            continue  # link-local addresses: a node under test has none, and no compared packet uses them
        if not up:
            if family is Family.IP:
                addresses.append(Address(family, address.value, family.bits))
            continue
        if entry.data.get("tentative") or entry.data.get("dadfailed"):
            notes.append(f"no address {address} on {device}: it is tentative or a duplicate")
            continue
        if entry.has("address"):
            peer = _address(entry, family, "address")
            address = Address(family, address.value, family.bits)
            routes.append(Route(family=family, dst=peer.network, dev=device))
        addresses.append(address)
    return tuple(addresses), routes, notes


def _other_loopback(link: JsonObject) -> list[Address]:
    """Return the addresses on ``lo`` that not every node has, each without its network."""
    addresses = []
    for entry in _entries(link):
        family = _FAMILIES.get(str(entry.data.get("family")))
        if family is None:
            continue
        value = _address(entry, family, "local").value
        implied = value >> 24 == 127 if family is Family.IP else value == 1
        if not implied:
            addresses.append(Address(family, value, family.bits))
    return addresses


def _entries(link: JsonObject) -> list[JsonObject]:
    entries = link.data.get("addr_info", [])
    if not isinstance(entries, list):
        raise link.error("addr_info", "expected a list of objects")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise link.error("addr_info", "expected an object", index=index)
    return [link.child("addr_info", entry, index=index) for index, entry in enumerate(entries) if entry]


def _address(entry: JsonObject, family: Family, key: str) -> Address:
    text, length = entry.data.get(key), entry.data.get("prefixlen")
    try:
        value = parse_address(family, str(text))
    except ValueError as e:
        raise entry.error(key, str(e)) from e
    if not isinstance(length, int) or isinstance(length, bool) or not 0 <= length <= family.bits:
        raise entry.error("prefixlen", f"not a prefix length of IPv{family.version}")
    return Address(family, value, length)
