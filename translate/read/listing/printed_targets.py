"""The text of each target in a listing, as a pattern with the options of ``iptables-save``.

To read another target, add its pattern to :data:`TARGETS`. A pattern ends at a space or at the end of a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from translate.read.listing.printed_matches import Words

__all__ = ["TARGETS"]

_LEVELS: Final = {"err": "error", "warn": "warning"}
"""Names of levels that LOG prints but does not read (``priority2name``), and the names that it reads."""
_LOG_FLAGS: Final = ("tcp-sequence", "tcp-options", "ip-options", "uid", "", "macdecode")
_MARKS: Final = {"or": "--or-mark", "and": "--and-mark", "xor": "--xor-mark", "set": "--set-mark"}
_SHIFT: Final = r"(?: (?P<shift>left|right)-shift-mark (?P<bits>\d+))?"


def _connmark(match: re.Match[str]) -> Words:
    """Read a CONNMARK; the mask after ``~`` is printed without inversion (``connmark_tg_print``)."""
    words = [f"--{match[1]}-mark"]
    if match[2]:
        words += [f"--{match[2]}", match[3]]
    if match[4]:
        words += [f"--{match[4]}", match[5]]
    return [*words, *_shift(match)]


def _shift(match: re.Match[str]) -> Words:
    return [f"--{match['shift']}-shift-mark", match["bits"]] if match["shift"] else []


def _ct(match: re.Match[str]) -> Words:
    return [word if n % 2 else f"--{word}" for n, word in enumerate(match[1].split())]


def _prefixes(match: re.Match[str]) -> Words:
    return ["--src-pfx", match[2], "--dst-pfx", match[3]]


def _change_of_ttl(match: re.Match[str]) -> Words:
    return [f"--{match[1].lower()}-{match[2][:3]}", match[3]]


def _log(match: re.Match[str]) -> Words:
    """Read LOG, whose details are a number with ``-n``, otherwise names (``LOG_print``)."""
    bits, names = int(match[1] or 0), match[3].split()
    details = [name for n, name in enumerate(_LOG_FLAGS) if name in names or (name and bits >> n & 1)]
    prefix = ["--log-prefix", match[4]] if match[4] else []
    level = _LEVELS.get(match[2], match[2])
    return ["--log-level", level, *prefix, *(f"--log-{name}" for name in details)]


_OF_HASH: Final = (
    r"(?: {1,2}(?:ct,|(?:src|dst)-prefix(?: \d+)?|(?:[sd]port|spi|proto)(?:-mask)? \S+|rnd \S+))"
)
"""A part of HMARK; of a prefix of 128 bits the length is not printed (``xtables_ip6mask_to_numeric``)."""


def _hmark(match: re.Match[str]) -> Words:
    words = ["--hmark-mod", match[1], *(["--hmark-offset", match[2]] if match[2] else [])]
    for part in re.finditer(r"(ct,)|([a-z-]+)(?: (\d\w*))?", match[3]):
        words += ["--hmark-tuple", "ct"] if part[1] else [f"--hmark-{part[2]}", part[3] or "128"]
    return words


TARGETS: Final[tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], Words]], ...]] = tuple(
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
            r"LOG (?:flags (\d{1,10}) )?level (\w+)"
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
            r"((?: ?(?:add|del)-set \S+ \S+(?: exist)?(?: timeout \d+)?)+)",
            "SET",
            lambda f: [
                f"--{word}" if re.fullmatch("(?:add|del)-set|exist|timeout", word) else word
                for word in f[1].split()
            ],
        ),
        (
            r"TEE gw:(\S+)(?: oif=(\S+))?",
            "TEE",
            lambda f: ["--gateway", f[1], *(["--oif", f[2]] if f[2] else [])],
        ),
        (
            r"SYNPROXY((?: (?:sack-perm|timestamp|ecn|wscale \d+|mss \d+))*) ?",
            "SYNPROXY",
            lambda f: [word if word.isdigit() else f"--{word}" for word in f[1].split()],
        ),
        (
            r"timeout:(\d+) label:(\S+)( alarm)?",
            "IDLETIMER",
            lambda f: ["--timeout", f[1], "--label", f[2], *(["--alarm"] if f[3] else [])],
        ),
        (
            r"led-trigger-id:\"(.*?)\"(?: led-delay:(\S+))?( led-always-blink)?",
            "LED",
            lambda f: [
                *("--led-trigger-id", f[1].removeprefix("netfilter-")),
                *(["--led-delay", f[2].removesuffix("ms")] if f[2] else []),
                *(["--led-always-blink"] if f[3] else []),
            ],
        ),
        (
            r"name (\S+) interval (\S+) ewmalog (\S+)",
            "RATEEST",
            lambda f: ["--rateest-name", f[1], "--rateest-interval", f[2], "--rateest-ewmalog", f[3]],
        ),
        (rf"HMARK mod (\d+)(?: \+ (0x[0-9a-f]+))?({_OF_HASH}+)", "HMARK", _hmark),
        (r"SECMARK selctx (\S+)", "SECMARK", lambda f: ["--selctx", f[1]]),
        (r"CONNSECMARK (save|restore)", "CONNSECMARK", lambda f: [f"--{f[1]}"]),
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
        (r"(SNPT|DNPT) src-pfx (\S+) dst-pfx (\S+)", "SNPT", _prefixes),
        (r"(SNPT|DNPT) src-pfx (\S+) dst-pfx (\S+)", "DNPT", _prefixes),
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
