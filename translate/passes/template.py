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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from translate.ir import (
    Apply,
    Branch,
    Choose,
    Dnat,
    Entry,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    MergedList,
    Origin,
    Program,
    Recent,
    Statement,
    Test,
    Value,
)
from translate.passes.calls import called, callees_first
from translate.passes.copies import Copier, Copy, CopyError, Row, renamed
from translate.passes.facts import Facts, entry_facts, facts_of_key, refine
from translate.passes.lookup import KEY_FIELDS
from translate.passes.templatenames import Place, chain_names, dispatcher_label, list_name

__all__ = ["template"]

_DISPATCHING: Final = frozenset({Field.SADDR, Field.DADDR, Field.L4PROTO, Field.SPORT, Field.DPORT})
"""The fields of a dispatcher: header fields, which only NAT changes."""

_SHARED: Final = 64
"""A chain that does not test the key is called unchanged if more keys than this, or all keys, reach it."""

_Key = tuple[Value, ...]


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

    key: _Key
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
    callees: dict[str, list[str]] = field(init=False)
    callers: dict[str, list[str]] = field(init=False)
    tested: dict[str, frozenset[Field]] = field(init=False)
    lists: dict[str, list[tuple[str, Recent]]] = field(init=False)

    def __post_init__(self) -> None:
        self.original = {chain.name: chain for chain in self.program.chains}
        self.chains = dict(self.original)
        self.facts = entry_facts(self.program)
        self.callees = {name: called(chain) for name, chain in self.original.items()}
        self.callers = {name: [] for name in self.original}
        self.lists = {}
        for chain in self.program.chains:
            for name in self.callees[chain.name]:
                self.callers[name].append(chain.name)
            for statement in chain.statements:
                for test in statement.tests:
                    if isinstance(test, Recent):
                        self.lists.setdefault(test.name, []).append((chain.name, test))
        self.tested = {}
        for chain in callees_first(self.program):
            fields = {f for statement in chain.statements for f in _tested_fields(statement)}
            below = [self.tested[name] for name in self.callees[chain.name]]
            self.tested[chain.name] = frozenset(fields.union(*below))

    # One dispatcher.

    def treat(self, name: str, index: int, jumps: Mapping[int, str], label: str) -> None:
        """Replace the chains that one lookup jumps to by templates, if that saves chains.

        Their names begin with ``label``.
        """
        lookup = self.original[name].statements[index]
        assert isinstance(lookup, Lookup)

        def new_name(known: str, number: int) -> str:
            return list_name(label, number, self._profile(known))

        copier = Copier(
            chains=self.original,
            family=self.program.family,
            key=lookup.fields,
            as_they_are=self.kept | self._shared(lookup.fields, jumps.values()),
            list_name=new_name,
            budget=8 * sum(len(c.statements) for c in self.program.chains) + 1000,
        )
        known = refine(self.facts[name], lookup.tests, self.program.family)
        trees: dict[int, _Tree] = {}
        for number, root in jumps.items():
            key = lookup.entries[number].key
            here = refine(known, facts_of_key(lookup.fields, key), self.program.family)
            try:
                copy, lists = copier.copy(root, here)
            except CopyError:
                if copier.budget < 0:
                    return
                continue
            places = {(each.shape, place): each for place, each in copy.places()}
            tree = _Tree(key, root, places, lists)
            if all(self._belongs_to(known_list, tree) for known_list in lists):
                trees[number] = tree
        groups = _groups(trees.values())
        trees = {n: t for n, t in trees.items() if any(len(groups[place]) > 1 for place in t.places)}
        originals = {c.chain.name for t in trees.values() for c in t.places.values()}
        groups = _groups(trees.values())
        if len(groups) >= len(originals):
            return
        names = chain_names(label, {place: members[0][1] for place, members in groups.items()})
        for place, members in groups.items():
            self.made[names[place]] = _merged(names, place, members, lookup.fields)
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
                MergedList(own, new_name(own, number), tree.key) for number, own in enumerate(tree.lists)
            ]
        self.covered |= originals
        self._keep(name)

    def _shared(self, fields: tuple[Field, ...], roots: Iterable[str]) -> set[str]:
        """Return the chains that all roots, or more than _SHARED, reach and that do not test these fields."""
        reached: dict[str, int] = {}
        count = 0
        for root in roots:
            count += 1
            visited = {root}
            todo = [root]
            while todo:
                for name in self.callees[todo.pop()]:
                    if name not in visited:
                        visited.add(name)
                        todo.append(name)
            for name in visited:
                reached[name] = reached.get(name, 0) + 1
        return {
            name
            for name, keys in reached.items()
            if (keys > _SHARED or keys == count) and not self.tested[name] & set(fields)
        }

    def _keep(self, name: str) -> None:
        """Exclude this chain, and all chains that reach it, from copying."""
        todo = [name]
        while todo:
            name = todo.pop()
            if name not in self.kept:
                self.kept.add(name)
                todo += self.callers[name]

    # Lists of -m recent.

    def _profile(self, name: str) -> tuple[str, ...]:
        """Return the use of a list by rules, without its name."""
        return tuple(sorted({repr(replace(test, name="")) for _, test in self.lists[name]}))

    def _belongs_to(self, name: str, tree: _Tree) -> bool:
        """Return whether only the tree's key reaches the rules that name the list."""
        inside = {copy.chain.name for copy in tree.places.values()}
        todo = [chain for chain, _ in self.lists[name]]
        visited: set[str] = set()
        while todo:
            chain = todo.pop()
            if chain in visited:
                continue
            visited.add(chain)
            if chain not in inside:
                return False
            if chain == tree.root:
                if len(self.callers[chain]) != 1:
                    return False
            else:
                todo += self.callers[chain]
        return True


def _groups(trees: Iterable[_Tree]) -> dict[Place, list[tuple[_Key, Copy]]]:
    groups: dict[Place, list[tuple[_Key, Copy]]] = {}
    for tree in trees:
        for place, copy in tree.places.items():
            groups.setdefault(place, []).append((tree.key, copy))
    return groups


def _merged(
    names: Mapping[Place, str],
    place: Place,
    members: list[tuple[_Key, Copy]],
    fields: tuple[Field, ...],
) -> LoweredChain:
    """Return the chain that replaces all copies at one place."""
    first = members[0][1]
    path = place[1]
    below = [
        names[callee.shape, path if len(first.callees) == 1 else (*path, index)]
        for index, callee in enumerate(first.callees.values())
    ]
    calls = [dict(zip(copy.callees, below, strict=True)) for _, copy in members]
    statements: list[Statement] = []
    for index, part in enumerate(first.parts):
        if isinstance(part.statement, Choose):
            branches = tuple(
                Branch(
                    weight=b.weight, actions=renamed(b.actions, calls[0]), origin=_place(b.origin, members)
                )
                for b in part.statement.branches
            )
            origin = _place(part.statement.origin, members)
            statements.append(replace(part.statement, branches=branches, origin=origin))
            continue
        rows = [
            [_renamed_row(row, names_) for row in copy.parts[index].rows]
            for (_, copy), names_ in zip(members, calls, strict=True)
        ]
        if all(_same(rows[0], other) for other in rows) and not any(map(_is_own, rows[0])):
            statements.append(_constant(part.statement, calls[0], members))
        else:
            keyed = [(key, row) for (key, _), own in zip(members, rows, strict=True) for row in own]
            origin = _place(part.statement.origin, members)
            statements.append(_lookup(origin, (*fields, *part.fields), part.tests, keyed))
    return LoweredChain(
        name=names[place],
        table=first.chain.table,
        statements=tuple(statements),
        origin=_place(first.chain.origin, members),
    )


def _place(origin: Origin, members: Sequence[object]) -> Origin:
    """Return the origin of a statement for all members: that of the first member."""
    return origin.of_several() if len(members) > 1 else origin


def _renamed_row(row: Row, names: Mapping[str, str]) -> Row:
    actions = renamed(row.actions, names)
    return row if actions is row.actions else Row(row.key, actions, row.origin)


def _same(rows: Sequence[Row], other: Sequence[Row]) -> bool:
    return [(r.key, r.actions) for r in rows] == [(r.key, r.actions) for r in other]


def _is_own(row: Row) -> bool:
    """Return whether the row names one address or port, which is looked up even if all copies agree on it.

    Otherwise the first service with another endpoint would change the chain instead of an entry.
    """
    return any(isinstance(v, Interval) and v.is_point for v in row.key) or any(
        isinstance(action, Dnat) for action in row.actions
    )


def _constant(statement: Statement, calls: Mapping[str, str], members: Sequence[object]) -> Statement:
    origin = _place(statement.origin, members)
    match statement:
        case Apply():
            return replace(statement, actions=renamed(statement.actions, calls), origin=origin)
        case Lookup():
            entries = tuple(
                Entry(key=e.key, actions=renamed(e.actions, calls), origin=_place(e.origin, members))
                for e in statement.entries
            )
            return replace(statement, entries=entries, origin=origin)
        case Choose():
            raise AssertionError("a draw has no constants")


def _lookup(
    origin: Origin,
    fields: tuple[Field, ...],
    tests: tuple[Test, ...],
    rows: list[tuple[_Key, Row]],
) -> Lookup:
    order = sorted(range(len(fields)), key=lambda i: KEY_FIELDS.index(fields[i]))
    entries = []
    for key, row in rows:
        whole: tuple[Value, ...] = (*key, *row.key)
        ordered = tuple([whole[i] for i in order])
        entries.append(Entry(key=ordered, actions=row.actions, origin=row.origin))
    return Lookup(
        fields=tuple(fields[i] for i in order),
        entries=tuple(entries),
        tests=tests,
        origin=origin,
    )


def _tested_fields(statement: Statement) -> list[Field]:
    tested = [test.field for test in statement.tests if isinstance(test, FieldTest)]
    return [*tested, *statement.fields] if isinstance(statement, Lookup) else tested
