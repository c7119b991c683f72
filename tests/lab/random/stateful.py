"""Random rules with several tests that count, draw or remember, between tests that do not.

x_tables evaluates the tests of a rule from left to right and stops at the first that fails, so a test that
counts sees only packets that passed the tests before it. A translation that moves, repeats or joins tests
changes what is counted. Nearly every rule of :func:`stateful_rules` sets a bit of its own in the mark of the
packet, so that the outcome of a packet shows which rules matched. The same seed gives the same text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from translate.errors import UnsupportedError
from translate.ir import Family, Program, Ruleset
from translate.passes import lower
from translate.passes.pipeline import LEVELS
from translate.read import read_ruleset
from translate.read.ipset import read_ipsets

__all__ = ["HOSTS", "is_for_tc", "stateful_rules", "stateful_text"]

HOSTS: Final = {
    Family.IP: ("10.244.0.3", "10.244.0.4", "10.244.0.5", "198.51.100.7"),
    Family.IP6: ("fd00:1::3", "fd00:2::4", "fd00:2::5", "2001:db8:7::1"),
}
"""Hosts beside the node of :func:`tests.lab.random.played.node_of`, some of them behind one device."""
_PREFIXES: Final = {
    Family.IP: ("10.244.0.4/31", "10.244.0.0/24", "198.51.100.7", "10.244.0.3"),
    Family.IP6: ("fd00:2::4/127", "fd00::/16", "2001:db8:7::1", "fd00:1::3"),
}
_SETS: Final = {
    Family.IP: """\
create seen hash:ip family inet hashsize 64 maxelem 65536
add seen 10.244.0.4
create kept hash:ip family inet hashsize 64 maxelem 65536 timeout 600
create pairs hash:ip,port family inet hashsize 64 maxelem 65536
create few hash:ip family inet hashsize 64 maxelem 2
create nets hash:net family inet hashsize 64 maxelem 65536
add nets 10.244.0.4/31
""",
    Family.IP6: """\
create seen hash:ip family inet6 hashsize 64 maxelem 65536
add seen fd00:2::4
create kept hash:ip family inet6 hashsize 64 maxelem 65536 timeout 600
create pairs hash:ip,port family inet6 hashsize 64 maxelem 65536
create few hash:ip family inet6 hashsize 64 maxelem 2
create nets hash:net family inet6 hashsize 64 maxelem 65536
add nets fd00:2::4/127
""",
}
_HOOKS: Final = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
_OF_THE_NODE: Final = ("INPUT", "OUTPUT")
"""Hooks that few packets of the flows pass, which are mostly forwarded."""
_HASHED: Final = {
    "clients": "--hashlimit-mode srcip --hashlimit-burst 2",
    "pairs": "--hashlimit-mode srcip,dstip --hashlimit-burst 1 --hashlimit-srcmask 24",
    "all": "--hashlimit-burst 3",
    "ports": "--hashlimit-mode dstport --hashlimit-burst 2",
}
"""The tables of ``-m hashlimit``; all rules with the same name have the same limit."""
_BITS: Final = 32
_TIMES: Final = (
    *("--datestart 2020-01-01", "--datestop 2020-01-01", "--timestart 00:00 --timestop 23:59:59"),
    *("--timestart 12:00 --timestop 11:59:59", "--weekdays Mon,Tue,Wed,Thu,Fri,Sat,Sun"),
)
_CONNMARKS: Final = ("--save-mark --mask 0x3", "--restore-mark --mask 0x3", "--set-xmark 0x1/0x3")
_MARKED: Final = "a bit of its own"
_BY_TC: Final = frozenset({"random", "nth", "limit", "recent", "account", "set", "label"})


def stateful_rules(seed: int, family: Family, emit: Callable[[Program], object] | None = None) -> Ruleset:
    """Return the ruleset of :func:`stateful_text`, with the ipsets that it tests and fills.

    With ``emit``, the rules that this function refuses at some level are left out.
    """
    sets = read_ipsets(_SETS[family].encode(), name="ipset-save").sets
    lines = stateful_text(seed, family).split("\n")
    while True:
        text = "\n".join(lines).encode()
        ruleset = replace(read_ruleset(text, name=f"stateful-{seed}", family=family), sets=sets)
        refused = set(_refused_lines(ruleset, emit)) if emit is not None else set()
        if not refused:
            return ruleset
        lines = ["" if number in refused else line for number, line in enumerate(lines, 1)]


def _refused_lines(ruleset: Ruleset, emit: Callable[[Program], object]) -> Iterator[int]:
    for level in LEVELS:
        try:
            emit(lower(ruleset, level=level))
        except UnsupportedError as e:
            yield from (refusal.origin.line for refusal in e.refusals)


def is_for_tc(seed: int) -> bool:
    """Return whether the rules of a seed have only tests that the tc program has, too."""
    return seed % 2 == 0


def stateful_text(seed: int, family: Family) -> str:
    """Return a ruleset as input for ``iptables-restore``."""
    draw = random.Random(f"stateful {seed} {family.value}")
    names = [name for name in _HOOKS if draw.random() < (0.8 if name == "mangle" else 0.35)] or ["mangle"]
    chances = _Chances(left=draw.choice((0, 0, 1, 2)), bits=_BITS)
    return "".join(_Table(draw, family, name, chances, by_tc=is_for_tc(seed)).text() for name in names)


@dataclass(slots=True)
class _Chances:
    """The numbers of further rules that may draw, which multiplies the branches of a flow, and of bits."""

    left: int
    bits: int


@dataclass(slots=True)
class _Table:
    draw: random.Random
    family: Family
    name: str
    chances: _Chances
    by_tc: bool
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        draw, hooks = self.draw, _HOOKS[self.name]
        used = [hook for hook in hooks if draw.random() < (0.25 if hook in _OF_THE_NODE else 0.6)]
        used = used or [hooks[0]]
        users = [f"c{number}" for number in range(draw.randint(0, 3))]
        heads = [*(f":{hook} ACCEPT [0:0]" for hook in hooks), *(f":{user} - [0:0]" for user in users)]
        for hook in used:
            self._chain(hook, users, draw.randint(1, 4))
            self.lines += [f"-A {hook} -j {user}" for user in users if draw.random() < 0.5]
        for number, user in enumerate(users):
            self._chain(user, users[number + 1 :], draw.randint(1, 3))
        return "\n".join((f"*{self.name}", *heads, *self.lines, "COMMIT", ""))

    def _chain(self, chain: str, callees: Sequence[str], count: int) -> None:
        for _ in range(count):
            proto, tests = self._tests(chain)
            copies = 2 if self.draw.random() < 0.15 else 1
            for _ in range(copies):
                target = self._target(chain, proto, callees)
                self.lines.append(" ".join(part for part in (f"-A {chain}", *tests, target) if part))

    # -- tests -----------------------------------------------------------------------------------

    def _no(self) -> str:
        return "! " if self.draw.random() < 0.3 else ""

    def _tests(self, chain: str) -> tuple[str, list[str]]:
        """Return the protocol and the tests of a rule, in a random order."""
        draw = self.draw
        proto = draw.choice(("", "", "udp", "udp", "tcp"))
        head = [f"-p {proto}"] if proto else []
        if draw.random() < 0.15:
            head.append(f"{self._no()}-{draw.choice('sd')} {draw.choice(_PREFIXES[self.family])}")
        if chain in ("PREROUTING", "INPUT", "FORWARD") and draw.random() < 0.1:
            head.append(f"{self._no()}-i {'dns+' if self.family is Family.IP else 'we+'}")
        plain = [self._plain(chain, proto) for _ in range(draw.choice((0, 0, 0, 1, 1, 2)))]
        counting = list(filter(None, (self._counting(proto) for _ in range(draw.choice((1, 1, 2, 2, 3))))))
        tests = [*plain, *counting]
        draw.shuffle(tests)
        return proto, [*head, *_as_iptables_takes_them(tests)]

    def _plain(self, chain: str, proto: str) -> str:
        """Return a test without a state."""
        draw = self.draw
        name = "ttl" if self.family is Family.IP else "hl"
        ways = [
            f"mark {self._no()}--mark {draw.choice(('0x0/0xf', '0x0/0x3', '0x2/0x3', '0x0/0x30'))}",
            f"connmark {self._no()}--mark {draw.choice(('0x1/0x1', '0x0/0x2', '0x0'))}",
            f"length {self._no()}--length {draw.choice((':40', '41:', '28:60', '48', '68'))}",
            f"{name} --{name}-{draw.choice(('eq 64', 'eq 63', 'lt 64', 'gt 63'))}",
            f"tos {self._no()}--tos {draw.choice(('0', '0x10/0x3f', '0x08'))}",
            f"conntrack {self._no()}--ctstate {draw.choice(('NEW', 'ESTABLISHED', 'NEW,DNAT', 'DNAT,SNAT'))}",
            f"conntrack {self._no()}--ctstatus {draw.choice(('SEEN_REPLY', 'ASSURED', 'NONE,ASSURED'))}",
            f"conntrack --ctdir {draw.choice(('ORIGINAL', 'REPLY'))}",
            f"iprange {self._no()}--{draw.choice(('src', 'dst'))}-range {self._range()}",
            f"set {self._no()}--match-set nets {draw.choice(('src', 'dst'))}",
            f"addrtype {self._no()}--{draw.choice(('src', 'dst'))}-type LOCAL",
            f"pkttype {self._no()}--pkt-type unicast",
            f"u32 {self._no()}--u32 {draw.choice(('8>>24=63:64', '2&0xFFFF=20:60', '0>>28=4'))}",
        ]
        if chain == "OUTPUT":
            ways.append(f"owner {self._no()}--uid-owner {draw.choice((0, 1))}")
        if chain in ("PREROUTING", "INPUT", "FORWARD"):
            ways.append(f"physdev {self._no()}--physdev-is-in")
        if chain == "PREROUTING" and self.name in ("raw", "mangle") and self.family is Family.IP:
            ways.append(f"rpfilter{draw.choice(('', ' --invert', ' --loose'))}")
        if proto:
            number, other = draw.choice(("53", "80", "53:80")), draw.choice(("53,80", "80", "1000:2000,53"))
            ports = [
                f"{proto} {self._no()}--dport {number}",
                f"{proto} {self._no()}--sport {draw.choice(('1001', '1000:1002'))}",
                f"multiport {self._no()}--{draw.choice(('dports', 'sports', 'ports'))} {other}",
            ]
            ways += ports * 2
        if proto == "tcp":
            ways.append(f"tcp {self._no()}--tcp-flags SYN,ACK SYN")
        return f"-m {draw.choice(ways)}"

    def _range(self) -> str:
        hosts = HOSTS[self.family]
        return f"{hosts[0]}-{hosts[2]}" if self.draw.random() < 0.5 else hosts[1]

    def _counting(self, proto: str) -> str:
        """Return a test that counts, draws or remembers, or an empty text if no more may draw."""
        kinds = ["random", "nth", "limit", "hashlimit", "recent", "recent", "recent", "connlimit", "quota"]
        kinds += ["connbytes", "set", "label", "account", "cluster", "time"]
        if self.by_tc:
            kinds = [kind for kind in kinds if kind in _BY_TC - {"label"}]
        if self.family is Family.IP6 or self.name == "filter":
            kinds = [kind for kind in kinds if kind != "cluster"]
        if self.name == "raw":
            kinds = [kind for kind in kinds if kind not in ("connbytes", "label", "cluster")]
        return self._of_kind(self.draw.choice(kinds), proto)

    def _of_kind(self, kind: str, proto: str) -> str:
        draw = self.draw
        match kind:
            case "random":
                chance = draw.choice(("0", "1", "1", "0.5") if self._may_draw() else ("0", "1", "1"))
                return f"-m statistic --mode random {self._no()}--probability {chance}"
            case "nth":
                every = draw.choice((1, 2, 3) if self._may_draw() else (1,))
                packet = draw.randrange(every)
                return f"-m statistic --mode nth {self._no()}--every {every} --packet {packet}"
            case "limit":
                return f"-m limit --limit 1/hour --limit-burst {draw.randint(1, 4)}"
            case "hashlimit":
                name = draw.choice([name for name in _HASHED if name != "ports" or proto])
                way = draw.choice(("upto", "above"))
                return f"-m hashlimit --hashlimit-{way} 1/hour {_HASHED[name]} --hashlimit-name {name}"
            case "recent":
                return f"-m recent {self._recent()}"
            case "connlimit":
                way, side = draw.choice(("upto", "above")), draw.choice("sd")
                mask = draw.choice((24, 32) if self.family is Family.IP else (32, 128))
                limit = f"--connlimit-{way} {draw.randint(0, 2)} --connlimit-mask {mask}"
                new = "-m conntrack --ctstate NEW " if draw.random() < 0.6 else ""
                return f"{new}-m connlimit {limit} --connlimit-{side}addr"
            case "quota":
                return f"-m quota {self._no()}--quota {draw.choice((0, 60, 100, 150, 300))}"
            case "connbytes":
                way = draw.choice(("packets", "bytes", "avgpkt"))
                side = draw.choice(("original", "reply", "both"))
                between = draw.choice(("1:2", "2", "60:150", "0:1"))
                options = f"--connbytes-mode {way} --connbytes-dir {side}"
                return f"-m connbytes {self._no()}--connbytes {between} {options}"
            case "set":
                return f"-m set {self._no()}--match-set {self._set(proto)}"
            case "label":
                setting = draw.choice(("", " --set"))
                no = self._no() if not setting else ""
                return f"-m connlabel {no}--label {draw.randint(1, 2)}{setting}"
            case "account":
                return f"-m nfacct --nfacct-name {draw.choice(('one', 'two'))}"
            case "cluster":
                seed = draw.randint(1, 3)
                return (
                    f"-m cluster --cluster-total-nodes 2 {self._no()}--cluster-local-node 1"
                    f" --cluster-hash-seed {seed}"
                )
            case _:
                return f"-m time {draw.choice(_TIMES)}"

    def _may_draw(self) -> bool:
        """Return whether one more rule may draw, and count it."""
        self.chances.left -= 1
        return self.chances.left >= 0

    def _set(self, proto: str) -> str:
        names = ("seen", "kept", "few", *(("pairs",) if proto else ()))
        name, side = self.draw.choice(names), self.draw.choice(("src", "dst"))
        return f"{name} {side},{self.draw.choice(('src', 'dst'))}" if name == "pairs" else f"{name} {side}"

    def _recent(self) -> str:
        draw = self.draw
        side = draw.choice(("", "", " --rdest"))
        name = draw.choice(("one", "two", "one", "two", "net"))
        way = draw.choice(("set", "set", "rcheck", "update", "update", "remove"))
        limits = ""
        if way in ("rcheck", "update"):
            limits = draw.choice(("", "", " --seconds 600", " --seconds 60"))
            if limits and draw.random() < 0.1:
                limits += " --reap"
            if not self.by_tc and draw.random() < 0.3:
                limits += f" --hitcount {draw.randint(2, 3)}"
        if name == "net":
            limits += f" --mask {'255.255.255.0' if self.family is Family.IP else 'ffff:ffff::'}"
        return f"--name {name} {self._no()}--{way}{limits}{side}"

    # -- targets ---------------------------------------------------------------------------------

    def _target(self, chain: str, proto: str, callees: Sequence[str]) -> str:
        target = self.draw.choice(list(self._targets(chain, proto, callees)))
        if target is _MARKED:
            self.chances.bits -= 1
            bit = f"{1 << self.chances.bits:#x}"
            return f"-j MARK --set-xmark {bit}/{bit}"
        return target

    def _targets(self, chain: str, proto: str, callees: Sequence[str]) -> Iterator[str]:
        draw = self.draw
        if self.chances.bits:
            yield from [_MARKED] * (8 if self.name != "nat" else 2)
        yield from ("-j RETURN", "")
        yield f"-j CONNMARK {draw.choice(_CONNMARKS)}"
        yield f"-j {draw.choice(('LOG', 'NFLOG --nflog-group 1'))}"
        if self.name == "raw":
            yield "-j CT --notrack"
        if self.name == "mangle":
            yield f"-j TOS {draw.choice(('--set-tos 0x08', '--or-tos 0x10', '--set-tos 0x10/0x3f'))}"
            yield "-j TTL --ttl-inc 1" if self.family is Family.IP else "-j HL --hl-inc 1"
        for way in ("j", "j", "g"):
            if callees:
                yield f"-{way} {draw.choice(callees)}"
        if self.name == "nat":
            yield from [self._nat(chain, proto)] * 4
        else:
            yield from ("-j DROP", "-j ACCEPT")
            if not self.by_tc:
                added, deleted = f" --add-set {self._set(proto)}", f" --del-set {self._set(proto)}"
                exist = " --exist" if draw.random() < 0.3 else ""
                yield from (f"-j SET{added}{exist}", f"-j SET{draw.choice((deleted, added + deleted))}")
        if self.name == "filter":
            yield "-j REJECT"

    def _nat(self, chain: str, proto: str) -> str:
        hosts = HOSTS[self.family]
        if chain in ("PREROUTING", "OUTPUT"):
            port = ":81" if proto and self.family is Family.IP and self.draw.random() < 0.4 else ""
            return f"-j DNAT --to-destination {hosts[2]}{port}"
        if chain in ("INPUT", "POSTROUTING"):
            return f"-j SNAT --to-source {hosts[1]}"
        return "-j RETURN"


_SHARED_OPTIONS: Final = (
    *(("recent", "set"), ("recent", "connlabel"), ("set", "connlabel"), ("mark", "connmark")),
)
"""Matches with an option of the same name.

Options of a match that is in a rule twice belong to the match between, if it has them, too
(``load_match`` merges the options of a match only once).
"""


def _as_iptables_takes_them(tests: Sequence[str]) -> Iterator[str]:
    """Yield the tests without those whose options iptables would take for options of another match."""
    names: list[str] = []
    for test in tests:
        name = test.removeprefix("-m ").split()[0]
        others = {other for pair in _SHARED_OPTIONS if name in pair for other in pair if other != name}
        if name in names and not others.isdisjoint(names[names.index(name) :]):
            continue
        names.append(name)
        yield test
