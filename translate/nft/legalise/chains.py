"""Program → legal Program: every statement of every chain, in order.

``alternatives`` writes rules with a test that needs several rules, ``rules`` all other rules,
``containers`` lookups and draws.
"""

from __future__ import annotations

from typing import assert_never

from translate.dataclass import replace
from translate.errors import Refusal
from translate.ir import Apply, Choose, Field, Lookup, LoweredChain, Program, Statement
from translate.nft.legal import LegalChain, LegalProgram
from translate.nft.legalise.alternatives import write_apply
from translate.nft.legalise.anyhelper import with_names
from translate.nft.legalise.containers import write_choose, write_lookup
from translate.nft.legalise.depth import MAX_DEPTH, longest_path, shortened, too_deep
from translate.nft.legalise.draft import DraftProgram
from translate.nft.legalise.helpers import behind_conntrack
from translate.nft.legalise.netmaps import with_sides
from translate.nft.legalise.rules import write_rule
from translate.nft.legalise.shifts import spelled_out
from translate.nft.legalise.sockets import with_full_sockets, with_living_sockets
from translate.nft.limits.inexpressible import check_key
from translate.nft.limits.refusal import CannotSay
from translate.nft.limits.sockets import leaving_chains
from translate.passes.inventory import Inventory
from translate.passes.normalise import canonical

__all__ = ["legalise"]


def legalise(program: Program) -> LegalProgram:
    """Return the Program in which every statement is one nft rule, and every container one map or set.

    Raises UnsupportedError with every rule that nftables cannot express.
    """
    inventory, refused = behind_conntrack(Inventory.of(program))
    inventory, of_two_sides = with_sides(inventory)
    draft = _drafted(inventory)
    while len(path := longest_path(draft.chains)) - 1 > MAX_DEPTH:
        names = {chain.name: name for name, chain in draft.declared.items()}
        names_of_path = [names[name] for name in path if name in names]
        shorter = shortened(draft.program, names_of_path, len(path) - 1 - MAX_DEPTH)
        if shorter is None:
            draft.refusals += too_deep(draft.chains)
            break
        draft = _drafted(Inventory.of(shorter))
    draft.refusals += (*refused, *of_two_sides)
    return draft.legal()


def _drafted(inventory: Inventory) -> DraftProgram:
    draft = DraftProgram(inventory)
    for chain in inventory.program.chains:
        _fill(draft, chain)
    return draft


def _fill(draft: DraftProgram, chain: LoweredChain) -> None:
    """Write the chain's statements as rules, and refusals for those that cannot be written."""
    by_helper = Field.CT_HELPER in draft.inventory.fields
    by_class = Field.SOCKET_CLASS in draft.inventory.fields
    by_process = Field.SOCKET in draft.inventory.fields
    leaving = {c.name for c in leaving_chains(draft.program)} if by_class or by_process else frozenset()
    target = draft.declared[chain.name]
    for each in map(spelled_out, chain.statements):
        tests = canonical(each.tests, draft.family)
        if tests is None:
            continue  # no packet passes these tests
        if by_helper:
            tests = with_names(tests)
        if by_class and chain.name not in leaving:
            tests = with_full_sockets(tests)
        if by_process and chain.name not in leaving:
            tests = with_living_sockets(tests)
        try:
            target = _write(draft, target, each if tests is each.tests else replace(each, tests=tests))
        except CannotSay as e:
            draft.refusals += _refused_entries(draft, target, each) or [e.at(each.origin)]


def _refused_entries(draft: DraftProgram, chain: LegalChain, each: Statement) -> list[Refusal]:
    """Return a refusal for each entry of a lookup that would be refused as a single rule.

    The rules that this function writes are discarded with the draft.
    """
    refused: list[Refusal] = []
    if not isinstance(each, Lookup):
        return refused
    for entry in each.entries:
        try:
            check_key(each.fields, entry.key, draft.family)
            rule = Apply(tests=(), actions=entry.actions, origin=entry.origin)
            write_rule(draft, draft.subchain(chain, entry.origin), rule)
        except CannotSay as e:
            refused.append(e.at(entry.origin))
    return refused


def _write(draft: DraftProgram, chain: LegalChain, each: Statement) -> LegalChain:
    """Write a statement; return the chain for the statements after it."""
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
