"""Connected components of chains and the rules that jump into them.

A shared chain (one that is not a block) does not connect the chains that it calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from translate.condense.skim import BlockMatch, SkimmedTable
from translate.dataclass import dataclass, field

__all__ = ["Component", "components_of"]


@dataclass(slots=True)
class Component:
    """Rules of shared chains (the entrances), and the chains that are reachable only through these rules.

    ``blocks`` are the blocks of ``chains``; ``calls`` counts the calls of each chain. ``whole`` is false if
    one of the chains calls a chain that is not a block. ``merged`` is true if the chains have become part of
    another component.
    """

    entrances: list[tuple[str, BlockMatch]] = field(default_factory=list)
    chains: list[str] = field(default_factory=list)
    blocks: list[BlockMatch] = field(default_factory=list)
    calls: int = 0
    whole: bool = True
    merged: bool = False

    def absorb(self, other: Component) -> None:
        """Add the chains of another component, which has no entrance yet."""
        self.chains += other.chains
        self.blocks += other.blocks
        self.calls += other.calls
        self.whole = self.whole and other.whole
        other.merged = True


def components_of(table: SkimmedTable) -> Iterator[Component]:
    """Yield the components that only entrances call, and the single rules that are members by themselves."""
    owner: dict[str, Component] = {}
    components: list[Component] = []
    callers = Counter([groups[i] for block, _, groups in table.blocks.values() for i in block.calls])
    for shared, entrances in table.entrances.items():
        for entrance in entrances:
            block, _, groups = entrance
            if block.calls:
                component = owner.get(groups[block.calls[0]])
                if component is None:
                    component = _reach(table, groups[block.calls[0]], owner, components)
                component.entrances.append((shared, entrance))
            elif block.values:
                yield Component([(shared, entrance)])
    for component in components:
        if component.merged or not component.whole or not table.called.isdisjoint(component.chains):
            continue
        if component.calls == sum([callers[name] for name in component.chains]) and _is_small(component):
            yield component


def _reach(
    table: SkimmedTable, root: str, owner: dict[str, Component], components: list[Component]
) -> Component:
    """Return the component that ``root`` belongs to, with all chains that it reaches."""
    component = Component()
    components.append(component)
    todo = [root]
    while todo:
        name = todo.pop()
        other = owner.get(name)
        if other is component:
            continue
        if other is not None:
            other.absorb(component)
            owner.update(dict.fromkeys(component.chains, other))
            component = other
            continue
        matched = table.blocks.get(name)
        if matched is None:
            component.whole = False
            continue
        owner[name] = component
        component.chains.append(name)
        component.blocks.append(matched)
        block, _, groups = matched
        if block.calls:
            component.calls += len(block.calls)
            todo += [groups[i] for i in reversed(block.calls)]
    return component


def _is_small(component: Component) -> bool:
    """Return whether the copies made by ``template`` have at most eight times as many rules as the chains."""
    if len(component.entrances) == 1 and component.calls == len(component.chains) - 1:
        return True  # a tree: each chain is copied once
    blocks = dict(zip(component.chains, component.blocks, strict=True))
    rules_left = 8 * (sum(len(block.lines) for block, _, _ in component.blocks) + len(component.entrances))
    todo = [groups[block.calls[0]] for _, (block, _, groups) in component.entrances]
    while todo and rules_left > 0:
        block, _, groups = blocks[todo.pop()]
        rules_left -= len(block.lines)
        todo += [groups[i] for i in block.calls]
    return rules_left > 0
