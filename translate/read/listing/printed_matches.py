"""The text of each match in a listing, as a pattern with the options of ``iptables-save``.

To read another match, add its pattern to :data:`MATCHES`. A pattern ends at a space or at the end of a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from translate.read.extensions.chunks import CHUNK_TYPES
from translate.read.extensions.transport import DCCP_NAMES

__all__ = ["MATCHES", "Words", "inverted"]

Words = list[str]
_FLAGS: Final = ((1, "FIN"), (2, "SYN"), (4, "RST"), (8, "PSH"), (16, "ACK"), (32, "URG"))
_RECENT: Final = {"SET": "--set", "CHECK": "--rcheck", "UPDATE": "--update", "REMOVE": "--remove"}
_COMPARISONS: Final = {"==": "eq", "!=": "eq", "<": "lt", ">": "gt"}
_HEADERS: Final = (
    *("hop-by-hop", "ipv6-opts", "ipv6-route", "ipv6-frag"),
    *("ah", "esp", "ipv6-nonxt", "protocol"),
)
"""The headers of ``-m ipv6header``, by the bits that a numeric listing prints, from the highest."""


def inverted(sign: str | None, words: Words) -> Words:
    """Return the words of an option, with ``!`` before them if ``sign`` is not blank."""
    return ["!", *words] if sign and sign.strip() else words


def _transport(match: re.Match[str]) -> Words:
    words = ["-m", match[1]]
    for item in re.finditer(r" (dpts?:|spts?:|flags:|option=)(!?)(\S+)", match[2]):
        if item[1] == "option=":
            words += inverted(item[2], ["--tcp-option", item[3]])
        elif item[1] == "flags:":
            mask, wanted = item[3].split("/")
            words += inverted(item[2], ["--tcp-flags", _flags(mask), _flags(wanted)])
        else:
            words += inverted(item[2], [f"--{item[1][0]}port", item[3]])
    if chunks := re.search(r" (! )?(any|all|only) (\S+)$", match[2]):
        types = ",".join(map(_chunk, chunks[3].split(",")))
        words += inverted(chunks[1], ["--chunk-types", chunks[2], types])
    return words


_DCCP_TYPE: Final = rf"(?:\d+|{'|'.join(DCCP_NAMES)}|INVALID)"


def _dccp(match: re.Match[str]) -> Words:
    """Read DCCP, whose types are numbers with ``-n``; those from 10 are printed for INVALID."""
    words, option = _transport(match), match[5]
    last = inverted("!" if match[4] else "", ["--dccp-option", option]) if option else []
    if not match[3]:
        return [*words, *last]
    sign, _, types = match[3].strip().rpartition(" ")
    names = {str(n): name for n, name in enumerate(DCCP_NAMES)}
    chosen = dict.fromkeys(names.get(t, "INVALID" if t.isdigit() else t) for t in types.split(","))
    return [*words, *inverted(sign, ["--dccp-types", ",".join(chosen)]), *last]


def _chunk(text: str) -> str:
    """Return the name of a type that is printed as a number, with the flags after it."""
    number, colon, flags = text.partition(":")
    names = {f"0x{kind:04X}": name for name, kind in CHUNK_TYPES.items()}
    return names.get(number, number) + colon + flags


def _flags(text: str) -> str:
    if not text.startswith("0x"):
        return text
    bits = int(text, 16)
    return "ALL" if bits == 0x3F else ",".join(name for bit, name in _FLAGS if bits & bit) or "NONE"


def _addrtype(match: re.Match[str]) -> Words:
    words = ["-m", "addrtype"]
    for item in re.finditer(r" (src|dst)-type (!?)(\S+)| limit-(in|out)", match[1]):
        if item[4]:
            words.append(f"--limit-iface-{item[4]}")
        else:
            words += inverted(item[2], [f"--{item[1]}-type", item[3]])
    return words


def _recent(match: re.Match[str]) -> Words:
    words = ["-m", "recent", *inverted(match[1], [_RECENT[match[2]]])]
    options = {"seconds": "--seconds", "hit_count": "--hitcount", "name": "--name", "mask": "--mask"}
    for item in re.finditer(r" (seconds|hit_count|name|side|mask): (\S+)| (reap|TTL-Match)", match[3]):
        if item[3]:
            words.append("--reap" if item[3] == "reap" else "--rttl")
        elif item[1] == "side":
            words.append("--rsource" if item[2] == "source" else "--rdest")
        else:
            words += (options[item[1]], item[2])
    return words


def _nth(match: re.Match[str]) -> Words:
    words = ["-m", "statistic", "--mode", "nth", *inverted(match[1], ["--every", match[2]])]
    return [*words, "--packet", match[3] or "0"]


def _icmp(match: re.Match[str]) -> Words:
    six = match[1] is not None
    value = match[3] + (f"/{match[4].replace('-', ':')}" if match[4] else "")
    option = "--icmpv6-type" if six else "--icmp-type"
    return ["-m", "icmp6" if six else "icmp", *inverted(match[2], [option, value])]


def _time(match: re.Match[str]) -> Words:
    start, stop, weekdays, monthdays, first, first_time, last, last_time, utc, contiguous = match.groups()
    words = ["-m", "time"]
    words += ["--timestart", start, "--timestop", stop] if start else []
    words += ["--monthdays", re.sub("[a-z]", "", monthdays)] if monthdays else []
    words += ["--weekdays", weekdays] if weekdays else []
    words += ["--datestart", f"{first}T{first_time}"] if first else []
    words += ["--datestop", f"{last}T{last_time}"] if last else []
    words += [] if utc else ["--kerneltz"]
    return [*words, "--contiguous"] if contiguous else words


def _rpfilter(match: re.Match[str]) -> Words:
    return ["-m", "rpfilter", *(f"--{name}" for name in match[1].split())]


def _physdev(match: re.Match[str]) -> Words:
    return ["-m", "physdev", *match[1].split()]


def _policy(match: re.Match[str]) -> Words:
    words = ["-m", "policy", "--dir", match[1], "--pol", match[2], *(["--strict"] if match[3] else [])]
    names = iter(match[4].split())
    for name in names:
        if name.startswith("["):
            words += ["--next"] if name != "[0]" else []
        elif name == "!":
            words.append(name)
        else:
            words += [f"--{name}", next(names)]
    return words


def _socket(match: re.Match[str]) -> Words:
    return ["-m", "socket", *match[1].split()]


def _ttl(match: re.Match[str]) -> Words:
    name = match[1].lower()
    option = f"--{name}-{_COMPARISONS[match[2]]}"
    return ["-m", name, *inverted("!" if match[2] == "!=" else None, [option, match[3]])]


def _security(match: re.Match[str]) -> Words:
    name = "ipcomp" if match[1] == "comp" else match[1]
    # a range of every index is not printed; without the option, -m ipcomp requires 0
    words = ["-m", name, *inverted(match[2], [f"--{name}spi", match[3] or "0:4294967295"])]
    if match[5]:
        words += inverted(match[4], ["--ahlen", match[5]])
    return [*words, "--ahres" if name == "ah" else "--compres"] if match[6] else words


def _ecn(match: re.Match[str]) -> Words:
    words = ["-m", "ecn"]
    for item in re.finditer(r" (!)?(?:ECT=(\d)|(ECE|CWR))", match[1]):
        option = [f"--ecn-tcp-{item[3].lower()}"] if item[3] else ["--ecn-ip-ect", item[2]]
        words += inverted(item[1], option)
    return words


def _devgroup(match: re.Match[str]) -> Words:
    words = ["-m", "devgroup"]
    for item in re.finditer(r"(! )?((?:src|dst)-group) (\S+)", match[1]):
        words += inverted(item[1], [f"--{item[2]}", item[3]])
    return words


def _frag(match: re.Match[str]) -> Words:
    words = ["-m", "frag"]
    for item in re.finditer(r"(?:(ids?|length):(!)?(\S+)|(reserved|first|more|last))", match[1]):
        if item[4]:
            words.append(f"--frag{item[4].removesuffix('erved')}")
        else:
            words += inverted(item[2], ["--fraglen" if item[1] == "length" else "--fragid", item[3]])
    return words


def _ipv6header(match: re.Match[str]) -> Words:
    names = match[3]
    if match[2]:
        flags = int(match[2], 16)
        names = ",".join(name for bit, name in enumerate(_HEADERS) if flags & 0x80 >> bit)
    soft = ["--soft"] if match[4] else []
    return ["-m", "ipv6header", *inverted(match[1], ["--header", names]), *soft]


def _rt(match: re.Match[str]) -> Words:
    words = ["-m", "rt"]
    for item in re.finditer(r" (type|segsleft|length)s?:(!)?(\S+)", match[1]):
        option = {"type": "--rt-type", "segsleft": "--rt-segsleft"}.get(item[1], "--rt-len")
        words += inverted(item[2], [option, item[3]])
    if match[2]:
        words.append("--rt-0-res")
    if match[3]:
        words += ["--rt-0-addrs", match[3]]
    if match[4]:
        words.append("--rt-0-not-strict")
    return words


def _mh(match: re.Match[str]) -> Words:
    return ["-m", "mh", *(inverted(match[1], ["--mh-type", match[2]]) if match[2] else ())]


def _srh(match: re.Match[str]) -> Words:
    words = ["-m", "srh"]
    for item in re.finditer(r" (?:([a-z-]+):(!)?(\d+)|([pnl]sid) (!)? ?(\S+))", match[1]):
        option = f"--srh-{item[1] or item[4]}"
        words += inverted(item[2] or item[5], [option, item[3] or item[6]])
    return words


def _string(match: re.Match[str]) -> Words:
    """Read a text, which is printed in hexadecimal form if it has bytes that cannot be printed."""
    text = match[2]
    coded = re.fullmatch(r"\|(?:[0-9a-f]{2})+\|", text) is not None
    plain = text if coded else re.sub(r"\\(.)", r"\1", text)
    words = ["-m", "string", *inverted(match[1], ["--hex-string" if coded else "--string", plain])]
    words += ["--algo", match[3]]
    for option, value in (("--from", match[4]), ("--to", match[5])):
        words += [option, value] if value else []
    return [*words, *(["--icase"] if match[6] else [])]


def _iprange(match: re.Match[str]) -> Words:
    """Read one side of an iprange match; two sides are printed like two matches, which mean the same."""
    side, _, rest = match[1].partition(" IP range ")
    option = "--src-range" if side == "source" else "--dst-range"
    return ["-m", "iprange", *inverted("!" if rest.startswith("!") else None, [option, rest.lstrip("! ")])]


def _simple(extension: str, option: str) -> Callable[[re.Match[str]], Words]:
    """Return a form whose groups are the negation and then the values of one option."""
    return lambda match: ["-m", extension, *inverted(match[1], [option, *match.groups()[1:]])]


MATCHES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Words]], ...]] = tuple(
    (re.compile(pattern + r"(?= |$)"), words)
    for pattern, words in (
        (
            r"(tcp|udp|sctp)((?: (?:dpts?|spts?):!?\S+| option=!?\d+| flags:!?\S+/\S+)*"
            r"(?: (?:! )?(?:any|all|only) \S+)?)",
            _transport,
        ),
        (
            rf"(dccp)((?: (?:dpts?|spts?):!?\S+)*)((?: !)? {_DCCP_TYPE}(?:,{_DCCP_TYPE})*)?"
            r"(?: option=(!)?(\d+))?",
            _dccp,
        ),
        (r"ADDRTYPE match((?: (?:src|dst)-type !?\S+| limit-(?:in|out))+)", _addrtype),
        (r"mark match( !)? (\S+)", _simple("mark", "--mark")),
        (r"connmark match (! )? ?(\S+)", _simple("connmark", "--mark")),
        (r"((?:source|destination) IP range ! ?\S+|(?:source|destination) IP range \S+)", _iprange),
        (r"rpfilter((?: (?:loose|validmark|accept-local|invert))*)", _rpfilter),
        (
            r"PHYSDEV match((?:(?: !)? --physdev-is-(?:in|out|bridged)|(?: !)? --physdev-(?:in|out) \S+)+)",
            _physdev,
        ),
        (r"(! )?realm (\S+)", _simple("realm", "--realm")),
        (
            r"match bpf ((?:\d+ \d+ \d+ \d+,)*\d+ \d+ \d+ \d+)",
            lambda f: ["-m", "bpf", "--bytecode", f"{f[1].count(',') + 1},{f[1]}"],
        ),
        (r"u32 (! )?\"([^\"]+)\"", _simple("u32", "--u32")),
        (r"nfacct-name  ?(\S+)", lambda f: ["-m", "nfacct", "--nfacct-name", f[1]]),
        (r"(! )?ctstate (\S+)", _simple("conntrack", "--ctstate")),
        (r"(! )?ctstatus (\S+)", _simple("conntrack", "--ctstatus")),
        (r"(! )?ctexpire (\S+)", _simple("conntrack", "--ctexpire")),
        (r"(! )?state (\S+)", _simple("state", "--state")),
        (r"(! )?match-set (\S+) (\S+)", _simple("set", "--match-set")),
        (r"multiport dports  ?(! ?)?(\S+)", _simple("multiport", "--dports")),
        (r"multiport sports  ?(! ?)?(\S+)", _simple("multiport", "--sports")),
        (r"multiport ports  ?(! ?)?(\S+)", _simple("multiport", "--ports")),
        (
            r"statistic mode random( !)? probability (\S+)",
            lambda f: ["-m", "statistic", "--mode", "random", *inverted(f[1], ["--probability", f[2]])],
        ),
        (r"statistic mode nth( !)? every (\d+)(?: packet (\d+))?", _nth),
        (
            r"limit: avg (\S+) burst (\d+)",
            lambda f: ["-m", "limit", "--limit", f[1], "--limit-burst", f[2]],
        ),
        (r"tcpmss match (!)?(\d+(?::\d+)?)", _simple("tcpmss", "--mss")),
        (r"ECN match((?: !?(?:ECE|CWR|ECT=[0-3]))+)", _ecn),
        (
            r"(esp|ah|comp)(?: +spis?:(!)?(\d+(?::\d+)?))?(?: ?length:(!)?(\d+))?( reserved)?",
            _security,
        ),
        (
            r"(! )?connbytes (\d+(?::\d+)?) connbytes mode (\w+) connbytes direction (\w+)",
            lambda f: [
                *("-m", "connbytes", *inverted(f[1], ["--connbytes", f[2]])),
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
                *("-m", f[1], *(inverted(f[2], [f"--{f[1]}-len", f[3]]) if f[3] else ())),
                *((f"--{f[1]}-opts", f[4]) if f[4] else ()),
            ],
        ),
        (r"frag ?((?: ?(?:ids?:!?\S+|length:!?\d+|reserved|first|more|last))*)", _frag),
        (r"ipv6header flags:(!)?(?:0x([0-9A-F]{2})|([a-z0-9,-]+))( soft)?", _ipv6header),
        (r"mh(?: (!)?([a-z0-9-]+(?::[a-z0-9-]+)?))?", _mh),
        (r"eui64", lambda _: ["-m", "eui64"]),
        (r"cpu (! )?(\d+)", _simple("cpu", "--cpu")),
        (r"length (!)?(\d+(?::\d+)?)", _simple("length", "--length")),
        (
            r"connlabel (! )?(\S+)( set)?",
            lambda f: [
                *("-m", "connlabel"),
                *inverted(f[1], ["--label", f[2].strip("'\"")]),
                *(["--set"] if f[3] else []),
            ],
        ),
        (
            r"cluster (!)?node_mask=(\S+) total_nodes=(\d+) hash_seed=(\S+)",
            lambda f: [
                *("-m", "cluster", *inverted(f[1], ["--cluster-local-nodemask", f[2]])),
                *("--cluster-total-nodes", f[3], "--cluster-hash-seed", f[4]),
            ],
        ),
        (r"((?:! )?(?:src|dst)-group \S+(?: (?:! )?dst-group \S+)?)", _devgroup),
        (r"(TTL|HL) match (?:TTL|HL) (==|!=|<|>) (\d+)", _ttl),
        (
            r"rt((?: (?:type|segslefts?|length):\S+)*)( reserved)?(?: 0-addrs (\S+))?( 0-not-strict)?",
            _rt,
        ),
        (r"srh((?: (?:[a-z-]+:!?\d+|[pnl]sid !? ?\S+/\d+))*)", _srh),
        (
            r'STRING match (!)? ?"((?:[^"\\]|\\.)*)" ALGO name (\S+)(?: FROM (\d+))?(?: TO (\d+))?( ICASE)?',
            _string,
        ),
        (r"DSCP match (!)?(0x[0-9a-f]+)", _simple("dscp", "--dscp")),
        (r"tos match ?(!)? ?(\S+)", _simple("tos", "--tos")),
        (r"PKTTYPE (!)?=+ (\S+)", _simple("pkttype", "--pkt-type")),
        (r"MAC ?(! ?)?([0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})", _simple("mac", "--mac-source")),
        (r"socket((?: --(?:transparent|nowildcard|restore-skmark))*)", _socket),
        (r"cgroup (! )?(\d+)", _simple("cgroup", "--cgroup")),
        (r"cgroup (! )?(\S*)", _simple("cgroup", "--path")),
        (
            r"policy match dir (in|out) pol (none|ipsec)( strict)?"
            r"((?: \[\d\]| !| (?:reqid|spi|proto|mode|tunnel-src|tunnel-dst) \S+)*)",
            _policy,
        ),
        (r"(! )?owner socket exists", _simple("owner", "--socket-exists")),
        (
            r"(! )?recent: (SET|CHECK|UPDATE|REMOVE)"
            r"((?: (?:seconds|hit_count|name|side|mask): \S+| reap| TTL-Match)*)",
            _recent,
        ),
        (
            r"(! )?(ct(?:proto|(?:orig|repl)(?:src|dst)(?:port)?)) (\S+)",
            lambda f: ["-m", "conntrack", *inverted(f[1], [f"--{f[2]}", f[3]])],
        ),
        (r"ctdir (ORIGINAL|REPLY)", lambda f: ["-m", "conntrack", "--ctdir", f[1]]),
        (r"(ipv6-)?icmp ?(! ?)?type (\d+)(?: codes? (\d+(?:-\d+)?))?", _icmp),
        (r"(ipv6-)?icmptype (!)?(\d+)(?: code (\d+))?", _icmp),
        (r"(ipv6-)?icmp (!)?([A-Za-z][-A-Za-z]*)()", _icmp),
    )
)
