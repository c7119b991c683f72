"""What hangs together in a skimmed table: chains that lead to each other, and the rules that lead to them.

A shared chain (one that is no block) holds nothing together: there are as many parts behind it as can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from translate.read.skim import Found, SkimmedTable

__all__ = ["Part", "parts_of"]


@dataclass(slots=True)
class Part:
    """Rules of shared chains, each with the name of its chain, and the chains that they alone lead to.

    ``blocks`` are those of ``chains``; ``calls`` counts how often these lead to a chain. A part is not
    ``whole`` when one of them leads to a chain that is no block.
    """

    entrances: list[tuple[str, Found]] = field(default_factory=list)
    chains: list[str] = field(default_factory=list)
    blocks: list[Found] = field(default_factory=list)
    calls: int = 0
    whole: bool = True


def parts_of(table: SkimmedTable) -> Iterator[Part]:
    """Yield what nothing else in the table leads to, and every rule of a shared chain that leads nowhere."""
    owner: dict[str, Part] = {}
    parts: dict[int, Part] = {}
    callers = Counter([groups[i] for block, _, groups in table.blocks.values() for i in block.calls])
    for shared, entrances in table.entrances.items():
        for found in entrances:
            block, _, groups = found
            if block.calls:
                part = owner.get(groups[block.calls[0]])
                if part is None:
                    part = _reach(table, groups[block.calls[0]], owner, parts)
                part.entrances.append((shared, found))
            elif block.values:
                yield Part([(shared, found)])
    for part in parts.values():
        inside = part.whole and part.calls == sum([callers[name] for name in part.chains])
        if inside and table.called.isdisjoint(part.chains) and _is_small(part):
            yield part


def _reach(table: SkimmedTable, root: str, owner: dict[str, Part], parts: dict[int, Part]) -> Part:
    """Return the part that ``root`` belongs to, with all chains that it reaches."""
    part = Part()
    parts[id(part)] = part
    todo = [root]
    while todo:
        name = todo.pop()
        other = owner.get(name)
        if other is part:
            continue
        if other is not None:  # what hangs together with an earlier part becomes one with it
            other.chains += part.chains
            other.blocks += part.blocks
            other.calls += part.calls
            other.whole = other.whole and part.whole
            owner.update(dict.fromkeys(part.chains, other))
            del parts[id(part)]
            part = other
            continue
        found = table.blocks.get(name)
        if found is None:
            part.whole = False
            continue
        owner[name] = part
        part.chains.append(name)
        part.blocks.append(found)
        block, _, groups = found
        if block.calls:
            part.calls += len(block.calls)
            todo += [groups[i] for i in reversed(block.calls)]
    return part


def _is_small(part: Part) -> bool:
    """Whether the copies that ``template`` makes of its chains are no more than a few times its rules."""
    if len(part.entrances) == 1 and part.calls == len(part.chains) - 1:
        return True  # a tree: each chain is copied once
    blocks = dict(zip(part.chains, part.blocks, strict=True))
    most = 8 * (sum(len(block.lines) for block, _, _ in part.blocks) + len(part.entrances))
    todo = [groups[block.calls[0]] for _, (block, _, groups) in part.entrances]
    while todo and most > 0:
        block, _, groups = blocks[todo.pop()]
        most -= len(block.lines)
        todo += [groups[i] for i in block.calls]
    return most > 0
