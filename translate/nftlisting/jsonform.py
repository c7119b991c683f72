"""JSON → commands. What nft 1.0.6 prints as JSON is not all that it needs to take it back.

A set or map is declared as text where its JSON has no words for it: the flag ``dynamic`` (without it the
kernel makes a set that takes nothing from packets), data of several types or of intervals. All else stays
JSON, without handles. What JSON has lost is refused.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from typing import Any, Final

from translate.errors import Diagnostic, ParseError
from translate.ir import Origin
from translate.nftlisting.commands import IPTABLES_NFT, Command, Form, GivenSet, Group, Kind
from translate.nftlisting.jsonobjects import object_text
from translate.nftlisting.jsonsets import declaration, lost, needs_text

__all__ = ["groups"]

_COUNTING: Final = frozenset({"limit", "quota", "meter", "ct count"})
_KINDS: Final = {
    "table": Kind.TABLE,
    "chain": Kind.CHAIN,
    "counter": Kind.OBJECT,
    "quota": Kind.OBJECT,
    "limit": Kind.OBJECT,
    "secmark": Kind.OBJECT,
    "ct helper": Kind.OBJECT,
    "ct timeout": Kind.OBJECT,
    "ct expectation": Kind.OBJECT,
    "synproxy": Kind.OBJECT,
    "flowtable": Kind.FLOWTABLE,
    "set": Kind.SET,
    "map": Kind.SET,
    "element": Kind.ELEMENT,
    "rule": Kind.RULE,
}
_AS_TEXT: Final = "the text form has it (nft list ruleset)"


def groups(text: str, name: str, without: Container[tuple[str, str]] = ()) -> Iterator[Group]:
    """Yield the commands of a JSON text but for some tables.

    Raises ParseError with all that cannot be loaded.
    """
    faults: list[Diagnostic] = []
    commands: list[Command] = []
    entries = [one for one in _entries(text, name) if _table_of(*one) not in without]
    filled = {one for kind, entry in entries if kind == "rule" for one in _fills(entry)}
    for number, (kind, entry) in enumerate(entries, 1):
        origin = Origin(name)
        if kind not in _KINDS:
            faults.append(Diagnostic(origin, f"entry {number} is {kind!r}, which no ruleset consists of"))
            continue
        fault = _refusal(kind, entry)
        if fault is not None:
            hint = IPTABLES_NFT if _uses_xt(entry) else _AS_TEXT
            faults.append(Diagnostic(origin, f"{_title(kind, entry)}: {fault}", hint))
            continue
        commands += _commands(kind, entry, Origin(name, 0, 0, _title(kind, entry)), filled)
    if faults:
        raise ParseError(tuple(faults))
    yield True, tuple(commands)


def _entries(text: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    """The kinds and contents of what is listed, or added; ``metainfo`` and ``flush ruleset`` left out."""
    try:
        root = json.loads(text)
        found = []
        for one in root["nftables"]:
            ((kind, entry),) = one.items()
            if kind == "metainfo" or (kind == "flush" and "ruleset" in entry):
                continue
            if kind in ("add", "create"):
                ((kind, entry),) = entry.items()
            if not isinstance(entry, dict):
                raise TypeError(kind)
            found.append((kind, entry))
        return found
    except json.JSONDecodeError as e:
        where = Origin(name, e.lineno, e.colno)
        hint = "nft 1.0.6 ends its JSON at a table with flags; " + _AS_TEXT
        raise ParseError((Diagnostic(where, f"no JSON: {e.msg}", hint),)) from None
    except (AttributeError, KeyError, TypeError, ValueError):
        hint = 'it is {"nftables": [{"table": {…}}, …]}'
        raise ParseError((Diagnostic(Origin(name), "not the JSON of nft -j list ruleset", hint),)) from None


def _commands(kind: str, entry: dict[str, Any], origin: Origin, filled: set[GivenSet]) -> Iterator[Command]:
    order = _KINDS[kind]
    if order is Kind.SET:
        yield from _set(kind, entry, origin, filled)
        return
    text = object_text(kind, _where(entry, "name"), entry) if order is Kind.OBJECT else None
    if text is not None:
        yield Command(kind=order, text=text, origin=origin)
        return
    devices = entry.get("dev", ())
    named = (devices,) if isinstance(devices, str) else tuple(devices)
    to = _where(entry, "name") if order is Kind.ELEMENT else None
    yield _json(kind, _bare(entry), origin, order, where=to, fills=_fills(entry), devices=named)


def _set(kind: str, entry: dict[str, Any], origin: Origin, filled: set[GivenSet]) -> Iterator[Command]:
    where = _where(entry, "name")
    if not needs_text(entry, dynamic=where in filled):
        yield _json(kind, _bare(entry), origin, Kind.SET)
        return
    text = declaration(kind, where, entry, dynamic=where in filled)
    yield Command(kind=Kind.SET, text=text, origin=origin, where=where, bare=text)
    if entry.get("elem"):
        elements = {key: entry[key] for key in ("family", "table", "name", "elem")}
        yield _json("element", elements, origin, Kind.ELEMENT, where=where)


def _bare(entry: dict[str, Any]) -> dict[str, Any]:
    """What is listed without what only a kernel can say."""
    return {key: value for key, value in entry.items() if key not in ("handle", "index")}


def _json(
    kind: str,
    entry: dict[str, Any],
    origin: Origin,
    order: Kind,
    *,
    where: GivenSet | None = None,
    fills: tuple[GivenSet, ...] = (),
    devices: tuple[str, ...] = (),
) -> Command:
    text = json.dumps({"add": {kind: entry}})
    return Command(
        kind=order,
        text=text,
        origin=origin,
        form=Form.JSON,
        family=entry["family"],
        where=where,
        fills=fills,
        devices=devices,
        counting=kind == "rule" and _counts(entry),
    )


def _refusal(kind: str, entry: dict[str, Any]) -> str | None:
    """Why an entry cannot be loaded as JSON has it."""
    missing = [key for key in ("family", "name" if kind != "rule" else "chain") if key not in entry]
    if missing or (kind != "table" and "table" not in entry):
        return "it does not say where it belongs"
    match kind:
        case "rule":
            if _uses_xt(entry):
                return "a rule of iptables-nft's, of which nft cannot say what it does"
            return _unsaid(entry.get("expr"))
        case "table" if "flags" in entry:
            return "nft 1.0.6 prints nonsense for its flags as JSON, and reads none"
        case "chain" if entry["family"] == "netdev" and "dev" not in entry:
            return "JSON does not say of which device this chain is"
        case "set" | "map":
            return lost(entry)
    return None


def _unsaid(expressions: object) -> str | None:
    if not isinstance(expressions, list) or not all(isinstance(e, str | dict) for e in expressions):
        return "it has no list of expressions"
    words = next((e for e in expressions if isinstance(e, str)), None)
    if words is not None:
        return f"this has no JSON form: {words.partition(chr(10))[0]}"
    for value in _walk(expressions):
        prefix = value.get("prefix") if isinstance(value, dict) else None
        is_range = isinstance(value, dict) and value.get("range") == ["", ""]
        if is_range or (isinstance(prefix, dict) and prefix.get("addr") == ""):
            return 'nft has lost the names of interfaces here, and prints ""'
    return None


def _uses_xt(entry: dict[str, Any]) -> bool:
    expressions = entry.get("expr")
    found = expressions if isinstance(expressions, list) else []
    return any(isinstance(e, dict) and "xt" in e for e in found)


def _fills(entry: dict[str, Any]) -> tuple[GivenSet, ...]:
    """The sets into which a rule puts what it meets; those of a statement without JSON form are refused."""
    expressions = entry.get("expr")
    found = []
    for one in expressions if isinstance(expressions, list) else ():
        statement = one.get("set") or one.get("map") if isinstance(one, dict) else None
        if isinstance(statement, dict) and statement.get("op") in ("add", "update"):
            name = statement.get("set") or statement.get("map")
            if isinstance(name, str):
                found.append(GivenSet(entry["family"], entry["table"], name.removeprefix("@")))
    return tuple(found)


def _counts(entry: dict[str, Any]) -> bool:
    return any(isinstance(one, dict) and _COUNTING & one.keys() for one in _walk(entry["expr"]))


def _walk(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, list):
        for one in value:
            yield from _walk(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _walk(one)


def _table_of(kind: str, entry: dict[str, Any]) -> tuple[str, str]:
    return str(entry.get("family")), str(entry.get("name" if kind == "table" else "table"))


def _where(entry: dict[str, Any], key: str) -> GivenSet:
    return GivenSet(entry["family"], entry["table"], entry[key])


def _title(kind: str, entry: dict[str, Any]) -> str:
    """What an entry is called: JSON has no lines worth showing."""
    parts = [entry.get(key) for key in ("family", "table", "chain", "name")]
    handle = f" handle {entry['handle']}" if kind == "rule" and "handle" in entry else ""
    return " ".join([kind, *(str(part) for part in parts if part is not None)]) + handle
