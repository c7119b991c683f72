"""Sentences for the tests and effects of rules."""

from __future__ import annotations

import re
from typing import Final

import pytest

from harness.corpus.formats.fieldwords import field_sentence
from harness.corpus.formats.statewords import limit_text
from harness.explain.description import describe
from nfparity.inputs.rules import load_rules
from tests.lab.options import SAMPLES
from translate.ir import Family, Field, FieldTest, Interval, Limit
from translate.read import read_ruleset

_POOR: Final = re.compile(
    r"~0x|  |\ba hour\b|l4\.\w+ is (?:not )?0-65535|\bnot at most\b|[ =]$|is (?:not )?$|"
    r"\b(?:fib\.\S+(?:back|route)\S*|taker\S*|socket|ipsec\.\S+|meta\.bridged\S*|eui64) is\b|"
    r"(?:tcp\.options|sctp\.chunks) &"
)
"""Formulas, names of fields with two values, double blanks, and ends without a value."""


def sentence(table: str, rule: str, family: Family = Family.IP) -> str:
    text = f"*{table}\n{rule}\nCOMMIT\n"
    (described,) = describe(read_ruleset(text.encode(), name="rules", family=family))
    tests = " and ".join(described.tests)
    return f"{described.effect} where {tests}" if tests else described.effect


@pytest.mark.parametrize("path", SAMPLES)
def test_every_sample_of_a_match_or_target_has_a_sentence(path: str) -> None:
    """``nfparity explain RULES`` prints them; this shows each with its rule if it is poor."""
    ruleset = load_rules(path)
    written = {rule.origin.line: rule.origin.text for rule in ruleset.rules()}
    described = list(describe(ruleset))
    assert described
    poor = [
        f"{written[rule.line]}: {text}"
        for rule in described
        for text in (rule.effect, *rule.tests)
        if not text or _POOR.search(text)
    ]
    assert poor == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("PREROUTING -j MARK --set-mark 1", "sets mark to 0x1"),
        ("PREROUTING -j MARK --and-mark 0xff", "clears mark 0xffffff00"),
        ("PREROUTING -j MARK --or-mark 8", "sets mark 0x8"),
        ("PREROUTING -j MARK --xor-mark 8", "flips mark 0x8"),
        ("PREROUTING -j MARK --set-xmark 0x1/0x3", "sets mark to 0x1 in the bits 0x3"),
        (
            "PREROUTING -j MARK --set-xmark 0xf1/0xf",
            "sets mark to 0xf1 in the bits 0xf, and flips its bits 0xf0",
        ),
        ("PREROUTING -j CONNMARK --save-mark", "sets connmark to mark"),
        ("PREROUTING -j CONNMARK --save-mark --left-shift-mark 8", "sets connmark to mark << 8"),
        ("PREROUTING -j CONNMARK --restore-mark --mask 0x80", "copies the bits 0x80 of connmark to mark"),
        (
            "PREROUTING -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff00 --right-shift-mark 8",
            "clears mark 0xff, and flips its bits that are set in (connmark & 0xff00) >> 8",
        ),
        ("PREROUTING -j ECN --ecn-ip-ect 2", "sets the ECN bits to 2"),
        (
            "PREROUTING -p tcp -j ECN --ecn-tcp-remove",
            "clears the TCP flags ECE and CWR where l4.proto is tcp",
        ),
        ("PREROUTING -m limit -j DROP", "drops where at most 3 packets an hour after a burst of 5"),
        (
            "FORWARD -m hashlimit --hashlimit-above 10/sec --hashlimit-mode srcip --hashlimit-name a -j DROP",
            "drops where more than 10 packets a second after a burst of 5 per ip.saddr",
        ),
        (
            "FORWARD -m recent --update --seconds 60 --hitcount 4 --name ssh -j DROP",
            "drops where its source is in list ssh at least 4 times in the last 60 seconds"
            " (the rule puts it in again)",
        ),
        (
            "FORWARD -m recent --set --name ssh --rdest",
            "only counts where its destination is put into list ssh",
        ),
        ("FORWARD -m connlabel ! --label 7 -j DROP", "drops where its connection does not have label 7"),
        (
            "FORWARD -m helper --helper ftp -j DROP",
            'drops where the helper "ftp", or a helper whose name begins like that, expected its connection',
        ),
        (
            "FORWARD -p sctp -m sctp --chunk-types only INIT -j DROP",
            "drops where l4.proto is sctp and it has a header with ports and it has no chunk but INIT",
        ),
    ],
)
def test_a_sentence_of_mangle(rule: str, expected: str) -> None:
    assert sentence("mangle", f"-A {rule}") == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("-p tcp -j DNAT --to-destination [fd00::1]:80", "sends to [fd00::1]:80 where l4.proto is tcp"),
        ("-p tcp -j REDIRECT --to-ports 15001", "redirects to this node at port 15001 where l4.proto is tcp"),
        ("-j REDIRECT", "redirects to this node"),
    ],
)
def test_a_sentence_of_nat(rule: str, expected: str) -> None:
    assert sentence("nat", f"-A PREROUTING {rule}", Family.IP6) == expected


def test_changes_of_a_set_are_the_effect() -> None:
    rule = "-A INPUT -p tcp -j SET --add-set seen src,dst --del-set old src"
    assert sentence("filter", rule) == (
        "adds src,dst to set seen and deletes src from set old where l4.proto is tcp"
    )


def test_events_of_a_connection_and_of_its_expectations_are_apart() -> None:
    assert sentence("raw", "-A PREROUTING -j CT --ctevents new,destroy") == (
        "reports the events new, destroy of a new connection and reports no events of its expectations"
    )


def test_a_field_with_two_values_has_a_sentence_for_each() -> None:
    def text(value: int, *, negated: bool) -> str | None:
        values = (Interval.point(value),)
        return field_sentence(FieldTest(field=Field.SOCKET, values=values, negated=negated), Family.IP)

    yes, no = "a socket of this node sends it", "no socket of this node sends it"
    assert [text(1, negated=False), text(0, negated=True)] == [yes, yes]
    assert [text(0, negated=False), text(1, negated=True)] == [no, no]


def test_other_fields_have_no_sentence() -> None:
    test = FieldTest(field=Field.SPORT, values=(Interval(1, 5),))
    assert field_sentence(test, Family.IP) is None


def test_a_rate_has_the_largest_unit_with_a_whole_packet() -> None:
    assert limit_text(Limit(interval=86400 * 10**9, capacity=86400 * 10**9)) == (
        "at most 1 packet a day after a burst of 1"
    )
