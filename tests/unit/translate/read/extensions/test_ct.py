"""``-j CT``: zones and what a connection gets when it begins."""

from __future__ import annotations

import pytest

import translate.bpf
import translate.nft
from harness.corpus.formats.ruletext import action_text
from translate.errors import ParseError, UnsupportedError
from translate.ir import Action, Family, NoTrack, Ruleset, Template, ZoneSide
from translate.passes import lower
from translate.read import read_ruleset


def ruleset(rule: str) -> Ruleset:
    text = f"*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING {rule}\nCOMMIT\n"
    return read_ruleset(text.encode(), name="rules", family=Family.IP)


def action(rule: str) -> Action:
    (one,) = ruleset(rule).tables[0].chains[0].rules[0].actions
    return one


@pytest.mark.parametrize(
    ("options", "meaning"),
    [
        ("--notrack --zone 5 --helper ftp", NoTrack()),
        ("--zone 5", Template(zone=5)),
        ("--zone 0x10", Template(zone=16)),
        ("--zone Mark", Template(zone=None)),
        ("--zone-orig 5", Template(zone=5, side=ZoneSide.ORIGINAL)),
        ("--zone-reply 5", Template(zone=5, side=ZoneSide.REPLY)),
        ("--zone-reply 5 --zone 6", Template(zone=6, side=ZoneSide.REPLY)),
        ("--zone-orig 5 --zone-reply 6", Template(zone=6)),
        ("--zone-orig mark --zone-reply 6", Template(zone=None)),
        ("--ctevents mark,new", Template(events=("new", "mark"))),
        ("--expevents new", Template(expectation_events=("new",))),
        ("", Template()),
    ],
)
def test_options(options: str, meaning: Action) -> None:
    assert action(f"-p tcp -j CT {options}") == meaning


@pytest.mark.parametrize(
    ("options", "statement", "sentence"),
    [
        ("--zone 5", "ct state invalid ct zone set 5", "makes conntrack look it up in zone 5"),
        (
            "--zone-orig 5",
            "ct state invalid ct original zone set 5",
            "makes conntrack look it up in zone 5 for the original direction",
        ),
        (
            "--zone-reply 5",
            "ct state invalid ct reply zone set 5",
            "makes conntrack look it up in zone 5 for the reply direction",
        ),
        (
            "",
            "ct state invalid ct zone set 0",
            "makes conntrack track it normally, regardless of later rules of table raw",
        ),
    ],
)
def test_a_zone_in_nftables(options: str, statement: str, sentence: str) -> None:
    rule = f"-j CT {options}"
    assert f"\t\t{statement} comment" in translate.nft.emit(lower(ruleset(rule), level=2)).text
    assert action_text(action(rule), Family.IP) == sentence
    with pytest.raises(UnsupportedError, match="no zones and no helpers"):
        translate.bpf.emit(lower(ruleset(rule), level=2))


@pytest.mark.parametrize(
    ("options", "reason", "sentence"),
    [
        ("--zone mark", "does not accept the packet's mark as a zone", "in the zone of its mark"),
        ("--timeout slow", "a timeout policy only after", "gives a new connection the timeouts slow"),
        ("--ctevents new", "a choice of events only after", "reports the events new of a new connection"),
        ("--expevents new", "a choice of events only after", "reports the events new of its expectations"),
    ],
)
def test_what_nftables_cannot_say(options: str, reason: str, sentence: str) -> None:
    rule = f"-p tcp -j CT {options}"
    with pytest.raises(UnsupportedError, match=reason):
        translate.nft.emit(lower(ruleset(rule), level=2))
    assert sentence in action_text(action(rule), Family.IP)


def test_a_helper_is_for_the_protocol_of_its_rule() -> None:
    helped = action("-p tcp -j CT --helper ftp")
    assert helped == Template(helper="ftp", protocol=6)
    assert action_text(helped, Family.IP) == "gives a new connection the helper ftp"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("-j CT --zone 65536", '"65536" is not a zone'),
        ("-j CT --zone -1", '"-1" is not a zone'),
        ("-j CT --ctevents never", 'unknown event "never"'),
        ("-j CT --expevents new,destroy", 'unknown event "destroy"'),
        ("-j CT --helper ftp", '"--helper" needs "-p" in the same rule'),
        ("! -p tcp -j CT --helper ftp", '"--helper" needs "-p" in the same rule'),
    ],
)
def test_what_iptables_does_not_take(rule: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        ruleset(rule)
    assert message in str(caught.value)
