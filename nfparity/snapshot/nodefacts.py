"""A Node from captured files; facts that it cannot represent become assumptions."""

from __future__ import annotations

from collections.abc import Mapping

from backends.model.node import Node
from backends.model.routes import MAIN, RoutingRule
from nfparity.snapshot.devices import read_devices
from nfparity.snapshot.routes import read_routes, with_networks
from nfparity.snapshot.routingrules import TableNumbers, default_rules, read_rules
from nfparity.snapshot.sysctls import read_switches
from translate.ir import Family

__all__ = ["read_node"]

_FILES = {Family.IP: ("route.json", "rule.json"), Family.IP6: ("route6.json", "rule6.json")}


def read_node(files: Mapping[str, bytes], *, name: str) -> Node | None:
    """Return the node, or None if there is no ``addr.json``. Raises ParseError.

    ``name`` is that of the snapshot, for messages. Missing facts become assumptions.
    """
    if "addr.json" not in files:
        return None
    devices = read_devices(files["addr.json"], name=f"{name}/addr.json")
    interfaces, routes = devices.interfaces, list(devices.routes)
    notes = list(devices.notes)
    tables = TableNumbers()
    rules: list[RoutingRule] = []
    for family, (route_file, rule_file) in _FILES.items():
        if route_file in files:
            read = read_routes(
                files[route_file],
                name=f"{name}/{route_file}",
                family=family,
                interfaces=interfaces,
                left_out=devices.left_out,
                tables=tables,
            )
            interfaces, kept, more_notes = with_networks(interfaces, read, family)
            known = {(r.dev, r.dst) for r in routes}
            routes += [r for r in kept if r.table != MAIN or (r.dev, r.dst) not in known]
            notes += [*read.notes, *more_notes]
        elif any(a.family is family for i in interfaces for a in i.addresses):
            notes.append(
                f"no IPv{family.version} routes but those of the addresses ({route_file} is missing)"
            )
        if rule_file in files:
            own, more_notes = read_rules(
                files[rule_file], name=f"{name}/{rule_file}", family=family, tables=tables
            )
            rules += own or default_rules(family)
            notes += more_notes
        else:
            rules += default_rules(family)
    switches: Mapping[str, str] = {}
    if "sysctl.json" in files:
        names = tuple(i.name for i in interfaces)
        switches = read_switches(files["sysctl.json"], names, name=f"{name}/sysctl.json")
    else:
        notes.append("the usual sysctls (sysctl.json is missing)")
    notes += tables.notes
    in_order = tuple(sorted(rules, key=lambda rule: rule.priority))
    return Node(interfaces, tuple(routes), dict(switches), tuple(notes), in_order)
