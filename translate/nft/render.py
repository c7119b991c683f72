"""NftTable → text for nft and libnftables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final, assert_never

from translate.nft.comments import comment
from translate.nft.elements import Elements, place_text
from translate.nft.legal import (
    SharedCounter,
    SharedHelper,
    SharedLabel,
    SharedLimit,
    SharedObject,
    SharedQuota,
)
from translate.nft.model import NftChain, NftFlowtable, NftMap, NftRule, NftSet, NftTable
from translate.nft.printer.logging import definitions
from translate.nft.references import with_references

__all__ = [
    "chain_head",
    "delete_text",
    "flush_text",
    "map_head",
    "object_kind",
    "object_lines",
    "rule_text",
    "set_lines",
    "structure_text",
]


def structure_text(table: NftTable) -> str:
    """Return one transaction that replaces the table.

    ``add`` before ``delete`` keeps the first load from failing if there is no table yet.
    """
    statements = [part for chain in table.chains for rule in chain.rules for part in rule.parts]
    lines = [*definitions(statements), f"add table {table.family} {table.name}"]
    lines.append(delete_text(table.family, table.name).rstrip())
    lines.append(f"table {table.family} {table.name} {{")
    blocks = [
        *map(object_lines, table.objects),
        *map(set_lines, table.sets),
        *map(_map_lines, table.maps),
        *map(_flowtable_lines, table.flowtables),
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
    """Return the text that restores the sets filled by packets, and refills the limits that affect verdicts.

    A limit or quota cannot be reset, and it cannot be deleted while a rule uses it. Chains whose rules use
    one are therefore emptied, and their rules are written again, with the maps that nft could not use in them
    otherwise. Limits that only decide whether a packet is
    logged are left alone. The text may be empty.
    """
    where = f"{table.family} {table.name}"
    lines = [f"flush set {where} {s.name}" for s in table.sets]
    for each in table.sets:
        lines += [f"add element {where} {each.name} {{ {text} }}" for text in each.elements.texts()]
    limits = [each for each in table.objects if isinstance(each, SharedLimit | SharedQuota)]
    if limits:
        used = {part for chain in table.chains for rule in chain.rules for part in _taken(rule)}
        limits = [limit for limit in limits if _use(limit) in used]
    if limits:
        references = set(map(_use, limits))
        limited = {c.name for c in table.chains if any(not references.isdisjoint(r.parts) for r in c.rules)}
        written, declared = with_references(table, limited, set())
        chains = [chain for chain in table.chains if chain.name in written]
        maps = [each for each in table.maps if each.name in declared]
        parts = [part for chain in chains for rule in chain.rules for part in rule.parts]
        lines += definitions(parts)
        lines += [f"flush chain {where} {chain.name}" for chain in chains]
        lines += [f"delete {object_kind(limit)} {where} {limit.name}" for limit in limits]
        lines += [f"delete map {where} {each.name}" for each in maps]
        blocks = [*map(object_lines, limits), *map(_map_lines, maps)]
        lines += [f"table {where} {{", *itertools.chain(*blocks), "}"]
        lines += [
            f"add rule {where} {chain.name} {rule_text(rule)}" for chain in chains for rule in chain.rules
        ]
    return "".join(f"{line}\n" for line in lines)


_LIMITS: Final = ("limit name ", "quota name ")


def _use(limit: SharedLimit | SharedQuota) -> str:
    """Return the match of a limit or quota."""
    return f'{object_kind(limit)} name "{limit.name}"'


def _taken(rule: NftRule) -> tuple[str, ...]:
    """Return the limits and quotas of a rule as matches; none if they only decide what is logged."""
    logs = rule.parts[-1].startswith("log ") or rule.parts[-1] == "log"
    return () if logs else tuple(part for part in rule.parts if part.startswith(_LIMITS))


def object_kind(each: SharedObject) -> str:
    """Return nft's keyword for the kind of a named object."""
    match each:
        case SharedCounter():
            return "counter"
        case SharedLimit():
            return "limit"
        case SharedQuota():
            return "quota"
        case SharedHelper():
            return "ct helper"
        case SharedLabel():
            return "secmark"
        case _:
            assert_never(each)


def object_lines(each: SharedObject) -> Iterator[str]:
    """Yield the lines that declare a named object."""
    yield f"{object_kind(each)} {each.name} {{"
    match each:
        case SharedLimit(rate=rate, unit=unit, burst=burst):
            yield f"\trate {rate}/{unit} burst {burst} packets"
        case SharedQuota(size=size, over=over):
            yield f"\t{'over' if over else 'until'} {size} bytes"
        case SharedHelper(helper=helper, protocol=protocol):
            yield f'\ttype "{helper}" protocol {protocol}'
        case SharedLabel(label=label):
            yield f'\t"{label}"'
        case SharedCounter():
            pass
        case _:
            assert_never(each)
    yield f"\tcomment {comment(each.note)}"
    yield "}"


def set_lines(set_: NftSet) -> Iterator[str]:
    """Yield the lines that declare a set that packets fill."""
    yield f"set {set_.name} {{"
    yield f"\ttypeof {set_.key}"
    yield f"\tsize {set_.size}"
    yield "\tflags dynamic" + (",timeout" if set_.ends or set_.timeout is not None else "")
    if set_.timeout is not None:
        yield f"\ttimeout {set_.timeout}s"
    yield f"\tcomment {comment(set_.note)}"
    yield from _element_lines(set_.elements)
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
    yield from _element_lines(map_.elements)
    yield "}"


def _element_lines(elements: Elements) -> Iterator[str]:
    if elements.count:
        yield "\telements = {"
        # All lines are one string, because there may be a million. The caller indents only the first.
        yield "\t\t" + ",\n\t\t\t".join(elements.texts()) + ","
        yield "\t}"


def _flowtable_lines(flowtable: NftFlowtable) -> Iterator[str]:
    yield f"flowtable {flowtable.name} {{"
    yield "\thook ingress priority filter"
    yield f"\tdevices = {{ {', '.join(flowtable.devices)} }}"
    yield "\tcounter"
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
