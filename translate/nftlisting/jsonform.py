"""JSON → commands. The JSON that nft 1.0.6 prints lacks details that nft needs to read it back.

A set or map is declared as text if JSON cannot express it: the flag ``dynamic`` (without it the kernel makes
a set to which packets cannot add elements), data of several types or of intervals. All other objects stay
JSON, without handles. Entries whose JSON has lost information are refused.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from typing import Any, Final

from translate.dataclass import dataclass
from translate.errors import Diagnostic, ParseError
from translate.ir import Origin
from translate.jsoninput import JsonDocument, json_kind, read_json
from translate.nftlisting.commands import IPTABLES_NFT, SEED, Command, Form, GivenSet, Group, Kind
from translate.nftlisting.jsonobjects import object_text
from translate.nftlisting.jsonsets import declaration, lost, needs_text
from translate.nftlisting.jsontypes import type_faults

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
_AS_TEXT: Final = "use the text form (nft list ruleset), which is complete"


@dataclass(frozen=True, slots=True)
class _Entry:
    """An object that is listed or added, and its path in the document."""

    kind: str
    data: dict[str, Any]
    path: tuple[str | int, ...]

    @property
    def table(self) -> tuple[str, str]:
        name = self.data.get("name" if self.kind == "table" else "table")
        return str(self.data.get("family")), str(name)


def groups(text: str, name: str, without: Container[tuple[str, str]] = ()) -> Iterator[Group]:
    """Yield the commands of a JSON text without some tables.

    Raises ParseError with every entry that cannot be loaded.
    """
    faults: list[Diagnostic] = []
    commands: list[Command] = []
    document = _document(text, name)
    entries = [entry for entry in _entries(document) if entry.table not in without]
    sound: list[_Entry] = []
    for entry in entries:
        wrong = list(_faults(entry))
        faults += (
            Diagnostic(document.origin((*entry.path, *path)), *fault) for path, *fault in wrong[:_MOST]
        )
        if not wrong:
            sound.append(entry)
        if len(faults) >= _MOST:
            break
    if faults:
        raise ParseError(tuple(faults))
    filled = {target for entry in sound if entry.kind == "rule" for target in _fills(entry.data)}
    for entry in sound:
        commands += _commands(entry, document.origin(entry.path), filled)
    yield True, tuple(commands)


_MOST: Final = 50


def _faults(entry: _Entry) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yield the path, the description and the advice of each fault in an entry."""
    kind, data = entry.kind, entry.data
    if kind not in _KINDS:
        yield (), f"this is {kind!r}, which is not part of a ruleset", _FORM
        return
    mistyped = [(path, f"{_title(kind, data)}: {text}", _FORM) for path, text in type_faults(kind, data)]
    if mistyped:
        yield from mistyped
        return
    fault = _refusal(kind, data)
    if fault is not None:
        yield (), f"{_title(kind, data)}: {fault}", IPTABLES_NFT if _uses_xt(data) else _AS_TEXT


def _document(text: str, name: str) -> JsonDocument:
    try:
        return read_json(text, name=name)
    except ParseError as e:
        (diagnostic,) = e.diagnostics
        hint = "nft 1.0.6 ends its JSON at a table with flags; " + _AS_TEXT
        raise ParseError((Diagnostic(diagnostic.origin, diagnostic.message, hint),)) from None


def _entries(document: JsonDocument) -> list[_Entry]:
    """Return the entries of a listing or of add commands, without ``metainfo`` and ``flush ruleset``."""
    root = document.value
    if not isinstance(root, dict) or not isinstance(root.get("nftables"), list):
        raise document.error(("nftables",), "expected an object with the list nftables", _FORM)
    entries = []
    for index, item in enumerate(root["nftables"]):
        path: tuple[str | int, ...] = ("nftables", index)
        kind, data = _only(document, path, item)
        if kind == "metainfo" or (kind == "flush" and isinstance(data, dict) and "ruleset" in data):
            continue
        if kind in ("add", "create"):
            path = (*path, kind)
            kind, data = _only(document, path, data)
        if not isinstance(data, dict):
            raise document.error((*path, kind), f"expected an object, found {json_kind(data)}", _FORM)
        entries.append(_Entry(kind, data, (*path, kind)))
    return entries


def _only(document: JsonDocument, path: tuple[str | int, ...], value: object) -> tuple[str, Any]:
    if not isinstance(value, dict) or len(value) != 1:
        raise document.error(path, f"expected an object of one key, found {json_kind(value)}", _FORM)
    ((kind, data),) = value.items()
    return kind, data


_FORM: Final = 'nft -j list ruleset prints {"nftables": [{"table": {…}}, …]}'


def _commands(entry: _Entry, origin: Origin, filled: set[GivenSet]) -> Iterator[Command]:
    kind, data, order = entry.kind, entry.data, _KINDS[entry.kind]
    if order is Kind.SET:
        yield from _set(entry, origin, filled)
        return
    text = object_text(kind, _where(data, "name"), data) if order is Kind.OBJECT else None
    if text is not None:
        yield Command(kind=order, text=text, origin=origin)
        return
    devices = data.get("dev", ())
    device_names = (devices,) if isinstance(devices, str) else tuple(devices)
    to = _where(data, "name") if order is Kind.ELEMENT else None
    yield _json(entry, origin, order, where=to, fills=_fills(data), devices=device_names)


def _set(entry: _Entry, origin: Origin, filled: set[GivenSet]) -> Iterator[Command]:
    kind, data = entry.kind, entry.data
    where = _where(data, "name")
    if not needs_text(data, dynamic=where in filled):
        yield _json(entry, origin, Kind.SET)
        return
    text = declaration(kind, where, data, dynamic=where in filled)
    yield Command(kind=Kind.SET, text=text, origin=origin, where=where, bare=text)
    if data.get("elem"):
        elements = {key: data[key] for key in ("family", "table", "name", "elem")}
        yield _json(_Entry("element", elements, entry.path), origin, Kind.ELEMENT, where=where)


def _bare(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without the values that the kernel assigns."""
    return {key: value for key, value in entry.items() if key not in ("handle", "index")}


def _seeded(value: Any) -> Any:
    """Return a value with a seed in each ``jhash`` that has none."""
    match value:
        case dict():
            seeded = {key: _seeded(inner) for key, inner in value.items()}
            if isinstance(seeded.get("jhash"), dict):
                seeded["jhash"].setdefault("seed", SEED)
            return seeded
        case list():
            return [_seeded(inner) for inner in value]
        case _:
            return value


def _json(
    entry: _Entry,
    origin: Origin,
    order: Kind,
    *,
    where: GivenSet | None = None,
    fills: tuple[GivenSet, ...] = (),
    devices: tuple[str, ...] = (),
) -> Command:
    return Command(
        kind=order,
        text=json.dumps({"add": {entry.kind: _seeded(_bare(entry.data))}}),
        origin=origin,
        form=Form.JSON,
        title=_title(entry.kind, entry.data),
        family=entry.data["family"],
        where=where,
        fills=fills,
        devices=devices,
        counting=entry.kind == "rule" and _counts(entry.data),
    )


def _refusal(kind: str, entry: dict[str, Any]) -> str | None:
    """Return the reason why an entry cannot be loaded as JSON."""
    missing = [key for key in ("family", "name" if kind != "rule" else "chain") if key not in entry]
    if missing or (kind != "table" and "table" not in entry):
        return "the object does not name its family and table"
    match kind:
        case "rule":
            if _uses_xt(entry):
                return "a rule of iptables-nft, whose effect nft cannot show"
            return _unsaid(entry.get("expr"))
        case "table" if "flags" in entry:
            return "nft 1.0.6 prints its flags wrongly as JSON, and reads none"
        case "chain" if entry["family"] == "netdev" and "dev" not in entry:
            return "JSON does not name the device of this chain"
        case "set" | "map":
            return lost(entry)
    return None


def _unsaid(expressions: object) -> str | None:
    if not isinstance(expressions, list) or not all(isinstance(e, str | dict) for e in expressions):
        return "the rule has no list of expressions"
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
    statements = expressions if isinstance(expressions, list) else []
    return any(isinstance(e, dict) and "xt" in e for e in statements)


def _fills(entry: dict[str, Any]) -> tuple[GivenSet, ...]:
    """Return the sets that a rule fills; a statement without a JSON form is refused."""
    expressions = entry.get("expr")
    filled = []
    for expression in expressions if isinstance(expressions, list) else ():
        statement = expression.get("set") or expression.get("map") if isinstance(expression, dict) else None
        if isinstance(statement, dict) and statement.get("op") in ("add", "update"):
            name = statement.get("set") or statement.get("map")
            if isinstance(name, str):
                filled.append(GivenSet(entry["family"], entry["table"], name.removeprefix("@")))
    return tuple(filled)


def _counts(entry: dict[str, Any]) -> bool:
    return any(isinstance(value, dict) and _COUNTING & value.keys() for value in _walk(entry["expr"]))


def _walk(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, list):
        for child in value:
            yield from _walk(child)
    elif isinstance(value, dict):
        for child in value.values():
            yield from _walk(child)


def _where(entry: dict[str, Any], key: str) -> GivenSet:
    return GivenSet(entry["family"], entry["table"], entry[key])


def _title(kind: str, entry: dict[str, Any]) -> str:
    """Return the name of an entry, for messages: a line of JSON is too long."""
    parts = [entry.get(key) for key in ("family", "table", "chain", "name")]
    handle = f" handle {entry['handle']}" if kind == "rule" and "handle" in entry else ""
    return " ".join([kind, *(_name(part) for part in parts if part is not None)]) + handle


def _name(part: object) -> str:
    text = str(part)
    return text if text.isprintable() else repr(text)
