"""Faults of a tc program: in the generated chains, in the contents of its maps, and in its NAT.

The text is that of :meth:`BpfOutput.render`, with the contents of maps as comments at its end.
:func:`output_of` turns a text with a fault into a program that can be loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.lab.mutation.fault import Fault, Place
from tests.lab.mutation.operators import Operators, each, faults_at, removed
from translate.bpf import BpfOutput, TranslationUnit
from translate.bpf.layout.maps import MapEntry, SetEntry
from translate.dataclass import dataclass, fields, replace

__all__ = ["bpf_faults", "output_of"]

_FUNCTION: Final = re.compile(
    r"^INLINE int (c\d+_(\w+)|chain_\w+)\(struct __sk_buff \*skb, struct pkt \*p\)$"
)
_RUNTIME: Final = re.compile(r"^(?:INLINE \w+|int) \*?(\w+)\(")
_CONTENTS: Final = re.compile(r"^/\* (lookup_\d+): ")
_MEMBERS: Final = re.compile(r"^/\* (set_\d+_\w+): ")
_MEMBER: Final = re.compile(
    r"^ \*   (0x[0-9a-f]+(?: \. 0x[0-9a-f]+)*)( /\d+)?( nomatch)?((?: \(line \d+\))?)$"
)
_CONTENTS_START: Final = re.compile(r"\n/\* (?:lookup_\d+|set_\d+_\w+): ")
_ENTRY: Final = re.compile(r"^ \*   (.+) : (\d+)((?: 0x[0-9a-f]+)*)(?: \(line \d+\))?$")


def bpf_faults(text: str) -> Iterator[Fault]:
    """Yield every single fault of the text, in the order of its lines."""
    others = _others(text)
    chains: Operators = (*_CHAINS, ("target", each(r"c\d+_\w+(?=\(skb, p\))", lambda m: others.get(m[0]))))
    block, operators = "", chains[:0]
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if match := _FUNCTION.match(line):
            block, operators = match[2] or match[1], chains
        elif match := _RUNTIME.match(line):
            block, operators = match[1], _OF_RUNTIME
        elif match := _CONTENTS.match(line):
            block, operators = match[1], _OF_CONTENTS
        elif match := _MEMBERS.match(line):
            block, operators = match[1], _OF_MEMBERS
        elif block and line.strip():
            yield from faults_at(Place(block, number, line, lines[number - 1]), operators)


def output_of(text: str, original: BpfOutput) -> BpfOutput:
    """Return the output for the text; ``original`` has the declarations of its maps."""
    start = _CONTENTS_START.search(text)
    source = text if start is None else text[: start.start()]
    entries: dict[str, list[MapEntry]] = {}
    members: dict[str, list[SetEntry]] = {}
    name = ""
    for line in text[len(source) :].split("\n"):
        if match := _CONTENTS.match(line) or _MEMBERS.match(line):
            name = match[1]
        elif match := _ENTRY.match(line):
            key = tuple(int(part, 16) for part in match[1].split(" . "))
            arguments = tuple(int(word, 16) for word in match[3].split())
            entries.setdefault(name, []).append(MapEntry(key=key, code=int(match[2]), arguments=arguments))
        elif match := _MEMBER.match(line):
            words = tuple(int(part, 16) for part in match[1].split(" . "))
            length = int(match[2][2:]) if match[2] else 32 * len(words)
            members.setdefault(name, []).append(SetEntry(words=words, length=length, member=not match[3]))
    maps = tuple(replace(m, entries=tuple(entries.get(m.name, ()))) for m in original.maps)
    sets = tuple(replace(s, entries=tuple(members.get(s.name, ()))) for s in original.sets)
    own = {field.name: getattr(original, field.name) for field in fields(BpfOutput)}
    return _Rewritten(**{**own, "before": source, "chains": "", "after": "", "maps": maps, "sets": sets})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewritten(BpfOutput):
    """A program whose text can differ anywhere, so it is compiled in one unit."""

    @property
    def units(self) -> tuple[TranslationUnit, ...]:
        """The program."""
        return (self.whole,)


def _others(text: str) -> Mapping[str, str]:
    """Return for each chain function the previous one of the same kind, if there is one."""
    last: dict[str, str] = {}
    others: dict[str, str] = {}
    for line in text.split("\n"):
        match = _FUNCTION.match(line)
        if match is None or match[2] is None:
            continue
        kind = re.sub(r"_[A-Z0-9]{16}$", "", match[2])
        if kind in last:
            others[match[1]] = last[kind]
        last[kind] = match[1]
    return others


def _conjuncts(line: str) -> tuple[str, list[str]] | None:
    """Return the indentation and the top-level operands of ``if (a && b) {``."""
    match = re.match(r"^(\t+)if \((.*)\) \{$", line)
    if match is None or "verdict" in line or "e->code" in line:
        return None
    parts, depth, start = [], 0, 0
    body = match[2]
    for i, c in enumerate(body):
        depth += (c == "(") - (c == ")")
        if depth == 0 and body.startswith(" && ", i):
            parts.append(body[start:i])
            start = i + 4
    return match[1], [*parts, body[start:]]


def _lost_test(line: str) -> Sequence[str | None]:
    conjuncts = _conjuncts(line)
    if conjuncts is None:
        return []
    tabs, parts = conjuncts
    rest = [parts[:i] + parts[i + 1 :] for i in range(len(parts))]
    return [f"{tabs}if ({' && '.join(kept) or '1'}) {{" for kept in rest]


def _inverted_test(line: str) -> Sequence[str | None]:
    conjuncts = _conjuncts(line)
    if conjuncts is None:
        return []
    tabs, parts = conjuncts
    turned = [[*parts[:i], f"!({p})", *parts[i + 1 :]] for i, p in enumerate(parts)]
    return [f"{tabs}if ({' && '.join(kept)}) {{" for kept in turned]


def _constant(match: re.Match[str]) -> str:
    return f"{int(match[0], 16) ^ 1:#x}"


def _range(match: re.Match[str]) -> str:
    moved = f"{int(match[1], 16) ^ 1:#x}"
    return f"{moved}, {moved}"


def _shifted(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2], 16) << 1 & 0xFFFFFFFF:#x}"


def _swapped_code(match: re.Match[str]) -> str:
    return f" : {int(match[1]) % 4 + 1}"


def _other_member(line: str) -> Sequence[str | None]:
    """Yield the member with the last significant bit of each word flipped, and with another prefix length."""
    match = _MEMBER.match(line)
    if match is None:
        return []
    words = [int(part, 16) for part in match[1].split(" . ")]
    length = int(match[2][2:]) if match[2] else 32 * len(words)
    changed: list[str | None] = []
    for at, word in enumerate(words):
        counted = min(length - 32 * at, 32)
        if counted > 0:
            other = [*words[:at], word ^ 1 << (32 - counted), *words[at + 1 :]]
            changed.append(" *   " + " . ".join(f"{value:#x}" for value in other) + line[match.end(1) :])
    if match[2]:
        changed.append(f"{line[: match.start(2)]} /{length - 1}{line[match.end(2) :]}")
    return changed


_CHAINS: Final[Operators] = (
    ("lost-test", _lost_test),
    ("inverted-test", _inverted_test),
    ("constant", each(r"(?<=== )0x[0-9a-f]+", _constant)),
    ("constant", each(r"(?<=[<>]= )0x[0-9a-f]+", lambda m: f"{int(m[0], 16) + 1:#x}")),
    ("constant", each(r"(0x[0-9a-f]+), \1(?=, )", _range)),
    ("mask", each(r"(& ~?)(0x[0-9a-f]+)", _shifted)),
    ("mark-bit", each(r"(\^ )(0x[0-9a-f]+)", _shifted)),
    ("hash", each(r"(?<=, \.)(\w+ = )(0x[0-9a-f]+)", lambda m: f"{m[1]}{int(m[2], 16) ^ 1:#x}")),
    ("hash", each(r"fields_of_connection\(p, ", lambda m: "fields_of_packet(skb, p, ")),
    ("lost-mark", lambda line: removed(line) if line.strip().startswith("p->mark =") else []),
    ("verdict", each(r"return DROP;", lambda m: "return ACCEPT;")),
    ("verdict", each(r"return ACCEPT;", lambda m: "return DROP;")),
    ("verdict", each(r"^\t\treturn CONTINUE;", lambda m: "\t\treturn ACCEPT;")),
    ("policy", each(r"CONTINUE \? ACCEPT", lambda m: "CONTINUE ? DROP")),
    ("verdict", each(r"return REJECT;", lambda m: "return DROP;")),
    ("reject-kind", each(r"(p->reject = )(\d+)", lambda m: f"{m[1]}{1 if m[2] == '3' else 3}")),
    ("list", each(r"(recent\()(\d+)", lambda m: f"{m[1]}{int(m[2]) ^ 1}")),
    ("side", each(r"(recent\(\d+, p->)saddr", lambda m: f"{m[1]}daddr")),
    ("affinity", each(r"RECENT_SET", lambda m: "RECENT_RCHECK")),
    ("side", each(r"(address_type\(p->)([sd])", lambda m: f"{m[1]}{'d' if m[2] == 's' else 's'}")),
    ("side", each(r"(translate_prefix\(skb, p, )([01])", lambda m: f"{m[1]}{1 - int(m[2])}")),
    ("lost-change", each(r"(clamp|limit)_mss\(skb, p.*?\)(?=\))", lambda m: "0")),
    ("prefix", each(r"(translate_prefix\(.*, )(0x[0-9a-f]+)(?=, [01]\)\))", _shifted)),
    ("constant", each(r"(?<=; number )(> |<= )(0x[0-9a-f]+)", lambda m: f"{m[1]}{int(m[2], 16) + 1:#x}")),
    (
        "lost-change",
        each(r"\b(add_to|renew_in|remove_from)_set_\w+\(p\)(?=\)| &&)", lambda m: "1"),
    ),
    ("lost-nat", each(r"return ask_nat\(.*\);", lambda m: "return ACCEPT;")),
    ("randomness", each(r"BIND_MASQUERADE \| BIND_RANDOM", lambda m: "BIND_MASQUERADE")),
    ("randomness", each(r"BIND_MASQUERADE\)", lambda m: "BIND_MASQUERADE | BIND_RANDOM)")),
    ("lost-call", each(r"if \(\(verdict = c\w+\(skb, p\)\)\)", lambda m: "if ((verdict = CONTINUE))")),
    ("skew", each(r"(?<=drawn < )0x[0-9a-f]+", lambda m: f"{int(m[0], 16) * 3 // 4:#x}")),
)

_OF_CONTENTS: Final[Operators] = (
    ("lost-entry", lambda line: removed(line) if _ENTRY.match(line) else []),
    ("constant", each(r"0x[0-9a-f]+", _constant)),
    ("code", each(r" : (\d+)", _swapped_code)),
)

_OF_MEMBERS: Final[Operators] = (
    ("lost-entry", lambda line: removed(line) if _MEMBER.match(line) else []),
    ("member", _other_member),
)

_OF_RUNTIME: Final[Operators] = (
    ("option", each(r"(?<=next_option\(skb, &o, )0x[0-9a-f]+", _constant)),
    ("lost-un-nat", each(r"bit \^= ST_SRC_NAT \| ST_DST_NAT;", lambda m: "return 0;")),
    ("lost-error-nat", each(r"return translate_error\(.*\);", lambda m: "return 0;")),
    ("un-nat", each(r"p->dir \? &p->conn.orig : &p->conn.reply", lambda m: "&p->conn.reply")),
    ("lost-port", each(r"return set_port\(.*\);", lambda m: "return 0;")),
    ("lost-icmp-id", each(r"set_icmp_id\(skb, p, t.sport\);", lambda m: ";")),
    ("hook", each(r"RUN\(chain_filter_\w+\);", lambda m: ";")),
    ("hook", each(r"(?<=RUN_NAT\()chain_nat_\w+", lambda m: "chain_raw_output")),
    ("hook", each(r"(?<=RUN\()chain_filter_input", lambda m: "chain_filter_forward")),
    ("side", each(r"(RUN_NAT\(chain_nat_prerouting, )MANIP_DST", lambda m: f"{m[1]}MANIP_SRC")),
    ("side", each(r"(RUN_NAT\(chain_nat_postrouting, )MANIP_SRC", lambda m: f"{m[1]}MANIP_DST")),
)
"""Faults of the runtime: other options, NAT that is not undone, and chains at no hook or at another one."""
