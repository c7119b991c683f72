"""Program → C: one inlined function per chain, between the two halves of the runtime.

The text depends on the shapes of chains alone: what is compiled has no line numbers, no sizes of lookups
and nothing of the order in which entries come, so that entries can change while the program stays.

A chain's function returns a verdict: ``CONTINUE`` when it ends or returns, so that ``jump`` is a
call that returns early for anything else, and ``goto`` is a tail call. BPF programs of BCC 0.26
have no calls, so every call is expanded in place; what that would make too large for the
kernel's verifier is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from translate.bpf.ipsets import SetMaps
from translate.bpf.maps import ARGUMENTS, BpfOutput, remark
from translate.bpf.refusals import BACKEND, CannotExpress, refusal
from translate.bpf.runtime import IPSET, RECENT, after_chains, before_chains, runtime_text
from translate.bpf.silences import silences
from translate.bpf.statements import Writer, action_groups, called_chains
from translate.collector import collector_paused
from translate.errors import Note, Refusal, UnsupportedError
from translate.ir import (
    TABLE_HOOKS,
    Action,
    Family,
    Lookup,
    LoweredChain,
    Masquerade,
    NoTrack,
    Policy,
    Program,
    Snat,
    Statement,
    TableName,
)
from translate.passes.recents import CAPACITY, RecentList, recent_lists

__all__ = ["BACKEND", "MOST_STATEMENTS", "RECENT_SIZE", "emit"]

MOST_STATEMENTS: Final = 4096
"""How many statements, counted once per place where their chain is expanded, a hook may have.

The verifier gives up after a million instructions; a statement costs it some tens.
"""


RECENT_SIZE: Final = 65536
"""Addresses that all lists of ``-m recent`` hold together (``recent.h``)."""


@collector_paused()
def emit(program: Program) -> BpfOutput:
    """Return the tc program of ``program``.

    Raises UnsupportedError with one refusal per rule and feature that it cannot carry exactly.
    """
    chains = {chain.name: chain for chain in program.chains}
    bases = [chain for chain in program.chains if chain.hook is not None]
    order = _callees_first(bases, chains)
    refusals = _too_large(bases, chains)
    lists = dict(sorted(recent_lists(program).items()))
    functions_of = {chain.name: _function(i, chain) for i, chain in enumerate(order)}
    sets = SetMaps({one.name: one for one in program.sets}, program.family)
    writer = Writer(functions_of, lists, program.family, sets)
    functions: list[str] = []
    for chain in order:
        functions += _chain(chain, writer, refusals)
    if refusals:
        raise UnsupportedError(tuple(dict.fromkeys(refusals)))
    declared = (*_PRELUDE, *writer.declarations, "", *sets.declarations)
    text = "\n".join((*declared, *_counters(writer), *functions, *_absent(bases)))
    parts = _runtime(program.family, lists=bool(lists), sets=bool(sets.maps))
    return BpfOutput(
        before="\n".join((_reuse(program), _notrack(program), *map(runtime_text, parts))),
        chains=f"{text}\n",
        after="\n".join(map(runtime_text, after_chains(program.family))),
        maps=tuple(writer.maps),
        family=program.family,
        sets=tuple(sets.maps.values()),
        lists=bool(lists),
        notes=(*(_note(known) for known in lists.values() if known.limited), *silences(program)),
    )


def _runtime(family: Family, *, lists: bool, sets: bool) -> tuple[str, ...]:
    return (*before_chains(family), *((RECENT,) if lists else ()), *((IPSET,) if sets else ()))


def _reuse(program: Program) -> str:
    """Whether a rule ever asks where another connection from the same source was bound to.

    ``get_unique_tuple`` does not for ports that are drawn at random (``NF_NAT_RANGE_PROTO_RANDOM_ALL``), nor
    for what no rule binds, which is in range as it is.
    """
    asked = any(
        isinstance(action, Snat | Masquerade) and not (action.ports.random or action.ports.fully_random)
        for action in _actions(program)
    )
    return f"#define REUSES_SOURCES {int(asked)}"


def _notrack(program: Program) -> str:
    """Whether a rule keeps packets out of connection tracking."""
    asked = any(isinstance(action, NoTrack) for action in _actions(program))
    return f"#define HAS_NOTRACK {int(asked)}"


def _actions(program: Program) -> Iterator[Action]:
    return (
        action
        for chain in program.chains
        for statement in chain.statements
        for group in action_groups(statement)
        for action in group
    )


def _note(known: RecentList) -> Note:
    which = "each list" if known.key else f"the list {known.name}"
    text = (
        f"{which} of -m recent holds {CAPACITY} addresses and forgets the oldest; "
        f"the program holds {RECENT_SIZE} of all lists together, and forgets ones not seen for long"
    )
    return Note(known.origin, BACKEND, "recent-capacity", text)


_PRELUDE: Final = (
    "/* The chains, generated. */",
    "",
    "#ifdef __BIG_ENDIAN__",
    "#define NAME(x) (x##ULL)",
    "#else",
    "#define NAME(x) __builtin_bswap64(x##ULL)",
    "#endif",
    "",
    f"struct entry {{ u32 code; u32 argument[{ARGUMENTS}]; }};",
)


def _chain(chain: LoweredChain, writer: Writer, refusals: list[Refusal]) -> list[str]:
    body: list[str] = []
    for statement in chain.statements:
        try:
            lines = writer.statement(statement)
        except CannotExpress as e:
            refusals.append(refusal(statement.origin, e))
            continue
        if lines:
            body += [remark(statement.origin), *lines]
    text = "\n".join(body)
    declared = []
    if "verdict = " in text:
        declared.append("int verdict;")
    if "drawn = " in text:
        declared.append("u32 drawn;")
    lines = [f"\t{line}" if line else "" for line in (*declared, *body, "return CONTINUE;")]
    name = writer.functions[chain.name]
    made = [f"/* {_safe(chain.name)} */", _head(name), "{", *lines, "}", ""]
    if chain.hook is None:
        return made
    policy = "DROP" if chain.policy is Policy.DROP else "ACCEPT"
    return [
        *made,
        _head(_hook_function(chain.table, chain.hook.value)),
        "{",
        f"\tint verdict = {name}(skb, p);",
        f"\treturn verdict == CONTINUE ? {policy} : verdict;",
        "}",
        "",
    ]


def _counters(writer: Writer) -> list[str]:
    """``statistic --mode nth``: a counter per rule, which starts anew after ``every`` (``xt_statistic``)."""
    if not writer.counters:
        return []
    return [
        "struct turn { struct bpf_spin_lock lock; u32 next; };",
        f'BPF_TABLE("array", u32, struct turn, turns, {len(writer.counters)});',
        "",
        "INLINE u32 count_up(u32 number, u32 every)",
        "{",
        "\tstruct turn *c = turns.lookup(&number);",
        "\tu32 now;",
        "",
        "\tif (!c)",
        "\t\treturn every;",
        "\tbpf_spin_lock(&c->lock);",
        "\tnow = c->next;",
        "\tc->next = now + 1 < every ? now + 1 : 0;",
        "\tbpf_spin_unlock(&c->lock);",
        "\treturn now;",
        "}",
        "",
    ]


def _head(name: str) -> str:
    return f"INLINE int {name}(struct __sk_buff *skb, struct pkt *p)"


def _absent(bases: list[LoweredChain]) -> list[str]:
    """The hooks without a chain, and whether NAT is there at all."""
    have = {(chain.table, chain.hook) for chain in bases}
    nat = any(chain.table is TableName.NAT for chain in bases)
    lines = [f"#define HAS_NAT {int(nat)}"]
    for table, hooks in TABLE_HOOKS.items():
        for hook in hooks:
            if (table, hook) not in have:
                lines.append(f"#define {_hook_function(table, hook.value)}(skb, p) ACCEPT")
    return lines


def _hook_function(table: TableName, hook: str) -> str:
    return f"chain_{table.value}_{hook.lower()}"


def _function(number: int, chain: LoweredChain) -> str:
    # A name may hold what C does not take, and two names may differ only in that.
    return f"c{number}_{re.sub(r'[^A-Za-z0-9]', '_', chain.name)}"


def _safe(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /")


def _callees_first(bases: list[LoweredChain], chains: dict[str, LoweredChain]) -> list[LoweredChain]:
    """Every chain that a packet can reach, called ones before their callers."""
    done: dict[str, LoweredChain] = {}
    # By hand instead of by recursion: a chain of calls may be deeper than Python's stack.
    pending = [(base, False) for base in reversed(bases)]
    while pending:
        chain, left = pending.pop()
        if chain.name in done:
            continue
        if left:
            done[chain.name] = chain
            continue
        pending.append((chain, True))
        called = [name for statement in chain.statements for name in _in_order(statement)]
        pending += [(chains[name], False) for name in reversed(called) if name not in done]
    return list(done.values())


def _in_order(statement: Statement) -> list[str]:
    """The chains that it calls; those of a lookup by name, as its entries come in the order of the rules."""
    called = list(dict.fromkeys(called_chains(statement)))
    return sorted(called) if isinstance(statement, Lookup) else called


def _too_large(bases: list[LoweredChain], chains: dict[str, LoweredChain]) -> list[Refusal]:
    size: dict[str, int] = {}
    for chain in _callees_first(bases, chains):
        size[chain.name] = sum(
            1 + sum(size[name] for name in set(called_chains(s))) for s in chain.statements
        )
    reason = (
        f"its chains make more than {MOST_STATEMENTS} statements when every jump is expanded, "
        "which the kernel's verifier does not take"
    )
    return [
        refusal(base.origin, CannotExpress("program-size", reason))
        for base in bases
        if size[base.name] > MOST_STATEMENTS
    ]
