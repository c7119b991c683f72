"""Random pages with listings, rules and dumps among prose, and the rules that each shows.

The table of a listing is named by a command, or by a line of prose above it. Blocks are indented or not, as
Markdown has them, and some have a line that nobody can read. The same seed gives the same page.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from translate.ir import TABLE_HOOKS, TableName

__all__ = ["Page", "Shown", "random_page"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A chain on a page: the number of its rules, and the indices of those that cannot be read."""

    table: TableName
    chain: str
    rules: int
    unreadable: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and the chains that it shows, in their order."""

    text: str
    shown: tuple[Shown, ...]


_HEADINGS: Final = (
    "Table {}:",
    "### The `{}` table",
    "And the corresponding {} table:",
    "<summary>Table {}</summary>",
    "In the {} table:",
)
_PROSE: Final = (
    "Packets that no rule matches get the policy of the chain, as you can see.",
    "That is all there is to say about it, and the next part has the rest of them.",
    "The rules above were written by hand, and nothing has changed them since then.",
)
_COLUMNS: Final = "target     prot opt source               destination"
_TARGETS: Final = ("ACCEPT", "RETURN")
_USER: Final = "OWN"
_UNREADABLE_ROW: Final = "ACCEPT     tcp  --  anywhere             anywhere             of no match at all"
_UNREADABLE_RULE: Final = "-m nosuch -j RETURN"


def random_page(seed: int) -> Page:
    """Return a page with a few blocks, neighbours of which are of different tables."""
    draw = random.Random(seed)
    lines = ["# Notes", ""]
    shown: list[Shown] = []
    tables = list(TableName)
    for _ in range(draw.randint(2, 4)):
        table = draw.choice([t for t in tables if not shown or t is not shown[-1].table])
        tables.remove(table)
        block, chains = draw.choice((_listing, _listing, _rules, _dump))(draw, table)
        if draw.random() < 0.4:
            lines += [draw.choice(_PROSE), ""]
        indent = draw.choice(("", "", "    ", "\t"))
        lines += [*_heading(draw, table, dumped=block[0].startswith("*"))]
        lines += [*(indent + line if line else "" for line in block), ""]
        shown += chains
    return Page("\n".join((*lines, "")), tuple(shown))


def _heading(draw: random.Random, table: TableName, *, dumped: bool) -> list[str]:
    """Return the lines that name the table of the block below them; a dump names its own."""
    if dumped and draw.random() < 0.5:
        return []
    if draw.random() < 0.4:
        return [f"{draw.choice(('$ sudo', '#'))} iptables -t {table} -{draw.choice('LS')}"]
    return [draw.choice(_HEADINGS).format(table), ""]


def _chains(draw: random.Random, table: TableName) -> list[str]:
    hooks = [hook.value for hook in TABLE_HOOKS[table]]
    return [*sorted(draw.sample(hooks, draw.randint(1, len(hooks))), key=hooks.index), _USER]


def _counts(draw: random.Random) -> tuple[int, tuple[int, ...]]:
    """Return the number of a chain's rules, and the index of one that cannot be read, if there is one."""
    count = draw.randint(1, 4)
    bad = (draw.randrange(count),) if count > 1 and draw.random() < 0.2 else ()
    return count, bad


def _listing(draw: random.Random, table: TableName) -> tuple[list[str], list[Shown]]:
    """Return chains as ``iptables -L`` prints them."""
    lines: list[str] = []
    shown = []
    for chain in _chains(draw, table):
        count, bad = _counts(draw)
        kept = f"Chain {chain} ({'1 references' if chain == _USER else 'policy ACCEPT'})"
        lines += [kept, _COLUMNS]
        for index in range(count):
            target = draw.choice(_TARGETS if chain == _USER else (*_TARGETS, _USER))
            address = f"10.0.{index}.{draw.randint(1, 254)}"
            row = f"{target:10} tcp  --  anywhere             {address:20} tcp dpt:http"
            lines.append(_UNREADABLE_ROW if index in bad else row)
        lines.append("")
        shown.append(Shown(table, chain, count, bad))
    return lines[:-1], shown


def _added(draw: random.Random, chain: str, count: int, bad: tuple[int, ...]) -> list[str]:
    rules = []
    for index in range(count):
        target = draw.choice(_TARGETS if chain == _USER else (*_TARGETS, _USER))
        match = f"-d 10.0.{index}.{draw.randint(1, 254)}/32 -p tcp -m tcp --dport 80 -j {target}"
        rules.append(f"-A {chain} {_UNREADABLE_RULE if index in bad else match}")
    return rules


def _rules(draw: random.Random, table: TableName) -> tuple[list[str], list[Shown]]:
    """Return chains as ``iptables -S`` prints them."""
    chains = _chains(draw, table)
    lines = [f"-N {chain}" if chain == _USER else f"-P {chain} ACCEPT" for chain in chains]
    shown = []
    for chain in chains:
        count, bad = _counts(draw)
        lines += _added(draw, chain, count, bad)
        shown.append(Shown(table, chain, count, bad))
    return lines, shown


def _dump(draw: random.Random, table: TableName) -> tuple[list[str], list[Shown]]:
    """Return chains as ``iptables-save`` prints them."""
    lines, shown = _rules(draw, table)
    rules = [line for line in lines if line.startswith("-A")]
    heads = [f":{each.chain} {'-' if each.chain == _USER else 'ACCEPT'} [0:0]" for each in shown]
    return [f"*{table}", *heads, *rules, "COMMIT"], shown
