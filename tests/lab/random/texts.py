"""Random texts of one rule for ``iptables-restore``, with the spellings and mistakes of people.

:mod:`tests.lab.random.rules` combines few spellings in many ways. These texts have few combinations and
every spelling: numbers in other bases, names, empty ends of ranges. Options are abbreviated, repeated,
negated in either place, or stand before the protocol that they need. iptables accepts most of the rules and
refuses the others. The same seed gives the same text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tests.lab.random.kinds import KINDS, MANDATORY, USUAL
from tests.lab.random.values import pools
from translate.ir import Family, TableName
from translate.read.extensions import MATCHES, TARGETS

__all__ = ["random_text"]

_RICH: Final = ("conntrack", "recent", "statistic", "multiport", "addrtype")
"""Matches with many options, which are drawn more often."""
_COMMON_MATCHES: Final = {
    Family.IP: ("tcp", "udp", "sctp", "icmp", "multiport", "statistic"),
    Family.IP6: ("tcp", "udp", "sctp", "icmp6", "multiport", "statistic"),
}
_COMMON_TARGETS: Final = ("DNAT", "SNAT", "REDIRECT", "MASQUERADE", "LOG", "NFLOG")
"""The targets of most rules. Texts with only common extensions have one odd value, so more are accepted."""

_PROTO_OF: Final = {
    "tcp": "tcp",
    "tcpmss": "tcp",
    "ecn": "tcp",
    "ah": "ah",
    "esp": "esp",
    "ipcomp": "108",
    "udp": "udp",
    "sctp": "sctp",
    "dccp": "dccp",
    "icmp": "icmp",
    "icmp6": "ipv6-icmp",
}
_WITH_PORTS: Final = frozenset({"SYNPROXY", "TPROXY", "multiport", "DNAT", "SNAT", "REDIRECT", "MASQUERADE"})
_PLACES: Final = {
    TableName.RAW: ("PREROUTING", "OUTPUT"),
    TableName.MANGLE: ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    TableName.NAT: ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    TableName.FILTER: ("INPUT", "FORWARD", "OUTPUT"),
    TableName.SECURITY: ("INPUT", "FORWARD", "OUTPUT"),
}
_HOME: Final = {
    "REJECT": (TableName.FILTER, ("INPUT", "FORWARD", "OUTPUT")),
    "NOTRACK": (TableName.RAW, ("PREROUTING", "OUTPUT")),
    "TPROXY": (TableName.MANGLE, ("PREROUTING",)),
    "SNPT": (TableName.MANGLE, ("INPUT", "POSTROUTING")),
    "DNPT": (TableName.MANGLE, ("PREROUTING", "OUTPUT")),
    "SYNPROXY": (TableName.FILTER, ("INPUT", "FORWARD")),
    **dict.fromkeys(("SECMARK", "CONNSECMARK"), (TableName.SECURITY, _PLACES[TableName.SECURITY])),
    "TCPMSS": (TableName.MANGLE, ("FORWARD", "OUTPUT", "POSTROUTING")),
    "TRACE": (TableName.RAW, ("PREROUTING", "OUTPUT")),
    "CHECKSUM": (TableName.MANGLE, _PLACES[TableName.MANGLE]),
    "CLASSIFY": (TableName.MANGLE, ("FORWARD", "OUTPUT", "POSTROUTING")),
    "CT": (TableName.RAW, ("PREROUTING", "OUTPUT")),
    "DNAT": (TableName.NAT, ("PREROUTING", "OUTPUT")),
    "REDIRECT": (TableName.NAT, ("PREROUTING", "OUTPUT")),
    "NETMAP": (TableName.NAT, _PLACES[TableName.NAT]),
    "SNAT": (TableName.NAT, ("POSTROUTING", "INPUT")),
    "MASQUERADE": (TableName.NAT, ("POSTROUTING",)),
    "rpfilter": (TableName.RAW, ("PREROUTING",)),
    **dict.fromkeys(
        ("DSCP", "ECN", "HL", "TOS", "TTL"),
        (TableName.MANGLE, ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")),
    ),
}


def random_text(seed: int, family: Family = Family.IP) -> str:
    """Return a text with one rule, valid or nearly valid, on the last line but one."""
    common = random.Random(f"common {seed}")
    if common.random() < 0.2:
        text = _Text(common, family, _COMMON_MATCHES[family], _COMMON_TARGETS, odd_values=1).text()
    else:
        text = _Text(random.Random(seed), family, (*MATCHES, *_RICH, *_RICH), tuple(TARGETS)).text()
    return _framed(text, random.Random(f"frame {seed}"))


def _framed(text: str, draw: random.Random) -> str:
    """Return a text in which, now and then, other lines about its table and chains precede the rule.

    A table or a chain is declared twice, or chains call each other in a loop, which a hook may reach.
    """
    table, *lines = text.split("\n")
    if draw.random() < 0.85:
        return text
    chains = _PLACES[TableName(table[1:])]
    chain = draw.choice(chains)
    loop = [":one - [0:0]", ":two - [0:0]", "-A one -j two", "-A two -g one"]
    way = [f"-A {draw.choice((*chains, 'user'))} -j {draw.choice(('one', 'two'))}"]
    frames = (
        [":user - [0:0]", "-A user -j ACCEPT", "COMMIT", table],
        [f":{chain} ACCEPT [0:0]", f":{chain} ACCEPT [1:2]"],
        [":user - [0:0]"],
        loop,
    )
    more = draw.choice(frames)
    behind = way if more is loop and draw.random() < 0.5 else []
    return "\n".join((table, *more, lines[0], *behind, *lines[1:]))


class _Text:
    """A text. ``odd_values`` is the number of unusual values in it; None: a random share of unusual words."""

    def __init__(
        self,
        draw: random.Random,
        family: Family,
        matches: Sequence[str],
        targets: Sequence[str],
        odd_values: int | None = None,
    ) -> None:
        self._draw = draw
        self._family = family
        self._matches = matches
        self._targets = targets
        self._pools = pools(family)
        self._odd = draw.choice((0.0, 0.0, 0.3, 0.6)) if odd_values is None else 0.0
        self._odd_values = odd_values

    def text(self) -> str:
        draw = self._draw
        target = draw.choice(("", "ACCEPT", "DROP", "RETURN", "user", *self._targets))
        matches = [draw.choice(self._matches) for _ in range(draw.choice((0, 0, 1, 1, 1, 2)))]
        table, chains = _HOME.get(target) or next(
            (_HOME[name] for name in matches if name in _HOME), (draw.choice(tuple(_PLACES)), None)
        )
        chain = draw.choice(chains or _PLACES[table])
        if draw.random() < 0.1:
            table = draw.choice(tuple(_PLACES))
        parts = [self._base(matches, target)] if draw.random() < 0.9 else []
        parts += [["-m", name, *self._options(name, MATCHES[name].options)] for name in matches]
        if draw.random() < 0.15:
            draw.shuffle(parts)
        if target:
            known = TARGETS.get(target)
            flag = draw.choice(("-j", "-j", "-j", "--jump", "-g" if target == "user" else "-j"))
            odd = self._odd / 5 if self._odd_values is None else 0.1
            head = [f"--jump={target}"] if draw.random() < odd else [flag, target]
            parts.append([*head, *(self._options(target, known.options) if known else ())])
        words = [word for part in parts for word in part]
        if draw.random() < self._odd:
            words = self._spoilt(words)
        counters = draw.choice(("", "", "", "[1:2] "))
        command = draw.choice(("-A", "-A", "-A", "--append", "-I"))
        rule = " ".join((f"{counters}{command} {chain}", *words))
        return f"*{table}\n:user - [0:0]\n{rule}\nCOMMIT\n"

    # -- parts ------------------------------------------------------------------------------------

    def _value(self, kind: str) -> str:
        usual, odd = self._pools[kind]
        if self._odd_values and self._draw.random() < 0.4:
            self._odd_values -= 1
            return self._draw.choice(odd)
        return self._draw.choice(odd if self._draw.random() < self._odd / 2 else usual)

    def _base(self, matches: Sequence[str], target: str) -> list[str]:
        draw = self._draw
        words: list[str] = []
        proto = next((_PROTO_OF[name] for name in matches if name in _PROTO_OF), None)
        if proto is None and (_WITH_PORTS & {*matches, target} or draw.random() < 0.3):
            proto = draw.choice(("tcp", "udp", "tcp", "sctp", "dccp", "udplite", "icmp"))
        if proto is not None and draw.random() < 0.95:
            proto = self._value("protocol") if draw.random() < self._odd / 3 else proto
            words += [*self._not(0.05), draw.choice(("-p", "-p", "--protocol", "--proto")), proto]
        for name, kind, chance in (
            ("-s", "address", 0.2),
            ("-d", "address", 0.2),
            ("-i", "interface", 0.1),
            ("-o", "interface", 0.1),
        ):
            if draw.random() < chance:
                words += [*self._not(0.2), name, self._value(kind)]
        for extra, chance in (("-f", 0.05), ("-4", 0.03), ("-6", 0.03), ("-c 1,2", 0.03), ("-c 1 2", 0.03)):
            if draw.random() < chance * (1 + self._odd):
                words += extra.split(" ")
        return words

    def _not(self, chance: float) -> list[str]:
        return ["!"] if self._draw.random() < chance else []

    def _options(self, name: str, specs: Sequence[object]) -> list[str]:
        """Return options of an extension: those that it needs, and some others."""
        draw = self._draw
        from translate.read.extensions.declaration import OptionSpec

        known = {spec.name: spec for spec in specs if isinstance(spec, OptionSpec) and spec.refused is None}
        chosen = list(MANDATORY.get(name, ()))
        if name in USUAL and draw.random() < 0.9:
            chosen += draw.choice(USUAL[name]).split(" ")
        others = [word for word in known if word not in chosen]
        if name not in USUAL or draw.random() < 0.4:
            chosen += draw.sample(others, min(len(others), draw.choice((0, 1, 1, 2, 3))))
        words: list[str] = []
        for option in chosen:
            spec = known[option]
            spelled = draw.choice((option, option, option, *spec.aliases))
            if draw.random() < 0.05:
                cut = spelled[: draw.randint(3, len(spelled))]
                spelled = spelled if "--help".startswith(cut) else cut  # which iptables prints, with status 0
            kinds = KINDS.get(name, {}).get(option, "number").split(" ") if spec.arguments else []
            values = [self._value(kind) for kind in kinds]
            if name == "statistic" and option == "--mode":
                values = ["random" if "--probability" in chosen else "nth"]
            negated = self._not(0.25 if spec.invertible else 0.02 * self._odd)
            if len(values) == 1 and values[0] and draw.random() < 0.05:
                words += [*negated, f"{spelled}={values[0]}"]
            else:
                shown = [value or '""' for value in values]
                words += [*negated, spelled, *shown]
        return words

    def _spoilt(self, words: list[str]) -> list[str]:
        draw = self._draw
        words = list(words)
        if not words:
            return words
        at = draw.randrange(len(words))
        match draw.randrange(7):
            case 0:
                del words[at]
            case 1:
                words.insert(draw.randrange(len(words)), words[at])
            case 2:
                words.insert(at, "!")
            case 3:
                words += words[at : at + 2]
            case 4 if len(words) > 1:
                other = draw.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 5:
                words.insert(
                    at,
                    draw.choice(("-m", "-j", "--", "-4", "-6", "-c", "extra", "--syn", "-p tcp", "-t nat")),
                )
            case _:
                pool = self._pools[draw.choice(tuple(self._pools))]
                words[at] = draw.choice(draw.choice(pool)) or '""'
        return words
