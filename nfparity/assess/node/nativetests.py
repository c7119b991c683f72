"""Constants with which the nftables tables of a node compare addresses and ports.

Two packets that differ only in addresses and ports take the same way through a table if each constant of the
table is equal to both values or to neither, contains both or neither, and orders both alike. The constants
therefore separate the kinds of services (:mod:`nfparity.assess.replay.alike`). All constants count, also data
of maps and targets of NAT, because another rule may compare the packet that they make.

A table is *unreadable* if it has an expression that :mod:`nfparity.assess.node.nftreads` does not know, gives
an address or port of the packet to a mark or a set's data, fills a set by a masked value, or translates to
several addresses, among which the kernel chooses by a hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Final

from nfparity.assess.node.nftreads import (
    COMBINING,
    FIXED_STATEMENTS,
    NAT_STATEMENTS,
    STEADY,
    Kind,
    Read,
    UnreadableError,
    check_constant,
    is_expression,
    nodes,
    read_of,
)
from translate.dataclass import dataclass, field
from translate.ir import Family, Interval
from translate.nftlisting import Form, Listing

__all__ = ["NO_TESTS", "NativeTests", "native_tests"]

_ORDERED: Final = frozenset({"<", ">", "<=", ">="})
_FAULTS: Final = (UnreadableError, LookupError, TypeError, ValueError)
"""The exceptions that reading raises for unknown expressions, and for JSON of an unknown shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeTests:
    """The constants of tables, as intervals by the mask that a table applies to a value (None: no mask).

    ``routes``: a table looks up routes (``fib``). ``unreadable`` are tables whose constants are not all
    known, each with the reason.
    """

    addresses: Mapping[int | None, tuple[Interval, ...]] = field(default_factory=dict)
    ports: Mapping[int | None, tuple[Interval, ...]] = field(default_factory=dict)
    routes: bool = False
    unreadable: tuple[tuple[str, str], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of a report: the tables that prevent the test by classes."""
        return tuple(
            f"every service is tested in full, which takes long, because it is not known which addresses and"
            f" ports table {name} treats alike: {reason}"
            for name, reason in self.unreadable
        )


NO_TESTS: Final = NativeTests()


def native_tests(tables: Iterable[Listing], family: Family) -> NativeTests:
    """Return the constants of the tables that concern packets of a family."""
    reader = _Reader(family)
    unreadable: list[tuple[str, str]] = []
    for table in tables:
        try:
            reader.read(table)
        except _FAULTS as e:
            reason = str(e) if isinstance(e, UnreadableError) else "its JSON has an unknown form"
            unreadable.append((table.source, reason))
    return NativeTests(
        addresses={mask: tuple(dict.fromkeys(intervals)) for mask, intervals in reader.addresses.items()},
        ports={mask: tuple(dict.fromkeys(intervals)) for mask, intervals in reader.ports.items()},
        routes=reader.routes,
        unreadable=tuple(unreadable),
    )


class _Reader:
    """Collects the constants of tables."""

    def __init__(self, family: Family) -> None:
        self._version = family.version
        self.addresses: dict[int | None, list[Interval]] = {}
        self.ports: dict[int | None, list[Interval]] = {}
        self.routes = False
        self._elements: dict[str, list[Any]] = {}

    def read(self, table: Listing) -> None:
        """Read one table. Raises one of :data:`_FAULTS`."""
        if table.form is not Form.JSON:
            raise UnreadableError("a table in text form")
        added = [json.loads(c.text)["add"] for c in table.commands if c.form is Form.JSON]
        self._elements = {}
        for entry in added:
            for kind in ("set", "map", "element"):
                if kind in entry:
                    elements = entry[kind].get("elem") or ()
                    self._elements.setdefault(entry[kind]["name"], []).extend(elements)
        for entry in added:
            for statement in entry.get("rule", {}).get("expr", ()):
                self._statement(statement)

    def _statement(self, statement: dict[str, Any]) -> None:
        ((name, value),) = statement.items()
        match name:
            case "match":
                self._match(value["left"], value["op"], value["right"])
            case "vmap":
                self._keys(self._reads(value["key"]), value["data"])
            case "mangle":
                self._reads(value["key"])
                self._value(value["value"])
            case "set" | "map":
                self._fill(statement, value["elem"])
                self._data(value.get("data"))
                for inner in value.get("stmt", ()):
                    self._statement(inner)
            case "meter":
                self._fill(statement, value["key"])
                self._statement(value["stmt"])
            case _ if name in NAT_STATEMENTS:
                self._nat(statement, {} if value is None else value)
            case _ if name in FIXED_STATEMENTS:
                check_constant(value)
            case _:
                raise UnreadableError(statement)

    def _match(self, left: Any, op: str, right: Any) -> None:
        reads = self._reads(left)
        if reads == (STEADY,):
            check_constant(right)
            return
        in_set = (isinstance(right, dict) and "set" in right) or (isinstance(right, str) and right[:1] == "@")
        if op not in ("==", "!=", *_ORDERED) and not (op == "in" and in_set):
            raise UnreadableError({"match": {"left": left, "op": op, "right": right}})
        self._compare(reads, right)
        if op in _ORDERED:
            (read,) = reads
            for interval in tuple(self._intervals(read, right)):
                # The values below the bound, with and without it.
                self._add(read, Interval(0, interval.low))
                self._add(read, Interval(0, interval.low - 1))

    def _reads(self, expression: Any) -> tuple[Read, ...]:
        """Return what an expression reads: one value, or several if it joins them."""
        match expression:
            case {"concat": list(parts)}:
                return tuple(read for part in parts for read in self._reads(part))
            case {"map": {"key": key, "data": data}}:
                # Packets with keys in the same cells get the same data.
                self._keys(self._reads(key), data)
                return (STEADY,)
            case {"&": [inner, int() | str() as mask]}:
                (read,) = self._reads(inner)
                if read.kind is Kind.STEADY:
                    return (STEADY,)
                if read.mask is None:
                    return (Read(read.kind, self._number(read.kind, mask)),)
                raise UnreadableError(expression)
            case dict() if not expression.keys().isdisjoint(COMBINING):
                self._value(expression)
                return (STEADY,)
            case {"fib": _}:
                self.routes = True
        return (read_of(expression),)

    def _value(self, expression: Any) -> None:
        """Read a value for a field, a mark or a translation: constants, or what is steady."""
        if isinstance(expression, dict) and not expression.keys().isdisjoint(COMBINING):
            for operands in expression.values():
                for operand in operands:
                    self._value(operand)
        elif is_expression(expression):
            if self._reads(expression) != (STEADY,):
                raise UnreadableError(expression)
        else:
            self._data(expression)

    def _nat(self, statement: dict[str, Any], value: dict[str, Any]) -> None:
        address = value.get("addr")
        results = [address]
        if isinstance(address, dict) and "map" in address:
            results = [member[1:] for member in self._members(address["map"]["data"])]
        several = any(map(_is_span, nodes(results)))
        if several or "type_flags" in value or {"netmap", "prefix"} & set(value.get("flags", ())):
            raise UnreadableError(statement)
        self._value(address)
        self._value(value.get("port"))

    def _fill(self, statement: dict[str, Any], key: Any) -> None:
        """Read the key that a packet adds to a set.

        In each flow of a class, the same values are equal to each other; under a mask, others may be, too.
        """
        if any(read.mask is not None for read in self._reads(_bare(key))):
            raise UnreadableError(statement)

    def _keys(self, reads: tuple[Read, ...], data: Any) -> None:
        """Compare with the keys of a map, and read its data."""
        for member in self._members(data):
            key, *results = member
            self._compare(reads, key)
            self._data(results)

    def _members(self, data: Any) -> Sequence[Any]:
        """Return the elements of a set or map, given by name or in the rule."""
        if isinstance(data, str) and data.startswith("@"):
            return self._elements.get(data[1:], ())
        if isinstance(data, dict) and "set" in data:
            members = data["set"]
            return members if isinstance(members, list) else (members,)
        raise UnreadableError(data)

    def _compare(self, reads: tuple[Read, ...], value: Any) -> None:
        """Collect the constants that values are compared with."""
        value = _bare(value)
        if (isinstance(value, str) and value.startswith("@")) or (isinstance(value, dict) and "set" in value):
            for member in self._members(value):
                self._compare(reads, member)
        elif isinstance(value, dict) and "concat" in value:
            for read, part in zip(reads, value["concat"], strict=True):
                self._compare((read,), part)
        elif value != "*":  # the element for all other keys
            (read,) = reads
            for interval in self._intervals(read, value):
                self._add(read, interval)

    def _intervals(self, read: Read, value: Any) -> Iterator[Interval]:
        """Yield the interval of a constant; nothing if it is compared with another kind or family."""
        if read.kind is Kind.STEADY:
            check_constant(value)
            return
        match value:
            case {"prefix": {"addr": str(address), "len": int(length)}} if read.kind is Kind.ADDRESS:
                network = ip_network((address, length), strict=False)
                if network.version == self._version:
                    yield Interval(int(network.network_address), int(network.broadcast_address))
                return
            case {"range": [low, high]}:
                first, last = (self._number(read.kind, end) for end in (low, high))
            case _:
                first = last = self._number(read.kind, value)
        if first is not None and last is not None:
            yield Interval(first, last)

    def _number(self, kind: Kind, value: Any) -> int | None:
        """Return a constant as a number; None for an address of the other family."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if kind is not Kind.ADDRESS or not isinstance(value, str):
            raise UnreadableError(value)
        try:
            address = ip_address(value)
        except ValueError:
            raise UnreadableError(value) from None
        return int(address) if address.version == self._version else None

    def _add(self, read: Read, interval: Interval) -> None:
        known = self.addresses if read.kind is Kind.ADDRESS else self.ports
        known.setdefault(read.mask, []).append(interval)

    def _data(self, value: Any) -> None:
        """Collect the addresses and numbers of data; each number counts as a port."""
        check_constant(value)
        for inner in nodes(value):
            kind = Kind.PORT
            if isinstance(inner, str):
                try:
                    ip_address(inner)
                except ValueError:
                    continue  # a name
                kind = Kind.ADDRESS
            elif _is_span(inner):
                kind = Kind.PORT if isinstance(inner.get("range", ("",))[0], int) else Kind.ADDRESS
            elif not isinstance(inner, int) or isinstance(inner, bool):
                continue
            for interval in self._intervals(Read(kind), inner):
                self._add(Read(kind), interval)


def _bare(element: Any) -> Any:
    """Return the value of an element with a timeout, a counter or a comment."""
    return element["elem"]["val"] if isinstance(element, dict) and "elem" in element else element


def _is_span(value: Any) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint({"prefix", "range"})
