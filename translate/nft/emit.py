"""Program → nftables table: one chain per chain, one rule per statement where that can be.

``draft`` is the table in the making; ``rules``, ``alternatives`` and ``lookups`` write statements into it,
and say what takes more than one rule, and why the meaning stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from translate.errors import Note, Refusal
from translate.ir import Apply, Choose, Lookup, LoweredChain, Program, Statement
from translate.nft.alternatives import write_apply
from translate.nft.depth import MAX_DEPTH, longest_way, shortened, too_deep
from translate.nft.draft import TABLE, Draft
from translate.nft.lookups import write_choose, write_lookup
from translate.nft.model import NftChain, NftTable
from translate.nft.refusal import CannotSay
from translate.nft.rules import write_rule
from translate.passes.normalise import canonical

__all__ = ["TABLE", "build"]


def build(program: Program) -> tuple[NftTable, tuple[Note, ...]]:
    """Return the table that means what ``program`` means, and where it knows other limits.

    Raises UnsupportedError with every rule that nftables cannot express.
    """
    draft = _drafted(program)
    while len(way := longest_way(draft.chains)) - 1 > MAX_DEPTH:
        names = {chain.name: name for name, chain in draft.known.items()}
        known = [names[name] for name in way if name in names]
        shorter = shortened(draft.program, known, len(way) - 1 - MAX_DEPTH)
        if shorter is None:
            draft.refusals += too_deep(draft.chains)
            break
        draft = _drafted(shorter)
    return draft.table(), draft.notes()


def _drafted(program: Program) -> Draft:
    draft = Draft(program)
    for chain in program.chains:
        _fill(draft, chain)
    return draft


def _fill(draft: Draft, chain: LoweredChain) -> None:
    """Write the chain's statements as rules, and what cannot be written as refusals."""
    made = draft.known[chain.name]
    for each in chain.statements:
        tests = canonical(each.tests, draft.family)
        if tests is None:
            continue  # no packet passes these tests
        try:
            made = _write(draft, made, each if tests is each.tests else replace(each, tests=tests))
        except CannotSay as e:
            draft.refusals += _refused_entries(draft, made, each) or [e.at(each.origin)]


def _refused_entries(draft: Draft, chain: NftChain, each: Statement) -> list[Refusal]:
    """The rules of a lookup that would be refused each by itself; what this writes belongs to no table."""
    refused: list[Refusal] = []
    for entry in each.entries if isinstance(each, Lookup) else ():
        try:
            apart = Apply(tests=(), actions=entry.actions, origin=entry.origin)
            write_rule(draft, draft.aside(chain, entry.origin), apart)
        except CannotSay as e:
            refused.append(e.at(entry.origin))
    return refused


def _write(draft: Draft, chain: NftChain, each: Statement) -> NftChain:
    """Write a statement; return the chain that takes what stands behind it."""
    match each:
        case Apply():
            return write_apply(draft, chain, each)
        case Lookup():
            write_lookup(draft, chain, each)
        case Choose():
            write_choose(draft, chain, each)
        case _:
            assert_never(each)
    return chain
