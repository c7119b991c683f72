"""The text that matches and targets print in a listing, parsed back into their options.

``iptables -L`` prints each extension by its ``print`` function, ``iptables-save`` by its ``save`` function.
Each form of ``print`` is a pattern here, with the options that ``save`` would print. Text that matches no
pattern is reported, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from translate.ir import Family, Field, Hidden, Unknown

__all__ = ["Printed", "PrintedError", "everywhere", "parse_printed"]

_Words = list[str]
_FLAGS: Final = ((1, "FIN"), (2, "SYN"), (4, "RST"), (8, "PSH"), (16, "ACK"), (32, "URG"))
_MARKS: Final = {"or": "--or-mark", "and": "--and-mark", "xor": "--xor-mark", "set": "--set-mark"}
_RECENT: Final = {"SET": "--set", "CHECK": "--rcheck", "UPDATE": "--update", "REMOVE": "--remove"}


class PrintedError(Exception):
    """Text that no known match or target prints, at ``offset`` in the tail."""

    def __init__(self, offset: int, text: str) -> None:
        self.offset = offset
        self.text = text
        super().__init__(text)


@dataclass(slots=True)
class Printed:
    """The tail of a row, after source and destination, as words of a rule.

    ``translated`` is the address and port after ``to:``, which may be a name or be masked. ``unknown`` has
    the tests of users and groups that are printed by name, and those of ``-m hashlimit``, whose table is not
    printed.
    """

    goto: bool = False
    matches: _Words = field(default_factory=list)
    options: _Words = field(default_factory=list)
    translated: str | None = None
    unknown: list[Unknown] = field(default_factory=list)


def _inverted(sign: str | None, words: _Words) -> _Words:
    return ["!", *words] if sign and sign.strip() else words


def _transport(match: re.Match[str]) -> _Words:
    words = ["-m", match[1]]
    for item in re.finditer(r" (dpts?:|spts?:|flags:|option=)(!?)(\S+)", match[2]):
        if item[1] == "option=":
            words += _inverted(item[2], ["--tcp-option", item[3]])
        elif item[1] == "flags:":
            mask, wanted = item[3].split("/")
            words += _inverted(item[2], ["--tcp-flags", _flags(mask), _flags(wanted)])
        else:
            words += _inverted(item[2], [f"--{item[1][0]}port", item[3]])
    return words


def _flags(text: str) -> str:
    if not text.startswith("0x"):
        return text
    bits = int(text, 16)
    return "ALL" if bits == 0x3F else ",".join(name for bit, name in _FLAGS if bits & bit) or "NONE"


def _addrtype(match: re.Match[str]) -> _Words:
    words = ["-m", "addrtype"]
    for item in re.finditer(r" (src|dst)-type (!?)(\S+)| limit-(in|out)", match[1]):
        if item[4]:
            words.append(f"--limit-iface-{item[4]}")
        else:
            words += _inverted(item[2], [f"--{item[1]}-type", item[3]])
    return words


def _recent(match: re.Match[str]) -> _Words:
    words = ["-m", "recent", *_inverted(match[1], [_RECENT[match[2]]])]
    options = {"seconds": "--seconds", "hit_count": "--hitcount", "name": "--name", "mask": "--mask"}
    for item in re.finditer(r" (seconds|hit_count|name|side|mask): (\S+)| (reap|TTL-Match)", match[3]):
        if item[3]:
            words.append("--reap" if item[3] == "reap" else "--rttl")
        elif item[1] == "side":
            words.append("--rsource" if item[2] == "source" else "--rdest")
        else:
            words += (options[item[1]], item[2])
    return words


def _nth(match: re.Match[str]) -> _Words:
    words = ["-m", "statistic", "--mode", "nth", *_inverted(match[1], ["--every", match[2]])]
    return [*words, "--packet", match[3] or "0"]


def _icmp(match: re.Match[str]) -> _Words:
    six = match[1] is not None
    value = match[3] + (f"/{match[4].replace('-', ':')}" if match[4] else "")
    option = "--icmpv6-type" if six else "--icmp-type"
    return ["-m", "icmp6" if six else "icmp", *_inverted(match[2], [option, value])]


def _connmark(match: re.Match[str]) -> _Words:
    """Read a CONNMARK; the mask after ``~`` is printed without inversion (``connmark_tg_print``)."""
    words = [f"--{match[1]}-mark"]
    if match[2]:
        words += [f"--{match[2]}", match[3]]
    if match[4]:
        words += [f"--{match[4]}", match[5]]
    return [*words, *_shift(match)]


_SHIFT: Final = r"(?: (?P<shift>left|right)-shift-mark (?P<bits>\d+))?"


def _shift(match: re.Match[str]) -> _Words:
    return [f"--{match['shift']}-shift-mark", match["bits"]] if match["shift"] else []


def _ct(match: re.Match[str]) -> _Words:
    return [word if n % 2 else f"--{word}" for n, word in enumerate(match[1].split())]


def _time(match: re.Match[str]) -> _Words:
    start, stop, weekdays, monthdays, first, first_time, last, last_time, utc, contiguous = match.groups()
    words = ["-m", "time"]
    words += ["--timestart", start, "--timestop", stop] if start else []
    words += ["--monthdays", re.sub("[a-z]", "", monthdays)] if monthdays else []
    words += ["--weekdays", weekdays] if weekdays else []
    words += ["--datestart", f"{first}T{first_time}"] if first else []
    words += ["--datestop", f"{last}T{last_time}"] if last else []
    words += [] if utc else ["--kerneltz"]
    return [*words, "--contiguous"] if contiguous else words


def _rpfilter(match: re.Match[str]) -> _Words:
    return ["-m", "rpfilter", *(f"--{name}" for name in match[1].split())]


def _physdev(match: re.Match[str]) -> _Words:
    return ["-m", "physdev", *match[1].split()]


def _socket(match: re.Match[str]) -> _Words:
    return ["-m", "socket", *match[1].split()]


_COMPARISONS: Final = {"==": "eq", "!=": "eq", "<": "lt", ">": "gt"}


def _ttl(match: re.Match[str]) -> _Words:
    name = match[1].lower()
    option = f"--{name}-{_COMPARISONS[match[2]]}"
    return ["-m", name, *_inverted("!" if match[2] == "!=" else None, [option, match[3]])]


def _security(match: re.Match[str]) -> _Words:
    name = "ipcomp" if match[1] == "comp" else match[1]
    # a range of every index is not printed; without the option, -m ipcomp requires 0
    words = ["-m", name, *_inverted(match[2], [f"--{name}spi", match[3] or "0:4294967295"])]
    return [*words, "--compres"] if match[4] else words


def _ecn(match: re.Match[str]) -> _Words:
    words = ["-m", "ecn"]
    for item in re.finditer(r" (!)?(?:ECT=(\d)|(ECE|CWR))", match[1]):
        option = [f"--ecn-tcp-{item[3].lower()}"] if item[3] else ["--ecn-ip-ect", item[2]]
        words += _inverted(item[1], option)
    return words


def _devgroup(match: re.Match[str]) -> _Words:
    words = ["-m", "devgroup"]
    for item in re.finditer(r"(! )?((?:src|dst)-group) (\S+)", match[1]):
        words += _inverted(item[1], [f"--{item[2]}", item[3]])
    return words


def _frag(match: re.Match[str]) -> _Words:
    words = ["-m", "frag"]
    for item in re.finditer(r"(?:(ids?|length):(!)?(\S+)|(reserved|first|more|last))", match[1]):
        if item[4]:
            words.append(f"--frag{item[4].removesuffix('erved')}")
        else:
            words += _inverted(item[2], ["--fraglen" if item[1] == "length" else "--fragid", item[3]])
    return words


_HEADERS: Final = (
    *("hop-by-hop", "ipv6-opts", "ipv6-route", "ipv6-frag"),
    *("ah", "esp", "ipv6-nonxt", "protocol"),
)
"""The headers of ``-m ipv6header``, by the bits that a numeric listing prints, from the highest."""


def _ipv6header(match: re.Match[str]) -> _Words:
    names = match[3]
    if match[2]:
        flags = int(match[2], 16)
        names = ",".join(name for bit, name in enumerate(_HEADERS) if flags & 0x80 >> bit)
    soft = ["--soft"] if match[4] else []
    return ["-m", "ipv6header", *_inverted(match[1], ["--header", names]), *soft]


def _rt(match: re.Match[str]) -> _Words:
    words = ["-m", "rt"]
    for item in re.finditer(r" (type|segsleft|length)s?:(!)?(\S+)", match[1]):
        option = {"type": "--rt-type", "segsleft": "--rt-segsleft"}.get(item[1], "--rt-len")
        words += _inverted(item[2], [option, item[3]])
    return words


def _change_of_ttl(match: re.Match[str]) -> _Words:
    return [f"--{match[1].lower()}-{match[2][:3]}", match[3]]


_LEVELS: Final = {"err": "error", "warn": "warning"}
"""Names of levels that LOG prints but does not read (``priority2name``), and the names that it reads."""

_LOG_FLAGS: Final = ("tcp-sequence", "tcp-options", "ip-options", "uid", "", "macdecode")


def _log(match: re.Match[str]) -> _Words:
    """Read LOG, whose details are a number with ``-n``, otherwise names (``LOG_print``)."""
    bits, names = int(match[1] or 0), match[3].split()
    details = [name for n, name in enumerate(_LOG_FLAGS) if name in names or (name and bits >> n & 1)]
    prefix = ["--log-prefix", match[4]] if match[4] else []
    level = _LEVELS.get(match[2], match[2])
    return ["--log-level", level, *prefix, *(f"--log-{name}" for name in details)]


def _iprange(match: re.Match[str]) -> _Words:
    """Read one side of an iprange match; two sides are printed like two matches, which mean the same."""
    side, _, rest = match[1].partition(" IP range ")
    option = "--src-range" if side == "source" else "--dst-range"
    return ["-m", "iprange", *_inverted("!" if rest.startswith("!") else None, [option, rest.lstrip("! ")])]


def _simple(extension: str, option: str) -> Callable[[re.Match[str]], _Words]:
    """Return a form whose groups are the negation and then the values of one option."""
    return lambda match: ["-m", extension, *_inverted(match[1], [option, *match.groups()[1:]])]


_OWNER: Final = re.compile(r"(! )?owner (UID|GID) match (\S+)(?= |$)")


def _owner(row: Printed, match: re.Match[str]) -> None:
    """Read a user or group; without ``-n`` it is a name that only the node knows (``owner_mt_print``)."""
    kind, value = match[2], match[3]
    if value[0].isdigit():
        row.matches += ["-m", "owner", *_inverted(match[1], [f"--{kind.lower()}-owner", value])]
        return
    field = Field.SOCKET_UID if kind == "UID" else Field.SOCKET_GID
    who = "user" if kind == "UID" else "group"
    row.unknown.append(Unknown(f'the {who} "{value}" is printed by name', Hidden.TESTS, (field,)))


_HASHLIMIT: Final = re.compile(
    r"limit: (?:up to|above) \S+ burst \S+(?: (?:mode \S+|htable-\w+ \d+|(?:src|dst)mask \d+))*(?= |$)"
)
_NO_TABLE: Final = Unknown("the listing hides the name of a table of -m hashlimit", Hidden.TESTS)

_QUOTA: Final = re.compile(r"quota: \d+ bytes(?= |$)")
_NO_SIGN: Final = Unknown("the listing hides whether -m quota is negated", Hidden.TESTS)

_COMMENT: Final = re.compile(r"/\* (.*?) \*/(?= |$)")

_MATCHES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], _Words]], ...]] = tuple(
    (re.compile(pattern + r"(?= |$)"), words)
    for pattern, words in (
        (
            r"(tcp|udp|sctp)((?: (?:dpts?|spts?):!?\S+| option=!?\d+| flags:!?\S+/\S+)*)",
            _transport,
        ),
        (r"(dccp)((?: (?:dpts?|spts?):!?\S+)*)", _transport),
        (r"ADDRTYPE match((?: (?:src|dst)-type !?\S+| limit-(?:in|out))+)", _addrtype),
        (r"mark match( !)? (\S+)", _simple("mark", "--mark")),
        (r"connmark match (! )? ?(\S+)", _simple("connmark", "--mark")),
        (r"((?:source|destination) IP range ! ?\S+|(?:source|destination) IP range \S+)", _iprange),
        (r"rpfilter((?: (?:loose|validmark|accept-local|invert))*)", _rpfilter),
        (
            r"PHYSDEV match((?:(?: !)? --physdev-is-(?:in|out|bridged)|(?: !)? --physdev-(?:in|out) \S+)+)",
            _physdev,
        ),
        (r"u32 (! )?\"([^\"]+)\"", _simple("u32", "--u32")),
        (r"nfacct-name  ?(\S+)", lambda f: ["-m", "nfacct", "--nfacct-name", f[1]]),
        (r"(! )?ctstate (\S+)", _simple("conntrack", "--ctstate")),
        (r"(! )?ctstatus (\S+)", _simple("conntrack", "--ctstatus")),
        (r"(! )?state (\S+)", _simple("state", "--state")),
        (r"(! )?match-set (\S+) (\S+)", _simple("set", "--match-set")),
        (r"multiport dports  ?(! ?)?(\S+)", _simple("multiport", "--dports")),
        (r"multiport sports  ?(! ?)?(\S+)", _simple("multiport", "--sports")),
        (r"multiport ports  ?(! ?)?(\S+)", _simple("multiport", "--ports")),
        (
            r"statistic mode random( !)? probability (\S+)",
            lambda f: ["-m", "statistic", "--mode", "random", *_inverted(f[1], ["--probability", f[2]])],
        ),
        (r"statistic mode nth( !)? every (\d+)(?: packet (\d+))?", _nth),
        (
            r"limit: avg (\S+) burst (\d+)",
            lambda f: ["-m", "limit", "--limit", f[1], "--limit-burst", f[2]],
        ),
        (r"tcpmss match (!)?(\d+(?::\d+)?)", _simple("tcpmss", "--mss")),
        (r"ECN match((?: !?(?:ECE|CWR|ECT=[0-3]))+)", _ecn),
        (r"(esp|ah|comp)(?: +spis?:(!)?(\d+(?::\d+)?))?( reserved)?", _security),
        (
            r"(! )?connbytes (\d+(?::\d+)?) connbytes mode (\w+) connbytes direction (\w+)",
            lambda f: [
                *("-m", "connbytes", *_inverted(f[1], ["--connbytes", f[2]])),
                *("--connbytes-mode", f[3], "--connbytes-dir", f[4]),
            ],
        ),
        (
            r"#conn (src|dst)/(\d+) (<=|>) (\d+)",
            lambda f: [
                *("-m", "connlimit", "--connlimit-upto" if f[3] == "<=" else "--connlimit-above", f[4]),
                *("--connlimit-mask", f[2], f"--connlimit-{f[1][0]}addr"),
            ],
        ),
        (
            r"TIME(?: from (\S+) to (\S+))?(?: on ([A-Z][a-z]{2}(?:,[A-Z][a-z]{2})*))?"
            r"(?: on (\d+(?:st|nd|rd|th)(?:,\d+(?:st|nd|rd|th))*))?(?: starting from (\S+) (\S+))?"
            r"(?: until date (\S+) (\S+))?( UTC)?( contiguous)?",
            _time,
        ),
        (r'helper match (! )?"([^" ]*)"', _simple("helper", "--helper")),
        (
            r" ?(hbh|dst)(?: length:(!)?(\d+))?(?: opts (\S+))?",
            lambda f: [
                *("-m", f[1], *(_inverted(f[2], [f"--{f[1]}-len", f[3]]) if f[3] else ())),
                *((f"--{f[1]}-opts", f[4]) if f[4] else ()),
            ],
        ),
        (r"frag ?((?: ?(?:ids?:!?\S+|length:!?\d+|reserved|first|more|last))*)", _frag),
        (r"ipv6header flags:(!)?(?:0x([0-9A-F]{2})|([a-z0-9,-]+))( soft)?", _ipv6header),
        (r"eui64", lambda _: ["-m", "eui64"]),
        (r"cpu (! )?(\d+)", _simple("cpu", "--cpu")),
        (r"length (!)?(\d+(?::\d+)?)", _simple("length", "--length")),
        (r"((?:! )?(?:src|dst)-group \S+(?: (?:! )?dst-group \S+)?)", _devgroup),
        (r"(TTL|HL) match (?:TTL|HL) (==|!=|<|>) (\d+)", _ttl),
        (r"rt((?: (?:type|segslefts?|length):\S+)*)", _rt),
        (r"DSCP match (!)?(0x[0-9a-f]+)", _simple("dscp", "--dscp")),
        (r"tos match ?(!)? ?(\S+)", _simple("tos", "--tos")),
        (r"PKTTYPE (!)?=+ (\S+)", _simple("pkttype", "--pkt-type")),
        (r"MAC ?(! ?)?([0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})", _simple("mac", "--mac-source")),
        (r"socket((?: --(?:transparent|nowildcard|restore-skmark))*)", _socket),
        (r"cgroup (! )?(\d+)", _simple("cgroup", "--cgroup")),
        (
            r"policy match dir (in|out) pol (none|ipsec)",
            lambda f: ["-m", "policy", "--dir", f[1], "--pol", f[2]],
        ),
        (r"(! )?owner socket exists", _simple("owner", "--socket-exists")),
        (
            r"(! )?recent: (SET|CHECK|UPDATE|REMOVE)"
            r"((?: (?:seconds|hit_count|name|side|mask): \S+| reap| TTL-Match)*)",
            _recent,
        ),
        (
            r"(! )?(ct(?:proto|(?:orig|repl)(?:src|dst)(?:port)?)) (\S+)",
            lambda f: ["-m", "conntrack", *_inverted(f[1], [f"--{f[2]}", f[3]])],
        ),
        (r"ctdir (ORIGINAL|REPLY)", lambda f: ["-m", "conntrack", "--ctdir", f[1]]),
        (r"(ipv6-)?icmp ?(! ?)?type (\d+)(?: codes? (\d+(?:-\d+)?))?", _icmp),
        (r"(ipv6-)?icmptype (!)?(\d+)(?: code (\d+))?", _icmp),
        (r"(ipv6-)?icmp (!)?([A-Za-z][-A-Za-z]*)()", _icmp),
    )
)

_OPTIONS: Final[tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], _Words]], ...]] = tuple(
    (re.compile(pattern + r"(?= |$)"), target, words)
    for pattern, target, words in (
        (r"MARK (or|and|xor|set) (0x[0-9a-f]+)", "MARK", lambda f: [_MARKS[f[1]], f[2]]),
        (
            r"CONNMARK (or|and|xor|set) (0x[0-9a-f]+)" + _SHIFT,
            "CONNMARK",
            lambda f: [_MARKS[f[1]], f[2], *_shift(f)],
        ),
        (
            r"CONNMARK xset (0x[0-9a-f]+/0x[0-9a-f]+)" + _SHIFT,
            "CONNMARK",
            lambda f: ["--set-xmark", f[1], *_shift(f)],
        ),
        (
            r"CONNMARK (save|restore)"
            r"(?: (mask|nfmask|ctmask) (0x[0-9a-f]+)(?: (ctmask|nfmask) ~(0x[0-9a-f]+))?)?" + _SHIFT,
            "CONNMARK",
            _connmark,
        ),
        (
            r"LOG (?:flags (\d+) )?level (\w+)"
            r'((?: (?:tcp-sequence|tcp-options|ip-options|uid|macdecode))*)(?: prefix "(.*?)")?',
            "LOG",
            _log,
        ),
        (r'nflog-prefix "?(.*?)"?(?= nflog-|$)', "NFLOG", lambda f: ["--nflog-prefix", f[1]]),
        (r"CT((?: (?:helper|timeout|ctevents|expevents|zone\S*) \S+)+)", "CT", _ct),
        (
            r"TPROXY redirect (\S+):(\d+) mark (0x[0-9a-f]+/0x[0-9a-f]+)",
            "TPROXY",
            lambda f: ["--on-port", f[2], "--on-ip", f[1], "--tproxy-mark", f[3]],
        ),
        (
            r"NFQUEUE (num|balance) (\d+(?::\d+)?)( bypass)?( cpu-fanout)?",
            "NFQUEUE",
            lambda f: [
                *(f"--queue-{f[1]}", f[2]),
                *(["--queue-bypass"] if f[3] else []),
                *(["--queue-cpu-fanout"] if f[4] else []),
            ],
        ),
        (
            r"ECN(?: (TCP remove))?(?: ECE=(\d))?(?: CWR=(\d))?(?: ECT codepoint=(\d))?",
            "ECN",
            lambda f: [
                *(["--ecn-tcp-remove"] if f[1] else ()),
                *(["--ecn-tcp-ece", f[2]] if f[2] else ()),
                *(["--ecn-tcp-cwr", f[3]] if f[3] else ()),
                *(["--ecn-ip-ect", f[4]] if f[4] else ()),
            ],
        ),
        (r"DSCP set (0x[0-9a-f]+)", "DSCP", lambda f: ["--set-dscp", f[1]]),
        (r"TOS (set|and|or|xor) ?(\S+)", "TOS", lambda f: [f"--{f[1]}-tos", f[2]]),
        (r"(TTL|HL) (set to|increment by|decrement by) (\d+)", "TTL", _change_of_ttl),
        (r"(TTL|HL) (set to|increment by|decrement by) (\d+)", "HL", _change_of_ttl),
        (r"TCPOPTSTRIP options (\S+)", "TCPOPTSTRIP", lambda f: ["--strip-options", f[1]]),
        (r"TCPOPTSTRIP options", "TCPOPTSTRIP", lambda _: []),
        (r"TCPMSS set (\d+)", "TCPMSS", lambda f: ["--set-mss", f[1]]),
        (r"TCPMSS clamp to PMTU", "TCPMSS", lambda _: ["--clamp-mss-to-pmtu"]),
        (r"AUDIT (accept|drop|reject)", "AUDIT", lambda f: ["--type", f[1]]),
        (r"CHECKSUM fill", "CHECKSUM", lambda f: ["--checksum-fill"]),
        (r"CLASSIFY set ([0-9a-f]+:[0-9a-f]+)", "CLASSIFY", lambda f: ["--set-class", f[1]]),
        (r"nflog-(group|size|range|threshold) (\d+)", "NFLOG", lambda f: [f"--nflog-{f[1]}", f[2]]),
        (r"MARK xset (0x[0-9a-f]+/0x[0-9a-f]+)", "MARK", lambda f: ["--set-xmark", f[1]]),
        (r"reject-with (\S+)", "REJECT", lambda f: ["--reject-with", f[1]]),
        (r"to:(\S+)", "NETMAP", lambda f: ["--to", f[1]]),
        (r"masq ports: (\S+)", "MASQUERADE", lambda f: ["--to-ports", f[1]]),
        (r"redir ports (\S+)", "REDIRECT", lambda f: ["--to-ports", f[1]]),
        (r"random-fully", "", lambda _: ["--random-fully"]),
        (r"random", "", lambda _: ["--random"]),
        (r"persistent", "", lambda _: ["--persistent"]),
        (r"(?:CT notrack|NOTRACK)", "CT", lambda _: ["--notrack"]),
    )
)
_CONNECTION_ADDRESSES: Final = frozenset(
    f"--ct{where}{side}" for where in ("orig", "repl") for side in ("src", "dst")
)
_TO: Final = re.compile(r"to:(\S+)(?= |$)")


def everywhere(family: Family) -> str:
    """Return the address that listings call ``anywhere``."""
    return "0.0.0.0/0" if family is Family.IP else "::/0"


def parse_printed(text: str, target: str | None, family: Family = Family.IP) -> Printed:
    """Return the words for the tail of a row; raises PrintedError.

    ``target`` is the row's first column: options of targets are only read for this target.
    """
    row = Printed()
    at = 0
    while at < len(text):
        if text[at] == " ":
            at += 1
        elif text.startswith("[goto]", at):
            row.goto = True
            at += len("[goto]")
        else:
            at = _part(row, text, at, target)
    row.matches = [
        everywhere(family) if word == "anywhere" and option in _CONNECTION_ADDRESSES else word
        for option, word in pairwise(["", *row.matches])
    ]
    return row


def _part(row: Printed, text: str, at: int, target: str | None) -> int:
    match = _COMMENT.match(text, at)
    if match is not None:
        row.matches += ("-m", "comment", "--comment", match[1])
        return match.end()
    if target in ("DNAT", "SNAT") and row.translated is None:
        match = _TO.match(text, at)
        if match is not None:
            row.translated = match[1]
            return match.end()
    match = _OWNER.match(text, at)
    if match is not None:
        _owner(row, match)
        return match.end()
    for pattern, hidden in ((_HASHLIMIT, _NO_TABLE), (_QUOTA, _NO_SIGN)):
        match = pattern.match(text, at)
        if match is not None:
            row.unknown.append(hidden)
            return match.end()
    for pattern, words in _MATCHES:
        match = pattern.match(text, at)
        if match is not None:
            row.matches += words(match)
            return match.end()
    for pattern, owner, words in _OPTIONS:
        match = pattern.match(text, at)
        if match is not None and target is not None and owner in ("", target):
            row.options += words(match)
            return match.end()
    raise PrintedError(at, text[at:].split(" ", 1)[0])
