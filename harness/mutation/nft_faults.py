"""Faults of an nftables ruleset: every operator at every place of the text where it applies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from harness.mutation.fault import Fault, Place
from translate.ir import Family, format_address, parse_address

__all__ = ["nft_faults"]

_BLOCK: Final = re.compile(r"^\t(chain|map|set) (\S+) \{$")
_PREFIX: Final = re.compile(r"(?<![\d.])(\d+\.\d+\.\d+\.\d+)(?:/(\d+))?(?![\d.])")
_MARK: Final = re.compile(r"0x([0-9a-f]+)")


Change = Callable[[str], Sequence[str | None]]
"""What an operator makes of a line: other lines, or None for no line at all."""


def nft_faults(text: str) -> Iterator[Fault]:
    """Yield every single fault of the text, in the order of its lines."""
    following = _following(text)
    operators = (*_OPERATORS, ("target", _each(_CALL, lambda m: _other_target(m, following))))
    for place in _places(text):
        seen: set[str | None] = {place.text}
        for operator, change in operators:
            for after in change(place.text):
                if after not in seen:
                    seen.add(after)
                    yield Fault(operator=operator, place=place, after=after)


def _following(text: str) -> Mapping[str, str]:
    """For each chain the next one of the same table and, where there is one, of the same kind."""
    names = sorted(m[2] for line in text.split("\n") if (m := _BLOCK.match(line)) and m[1] == "chain")
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault("-".join(name.split("-")[:2]), []).append(name)
    return {n: kind[(i + 1) % len(kind)] for kind in kinds.values() for i, n in enumerate(kind)}


def _other_target(match: re.Match[str], following: Mapping[str, str]) -> str | None:
    other = following[match[2]]
    return None if other == match[2] else match[1] + other


def _places(text: str) -> Iterator[Place]:
    """Rules, elements and hook lines; comments, declarations and braces are no place for a fault."""
    block = ""
    for number, line in enumerate(text.split("\n")):
        if match := _BLOCK.match(line):
            block = match[2]
        elif block and line.startswith("\t\t") and not _is_declaration(line.strip()):
            yield Place(block, number, line)


def _is_declaration(line: str) -> bool:
    return line.startswith(("comment ", "typeof ", "flags ", "elements", "}", "size "))


def _each(pattern: str, replacement: Callable[[re.Match[str]], str | None]) -> Change:
    """An operator that replaces each match of ``pattern`` outside comments, one at a time."""
    compiled = re.compile(pattern)

    def change(line: str) -> Sequence[str | None]:
        quoted = [m.span() for m in re.finditer(r'"[^"]*"', line)]
        found = []
        for match in compiled.finditer(line):
            if any(start < match.end() and match.start() < end for start, end in quoted):
                continue
            new = replacement(match)
            if new is not None:
                found.append(line[: match.start()] + new + line[match.end() :])
        return found

    return change


def _drop(line: str) -> Sequence[str | None]:
    return [] if line.strip().startswith("type ") else [None]


def _address(match: re.Match[str]) -> str | None:
    value = parse_address(Family.IP, match[1])
    length = match[2]
    step = 1 << (32 - int(length)) if length else 1
    moved = format_address(Family.IP, (value ^ step) & 0xFFFFFFFF)
    return moved if length is None else f"{moved}/{length}"


def _length(delta: int) -> Callable[[re.Match[str]], str | None]:
    def change(match: re.Match[str]) -> str | None:
        length = int(match[2]) + delta
        if not 0 < length <= 32:
            return None
        value = parse_address(Family.IP, match[1]) & ~((1 << (32 - length)) - 1)
        return f"{format_address(Family.IP, value)}/{length}"

    return change


def _port(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) + 1}"


def _other_bit(match: re.Match[str]) -> str:
    return f"0x{int(match[1], 16) >> 1:x}"


def _flip(match: re.Match[str]) -> str:
    return "!=" if match[0] == "==" else "=="


_TESTS: Final = (
    r"ip [sd]addr (?:!= )?[\d./]+ |(?:tcp|udp|th) [sd]port [\d-]+ |meta l4proto \w+ |"
    r"ct state [\w,]+ |fib [sd]addr type (?:!= )?\w+ |meta mark & \S+ [=!]= \S+ |"
    r"ct status & \w+ == \w+ |meta random & \S+ < \S+ "
)
_CALL: Final = r"((?:jump|goto) )([\w-]+)"

_OPERATORS: Final[tuple[tuple[str, Change], ...]] = (
    ("lost-line", _drop),
    ("lost-test", _each(_TESTS, lambda m: "")),
    ("inverted-test", _each(r"(ip [sd]addr |fib [sd]addr type )!= ", lambda m: m[1])),
    ("inverted-test", _each(r"((?:ip [sd]addr|[tu]\wp [sd]port) )(?=\d)", lambda m: f"{m[1]}!= ")),
    ("inverted-test", _each(r"(ct state )(?=\w)", lambda m: f"{m[1]}!= ")),
    ("inverted-test", _each(r"[=!]=(?= (?:0x|dnat))", _flip)),
    ("address", _each(_PREFIX.pattern, _address)),
    ("prefix-length", _each(r"(\d+\.\d+\.\d+\.\d+)/(\d+)", _length(-1))),
    ("prefix-length", _each(r"(\d+\.\d+\.\d+\.\d+)/(\d+)", _length(1))),
    ("port", _each(r"((?:[sd]port |\d:|p \. ))(\d+)\b", _port)),
    ("tcp-udp", _each(r"\btcp\b", lambda m: "udp")),
    ("tcp-udp", _each(r"\budp\b", lambda m: "tcp")),
    ("mark-bit", _each(_MARK.pattern + r"(?![^\"]*< )", _other_bit)),
    ("mark-operation", _each(r"mark \^ ", lambda m: "mark | ")),
    ("mark-operation", _each(r"mark \| ", lambda m: "mark ^ ")),
    ("verdict", _each(r"\bdrop\b", lambda m: "accept")),
    ("verdict", _each(r"\baccept$|\baccept(?= comment)", lambda m: "drop")),
    ("verdict", _each(r"\breturn\b", lambda m: "accept")),
    ("policy", _each(r"policy accept", lambda m: "policy drop")),
    ("lost-nat", _each(r"masquerade(?: fully-random)?|[ds]nat to \S+", lambda m: "accept")),
    ("randomness", _each(r"masquerade fully-random", lambda m: "masquerade")),
    ("randomness", _each(r"masquerade(?! fully)", lambda m: "masquerade fully-random")),
    ("skew", _each(r"< 0x([0-9a-f]+)", lambda m: f"< 0x{int(m[1], 16) * 3 // 4:x}")),
    ("skew", _each(r"numgen random mod (\d+)", lambda m: f"numgen random mod {int(m[1]) + 1}")),
    ("hook", _each(r"hook prerouting", lambda m: "hook input")),
    ("hook", _each(r"hook input", lambda m: "hook forward")),
    ("hook", _each(r"hook forward", lambda m: "hook input")),
    ("priority", _each(r"priority 0", lambda m: "priority -400")),
    ("priority", _each(r"priority -150", lambda m: "priority 150")),
    ("priority", _each(r"priority 100", lambda m: "priority -90")),
    ("state", _each(r"established,related", lambda m: "established")),
    ("state", _each(r"established,related", lambda m: "related")),
    ("state", _each(r"ct state invalid", lambda m: "ct state untracked")),
)
"""Kinds of fault, each with the lines that it makes of a line."""
