"""Random rules that combine all matches in any order, for checks that need no packets.

The translation of a match depends on the other matches of its rule: the protocol, a counter before it, a
second port. :func:`random_matches` draws rules of many matches, some of which no packet can pass, and runs of
rules that differ in their targets alone. Their ipsets are in :data:`IPSETS`. The same seed gives
the same text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.lab.random.headers import header_match, header_target, option_match, time_match
from tests.lab.random.rare import rare_match
from tests.lab.random.untracked import untracked
from translate.ir import Family, Ruleset
from translate.read import read_ruleset
from translate.read.ipset import read_ipsets

__all__ = ["IPSETS", "matching_rules", "random_matches"]

_PORTED: Final = ("tcp", "udp", "sctp", "udplite", "dccp")
_PORTS: Final = ("53", "80", "443", "771", "65535", "0", "80:443", ":1023", "1024:", "0:65535")
_LISTS: Final = ("53", "53", "443", "443", "53,80", "80:90,443", "1:65534", "53,54,55", "0:65535")
_FLAGS: Final = ("--syn", "--tcp-flags SYN,ACK SYN", "--tcp-flags ALL NONE", "--tcp-flags FIN,RST FIN,RST")
_MARKS: Final = ("1", "0", "0x1/0x1", "0x2/0x3", "0xffffffff", "0x80000000/0x80000000")
_STATES: Final = ("NEW", "ESTABLISHED,RELATED", "INVALID", "NEW,DNAT", "SNAT", "UNTRACKED,INVALID")
_STATUSES: Final = ("ASSURED", "SEEN_REPLY,EXPECTED", "NONE", "CONFIRMED", "NONE,ASSURED")
_COUNTS: Final = ("0", "2", "1:2", "2:4", "60:200", "0:18446744073709551615")
_RECENT: Final = (
    "--set",
    "--rcheck",
    "--update",
    "--remove",
    "--rcheck --seconds 10",
    "--update --seconds 60",
)
_ASKED_SETS: Final = (
    *("hosts src", "pairs dst,dst", "pairs src,src", "nets dst", "both src,dst,dst"),
    *("ports dst", "ports src", "networks src,dst"),
)
_HOOKS: Final = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
_DESTINATION: Final = frozenset({"PREROUTING", "OUTPUT"})
_DEEPEST: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """Words of rules that differ between the families."""

    addresses: tuple[str, ...]
    ranges: tuple[str, ...]
    icmp: str
    icmp_types: tuple[str, ...]
    types: tuple[str, ...]
    rejects: tuple[str, ...]
    hosts: tuple[str, ...]


_WORDS: Final = {
    Family.IP: _Words(
        addresses=(
            "10.0.0.1",
            "10.0.0.0/8",
            "10.0.0.0/9",
            "0.0.0.0/0",
            "10.0.0.0/255.0.0.255",
            "255.255.255.255",
        ),
        ranges=("10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.1", "0.0.0.0-255.255.255.255"),
        icmp="-m icmp {}--icmp-type {}",
        icmp_types=("8", "3/1", "3/3", "3", "any", "8/0", "0"),
        types=("LOCAL", "UNICAST", "BROADCAST", "LOCAL,MULTICAST", "PROHIBIT", "UNREACHABLE,UNSPEC"),
        rejects=("icmp-port-unreachable", "icmp-admin-prohibited", "icmp-host-prohibited"),
        hosts=("10.0.0.5", "10.0.0.5-10.0.0.9"),
    ),
    Family.IP6: _Words(
        addresses=("fd00::1", "fd00::/64", "fd00::/8", "fd00::/49", "::/0", "fd00::/ff00::ffff", "::1"),
        ranges=("fd00::1-fd00::5", "fd00::1-fd00::1"),
        icmp="-m icmp6 {}--icmpv6-type {}",
        icmp_types=("128", "1/4", "1", "2", "128/0", "135", "3/0"),
        types=("LOCAL",),
        rejects=("icmp6-port-unreachable", "icmp6-adm-prohibited"),
        hosts=("[fd00::5]", "[fd00::5-fd00::9]"),
    ),
}

_SETS: Final = """\
create hosts hash:ip family inet hashsize 1024 maxelem 65536
add hosts 10.0.0.1
add hosts 10.0.0.9
create pairs hash:ip,port family inet hashsize 1024 maxelem 65536
add pairs 10.0.0.1,tcp:80
add pairs 10.0.0.1,udp:53
create nets hash:net family inet hashsize 1024 maxelem 65536
add nets 10.0.0.0/8
add nets 10.0.0.0/24 nomatch
add nets 10.0.0.1
create both hash:ip,port,net family inet hashsize 1024 maxelem 65536
add both 10.0.0.1,tcp:80,10.0.0.0/8
create ports bitmap:port range 0-1000
add ports 53
add ports 80
create networks hash:net,port family inet hashsize 1024 maxelem 65536
add networks 10.0.0.0/8,tcp:80
"""
_SIX: Final = (
    ("inet", "inet6"),
    ("10.0.0.0/8", "fd00::/8"),
    ("10.0.0.0/24", "fd00::/64"),
    ("10.0.0.", "fd00::"),
)


def _sets6() -> str:
    text = _SETS
    for four, six in _SIX:
        text = text.replace(four, six)
    return text


IPSETS: Final = {Family.IP: _SETS, Family.IP6: _sets6()}
"""The ipsets that the rules test, as ``ipset save`` prints them."""


def random_matches(seed: int, family: Family = Family.IP) -> str:
    """Return a ruleset for every table of a family, as input for ``iptables-restore``."""
    draw = random.Random(seed)
    kinds = ("options", "counts", "times", "rare", "hits")
    options, counts, times, rare, hits = (random.Random(f"{kind} {seed}") for kind in kinds)
    streams = (draw, options, counts, times, rare, hits)
    return "".join(_Table(*streams, name, family, _WORDS[family]).text() for name in _HOOKS)


def matching_rules(seed: int, family: Family = Family.IP) -> Ruleset:
    """Read the ruleset of :func:`random_matches`, with the ipsets that it tests.

    Of 16 rulesets, one has no rule that needs conntrack.
    """
    name, text = f"matches {seed} of {family.value}", random_matches(seed, family)
    if seed % 16 == _NEVER_TRACKED:
        text = "\n".join(untracked(text, family))
    ruleset = read_ruleset(text.encode(), name=name, family=family)
    return replace(ruleset, sets=read_ipsets(IPSETS[family].encode(), name="ipset-save").sets)


_NEVER_TRACKED: Final = 11
"""The remainder of seeds whose rules that need conntrack are left out."""
_COUNTING: Final = 0.1
"""The share of rules with a match that counts."""
_RARE: Final = 0.15
"""The share of rules with a match of :mod:`tests.lab.random.rare`."""
_TIMED: Final = 0.1
"""The share of rules that test the clock or a helper."""
_HIT: Final = 0.05
"""The share of rules that test how often an address was seen, or change a list where they do not match."""


@dataclass(frozen=True, slots=True)
class _Table:
    draw: random.Random
    options: random.Random
    counts: random.Random
    """A separate generator for matches that count, so that the other matches of a seed do not change."""
    times: random.Random
    """A separate generator for matches of the clock and of helpers, for the same reason."""
    rare: random.Random
    """Draws the matches that few rulesets have, for the same reason."""
    hits: random.Random
    """Draws the matches of ``-m recent`` that count or are negated, for the same reason."""
    name: str
    family: Family
    words: _Words

    def text(self) -> str:
        hooks = _HOOKS[self.name]
        deepest = _DEEPEST if self.draw.random() < 0.2 else 2
        deep = [f"deep{n}" for n in range(self.draw.randint(1, deepest))]
        lines = [line for hook in hooks for _ in range(self.draw.randint(0, 3)) for line in self._run(hook)]
        lines += self._nested(self.draw.choice(hooks), deep)
        heads = [
            *(f":{hook} ACCEPT [0:0]" for hook in hooks),
            *(f":{name} - [0:0]" for name in ("user", *deep)),
        ]
        user = f"-A user -p tcp -j {'RETURN' if self.name == 'nat' else 'DROP'}"
        return "\n".join((f"*{self.name}", *heads, *lines, user, "COMMIT", ""))

    def _nested(self, hook: str, chains: Sequence[str]) -> Iterator[str]:
        """Yield chains of which each calls the next."""
        way = self.draw.choice("jg")
        part = self.draw.choice(
            ("", "-p tcp ", "-s 10.0.0.0/8 " if self.family is Family.IP else "-s fd00::/8 ")
        )
        for caller, chain in zip((hook, *chains), chains, strict=False):
            yield f"-A {caller} {part}-{way} {chain}"
            yield f"-A {chain} -p udp -j {self.draw.choice(('ACCEPT', 'RETURN'))}"

    def _run(self, hook: str) -> Iterator[str]:
        """Yield one or two rules with the same matches."""
        proto, matches = self._matches(hook)
        for _ in range(self.draw.randint(1, 2)):
            yield " ".join(word for word in (f"-A {hook}", matches, self._target(hook, proto)) if word)

    # -- matches ---------------------------------------------------------------------------------

    def _not(self) -> str:
        return "! " if self.draw.random() < 0.35 else ""

    def _some(self, most: int) -> range:
        return range(self.draw.randint(0, most))

    def _matches(self, hook: str) -> tuple[str, str]:
        draw, words = self.draw, self.words
        icmp = "icmp" if self.family is Family.IP else "ipv6-icmp"
        proto = draw.choice((*_PORTED, "tcp", "tcp", "udp", icmp, "99", "", ""))
        if proto == "99" and self.options.random() < 0.6:
            proto = self.options.choice(("50", "51", "108"))
        head = [
            f"{self._not()}-{side} {draw.choice(words.addresses)}" for side in "sd" if draw.random() < 0.3
        ]
        if hook in ("PREROUTING", "INPUT", "FORWARD") and draw.random() < 0.2:
            head.append(f"{self._not()}-i {draw.choice(('eth0', 'e+', 'lo', 'eth01234567890+'))}")
        if hook in ("FORWARD", "OUTPUT", "POSTROUTING") and draw.random() < 0.2:
            head.append(f"{self._not()}-o {draw.choice(('eth0', 'e+', 'lo'))}")
        if proto:
            head.append(f"-p {proto}")
        elif draw.random() < 0.3:
            head.append(f"! -p {draw.choice(('tcp', 'udp', '99'))}")
        matches: list[str] = []
        if proto in ("tcp", "udp", "sctp"):
            matches += [self._port(proto) for _ in self._some(2)]
        if proto in _PORTED:
            sides = ("sports", "dports", "ports")
            matches += [
                f"-m multiport {self._not()}--{draw.choice(sides)} {draw.choice(_LISTS)}"
                for _ in self._some(2)
            ]
        if proto == "tcp" and draw.random() < 0.4:
            matches.append(f"-m tcp {self._not()}{draw.choice(_FLAGS)}")
        if proto == icmp:
            matches += [words.icmp.format(self._not(), draw.choice(words.icmp_types)) for _ in self._some(2)]
        matches += [self._module(hook) for _ in self._some(3)]
        if self.family is Family.IP and not matches and proto in ("", "99") and draw.random() < 0.2:
            head.append(f"{self._not()}-f")
        draw.shuffle(matches)
        if self.times.random() < _TIMED:
            helper = f"-m helper {self.times.choice(('', '! '))}--helper {self.times.choice(('ftp', 'sip'))}"
            match = helper if self.times.random() < 0.25 else time_match(self.times)
            matches.insert(self.times.randint(0, len(matches)), match)
        if self.rare.random() < _RARE and (
            match := rare_match(self.rare, self.family, hook, early=self.name in ("raw", "mangle"))
        ):
            matches.insert(self.rare.randint(0, len(matches)), match)
        if proto == "dccp" and self.rare.random() < 0.5:
            no = self.rare.choice(("", "! "))
            port = f"--{self.rare.choice(('sport', 'dport'))} {self.rare.choice(_PORTS)}"
            matches.insert(self.rare.randint(0, len(matches)), f"-m dccp {no}{port}")
        if proto in ("50", "51", "108") or self.options.random() < 0.05:
            matches.append(option_match(self.options, proto, sizes=True))
        if self.counts.random() < _COUNTING:
            matches.insert(self.counts.randint(0, len(matches)), self._counting())
        if self.hits.random() < _HIT:
            matches.insert(self.hits.randint(0, len(matches)), self._recent())
        return proto, " ".join((*head, *matches))

    def _port(self, proto: str) -> str:
        sides = self.draw.sample(("sport", "dport"), self.draw.randint(1, 2))
        return " ".join((f"-m {proto}", *(f"{self._not()}--{s} {self.draw.choice(_PORTS)}" for s in sides)))

    def _module(self, hook: str) -> str:
        draw = self.draw
        side, addresses = draw.choice(("src", "dst")), [a for a in self.words.addresses if len(a) < 13]
        every = draw.choice((2, 3, 5))
        protocols = ("tcp", "udp", "6", "17", "1", "58", "132", "99")
        modules = [
            f"mark {self._not()}--mark {draw.choice(_MARKS)}",
            f"connmark {self._not()}--mark {draw.choice(_MARKS)}",
            *[f"conntrack {self._not()}--ctproto {draw.choice(protocols)}"] * 2,
            f"conntrack {self._not()}--ctstate {draw.choice(_STATES)}",
            f"conntrack {self._not()}--ctstatus {draw.choice(_STATUSES)}",
            f"conntrack {self._not()}--{draw.choice(('ctorig', 'ctrepl'))}{side} {draw.choice(addresses)}",
            f"conntrack {self._not()}--{draw.choice(('ctorig', 'ctrepl'))}{side}port {draw.choice(_PORTS)}",
            f"conntrack --ctdir {draw.choice(('ORIGINAL', 'REPLY'))}",
            f"addrtype {self._not()}--{side}-type {draw.choice(self.words.types)}",
            f"statistic --mode random {self._not()}--probability {draw.choice(('0.5', '0.00000000047'))}",
            *[f"statistic --mode nth {self._not()}--every {every} --packet {draw.randrange(every)}"] * 2,
            f"limit --limit {every}/hour --limit-burst {draw.choice((1, 2, 4))}",
            f"hashlimit --hashlimit-upto 1/hour --hashlimit-burst {every} --hashlimit-name {side}"
            f" --hashlimit-mode {side}ip",
            f"iprange {self._not()}--{side}-range {draw.choice(self.words.ranges)}",
            *[f"nfacct --nfacct-name {draw.choice(('one', 'two'))}"] * 2,
            *[f"recent --name {draw.choice(('one', 'two'))} {draw.choice(_RECENT)}"] * 2,
            f"set {self._not()}--match-set {draw.choice(_ASKED_SETS)}",
        ]
        if hook in ("OUTPUT", "POSTROUTING"):
            owners = draw.choice(("uid-owner 0", "uid-owner 1-1000", "gid-owner 0", "socket-exists"))
            modules.append(f"owner {self._not()}--{owners}")
        if hook in ("PREROUTING", "INPUT", "FORWARD"):
            modules.append(f"physdev {self._not()}--physdev-is-in")
        if hook == "PREROUTING" and self.name in ("raw", "mangle") and self.family is Family.IP:
            modules += [f"rpfilter {o}" for o in ("", "--invert", "--validmark", "--validmark --invert")]
        if draw.random() < 0.2:
            return header_match(draw, self.family, hook)
        return f"-m {draw.choice(modules)}".rstrip()

    def _counting(self) -> str:
        draw = self.counts
        limit = (
            f"{draw.choice(('above', 'upto'))} {draw.randint(1, 2)} --connlimit-mask {draw.choice((8, 32))}"
        )
        modules = (
            f"conntrack --ctstate NEW -m connlimit --connlimit-{limit} --connlimit-{draw.choice('sd')}addr",
            f"quota {draw.choice(('', '! '))}--quota {draw.choice((0, 60, 100, 200))}",
            f"connbytes {draw.choice(('', '! '))}--connbytes {draw.choice(_COUNTS)}"
            f" --connbytes-mode {draw.choice(('packets', 'bytes', 'avgpkt'))}"
            f" --connbytes-dir {draw.choice(('original', 'reply', 'both'))}",
        )
        return f"-m {draw.choice(modules)}"

    def _recent(self) -> str:
        draw = self.hits
        if draw.random() < 0.5:
            seconds, count = draw.choice((10, 60)), draw.randint(1, 4)
            way = draw.choice(("rcheck", "update"))
            return f"-m recent --name hits --{way} --seconds {seconds} --hitcount {count}"
        return f"-m recent --name others ! --{draw.choice(('update --seconds 10', 'update', 'remove'))}"

    # -- targets ---------------------------------------------------------------------------------

    def _target(self, hook: str, proto: str) -> str:
        draw = self.draw
        ways = [
            *("-j ACCEPT", "-j RETURN", "-j user", "-g user", ""),
            '-j LOG --log-prefix "a $x$ " --log-ip-options --log-level 3',
            "-j NFLOG --nflog-group 3 --nflog-prefix $y",
        ]
        if self.name != "nat":
            ways += ["-j DROP"] * 2
        match self.name:
            case "raw":
                ways += ["-j CT --notrack"] * 2
            case "mangle":
                ways += ["-j MARK --set-xmark 0x1/0x3", "-j MARK --set-mark 5", "-j MARK --or-mark 4"]
                ways += ["-j CONNMARK --save-mark --nfmask 0x3 --ctmask 0x3", "-j CONNMARK --restore-mark"]
                ways += ["-j CONNMARK --set-xmark 0x3/0x7", *[header_target(draw, self.family)] * 3]
            case "filter":
                ways += [f"-j REJECT --reject-with {draw.choice(self.words.rejects)}"] * 2
                ways += ["-j REJECT --reject-with tcp-reset"] * (6 if proto == "tcp" else 0)
            case _:
                ways += self._nat(hook, ported=proto in ("tcp", "udp", "sctp", "dccp"))
        return draw.choice(ways)

    def _nat(self, hook: str, *, ported: bool) -> list[str]:
        host, port = (
            self.draw.choice(self.words.hosts),
            self.draw.choice(("", "80", "80-90")) if ported else "",
        )
        flags = self.draw.choice(("", " --random", " --persistent"))
        to = f"{host}{f':{port}' if port else ''}{flags}"
        if hook in _DESTINATION:
            ports = f" --to-ports {port}" if port else ""
            return [f"-j DNAT --to-destination {to}"] * 4 + [f"-j REDIRECT{ports}"]
        if hook == "INPUT":
            return [f"-j SNAT --to-source {to}"] * 4
        ports = f" --to-ports {port}" if port else ""
        return [f"-j SNAT --to-source {to}"] * 4 + [
            f"-j MASQUERADE{ports}{flags.replace(' --persistent', '')}"
        ]
