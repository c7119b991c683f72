"""State of the owned table from its listing, without parts that change by themselves or have no effect.

Handles, values of counters, comments, and elements that packets add to sets are left out. Elements are
identified by their keys, independent of the order; rules by their chain and their number in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

from translate.dataclass import dataclass
from translate.errors import MachineError

__all__ = ["Collection", "NftChainMeaning", "TableState", "read_listing", "read_tables"]

_FLEETING: Final = frozenset({"handle", "comment", "bytes", "packets", "expires"})
_TABLE_FLAGS: Final = frozenset({"dormant", "owner", "persist"})
_UNNAMED: Final = "a flag that nft does not name"
_VERDICTS: Final = frozenset({"accept", "drop", "return", "continue"})


@dataclass(frozen=True, slots=True)
class NftChainMeaning:
    """A chain: its hook, and its rules, each as canonical JSON."""

    head: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """A set or a map: its declaration, and its elements as data by key (empty data in a set)."""

    head: str
    elements: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a whole table. ``flags`` are those of the table (``dormant``)."""

    flags: tuple[str, ...]
    chains: Mapping[str, NftChainMeaning]
    collections: Mapping[str, Collection]
    others: Mapping[str, str]

    def data(self) -> dict[str, Any]:
        """Return the state as data for :meth:`from_data`."""
        return {
            "flags": list(self.flags),
            "chains": {name: [chain.head, list(chain.rules)] for name, chain in self.chains.items()},
            "collections": {name: [c.head, dict(c.elements)] for name, c in self.collections.items()},
            "others": dict(self.others),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the state from a result of :meth:`data`. Raises KeyError, TypeError or ValueError."""
        return cls(
            flags=tuple(data["flags"]),
            chains={
                name: NftChainMeaning(head, tuple(rules)) for name, (head, rules) in data["chains"].items()
            },
            collections={
                name: Collection(head, dict(elements))
                for name, (head, elements) in data["collections"].items()
            },
            others=dict(data["others"]),
        )


def read_listing(text: str) -> TableState:
    """Return the state in an output of ``nft -j list table``. Raises MachineError for anything else."""
    try:
        return _read(_objects(text))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as e:
        raise MachineError(f"the output of nft -j list table is not a table: {e}") from e


def read_tables(text: str) -> dict[tuple[str, str], TableState]:
    """Return the states in an output of ``nft -j list ruleset``, by family and name.

    Raises MachineError for anything else.
    """
    parts: dict[tuple[str, str], list[tuple[str, Any]]] = {}
    try:
        for kind, entry in _objects(text):
            if kind != "metainfo":
                key = (entry["family"], entry["name"] if kind == "table" else entry["table"])
                parts.setdefault(key, []).append((kind, entry))
        return {key: _read(objects) for key, objects in parts.items()}
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as e:
        raise MachineError(f"the output of nft -j list ruleset is not a ruleset: {e}") from e


def _objects(text: str) -> list[tuple[str, Any]]:
    return [next(iter(item.items())) for item in json.loads(text)["nftables"]]


def _read(objects: list[tuple[str, Any]]) -> TableState:
    flags: tuple[str, ...] = ()
    heads: dict[str, str] = {}
    rules: dict[str, list[str]] = {}
    collections: dict[str, Collection] = {}
    others: dict[str, str] = {}
    filled = {name for kind, entry in objects if kind == "rule" for name in _filled(entry["expr"])}
    for kind, entry in objects:
        match kind:
            case "metainfo":
                continue
            case "table":
                flags = _flags(entry.get("flags", []))
            case "chain":
                heads[entry["name"]] = _canonical(_without(entry, "name", "table", "family"))
                rules.setdefault(entry["name"], [])
            case "rule":
                rules.setdefault(entry["chain"], []).append(_canonical(entry["expr"]))
            case "set" | "map":
                collections[entry["name"]] = _collection(kind, entry, filled=entry["name"] in filled)
            case _:
                others[f"{kind} {entry.get('name', '')}".strip()] = _canonical(
                    _without(entry, "name", "table", "family")
                )
    chains = {name: NftChainMeaning(head, tuple(rules[name])) for name, head in heads.items()}
    return TableState(flags=flags, chains=chains, collections=collections, others=others)


def _flags(stated: str | list[str]) -> tuple[str, ...]:
    """Return the flags of a table. For a flag, nft 1.0.6 prints any text from its memory."""
    flags = [stated] if isinstance(stated, str) else stated
    return tuple(sorted({flag if flag in _TABLE_FLAGS else _UNNAMED for flag in flags}))


def _filled(value: Any) -> Iterator[str]:
    """Yield the sets and maps that packets fill; nft 1.0.6 does not print their flag ``dynamic`` as JSON."""
    match value:
        case {"op": str(), "set": str(name)} | {"op": str(), "map": str(name)}:
            yield name.removeprefix("@")
        case dict():
            for part in value.values():
                yield from _filled(part)
        case list():
            for part in value:
                yield from _filled(part)


def _collection(kind: str, entry: dict[str, Any], *, filled: bool) -> Collection:
    head = _canonical({"kind": kind, **_without(entry, "name", "table", "family", "elem")})
    flags = entry.get("flags", [])
    if filled or "dynamic" in flags or "timeout" in flags:
        return Collection(head, {})
    elements: dict[str, str] = {}
    for element in entry.get("elem", []):
        key, data = element if kind == "map" else (element, "")
        elements[_spelled(_bare(key))] = _spelled(data) if kind == "map" else ""
    return Collection(head, elements)


def _bare(key: Any) -> Any:
    """Return an element's value without the object around it, which carries comments and counters."""
    return key["elem"]["val"] if isinstance(key, dict) and "elem" in key else key


def _spelled(value: Any) -> str:
    """Return a key or a datum in nft syntax if that is simple, otherwise as canonical JSON."""
    match value:
        case str() if value.isprintable() and " " not in value:
            return value
        case {"concat": [*parts]} if len(value) == 1:
            return " . ".join(map(_spelled, parts))
        case {"prefix": {"addr": str(address), "len": int(length)}} if len(value) == 1:
            return f"{address}/{length}"
        case {"range": [low, high]} if len(value) == 1:
            return f"{_spelled(low)}-{_spelled(high)}"
        case {"jump": {"target": str(chain)}} if len(value) == 1:
            return f"jump {chain}"
        case {"goto": {"target": str(chain)}} if len(value) == 1:
            return f"goto {chain}"
        case dict() if len(value) == 1 and next(iter(value)) in _VERDICTS:
            return str(next(iter(value)))
        case _:
            return _canonical(value)


def _without(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}


def _canonical(value: Any) -> str:
    return json.dumps(_lasting(value), sort_keys=True, separators=(",", ":"))


def _lasting(value: Any) -> Any:
    match value:
        case dict():
            return {k: _lasting(v) for k, v in value.items() if k not in _FLEETING}
        case list():
            return [_lasting(v) for v in value]
        case _:
            return value
