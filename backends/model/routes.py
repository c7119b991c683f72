"""Routes, and the rules that select a routing table (``ip route``, ``ip rule``), with their JSON form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from ipaddress import ip_network
from types import MappingProxyType
from typing import Any, Final

from translate.dataclass import dataclass
from translate.ir import AddressType, Family, Interval, format_address
from translate.jsoninput import MISSING, JsonObject, json_kind

__all__ = [
    "DEFAULT",
    "DEFAULT_RULES",
    "LOCAL",
    "MAIN",
    "ROUTE_TYPES",
    "TABLE_NAMES",
    "Route",
    "RoutingRule",
    "RuleAction",
    "read_routes",
    "read_rules",
    "route_to_json",
    "rules_to_json",
    "table_name",
]

DEFAULT: Final = 253
MAIN: Final = 254
LOCAL: Final = 255
_LAST_TABLE: Final = 0xFFFFFFFF
_LAST_PRIORITY: Final = 0xFFFFFFFF
_LOOPBACK: Final = "lo"

TABLE_NAMES: Final[Mapping[str, int]] = MappingProxyType({"default": DEFAULT, "main": MAIN, "local": LOCAL})
"""The tables that have names on every system (``RT_TABLE_*``)."""

ROUTE_TYPES: Final[Mapping[str, AddressType]] = MappingProxyType(
    {
        "unicast": AddressType.UNICAST,
        "local": AddressType.LOCAL,
        "blackhole": AddressType.BLACKHOLE,
        "unreachable": AddressType.UNREACHABLE,
        "prohibit": AddressType.PROHIBIT,
        "throw": AddressType.THROW,
    }
)
"""The types of routes that a Node can have, by their names in ``ip route``."""

_OF_TYPE: Final = {kind: name for name, kind in ROUTE_TYPES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route. ``via`` None: the destination is on the link.

    ``dev`` is empty for the types that refuse packets, and ``lo`` for LOCAL.
    """

    family: Family
    dst: Interval
    dev: str = ""
    via: int | None = None
    table: int = MAIN
    type: AddressType = AddressType.UNICAST

    def __str__(self) -> str:
        kind = "" if self.type is AddressType.UNICAST else f"{_OF_TYPE[self.type]} "
        via = f" via {format_address(self.family, self.via)}" if self.via is not None else ""
        dev = f" dev {self.dev}" if self.dev else ""
        table = "" if self.table == MAIN else f" table {table_name(self.table)}"
        return f"{kind}{_prefix_text(self.family, self.dst)}{via}{dev}{table}"


class RuleAction(StrEnum):
    """The action of a routing rule (``FR_ACT_*``)."""

    LOOKUP = "lookup"
    UNREACHABLE = "unreachable"
    BLACKHOLE = "blackhole"
    PROHIBIT = "prohibit"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingRule:
    """A rule of the routing policy database (ip-rule(8)).

    An empty ``iif`` or ``oif``, a ``mask`` of 0, and None for ``src`` and ``dst`` match every packet. ``iif``
    is ``lo`` for packets made on the node. ``negated``: the rule applies to the packets that do not match.
    ``suppress``: a route whose prefix is this long or shorter is not used (``suppress_prefixlength``).
    """

    family: Family
    priority: int
    action: RuleAction = RuleAction.LOOKUP
    table: int = MAIN
    src: Interval | None = None
    dst: Interval | None = None
    iif: str = ""
    oif: str = ""
    mark: int = 0
    mask: int = 0
    negated: bool = False
    suppress: int | None = None

    def __str__(self) -> str:
        """Return the rule in the form of ``ip rule``."""
        words = [f"{self.priority}:", *(["not"] if self.negated else [])]
        words += ["from", "all" if self.src is None else _prefix_text(self.family, self.src)]
        if self.dst is not None:
            words += ["to", _prefix_text(self.family, self.dst)]
        if self.mask:
            words += ["fwmark", _mark_text(self.mark, self.mask)]
        words += ["iif", self.iif] if self.iif else []
        words += ["oif", self.oif] if self.oif else []
        words.append(self.action)
        if self.action is RuleAction.LOOKUP:
            words.append(table_name(self.table))
        if self.suppress is not None:
            words += ["suppress_prefixlength", str(self.suppress)]
        return " ".join(words)


def _defaults(family: Family) -> tuple[RoutingRule, ...]:
    """Return a family's rules of a new namespace (``fib_default_rules_init``, ``fib6_rules_net_init``)."""
    tables = {0: LOCAL, 32766: MAIN, **({32767: DEFAULT} if family is Family.IP else {})}
    return tuple(RoutingRule(family=family, priority=p, table=t) for p, t in tables.items())


def _in_order(rules: Iterable[RoutingRule]) -> tuple[RoutingRule, ...]:
    """Return rules in order of priority; those of equal priority keep their order (``fib_nl_newrule``)."""
    return tuple(sorted(rules, key=lambda rule: rule.priority))


DEFAULT_RULES: Final = _in_order((*_defaults(Family.IP), *_defaults(Family.IP6)))
"""The rules of a new network namespace."""


def table_name(table: int) -> str:
    """Return the name of a routing table, or its number."""
    return next((name for name, number in TABLE_NAMES.items() if number == table), str(table))


def read_routes(data: JsonObject, devices: Collection[str]) -> tuple[Route, ...]:
    """Return the routes of a node file; faults become problems of ``data``."""
    return tuple(route for entry in data.objects("routes") for route in _route(entry, devices))


def read_rules(data: JsonObject, devices: Collection[str]) -> tuple[RoutingRule, ...]:
    """Return the rules of a node file, in order of priority; faults become problems of ``data``.

    They are added to the default rules unless ``default_rules`` is false.
    """
    listed = [rule for entry in data.objects("rules") for rule in _rule(entry, devices)]
    implied = data.take("default_rules")
    if implied is not MISSING and not isinstance(implied, bool):
        data.problem("default_rules", f"expected true or false, found {json_kind(implied)}")
    return _in_order(listed if implied is False else (*DEFAULT_RULES, *listed))


def rules_to_json(rules: tuple[RoutingRule, ...]) -> dict[str, object]:
    """Return the members of a node file for its rules; none for the default rules."""
    added = [rule for rule in rules if rule not in DEFAULT_RULES]
    if _in_order((*DEFAULT_RULES, *added)) == rules:
        return {"rules": [_rule_to_json(rule) for rule in added]} if added else {}
    return {"rules": [_rule_to_json(rule) for rule in rules], "default_rules": False}


def route_to_json(route: Route) -> dict[str, object]:
    """Return the JSON object of a route."""
    entry: dict[str, object] = {"dst": _prefix_text(route.family, route.dst)}
    if route.via is not None:
        entry["via"] = format_address(route.family, route.via)
    if route.dev:
        entry["dev"] = route.dev
    if route.type is not AddressType.UNICAST:
        entry["type"] = _OF_TYPE[route.type]
    if route.table != MAIN:
        entry["table"] = route.table
    return entry


def _rule_to_json(rule: RoutingRule) -> dict[str, object]:
    entry: dict[str, object] = {"priority": rule.priority}
    if rule.family is Family.IP6:
        entry["family"] = rule.family.value
    if rule.negated:
        entry["not"] = True
    if rule.src is not None:
        entry["from"] = _prefix_text(rule.family, rule.src)
    if rule.dst is not None:
        entry["to"] = _prefix_text(rule.family, rule.dst)
    if rule.mask:
        entry["fwmark"] = _mark_text(rule.mark, rule.mask)
    if rule.iif:
        entry["iif"] = rule.iif
    if rule.oif:
        entry["oif"] = rule.oif
    if rule.action is RuleAction.LOOKUP:
        entry["table"] = table_name(rule.table) if rule.table in TABLE_NAMES.values() else rule.table
    else:
        entry["action"] = rule.action.value
    if rule.suppress is not None:
        entry["suppress_prefixlength"] = rule.suppress
    return entry


def _route(entry: JsonObject, devices: Collection[str]) -> Iterator[Route]:
    """Yield the route of an object, or nothing if it is invalid."""
    dst, dev = entry.text("dst", None), entry.text("dev", "")
    via = None if entry.take("via") is None else entry.address("via")
    route_family = _family(entry)
    table = _table(entry, MAIN)
    kind = ROUTE_TYPES.get(text := entry.text("type", "unicast"))
    entry.finish()
    with_device = kind in (AddressType.UNICAST, AddressType.LOCAL)
    if dst is None or (with_device and not dev):
        if entry.ok:
            entry.problem(None, "expected an object with dst, dev and perhaps via")
        return
    if kind is None:
        entry.problem("type", f"{text!r} is not among {', '.join(ROUTE_TYPES)}")
    elif kind is AddressType.LOCAL and dev != _LOOPBACK:
        entry.problem("dev", f"a local route leads to lo, not to {dev!r}")
    elif kind is AddressType.UNICAST and dev not in devices:
        entry.problem("dev", f"{dev!r} is not among the interfaces")
    elif not with_device and (dev or via is not None):
        entry.problem("dev" if dev else "via", f"a route of type {text} has neither a device nor a gateway")
    elif kind is AddressType.LOCAL and via is not None:
        entry.problem("via", "a local route has no gateway")
    if table == LOCAL:
        entry.problem("table", "leave out routes of the local table; they follow from the addresses")
    if dst == "default":
        family = route_family or (Family.IP if via is None else via[0])
        interval = Interval.prefix(0, 0, family.bits)
    else:
        network = _network(entry, "dst", dst)
        if network is None:
            return
        family, interval = network
    if route_family not in (None, family):
        entry.problem("family", f"dst is not of the family {route_family}")
    if via is not None and via[0] is not family:
        entry.problem("via", "via and dst are of different families")
    elif entry.ok and kind is not None:
        gateway = None if via is None else via[1]
        yield Route(family=family, dst=interval, dev=dev, via=gateway, table=table, type=kind)


def _rule(entry: JsonObject, devices: Collection[str]) -> Iterator[RoutingRule]:
    """Yield the rule of an object, or nothing if it is invalid."""
    priority = entry.integer("priority", None, low=0, high=_LAST_PRIORITY)
    if priority is None and not entry.has("priority"):
        entry.problem(None, "the rule has no priority")
    networks = {key: _prefix(entry, key) for key in ("from", "to")}
    rule_family = _family(entry)
    families = {network[0] for network in networks.values() if network is not None}
    family = rule_family or next(iter(families), Family.IP)
    if families - {family}:
        entry.problem(None, "from, to and family are of different families")
    for key in ("iif", "oif"):
        name = entry.text(key, _LOOPBACK)
        if name != _LOOPBACK and name not in devices:
            entry.problem(key, f"{name!r} is not among the interfaces")
    mark, mask = _mark(entry)
    text = entry.text("action", RuleAction.LOOKUP.value)
    action = RuleAction(text) if text in tuple(RuleAction) else None
    if action is None:
        entry.problem("action", f"{text!r} is not among {', '.join(RuleAction)}")
    if action is RuleAction.LOOKUP and not entry.has("table"):
        entry.problem(None, "the rule has neither a table nor another action")
    if action not in (None, RuleAction.LOOKUP) and entry.has("table"):
        entry.problem("table", f"the action {text} has no table")
    table = _table(entry, MAIN)
    suppress = entry.integer("suppress_prefixlength", None, low=0, high=family.bits)
    negated = entry.flag("not")
    entry.finish()
    if entry.ok and priority is not None and action is not None:
        yield RoutingRule(
            family=family,
            priority=priority,
            action=action,
            table=table,
            src=_selected(networks["from"]),
            dst=_selected(networks["to"]),
            iif=entry.text("iif", ""),
            oif=entry.text("oif", ""),
            mark=mark,
            mask=mask,
            negated=negated,
            suppress=suppress,
        )


def _family(entry: JsonObject) -> Family | None:
    text = entry.text("family", None)
    if text is None:
        return None
    if text not in tuple(Family):
        entry.problem("family", f"{text!r} is not among {', '.join(Family)}")
        return None
    return Family(text)


def _table(entry: JsonObject, default: int) -> int:
    value: Any = entry.take("table")
    if isinstance(value, str) and value in TABLE_NAMES:
        return TABLE_NAMES[value]
    return entry.integer("table", default, low=1, high=_LAST_TABLE)


def _mark(entry: JsonObject) -> tuple[int, int]:
    """Return value and mask of ``fwmark``: ``VALUE``, or ``VALUE/MASK``.

    0 without a mask selects every packet (``fib_nl2rule``).
    """
    value = entry.take("fwmark")
    if value is MISSING:
        return 0, 0
    texts = str(value).split("/") if isinstance(value, str | int) and not isinstance(value, bool) else []
    try:
        numbers = [int(text, 0) for text in texts]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(0 <= number <= 0xFFFFFFFF for number in numbers):
        entry.problem(
            "fwmark", f"expected a mark, or a mark and a mask with / between them, found {json_kind(value)}"
        )
        return 0, 0
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    return numbers[0], 0xFFFFFFFF if numbers[0] else 0


def _prefix(entry: JsonObject, key: str) -> tuple[Family, Interval] | None:
    """Return the network of a selector; None for every address."""
    text = entry.text(key, "all")
    return None if text == "all" else _network(entry, key, text)


def _selected(network: tuple[Family, Interval] | None) -> Interval | None:
    """Return the addresses of a selector; a prefix of length 0 selects nothing (``fib6_rule_match``)."""
    return None if network is None or network[1].size == 1 << network[0].bits else network[1]


def _network(entry: JsonObject, key: str, text: str) -> tuple[Family, Interval] | None:
    try:
        network = ip_network(text)
    except ValueError as e:
        entry.problem(key, str(e))
        return None
    family = Family.IP if network.version == 4 else Family.IP6
    return family, Interval.prefix(int(network.network_address), network.prefixlen, family.bits)


def _prefix_text(family: Family, network: Interval) -> str:
    return f"{format_address(family, network.low)}/{network.prefix_length(family.bits)}"


def _mark_text(mark: int, mask: int) -> str:
    return f"{mark:#x}" if mask == 0xFFFFFFFF else f"{mark:#x}/{mask:#x}"
