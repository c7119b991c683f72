"""Text → commands: the tables of a listing become one command for each object in them.

Commands outside of ``table`` blocks (``add rule …``, ``define …``, as kube-proxy or a person writes them)
stay unchanged and in their place. ``flush ruleset`` is left out: the node under test has nothing of the
ruleset, but has a table of the harness.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Final

from translate.errors import Diagnostic, ParseError
from translate.nftlisting.commands import IPTABLES_NFT, SEED, Command, GivenSet, Group, Kind
from translate.nftlisting.includes import include_faults
from translate.nftlisting.jsontypes import FAMILIES
from translate.nftlisting.pieces import Block, Piece, pieces

__all__ = ["groups"]

_OBJECTS: Final = ("counter", "quota", "limit", "secmark", "synproxy")
_CT_OBJECTS: Final = ("helper", "timeout", "expectation")
_ABOUT_CHAIN: Final = ("type", "policy", "comment", "device", "devices", "flags")
_ADDING: Final = ("add", "create")
_RULE_VERBS: Final = ("add", "create", "insert", "replace")
_NOUNS: Final = ("rule", "chain", "set", "map", "element", "table", "flowtable", *_OBJECTS)
_OTHER: Final = ("delete", "flush", "rename", "define", "redefine", "undefine")
_IPTABLES_TABLES: Final = ("raw", "mangle", "nat", "filter", "security")
_IPTABLES_CHAINS: Final = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
_FILLS: Final = re.compile(r"(?:^|\s)(?:add|update)\s+@([^\s{]+)\s*\{")
_COMMENT: Final = re.compile(r'\bcomment\s+"[^"\n]*"')
_DEVICE: Final = re.compile(r"\bdevices?\s*=?\s*(?:\{([^}]*)\}|(\S+))")
_COUNTING: Final = re.compile(r"\b(?:limit|quota|meter|ct count)\s")
_MANAGED: Final = re.compile(r"^# Warning: table (\w+) (\S+) is managed by iptables-nft", re.MULTILINE)
_NAMELESS_CHAIN: Final = re.compile(r"\b(?:jump|goto)\s*\{")
_NAMELESS: Final = re.compile(r'[{,]\s*""[-/]')
_SEEDLESS: Final = re.compile(r'(\bjhash\s[^;{}"]*?\smod\s+(?:0x[0-9a-fA-F]+|\d+))(?!\s+seed\b)(?!\S)')
_XT: Final = re.compile(r"(?:^|\s)xt\s+(?:match|target)\s")


def groups(text: str, name: str, without: Container[tuple[str, str]] = ()) -> Iterator[Group]:
    """Yield the commands of a text without some tables. Raises ParseError with all faults of the text."""
    faults: list[Diagnostic] = list(include_faults(text, name))
    tables: list[Command] = []
    managed = set(_MANAGED.findall(text))
    for piece in pieces(Piece(text, 1, name)):
        words = piece.words
        block = piece.block() if "table" in words[:2] else None
        if block is not None and words[0] in ("table", *_ADDING):
            if _named(block) in without:
                continue
            if _named(block) in managed:
                message = "a table of iptables-nft, as nft warns, whose effect nft cannot show"
                faults.append(Diagnostic(piece.origin, message, IPTABLES_NFT))
            tables += _table(block, piece, faults)
            continue
        if tables:
            yield True, tuple(tables)
            tables = []
        command = _command(piece, words, faults)
        if command is not None:
            yield False, (command,)
    if tables:
        yield True, tuple(tables)
    if faults:
        raise ParseError(tuple(faults))


def _command(piece: Piece, words: tuple[str, ...], faults: list[Diagnostic]) -> Command | None:
    first = words[0] if words else ""
    if words[:2] == ("flush", "ruleset"):
        return None
    if first == "include":
        return None  # all of them are reported before this
    if first not in (*_RULE_VERBS, *_OTHER):
        hint = "a ruleset consists of tables as nft list ruleset prints them, or of commands that add to them"
        faults.append(
            Diagnostic(
                piece.origin, f"{first or piece.flat[:20]!r} does not begin a table or a command", hint
            )
        )
        return None
    _refuse(piece, faults)
    rest = list(words[1:])
    while rest and rest[0] in _NOUNS:
        rest.pop(0)
    family = rest.pop(0) if rest and rest[0] in FAMILIES else "ip"
    fills = _fills(piece, family, rest[0]) if rest and first in _RULE_VERBS else ()
    devices = _devices(piece) if "chain" in words[:2] or "flowtable" in words[:2] else ()
    return Command(
        kind=Kind.RULE,
        text=_statement(piece),
        origin=piece.origin,
        family=family if first in _RULE_VERBS else "",
        fills=fills,
        devices=devices,
        counting="rule" in words[:2] and bool(_COUNTING.search(piece.unquoted)),
    )


def _named(block: Block) -> tuple[str, str]:
    """Return the family and the name in the head of a table."""
    names = block.head[block.head.index("table") + 1 :]
    return names[0] if len(names) > 1 else "ip", names[-1] if names else ""


def _table(block: Block, piece: Piece, faults: list[Diagnostic]) -> Iterator[Command]:
    names = list(block.head[block.head.index("table") + 1 :])
    family = names.pop(0) if len(names) > 1 else "ip"
    if len(names) != 1:
        faults.append(Diagnostic(piece.origin, f"{piece.flat[:40]!r} does not begin a table"))
        return
    table = f"{family} {names[0]}"
    about: list[str] = []
    parts: list[Command] = []
    for part in pieces(block.body):
        inner = part.block()
        head = inner.head if inner is not None else ()
        match head:
            case ("chain", chain) if inner is not None:
                parts += _chain(table, chain, inner, part, faults)
            case ("set" | "map" as kind, name) if inner is not None:
                parts.append(_set(kind, GivenSet(family, names[0], name), inner, part))
            case ("flowtable", name) if inner is not None:
                text = f"add flowtable {table} {name} {{ {_joined(inner.body)} }}"
                command = Command(
                    kind=Kind.FLOWTABLE, text=text, origin=part.origin, devices=_devices(inner.body)
                )
                parts.append(command)
            case (kind, name) if inner is not None and kind in _OBJECTS:
                text = f"add {kind} {table} {name} {{ {_joined(inner.body)} }}"
                parts.append(Command(kind=Kind.OBJECT, text=text, origin=part.origin))
            case ("ct", kind, name) if inner is not None and kind in _CT_OBJECTS:
                text = f"add ct {kind} {table} {name} {{ {_joined(inner.body)} }}"
                parts.append(Command(kind=Kind.OBJECT, text=text, origin=part.origin))
            case _:
                about.append(part.flat)
    text = f"add table {table}" + (f" {{ {'; '.join(about)}; }}" if about else "")
    yield Command(kind=Kind.TABLE, text=text, origin=piece.origin, family=family)
    yield from parts


def _chain(table: str, name: str, block: Block, piece: Piece, faults: list[Diagnostic]) -> Iterator[Command]:
    about: list[str] = []
    rules: list[Command] = []
    family, _, owner = table.partition(" ")
    devices: tuple[str, ...] = ()
    for part in pieces(block.body):
        words = part.words
        if words and words[0] in _ABOUT_CHAIN:
            about.append(part.flat)
            if words[0] != "comment":
                devices += _devices(part)
            continue
        _refuse(part, faults)
        text = f"add rule {table} {name} {_statement(part)}"
        command = Command(
            kind=Kind.RULE,
            text=text,
            origin=part.origin,
            fills=_fills(part, family, owner),
            counting=bool(_COUNTING.search(part.unquoted)),
        )
        rules.append(command)
    text = f"add chain {table} {name}" + (f" {{ {'; '.join(about)}; }}" if about else "")
    foreign = (
        family in ("ip", "ip6") and owner in _IPTABLES_TABLES and name in _IPTABLES_CHAINS and bool(rules)
    )
    yield Command(kind=Kind.CHAIN, text=text, origin=piece.origin, devices=devices, foreign=foreign)
    yield from rules


def _set(kind: str, where: GivenSet, block: Block, piece: Piece) -> Command:
    # Elements stay in the declaration: nft 1.0.6 crashes on "add element" with the key *.
    about: list[str] = []
    elements: list[str] = []
    for part in pieces(block.body):
        inner = part.block()
        is_elements = inner is not None and inner.head[:1] == ("elements",)
        (elements if is_elements else about).append(part.flat)
    begin = f"add {kind} {where}"
    return Command(
        kind=Kind.SET,
        text=f"{begin} {{ {'; '.join(about + elements)}; }}",
        origin=piece.origin,
        where=where,
        bare=f"{begin} {{ {'; '.join(about)}; }}",
    )


def _statement(piece: Piece) -> str:
    """Return a rule on one line; only the newlines that end the rules of an anonymous chain remain."""
    text = piece.text if _NAMELESS_CHAIN.search(piece.unquoted) else piece.flat
    return _SEEDLESS.sub(rf"\1 seed {SEED:#x}", text)


def _joined(body: Piece) -> str:
    return "".join(f"{part.flat}; " for part in pieces(body)).rstrip()


def _fills(rule: Piece, family: str, table: str) -> tuple[GivenSet, ...]:
    return tuple(GivenSet(family, table, name) for name in _FILLS.findall(rule.unquoted))


def _devices(piece: Piece) -> tuple[str, ...]:
    names = []
    for many, single in _DEVICE.findall(_COMMENT.sub("", piece.flat)):
        names += [word.strip('" ;') for word in (many.split(",") if many else [single])]
    return tuple(word for word in names if word)


def _refuse(rule: Piece, faults: list[Diagnostic]) -> None:
    if _XT.search(rule.unquoted):
        message = "a rule of iptables-nft, whose effect nft cannot show"
        faults.append(Diagnostic(rule.origin, message, IPTABLES_NFT))
    if _NAMELESS.search(rule.flat):
        message = "nft has lost the names of interfaces here"
        hint = 'nft prints the names in an anonymous set with a wildcard as ""; a named set keeps them'
        faults.append(Diagnostic(rule.origin, message, hint))
