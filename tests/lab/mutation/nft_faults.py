"""Faults of an nftables ruleset: every operator at every place of the text where it applies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tests.lab.mutation.fault import Fault, Place
from tests.lab.mutation.operators import Change, Operators, each, faults_at
from translate.ir import Family, format_address, parse_address

__all__ = ["MOST_ELEMENTS", "nft_faults"]

MOST_ELEMENTS: Final = 48
"""The number of elements of one set or map that get faults of their own."""

_BLOCK: Final = re.compile(r"^\t(chain|map|set|limit|quota) (\S+) \{$")
_NO_MAC: Final = r"(?!(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b)"
_ADDRESS: Final = r"(\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f]*:[0-9a-f:]*)(?:/(\d+))?(?![\w.])"
_PREFIX: Final = rf"(?<![\w.:]){_NO_MAC}{_ADDRESS}"
_COMMENT: Final = re.compile(r' comment "[^"]*"')
_TEMPLATE: Final = re.compile(r"(.+?)_((to_)?\d+_endpoints?|endpoint)(_\d+)*_[0-9a-f]{4}$")
_DATA: Final = r"(?<= : )\S.*(?=,$)"
_ELEMENT_DATA: Final = re.compile(_DATA)
_MARK: Final = re.compile(r"0x([0-9a-f]+)")


def nft_faults(text: str, more: Operators = ()) -> Iterator[Fault]:
    """Yield every single fault of the text, in the order of its lines; ``more`` operators come last."""
    following = _following(text)
    target = each(_CALL, lambda m: _other_target(m, following))
    lists = tuple(dict.fromkeys(re.findall(r"@(recent_\S+)", text)))
    other_list = each(r"@(recent_\S+)", lambda m: _other_list(m, lists))
    alike = _alike(text)
    other_lookup = each(r"@((?!recent_)\S+)", lambda m: f"@{alike[m[1]]}" if m[1] in alike else None)
    operators = (*_OPERATORS, ("target", target), ("list", other_list), ("lookup", other_lookup), *more)
    places = tuple(_places(text))
    data = _data_of_next(places)
    for place in places:
        for fault in faults_at(place, (*operators, ("data", _became(data.get(place.line))))):
            if fault.after is None or _without_comment(fault.after) != _without_comment(place.text):
                yield fault


def _without_comment(line: str) -> str:
    """Return a line without its comment, because a changed comment is not a fault."""
    return _COMMENT.sub("", line)


def _became(data: str | None) -> Change:
    return each(_DATA, lambda m: data)


def _alike(text: str) -> Mapping[str, str]:
    """Return for each set or map another one with the same types of key and data, if there is one."""
    kinds: dict[tuple[str, str], list[str]] = {}
    block: re.Match[str] | None = None
    for line in text.split("\n"):
        if match := _BLOCK.match(line):
            block = match
        elif block and line.startswith("\t\ttypeof ") and not block[2].startswith("recent_"):
            kinds.setdefault((block[1], line), []).append(block[2])
    groups = [names for names in kinds.values() if len(names) > 1]
    return {name: names[(i + 1) % len(names)] for names in groups for i, name in enumerate(names)}


def _data_of_next(places: Sequence[Place]) -> Mapping[int, str]:
    """Return for each element of a map, by line, the data of the next element (of the first for the last)."""
    maps: dict[str, list[tuple[int, str]]] = {}
    for place in places:
        if match := _ELEMENT_DATA.search(place.text):
            maps.setdefault(place.block, []).append((place.line, match[0]))
    return {line: of[(i + 1) % len(of)][1] for of in maps.values() for i, (line, _) in enumerate(of)}


def _following(text: str) -> Mapping[str, str]:
    """Return for each chain the next one of the same table, and of the same kind if there is one."""
    names = sorted(m[2] for line in text.split("\n") if (m := _BLOCK.match(line)) and m[1] == "chain")
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(_kind(name), []).append(name)
    return {n: kind[(i + 1) % len(kind)] for kind in kinds.values() for i, n in enumerate(kind)}


def _kind(name: str) -> str:
    """Return the key of a group of interchangeable chains: the dispatcher, or the prefix of a name."""
    template = _TEMPLATE.match(name)
    return f"{template[1]} templates" if template else "-".join(name.split("-")[:2])


def _other_target(match: re.Match[str], following: Mapping[str, str]) -> str | None:
    other = following[match[2]]
    return None if other == match[2] else match[1] + other


def _other_list(match: re.Match[str], lists: Sequence[str]) -> str | None:
    other = lists[(lists.index(match[1]) + 1) % len(lists)]
    return None if other == match[1] else f"@{other}"


def _places(text: str) -> Iterator[Place]:
    """Yield the places for faults: rules, elements and hook lines, but no comments, declarations and braces.

    Of the elements of a large set or map, as many as ``MOST_ELEMENTS``, evenly spread.
    """
    blocks: dict[tuple[str, str], list[Place]] = {}
    block: tuple[str, str] | None = None
    for number, line in enumerate(text.split("\n")):
        if match := _BLOCK.match(line):
            block = (match[1], match[2])
        elif block and line.startswith("\t\t") and not _is_declaration(line.strip()):
            blocks.setdefault(block, []).append(Place(block[1], number, line))
    for (kind, _), places in blocks.items():
        if kind == "chain" or len(places) <= MOST_ELEMENTS:
            yield from places
        else:
            yield from (places[i * len(places) // MOST_ELEMENTS] for i in range(MOST_ELEMENTS))


def _is_declaration(line: str) -> bool:
    return line.startswith(("comment ", "typeof ", "flags ", "elements", "}", "size ", "timeout "))


def _drop(line: str) -> Sequence[str | None]:
    return [] if line.strip().startswith("type ") else [None]


def _family(address: str) -> Family:
    return Family.IP6 if ":" in address else Family.IP


def _address(match: re.Match[str]) -> str | None:
    family = _family(match[1])
    value = parse_address(family, match[1])
    length = match[2]
    if length == "0":
        return None
    step = 1 << (family.bits - int(length)) if length else 1
    moved = format_address(family, value ^ step)
    return moved if length is None else f"{moved}/{length}"


def _length(delta: int) -> Callable[[re.Match[str]], str | None]:
    def change(match: re.Match[str]) -> str | None:
        if match[2] is None:
            return None
        family, length = _family(match[1]), int(match[2]) + delta
        if not 0 < length <= family.bits:
            return None
        value = parse_address(family, match[1]) & ~((1 << (family.bits - length)) - 1)
        return f"{format_address(family, value)}/{length}"

    return change


def _port(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) + 1}"


def _other_side(match: re.Match[str]) -> str:
    return f"{match[1]}{'d' if match[2] == 's' else 's'}"


def _other_bit(match: re.Match[str]) -> str:
    return f"0x{int(match[1], 16) >> 1:x}"


_GREATEST: Final = frozenset(str((1 << bits) - 1) for bits in (8, 16, 64))


def _lower_end(match: re.Match[str]) -> str | None:
    """Lower the end of a range by one, unless it is the greatest possible value."""
    return None if match[3] in _GREATEST else f"{match[1]}{match[2]}{int(match[3]) - 1}"


def _other_direction(match: re.Match[str]) -> str:
    return "ct reply " if match[0] == "ct original " else "ct original "


def _other_count(match: re.Match[str]) -> str:
    return f"{match[1]}{'bytes' if match[2] == 'packets' else 'packets'} "


def _flip(match: re.Match[str]) -> str:
    return "!=" if match[0] == "==" else "=="


_TESTS: Final = (
    r"ip6? [sd]addr (?:!= )?[\w@./:-]+ |(?:tcp|udp|th) [sd]port [\d-]+ |meta l4proto \w+ |"
    r"ct state [\w,]+ |fib [sd]addr type (?:!= )?\w+ |meta mark & \S+ [=!]= \S+ |"
    r"ct status & \w+ == \w+ |numgen random mod \d+ < \d+ |"
    r"(?:meta length|ip ttl|ip6 hoplimit|ip6? dscp|ip6? ecn|meta pkttype|ether saddr) (?:!= )?[\w:-]+ |"
    r"@nh,\d+,\d+ (?:& \w+ )?[=!]= \w+ |"
    r"ct (?:original |reply )?(?:packets|bytes|avgpkt) (?:!= )?[\d-]+ "
)
_FIELD: Final = r"(?:ip6? [sd]addr|meta l4proto|th [sd]port)"
_OF_SET: Final = rf"({_FIELD}(?: \. {_FIELD})* )(!= )?(@set_\S+ )"
_HEADER: Final = r"((?:meta length|ip ttl|ip6 hoplimit|ip6? dscp|ip6? ecn|meta pkttype|ether saddr) )"
_COUNT: Final = r"ct (?:original |reply )?(?:packets|bytes|avgpkt)"
_NUMBER: Final = rf"((?:meta length|ip ttl|ip6 hoplimit|{_COUNT}) (?:!= )?)"
_CALL: Final = r"((?:jump|goto) )([\w-]+)"

_OPERATORS: Final[Operators] = (
    ("lost-line", _drop),
    ("lost-test", each(_TESTS, lambda m: "")),
    ("lost-test", each(_OF_SET, lambda m: "")),
    ("inverted-test", each(_OF_SET, lambda m: m[1] + ("" if m[2] else "!= ") + m[3])),
    ("inverted-test", each(r"(ip6? [sd]addr |fib [sd]addr type )!= ", lambda m: m[1])),
    ("inverted-test", each(r"((?:ip6? [sd]addr|[tu]\wp [sd]port) )(?=[@\da-f:])", lambda m: f"{m[1]}!= ")),
    ("inverted-test", each(r"(ct state )(?=\w)", lambda m: f"{m[1]}!= ")),
    ("inverted-test", each(rf"{_HEADER}!= ", lambda m: m[1])),
    ("inverted-test", each(rf"{_HEADER}(?=[\w])", lambda m: f"{m[1]}!= ")),
    ("number", each(rf"{_NUMBER}(\d+)\b", lambda m: f"{m[1]}{int(m[2]) + 1}" if m[2] != "0" else None)),
    ("number", each(rf"{_NUMBER}(\d+-)(\d+)", _lower_end)),
    ("number", each(r"(ip6? (?:dscp|ecn) (?:!= )?)0x(\w+)", lambda m: f"{m[1]}{int(m[2], 16) ^ 1:#x}")),
    ("inverted-test", each(rf"({_COUNT} )!= ", lambda m: m[1])),
    ("inverted-test", each(rf"({_COUNT} )(?=\d)", lambda m: f"{m[1]}!= ")),
    ("direction", each(r"ct (?:original|reply) (?=packets|bytes|avgpkt)", _other_direction)),
    ("direction", each(r"ct (?:original|reply) (?=packets|bytes|avgpkt)", lambda m: "ct ")),
    ("count", each(r"(ct (?:original |reply )?)(packets|bytes|avgpkt) ", _other_count)),
    ("packet-type", each(r"(meta pkttype (?:!= )?)host", lambda m: f"{m[1]}broadcast")),
    ("packet-type", each(r"(meta pkttype (?:!= )?)broadcast", lambda m: f"{m[1]}multicast")),
    ("mac", each(r"(ether saddr (?:!= )?[\w:]+:)(\w\w)\b", lambda m: f"{m[1]}{int(m[2], 16) ^ 1:02x}")),
    ("inverted-test", each(r"[=!]=(?= (?:0x|dnat))", _flip)),
    ("inverted-test", each(r"(fib [sd]addr type )(?=\w)", lambda m: f"{m[1]}!= ")),
    ("side", each(r"(ip6? )saddr (?=[@}])", lambda m: f"{m[1]}daddr ")),
    ("side", each(r"(ip6? )([sd])(?=addr \. )", _other_side)),
    ("side", each(r"(th )([sd])(?=port (?:v?map )?@)", _other_side)),
    ("side", each(r"(fib )([sd])(?=addr type)", _other_side)),
    ("reject-kind", each(r"(reject with icmp type )port-", lambda m: f"{m[1]}host-")),
    ("reject-kind", each(r"(reject with icmpv6 type )port-", lambda m: f"{m[1]}addr-")),
    ("verdict", each(r"reject with \S+ type \S+", lambda m: "drop")),
    ("address", each(_PREFIX, _address)),
    ("prefix-length", each(_PREFIX, _length(-1))),
    ("prefix-length", each(_PREFIX, _length(1))),
    ("port", each(r"((?:[sd]port |\.\d{1,3}:|\]:|p \. | : [\w.:]+ \. ))(\d+)\b", _port)),
    ("tcp-udp", each(r"\btcp\b", lambda m: "udp")),
    ("tcp-udp", each(r"\budp\b", lambda m: "tcp")),
    ("mark-bit", each(_MARK.pattern + r"(?![^\"]*< )", _other_bit)),
    ("mark-operation", each(r"mark \^ ", lambda m: "mark | ")),
    ("mark-operation", each(r"mark \| ", lambda m: "mark ^ ")),
    ("verdict", each(r"\bdrop\b", lambda m: "accept")),
    ("verdict", each(r"\baccept$|\baccept(?= comment)", lambda m: "drop")),
    ("verdict", each(r"\breturn\b", lambda m: "accept")),
    ("policy", each(r"policy accept", lambda m: "policy drop")),
    ("segment-size", each(r"(maxseg size set )(\d+)", lambda m: f"{m[1]}{int(m[2]) + 1}")),
    ("segment-size", each(r"maxseg size set rt mtu", lambda m: "maxseg size set 1461")),
    ("lost-nat", each(r"masquerade(?: fully-random)?|[ds]nat (?:prefix )?to \S+", lambda m: "accept")),
    ("prefix", each(r"([ds]nat )prefix (to [^\s/]+)/\d+", lambda m: m[1] + m[2])),
    ("randomness", each(r"masquerade fully-random", lambda m: "masquerade")),
    ("randomness", each(r"masquerade(?! fully)", lambda m: "masquerade fully-random")),
    ("skew", each(r"< (\d+)", lambda m: f"< {int(m[1]) * 3 // 4}")),
    ("skew", each(r"numgen random mod (\d{1,6})(?!\d)", lambda m: f"numgen random mod {int(m[1]) + 1}")),
    ("hook", each(r"hook prerouting", lambda m: "hook input")),
    ("hook", each(r"hook input", lambda m: "hook forward")),
    ("hook", each(r"hook forward", lambda m: "hook input")),
    ("priority", each(r"priority 0", lambda m: "priority -400")),
    ("priority", each(r"priority -150", lambda m: "priority 150")),
    ("priority", each(r"priority 100", lambda m: "priority -90")),
    ("state", each(r"established,related", lambda m: "established")),
    ("state", each(r"established,related", lambda m: "related")),
    ("state", each(r"ct state invalid", lambda m: "ct state untracked")),
)
"""Kinds of faults, each with a function from a line to changed lines."""
