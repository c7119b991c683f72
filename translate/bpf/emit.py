"""Program → C: one inlined function per chain, between the two halves of the runtime.

The compiled text depends only on the shapes of chains. It has no line numbers, no sizes of lookups and no
order of their entries, so entries can change without a new program.

A chain's function returns a verdict, which is ``CONTINUE`` if the chain ends or returns. So ``jump`` is a
call after which the caller returns any other verdict, and ``goto`` is a tail call. BPF programs of BCC 0.26
have no calls, so every call is expanded in place; a program that becomes too large for the kernel's verifier
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from translate.bpf.chains.code import Code, Feature, Needs, Variable
from translate.bpf.chains.conditions import MOST_COUNTED
from translate.bpf.chains.context import Context
from translate.bpf.chains.ipsets import SetMap, set_maps
from translate.bpf.chains.statements import called_chains, statement_code
from translate.bpf.layout.programs import program_entries
from translate.bpf.layout.tables import HASHED_SIZE, RECENT_SIZE, RuntimePart, lists_of_connections
from translate.bpf.output import BpfOutput, remark
from translate.bpf.refusals import BACKEND, CannotExpress
from translate.bpf.runtime import after_chains, before_chains
from translate.bpf.untranslated_effects import untranslated_effects
from translate.collector import collector_paused
from translate.dataclass import replace
from translate.errors import Note, Refusal, UnsupportedError
from translate.ir import (
    CLOCKS,
    TABLE_HOOKS,
    CgroupTest,
    ConnectionLimit,
    Hook,
    Lookup,
    LoweredChain,
    Origin,
    Policy,
    Program,
    SetTest,
    SetUpdate,
    TableName,
)
from translate.passes.calls import callees_first, hooks_of_chains
from translate.passes.inventory import Inventory
from translate.passes.recents import CAPACITY, RecentList, recent_lists
from translate.passes.states import buckets, connection_limits, hash_tables, quotas

__all__ = ["BACKEND", "MOST_STATEMENTS", "emit"]

MOST_STATEMENTS: Final = 4096
"""The greatest number of statements in a hook; a chain's statements count once for each place where it is
expanded.

The verifier gives up after a million instructions; a statement takes some tens of them.
"""


@collector_paused()
def emit(program: Program) -> BpfOutput:
    """Return the tc program of ``program``.

    Raises UnsupportedError with one refusal per rule and feature that it cannot express exactly.
    """
    bases = [
        chain
        for chain in program.chains
        if chain.hook is not None and (program.tracked or chain.table is not TableName.NAT)
    ]
    order = callees_first(program, bases, calls=_called)
    inventory = Inventory.of(program)
    limits = connection_limits(inventory)
    counted = _room_for(test.limit for test, _ in limits.values())
    refusals = _too_large(bases, order, counted)
    lists = dict(sorted(recent_lists(inventory).items()))
    context = _context(inventory, order, lists)
    functions: list[Code] = []
    hooks = hooks_of_chains(program)
    for chain in order:
        takes = Hook.INPUT in hooks.get(chain.name, ())
        functions.append(_chain(chain, replace(context, takes=takes), refusals))
        context = context.after(functions[-1].needs)
    if refusals:
        raise UnsupportedError(tuple(dict.fromkeys(refusals)))
    body = Code.joined(functions)
    needs = body.needs
    declared = [line for declaration in needs.declarations for line in declaration.lines]
    has_nat = any(chain.table is TableName.NAT for chain in bases)
    text = "\n".join((*_PRELUDE, *declared, "", *body.lines, *_absent(bases, has_nat=has_nat)))
    runtime = before_chains(
        program.family,
        needs.parts,
        counters=needs.counters,
        buckets=len(context.buckets),
        quotas=len(context.quotas),
        counted=counted,
        cgroups=len(context.cgroups),
    )
    macros = _macros(needs, program)
    alone = (*macros, before_chains(program.family, ()), *_absent((), has_nat=has_nat))
    return BpfOutput(
        before="\n".join((*macros, runtime)),
        chains=f"{text}\n",
        after="\n".join((after_chains(program.family), program_entries())),
        without_chains="\n".join((*alone, "")),
        raw=any(chain.table is TableName.RAW for chain in bases),
        maps=needs.maps,
        sets=needs.sets,
        family=program.family,
        parts=needs.parts,
        counters=needs.counters,
        buckets=len(context.buckets),
        quotas=len(context.quotas),
        counted=counted,
        cgroups=tuple(context.cgroups) if RuntimePart.CGROUP in needs.parts else (),
        notes=(
            *(_note(known) for known in lists.values() if known.limited),
            *(_note_of_table(name, origin) for name, (_, origin) in hash_tables(inventory).items()),
            *(_note_of_counts(counted, origin) for _, origin in limits.values()),
            *_notes_of_sets(inventory, context.sets),
            *(_note_of_clock(origin) for origin in dict.fromkeys(inventory.testing(CLOCKS))),
            *untranslated_effects(inventory),
        ),
    )


def _context(inventory: Inventory, order: Iterable[LoweredChain], lists: Mapping[str, RecentList]) -> Context:
    program = inventory.program
    tested = (
        test.name
        for chain in order
        for statement in chain.statements
        for test in statement.tests
        if isinstance(test, SetTest | SetUpdate)
    )
    return Context(
        family=program.family,
        functions={chain.name: _function(i, chain) for i, chain in enumerate(order)},
        lists={name: (number, known) for number, (name, known) in enumerate(lists.items())},
        buckets={name: number for number, name in enumerate(buckets(inventory))},
        quotas={name: number for number, name in enumerate(quotas(inventory))},
        counts={name: number for number, name in enumerate(connection_limits(inventory))},
        cgroups={
            path: number
            for number, path in enumerate(
                dict.fromkeys(test.path for test, _ in inventory.tests_of_type(CgroupTest))
            )
        },
        tables={
            name: (number, test) for number, (name, (test, _)) in enumerate(hash_tables(inventory).items())
        },
        sets=set_maps(
            tested,
            {known.name: known for known in program.sets},
            {update.name for update, _ in inventory.tests_of_type(SetUpdate)},
            program.family,
        ),
    )


def _macros(needs: Needs, program: Program) -> list[str]:
    features = set(needs.features)
    if not program.tracked and not program.reassembled:
        features.add(Feature.PASSES_FRAGMENTS)
    return [f"#define {feature.value} {int(feature in features)}" for feature in Feature]


def _note(recent_list: RecentList) -> Note:
    subject = "each list" if recent_list.key else f"the list {recent_list.name}"
    text = (
        f"{subject} of -m recent holds {CAPACITY} addresses and forgets the oldest; "
        f"the program holds {RECENT_SIZE} of all lists together, and forgets the least recently seen"
    )
    return Note(recent_list.origin, BACKEND, "recent-capacity", text)


def _note_of_clock(origin: Origin) -> Note:
    text = (
        "the tc program reads TAI, from Linux 6.1 on, and the lead of TAI over UTC when it is loaded; if a"
        " program such as chrony sets the lead later, nfparity tc refresh has to read it again"
    )
    return Note(origin, BACKEND, "clock-lead", text)


def _room_for(limits: Iterable[int]) -> int:
    """Return the number of connections in a list of ``-m connlimit``, a power of two; 0 without such rules.

    A list also has connections that exceed the limit, until a packet finds that they were dropped.
    """
    most = max((limit for limit in limits if limit <= MOST_COUNTED), default=None)
    return 0 if most is None else max(16, 1 << (most + 7).bit_length())


def _note_of_counts(counted: int, origin: Origin) -> Note:
    text = (
        f"the tc program counts {counted} connections of an address at most, and those of"
        f" {lists_of_connections(counted)} addresses of all rules; it forgets the least recently counted"
    )
    return Note(origin, BACKEND, "connlimit-capacity", text)


def _notes_of_sets(inventory: Inventory, sets: Mapping[str, SetMap]) -> Iterator[Note]:
    """Yield a note for each set that rules change; the origin is that of its first change."""
    origins = {update.name: origin for update, origin in reversed(list(inventory.tests_of_type(SetUpdate)))}
    for name, origin in origins.items():
        text = f"the tc program has an ipset {name} of its own: no other program sees what rules change in it"
        if sets[name].contents.timeouts:
            text += (
                f"; it holds {sets[name].contents.max_entries} elements and forgets the least recently used,"
                " where the kernel adds none to a full set"
            )
        yield Note(origin, BACKEND, "set-update", text)


def _note_of_table(name: str, origin: Origin) -> Note:
    text = (
        f"the table {name} of -m hashlimit drops a packet with a new key while it is full; the program holds"
        f" {HASHED_SIZE} keys of all tables together, and forgets the least recently used"
    )
    return Note(origin, BACKEND, "hashlimit-capacity", text)


_PRELUDE: Final = (
    "/* The chains, generated. */",
    "",
    "#ifdef __BIG_ENDIAN__",
    "#define NAME(x) (x##ULL)",
    "#else",
    "#define NAME(x) __builtin_bswap64(x##ULL)",
    "#endif",
    "",
)


def _chain(chain: LoweredChain, context: Context, refusals: list[Refusal]) -> Code:
    """Return the function of a chain; ``refusals`` receives the refusals of its statements."""
    body: list[str] = []
    several: list[Needs] = []
    for statement in chain.statements:
        try:
            code = statement_code(statement, context)
        except CannotExpress as e:
            refusals.append(e.at(statement.origin))
            continue
        if code.lines:
            body += [remark(statement.origin), *code.lines]
            several.append(code.needs)
            context = context.after(code.needs)
    needs = Needs.of_all(several)
    declared = [variable.value for variable in Variable if variable in needs.variables]
    lines = [f"\t{line}" if line else "" for line in (*declared, *body, "return CONTINUE;")]
    name = context.functions[chain.name]
    function = [f"/* {_safe(chain.name)} */", _head(name), "{", *lines, "}", ""]
    if chain.hook is not None:
        policy = "DROP" if chain.policy is Policy.DROP else "ACCEPT"
        function += [
            _head(_hook_function(chain.table, chain.hook.value)),
            "{",
            f"\tint verdict = {name}(skb, p);",
            f"\treturn verdict == CONTINUE ? {policy} : verdict;",
            "}",
            "",
        ]
    return Code(tuple(function), needs)


def _head(name: str) -> str:
    return f"INLINE int {name}(struct __sk_buff *skb, struct pkt *p)"


def _absent(bases: Iterable[LoweredChain], *, has_nat: bool) -> list[str]:
    """Return the macros for hooks without a chain; ``HAS_NAT`` is 1 if the program has a nat table."""
    have = {(chain.table, chain.hook) for chain in bases}
    lines = [f"#define HAS_NAT {int(has_nat)}"]
    for table, hooks in TABLE_HOOKS.items():
        for hook in hooks:
            if (table, hook) not in have:
                lines.append(f"#define {_hook_function(table, hook.value)}(skb, p) ACCEPT")
    return lines


def _hook_function(table: TableName, hook: str) -> str:
    return f"chain_{table.value}_{hook.lower()}"


def _function(number: int, chain: LoweredChain) -> str:
    # A name may have characters that C does not allow, and two names may differ only in these.
    return f"c{number}_{re.sub(r'[^A-Za-z0-9]', '_', chain.name)}"


def _safe(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /")


def _called(chain: LoweredChain) -> Iterator[str]:
    """Yield the callees of a chain; those of a lookup are sorted by name, not in the order of its rules."""
    for statement in chain.statements:
        called = called_chains(statement)
        yield from sorted(called) if isinstance(statement, Lookup) else called


def _too_large(bases: Iterable[LoweredChain], order: Iterable[LoweredChain], counted: int) -> list[Refusal]:
    """Return a refusal for each base chain that is too large; ``order`` has every chain after its callees.

    The verifier takes about as long for a connection in a list of ``-m connlimit`` as for four statements.
    """
    size: dict[str, int] = {}
    for chain in order:
        size[chain.name] = sum(
            1
            + 4 * counted * sum(isinstance(test, ConnectionLimit) for test in s.tests)
            + sum(size[name] for name in set(called_chains(s)))
            for s in chain.statements
        )
    reason = (
        f"its chains make more than {MOST_STATEMENTS} statements when every jump is expanded, "
        "too many for the kernel's verifier"
    )
    return [
        CannotExpress("program-size", reason).at(base.origin)
        for base in bases
        if size[base.name] > MOST_STATEMENTS
    ]
