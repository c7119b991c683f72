"""The node's routes, from the output of ``ip -j route show table all``.

A :class:`~backends.model.node.Node` has routes with one next hop in any table but ``local``. ``notes`` list
everything else, each with the assumption made instead. Routes that the kernel adds by itself for every
address (the local table, multicast, subnet-router anycast, IPv6's unreachable default) are ignored.
"""

from __future__ import annotations

from typing import Final

from backends.model.node import Address, Interface, Route
from backends.model.routes import LOCAL, MAIN, ROUTE_TYPES
from nfparity.snapshot.jsonfile import read_list
from nfparity.snapshot.routingrules import TableNumbers
from translate.dataclass import dataclass, replace
from translate.ir import AddressType, Family, Interval, format_address, parse_address
from translate.jsoninput import JsonObject

__all__ = ["Routes", "read_routes", "with_networks"]

_KERNELS_OWN: Final = ("local", "broadcast", "multicast", "anycast")
_LINK_LOCAL6: Final = 0xFE80 << 112


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Routes of one family. ``connected`` are those that an address on the device may imply."""

    routes: tuple[Route, ...]
    connected: frozenset[tuple[str, Interval]]
    notes: tuple[str, ...]


def read_routes(
    data: bytes,
    *,
    name: str,
    family: Family,
    interfaces: tuple[Interface, ...],
    left_out: frozenset[str],
    tables: TableNumbers,
) -> Routes:
    """Return the routes in ``route.json`` or ``route6.json``. Raises ParseError for invalid contents.

    ``interfaces`` are the node's; routes of devices that are ``left_out`` are ignored, because the devices
    already have a note.
    """
    chosen: dict[tuple[int, Interval], tuple[int, Route]] = {}
    notes: list[str] = []
    connected: set[tuple[str, Interval]] = set()
    addresses = {a.value for i in interfaces for a in i.addresses}
    devices = {i.name: i for i in interfaces}
    for entry in read_list(data, name=name):
        fields = entry.data
        dst = _destination(entry, family)
        kind, table = str(fields.get("type", "unicast")), tables.number(fields.get("table", "main"))
        shown = _shown(fields, family, dst)
        if table is None:
            raise entry.error("table", "expected the name or number of a routing table")
        if table == LOCAL:
            if kind == "local" and not _is_own(fields, dst, addresses, family):
                notes.append(f"no route {shown}: only the addresses of interfaces are the node's own")
            continue
        if (table == MAIN and kind in _KERNELS_OWN) or _is_kernels_default(fields, kind):
            continue
        route_type = ROUTE_TYPES.get(kind)
        metric = _metric(fields)
        if route_type is None or (route_type is AddressType.LOCAL and fields.get("dev") != "lo"):
            notes.append(f"no route {shown}: a route of this type is not supported")
            continue
        if route_type is not AddressType.UNICAST:
            dev = "lo" if route_type is AddressType.LOCAL else ""
            _add(chosen, Route(family=family, dst=dst, dev=dev, table=table, type=route_type), metric, notes)
            continue
        hops = fields.get("nexthops")
        hop = entry
        if isinstance(hops, list) and hops and all(isinstance(h, dict) for h in hops):
            hop = entry.child("nexthops", hops[0], index=0)
            notes.append(f"route {shown} with only the first of its {len(hops)} next hops")
        device = hop.data.get("dev")
        if not isinstance(device, str):
            raise hop.error("dev", "a unicast route without a device")
        if device in left_out:
            continue
        if device not in devices:
            raise hop.error("dev", f"{device!r} is not among the interfaces")
        if _is_link_local(family, dst):
            continue
        flags = hop.data.get("flags", [])
        if isinstance(flags, list) and "dead" in flags:
            notes.append(f"no route {shown}: its device is dead")
            continue
        via = _gateway(hop, family)
        if hop.has("via"):
            notes.append(f"route {shown} without its gateway of the other family")
        if "prefsrc" in fields and not _is_first(str(fields["prefsrc"]), family, devices[device]):
            notes.append(f"route {shown} without its source address {fields['prefsrc']}")
        _add(chosen, Route(family=family, dst=dst, dev=device, via=via, table=table), metric, notes)
        if via is None and table == MAIN:
            connected.add((device, dst))
    return Routes(
        routes=tuple(route for _, route in chosen.values()),
        connected=frozenset(connected),
        notes=tuple(notes),
    )


def with_networks(
    interfaces: tuple[Interface, ...], listed: Routes, family: Family
) -> tuple[tuple[Interface, ...], tuple[Route, ...], tuple[str, ...]]:
    """Return interfaces and routes such that the interfaces imply exactly the existing connected routes.

    A node implies a route to the network of every address. If this route does not exist (``noprefixroute``,
    or deleted by an administrator), the address becomes one without a network; if it exists, it is not
    listed.
    """
    implied: set[tuple[str, Interval]] = set()
    made: list[Interface] = []
    notes: list[str] = []
    for interface in interfaces:
        addresses: list[Address] = []
        for address in interface.addresses:
            if address.family is not family or address.prefix_length == family.bits:
                addresses.append(address)
            elif (interface.name, address.network) in listed.connected:
                implied.add((interface.name, address.network))
                addresses.append(address)
            else:
                alone = Address(family, address.value, family.bits)
                addresses.append(alone)
                notes.append(f"address {alone} on {interface.name}, without its network (no route to it)")
        made.append(replace(interface, addresses=tuple(addresses)))
    routes = tuple(
        r for r in listed.routes if r.table != MAIN or r.via is not None or (r.dev, r.dst) not in implied
    )
    return tuple(made), routes, tuple(notes)


def _metric(fields: dict[str, object]) -> int:
    metric = fields.get("metric", 0)
    return metric if isinstance(metric, int) else 0


def _add(
    chosen: dict[tuple[int, Interval], tuple[int, Route]], route: Route, metric: int, notes: list[str]
) -> None:
    """Add a route; of several to one network in a table, the one with the lowest metric stays."""
    before = chosen.get((route.table, route.dst))
    kept = (metric, route)
    if before is not None:
        kept = min((before, kept), key=lambda r: r[0])
        lost = route if kept is before else before[1]
        notes.append(f"no route {lost}: {kept[1]} has priority")
    chosen[route.table, route.dst] = kept


def _destination(entry: JsonObject, family: Family) -> Interval:
    text = entry.data.get("dst")
    if text == "default":
        return Interval.prefix(0, 0, family.bits)
    address, slash, length = str(text).partition("/")
    try:
        value = parse_address(family, address)
        bits = _prefix_length(length, family) if slash else family.bits
    except ValueError as e:
        raise entry.error("dst", str(e)) from e
    return Interval.prefix(value, bits, family.bits)


def _prefix_length(text: str, family: Family) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= family.bits:
        return int(text)
    raise ValueError(f"/{text} is not a prefix length of IPv{family.version}")


def _gateway(hop: JsonObject, family: Family) -> int | None:
    if not hop.has("gateway"):
        return None
    try:
        return parse_address(family, str(hop.data["gateway"]))
    except ValueError as e:
        raise hop.error("gateway", str(e)) from e


def _is_kernels_default(fields: dict[str, object], kind: str) -> bool:
    # IPv6 always has "unreachable default dev lo metric 4294967295" (ip6_null_entry).
    return kind == "unreachable" and fields.get("dev") == "lo" and fields.get("metric") == 0xFFFFFFFF


def _is_own(fields: dict[str, object], dst: Interval, addresses: set[int], family: Family) -> bool:
    """Return whether the kernel added a route of the local table for an address by itself."""
    if (dst.is_point and dst.low in addresses) or _is_link_local(family, dst):
        return True
    return fields.get("protocol") == "kernel" or _is_loopback(family, dst)


def _is_loopback(family: Family, dst: Interval) -> bool:
    return dst.low >> 24 == 127 if family is Family.IP else dst == Interval(1, 1)


def _is_link_local(family: Family, dst: Interval) -> bool:
    return family is Family.IP6 and dst.low & -(1 << 118) == _LINK_LOCAL6 and dst.size <= 1 << 118


def _is_first(text: str, family: Family, device: Interface) -> bool:
    try:
        value = parse_address(family, text)
    except ValueError:
        return False
    own = [a.value for a in device.addresses if a.family is family]
    return value in own[:1]


def _shown(fields: dict[str, object], family: Family, dst: Interval) -> str:
    kind = str(fields.get("type", "unicast"))
    length = dst.prefix_length(family.bits)
    words = [*([kind] if kind != "unicast" else []), f"{format_address(family, dst.low)}/{length}"]
    words += [f"{word} {fields[key]}" for word, key in (("via", "gateway"), ("dev", "dev")) if key in fields]
    if "metric" in fields:
        words.append(f"metric {fields['metric']}")
    return " ".join(words)
