"""The legal Program under construction: its chains, its names and its refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from translate.dataclass import dataclass, field
from translate.errors import Note, Refusal, UnsupportedError
from translate.ir import (
    Account,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Duplicate,
    Family,
    HashLimit,
    Hook,
    IpSet,
    Jump,
    Limit,
    LoweredChain,
    Origin,
    Program,
    Quota,
    Recent,
    Return,
    Secmark,
    SetUpdate,
    TableName,
    Template,
    Test,
)
from translate.nft.legal import (
    BaseHook,
    Count,
    FilledSet,
    InSet,
    Key,
    LegalChain,
    LegalMap,
    LegalProgram,
    LegalRule,
    Part,
    Ring,
    SetChange,
    SetHelper,
    SetLabel,
    SharedCounter,
    SharedHelper,
    SharedLabel,
    SharedLimit,
    SharedQuota,
    WithinLimit,
    WithinQuota,
)
from translate.nft.legalise.apart import with_masks
from translate.nft.legalise.connections import hashed_to, labelled
from translate.nft.legalise.connlimits import counted_in, set_of_counts
from translate.nft.legalise.filledsets import change_of, checked_update, filled_sets
from translate.nft.legalise.fragments import guard_transport, reassembles
from translate.nft.legalise.hashlimits import hash_sets, taken
from translate.nft.legalise.headers import matches
from translate.nft.legalise.ipsets import NamedSets
from translate.nft.legalise.rates import limit_of, quota_of
from translate.nft.legalise.recent import KEYED_SIZE, SIZE, RecentSets, rings_of, sets_of
from translate.nft.legalise.shifts import counted_ports
from translate.nft.legalise.tracking import reassembling_chain, tracking_chain, tracks_connections
from translate.nft.limits.authentication import refused_behind_authentication
from translate.nft.limits.inexpressible import check_statements
from translate.nft.limits.queues import refused_queues
from translate.nft.limits.sockets import refused_sockets
from translate.nft.limits.templates import refused_template_reads
from translate.nft.limits.untracked import refused_answers
from translate.nft.names import NameGiver
from translate.nft.notes import (
    notes_on_accounts,
    notes_on_bridges,
    notes_on_checksums,
    notes_on_congestion,
    notes_on_connections,
    notes_on_copies,
    notes_on_counted_ports,
    notes_on_counters_of_connections,
    notes_on_filled_sets,
    notes_on_hits,
    notes_on_later_fragments,
    notes_on_limits,
    notes_on_lists,
    notes_on_removals,
    notes_on_reverse_paths,
    notes_on_segment_sizes,
    notes_on_syn_proxies,
    notes_on_weekdays,
)
from translate.passes.calls import CALLS, hooks_of_chains
from translate.passes.inventory import Inventory
from translate.passes.recents import recent_lists
from translate.passes.states import account_origins, buckets, connection_limits, hash_tables, quotas

__all__ = ["DraftProgram"]

_WithState = (
    Recent | Account | Limit | HashLimit | ConnectionLimit | Quota | SetUpdate | ConnLabel | ClusterShare
)


@dataclass(slots=True)
class DraftProgram:
    """A legal Program under construction.

    All ``chains`` of the Program are declared before the first rule is written, so that the name of every
    callee is known (``called``). ``declared`` has the chains by their names in the Program. ``named`` are the
    ipsets that rules use.
    """

    inventory: Inventory
    program: Program = field(init=False)
    family: Family = field(init=False)
    ipsets: dict[str, IpSet] = field(init=False)
    names: NameGiver = field(default_factory=NameGiver)
    declared: dict[str, LegalChain] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    chains: list[LegalChain] = field(default_factory=list)
    reached: Mapping[str, frozenset[Hook]] = field(init=False)
    """The hooks from which packets come to each chain, if a decision depends on them."""
    recent: RecentSets = field(init=False)
    counters: dict[str, SharedCounter] = field(init=False)
    buckets: dict[str, SharedLimit] = field(init=False)
    quotas: dict[str, SharedQuota] = field(init=False)
    tables: dict[str, HashLimit] = field(init=False)
    hashed: dict[str, FilledSet] = field(init=False)
    limited: dict[str, FilledSet] = field(init=False)
    """The sets of connections of each ``-m connlimit``."""
    filled: dict[str, tuple[FilledSet, Origin]] = field(init=False)
    """The sets for ipsets that rules change, by the ipset's name, each with the first of these rules."""
    maps: list[LegalMap] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    named: NamedSets = field(init=False)
    labels: dict[str, SharedLabel] = field(default_factory=dict)
    """The labels that rules give to packets, each as an object."""
    turning: dict[tuple[Ring, Key], Jump] = field(default_factory=dict)
    """The chains that put times into rings, by the ring and the key of the address."""

    def __post_init__(self) -> None:
        inventory = self.inventory
        program = self.program = inventory.program
        self.family = program.family
        self.ipsets = {ipset.name: ipset for ipset in program.sets}
        self.filled = filled_sets(inventory, self.ipsets, self.names)
        filled = {name: each.name for name, (each, _) in self.filled.items()}
        self.named = NamedSets(self.ipsets, self.family, self.names, filled)
        self.reached = hooks_of_chains(program) if ClusterShare in inventory.tests else {}
        for chain in program.chains:
            self._declare(chain)
        lists = recent_lists(inventory)
        self.recent = RecentSets(self.family, lists, sets_of(lists, self.names), rings_of(lists, self.names))
        self.counters = {
            name: SharedCounter(name=self.names.give(f"nfacct_{name}"), note=f"nfacct {name}")
            for name in account_origins(inventory)
        }
        tables = hash_tables(inventory)
        self.tables = {name: test for name, (test, _) in tables.items()}
        self.hashed = hash_sets(tables, self.names)
        self.limited = {
            name: set_of_counts(test, origin, self.names)
            for name, (test, origin) in connection_limits(inventory).items()
        }
        self.quotas = {
            name: quota_of(test, origin, self.names) for name, (test, origin) in quotas(inventory).items()
        }
        self.buckets = {
            name: limit_of(test, origin, self.names) for name, (test, origin) in buckets(inventory).items()
        }

    def _declare(self, chain: LoweredChain) -> None:
        table, _, original = chain.name.partition("/")
        name = self.names.give(f"{table}_{original}")
        self.called[chain.name] = name
        note = f"{table} {original}"
        hooks = self.reached.get(chain.name, frozenset())
        new_chain = LegalChain(name=name, note=note, origin=chain.origin, base=_base(chain), hooks=hooks)
        self.declared[chain.name] = new_chain
        self.chains.append(new_chain)

    def subchain(self, chain: LegalChain, origin: Origin) -> LegalChain:
        """Return a new chain for a part of ``chain``; its name begins like that of ``chain``."""
        new_chain = LegalChain(
            name=self.names.give(chain.name),
            note=f"part of {chain.note}",
            origin=origin,
            hooks=chain.hooks,
        )
        self.chains.append(new_chain)
        return new_chain

    def jump(self, subchain: LegalChain) -> Jump:
        """Return a jump to a chain that is not in the Program."""
        key = f"nft/{subchain.name}"
        self.called[key] = subchain.name
        return Jump(key)

    def turned(self, chain: LegalChain, ring: Ring, test: Recent, origin: Origin) -> Jump:
        """Return a jump to the rules that put the time of a packet into a ring."""
        key = self.recent.key(test)
        jump_to_ring = self.turning.get((ring, key))
        if jump_to_ring is None:
            subchain = self.subchain(chain, origin)
            following = (*ring.turns[1:], ring.turns[0])
            for time, turn, after in zip(ring.times, ring.turns, following, strict=True):
                changes_of_turn = (SetChange(time.name, key), SetChange(turn.name, key, delete=True))
                self.write(
                    subchain,
                    [InSet(turn.name, key), *changes_of_turn, SetChange(after.name, key), Return()],
                    origin,
                )
            first = (SetChange(ring.times[0].name, key), SetChange(ring.turns[1].name, key))
            self.write(subchain, first, origin)
            jump_to_ring = self.turning[ring, key] = self.jump(subchain)
        return jump_to_ring

    def ordinary_matches(self, tests: Sequence[Test]) -> list[Part]:
        """Return the matches of an ordinary rule, which has no test with state and none that needs a mask."""
        return matches(tests, self.family, self.named.match)

    def matches(self, tests: Sequence[Test], before: Sequence[Test] = ()) -> list[Part]:
        """Return the matches of a rule, in the order of its tests; ``before`` are tests already written.

        Raises CannotSay.
        """
        parts: list[Part] = []
        start = len(before)
        tests = with_masks((*before, *tests))
        for index, test in enumerate(tests):
            if index >= start and isinstance(test, _WithState):
                parts += matches(tests[start:index], self.family, self.named.match, tests[:start])
                parts += self._stateful(test, tests)
                start = index + 1
        return parts + matches(tests[start:], self.family, self.named.match, tests[:start])

    def _stateful(self, test: _WithState, tests: Sequence[Test]) -> Sequence[Part]:
        match test:
            case Recent():
                return self.recent.matches(test)
            case Account(name=name):
                return (Count(self.counters[name].name),)
            case HashLimit(name=name):
                return (taken(test, self.tables[name], self.hashed[name].name, tests, self.family),)
            case ConnectionLimit(state=state):
                return (counted_in(test, self.limited[state].name, self.program),)
            case Quota(state=state):
                return (WithinQuota(self.quotas[state].name),)
            case ConnLabel():
                return labelled(test)
            case ClusterShare():
                return (hashed_to(test, self.family),)
            case SetUpdate(name=name):
                checked_update(test, self.ipsets, self.inventory)
                return change_of(test, self.ipsets[name], self.filled[name][0], tests)
            case Limit(bucket=bucket):
                return (WithinLimit(self.buckets[bucket].name),)
            case _:
                assert_never(test)

    def write(
        self, chain: LegalChain, parts: Sequence[Part], origin: Origin, calls: Iterable[str] = ()
    ) -> None:
        """Write one rule; ``calls`` are the chains to which its map jumps. Raises CannotSay."""
        check_statements(parts, self.family)
        parts = [SetLabel(self._label(p.context)) if isinstance(p, Secmark) else p for p in parts]
        called = [*calls, *[self.called[part.chain] for part in parts if isinstance(part, CALLS)]]
        chain.rules.append(LegalRule(parts=tuple(parts), calls=tuple(called), origin=origin))

    def _label(self, context: str) -> SharedLabel:
        if context not in self.labels:
            name = self.names.give(f"secmark_{context}")
            self.labels[context] = SharedLabel(name=name, label=context, note=f"label {context}")
        return self.labels[context]

    def legal(self) -> LegalProgram:
        """Return the legal Program. Raises UnsupportedError with every rule that nftables cannot express."""
        refusals = [*self.refusals, *refused_answers(self.inventory), *refused_template_reads(self.inventory)]
        refusals += refused_queues(self.inventory)
        refusals += refused_behind_authentication(self.inventory)
        refusals += refused_sockets(self.inventory)
        if self.program.tracked and self.chains and not tracks_connections(self.chains):
            self.chains.append(tracking_chain(self.names.give("conntrack")))
        if self.program.reassembled and self.chains and not reassembles(self.chains):
            self.chains.append(reassembling_chain(self.names.give("fragments")))
        whole = reassembles(self.chains)
        if not whole:
            refusals += guard_transport(self.chains, self.family)
        if refusals:
            raise UnsupportedError(tuple(sorted(refusals, key=lambda r: r.origin.line)))
        return LegalProgram(
            family=self.family,
            chains=tuple(self.chains),
            called=self.called,
            maps=(*self.named.made.values(), *self.maps),
            sets=(
                *self.recent.all,
                *self.hashed.values(),
                *self.limited.values(),
                *(each for each, _ in self.filled.values()),
            ),
            objects=(
                *self.counters.values(),
                *self.buckets.values(),
                *self.quotas.values(),
                *self._helpers(),
                *self.labels.values(),
            ),
            lists=self.recent.by_list(self.program.merged),
            notes=(*self._notes(), *(() if whole else notes_on_later_fragments(self.program))),
        )

    def _helpers(self) -> Iterable[SharedHelper]:
        if Template not in self.inventory.actions:
            return ()
        parts = (part for chain in self.chains for rule in chain.rules for part in rule.parts)
        return dict.fromkeys(part.helper for part in parts if isinstance(part, SetHelper))

    def _notes(self) -> tuple[Note, ...]:
        accounts = account_origins(self.inventory)
        return (
            *notes_on_lists(self.recent.lists.values(), SIZE, KEYED_SIZE),
            *notes_on_hits(self.recent.lists.values()),
            *notes_on_accounts(accounts, {name: c.name for name, c in self.counters.items()}),
            *notes_on_filled_sets({name: (f.name, origin) for name, (f, origin) in self.filled.items()}),
            *notes_on_removals(self.inventory),
            *notes_on_limits(buckets(self.inventory).values()),
            *notes_on_connections(self.inventory),
            *notes_on_counters_of_connections(self.inventory),
            *notes_on_counted_ports(counted_ports(self.inventory)),
            *notes_on_bridges(self.inventory),
            *notes_on_reverse_paths(self.inventory),
            *notes_on_checksums(self.inventory),
            *notes_on_congestion(self.inventory),
            *notes_on_syn_proxies(self.inventory),
            *(notes_on_copies(self.program) if Duplicate in self.inventory.actions else ()),
            *notes_on_segment_sizes(self.inventory),
            *notes_on_weekdays(self.inventory),
        )


def _base(chain: LoweredChain) -> BaseHook | None:
    if chain.hook is None or chain.priority is None or chain.policy is None:
        return None
    kind = "filter"
    if chain.table is TableName.NAT:
        kind = "nat"
    elif chain.table is TableName.MANGLE and chain.hook is Hook.OUTPUT:
        kind = "route"  # routes again if the mark or an address has changed, as ipt_mangle_out does
    return BaseHook(type=kind, hook=chain.hook, priority=chain.priority, policy=chain.policy)
