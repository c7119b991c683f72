"""Texts of one rule, read by the reader and by both iptables; iptables-legacy is the reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from backends.testbed.command import find_tool, run
from tests.kernel.helpers.restored import ACCOUNTS, Restorer, restorer
from translate.errors import ParseError
from translate.ir import AnyOf, Family, FieldTest, Ruleset, SetTest, Test
from translate.passes.facts import everything
from translate.passes.normalise import canonical
from translate.read import read_ruleset

__all__ = ["SINCE_1_8_11", "Compared", "comparison", "is_later_than_1_8_9"]

NOT_MODELLED = re.compile(
    r"not modelled|is not read|unknown match|CT is read only with|\" shifts ports"
    r"|address range .* ends before it begins|there is no port \d+|depends on the version of iptables"
    r"|\"nan\" is not a probability|is not \[address\]:port|is not a number from 0 to 14"
    r"|device's name has 1 to 15 bytes"
)
"""Refusals of rules that iptables accepts, by the reader's words."""

OTHER_FAMILY = {
    Family.IP: re.compile(r" (-6|--ipv6)( |$)"),
    Family.IP6: re.compile(r" (-4|--ipv4)( |$)"),
}
"""Options that make a rule one of the other family. iptables does not check the options before them."""

LATE = re.compile(r" ! (?!-)| -[sdiop] ! ")
"""``--dport ! 53``, as releases before 1.8.8 took it (and ``-i !``, which is a device of that name now)."""

HELP = re.compile(r" --h(e|el|elp)?( |$)")
"""``--help`` and its abbreviations, of which iptables prints its help and loads nothing."""

NOT_THERE = re.compile(
    r"--(?:match|add|del)-set (?!(nets|pairs) )\S+ | CT .*--[ht]|[ =](?:LED|SECMARK|RATEEST)\b"
    rf"|--nfacct-name (?!({'|'.join(map(re.escape, ACCOUNTS))}|a*|\"\")( |$))"
    + ("" if Path("/etc/iproute2/group").exists() else r"|--\w+-group default( |$)")
)
"""Named objects, helpers, LEDs and labels that the test does not create; the rule is valid without them."""

FORGOTTEN = re.compile(
    r"--icmp-type[ =]\S+/\d+:|--to-s\S* \S+/\d"
    r"|! --[sd]\w*-?p\w* (0:65535|:)( |$)|--sec\w*[ =](0xf{8}|429\d{7})( |$)|--datesto\w* 1970( |$)"
)
"""Options that iptables-save does not print as they were given.

These are the last of several codes, a range of every port, the port that SNAT counts from (``/0``), seconds
above 2^31 (``-1``), which iptables-restore refuses, and the end of a time that never begins.
"""

SINCE_1_8_11 = re.compile(r" --jump=")
"""Texts that iptables 1.8.11 accepts and 1.8.9 refuses. The reader refuses them: others load with both."""

UNTIL_1_8_9 = re.compile(r"or out of range \((\d+)-|conntrack: rule would never match protocol")
"""The complaints of later releases about rules that 1.8.9 loads and saves.

These are ranges that end before they begin, and ``--ctproto all``.
"""

UNREADABLE: Final = re.compile(r"--(week|month)days  -|-j [SD]NPT(?!.*--src-pfx .*--dst-pfx )|--label \S+ \w")
"""Output of iptables-save that iptables-restore does not read.

It has a time without a day, no prefix ``::/0``, or a label of IDLETIMER with a space, without quotes.
"""


@dataclass
class Compared:
    """The results for texts, and those on which iptables and the reader disagree."""

    family: Family
    tools: Restorer
    later: bool
    """True for iptables later than 1.8.9."""

    became: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)

    def compare(self, text: str) -> None:
        verdicts = self.tools.ask(text)
        saved = verdicts.saved["legacy"]
        ours, why = read(text, self.family)
        self.became[f"{'accepted' if saved else 'refused'}, {'read' if ours else 'not read'}"] += 1
        rule = text.splitlines()[-2]
        if any(known.search(rule) for known in (OTHER_FAMILY[self.family], LATE, HELP, NOT_THERE)):
            return
        if saved is None and ours is not None:
            if any(ours.unknowns()):
                return  # where a match may stand is not known of those that are not modelled
            if verdicts.saved["nft"] and "-m limit" in rule:
                return  # a bucket that xt_limit cannot count
            if self.later and UNTIL_1_8_9.search(verdicts.said["legacy"]):
                return
            self.disagreements.append(f"mis-accepted: {rule}: {verdicts.said['legacy'].splitlines()[:1]}")
        elif saved is not None and ours is None:
            if NOT_MODELLED.search(why) or (self.later and SINCE_1_8_11.search(rule)):
                self.became["not modelled"] += 1
            else:
                self.disagreements.append(f"mis-refused: {rule}: {why}")
        elif saved is not None and ours is not None:
            theirs, problem = read(saved, self.family)
            if FORGOTTEN.search(rule):
                self.became["saved as something else"] += 1
            elif theirs is None and UNREADABLE.search(saved):
                self.became["saved as something that nobody reads"] += 1
            elif theirs is None:
                self.disagreements.append(f"saved and not read: {rule}: {problem}")
            elif not same(ours, theirs, self.family):
                self.disagreements.append(f"read otherwise: {rule}: {saved}")


def read(text: str, family: Family) -> tuple[Ruleset | None, str]:
    """The ruleset, or None and why not."""
    try:
        return read_ruleset(text.encode("utf-8", "surrogateescape"), name="text", family=family), ""
    except ParseError as error:
        return None, error.diagnostics[0].message


def same(ours: Ruleset, theirs: Ruleset, family: Family) -> bool:
    """Return whether two rulesets mean the same; iptables-save omits some tests that never hold."""
    mine, other = meaning(ours, family), meaning(theirs, family)
    return mine == other or any(tests is None for tests, _ in mine)


def meaning(ruleset: Ruleset, family: Family) -> list[tuple[object, object]]:
    return [
        (in_order(canonical(rule.tests, family), family), (chain.name, rule.actions))
        for table in ruleset.tables
        for chain in sorted(table.chains, key=lambda chain: chain.name)
        for rule in chain.rules
    ]


def in_order(tests: tuple[Test, ...] | None, family: Family) -> tuple[Test, ...] | None:
    """Return the tests in one order, because they mean the same in any order.

    The tests around one that never holds are left out, up to those that count packets.
    """
    if tests is None:
        return None
    done: list[Test] = []
    some: list[Test] = []
    for test in tests:
        if isinstance(test, FieldTest) and test.negated and test.values == everything(test.field, family):
            return (*done, test)
        if isinstance(test, FieldTest | AnyOf | SetTest):
            some.append(test)
        else:
            done += [*sorted(some, key=repr), test]
            some = []
    return (*done, *sorted(some, key=repr))


@contextmanager
def comparison(family: Family) -> Iterator[Compared]:
    """Compare texts of a family; the test is skipped where a tool or a file is missing."""
    for tool in ("unshare", "iptables-legacy-restore", "iptables-nft-restore", "ipset"):
        if find_tool(tool) is None:
            pytest.skip(f"needs {tool}")
    for file in (Path("/etc/services"), Path("/etc/protocols")):
        if not file.exists():
            pytest.skip(f"needs {file} (Debian package netbase)")
    with restorer(family) as tools:
        yield Compared(family, tools, later=is_later_than_1_8_9())


def is_later_than_1_8_9() -> bool:
    """Return whether the iptables of this machine is later than Debian 12's."""
    said = run(("iptables-legacy", "--version")).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:3])) > (1, 8, 9)
