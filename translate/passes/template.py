"""``template``: chains that differ only in constants become one chain, whose constants are looked up.

*Before*: a Program of lookups and draws (``lookup``, ``choose``), pruned.

*After*: every entry of a *dispatcher* (a lookup whose entries jump to separate chains) jumps to a copy of
its chain that is specialised for the key (``copies``), and copies of equal *shape* are one chain. Where they
differ (an address compared, the target of a DNAT, a list of ``-m recent``), a lookup by the
dispatcher's fields finds the constant. So the number of chains, rules and maps grows with
the number of shapes, and services and endpoints are entries. The pass uses no names and no comments.

*Why the meaning is preserved.* A copy for key *k* is reached only through the entry of *k*, so every packet
in it has the key *k* **as long as the fields of the key do not change** before control comes back. They are
header fields, which only NAT changes, and NAT ends the table for the packet. (A lookup by mark or by
conntrack state is not a dispatcher.) Inside the copy,

* a test that holds for every packet with the key is left out, and so is a statement that no such packet
  passes;
* an entry keyed by *k* applies exactly to the packets of this copy. So ``Lookup(F, {k: A, k': A'})`` in the
  chain that replaces the copies of *k* and *k'* does *A* for *k* and *A'* for *k'*, **provided that no key
  has two copies in one chain**. The place of a copy is its shape and the path to it from the dispatcher (the
  number of the callee, if there are several). Two copies of one key at the same place would be callee and
  caller, but the shape of a caller contains that of its callee.

Marks are not used for this: the chain that the packet is in determines the endpoint that was drawn. So the
hairpin mark is still set before the DNAT, and readers of the mark in between see no difference (policy
routing, a rule in another table, another program). Draws are left as ``choose`` made them.

Entries that do not qualify are left as they were:

* **state that belongs to a rule**: copies of a rule with a counter (``statistic --mode nth``, and every test
  that this pass does not know) would count separately, and rules that become one would count together;
* **lists of** ``-m recent`` **that two keys reach**: the lists of a shape become one list with the
  dispatcher's fields before the address (:attr:`Recent.key`). Its parts are separate lists only if every rule
  that names a list is reached by one key and through this dispatcher. A service with a cluster address and a
  node port has one list per endpoint for both, and keeps its chains;
* keys that are not points, and entries that do not end in a jump or goto;
* trees of copies that share no place with the tree of another key: nothing would be saved.

A chain that nearly all keys reach and that does not test the fields of the key (a chain that logs and drops)
is called instead of copied, which is always sound. So are chains that contain a dispatcher, which was treated
before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from translate.dataclass import dataclass, field, replace
from translate.ir import Field, Goto, Interval, Jump, Lookup, LoweredChain, MergedList, Program, Value
from translate.passes.copies import Copier, Copy, CopyError, renamed
from translate.passes.facts import Facts, entry_facts, facts_of_key, refine
from translate.passes.templatechains import Member, template_chain
from translate.passes.templategraph import CallGraph
from translate.passes.templatenames import Place, chain_names, dispatcher_label, list_name

__all__ = ["template"]

_DISPATCHING: Final = frozenset({Field.SADDR, Field.DADDR, Field.L4PROTO, Field.SPORT, Field.DPORT})
"""The fields of a dispatcher: header fields, which only NAT changes."""


def template(program: Program) -> Program:
    """Return the Program with one chain per shape below every lookup that dispatches."""
    work = _Work(program)
    dispatchers = [
        (chain.name, index, number, _jumps(statement, program))
        for chain in program.chains
        for number, (index, statement) in enumerate(
            (index, statement)
            for index, statement in enumerate(chain.statements)
            if isinstance(statement, Lookup) and set(statement.fields) <= _DISPATCHING
        )
    ]
    for name, index, number, jumps in sorted(dispatchers, key=lambda dispatcher: -len(dispatcher[3])):
        if len(jumps) > 1 and name not in work.covered:
            work.treat(name, index, jumps, dispatcher_label(name, number))
    return replace(
        program,
        chains=(*work.chains.values(), *work.made.values()),
        merged=(*program.merged, *work.merged),
    )


def _jumps(lookup: Lookup, program: Program) -> dict[int, str]:
    """Return the entries that a template may replace: the number of each, and the chain that it calls."""
    return {
        index: entry.actions[-1].chain
        for index, entry in enumerate(lookup.entries)
        if entry.actions
        and isinstance(entry.actions[-1], Jump | Goto)
        and all(isinstance(v, Interval) and v.is_point for v in entry.key)
    }


@dataclass(slots=True)
class _Tree:
    """The copies for one entry, by place. ``lists`` are the lists of ``-m recent`` that they name."""

    key: tuple[Value, ...]
    root: str
    places: dict[Place, Copy]
    lists: tuple[str, ...]


@dataclass(slots=True)
class _Work:
    """The Program before the pass, and its changes so far.

    ``covered`` are the chains that templates replace. ``kept`` are chains that are called and not copied,
    because a dispatcher in them or below them was treated before.
    """

    program: Program
    chains: dict[str, LoweredChain] = field(init=False)
    made: dict[str, LoweredChain] = field(default_factory=dict)
    merged: list[MergedList] = field(default_factory=list)
    covered: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    original: dict[str, LoweredChain] = field(init=False)
    facts: dict[str, Facts] = field(init=False)
    graph: CallGraph = field(init=False)

    def __post_init__(self) -> None:
        self.original = {chain.name: chain for chain in self.program.chains}
        self.chains = dict(self.original)
        self.facts = entry_facts(self.program)
        self.graph = CallGraph.of(self.program)

    def treat(self, name: str, index: int, jumps: Mapping[int, str], label: str) -> None:
        """Replace the chains that one lookup jumps to by templates, if that saves chains.

        Their names begin with ``label``.
        """
        lookup = self.original[name].statements[index]
        assert isinstance(lookup, Lookup)
        trees = self._trees(name, lookup, jumps, label)
        groups = _groups(trees.values())
        trees = {n: t for n, t in trees.items() if any(len(groups[place]) > 1 for place in t.places)}
        originals = {c.chain.name for t in trees.values() for c in t.places.values()}
        groups = _groups(trees.values())
        if len(groups) >= len(originals):
            return
        names = chain_names(label, {place: members[0][1] for place, members in groups.items()})
        for place, members in groups.items():
            self.made[names[place]] = template_chain(names, place, members, lookup.fields)
        entries = list(lookup.entries)
        for number, tree in trees.items():
            top = next(iter(tree.places))
            entries[number] = replace(
                entries[number], actions=renamed(entries[number].actions, {tree.root: names[top]})
            )
        statements = list(self.chains[name].statements)
        statements[index] = replace(lookup, entries=tuple(entries))
        self.chains[name] = replace(self.chains[name], statements=tuple(statements))
        for tree in trees.values():
            self.merged += [
                MergedList(own, list_name(label, number, self.graph.profile(own)), tree.key)
                for number, own in enumerate(tree.lists)
            ]
        self.covered |= originals
        self.kept |= self.graph.with_callers(name)

    def _trees(self, name: str, lookup: Lookup, jumps: Mapping[int, str], label: str) -> dict[int, _Tree]:
        """Return the copies for each entry that qualifies, by its number; none if they are too many."""
        copier = Copier(
            chains=self.original,
            family=self.program.family,
            key=lookup.fields,
            as_they_are=self.kept | self.graph.shared(lookup.fields, jumps.values()),
            list_name=lambda own, number: list_name(label, number, self.graph.profile(own)),
            budget=8 * sum(len(c.statements) for c in self.program.chains) + 1000,
        )
        facts = refine(self.facts[name], lookup.tests, self.program.family)
        trees: dict[int, _Tree] = {}
        for number, root in jumps.items():
            key = lookup.entries[number].key
            facts_of_entry = refine(facts, facts_of_key(lookup.fields, key), self.program.family)
            try:
                copy, lists = copier.copy(root, facts_of_entry)
            except CopyError:
                if copier.budget < 0:
                    return {}
                continue
            places = {(each.shape, place): each for place, each in copy.places()}
            tree = _Tree(key, root, places, lists)
            if all(self._belongs_to(own, tree) for own in lists):
                trees[number] = tree
        return trees

    def _belongs_to(self, name: str, tree: _Tree) -> bool:
        """Return whether only the tree's key reaches the rules that name the list."""
        inside = {copy.chain.name for copy in tree.places.values()}
        return self.graph.is_reached_only_by(name, tree.root, inside)


def _groups(trees: Iterable[_Tree]) -> dict[Place, list[Member]]:
    """Return the copies at each place, each with the key of its tree."""
    groups: dict[Place, list[Member]] = {}
    for tree in trees:
        for place, copy in tree.places.items():
            groups.setdefault(place, []).append((tree.key, copy))
    return groups
