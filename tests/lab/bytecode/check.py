"""Comparison of every statement of a Program with the instructions that nft would load for it.

Each statement is written into a separate chain, so that no earlier rule keeps packets away from it. After it
comes a jump to a chain that stands for all following rules. Chains that rules call are empty: a call is
recorded and returns. All statements are one text, which nft compiles at once. Statements that use conntrack
are in a second text, because with conntrack no later fragment reaches the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tests.lab.bytecode.compiler import Nft
from tests.lab.bytecode.conditions import World
from tests.lab.bytecode.drawing import distinguished_fields, draw_samples
from tests.lab.bytecode.expressible import expressible
from tests.lab.bytecode.listing import Listing
from tests.lab.bytecode.machine import Names, RecentSet, run
from tests.lab.bytecode.meaning import perform
from tests.lab.bytecode.samples import Sample, State
from translate.errors import Refusal
from translate.ir import (
    Apply,
    CgroupTest,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Dnat,
    Field,
    FieldTest,
    Jump,
    Lookup,
    LoweredChain,
    Masquerade,
    Netmap,
    Program,
    Proxy,
    Recent,
    Redirect,
    RestoreMark,
    SaveMark,
    SetConnmark,
    SetTest,
    SetUpdate,
    Snat,
    Statement,
    SynProxy,
    TableName,
    Template,
    alternatives,
    flat,
)
from translate.nft.legal import SharedCounter, SharedLimit, SharedQuota
from translate.nft.model import NftChain, NftTable
from translate.passes.inventory import Inventory
from translate.passes.recents import RecentList, recent_lists
from translate.passes.states import buckets, quotas

__all__ = ["Checked", "Difference", "check"]

_NEXT = "filter/next"
_SHOWN = 3
"""The number of packets shown for each statement that differs."""


Result = tuple[object, ...]
"""The observable results of a packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A packet for which the instructions have another effect than the statement.

    ``rules`` are the statement as it was written for nft; ``fields`` are those that may decide.
    """

    nft: str
    statement: Statement
    rules: tuple[str, ...]
    fields: tuple[Field, ...]
    sample: Sample
    wanted: Result
    observed: Result

    def render(self) -> str:
        """Return the difference as lines of text."""
        values = ((f.text, self.sample.values.get(f)) for f in self.fields)
        shown = (f"{name}={v:#x}" if isinstance(v, int) else f"{name}={v}" for name, v in values)
        sample = self.sample
        others = (
            f"draw={sample.draw:#x}",
            f"count={sample.count}",
            f"ages={sample.ages}",
            f"kind={sample.kind}",
        )
        lines = (
            f"{self.nft}: {self.statement.origin.place}: {self.statement.origin.text}",
            *(f"    {rule}" for rule in self.rules),
            f"  packet   {' '.join((*shown, *others))}",
            f"  meant    {self.wanted}",
            f"  happens  {self.observed}",
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The numbers of statements and packets checked, the differences, and nftables' refusals."""

    statements: int = 0
    packets: int = 0
    differences: tuple[Difference, ...] = ()
    refused: tuple[Refusal, ...] = ()


def check(programs: Sequence[Program], compilers: Sequence[Nft], *, seed: int = 0) -> Checked:
    """Compare every statement that nftables can express with the instructions of each nft.

    ``programs`` are one ruleset at several levels; statements that levels share are checked once. Raises
    NftError when an nft refuses the text.
    """
    statements = {
        _key(s): s
        for p, lists in ((p, recent_lists(Inventory.of(p))) for p in programs)
        for chain in p.chains
        for s in chain.statements
        if not _counts(s, lists)
    }
    groups: tuple[list[Statement], list[Statement]] = ([], [])
    for statement in statements.values():
        groups[_tracks(statement)].append(statement)
    parts = [_checked(programs, group, compilers, seed) for group in groups if group]
    return Checked(
        statements=sum(part.statements for part in parts),
        packets=sum(part.packets for part in parts),
        differences=tuple(each for part in parts for each in part.differences),
        refused=tuple(each for part in parts for each in part.refused),
    )


def _tracks(statement: Statement) -> bool:
    """Return whether a statement uses conntrack, judged by the kinds of its tests and actions."""
    fields = {test.field for test in flat(statement.tests) if isinstance(test, FieldTest)}
    if isinstance(statement, Lookup):
        fields.update(statement.fields)
    if any(field.text.startswith("ct.") for field in fields):
        return True
    if any(isinstance(test, ConnectionLimit) for test in statement.tests):
        return True
    return any(isinstance(action, _TRACKING) for each in alternatives(statement) for action in each.actions)


_TRACKING = (
    *(Dnat, Snat, Masquerade, Redirect, Netmap, SetConnmark, SaveMark, RestoreMark),
    *(Template, Proxy, SynProxy),
)


def _checked(
    programs: Sequence[Program], statements: Sequence[Statement], compilers: Sequence[Nft], seed: int
) -> Checked:
    """Compare some of the statements, in one text."""
    apart, output, refused = expressible(_apart(programs, statements))
    world, names = _surroundings(apart, output.structure)
    listings = [(nft, nft.compiled(output.text)) for nft in compilers]
    reassembled = any(listing.reassembles() for _, listing in listings)
    # Chains of the text begin with those of the Program, in order.
    alone = [
        (chain.statements[0], made)
        for chain, made in zip(apart.chains, output.structure.chains, strict=False)
        if len(chain.statements) > 1
    ]
    differences: list[Difference] = []
    packets = 0
    for number, (statement, chain) in enumerate(alone):
        drawn = draw_samples(statement, world, seed + number)
        samples = (sample for sample in drawn if not (reassembled and sample.fragment))
        expected = [(sample, _expected(statement, sample, world)) for sample in samples]
        packets += len(expected)
        acts = any(_acts(sample, wanted) for sample, wanted in expected)
        known: list[tuple[Listing, list[Result]]] = []
        for nft, listing in listings:
            results = next(
                (r for other, r in known if listing.has_same_instructions(other, chain.name)), None
            )
            if results is None:
                results = [_happens(listing, chain, sample, names) for sample, _ in expected]
                known.append((listing, results))
            wrong = (
                (sample, wanted, happened)
                for (sample, wanted), happened in zip(expected, results, strict=True)
                if (wanted != happened if acts else _acts(sample, happened))
            )
            differences += (
                Difference(
                    nft=nft.name,
                    statement=statement,
                    rules=tuple(_written(output.structure, chain)),
                    fields=distinguished_fields(statement, world),
                    sample=sample,
                    wanted=wanted,
                    observed=result,
                )
                for sample, wanted, result in islice(wrong, _SHOWN)
            )
    return Checked(statements=len(alone), packets=packets, differences=tuple(differences), refused=refused)


def _counts(statement: Statement, lists: Mapping[str, RecentList]) -> bool:
    """Return whether a statement has a state or a hash that samples lack.

    These are lists of ``-m recent`` that count, sets that rules change, and labels and hashes of connections:
    see tests/kernel/test_recent.py, and the cases ``set-updates``, ``labels`` and ``cluster``.
    """
    return any(
        (isinstance(test, Recent) and bool(lists[test.name].hits))
        or isinstance(test, SetUpdate | ConnLabel | ClusterShare | CgroupTest)
        or (isinstance(test, SetTest) and test.filled)
        for test in statement.tests
    )


def _key(statement: Statement) -> object:
    """Return a key that is equal for statements with the same nft text."""
    if isinstance(statement, Lookup):
        return statement.fields, statement.tests, type(statement.entries), tuple(statement.entries)
    return statement


def _apart(programs: Sequence[Program], statements: Sequence[Statement]) -> Program:
    """Return the Program with each statement in a separate chain, after the chains that it calls, which
    are empty.
    """
    called = {
        chain.name: replace(chain, statements=(), hook=None, priority=None, policy=None)
        for program in programs
        for chain in program.chains
    }
    last = LoweredChain(name=_NEXT, table=TableName.FILTER, statements=())
    onward = Apply(tests=(), actions=(Jump(_NEXT),))
    alone = [
        LoweredChain(
            name=f"filter/#{number}",
            table=TableName.FILTER,
            statements=(statement, onward),
            origin=statement.origin,
        )
        for number, statement in enumerate(statements)
    ]
    return replace(programs[0], chains=(*called.values(), last, *alone))


def _surroundings(program: Program, table: NftTable) -> tuple[World, Names]:
    """Return the names that statements refer to, with the corresponding names in nft."""
    inventory = Inventory.of(program)
    lists = recent_lists(inventory)
    world = World(
        family=program.family,
        sets={item.name: item for item in program.sets},
        lists={name: known.seconds for name, known in lists.items()},
    )
    limits = [item.name for item in table.objects if isinstance(item, SharedLimit)]
    quota_names = [item.name for item in table.objects if isinstance(item, SharedQuota)]
    sets = {}
    hashed = {}
    for item in table.sets:
        kind, _, name = re.sub(r", line \d+$", "", item.note).partition(" ")
        if kind in ("hashlimit", "connlimit"):
            hashed[item.name] = name
        else:
            sets[item.name] = RecentSet(name, item.timeout)
    names = Names(
        chains={
            made.name: chain.name
            for made, chain in zip(table.chains, program.chains, strict=False)
            if not chain.statements
        },
        counters={
            c.name: c.note.removeprefix("nfacct ") for c in table.objects if isinstance(c, SharedCounter)
        },
        limits={
            **dict(zip(limits, buckets(inventory), strict=True)),
            **dict(zip(quota_names, quotas(inventory), strict=True)),
        },
        over=frozenset(item.name for item in table.objects if isinstance(item, SharedQuota) and item.over),
        hashed=hashed,
        sets=sets,
        lists=tuple(world.lists),
    )
    return world, names


def _expected(statement: Statement, sample: Sample, world: World) -> Result:
    state = State(sample)
    if perform(statement, state, world):
        state.note("call", _NEXT)
    return _result(state)


def _happens(listing: Listing, chain: NftChain, sample: Sample, names: Names) -> Result:
    state = State(sample)
    run(listing, chain.name, state, names)
    return _result(state)


def _result(state: State) -> Result:
    """Return the actions with the marks at that time, the final marks, and the contents of lists."""
    lists = tuple(sorted(((*key, value) for key, value in state.listed.items()), key=repr))
    marks = state.mark, state.connmark, state.label, state.connlabel
    return (*state.events, state.tos, state.ttl, *marks, state.tracked.name, lists)


def _acts(sample: Sample, result: Result) -> bool:
    """Return whether a statement has a visible effect; a counter has none if no rule follows."""
    state = State(sample)
    state.note("call", _NEXT)
    acts = tuple(act for act in result if not (isinstance(act, tuple) and act[:1] == ("count up",)))
    return acts != _result(state)


def _written(table: NftTable, chain: NftChain) -> Iterator[str]:
    """Return the rules of a chain and of the chains that only this chain calls."""
    chains = {c.name: c for c in table.chains}
    waiting, visited = [chain.name], {chain.name}
    while waiting:
        name = waiting.pop()
        for rule in chains[name].rules:
            yield f"{name}: {' '.join(rule.parts)}"
            new = [t for t in rule.targets if t not in visited and chains[t].rules]
            visited.update(new)
            waiting += new
