"""Operators for every match and statement that :mod:`translate.nft` writes, whatever the extension.

The operators of :mod:`~tests.lab.mutation.nft_faults` are for the matches in kube-proxy's rules. Here a match
is a key, a relation and a value, as ``ct mark != 0x7``, and each kind of match has the same faults: it is
lost or inverted, its value is moved, its mask has one bit less, or its key reads another side of the packet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tests.lab.mutation.operators import Operators, each, each_named

__all__ = ["EVERY_MATCH"]

_KEYS: Final = (
    *(r"(?:tcp|udp|udplite|sctp|dccp|th) [sd]port", r"icmp(?:v6)? (?:type|code)", r"tcp option maxseg size"),
    *(r"tcp flags", r"esp spi", r"ah spi", r"comp cpi", r"(?:hbh|dst|rt) hdrlength", r"rt (?:type|seg-left)"),
    *(r"frag (?:id|reserved2?|frag-off|more-fragments)", r"ip frag-off", r"rt classid", r"dccp type"),
    *(r"meta (?:cgroup|skuid|skgid|cpu|hour|day|time|length|pkttype|mark|l4proto)", r"[io]ifgroup"),
    r"ct (?:original |reply )?(?:proto-src|proto-dst|ip6? [sd]addr|packets|bytes|avgpkt|protocol)",
    *(r"ct (?:direction|helper|mark|label|state|status)", r"@(?:nh|th|ih),\d+,\d+", r"socket \w+"),
    *(r"ip6? (?:[sd]addr|dscp|ecn)", r"ip ttl", r"ip6 hoplimit", r"ether saddr", r"meta iifkind"),
    *(r"fib [sd]addr(?: \. (?:iif|oif|mark))* type", r"[io]ifname", r"numgen (?:inc|random) mod \d+"),
)
_KEY: Final = "(?:" + "|".join(_KEYS) + ")"
_VALUE: Final = r"(?:\{ [^}]* \}|\"[^\"]*\"|(?!set\b|\{|and\b|limit\b)[\w.:/*,-]+)"
_MASK: Final = r"(?: & (?:0x[0-9a-f]+|[\w.:]+))?"
_MATCH: Final = rf"(?<![\w.] )(?<![\w@])({_KEY}{_MASK} )((?:[=!<>]=|<) )?({_VALUE})(?= |$)"
_THERE: Final = r"((?:tcp option \w+|sctp chunk [\w-]+|fib [\w .]+ oif|meta ipsec|rt ipsec) )(exists|missing)"
_INVERSE: Final[Mapping[str | None, str]] = {
    None: "!= ",
    "!= ": "== ",
    "== ": "!= ",
    ">= ": "< ",
    "< ": ">= ",
}
_SIDES: Final = {
    "sport": "dport",
    "dport": "sport",
    "saddr": "daddr",
    "daddr": "saddr",
    "proto-src": "proto-dst",
    "proto-dst": "proto-src",
    "original": "reply",
    "reply": "original",
    "iifgroup": "oifgroup",
    "oifgroup": "iifgroup",
    "iifname": "oifname",
    "oifname": "iifname",
    "skuid": "skgid",
    "skgid": "skuid",
}
_SIDE: Final = re.compile(r"\b(" + "|".join(_SIDES) + r")\b")
_UNITS: Final = {"second": "minute", "minute": "hour", "hour": "day", "day": "hour", "week": "day"}


def _inverted(match: re.Match[str]) -> str | None:
    """Return the match with the opposite relation; a bare list of bits is tested with ``==`` implied."""
    return f"{match[1]}{_INVERSE[match[2]]}{match[3]}"


def _moved(match: re.Match[str]) -> str | None:
    """Return the match with its first value greater by one, or with another bit of a hexadecimal value."""
    number = re.match(r"(\{ )?(0x[0-9a-f]+|\d+)(?![\w.:])", match[3])
    if number is None or (match[2] == ">= " and number[2] == "0"):
        return None
    text = number[2]
    more = f"{int(text, 16) ^ 1:#x}" if text.startswith("0x") else str(int(text) + 1)
    return f"{match[1]}{match[2] or ''}{number[1] or ''}{more}{match[3][number.end() :]}"


def _end_moved(match: re.Match[str]) -> str | None:
    """Return the match with the upper end of its last range less by one."""
    high = re.search(r"(?<=-)(\d+)( \})?$", match[3])
    if high is None:
        return None
    return f"{match[1]}{match[2] or ''}{match[3][: high.start()]}{int(high[1]) - 1}{high[2] or ''}"


def _shorter(match: re.Match[str]) -> str | None:
    """Return the match without the first element of its list."""
    parts = re.match(r"\{ [^,]+, (.*)", match[3])
    return None if parts is None else f"{match[1]}{match[2] or ''}{{ {parts[1]}"


def _less_masked(match: re.Match[str]) -> str | None:
    """Return the match with the highest bit of its mask gone."""
    mask = re.search(r" & 0x([0-9a-f]+) $", match[1])
    if mask is None:
        return None
    value = int(mask[1], 16)
    less = value ^ 1 << max(value.bit_length() - 1, 0)
    return f"{match[1][: mask.start()]} & {less:#x} {match[2] or ''}{match[3]}"


def _other_side(match: re.Match[str]) -> str | None:
    side = _SIDE.search(match[1])
    if side is None:
        return None
    other = f"{match[1][: side.start()]}{_SIDES[side[1]]}{match[1][side.end() :]}"
    return f"{other}{match[2] or ''}{match[3]}"


def _plus_one(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) + 1}"


def _minus_one(match: re.Match[str]) -> str | None:
    return f"{match[1]}{int(match[2]) - 1}" if int(match[2]) > 1 else None


def _other_bit(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2], 16) ^ 1:#x}"


def _other_class(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2], 16) ^ 1:04x}"


def _other_unit(match: re.Match[str]) -> str:
    return f"{match[1]}{_UNITS[match[2]]}"


def _opposite(match: re.Match[str]) -> str:
    return match[1] + ("missing" if match[2] == "exists" else "exists")


_REJECTS: Final = {
    "net-unreachable": "host-unreachable",
    "host-unreachable": "net-unreachable",
    "prot-unreachable": "host-unreachable",
    "net-prohibited": "host-prohibited",
    "host-prohibited": "net-prohibited",
    "no-route": "addr-unreachable",
    "admin-prohibited": "port-unreachable",
    "addr-unreachable": "no-route",
    "policy-fail": "reject-route",
    "reject-route": "policy-fail",
}


def _rejected(match: re.Match[str]) -> str | None:
    other = _REJECTS.get(match[2])
    return None if other is None else f"{match[1]}{other}"


_STATES: Final = ("invalid", "established", "related", "new", "untracked")
_STATE_LIST: Final = re.compile(r"(?<=\bct state )[a-z]+(?:,[a-z]+)+(?= )")


def _other_states(line: str) -> Sequence[str | None]:
    """Return the line with the other states of a connection, and with each state of the list gone.

    nft 1.0 does not invert a list with ``!=``: it compares all bits of the list at once with the one bit of a
    packet's state.
    """
    match = _STATE_LIST.search(line)
    if match is None:
        return []
    states = match[0].split(",")
    lists = [[state for state in _STATES if state not in states]]
    lists += [[state for state in states if state != lost] for lost in states]
    return [line[: match.start()] + ",".join(each) + line[match.end() :] for each in lists if each]


EVERY_MATCH: Final[Operators] = (
    ("lost-test", each_named(_MATCH + " ?", lambda m: "")),
    ("lost-test", each(_THERE + " ?", lambda m: "")),
    ("lost-test", each_named(r"(?:quota|limit) name \"[^\"]*\" ", lambda m: "")),
    ("inverted-test", each_named(_MATCH, _inverted)),
    ("inverted-test", each(_THERE, _opposite)),
    ("state", _other_states),
    ("number", each_named(_MATCH, _moved)),
    ("number", each_named(_MATCH, _end_moved)),
    ("element", each_named(_MATCH, _shorter)),
    ("mask", each_named(_MATCH, _less_masked)),
    ("side", each_named(_MATCH, _other_side)),
    ("side", each(r"(?<=[@.{] )(th) ([sd])(?=port)", lambda m: f"th {'d' if m[2] == 's' else 's'}")),
    ("side", each(r"(?<=\{ )(ip6? )([sd])(?=addr)", lambda m: m[1] + ("d" if m[2] == "s" else "s"))),
    ("rate", each(r"(rate (?:over )?)(\d+)(?=/)", _plus_one)),
    ("rate", each(r"(rate (?:over )?)(\d+)(?=/)", _minus_one)),
    ("rate", each(r"(rate (?:over )?\d+/)(second|minute|hour|day|week)", _other_unit)),
    ("burst", each(r"(burst )(\d+)", _plus_one)),
    ("burst", each(r"(burst )(\d+)", _minus_one)),
    ("inverted-test", each(r"limit rate over ", lambda m: "limit rate ")),
    ("inverted-test", each(r"limit rate (?!over)", lambda m: "limit rate over ")),
    ("inverted-test", each(r"^(\t+)until (?=\d)", lambda m: f"{m[1]}over ")),
    ("inverted-test", each(r"^(\t+)over (?=\d)", lambda m: f"{m[1]}until ")),
    ("quota", each(r"^(\t+(?:until|over) )(\d+)(?= bytes)", _plus_one)),
    ("quota", each(r"^(\t+(?:until|over) )(\d+)(?= bytes)", _minus_one)),
    ("count", each(r"(ct count (?:over )?)(\d+)", _plus_one)),
    ("count", each(r"(ct count (?:over )?)(\d+)", _minus_one)),
    ("inverted-test", each(r"ct count over ", lambda m: "ct count ")),
    ("inverted-test", each(r"ct count (?=\d)", lambda m: "ct count over ")),
    ("nth", each(r"(numgen inc mod )(\d+)", _plus_one)),
    ("set-change", each(r"\b(?:update|add)(?= @)", lambda m: "delete")),
    ("set-change", each(r"\bdelete(?= @)", lambda m: "update")),
    ("set-change", each(r"(?:update|add|delete) @\w\S* \{ [^}]* \} ?", lambda m: "")),
    ("value", each(r"((?:dscp|ecn) set )0x([0-9a-f]+)", _other_bit)),
    ("value", each(r"((?:ttl|hoplimit) set )(\d+)", _plus_one)),
    ("value", each(r"((?:mark|@nh,0,16) set )0x([0-9a-f]+)", _other_bit)),
    ("value", each(r"(tcp flags set )0x([0-9a-f]+)", _other_bit)),
    ("value", each(r"((?:zone|label) set )(\d+)", _plus_one)),
    ("value", each(r"((?:\^|\||&) )0x([0-9a-f]+)(?=$| comment)", _other_bit)),
    ("reject-kind", each(r"(reject with icmp(?:v6)? type )([a-z-]+)", _rejected)),
    ("verdict", each(r"reject with tcp reset", lambda m: "drop")),
    ("port", each(r"((?:redirect|masquerade|[ds]nat) to \S*?:)(\d+)(?![\w:])", _plus_one)),
    ("lost-nat", each(r"(?:redirect|masquerade) to \S+|\bredirect\b(?! to)", lambda m: "accept")),
    ("verdict", each(r"\bnotrack\b", lambda m: "accept")),
    ("port", each(r"(tproxy to \S*?:)(\d+)(?![\w:])", _plus_one)),
    ("option", each(r"(reset tcp option )maxseg", lambda m: f"{m[1]}window")),
    ("option", each_named(r'(dup to \S+) device "[^"]*"', lambda m: m[1])),
    ("option", each(r"(synproxy mss )(\d+)", _plus_one)),
    ("option", each(r"(synproxy .*wscale )(\d+)", _plus_one)),
    ("option", each(r"(synproxy .*?) (?:timestamp|sack-perm)", lambda m: m[1])),
    ("option", each(r"(synproxy .*timestamp) sack-perm", lambda m: m[1])),
    ("value", each(r"(meta priority set [0-9a-f]+:)([0-9a-f]+)", _other_class)),
    ("log", each_named(r'(?<=\blog )prefix "[^"]*" ', lambda m: "")),
    ("log", each(r"(?<= )((?:group|snaplen|queue-threshold) )(\d+)(?= |$)", _plus_one)),
    ("log", each(r"(?<= )level (?!emerg)\w+", lambda m: "level emerg")),
    ("log", each(r"(?<= )flags (?:tcp [a-z,]+|ip options|skuid|ether) ?(?=flags|comment|$)", lambda m: "")),
)
"""Kinds of faults, each with a function from a line to changed lines."""
