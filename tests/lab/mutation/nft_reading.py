"""An nft text, parsed as far as proofs need it: the tests and statement of each rule, and the calls of
chains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tests.lab.mutation.match_table import MatchTable

__all__ = ["Line", "NftText", "read_nft"]

_BLOCK: Final = re.compile(r"^\t(chain|map|set) (\S+) \{$")
_COMMENT: Final = re.compile(r' ?comment "[^"]*"')
_FIELD: Final = r"(?:ip6? [sd]addr|th [sd]port|meta l4proto|ct state)"
_KEY: Final = rf"{_FIELD}(?: \. {_FIELD})*"
_IN_SET: Final = re.compile(rf"({_KEY}) @(\S+) ")
_PROTOCOL: Final = re.compile(r"meta l4proto (?:(\w+)|\{ ([\w, ]+) \}) ")
_STATE: Final = re.compile(r"ct state ([a-z,]+) ")
_PORT: Final = re.compile(r"(tcp|udp|sctp|dccp|udplite) ([sd]port) (\d+) ")
_ADDRESS: Final = re.compile(r"(ip6? [sd]addr) (?=\S*[\da-f])([\da-f.:]+) ")
_OTHER: Final = re.compile(
    rf"(?:{_KEY} != @\S+|ip6? [sd]addr (?:!= )?(?=\S*[\da-f])[\da-f.:/-]+|\w+ [sd]port (?:!= )?[\d-]+"
    r"|ct state != [\w,]+|ct status & \w+ [!=]= \w+|meta mark & 0x[\da-f]+ [!=]= 0x[\da-f]+"
    r"|fib [sd]addr type (?:!= )?\w+|[io]ifname (?:!= )?\S+) "
)
_CONTAINER: Final = re.compile(r"@(\S+)")
_VMAP: Final = re.compile(r"(.*?) ?vmap @(\S+)$")
_CALL: Final = re.compile(r"\b(?:jump|goto) (\S+)")
_PLAIN: Final = re.compile(r"(?:accept|return|continue|(?:jump|goto) \S+|)$")


@dataclass(frozen=True, slots=True)
class Line:
    """A rule: its condition on fields as a table, its other conditions as text, and its statement.

    ``outcomes`` are the verdicts that it may end with, each with the condition of a map for it; they are None
    if the rule does more than to give a verdict. ``contents`` are the elements of the other sets and maps
    that it names. ``calls`` has the chains that it may call, also where the outcomes are None.
    """

    condition: MatchTable
    others: str
    statement: str
    outcomes: tuple[tuple[MatchTable, str], ...] | None
    calls: tuple[tuple[MatchTable, str], ...]
    contents: frozenset[tuple[str, frozenset[str]]]


@dataclass(frozen=True, slots=True)
class NftText:
    """The chains of a text, by name; ``bases`` has the hook line of those that the kernel calls."""

    chains: Mapping[str, tuple[Line, ...]]
    bases: Mapping[str, str]


def read_nft(text: str) -> NftText:
    """Read a text as :mod:`translate.nft` writes it.

    Rules that name one of several sets or maps with equal elements name the first of these in the result.
    """
    blocks = {name: (kind, lines) for kind, name, lines in _blocks(text)}
    filled = set(re.findall(r"(?:update|add) @(\S+)", text))
    elements = {
        name: frozenset(line.rstrip(",") for line in lines)
        for name, (kind, lines) in blocks.items()
        if kind != "chain" and name not in filled
    }
    first: dict[frozenset[str], str] = {}
    for name, contents in elements.items():
        first.setdefault(contents, name)
    first_equal = {name: first[contents] for name, contents in elements.items()}
    chains, bases = {}, {}
    for name, (kind, lines) in blocks.items():
        if kind == "chain":
            hooks = [line for line in lines if line.startswith("type ")]
            rules = (_with_names(line, first_equal) for line in lines if line not in hooks)
            chains[name] = tuple(_line(rule, elements) for rule in rules)
            if hooks:
                bases[name] = hooks[0]
    return NftText(chains, bases)


def _with_names(rule: str, names: Mapping[str, str]) -> str:
    """Return the rule with other names of its sets and maps."""
    return _CONTAINER.sub(lambda name: f"@{names.get(name[1], name[1])}", rule)


def _blocks(text: str) -> Iterator[tuple[str, str, list[str]]]:
    block: tuple[str, str, list[str]] | None = None
    for line in text.split("\n"):
        if match := _BLOCK.match(line):
            block = (match[1], match[2], [])
            yield block
        elif block is not None and line.startswith("\t\t"):
            content = _COMMENT.sub("", line).strip()
            if content and not content.startswith(
                ("typeof ", "flags ", "size ", "timeout ", "elements", "}")
            ):
                block[2].append(content)


def _line(text: str, elements: Mapping[str, frozenset[str]]) -> Line:
    tested, others, rest = MatchTable(), "", f"{text} "
    while True:
        if match := _IN_SET.match(rest):
            if match[2] in elements:
                rows = (tuple(part.split(" . ")) for part in elements[match[2]])
                tested = tested.joined(MatchTable.of(match[1].split(" . "), rows))
            else:
                others += match[0]
        elif match := _PROTOCOL.match(rest):
            rows = ((part,) for part in (match[1] or match[2]).split(", "))
            tested = tested.joined(MatchTable.of(["meta l4proto"], rows))
        elif match := _STATE.match(rest):
            tested = tested.joined(MatchTable.of(["ct state"], ((part,) for part in match[1].split(","))))
        elif match := _PORT.match(rest):
            tested = tested.joined(MatchTable.of(["meta l4proto", f"th {match[2]}"], [(match[1], match[3])]))
        elif match := _ADDRESS.match(rest):
            tested = tested.joined(MatchTable.of([match[1]], [(match[2],)]))
        elif match := _OTHER.match(rest):
            others += match[0]
        else:
            break
        rest = rest[match.end() :]
    statement = rest.strip()
    named = _CONTAINER.findall(others + statement)
    contents = frozenset((name, elements[name]) for name in named if name in elements)
    verdicts = tuple(_verdicts(statement, elements))
    plain = _PLAIN.match(statement) or _VMAP.match(statement)
    calls = tuple((more, chain) for more, verdict in verdicts for chain in _CALL.findall(verdict))
    return Line(tested, others, statement, verdicts if plain else None, calls, contents)


def _verdicts(statement: str, elements: Mapping[str, frozenset[str]]) -> Iterator[tuple[MatchTable, str]]:
    """Return the possible verdicts of a rule; its whole statement if the statement is not understood."""
    match = _VMAP.match(statement)
    if match is None:
        yield MatchTable(), statement
        return
    for element in elements[match[2]]:
        key, verdict = element.split(" : ")
        condition = MatchTable()
        if re.fullmatch(_KEY, match[1]):
            condition = MatchTable.of(match[1].split(" . "), [tuple(key.split(" . "))])
        yield condition, verdict
