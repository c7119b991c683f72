"""Blocks: the lines of one chain as a regular expression, with groups for the constants.

A dump of ten thousand services has a few dozen different blocks. The first chain of a kind is parsed option
by option; every other chain costs a single match. Only lines that :class:`RuleLine` can describe become part
of a block: comparisons of addresses and ports with one value each, draws, and targets that affect only the
packet, its mark and its path. All other lines are left to the reader of rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Final

from translate.dataclass import dataclass
from translate.ir import Family, Field

__all__ = ["Block", "Prefix", "RuleLine", "block_of", "rule_line"]

_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS: Final = {Family.IP: rf"{_OCTET}\.{_OCTET}\.{_OCTET}\.{_OCTET}", Family.IP6: "[0-9a-f:.]{2,39}"}
_TARGET_ADDRESS: Final = {Family.IP: _ADDRESS[Family.IP], Family.IP6: rf"\[{_ADDRESS[Family.IP6]}\]"}
_PORT: Final = (
    "(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"  # not 0
)
_QUOTED: Final = r'"[ !#-\[\]-~]{0,255}"'
"""A comment that the reader accepts: printable, without escapes, at most 255 characters."""
_BARE: Final = "[A-Za-z0-9_-]{1,255}"
_NAME: Final = r'[^\s"!-][^\s"]*'


@cache
def _options(family: Family) -> re.Pattern[str]:
    address, host = _ADDRESS[family], family.bits
    return re.compile(
        rf" -s (?P<saddr>{address})/{host}(?= )"
        rf"| -d (?P<daddr>{address})/{host}(?= )"
        r"|(?P<negated> !)? -(?P<literal>[sd]) (?P<value>[0-9a-f:.]+/[0-9]+)(?= )"
        r"| -p (?P<protocol>tcp|udp|sctp)(?= )"
        rf"| -m comment --comment (?P<quoted>{_QUOTED})(?= )"
        rf"| -m comment --comment (?P<bare>{_BARE})(?= )"
        rf"| -m (?P<transport>tcp|udp|sctp) --dport (?P<dport>{_PORT})(?= )"
        r"| -m (?:tcp|udp|sctp)(?= -[mj])"
        r"| -m statistic --mode random --probability (?P<draw>[0-9.]+)(?= )"
        r"| -m addrtype --(?:src|dst)-type (?P<type>[A-Z]+)(?= )"
        rf"| -j DNAT --to-destination (?P<target>{_TARGET_ADDRESS[family]}:{_PORT})$"
        r"| -j (?P<verdict>(?:ACCEPT|DROP|RETURN|REJECT --reject-with [a-z0-9-]+"
        r"|MARK --set-xmark 0x[0-9a-f]+/0x[0-9a-f]+))$"
        rf"| -j (?P<chain>{_NAME})$"
    )


@dataclass(frozen=True, slots=True)
class Prefix:
    """An address or prefix that is the same in the lines of all members."""

    field: Field
    text: str
    negated: bool


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One line without its constants.

    ``source`` is a regular expression for the text after the chain's name. It has a group for each of
    ``fields`` in order (None for the target of a DNAT), and a last group for a callee among the member's own
    chains (``calls``). ``shared`` is any other callee. ``prefixes`` are the addresses that are the same in
    all members; ``draws`` and ``tests`` are true if the line has any.
    """

    source: str
    fields: tuple[Field | None, ...]
    calls: bool
    shared: str | None
    protocol: str | None
    prefixes: tuple[Prefix, ...]
    draws: bool
    tests: bool


def rule_line(text: str, family: Family, own: Collection[str]) -> RuleLine | None:
    """Return the line without its constants, after the chain's name; None for another kind of line.

    ``own`` are the chains that may belong to a member.
    """
    options = _options(family)
    source: list[str] = []
    fields: list[Field | None] = []
    prefixes: list[Prefix] = []
    calls, shared, protocol, draws, tests, ended = False, None, None, False, False, False
    at = 0
    while at < len(text):
        part = options.match(text, at)
        if part is None or ended:
            return None
        at = part.end()
        kind = part.lastgroup
        hole = _FIELDS.get(kind or "", _NO_HOLE)
        if kind == "quoted" or kind == "bare":
            source.append(" -m comment --comment " + (_QUOTED if kind == "quoted" else _BARE))
            continue
        ended = kind in ("target", "verdict", "chain")
        tests = tests or not (ended or kind == "draw")
        if not isinstance(hole, str):
            low, high = part.span(kind or 0)
            pattern = {"target": rf"{_TARGET_ADDRESS[family]}:{_PORT}", "dport": _PORT}.get(
                kind or "", _ADDRESS[family]
            )
            before, behind = text[part.start() : low], text[high:at]
            source.append(f"{re.escape(before)}({pattern}){re.escape(behind)}")
            fields.append(hole)
            continue
        if kind == "chain" and part["chain"] in own:
            source.append(f" -j ({_NAME})")
            calls = True
            continue
        if kind == "chain":
            shared = part["chain"]
        elif kind == "protocol":
            protocol = part["protocol"]
        elif kind == "value":
            where = Field.SADDR if part["literal"] == "s" else Field.DADDR
            prefixes.append(Prefix(where, part["value"], part["negated"] is not None))
        draws = draws or kind == "draw"
        source.append(re.escape(part[0]))
    if not ended:
        return None
    return RuleLine("".join(source), tuple(fields), calls, shared, protocol, tuple(prefixes), draws, tests)


_NO_HOLE: Final = "no constant"
_FIELDS: Final[dict[str, Field | str | None]] = {
    "saddr": Field.SADDR,
    "daddr": Field.DADDR,
    "dport": Field.DPORT,
    "target": None,
}


@dataclass(frozen=True, slots=True)
class Block:
    """The lines of a chain, or one line of a shared chain, as a regular expression.

    Its groups are the name of the chain and then those of the lines, in order: ``values`` are the numbers of
    the groups with constants, and ``calls`` the numbers of the groups with the member's own chains.
    """

    pattern: re.Pattern[str]
    lines: tuple[RuleLine, ...]
    values: tuple[int, ...]
    calls: tuple[int, ...]

    @property
    def fields(self) -> tuple[Field | None, ...]:
        """The field with which each constant is compared; None for the target of a DNAT."""
        return tuple(field for line in self.lines for field in line.fields)


def block_of(lines: Sequence[RuleLine], chain: str | None = None) -> Block:
    """Return the block of the lines of a chain, or of one line of the shared ``chain``."""
    values: list[int] = []
    calls: list[int] = []
    group = 1
    for line in lines:
        values += range(group, group + len(line.fields))
        group += len(line.fields)
        if line.calls:
            calls.append(group)
            group += 1
    first, *others = [line.source for line in lines]
    name = f"({_NAME})" if chain is None else f"({re.escape(chain)})"
    source = rf"-A {name}{first}\n" + "".join(rf"-A \1{other}\n" for other in others)
    if chain is None:
        source += r"(?!-A \1 )"
    return Block(re.compile(source), tuple(lines), tuple(values), tuple(calls))
