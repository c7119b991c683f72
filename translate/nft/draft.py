"""The table while it is being made: what is there so far, what it is called, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from translate.errors import Note, Refusal, UnsupportedError
from translate.ir import Family, Hook, IpSet, Jump, LoweredChain, Origin, Program, TableName
from translate.nft.accounts import counters_of, notes_on
from translate.nft.bridges import notes_on_bridges
from translate.nft.ipsets import NamedSets
from translate.nft.model import BaseHook, NftChain, NftCounter, NftMap, NftSet, NftTable
from translate.nft.names import NameGiver
from translate.nft.recent import notes_about, sets_of
from translate.nft.untracked import refused_answers
from translate.passes.accounts import account_origins
from translate.passes.recents import RecentList, recent_lists

__all__ = ["TABLE", "Draft"]

TABLE: Final = "nfparity"
"""The table that nfparity owns, one per family; it touches no other."""


@dataclass(slots=True)
class Draft:
    """One table in the making.

    ``chains`` of the Program are declared before the first rule is written, so that every jump has its
    name (``called``) and every chain can be found by the Program's (``known``). ``named`` are the ipsets
    that rules have asked for.
    """

    program: Program
    family: Family = field(init=False)
    lists: dict[str, RecentList] = field(init=False)
    ipsets: dict[str, IpSet] = field(init=False)
    names: NameGiver = field(default_factory=NameGiver)
    known: dict[str, NftChain] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    chains: list[NftChain] = field(default_factory=list)
    sets: dict[tuple[str, int | None], NftSet] = field(default_factory=dict)
    counters: dict[str, NftCounter] = field(default_factory=dict)
    maps: list[NftMap] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    named: NamedSets = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        self.family = program.family
        self.lists = recent_lists(program)
        self.ipsets = {one.name: one for one in program.sets}
        self.named = NamedSets(self.ipsets, self.family, self.names)
        for chain in program.chains:
            self._declare(chain)
        for known in self.lists.values():
            self.sets |= sets_of(known, self.names, self.family)
        self.counters |= counters_of(account_origins(program), self.names)

    def _declare(self, chain: LoweredChain) -> None:
        table, _, original = chain.name.partition("/")
        name = self.names.give(f"{table}_{original}")
        self.called[chain.name] = name
        note = f"{table} {original}"
        made = NftChain(name=name, note=note, origin=chain.origin, base=_base(chain))
        self.known[chain.name] = made
        self.chains.append(made)

    def aside(self, chain: NftChain, origin: Origin) -> NftChain:
        """Return a new chain for a part of ``chain``, named after it."""
        made = NftChain(name=self.names.give(chain.name), note=f"part of {chain.note}", origin=origin)
        self.chains.append(made)
        return made

    def jump(self, aside: NftChain) -> Jump:
        """Return a jump to a chain that only the nftables side has."""
        key = f"nft/{aside.name}"
        self.called[key] = aside.name
        return Jump(key)

    def table(self) -> NftTable:
        """Return the table. Raises UnsupportedError with every rule that nftables cannot express."""
        table = NftTable(
            family=self.family.value,
            name=TABLE,
            sets=tuple(self.sets.values()),
            counters=tuple(self.counters.values()),
            maps=[*self.named.made.values(), *self.maps],
            chains=self.chains,
        )
        refusals = [*self.refusals, *refused_answers(self.program)]
        if refusals:
            raise UnsupportedError(tuple(sorted(refusals, key=lambda r: r.origin.line)))
        return table

    def notes(self) -> tuple[Note, ...]:
        """Return where iptables knows other limits, or keeps its books elsewhere."""
        accounts = account_origins(self.program)
        return (
            *notes_about(self.lists.values()),
            *notes_on(accounts, self.counters),
            *notes_on_bridges(self.program),
        )


def _base(chain: LoweredChain) -> BaseHook | None:
    if chain.hook is None or chain.priority is None or chain.policy is None:
        return None
    kind = "filter"
    if chain.table is TableName.NAT:
        kind = "nat"
    elif chain.table is TableName.MANGLE and chain.hook is Hook.OUTPUT:
        kind = "route"  # routes again when the mark or an address was changed, as ipt_mangle_out does
    return BaseHook(type=kind, hook=chain.hook, priority=chain.priority, policy=chain.policy)
