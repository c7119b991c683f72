"""The effects that rules of an nftables table may have on a packet of which only some fields are known.

The rules are in their JSON form. A test that is not understood may hold or not; a statement that is not
understood is an effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any, Final

from nfparity.assess.node.nftreads import nodes
from nfparity.assess.reordering.packets import ALL_BITS, Effect, EffectKind, Possible
from translate.ir import PORT_PROTOCOLS, AddressType, Family, Field, Interval, Name, Protocol, Value
from translate.nftlisting import BaseChain, Form, Listing

__all__ = ["NftEffects"]

_OTHER: Final = Effect(EffectKind.OTHER)
_WITHOUT_EFFECT: Final = frozenset({"counter", "log", "continue"})
_VERDICTS: Final = frozenset({"accept", "return", "drop", "reject", "jump", "goto", "continue"})
_COUNTING: Final = frozenset({"limit", "quota", "ct count"})
_FIELDS: Final = {"saddr": Field.SADDR, "daddr": Field.DADDR, "sport": Field.SPORT, "dport": Field.DPORT}
_PROTOCOLS: Final = {
    "icmp": Protocol.ICMP,
    "tcp": Protocol.TCP,
    "udp": Protocol.UDP,
    "ipv6-icmp": Protocol.ICMPV6,
    "udplite": Protocol.UDPLITE,
    "sctp": Protocol.SCTP,
    "dccp": Protocol.DCCP,
}
_INTERFACES: Final = {"iif": Field.IIF, "iifname": Field.IIF, "oif": Field.OIF, "oifname": Field.OIF}
_Result = tuple[frozenset[Effect], bool]
"""The effects of a chain, and whether every packet ends there."""


class NftEffects:
    """The rules of one table, for packets of one family."""

    def __init__(self, table: Listing, family: Family) -> None:
        self._family = family
        self._rules: dict[str, list[list[dict[str, Any]]]] = {}
        self._elements: dict[str, list[Any] | None] = {}
        self._policies: dict[str, str] = {}
        filled = {filled_set.name for filled_set in table.filled}
        for command in table.commands:
            if command.form is not Form.JSON:
                if command.where is not None:
                    filled.add(command.where.name)  # packets may fill it
                continue
            for kind, entry in json.loads(command.text)["add"].items():
                if kind == "rule":
                    self._rules.setdefault(entry["chain"], []).append(entry["expr"])
                elif kind == "chain":
                    self._policies[entry["name"]] = entry.get("policy", "accept")
                elif kind in ("set", "map", "element"):
                    known = self._elements.setdefault(entry["name"], [])
                    assert known is not None
                    known.extend(entry.get("elem") or ())
        self._elements.update(dict.fromkeys(filled))
        statements = [s for rules in self._rules.values() for rule in rules for s in rule]
        mangled = [s["mangle"]["key"] for s in statements if "mangle" in s]
        self.readdresses = any("payload" in key or key == {"ct": {"key": "zone"}} for key in mangled)
        """True if rules change addresses without NAT, or the zone of connections."""

    def of(self, chain: BaseChain, packet: Possible) -> frozenset[Effect]:
        """Return the effects that a base chain may have on a packet; verdicts that accept it are none."""
        effects, _ = self._through(chain.name, packet, {})
        if self._policies.get(chain.name) == "drop":
            effects |= {Effect(EffectKind.DROP)}
        return effects

    def _through(self, chain: str, packet: Possible, known: dict[str, _Result]) -> _Result:
        if chain not in known:
            known[chain] = frozenset(), False
            known[chain] = self._walk(chain, packet, known)
        return known[chain]

    def _walk(self, chain: str, packet: Possible, known: dict[str, _Result]) -> _Result:
        effects: set[Effect] = set()
        for rule in self._rules.get(chain, ()):
            certain: bool | None = True
            for statement in rule:
                ((name, value),) = statement.items()
                if name == "match":
                    holds = self._holds(value, packet)
                    if holds is False:
                        break
                    certain = certain if holds else None
                elif name in _VERDICTS:
                    called, ends = self._verdict(name, value, packet, known)
                    effects |= called
                    if certain and (ends or name in ("return", "goto")):
                        return frozenset(effects), ends
                elif name == "vmap":
                    certain = None
                    for verdict, target in self._verdicts(value["data"]):
                        effects |= self._verdict(verdict, target, packet, known)[0]
                elif name in _COUNTING:
                    effects.add(_OTHER)  # it decides about later packets
                    certain = None
                elif name == "mangle" and value["key"] == {"meta": {"key": "mark"}}:
                    effects.add(Effect(EffectKind.MARK, _bits(value["value"])))
                elif name not in _WITHOUT_EFFECT:
                    effects.add(_OTHER)
        return frozenset(effects), False

    def _verdict(self, name: str, value: Any, packet: Possible, known: dict[str, _Result]) -> _Result:
        """Return the effects of a verdict, and whether the packet's walk through the base chain ends."""
        if name in ("jump", "goto"):
            return self._through(value["target"], packet, known)
        if name in ("drop", "reject"):
            return frozenset({Effect(EffectKind.DROP if name == "drop" else EffectKind.REJECT)}), True
        return frozenset(), name == "accept"

    def _verdicts(self, data: Any) -> Iterator[tuple[str, Any]]:
        """Yield the verdicts of a map's elements; something unknown may drop the packet."""
        elements = self._members(data)
        for element in ({"drop": None},) if elements is None else elements:
            for inner in nodes(element):
                if isinstance(inner, dict):
                    yield from ((name, value) for name, value in inner.items() if name in _VERDICTS)

    def _holds(self, match: dict[str, Any], packet: Possible) -> bool | None:
        """Return whether a test holds for every such packet; None if it is not known."""
        left, op, right = match["left"], match["op"], match["right"]
        if op not in ("==", "!="):
            return None
        negated, mask = op == "!=", None
        match left:
            case {"&": [{"meta": _} as inner, int(bits)]}:
                left, mask = inner, bits
            case {"&": _}:
                return None
        needed, tested = self._field(left, packet)
        for field, number in needed:
            if packet.test(field, (Interval.point(number),)) is False:
                return False
        if tested is None:
            return None
        values = self._values(tested, right)
        if values is None:
            return None
        holds = packet.test(tested, values, mask=mask, negated=negated)
        certain = all(packet.test(field, (Interval.point(number),)) for field, number in needed)
        return holds if certain or holds is False else None

    def _field(self, left: Any, packet: Possible) -> tuple[tuple[tuple[Field, int], ...], Field | None]:
        """Return the tests that an expression implies, and the field that it reads, if it is known."""
        match left:
            case {"payload": {"protocol": "ip" | "ip6" as family, "field": "saddr" | "daddr" as name}}:
                return () if family == self._family.value else _NEVER, _FIELDS[name]
            case {"payload": {"protocol": "th", "field": "sport" | "dport" as name}}:
                # In packets of other protocols, the same bytes mean something else.
                known = packet.numbers.get(Field.L4PROTO)
                return (), _FIELDS[name] if known and PORT_PROTOCOLS.issuperset(known) else None
            case {"payload": {"protocol": str(header), "field": "sport" | "dport" as name}}:
                if header in _PROTOCOLS:
                    return ((Field.L4PROTO, int(_PROTOCOLS[header])),), _FIELDS[name]
            case {"payload": {"protocol": "ip", "field": "protocol"}} if self._family is Family.IP:
                return (), Field.L4PROTO
            case {"meta": {"key": "l4proto"}}:
                return (), Field.L4PROTO
            case {"meta": {"key": "mark"}}:
                return (), Field.MARK
            case {"meta": {"key": str(key)}} if key in _INTERFACES:
                return (), _INTERFACES[key]
            case {"fib": {"result": "type", "flags": ["daddr"]}}:
                return (), Field.FIB_DADDR_TYPE
            case {"fib": {"result": "type", "flags": ["saddr"]}}:
                return (), Field.FIB_SADDR_TYPE
        return (), None

    def _members(self, data: Any) -> list[Any] | None:
        """Return the elements of a set or map; None if they are not known."""
        if isinstance(data, str) and data.startswith("@"):
            return self._elements.get(data[1:])
        if isinstance(data, dict) and "set" in data:
            members = data["set"]
            return members if isinstance(members, list) else [members]
        return None

    def _values(self, tested: Field, right: Any) -> list[Value] | None:
        """Return the values that a field is compared with; None if one of them is not understood."""
        members = self._members(right)
        if members is None and isinstance(right, str) and right.startswith("@"):
            return None
        values = [_value(tested, member) for member in ([right] if members is None else members)]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else None


_NEVER: Final = ((Field.L4PROTO, -1),)
"""A test that no packet passes, for fields of the other family."""


def _value(tested: Field, constant: Any) -> Value | None:
    """Return a constant as a value of a field; None if it is not understood."""
    match constant:
        case {"elem": {"val": inner, **further}} if "timeout" not in further:
            return _value(tested, inner)
        case {"prefix": {"addr": str(address), "len": int(length)}}:
            network = ip_network((address, length), strict=False)
            return Interval(int(network.network_address), int(network.broadcast_address))
        case {"range": [low, high]}:
            ends = [_value(tested, low), _value(tested, high)]
            numbers = [end.low for end in ends if isinstance(end, Interval)]
            return Interval(*numbers) if len(numbers) == len(ends) else None
        case bool():
            return None
        case int():
            return Interval.point(constant)
        case str() if tested in (Field.IIF, Field.OIF):
            return Name(constant.removesuffix("*"), constant.endswith("*"))
        case str() if tested is Field.L4PROTO and constant in _PROTOCOLS:
            return Interval.point(int(_PROTOCOLS[constant]))
        case str() if tested in (Field.FIB_DADDR_TYPE, Field.FIB_SADDR_TYPE):
            types = {kind.name.lower(): int(kind) for kind in AddressType}
            return Interval.point(types[constant]) if constant in types else None
        case str() if tested in (Field.SADDR, Field.DADDR):
            try:
                return Interval.point(int(ip_address(constant)))
            except ValueError:
                return None
    return None


def _bits(value: Any) -> int:
    """Return the bits of the mark that an expression may set in addition to those that are set."""
    mark = {"meta": {"key": "mark"}}
    match value:
        case int() if not isinstance(value, bool):
            return value
        case {"|": [left, int(bits)]} | {"^": [left, int(bits)]} if left == mark:
            return bits
        case {"&": [left, int()]} if left == mark:
            return 0
    return ALL_BITS
