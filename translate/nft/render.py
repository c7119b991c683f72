"""NftTable → text for nft and libnftables."""

from __future__ import annotations

from collections.abc import Iterator

from translate.nft.comments import comment
from translate.nft.elements import place_text
from translate.nft.legal import SharedCounter
from translate.nft.model import NftChain, NftMap, NftRule, NftSet, NftTable
from translate.nft.printer.logging import definitions

__all__ = [
    "chain_head",
    "counter_lines",
    "delete_text",
    "flush_text",
    "map_head",
    "rule_text",
    "set_lines",
    "structure_text",
]


def structure_text(table: NftTable) -> str:
    """Return one transaction that replaces the table.

    ``add`` before ``delete`` keeps the first load from failing if there is no table yet.
    """
    statements = (part for chain in table.chains for rule in chain.rules for part in rule.parts)
    lines = [*definitions(statements), f"add table {table.family} {table.name}"]
    lines.append(delete_text(table.family, table.name).rstrip())
    lines.append(f"table {table.family} {table.name} {{")
    blocks = [
        *map(counter_lines, table.counters),
        *map(set_lines, table.sets),
        *map(_map_lines, table.maps),
        *map(_chain_lines, table.chains),
    ]
    for index, block in enumerate(blocks):
        if index:
            lines.append("")
        lines.extend(f"\t{line}" for line in block)
    lines.append("}")
    return "\n".join(lines) + "\n"


def delete_text(family: str, name: str) -> str:
    """Return the text that removes the table."""
    return f"delete table {family} {name}\n"


def flush_text(table: NftTable) -> str:
    """Return the text that empties every set that packets fill; empty when there is none."""
    return "".join(f"flush set {table.family} {table.name} {s.name}\n" for s in table.sets)


def counter_lines(counter: SharedCounter) -> Iterator[str]:
    """Yield the lines that declare a named counter."""
    yield f"counter {counter.name} {{"
    yield f"\tcomment {comment(counter.note)}"
    yield "}"


def set_lines(set_: NftSet) -> Iterator[str]:
    """Yield the lines that declare a set that packets fill."""
    yield f"set {set_.name} {{"
    yield f"\ttypeof {set_.key}"
    yield f"\tsize {set_.size}"
    yield "\tflags dynamic" + ("" if set_.timeout is None else ",timeout")
    if set_.timeout is not None:
        yield f"\ttimeout {set_.timeout}s"
    yield f"\tcomment {comment(set_.note)}"
    yield "}"


def map_head(map_: NftMap) -> Iterator[str]:
    """Yield the lines that declare a map or set, up to its elements."""
    yield f"{'set' if map_.data is None else 'map'} {map_.name} {{"
    yield f"\ttypeof {map_.key}" + ("" if map_.data is None else f" : {map_.data}")
    if map_.size is not None:
        yield f"\tsize {map_.size}"
    if map_.interval:
        yield "\tflags interval"
    if map_.note:
        yield f"\tcomment {comment(map_.note)}"


def _map_lines(map_: NftMap) -> Iterator[str]:
    yield from map_head(map_)
    if map_.elements.count:
        yield "\telements = {"
        for text in map_.elements.texts():
            yield f"\t\t{text},"
        yield "\t}"
    yield "}"


def chain_head(chain: NftChain) -> Iterator[str]:
    """Yield the lines that declare a chain, up to its rules."""
    yield f"chain {chain.name} {{"
    line = f"line {chain.origin.line}"
    line = f", chains like {line}" if chain.origin.several else f", {line}" if chain.origin.line else ""
    yield f"\tcomment {comment(chain.note, line)}"
    if chain.base is not None:
        base = chain.base
        hook, policy = base.hook.lower(), base.policy.lower()
        yield f"\ttype {base.type} hook {hook} priority {base.priority}; policy {policy};"


def _chain_lines(chain: NftChain) -> Iterator[str]:
    yield from chain_head(chain)
    for rule in chain.rules:
        yield f"\t{rule_text(rule)}"
    yield "}"


def rule_text(rule: NftRule) -> str:
    """Return a rule with its comment and line number."""
    return f"{' '.join(rule.parts)}{place_text(rule.origin)}"
