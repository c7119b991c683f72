"""Random small rulesets that combine all constructs that can be read.

A ruleset drawn from the grammar alone would hardly ever have two rules that concern the same packet. Here
there are only a few addresses, ports, marks and interfaces. So prefixes overlap, keys repeat, a mark set by
one rule is tested by another, and some rules are ladders. The same seed gives the same text, which is what
``iptables-restore`` takes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.lab.random.headers import hash_target, header_match, header_target, option_match
from tests.lab.random.words import WORDS, Words
from translate.ir import Family

__all__ = ["random_rules"]

_LOGS: Final = (
    "LOG",
    'LOG --log-prefix "to be seen: " --log-level 7 --log-tcp-options --log-uid',
    "NFLOG --nflog-group 5 --nflog-prefix seen --nflog-size 64",
    "AUDIT --type drop",
)
_PORTS: Final = ("53", "80", "81", "443", "80:443", "1024:65535", ":1023", "53:", "30000:30010", "8080")
_MULTI: Final = ("53,80", "80,81,443", "50:53,80", "8000:8100,53", "443", "1:65535", "79,80,81,82")
_MARKS: Final = ("0x1", "0x2", "0x3", "0x1/0x1", "0x2/0x3", "0x0/0x3", "0x4000/0x4000", "0x0", "0x10/0x1")
_SETS: Final = (
    "--set-xmark 0x1/0xffffffff",
    "--set-xmark 0x2/0xffffffff",
    "--set-xmark 0x3/0xf",
    "--set-xmark 0x4000/0x4000",
    "--set-xmark 0x1/0x0",
    "--set-mark 0x2/0x3",
    "--or-mark 0x1",
    "--and-mark 0xfffffffe",
    "--xor-mark 0x3",
)
_CONNMARKS: Final = (
    "--save-mark",
    "--save-mark --mask 0x3",
    "--save-mark --nfmask 0x3 --ctmask 0x2",
    "--restore-mark",
    "--restore-mark --mask 0x1",
    "--restore-mark --nfmask 0x1 --ctmask 0x3",
    "--set-xmark 0x1/0x1",
    "--set-xmark 0x4000/0x4001",
    "--set-mark 0x2",
    "--and-mark 0xfffffffd",
    "--xor-mark 0x3",
)
_STATES: Final = ("NEW", "ESTABLISHED", "RELATED", "INVALID", "UNTRACKED", "DNAT", "SNAT")
_STATUSES: Final = ("SEEN_REPLY", "ASSURED", "CONFIRMED", "EXPECTED", "NONE")
_FLAGS: Final = (
    "FIN,SYN,RST,ACK SYN",
    "SYN,ACK SYN,ACK",
    "FIN FIN",
    "RST,ACK NONE",
    "FIN,SYN,RST,PSH,ACK,URG NONE",
)
_ZONES: Final = ("--zone 1", "--zone 2", "--zone-orig 1", "--zone-reply 2")
_MANY_PORTS: Final = ("1024-65535", "8000-8003")
_HASHED: Final = 0.06
"""The share of rulesets in which a hash makes marks; nftables refuses such a rule, so they are few."""
_LAST: Final = 0.15
"""The share of tables with rules for every packet that comes to their end."""
_HOOKS: Final = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
_DESTINATION: Final = frozenset({"PREROUTING", "OUTPUT"})


def random_rules(seed: int, family: Family = Family.IP, *, hashed: float = _HASHED) -> str:
    """Return a small ruleset for the tables of a family, as input for ``iptables-restore``.

    ``hashed`` is the share of rulesets in which a hash makes the marks.
    """
    draw = random.Random(seed)
    options, last = (random.Random(f"{kind} {seed}") for kind in ("options", "last"))
    tables = [t for t in _HOOKS if draw.random() < (0.35 if t == "raw" else 0.75)] or ["filter"]
    text = "".join(_Table(draw, options, last, name, WORDS[family]).text() for name in tables)
    hashes = random.Random(f"hashes {seed}")
    return _MARKED.sub(lambda _: hash_target(hashes, family), text) if hashes.random() < hashed else text


_MARKED: Final = re.compile(r"-j MARK .*")


@dataclass(slots=True)
class _Table:
    """One table under construction. A user chain is for one side of NAT, and calls only later chains."""

    draw: random.Random
    options: random.Random
    last: random.Random
    """A separate generator for the last rules of chains, so that the other rules of a seed do not change."""
    name: str
    words: Words
    lines: list[str] = field(default_factory=list)
    chances: int = 4
    """The number of further rules that may draw: each draw multiplies a flow's branches."""

    def text(self) -> str:
        sides = {hook: hook in _DESTINATION for hook in _HOOKS[self.name]}
        chains = {f"c{n}": self.draw.random() < 0.5 for n in range(self.draw.randint(0, 4))}
        if self.name != "nat":
            sides, chains = dict.fromkeys(sides, True), dict.fromkeys(chains, True)
        head = [f"*{self.name}"]
        for hook in sides:
            drops = self.name == "filter" and self.draw.random() < 0.2
            head.append(f":{hook} {'DROP' if drops else 'ACCEPT'} [0:0]")
        head += [f":{chain} - [0:0]" for chain in chains]
        if self.name == "raw" and self.draw.random() < 0.3:
            self.lines += [
                f"-A {hook} -j CT --notrack" for hook in sides
            ]  # what is said about such packets, too
        if self.name == "filter":
            guarded = [hook for hook in sides if self.draw.random() < 0.15]
            self.lines += [
                f"-A {hook} -m conntrack --ctstate {self.draw.choice(_STATES)} -j DROP" for hook in guarded
            ]
        names = list(chains)
        for hook, side in sides.items():
            self._chain(hook, side=side, callees=[c for c in names if chains[c] is side])
        for at, chain in enumerate(names):
            later = [c for c in names[at + 1 :] if chains[c] is chains[chain]]
            self._chain(chain, side=chains[chain], callees=later)
        if self.last.random() < _LAST:
            self.lines += self._last_rules()
        return "\n".join([*head, *self.lines, "COMMIT", ""])

    def _last_rules(self) -> Iterator[str]:
        """Yield rules that match almost every packet: a firewall's last rules, and NAT of all connections."""
        draw = self.last
        if self.name == "filter":
            for hook in ("INPUT", "FORWARD"):
                yield f"-A {hook} -j REJECT --reject-with {draw.choice(self.words.rejects)}"
        if self.name == "nat":
            to = self.words.with_port(draw.choice(self.words.targets), draw.choice(_MANY_PORTS))
            yield f"-A PREROUTING -p {draw.choice(('tcp', 'udp'))} -j DNAT --to-destination {to}"
            yield f"-A POSTROUTING -j SNAT --to-source {draw.choice(self.words.sources)}"

    def _chain(self, chain: str, *, side: bool, callees: Sequence[str]) -> None:
        for _ in range(self.draw.randint(0, 3)):
            roll = self.draw.random()
            if roll < 0.18 and self.chances == 4:
                self._ladder(chain, side=side, callees=callees)
            elif roll < 0.5:
                self._run(chain, side=side, callees=callees)
            else:
                for _ in range(self.draw.randint(1, 3)):
                    self._rule(chain, *self._matches(chain), side=side, callees=callees)

    def _rule(self, chain: str, proto: str, matches: str, *, side: bool, callees: Sequence[str]) -> None:
        target = self._target(chain, proto, side=side, callees=callees)
        self.lines.append(" ".join(w for w in (f"-A {chain}", matches, target) if w))

    def _run(self, chain: str, *, side: bool, callees: Sequence[str]) -> None:
        """Yield rules that compare one field with constants, some of them equal, or two fields
        alternately.
        """
        proto = self.draw.choice(("tcp", "udp"))
        shared = self.draw.choice(("", "", "-m conntrack --ctdir ORIGINAL ", "-m conntrack --ctstate NEW "))
        shapes = [self.draw.choice(("mark", "port", "dst", "dst-port", "in", "src", "state", "type"))]
        count = self.draw.randint(2, 5)
        if self.draw.random() < 0.25:
            shapes, count = self.draw.choice((["dst", "dst-port"], ["src", "in"], ["port", "dst"])), count + 3
        done = self._target(chain, "", side=side, callees=callees) if len(shapes) > 1 else None
        for _ in range(count):
            shape = self.draw.choice(shapes)
            match shape:
                case "mark":
                    text = f"-m mark --mark {self.draw.choice(('0x0', '0x1', '0x2', '0x3'))}"
                case "port":
                    text = f"-p {proto} -m {proto} --dport {self.draw.choice(_PORTS)}"
                case "dst-port":
                    to = self.draw.choice(self.words.hosts)
                    text = f"-d {to} -p {proto} -m {proto} --dport {self.draw.choice(('53', '80', '81'))}"
                case "in":
                    out = chain in ("OUTPUT", "POSTROUTING")
                    text = f"{'-o' if out else '-i'} {self.draw.choice(self.words.interfaces[:4])}"
                case "state":
                    text = f"-m conntrack --ctstate {self.draw.choice(_STATES)}"
                case "type":
                    text = f"-m addrtype --dst-type {self.draw.choice(self.words.types)}"
                case _:
                    text = f"-{'s' if shape == 'src' else 'd'} {self.draw.choice(self.words.addresses)}"
            if done is not None and self.draw.random() < 0.8:
                self.lines.append(f"-A {chain} {shared}{text} {done}".rstrip())
                continue
            has = proto if "-p " in text else ""
            self._rule(chain, has, shared + text, side=side, callees=callees)

    def _ladder(self, chain: str, *, side: bool, callees: Sequence[str]) -> None:
        """Yield a ladder of random rules with equal or unequal shares, whose targets may return."""
        rungs = self.draw.randint(2, 4)
        self.chances -= rungs
        proto = self.draw.choice(("", "tcp", "udp"))
        shared = f"-p {proto}" if proto else ""
        equal = self.draw.random() < 0.6
        for rung in range(rungs):
            share = 1 / (rungs - rung) if equal else self.draw.choice((0.1, 0.25, 0.5, 0.9))
            chance = f"-m statistic --mode random --probability {share:.11f}"
            if rung == rungs - 1 and self.draw.random() < 0.7:
                chance = ""
            self._rule(chain, proto, " ".join(w for w in (shared, chance) if w), side=side, callees=callees)

    # -- matches ---------------------------------------------------------------------------------

    def _not(self) -> str:
        return "! " if self.draw.random() < 0.25 else ""

    def _matches(self, chain: str) -> tuple[str, str]:
        """Return the transport protocol, if it has ports, and the matches."""
        words: list[str] = []
        if self.draw.random() < 0.3:
            words.append(f"{self._not()}-s {self.draw.choice(self.words.addresses)}")
        if self.draw.random() < 0.4:
            words.append(f"{self._not()}-d {self.draw.choice(self.words.addresses)}")
        if chain not in ("OUTPUT", "POSTROUTING") and self.draw.random() < 0.15:
            words.append(f"{self._not()}-i {self.draw.choice(self.words.interfaces)}")
        if chain not in ("PREROUTING", "INPUT") and self.draw.random() < 0.15:
            words.append(f"{self._not()}-o {self.draw.choice(self.words.interfaces)}")
        icmp, strange = self.words.icmp, self.draw.choice(self.words.strange)
        proto = self.draw.choice(("", "", "tcp", "udp", "tcp", "udp", icmp, "!", "sctp", "udplite", strange))
        if proto == "!":
            words.append(f"! -p {self.draw.choice(('tcp', 'udp', icmp, strange))}")
            proto = ""
        elif proto:
            words += [f"-p {proto}", *self._transport(proto)]
        words += self._modules(chain, proto)
        return (proto if proto in ("tcp", "udp", "sctp") else ""), " ".join(words)

    def _transport(self, proto: str) -> list[str]:
        roll = self.draw.random()
        if proto == self.words.icmp:
            kind = self.draw.choice(self.words.icmp_types)
            return [self.words.icmp_match.format(self._not(), kind)] if roll < 0.7 else []
        if proto == "udplite":
            roll = max(roll, 0.4)  # it has no match of its own
        elif proto not in ("tcp", "udp", "sctp"):
            return []
        if roll < 0.25:
            return [f"-m {proto} {self._not()}--dport {self.draw.choice(_PORTS)}"]
        if roll < 0.4:
            ports = (self.draw.choice(_PORTS), self.draw.choice(_PORTS))
            return [f"-m {proto} {self._not()}--sport {ports[0]} {self._not()}--dport {ports[1]}"]
        if roll < 0.6:
            side = self.draw.choice(("--dports", "--sports", "--ports"))
            return [f"-m multiport {self._not()}{side} {self.draw.choice(_MULTI)}"]
        if proto == "tcp" and roll < 0.75:
            return [f"-m tcp {self._not()}--tcp-flags {self.draw.choice(_FLAGS)}"]
        return []

    def _modules(self, chain: str, proto: str) -> list[str]:
        words: list[str] = []
        if self.draw.random() < 0.2:
            words.append(f"-m mark {self._not()}--mark {self.draw.choice(_MARKS)}")
        if self.draw.random() < 0.1:
            words.append(f"-m connmark {self._not()}--mark {self.draw.choice(_MARKS)}")
        if self.draw.random() < 0.3:
            words.append(f"-m conntrack {self._conntrack(proto)}")
        if self.draw.random() < 0.15:
            side, kinds = self.draw.choice(("--src-type", "--dst-type")), self._list(self.words.types)
            words.append(f"-m addrtype {self._not()}{side} {kinds}{self._limit(chain)}")
        if self.chances > 0 and self.draw.random() < 0.08:
            self.chances -= 1
            share = self.draw.choice(("0.25000000000", "0.50000000000", "0.00000000000", "1.00000000000"))
            words.append(f"-m statistic --mode random {self._not()}--probability {share}")
        if self.chances > 0 and self.draw.random() < 0.05:
            self.chances -= 1
            words.append(f"-m statistic --mode nth {self._not()}--every 3 --packet {self.draw.randint(0, 2)}")
        if self.draw.random() < 0.08:
            side = self.draw.choice(("--src-range", "--dst-range"))
            words.append(f"-m iprange {self._not()}{side} {self.draw.choice(self.words.ranges)}")
        if self.draw.random() < 0.15:
            words.append(header_match(self.draw, self.words.family, chain))
        if self.draw.random() < 0.05:
            words.append('-m comment --comment "a \\"quoted\\" remark; { with # marks }"')
        self.draw.shuffle(words)
        if self.options.random() < 0.05:
            words.append(option_match(self.options, proto, sizes=False))
        if self.draw.random() < 0.05:  # after all others, as kube-proxy writes it
            words.append(f"-m nfacct --nfacct-name {self.draw.choice(('one', 'two'))}")
        return words

    def _limit(self, chain: str) -> str:
        if self.draw.random() < 0.7:
            return ""
        if chain in ("PREROUTING", "INPUT"):
            return " --limit-iface-in"
        return " --limit-iface-out" if chain in ("OUTPUT", "POSTROUTING") else ""

    def _list(self, names: Sequence[str]) -> str:
        return ",".join(self.draw.sample(names, self.draw.randint(1, min(3, len(names)))))

    def _conntrack(self, proto: str) -> str:
        words = []
        roll = self.draw.random()
        if roll < 0.7:
            words.append(f"{self._not()}--ctstate {self._list(_STATES)}")
        if roll > 0.6:
            options = [
                f"{self._not()}--ctstatus {self._list(_STATUSES)}",
                f"{self._not()}--ctorigdst {self.draw.choice(self.words.prefixes)}",
                f"{self._not()}--ctorigsrc {self.draw.choice(self.words.prefixes)}",
                f"{self._not()}--ctreplsrc {self.draw.choice(self.words.prefixes)}",
                f"{self._not()}--ctrepldst {self.draw.choice(self.words.prefixes)}",
                f"--ctdir {self.draw.choice(('ORIGINAL', 'REPLY'))}",
                f"{self._not()}--ctproto {self.draw.choice(('tcp', 'udp', '1'))}",
            ]
            if proto in ("tcp", "udp"):
                options.append(f"{self._not()}--ctorigdstport {self.draw.choice(('53', '80'))}")
                options.append(f"{self._not()}--ctreplsrcport {self.draw.choice(('53', '8080'))}")
            words += self.draw.sample(options, self.draw.randint(1, 2))
        return " ".join(words)

    # -- targets ---------------------------------------------------------------------------------

    def _target(self, chain: str, proto: str, *, side: bool, callees: Sequence[str]) -> str:
        roll = self.draw.random()
        if callees and roll < 0.3:
            return f"-{self.draw.choice('jjjg')} {self.draw.choice(callees)}"
        if roll < 0.42:
            return "-j RETURN"
        if roll < 0.5:
            return "-j ACCEPT"
        if roll < 0.53:
            return ""
        if roll < 0.57:
            return f"-j {self.draw.choice(_LOGS)}"
        match self.name:
            case "raw":
                zoned = f"-j CT {self.draw.choice(_ZONES)}"
                plain = ("-j NOTRACK", "-j CT --notrack", "-j DROP", "-j TRACE")
                return self.draw.choice((*plain, zoned, self._marked()))
            case "mangle" if proto == "tcp" and self.draw.random() < 0.3:
                clamps = chain in ("FORWARD", "OUTPUT", "POSTROUTING") and self.draw.random() < 0.5
                size = "--clamp-mss-to-pmtu" if clamps else f"--set-mss {self.draw.choice(('536', '1200'))}"
                return f"-m tcp --tcp-flags SYN,RST SYN -j TCPMSS {size}"
            case "mangle":
                if roll > 0.85:
                    return header_target(self.draw, self.words.family)
                return "-j DROP" if roll > 0.82 else self._marked()
            case "nat":
                return self._nat(chain, proto, side=side) if roll < 0.9 else self._marked()
            case _:
                return self._filtered(proto)

    def _marked(self) -> str:
        if self.draw.random() < 0.3:
            return f"-j CONNMARK {self.draw.choice(_CONNMARKS)}"
        return f"-j MARK {self.draw.choice(_SETS)}"

    def _filtered(self, proto: str) -> str:
        roll = self.draw.random()
        if roll < 0.35:
            return "-j DROP"
        if roll < 0.5:
            return self._marked()
        if proto == "tcp" and roll < 0.65:
            return "-j REJECT --reject-with tcp-reset"
        return f"-j REJECT --reject-with {self.draw.choice(self.words.rejects)}"

    def _nat(self, chain: str, proto: str, *, side: bool) -> str:
        roll = self.draw.random()
        if side:
            if proto and roll < 0.3:
                random_ = self.draw.choice(("", "", " --random"))
                return f"-j REDIRECT --to-ports {self.draw.choice(('8080', '8000-8003'))}{random_}"
            if roll < 0.35:
                return "-j REDIRECT"
            to = self.draw.choice(self.words.targets)
            port = self.draw.choice(("8080", "80", "8000-8003", "1024-65535", "")) if proto else ""
            if port:
                to = self.words.with_port(to, port)
            return f"-j DNAT --to-destination {to}{self._nat_flags(('--random', '--persistent'))}"
        flags = ("--random", "--random-fully", "--persistent")
        if chain != "POSTROUTING" or roll < 0.5:
            to = self.draw.choice(self.words.sources)
            port = self.draw.choice(("2000-2003", "4000", "", "")) if proto else ""
            if port:
                to = self.words.with_port(to, port)
            return f"-j SNAT --to-source {to}{self._nat_flags(flags)}"
        ports = self.draw.choice((" --to-ports 2000-2003", "", "")) if proto else ""
        return f"-j MASQUERADE{ports}{self._nat_flags(flags[:2])}"

    def _nat_flags(self, flags: Sequence[str]) -> str:
        return f" {self.draw.choice(flags)}" if self.draw.random() < 0.3 else ""
