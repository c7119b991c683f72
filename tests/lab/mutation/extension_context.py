"""Rules around a sample rule that make its effect visible: what it finds before it, and a look behind it.

They stand in the chain of the sample. They have a line number that no sample has, so that no fault is planted
in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from translate.ir import (
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Family,
    Origin,
    Recent,
    RecentMode,
    Rule,
    SetDirection,
    SetUpdate,
    format_address,
)
from translate.read import read_ruleset

__all__ = ["CONTEXT_LINE", "surrounded"]

CONTEXT_LINE: Final = 99999
"""The line number of rules that are not of the samples."""


def surrounded(rule: Rule, family: Family) -> tuple[Rule, ...]:
    """Return the rules of a chain with a sample, in their order."""
    name = "" if rule.target is None else rule.target.name
    before = (*_BEFORE.get(name, ()), *_filling(rule, family))
    after = (*_AFTER.get(name, ()), *_showing(rule))
    if family is Family.IP6:
        after = (*_AFTER_IP6.get(name, ()), *after)
    return (*_context(before, family), rule, *_context(after, family))


def _filling(rule: Rule, family: Family) -> Iterator[str]:
    """Yield rules that put what a rule looks up into lists and labels, for packets of UDP."""
    for test in rule.tests:
        if isinstance(test, Recent) and test.mode is not RecentMode.SET:
            side = "rsource" if test.side is SetDirection.SRC else "rdest"
            mask = format_address(family, test.mask)
            yield f"-p udp -m recent --set --name {test.name} --{side} --mask {mask}"
        if isinstance(test, ConnLabel) and not test.add:
            yield f"-p udp -m connlabel --label {test.number} --set"
        if isinstance(test, SetUpdate) and test.delete:
            yield f"-p udp -j SET --add-set {_key(test)}"


def _showing(rule: Rule) -> Iterator[str]:
    """Yield rules that drop packets on which a match has had an effect, or that it lets pass."""
    changes = [test for test in rule.tests if isinstance(test, SetUpdate)]
    for change in sorted(changes, key=lambda change: not change.delete):
        yield f"-m set --match-set {_key(change)} -j {'ACCEPT' if change.delete else 'DROP'}"
    for test in rule.tests:
        if isinstance(test, ConnLabel) and test.add:
            yield f"-m connlabel --label {test.number} -j DROP"
        if isinstance(test, ConnectionLimit) and not test.above:
            yield "-m conntrack --ctstate INVALID,NEW -j DROP"
        if isinstance(test, ClusterShare):
            yield "-m pkttype --pkt-type multicast -j DROP"


def _key(change: SetUpdate) -> str:
    return f"{change.name} {','.join(change.directions)}"


def _context(lines: Iterable[str], family: Family) -> tuple[Rule, ...]:
    """Return the rules of these lines of iptables, at :data:`CONTEXT_LINE`."""
    text = "*mangle\n" + "".join(f"-A FORWARD {line}\n" for line in lines) + "COMMIT\n"
    ruleset = read_ruleset(text.encode(), name="context", family=family)
    return tuple(replace(rule, origin=Origin("context", CONTEXT_LINE)) for rule in ruleset.rules())


_BEFORE: Final[Mapping[str, Sequence[str]]] = {
    "MARK": ("-p tcp -j MARK --set-xmark 0x5a5aa5a6", "! -p tcp -j MARK --set-xmark 0xa5a55a59"),
    "CONNMARK": (
        *("-p tcp -j MARK --set-xmark 0x5a5aa5a6", "! -p tcp -j MARK --set-xmark 0xa5a55a59"),
        *("-p tcp -j CONNMARK --set-xmark 0x3cc3963a", "! -p tcp -j CONNMARK --set-xmark 0xc33c69c5"),
        # for shifts by four bits
        *("-p udp -j CONNMARK --set-xmark 0xf0f0f0f0", "-p sctp -j CONNMARK --set-xmark 0x0f0f0f0f"),
    ),
}
_FLAGS: Final = ("FIN", "SYN", "RST", "PSH", "ACK", "URG")
_AFTER: Final[Mapping[str, Sequence[str]]] = {
    "CONNMARK": ("-j CONNMARK --restore-mark",),
    "ECN": (
        *(
            f"-p tcp -m tcp --tcp-flags {flag} {flag} -j MARK --or-mark {1 << bit}"
            for bit, flag in enumerate(_FLAGS)
        ),
        "-p tcp -m ecn --ecn-tcp-ece -j MARK --or-mark 0x40",
        "-p tcp -m ecn --ecn-tcp-cwr -j MARK --or-mark 0x80",
    ),
}
"""Rules around a target of the same chain: every bit of a mark set and not set, and the result."""
_AFTER_IP6: Final[Mapping[str, Sequence[str]]] = {
    "TOS": ('-m u32 --u32 "0>>16&0xf=0:14" -j DROP',),
}
"""Rules behind a target of IPv6: the traffic class must not reach into flow labels, which begin with 0xf."""
