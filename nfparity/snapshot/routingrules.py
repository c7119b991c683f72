"""The node's routing rules, from the output of ``ip -j rule``, and the numbers of its routing tables."""

from __future__ import annotations

from typing import Final

from backends.model.routes import DEFAULT_RULES, TABLE_NAMES, RoutingRule, RuleAction
from nfparity.snapshot.jsonfile import read_list
from translate.ir import Family, Interval, parse_address
from translate.jsoninput import JsonObject

__all__ = ["UNKNOWN_RULE", "TableNumbers", "default_rules", "read_rules"]

UNKNOWN_RULE: Final = "no routing rule"
"""The beginning of a note about a routing rule that a node cannot have."""

_KNOWN: Final = frozenset(
    (
        *("priority", "src", "srclen", "dst", "dstlen", "fwmark", "fwmask", "not", "table", "action"),
        *("iif", "iif_detached", "oif", "oif_detached", "suppress_prefixlen", "family", "protocol"),
    )
)
"""The keys that a RoutingRule expresses, and those without a meaning for packets."""

_FIRST_NAMED: Final = 1 << 31


class TableNumbers:
    """The numbers of a node's routing tables, which ``ip`` prints by name where ``rt_tables`` has one."""

    def __init__(self) -> None:
        self._named = dict(TABLE_NAMES)

    def number(self, value: object) -> int | None:
        """Return the number of a table, an unused one for an unknown name; None if it cannot be a table."""
        text = str(value)
        if text.isascii() and text.isdigit():
            return int(text) if 0 < int(text) < 1 << 32 else None
        if not isinstance(value, str) or not text:
            return None
        return self._named.setdefault(text, _FIRST_NAMED + len(self._named))

    @property
    def notes(self) -> tuple[str, ...]:
        """A note for each table whose number is not known."""
        unknown = {name: number for name, number in self._named.items() if name not in TABLE_NAMES}
        return tuple(f"routing table {name} as table {number}" for name, number in unknown.items())


def default_rules(family: Family) -> tuple[RoutingRule, ...]:
    """Return the rules of a family on a node for which none are recorded."""
    return tuple(rule for rule in DEFAULT_RULES if rule.family is family)


def read_rules(
    data: bytes, *, name: str, family: Family, tables: TableNumbers
) -> tuple[tuple[RoutingRule, ...], tuple[str, ...]]:
    """Return the rules in ``rule.json`` or ``rule6.json``, and a note for each that a node cannot have.

    Raises ParseError for invalid contents.
    """
    rules: list[RoutingRule] = []
    notes: list[str] = []
    for entry in read_list(data, name=name):
        fields = entry.data
        if "nop" in fields:
            continue
        unknown = sorted(set(fields) - _KNOWN)
        if unknown or not {"table", "action"} & set(fields):
            words = " ".join(_word(k, v) for k, v in fields.items() if k not in ("family", "protocol"))
            notes.append(f"{UNKNOWN_RULE} {words}: the routes of its packets are not known")
            continue
        rules.append(_rule(entry, family, tables))
    return tuple(sorted(rules, key=lambda rule: rule.priority)), tuple(notes)


def _rule(entry: JsonObject, family: Family, tables: TableNumbers) -> RoutingRule:
    fields = entry.data
    table, action = tables.number(fields.get("table", "main")), fields.get("action", "lookup")
    if table is None:
        raise entry.error("table", "expected the name or number of a routing table")
    if action not in tuple(RuleAction):
        raise entry.error("action", f"expected one of {', '.join(RuleAction)}")
    mark = _number(entry, "fwmark", 0)
    return RoutingRule(
        family=family,
        priority=_number(entry, "priority", 0),
        action=RuleAction(action),
        table=table,
        src=_network(entry, "src", family),
        dst=_network(entry, "dst", family),
        iif=str(fields.get("iif", "")),
        oif=str(fields.get("oif", "")),
        mark=mark,
        mask=_number(entry, "fwmask", 0xFFFFFFFF if mark else 0),
        negated="not" in fields,
        suppress=_number(entry, "suppress_prefixlen", 0) if "suppress_prefixlen" in fields else None,
    )


def _number(entry: JsonObject, key: str, default: int) -> int:
    value = entry.data.get(key, default)
    try:
        number = int(str(value), 0)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 32:
        raise entry.error(key, "expected a number of 32 bits")
    return number


def _network(entry: JsonObject, key: str, family: Family) -> Interval | None:
    """Return the addresses of a selector, or None for all of them."""
    text = str(entry.data.get(key, "all"))
    length = _number(entry, f"{key}len", family.bits)
    if text == "all" or length == 0:
        return None
    try:
        value = parse_address(family, text)
    except ValueError as e:
        raise entry.error(key, str(e)) from e
    if length > family.bits:
        raise entry.error(f"{key}len", f"not a prefix length of IPv{family.version}")
    return Interval.prefix(value, length, family.bits)


def _word(key: str, value: object) -> str:
    return key if value is None else f"{key} {value}"
