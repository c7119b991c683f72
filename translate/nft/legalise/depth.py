"""The limit of nf_tables on nested jumps, which x_tables does not have.

The kernel counts jumps and gotos alike (``nft_chain_validate``), though a goto takes no place on its stack.
So on a path that is too long, chains are inlined into their callers, beginning at its end, as long as the
meaning is preserved (``translate.passes.inline``). A path that is still too long is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from translate.dataclass import replace
from translate.errors import Refusal
from translate.ir import Program
from translate.nft.legal import LegalChain
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import called
from translate.passes.control import changed_fields
from translate.passes.inline import inline

__all__ = ["MAX_DEPTH", "longest_path", "shortened", "too_deep"]

MAX_DEPTH: Final = 15
"""The maximum number of chains below a base chain: ``nft_chain_validate`` stops at level 16
(``NFT_JUMP_STACK_SIZE``)."""

_MOST_STATEMENTS: Final = 10_000
"""The number of statements that a Program may grow by; a chain with several callers is copied for each."""

_MOST_CALLS: Final = 256
"""The number of calls that are inlined; each takes time in proportion to the number of chains."""


def too_deep(chains: Sequence[LegalChain]) -> Iterator[Refusal]:
    """Yield a refusal for every rule whose call goes deeper than nf_tables allows."""
    by_name = {chain.name: chain for chain in chains}
    for name in dict.fromkeys(name for level in _levels(chains)[MAX_DEPTH:] for name in level):
        for rule in by_name[name].rules:
            if rule.calls:
                reason = f"more than {MAX_DEPTH} chains below a built-in one"
                yield CannotSay("jump-depth", reason).at(rule.origin)


def longest_path(chains: Sequence[LegalChain]) -> tuple[str, ...]:
    """Return the names of the chains on the longest path, beginning with its base chain."""
    levels = _levels(chains)
    path = [next(iter(levels[-1]))] if levels else []
    for level in reversed(levels[1:]):
        path.append(level[path[-1]])
    return tuple(reversed(path))


def _levels(chains: Sequence[LegalChain]) -> list[dict[str, str]]:
    """Return the chains at each depth below the base chains, each chain with the name of one of its callers.

    The number of levels is finite, because no chain reaches itself. Levels that are too deep are included.
    """
    targets = {c.name: dict.fromkeys(t for rule in c.rules for t in rule.calls) for c in chains}
    levels: list[dict[str, str]] = []
    level = {chain.name: "" for chain in chains if chain.base is not None}
    while level and len(levels) <= len(chains):
        levels.append(level)
        level = {target: name for name in level for target in targets[name]}
    return levels


def shortened(program: Program, path: Sequence[str], calls: int) -> Program | None:
    """Return the Program with up to ``calls`` calls of a path inlined, beginning with the last call.

    ``path`` has names of its chains. Chains without callers are removed. None if no call can be inlined, or
    if the Program would grow too large.
    """
    if calls > _MOST_CALLS:
        return None
    chains = {chain.name: chain for chain in program.chains}
    callers = Counter(name for chain in program.chains for name in set(called(chain)))
    changed = changed_fields(program)
    statements_left = _MOST_STATEMENTS
    calls_left = calls
    for caller, name in reversed(list(pairwise(path))):
        inlined = inline(chains[caller], chains[name], changed) if calls_left else None
        if inlined is None:
            continue
        statements_left -= len(inlined.statements) - len(chains[caller].statements)
        callers.subtract(set(called(chains[caller])))
        callers.update(set(called(inlined)))
        chains[caller] = inlined
        if not callers[name]:
            unused = chains.pop(name)
            statements_left += len(unused.statements)
            callers.subtract(set(called(unused)))
        if statements_left < 0:
            return None
        calls_left -= 1
    return None if calls_left == calls else replace(program, chains=tuple(chains.values()))
