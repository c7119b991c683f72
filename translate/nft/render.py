"""NftTable → text that nft and libnftables read."""

from __future__ import annotations

from collections.abc import Iterator

from translate.ir import Origin
from translate.nft.model import NftChain, NftMap, NftSet, NftTable
from translate.nft.names import comment

__all__ = ["delete_text", "flush_text", "structure_text"]


def structure_text(table: NftTable) -> str:
    """Return one transaction: the table as it was is gone, and this one stands in its place.

    ``add`` before ``delete`` keeps the first load from failing where no table is yet.
    """
    lines = [f"add table {table.family} {table.name}", delete_text(table.family, table.name).rstrip()]
    lines.append(f"table {table.family} {table.name} {{")
    blocks = [*map(_set_lines, table.sets), *map(_map_lines, table.maps), *map(_chain_lines, table.chains)]
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


def _set_lines(set_: NftSet) -> Iterator[str]:
    yield f"set {set_.name} {{"
    yield f"\ttypeof {set_.key}"
    yield f"\tsize {set_.size}"
    yield "\tflags dynamic" + ("" if set_.timeout is None else ",timeout")
    if set_.timeout is not None:
        yield f"\ttimeout {set_.timeout}s"
    yield f"\tcomment {comment(set_.note)}"
    yield "}"


def _map_lines(map_: NftMap) -> Iterator[str]:
    yield f"{'set' if map_.data is None else 'map'} {map_.name} {{"
    yield f"\ttypeof {map_.key}" + ("" if map_.data is None else f" : {map_.data}")
    if map_.interval:
        yield "\tflags interval"
    if map_.elements:
        yield "\telements = {"
        for element in map_.elements:
            data = "" if element.data is None else f" : {element.data}"
            yield f"\t\t{element.key}{_place(element.origin)}{data},"
        yield "\t}"
    yield "}"


def _chain_lines(chain: NftChain) -> Iterator[str]:
    yield f"chain {chain.name} {{"
    line = f", line {chain.origin.line}" if chain.origin.line else ""
    yield f"\tcomment {comment(chain.note + line)}"
    if chain.base is not None:
        base = chain.base
        hook, policy = base.hook.lower(), base.policy.lower()
        yield f"\ttype {base.type} hook {hook} priority {base.priority}; policy {policy};"
    for rule in chain.rules:
        yield f"\t{' '.join(rule.parts)}{_place(rule.origin)}"
    yield "}"


def _place(origin: Origin) -> str:
    return f" comment {comment(f'line {origin.line}')}" if origin.line else ""
