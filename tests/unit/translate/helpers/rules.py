"""Functions from ``iptables-save`` lines to a Program or nft text, for tests of passes and emitters."""

from __future__ import annotations

from dataclasses import replace

from translate.ir import (
    Apply,
    ConnectionState,
    Field,
    FieldTest,
    Interval,
    LoweredChain,
    Program,
    Statement,
    TableName,
)
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ipsets, read_ruleset, with_sets

_BUILT_IN = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}


def program(table: str, *rules: str, level: int = 0, ipsets: str = "") -> Program:
    """Return the Program of one table; user chains are declared for the rules that are in them.

    ``ipsets`` is ``ipset save`` text.
    """
    named = [rule.split()[1] for rule in rules]
    chains = [c for c in dict.fromkeys(named) if c not in _BUILT_IN[table]]
    text = "\n".join(
        (
            f"*{table}",
            *(f":{c} ACCEPT [0:0]" for c in _BUILT_IN[table]),
            *(f":{c} - [0:0]" for c in chains),
            *rules,
            "COMMIT\n",
        )
    )
    ruleset = read_ruleset(text.encode(), name="rules")
    if ipsets:
        ruleset = with_sets(ruleset, read_ipsets(ipsets.encode(), name="sets"))
    return lower(ruleset, level=level)


def statements(lowered: Program, chain: str) -> tuple[Statement, ...]:
    return lowered.chain(chain).statements


_NEW = FieldTest(field=Field.CT_STATE, values=(Interval.point(ConnectionState.NEW),))
_TRACKING = LoweredChain(
    name="filter/tracking", table=TableName.FILTER, statements=(Apply(tests=(_NEW,), actions=()),)
)
"""A chain that no packet reaches. Its rule uses conntrack, which reassembles fragments."""


def nft(
    table: str, *rules: str, level: int = 0, ipsets: str = "", fragments: bool = False
) -> dict[str, list[str]]:
    """Return the rules of every chain, and the elements of every map and set, without comments.

    With ``fragments``, later fragments reach the rules unless one of them uses conntrack.
    """
    sets: dict[str, list[str]] = {}
    name = ""
    lowered = program(table, *rules, level=level, ipsets=ipsets)
    if not fragments:
        lowered = replace(lowered, chains=(*lowered.chains, _TRACKING))
    for line in emit(lowered).text.splitlines():
        words = line.strip().split(" comment ")[0]
        verdict = line.partition(" : ")[2]
        if words.startswith(("chain ", "map ", "set ", "secmark ")):
            name = words.split()[1]
            sets[name] = []
        elif line.startswith("\t\t\t"):
            sets[name].append(f"{words} : {verdict.rstrip(',')}" if verdict else words.rstrip(","))
        elif line.startswith("\t\t") and not words.startswith(("comment ", "type ", "elements ", "}")):
            sets[name].append(words)
    sets.pop("filter_tracking", None)
    return sets
