from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate.nft import emit

RECENT = ("-A INPUT -m recent --name l --set", "-A INPUT -m recent --name l --rcheck --seconds 9 -j DROP")


@pytest.mark.parametrize(
    ("table", "rules", "feature", "text"),
    [
        ("filter", ("-A INPUT -m nfacct --nfacct-name a -j DROP",), "nfacct", "nfacct_a counts instead"),
        ("filter", RECENT, "recent-capacity", "list l of -m recent holds 100 addresses"),
        (
            "filter",
            (RECENT[0], f"{RECENT[1].removesuffix('-j DROP')} --hitcount 3 -j DROP"),
            "recent-hits",
            "may count two packets of one address as one",
        ),
        (
            "filter",
            ("-A INPUT -m recent --name l --remove", "-A INPUT -m recent --name l --set"),
            "set-removal",
            "removed from the list l and added again more than 16 times in a second",
        ),
        ("filter", ("-A INPUT -m limit --limit 7/min --limit-burst 5 -j DROP",), "limit-burst", "holds 4.9"),
        ("filter", ("-A FORWARD -m physdev --physdev-is-in -j DROP",), "physdev", "br_netfilter"),
        ("mangle", ("-A FORWARD -p tcp --syn -j TCPMSS --set-mss 1400",), "tcpmss", "adds no MSS option"),
        ("filter", ("-A INPUT -p tcp -m tcpmss --mss 5 -j DROP",), "later-fragments", "reads data"),
        ("filter", ("-A INPUT -p tcp -m ecn --ecn-tcp-cwr -j DROP",), "later-fragments", "reads data"),
        (
            "nat",
            ("-A PREROUTING -p tcp --dport 1000:1003 -j DNAT --to-destination 10.0.0.1:2000-2003/1000",),
            "nat-port-shift",
            "takes the next port",
        ),
    ],
)
@pytest.mark.parametrize("level", [0, 2])
def test_a_note_has_the_line_of_its_rule(
    table: str, rules: tuple[str, ...], feature: str, text: str, level: int
) -> None:
    notes = [note for note in emit(program(table, *rules, level=level)).notes if text in note.text]
    assert [note.feature for note in notes] == [feature]
    assert rules[0] == notes[0].origin.text


@pytest.mark.parametrize(
    "rule",
    [
        "-A INPUT -m limit --limit 6/min --limit-burst 5 -j DROP",  # whole packets
        "-A INPUT -m recent --name l --rcheck -j DROP",  # nothing fills the list
        "-A INPUT -m recent --name l --remove -j DROP",
        "-A INPUT -p tcp --syn -j DROP",
        "-A INPUT -p tcp --syn -m tcpmss --mss 5 -j DROP",
        "-A INPUT -p tcp --dport 5 -m ecn --ecn-tcp-cwr -j DROP",
        "-A INPUT -p tcp --syn -m ecn --ecn-tcp-cwr -j DROP",
        '-A INPUT -p tcp --syn -m comment --comment "not --ecn-tcp-cwr" -j DROP',
        "-A INPUT -p tcp -m tcpmss --mss 5 -m conntrack --ctstate NEW -j DROP",
    ],
)
def test_rules_that_mean_the_same_have_no_note(rule: str) -> None:
    assert emit(program("filter", rule)).notes == ()
